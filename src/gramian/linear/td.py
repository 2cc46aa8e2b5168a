"""TD(0) policy evaluation on random processes or Boyan's chain: every form and its controls, against the solution."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from gramian.core.csv_tables import Record
from gramian.core.errors import require
from gramian.linear import curves
from gramian.linear.batch import Samples
from gramian.linear.curves import CurveOptions, Experiment, Results, Task
from gramian.linear.learner import initial_transform
from gramian.linear.mdp import BOYAN_FEATURES, RewardProcess, boyan_chain, check_features, random_process

BLOCK_RUNS = 50
QUICK_RUNS, QUICK_STEPS = 10, 2000


@dataclass(frozen=True)
class TD(CurveOptions):
    """TD(0) policy evaluation on random decision processes or Boyan's chain, plain and decorrelated, with controls.

    Writes td.csv, td_summary.csv and a figure into --out, and prints the table. Interrupted, it goes on where it
    stopped when it is called again with the same options.
    """

    out: Path = Path("td")
    """Folder for the tables, the figure and the finished cells."""
    runs: int = 100
    """Runs; on random processes each has one of its own."""
    process: Literal["random", "boyan"] = "random"
    """What is evaluated: random decision processes, or Boyan's chain of 13 states (Boyan 2002)."""
    states: int = 12
    """States of a random process."""
    features: int = 4
    """Features d of a random process; they are correlated and have full rank."""
    gamma: float | None = None
    """Discount γ: without it 0.9, and 1 on Boyan's chain, which ends."""
    alpha: float = 0.005
    """Step size of the transform A; features have the mean square 1."""
    lambdas: tuple[float, ...] = (0.01, 0.1, 1.0)
    """Coefficients λ of the decorrelating term; λ = 0 is always run."""
    quick: bool = False
    """A smaller version: at most 10 runs of 2,000 steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        ends = self.process == "boyan"
        if self.gamma is None:
            object.__setattr__(self, "gamma", 1.0 if ends else 0.9)
        right = "in [0, 1]" if ends else "in [0, 1)"
        require(0 <= self.discount < 1 or (ends and self.discount == 1), "gamma", self.discount, right)
        check_features(self.features, self.states)

    @property
    def discount(self) -> float:
        """γ, which has a value once the options are made."""
        return self.gamma or 0.0

    @property
    def d(self) -> int:
        """Number of features."""
        return BOYAN_FEATURES if self.process == "boyan" else self.features

    def made(self, run: int) -> RewardProcess:
        """The process of a run."""
        if self.process == "boyan":
            return boyan_chain(self.discount)
        return random_process(self.states, self.d, seed=self.seed * 1_000_000 + run, gamma=self.discount)


def tasks(options: TD, runs: range) -> list[Task]:
    """Independent transitions from the stationary distribution of every run's process."""
    drawn = []
    for run in runs:
        process, rng = options.made(run), np.random.default_rng([options.seed, run])
        transitions = process.sample(rng, options.steps)
        A = initial_transform(options.init, options.d, rng)
        drawn.append([*transitions, process.C, process.td_fixed_point(), A])
    phi, rewards, following, seconds, C, solution, A = (np.stack(part, axis=-1) for part in zip(*drawn, strict=True))
    return [Task(Samples(phi, rewards, seconds, following, options.discount), C, solution, A)]


def compute(options: TD) -> Results:
    """Run what is missing in the folder of ``options`` and gather everything."""
    if options.quick:
        options = options.at_most(QUICK_RUNS, QUICK_STEPS)
    groups: list[Record] = [{"process": options.process}]
    return curves.compute(
        Experiment("td", options, options.d, groups, partial(tasks, options), BLOCK_RUNS, relative=True)
    )


def report(results: Results, summary: list[Record]) -> str:
    """The summary as text."""
    runs = results.experiment.options.runs
    return curves.report(results, summary, f"Error over that at the start; mean ± standard error of {runs} runs.")
