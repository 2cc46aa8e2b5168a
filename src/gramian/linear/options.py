"""Options that the experiments of the linear half share."""

from dataclasses import dataclass
from pathlib import Path

from gramian.core.errors import UserError, unknown
from gramian.linear.arms import INITIALISATIONS, check_beta
from gramian.linear.sweep import check_threads

MOST_RUNS = 1_000_000
"""Far more than any error bar needs, and few enough to list."""


@dataclass(frozen=True)
class SweepOptions:
    """Options of every experiment that is made of runs."""

    out: Path
    """Folder for the tables, the figures and the finished cells."""
    runs: int
    """Independent runs."""
    beta: float = 0.01
    """Rate of the running second-moment matrix."""
    init: str = "identity"
    """First A: identity, orthogonal or zero (zero leaves out the projected arms)."""
    seed: int = 0
    """Of all randomness."""
    threads: int = 0
    """Threads; 0 takes one per core. The results do not depend on it."""

    def __post_init__(self) -> None:
        self.check_positive("runs")
        if self.runs > MOST_RUNS:
            raise UserError(f"runs is {self.runs:,}; it must be at most {MOST_RUNS:,}")
        check_beta(self.beta)
        if self.init not in INITIALISATIONS:
            raise unknown("initialisation", self.init, INITIALISATIONS)
        if self.seed < 0:
            raise UserError(f"seed is {self.seed}; it must be 0 or above")
        check_threads(self.threads)

    def check_positive(self, *names: str) -> None:
        """Raise `UserError` unless each of these options is at least 1."""
        for name in names:
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it must be at least 1")

    def check_different(self, *names: str) -> None:
        """Raise `UserError` unless each of these options lists something, and nothing twice."""
        for name in names:
            values: tuple[object, ...] = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise UserError(f"{name} is {values}; give at least one, each once")

    def sort(self, *names: str) -> None:
        """Put the values of each of these options in order, whatever the order they were given in."""
        for name in names:
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))
