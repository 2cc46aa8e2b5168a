"""The paper's stochastic linear regression, with the controls that tell decorrelation from a larger step size."""

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramian.core.errors import UserError
from gramian.core.host_memory import available_host_bytes
from gramian.linear.arms import ESTIMATORS, FORMS, Arm, check_alpha, check_lambdas, initial_transform
from gramian.linear.kernels import Floats, Integers
from gramian.linear.least_squares import regression_block
from gramian.linear.options import SweepOptions
from gramian.linear.statistics import mean_and_error
from gramian.linear.sweep import Arrays, Cells, check_threads, run_cells
from gramian.linear.tables import Value, plus_minus, text_table, three_digits, write_csv

BEST = (1.0, 2.0)
"""w*: the labels are y = x₁ + 2x₂."""

MATCHED = 1
"""Index in `cases` of plain learning at α·d, the control whose step size matches the reduced form's."""

PLATEAU = (500, 3000)
"""Steps of the first phase; later the single-sample term lets A slide into a degenerate minimum."""

BLOCK_RUNS = 50
QUICK_RUNS, QUICK_STEPS = 100, 4000


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
        self.check_positive("steps")
        check_alpha(self.alpha)
        self.check_different("rhos")
        for rho in self.rhos:
            if not -1 < rho < 1:
                raise UserError(f"rho is {rho:g}; a correlation of two inputs lies between -1 and 1")
        check_lambdas(self.lambdas)
        self.sort("lambdas", "rhos")


@dataclass(frozen=True)
class Case:
    """An arm with its step size."""

    arm: Arm
    alpha: float
    """Step size in the arm's own update."""
    label: str


def cases(alpha: float, lambdas: tuple[float, ...], init: str = "identity") -> list[Case]:
    """List the paper's pair and the controls, in the order of the tables."""
    d = len(BEST)
    found = [
        Case(Arm("plain"), alpha, "plain, α"),
        Case(Arm("plain"), alpha * d, "plain, α·d"),
        Case(Arm("reduced"), alpha, "A, λ = 0"),
    ]
    kinds: list[tuple[str, str, bool, str]] = [
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
    ]
    for form, estimator, projected, label in kinds:
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
    """Index of the λ = 0 case with the form, the step size and the projection of case ``c``.

    For the plain and the reduced form that is plain learning at α·d, which the reduced form with λ = 0 equals.
    """
    arm = listed[c].arm
    if arm.form != "full" and not arm.projected:
        return MATCHED
    return next(i for i, case in enumerate(listed) if case.arm == Arm(arm.form, projected=arm.projected))


def record_points(steps: int) -> Integers:
    """List the steps at which curves are recorded: 0, then about 12 per factor of 10, and the last.

    Examples
    --------
    >>> record_points(10).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
    """
    decades = math.log10(steps)
    points = np.rint(np.logspace(0, decades, int(12 * decades) + 2)).astype(np.int64)
    return np.unique(np.concatenate([[0], points, [steps]]))


def covariance(rho: float) -> Floats:
    """Σ with ones on the diagonal and ρ beside it."""
    return np.array([[1.0, rho], [rho, 1.0]])


def block(options: Regression, runs: range, stop: NDArray[np.bool_]) -> Arrays:
    """Every case on the same data, for the ``runs`` of one block: the runs of all cases and both ρ are paired.

    A run's data depend on the seed and on its own number alone.
    """
    d, listed, points = len(BEST), cases(options.alpha, options.lambdas, options.init), record_points(options.steps)
    z, second, A0 = (
        np.empty((options.steps, d, len(runs))),
        np.empty((options.steps, d, len(runs))),
        np.empty((d, d, len(runs))),
    )
    for b, run in enumerate(runs):
        rng = np.random.default_rng([options.seed, run])
        z[:, :, b], second[:, :, b] = rng.standard_normal((2, options.steps, d))
        A0[:, :, b] = initial_transform(options.init, d, rng)
    shape = (len(options.rhos), len(listed))
    errors, distances = (np.empty((*shape, len(points), len(runs))) for _ in range(2))
    areas, diverged = np.empty((*shape, len(runs))), np.empty((*shape, len(runs)), dtype=bool)
    room = np.empty((9, d, len(runs))), np.empty((d, d, len(runs))), np.empty((9, len(runs)))
    for r, rho in enumerate(options.rhos):
        L = np.linalg.cholesky(covariance(rho))
        x, x_second = (np.ascontiguousarray(np.einsum("ij,tjb->tib", L, part)) for part in (z, second))
        for c, case in enumerate(listed):
            if stop[0]:
                break
            regression_block(
                x,
                x_second,
                np.array(BEST),
                covariance(rho),
                FORMS[case.arm.form],
                ESTIMATORS[case.arm.estimator],
                case.arm.projected,
                A0.copy(),
                case.alpha,
                case.arm.lam,
                options.beta,
                points,
                errors[r, c],
                distances[r, c],
                areas[r, c],
                diverged[r, c],
                *room,
            )
    return {
        **_moments("errors", errors),
        **_moments("distances", distances),
        "plateau": errors[:, :, (points >= PLATEAU[0]) & (points <= PLATEAU[1])].mean(axis=2)
        if options.steps >= PLATEAU[1]
        else np.full(areas.shape, np.nan),
        "areas": areas,
        "final": errors[:, :, -1],
        "diverged": diverged,
    }


def _moments(name: str, values: Floats) -> Arrays:
    """Count, mean and sum of squared deviations over the runs of ``values`` [..., run] that have a number.

    They are enough to combine blocks, and are small.
    """
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=-1) / count  # NaN where no run has one
    squares = np.where(known, values - mean[..., None], 0.0) ** 2
    return {f"{name}_count": count, f"{name}_mean": mean, f"{name}_squares": squares.sum(axis=-1)}


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


def check_memory(options: Regression) -> None:
    """Raise `UserError` where the data of the runs that are computed at a time do not fit into memory.

    Every thread has a block of runs: two samples of two inputs a step, uncorrelated and correlated.
    """
    runs, real = min(options.runs, BLOCK_RUNS), np.dtype(np.float64).itemsize
    needed = check_threads(options.threads) * 4 * len(BEST) * options.steps * runs * real
    if needed > (free := available_host_bytes()):
        raise UserError(
            f"not enough memory for {options.steps:,} steps: {needed / 1e9:,.1f} GB are needed and "
            f"{free / 1e9:,.1f} GB are free; lower --steps, --runs or --threads"
        )


def compute(options: Regression) -> Results:
    """Run what is missing in the folder of ``options`` and gather everything."""
    check_memory(options)
    configuration = {key: value for key, value in asdict(options).items() if key not in ("out", "threads", "quick")}
    cells = Cells(options.out, {"command": "regression", **configuration})
    blocks = [range(start, min(start + BLOCK_RUNS, options.runs)) for start in range(0, options.runs, BLOCK_RUNS)]
    names = [f"runs-{runs.start:06d}" for runs in blocks]
    run_cells(
        cells,
        {name: partial(block, options, runs) for name, runs in zip(names, blocks, strict=True)},
        threads=check_threads(options.threads),
        description="regression",
        unit="block",
        prepare=lambda: block(replace(options, steps=1), range(1), np.zeros(1, dtype=bool)),
    )
    loaded = [cells.load(name) for name in names]
    joined = {
        name: np.concatenate([part[name] for part in loaded], axis=-1)
        for name in ("areas", "plateau", "final", "diverged")
    }
    return Results(
        options,
        cases(options.alpha, options.lambdas, options.init),
        record_points(options.steps),
        _combine(loaded, "errors"),
        _combine(loaded, "distances"),
        **joined,
    )


CASE_COLUMNS = ("rho", "arm", "form", "estimator", "projected", "lambda", "alpha")


def _case_fields(rho: float, case: Case) -> list[Value]:
    arm = case.arm
    return [rho, case.label, arm.form, arm.estimator, arm.projected, arm.lam, case.alpha]


def write_tables(results: Results) -> None:
    """Write ``regression.csv`` (curves) and ``regression_summary.csv`` (area, plateau and final error)."""
    curves: list[list[Value]] = []
    summary: list[list[Value]] = []
    for r, rho in enumerate(results.options.rhos):
        for c, case in enumerate(results.cases):
            fields = _case_fields(rho, case)
            counts: list[Value] = [results.options.runs, int(results.diverged[r, c].sum())]
            for p, step in enumerate(results.points):
                numbers = [*results.errors[:, r, c, p], *results.distances[:, r, c, p]]
                curves.append([*fields, int(step), *map(float, numbers), *counts])
            against = results.areas[r, c] - results.areas[r, control_of(results.cases, c)]
            numbers = [
                part
                for values in (results.areas[r, c], results.plateau[r, c], results.final[r, c], against)
                for part in mean_and_error(values)
            ]
            summary.append([*fields, *numbers, *counts])
    folder = results.options.out
    write_csv(
        folder / "regression.csv",
        (*CASE_COLUMNS, "step", "error_mean", "error_se", "distance_mean", "distance_se", "runs", "diverged"),
        curves,
    )
    measures = ("area", "plateau", "final", "area_minus_control")
    columns = [f"{measure}_{part}" for measure in measures for part in ("mean", "se")]
    write_csv(folder / "regression_summary.csv", (*CASE_COLUMNS, *columns, "runs", "diverged"), summary)


def report(results: Results) -> str:
    """Area under the curve, plateau, final error and distance from orthogonal as text, in tables of 80 columns."""
    header = [
        "arm",
        "λ",
        "area",
        "area − its λ = 0",
        f"steps {PLATEAU[0]}-{PLATEAU[1]}",
        "final",
        "distance",
    ]
    parts = [
        f"Excess error, mean ± standard error of {results.options.runs} runs; "
        f"α = {results.options.alpha:g}.\nDistance: ‖AᵀA − I‖/√d after the last step."
    ]
    for r, rho in enumerate(results.options.rhos):
        rows = [
            [
                case.label,
                f"{case.arm.lam:g}",
                plus_minus(*mean_and_error(results.areas[r, c])),
                plus_minus(*mean_and_error(results.areas[r, c] - results.areas[r, control_of(results.cases, c)])),
                plus_minus(*mean_and_error(results.plateau[r, c])),
                plus_minus(*mean_and_error(results.final[r, c])),
                "" if case.arm.form == "plain" else three_digits(results.distances[0, r, c, -1]),
            ]
            for c, case in enumerate(results.cases)
        ]
        diverged = [
            f"  {case.label}, λ = {case.arm.lam:g}: {int(results.diverged[r, c].sum())}"
            for c, case in enumerate(results.cases)
            if results.diverged[r, c].any()
        ]
        parts.append(f"ρ = {rho:g}\n" + text_table(header, rows, keys=2))
        if diverged:
            parts.append("\n".join(["Runs that diverged:", *diverged]))
    return "\n\n".join(parts)


def command(options: Regression) -> int:
    """Stochastic linear regression with and without decorrelated features, and the controls.

    Writes regression.csv, regression_summary.csv and two figures into --out, and prints the table. Interrupted, it goes
    on where it stopped when it is called again with the same options.
    """
    from gramian.linear.regression_figures import write_figures

    if options.quick:
        options = replace(options, runs=min(options.runs, QUICK_RUNS), steps=min(options.steps, QUICK_STEPS))
    results = compute(options)
    write_tables(results)
    write_figures(results)
    print(report(results))
    print(
        f"\nWritten to {options.out}:\nregression.csv, regression_summary.csv, regression.png, regression_controls.png"
    )
    return 0
