"""Learning curves of regression and TD(0): every arm and its control on the same samples, in blocks of runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gramian.core.csv_tables import Record, write_records
from gramian.core.errors import require_least
from gramian.core.statistics import mean_and_error
from gramian.core.text import plus_minus, text_table
from gramian.linear.batch import Curves, Samples, learn_runs
from gramian.linear.kernels import Floats, Integers
from gramian.linear.learner import Arm, check_alpha, check_lambdas
from gramian.linear.sweep import Arrays, SweepOptions, check_memory, run_blocks

MATCHED = 1
"""Index in `cases` of plain learning at α·d, the control whose step size matches the reduced form's."""

PLATEAU = (500, 3000)
"""Steps of the first phase; later the single-sample term lets A slide into a degenerate minimum."""

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
class CurveOptions(SweepOptions):
    """Options of regression and TD(0)."""

    steps: int = 20_000
    """Steps of a run."""
    alpha: float = 0.01
    """Step size of the transform A."""
    lambdas: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    """Coefficients λ of the decorrelating term; λ = 0 is always run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least(self, 1, "steps")
        check_alpha(self.alpha)
        check_lambdas(self.lambdas)
        self.sort("lambdas")

    def at_most(self, runs: int, steps: int) -> Self:
        """The same options with no more runs and steps."""
        return replace(self, runs=min(self.runs, runs), steps=min(self.steps, steps))


@dataclass(frozen=True)
class Case:
    """An arm with its step size."""

    arm: Arm
    alpha: float
    """Step size in the arm's own update."""
    label: str


def cases(alpha: float, lambdas: tuple[float, ...], init: str, d: int) -> list[Case]:
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


def control_of(listed: Sequence[Case], c: int) -> int:
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


class Task(NamedTuple):
    """What the runs of a block learn from, see `gramian.linear.batch.learn_runs`."""

    samples: Samples
    C: Floats
    solution: Floats
    A: Floats


@dataclass(frozen=True)
class Experiment:
    """Regression or TD(0): what it is called, and how its runs are made."""

    command: str
    options: CurveOptions
    d: int
    """Number of features."""
    groups: Sequence[Record]
    """Columns that name each group of tables: correlations of the inputs, say."""
    tasks: Callable[[range], Sequence[Task]]
    """The task of each group for these runs; data depend on the seed and the run's number alone."""
    block_runs: int
    relative: bool
    """Whether errors are given over that at the start."""

    @property
    def cases(self) -> list[Case]:
        """Every arm with its controls."""
        return cases(self.options.alpha, self.options.lambdas, self.options.init, self.d)


def _block(experiment: Experiment, runs: range, stop: NDArray[np.bool_]) -> Arrays:
    """Every case of every group on the same data [group, case, ..., run]."""
    options, points = experiment.options, record_points(experiment.options.steps)
    rules = [case.arm.rule(case.alpha, options.beta) for case in experiment.cases]
    found = [learn_runs(rules, *task, points, stop) for task in experiment.tasks(runs)]
    return {name: np.stack([getattr(one, name) for one in found]) for name in Curves._fields}


@dataclass(frozen=True)
class Results:
    """What all runs gave."""

    experiment: Experiment
    cases: list[Case]
    points: Integers
    """Steps at which curves are recorded."""
    errors: Floats
    """Error at these points [group, case, point, run]."""
    distances: Floats
    """‖AᵀA − I‖_F/√d there; NaN once a run has diverged."""
    areas: Floats
    """Mean error over all steps [group, case, run]."""
    diverged: NDArray[np.bool_]
    """Runs that reached the cap [group, case, run]."""

    def measures(self, g: int, c: int) -> dict[str, Floats]:
        """Area, mean error on the plateau, final error, and area minus that of the control, of each run."""
        plateau = (self.points >= PLATEAU[0]) & (self.points <= PLATEAU[1])
        errors, known = self.errors[g, c], self.points[-1] >= PLATEAU[1]
        return {
            "area": self.areas[g, c],
            "plateau": errors[plateau].mean(axis=0) if known else np.full(errors.shape[1], np.nan),
            "final": errors[-1],
            "area_minus_control": self.areas[g, c] - self.areas[g, control_of(self.cases, c)],
        }


def compute(experiment: Experiment) -> Results:
    """Run what is missing in the folder of the options and gather everything."""
    options, listed = experiment.options, experiment.cases
    # a thread holds the samples of a block: two states, the next one, the reward; all hold the curves of all runs
    sampled = options.threads_used * 4 * experiment.d * options.steps * min(options.runs, experiment.block_runs)
    recorded = 2 * len(experiment.groups) * len(listed) * 12 * math.log10(10 * options.steps) * options.runs
    needed = (sampled + recorded) * np.dtype(np.float64).itemsize
    check_memory(needed, f"{options.steps:,} steps", "--steps, --runs or --threads")
    loaded = run_blocks(options, experiment.command, experiment.block_runs, partial(_block, experiment))
    found = Curves(*(np.concatenate([part[name] for part in loaded], axis=-1) for name in Curves._fields))
    if experiment.relative:
        first = found.errors[:, :, 0]
        found = found._replace(errors=found.errors / first[:, :, None], areas=found.areas / first)
    return Results(experiment, listed, record_points(options.steps), *found)


def _mean(name: str, values: Floats) -> Record:
    """Columns with mean and standard error over the runs."""
    mean, error = mean_and_error(values)
    return {f"{name}_mean": mean, f"{name}_se": error}


def write_tables(results: Results) -> list[Record]:
    """Write ``COMMAND.csv`` (curves) and ``COMMAND_summary.csv``; return the rows of the latter."""
    curves, summary = [], []
    for g, group in enumerate(results.experiment.groups):
        for c, case in enumerate(results.cases):
            arm, diverged = case.arm, results.diverged[g, c]
            fields: Record = {
                **group, "arm": case.label, "form": arm.form, "estimator": arm.estimator, "projected": arm.projected,
                "lambda": arm.lam, "alpha": case.alpha,
            }  # fmt: skip
            counts: Record = {"runs": len(diverged), "diverged": int(diverged.sum())}
            for point, errors, distances in zip(
                results.points, results.errors[g, c], results.distances[g, c], strict=True
            ):
                means = _mean("error", errors) | _mean("distance", distances)
                curves.append({**fields, "step": int(point), **means, **counts})
            means = {}
            for name, values in results.measures(g, c).items():
                means |= _mean(name, values)
            end = _mean("distance", results.distances[g, c, -1])
            summary.append({**fields, **means, **end, **counts})
    folder, command = results.experiment.options.out, results.experiment.command
    write_records(folder / f"{command}.csv", curves)
    write_records(folder / f"{command}_summary.csv", summary)
    return summary


def report(results: Results, summary: Sequence[Record], said: str) -> str:
    """The summary as text, in tables of 80 columns."""
    header = ["arm", "λ", "area", "area − its λ = 0", f"steps {PLATEAU[0]}-{PLATEAU[1]}", "final", "distance"]
    parts = [said]
    for group in results.experiment.groups:
        rows, diverged = [], []
        for row in (row for row in summary if group.items() <= row.items()):
            name = [str(row["arm"]), f"{row['lambda']:g}"]
            names = ("area", "area_minus_control", "plateau", "final", "distance")
            rows.append([*name, *(shown(row, measure) for measure in names)])
            if row["diverged"]:
                diverged.append(f"  {name[0]}, λ = {name[1]}: {row['diverged']}")
        parts.append(
            ", ".join(f"{key} = {value}" for key, value in group.items()) + "\n" + text_table(header, rows, keys=2)
        )
        if diverged:
            parts.append("\n".join(["Runs that diverged:", *diverged]))
    return "\n\n".join(parts)


def shown(row: Record, name: str) -> str:
    """Mean and standard error of a row; nothing where it has none."""
    mean, error = (row[f"{name}_{part}"] for part in ("mean", "se"))
    assert isinstance(mean, float)
    assert isinstance(error, float)
    return plus_minus(mean, error)
