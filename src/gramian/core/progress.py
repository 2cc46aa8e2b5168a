"""Progress of long work: a bar on a terminal, plain lines elsewhere. Always on standard error."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

PLAIN_INTERVAL_S = 10.0


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Write a number of seconds the way a person says it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Progress:
    """Counts work towards ``total``: one live bar on a terminal, elsewhere a line every ten seconds and one at the end.

    ``done`` is above zero when work goes on where it stopped; the estimate counts what was done in this process.
    """

    def __init__(
        self,
        total: int,
        description: str,
        *,
        unit: str = "step",
        done: int = 0,
        interval_s: float = PLAIN_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.description, self.unit = total, description, unit
        self.done = self._start_done = done
        self.note = ""
        self._interval_s, self._clock = interval_s, clock
        self._rich: RichProgress | None = None

    def __enter__(self) -> Self:
        self._started = self._printed = self._clock()
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as RichProgress

            self._rich = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._rich.start()
            self._task = self._rich.add_task(self.description, total=self.total, completed=self.done, note=self.note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rich is not None:
            self._rich.stop()
        else:
            self._print_line(ended=True)

    def advance(self, amount: int = 1, *, note: str | None = None) -> None:
        """Count ``amount`` more; ``note`` replaces the short text at the end of the line."""
        self.done += amount
        if note is not None:
            self.note = note
        if self._rich is not None:
            self._rich.update(self._task, completed=self.done, note=self.note)
        elif self._clock() - self._printed >= self._interval_s:
            self._print_line(ended=False)

    def remaining_s(self) -> float | None:
        """Seconds to the end at the pace of this process; None while nothing has been done."""
        paced = self.done - self._start_done
        if paced <= 0:
            return None
        return (self.total - self.done) / paced * (self._clock() - self._started)

    def _print_line(self, *, ended: bool) -> None:
        self._printed = self._clock()
        share = self.done / self.total if self.total else 1.0
        parts = [f"{self.description}: {self.done:,} of {self.total:,} {self.unit}s ({share:.0%})"]
        if ended:
            parts.append(f"took {duration(self._printed - self._started)}")
        elif (remaining := self.remaining_s()) is not None:
            parts.append(f"{duration(remaining)} left")
        if self.note:
            parts.append(self.note)
        print(", ".join(parts), file=sys.stderr, flush=True)
