"""The paper's stochastic linear regression, with the controls that tell decorrelation from a larger step size."""

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramian.core.csv_tables import Value, write_csv
from gramian.core.errors import require, require_least
from gramian.core.statistics import mean_and_error
from gramian.core.text import plus_minus, text_table, three_digits
from gramian.linear.batch import Samples, learn_runs
from gramian.linear.kernels import Floats, Integers
from gramian.linear.learner import Arm, check_alpha, check_lambdas, initial_transform
from gramian.linear.sweep import Arrays, SweepOptions, check_memory, run_blocks

BEST = (1.0, 2.0)
"""w*: the labels are y = x₁ + 2x₂."""

MATCHED = 1
"""Index in `cases` of plain learning at α·d, the control whose step size matches the reduced form's."""

PLATEAU = (500, 3000)
"""Steps of the first phase; later the single-sample term lets A slide into a degenerate minimum."""

BLOCK_RUNS = 200
QUICK_RUNS, QUICK_STEPS = 100, 4000

KINDS = (
    ("reduced", "single", False, "A, single-sample (the paper)"),
    ("reduced", "two-sample", False, "A, two-sample"),
    ("reduced", "running", False, "A, running"),
    ("reduced", "norm", False, "A, norm alone"),
    ("plain", "single", False, "plain, α·d, shrinkage"),
    ("full", "single", False, "(θ, A), single-sample"),
    ("full", "two-sample", False, "(θ, A), two-sample"),
    ("full", "norm", False, "(θ, A), norm alone"),
    ("reduced", "single", True, "A projected, single-sample"),
    ("full", "single", True, "(θ, A) projected, single-sample"),
)
"""Form, estimator, projection and label of the arms that are run with each λ."""


@dataclass(frozen=True)
class Regression(SweepOptions):
    """Options of ``gramian regression``."""

    out: Path = Path("regression")
    """Folder for the tables, the figures and the finished cells."""
    runs: int = 1000
    """Independent runs."""
    steps: int = 20_000
    """Steps of a run; one sample each."""
    alpha: float = 0.01
    """Step size of the transform A."""
    lambdas: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    """Coefficients λ of the decorrelating term; λ = 0 is always run."""
    rhos: tuple[float, ...] = (0.0, 0.99)
    """Correlations of the two inputs."""
    quick: bool = False
    """A smaller version: at most 100 runs of 4,000 steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least(self, 1, "steps")
        check_alpha(self.alpha)
        self.check_different("rhos")
        for rho in self.rhos:
            require(-1 < rho < 1, "rho", rho, "between -1 and 1, as a correlation is")
        check_lambdas(self.lambdas)
        self.sort("lambdas", "rhos")

    def quickened(self) -> "Regression":
        """Return these options, or their smaller version where ``quick`` is set."""
        if not self.quick:
            return self
        return replace(self, runs=min(self.runs, QUICK_RUNS), steps=min(self.steps, QUICK_STEPS))


@dataclass(frozen=True)
class Case:
    """An arm with its step size."""

    arm: Arm
    alpha: float
    """Step size in the arm's own update."""
    label: str


def cases(alpha: float, lambdas: tuple[float, ...], init: str = "identity", d: int = len(BEST)) -> list[Case]:
    """List the paper's pair and the controls with d features, in the order of the tables."""
    found = [
        Case(Arm("plain"), alpha, "plain, α"),
        Case(Arm("plain"), alpha * d, "plain, α·d"),
        Case(Arm("reduced"), alpha, "A, λ = 0"),
    ]
    for form, estimator, projected, label in KINDS:
        if projected and init == "zero":
            continue
        control = Arm(form, projected=projected)
        if all(case.arm != control for case in found):
            found.append(Case(control, alpha, label.replace("single-sample", "λ = 0")))
        for lam in lambdas:
            arm = Arm(form, estimator, lam, projected)
            found.append(Case(arm, arm.alpha(alpha, d), label))
    return found


def control_of(listed: list[Case], c: int) -> int:
    """Index of the λ = 0 case of the form, step size and projection of case ``c``; plain at α·d for reduced forms."""
    arm = listed[c].arm
    if arm.form != "full" and not arm.projected:
        return MATCHED
    return next(i for i, case in enumerate(listed) if case.arm == Arm(arm.form, projected=arm.projected))


def record_points(steps: int) -> Integers:
    """List the steps at which curves are recorded: 0, then about 12 per factor of 10, and the last."""
    decades = math.log10(steps)
    points = np.rint(np.logspace(0, decades, int(12 * decades) + 2)).astype(np.int64)
    return np.unique(np.concatenate([[0], points, [steps]]))


def block(options: Regression, runs: range, stop: NDArray[np.bool_]) -> Arrays:
    """Every case on the same data, for the runs of a block; data depend on the seed and the run's number alone."""
    d, listed, points = len(BEST), cases(options.alpha, options.lambdas, options.init), record_points(options.steps)
    rules = [case.arm.rule(case.alpha, options.beta) for case in listed]
    z, second = np.empty((2, options.steps, d, len(runs)))
    A0 = np.empty((d, d, len(runs)))
    for b, run in enumerate(runs):
        rng = np.random.default_rng([options.seed, run])
        z[:, :, b], second[:, :, b] = rng.standard_normal((2, options.steps, d))
        A0[:, :, b] = initial_transform(options.init, d, rng)
    shape = (len(options.rhos), len(listed))
    errors, distances = np.empty((2, *shape, len(points), len(runs)))
    areas, diverged = np.empty((*shape, len(runs))), np.empty((*shape, len(runs)), dtype=bool)
    best = np.array(BEST)
    for r, rho in enumerate(options.rhos):
        covariance = np.array([[1.0, rho], [rho, 1.0]])
        x, x_second = (np.einsum("ij,tjb->tib", np.linalg.cholesky(covariance), part) for part in (z, second))
        samples = Samples(x, np.einsum("i,tib->tb", best, x), x_second)
        found = learn_runs(rules, samples, covariance[:, :, None], best[:, None], A0, points, stop)
        errors[r], distances[r], areas[r], diverged[r] = found
    plateau = np.full(areas.shape, np.nan)
    if options.steps >= PLATEAU[1]:
        plateau = errors[:, :, (points >= PLATEAU[0]) & (points <= PLATEAU[1])].mean(axis=2)
    by_run = {"plateau": plateau, "areas": areas, "final": errors[:, :, -1], "diverged": diverged}
    return {**_moments("errors", errors), **_moments("distances", distances), **by_run}


def _moments(name: str, values: Floats) -> Arrays:
    """Count, mean and sum of squared deviations over the runs of ``values`` [..., run] that have a number."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=-1) / count  # NaN where no run has one
    squares = np.where(known, values - mean[..., None], 0.0) ** 2
    return {f"{name}_count": count, f"{name}_mean": mean, f"{name}_squares": squares.sum(axis=-1)}


def _combine(blocks: list[Arrays], name: str) -> Floats:
    """Mean and standard error over the runs of all blocks that have a number (Chan, Golub & LeVeque 1983)."""
    counts, means, squares = (
        np.stack([block[f"{name}_{part}"] for block in blocks]) for part in ("count", "mean", "squares")
    )
    means, total = np.where(counts > 0, means, 0.0), counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (counts * means).sum(axis=0) / total
        square = (squares + counts * (means - mean) ** 2).sum(axis=0)
        return np.stack([mean, np.sqrt(square / (total - 1) / total)])


@dataclass(frozen=True)
class Results:
    """What all runs gave: curves as mean and standard error, the rest run by run."""

    options: Regression
    cases: list[Case]
    points: Integers
    errors: Floats
    """Mean and standard error of the excess error [2, ρ, case, point]."""
    distances: Floats
    """The same of ‖AᵀA − I‖_F/√d, of the runs that have not diverged by then."""
    areas: Floats
    """Mean error over all steps [ρ, case, run]."""
    plateau: Floats
    """Mean error over the recorded steps 500 to 3,000 [ρ, case, run]."""
    final: Floats
    """Error after the last step [ρ, case, run]."""
    diverged: NDArray[np.bool_]
    """Runs that reached the cap [ρ, case, run]."""

    def measures(self, r: int, c: int) -> list[tuple[float, float]]:
        """Mean and standard error of area, plateau, final error, and area minus that of the control."""
        against = self.areas[r, c] - self.areas[r, control_of(self.cases, c)]
        return [mean_and_error(v) for v in (self.areas[r, c], self.plateau[r, c], self.final[r, c], against)]


def compute(options: Regression) -> Results:
    """Run what is missing in the folder of ``options`` and gather everything."""
    # each thread holds a block: two samples of two inputs a step, uncorrelated and correlated
    values = 4 * len(BEST) * options.steps * min(options.runs, BLOCK_RUNS)
    needed = options.threads_used * values * np.dtype(np.float64).itemsize
    check_memory(needed, f"{options.steps:,} steps", "--steps, --runs or --threads")
    loaded = run_blocks(options, "regression", BLOCK_RUNS, partial(block, options))
    by_run = ("areas", "plateau", "final", "diverged")
    return Results(
        options,
        cases(options.alpha, options.lambdas, options.init),
        record_points(options.steps),
        _combine(loaded, "errors"),
        _combine(loaded, "distances"),
        *(np.concatenate([part[name] for part in loaded], axis=-1) for name in by_run),
    )


CASE_COLUMNS = ("rho", "arm", "form", "estimator", "projected", "lambda", "alpha")


def write_tables(results: Results) -> None:
    """Write ``regression.csv`` (curves) and ``regression_summary.csv`` (area, plateau and final error)."""
    curves: list[list[Value]] = []
    summary: list[list[Value]] = []
    for r, rho in enumerate(results.options.rhos):
        for c, case in enumerate(results.cases):
            arm = case.arm
            fields: list[Value] = [rho, case.label, arm.form, arm.estimator, arm.projected, arm.lam, case.alpha]
            counts: list[Value] = [results.options.runs, int(results.diverged[r, c].sum())]
            for p, step in enumerate(results.points):
                numbers = [*results.errors[:, r, c, p], *results.distances[:, r, c, p]]
                curves.append([*fields, int(step), *map(float, numbers), *counts])
            summary.append([*fields, *(part for pair in results.measures(r, c) for part in pair), *counts])
    folder, ends = results.options.out, ("runs", "diverged")
    columns = ["step", "error_mean", "error_se", "distance_mean", "distance_se"]
    write_csv(folder / "regression.csv", (*CASE_COLUMNS, *columns, *ends), curves)
    measures = ("area", "plateau", "final", "area_minus_control")
    columns = [f"{measure}_{part}" for measure in measures for part in ("mean", "se")]
    write_csv(folder / "regression_summary.csv", (*CASE_COLUMNS, *columns, *ends), summary)


def report(results: Results) -> str:
    """Area under the curve, plateau, final error and distance from orthogonal as text, in tables of 80 columns."""
    header = ["arm", "λ", "area", "area − its λ = 0", f"steps {PLATEAU[0]}-{PLATEAU[1]}", "final", "distance"]
    parts = [
        f"Excess error, mean ± standard error of {results.options.runs} runs; "
        f"α = {results.options.alpha:g}.\nDistance: ‖AᵀA − I‖/√d after the last step."
    ]
    for r, rho in enumerate(results.options.rhos):
        rows, diverged = [], []
        for c, case in enumerate(results.cases):
            area, plateau, final, against = (plus_minus(*pair) for pair in results.measures(r, c))
            distance = "" if case.arm.form == "plain" else three_digits(results.distances[0, r, c, -1])
            rows.append([case.label, f"{case.arm.lam:g}", area, against, plateau, final, distance])
            if results.diverged[r, c].any():
                diverged.append(f"  {case.label}, λ = {case.arm.lam:g}: {int(results.diverged[r, c].sum())}")
        parts.append(f"ρ = {rho:g}\n" + text_table(header, rows, keys=2))
        if diverged:
            parts.append("\n".join(["Runs that diverged:", *diverged]))
    return "\n\n".join(parts)
