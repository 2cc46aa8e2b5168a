"""What a person sees while a population trains: a live table on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gramian.core.progress import duration
from gramian.deep.training.config import Config
from gramian.deep.training.logs import LAST_EPISODES

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

REFRESH_S = 0.5
PLAIN_INTERVAL_S = 30.0


class Display:
    """Follows a population that stands at ``agent_steps`` when this process takes over."""

    def __init__(self, config: Config, agent_steps: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._names = [run.name for run in config.runs]
        self._returns: list[deque[float]] = [deque(maxlen=LAST_EPISODES) for _ in config.runs]
        self._games = [0] * len(config.runs)
        self._losses: list[tuple[float, float] | None] = [None] * len(config.runs)
        self._states = [""] * len(config.runs)
        self._steps = self._first = agent_steps
        self._clock = clock
        self._started = self._shown = clock()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(self._table(), console=Console(stderr=True), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._show()
        if self._live is not None:
            self._live.stop()

    def episode(self, run: int, raw_return: float) -> None:
        """A game ended."""
        self._returns[run].append(raw_return)
        self._games[run] += 1

    def metrics(self, losses: Sequence[float], penalties: Sequence[float]) -> None:
        """Losses and penalties of all runs were measured."""
        self._losses = list(zip(losses, penalties, strict=True))

    def state(self, run: int, state: str) -> None:
        """The state of a run changed."""
        self._states[run] = state

    def advance(self, agent_steps: int) -> None:
        """The population has come to ``agent_steps``; shows itself when it is time to."""
        self._steps = agent_steps
        if self._clock() - self._shown >= (PLAIN_INTERVAL_S if self._live is None else REFRESH_S):
            self._show()

    def mean_return(self, run: int) -> float:
        """Mean raw return of a run's last hundred games; NaN before the first."""
        returns = self._returns[run]
        return sum(returns) / len(returns) if returns else math.nan

    def _show(self) -> None:
        self._shown = self._clock()
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            return
        lines = [self._headline()]
        width = max(map(len, self._names))
        for run, name in enumerate(self._names):
            games = self._games[run]
            numbers = [f"return {self.mean_return(run):.1f} ({games} games)" if games else "no game yet"]
            if (losses := self._losses[run]) is not None:
                loss, penalty = losses
                numbers += [f"loss {loss:.3g}", *([f"penalty {penalty:.3g}"] if penalty else [])]
            lines.append(f"  {name:<{width}}  {', '.join(numbers)} {self._states[run]}".rstrip())
        print("\n".join(lines), file=sys.stderr, flush=True)

    def _headline(self) -> str:
        total, frames = self._config.agent_steps, self._config.frames_per_agent_step
        elapsed, paced = self._clock() - self._started, self._steps - self._first
        speed = paced * len(self._names) / elapsed if elapsed > 0 else 0.0
        left = f", {duration((total - self._steps) / paced * elapsed)} left" if paced and self._steps < total else ""
        return (
            f"{self._steps * frames:,} of {total * frames:,} frames ({self._steps / total:.0%}), "
            f"{speed:,.0f} agent steps/s{left}"
        )

    def _table(self) -> "Table":
        from rich.table import Table

        table = Table(title=self._headline(), title_justify="left", box=None)
        for heading in ("run", "return", "games", "loss", "penalty", ""):
            # a name that is cut would lose its seed
            table.add_column(heading, justify="left" if heading == "run" else "right", overflow="fold")
        for run, name in enumerate(self._names):
            losses = ("", "") if (found := self._losses[run]) is None else (f"{value:.4g}" for value in found)
            mean = f"{self.mean_return(run):.1f}" if self._games[run] else ""
            table.add_row(name, mean, str(self._games[run]), *losses, self._states[run])
        return table
