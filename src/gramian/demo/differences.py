"""Differences with their 95 % intervals: which of them can be told from noise."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.core.files import replace_text
from gramian.core.statistics import mean_interval

FEWEST_DIGITS, MOST_DIGITS = 3, 9
WIDTH = 20
"""Columns of an interval in the table for a terminal."""


@dataclass(frozen=True)
class Difference:
    """A mean difference between two arms, with its interval; NaN where the data do not suffice."""

    what: str
    value: float
    low: float
    high: float
    tells: str = ""
    """What it is the effect of."""

    @property
    def verdict(self) -> str:
        """Whether the interval excludes 0."""
        if not all(map(math.isfinite, (self.value, self.low, self.high))):
            return "no interval"
        return "clear" if self.low > 0 or self.high < 0 else "within noise"

    @property
    def mean(self) -> str:
        """The difference itself, in the digits of its interval."""
        return short(self.value, self._digits())

    @property
    def interval(self) -> str:
        """The interval in three digits, or in as many as its ends need to differ, within the columns of the table."""
        return self._interval(self._digits())

    def _interval(self, digits: int) -> str:
        return f"[{short(self.low, digits)}, {short(self.high, digits)}]"

    def _digits(self) -> int:
        digits = FEWEST_DIGITS
        while short(self.low, digits) == short(self.high, digits) and len(self._interval(digits + 1)) <= WIDTH:
            if digits == MOST_DIGITS:  # the ends are the same
                return FEWEST_DIGITS
            digits += 1
        return digits


@dataclass(frozen=True)
class Experiment:
    """What one experiment gave."""

    title: str
    differences: tuple[Difference, ...]
    levels: str = ""
    """The means themselves, as a line of text."""


def short(value: float, digits: int = FEWEST_DIGITS) -> str:
    """A number in so many digits, or more where they stand before the point; a dash where there is none."""
    if not math.isfinite(value):
        return "–"
    before = len(f"{abs(value):.0f}")
    return f"{value:,.{max(0, digits - before)}f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def paired(what: str, one: ArrayLike, other: ArrayLike, tells: str = "") -> Difference:
    """Mean of ``one - other`` ``[n]`` over pairs, with Student's interval."""
    mean, low, high = mean_interval(np.asarray(one, float) - np.asarray(other, float))
    known = math.isfinite(high - low)
    return Difference(what, mean, low if known else math.nan, high if known else math.nan, tells)


def kept(path: Path, key: Mapping[str, Any], work: Callable[[], Experiment]) -> Experiment:
    """What ``work`` gives, or what it gave when it was last done for the same ``key``: the file ``path`` holds it."""
    wanted = json.loads(json.dumps(key))
    with suppress(OSError, ValueError, KeyError, TypeError):  # no file, or half of one
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["key"] == wanted:
            found = saved["experiment"]
            return Experiment(found["title"], tuple(Difference(**row) for row in found["differences"]), found["levels"])
    made = work()
    replace_text(path, json.dumps({"key": wanted, "experiment": asdict(made)}, ensure_ascii=False, indent=1) + "\n")
    return made


def text(experiments: Sequence[Experiment]) -> str:
    """A table for a terminal of 80 columns."""
    lines = [f"{'':<34} {'difference':>10} {'95 % interval':>{WIDTH}}"]
    for experiment in experiments:
        lines += [experiment.title, *([f"  {experiment.levels}"] if experiment.levels else [])]
        lines += [
            f"  {row.what:<32} {row.mean:>10} {row.interval:>{WIDTH}}  {row.verdict}" for row in experiment.differences
        ]
    return "\n".join(lines)
