"""TD(0) policy evaluation on random Markov decision processes: every form with its controls, against the solution."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramian.core.csv_tables import Value, write_csv
from gramian.core.errors import require, require_least
from gramian.core.statistics import mean_and_error
from gramian.core.text import plus_minus, text_table
from gramian.linear.batch import Samples, learn_runs
from gramian.linear.kernels import Floats, Integers
from gramian.linear.learner import check_alpha, check_lambdas, initial_transform
from gramian.linear.mdp import check_features, random_process
from gramian.linear.regression import Case, cases, control_of, record_points
from gramian.linear.sweep import Arrays, SweepOptions, run_blocks

BLOCK_RUNS = 50
QUICK_RUNS, QUICK_STEPS = 10, 2000


@dataclass(frozen=True)
class TD(SweepOptions):
    """Options of ``gramian td``."""

    out: Path = Path("td")
    """Folder for the tables, the figure and the finished cells."""
    runs: int = 100
    """Runs, each on a random process of its own."""
    steps: int = 20_000
    """Steps of a run: independent transitions from the stationary distribution."""
    states: int = 12
    """States of a process."""
    features: int = 4
    """Features d; they are correlated and have full rank."""
    gamma: float = 0.9
    """Discount γ."""
    alpha: float = 0.005
    """Step size of the transform A; a feature has the mean square 1."""
    lambdas: tuple[float, ...] = (0.01, 0.1, 1.0)
    """Coefficients λ of the decorrelating term; λ = 0 is always run."""
    quick: bool = False
    """A smaller version: at most 10 runs of 2,000 steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least(self, 1, "steps")
        check_alpha(self.alpha)
        check_lambdas(self.lambdas)
        require(0 <= self.gamma < 1, "gamma", self.gamma, "in [0, 1)")
        check_features(self.features, self.states)
        self.sort("lambdas")

    def quickened(self) -> "TD":
        """Return these options, or their smaller version where ``quick`` is set."""
        if not self.quick:
            return self
        return replace(self, runs=min(self.runs, QUICK_RUNS), steps=min(self.steps, QUICK_STEPS))

    def cases(self) -> list[Case]:
        """Plain learning, and every form with its controls, in the order of the tables."""
        return cases(self.alpha, self.lambdas, self.init, self.features)


def block(options: TD, runs: range, stop: NDArray[np.bool_]) -> Arrays:
    """Relative errors of every case after the recorded steps [case, point, run]; all cases see the same transitions."""
    listed, points, d = options.cases(), record_points(options.steps), options.features
    rules = [case.arm.rule(case.alpha, options.beta) for case in listed]
    drawn: list[list[Floats]] = []
    for run in runs:
        process = random_process(options.states, d, seed=options.seed * 1_000_000 + run, gamma=options.gamma)
        rng = np.random.default_rng([options.seed, run])
        transitions = process.sample(rng, options.steps)
        drawn.append([*transitions, process.C, process.td_fixed_point(), initial_transform(options.init, d, rng)])
    phi, rewards, following, seconds, C, solution, A = (np.stack(part, axis=-1) for part in zip(*drawn, strict=True))
    samples = Samples(phi, rewards, seconds, following, options.gamma)
    errors = learn_runs(rules, samples, C, solution, A, points, stop).errors
    return {"errors": errors / errors[:, :1]}


@dataclass(frozen=True)
class Results:
    """What all runs gave."""

    options: TD
    cases: list[Case]
    points: Integers
    errors: Floats
    """Mean squared difference from the TD(0) solution under μ, over that at the start [case, point, run]."""

    def measures(self, c: int) -> list[tuple[float, float]]:
        """Mean and standard error of the area under the curve, of that minus the control's, and of the last error."""
        weights = np.diff(self.points) / self.points[-1]
        areas = np.einsum("p,cpr->cr", weights, (self.errors[:, 1:] + self.errors[:, :-1]) / 2)
        against = areas[c] - areas[control_of(self.cases, c)]
        return [mean_and_error(values) for values in (areas[c], against, self.errors[c, -1])]


def compute(options: TD) -> Results:
    """Run what is missing in the folder of ``options`` and gather everything."""
    loaded = run_blocks(options, "td", BLOCK_RUNS, partial(block, options))
    errors = np.concatenate([part["errors"] for part in loaded], axis=-1)
    return Results(options, options.cases(), record_points(options.steps), errors)


def write_tables(results: Results) -> None:
    """Write ``td.csv`` (curves) and ``td_summary.csv`` (area, area minus that of λ = 0, final error)."""
    curves: list[list[Value]] = []
    summary: list[list[Value]] = []
    for c, case in enumerate(results.cases):
        arm = case.arm
        fields: list[Value] = [case.label, arm.form, arm.estimator, arm.projected, arm.lam, case.alpha]
        for step, errors in zip(results.points, results.errors[c], strict=True):
            curves.append([*fields, int(step), *mean_and_error(errors), len(errors)])
        summary.append([*fields, *(part for pair in results.measures(c) for part in pair), results.options.runs])
    columns = ["arm", "form", "estimator", "projected", "lambda", "alpha"]
    folder = results.options.out
    write_csv(folder / "td.csv", [*columns, "step", "error_mean", "error_se", "runs"], curves)
    measures = [f"{name}_{part}" for name in ("area", "area_minus_control", "final") for part in ("mean", "se")]
    write_csv(folder / "td_summary.csv", [*columns, *measures, "runs"], summary)


def report(results: Results) -> str:
    """The summary as text."""
    rows = [
        [case.label, f"{case.arm.lam:g}", *(plus_minus(*pair) for pair in results.measures(c))]
        for c, case in enumerate(results.cases)
    ]
    said = f"Error over that at the start; mean ± standard error of {results.options.runs} runs."
    return said + "\n" + text_table(["arm", "λ", "area", "area − its λ = 0", "final"], rows, keys=2)
