"""The paper's stochastic linear regression, with the controls that tell decorrelation from a larger step size."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gramian.core.csv_tables import Record
from gramian.core.errors import require
from gramian.linear import curves
from gramian.linear.batch import Samples
from gramian.linear.curves import CurveOptions, Experiment, Results, Task
from gramian.linear.learner import initial_transform

BEST = (1.0, 2.0)
"""w*: the labels are y = x₁ + 2x₂."""

BLOCK_RUNS = 200
QUICK_RUNS, QUICK_STEPS = 100, 4000


@dataclass(frozen=True)
class Regression(CurveOptions):
    """Stochastic linear regression with and without decorrelated features, and the controls.

    Writes regression.csv, regression_summary.csv and two figures into --out, and prints the table. Interrupted, it goes
    on where it stopped when it is called again with the same options.
    """

    out: Path = Path("regression")
    """Folder for the tables, the figures and the finished cells."""
    runs: int = 1000
    """Independent runs."""
    rhos: tuple[float, ...] = (0.0, 0.99)
    """Correlations of the two inputs."""
    quick: bool = False
    """A smaller version: at most 100 runs of 4,000 steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_different("rhos")
        for rho in self.rhos:
            require(-1 < rho < 1, "rho", rho, "between -1 and 1, as a correlation is")
        self.sort("rhos")


def tasks(options: Regression, runs: range) -> list[Task]:
    """Inputs with each correlation, made from the same normal numbers."""
    d, best = len(BEST), np.array(BEST)
    z, second = np.empty((2, options.steps, d, len(runs)))
    A = np.empty((d, d, len(runs)))
    for b, run in enumerate(runs):
        rng = np.random.default_rng([options.seed, run])
        z[:, :, b], second[:, :, b] = rng.standard_normal((2, options.steps, d))
        A[:, :, b] = initial_transform(options.init, d, rng)
    found = []
    for rho in options.rhos:
        covariance = np.array([[1.0, rho], [rho, 1.0]])
        x, x_second = (np.einsum("ij,tjb->tib", np.linalg.cholesky(covariance), part) for part in (z, second))
        samples = Samples(x, np.einsum("i,tib->tb", best, x), x_second)
        found.append(Task(samples, covariance[:, :, None], best[:, None], A))
    return found


def compute(options: Regression) -> Results:
    """Run what is missing in the folder of ``options`` and gather everything."""
    if options.quick:
        options = options.at_most(QUICK_RUNS, QUICK_STEPS)
    groups: list[Record] = [{"rho": rho} for rho in options.rhos]
    return curves.compute(
        Experiment("regression", options, len(BEST), groups, partial(tasks, options), BLOCK_RUNS, relative=False)
    )


def report(results: Results, summary: list[Record]) -> str:
    """The summary as text."""
    options = results.experiment.options
    said = f"Excess error, mean ± standard error of {options.runs} runs; α = {options.alpha:g}."
    return curves.report(results, summary, f"{said}\nDistance: ‖AᵀA − I‖/√d after the last step.")
