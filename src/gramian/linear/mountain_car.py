"""Linear Q-learning on Mountain Car: the paper's sweep of step size and λ, and the controls at matched step sizes."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramian.core.csv_tables import Record
from gramian.core.errors import UserError, require, require_least, unknown
from gramian.core.statistics import halves
from gramian.linear.car import ACTIONS, DIVERGED, HIGH, LOW, START_HIGH, START_LOW, VECTORS, q_learning_run
from gramian.linear.features import TileCoding, mean_absolute_correlation
from gramian.linear.kernels import Floats, Weights
from gramian.linear.learner import ESTIMATORS, Arm, check_alpha, check_lambdas, initial_transform
from gramian.linear.sweep import Arrays, Cells, SweepOptions, check_memory, run_cells

RESERVOIR = 4096
"""Visited (s, a) that the two-sample estimator draws from: enough to hold every kind of moment of an episode."""

EARLY = LATE = 10
"""Episodes at the beginning and at the end of a run that are also averaged apart."""

CELL_RUNS = 25
DISTANCE_RUNS = 5
"""Runs of each arm at its best step size whose last A is compared with an orthogonal one: that costs O(d³)."""

QUICK = {"runs": 5, "episodes": 20, "most_steps": 1000}


Copies = int | Literal["one", "all"]


@dataclass(frozen=True)
class MountainCar(SweepOptions):
    """Q-learning on Mountain Car with tile-coded features, with and without decorrelation, and the controls.

    Writes mountain_car.csv, mountain_car_runs.csv, mountain_car_summary.csv, mountain_car_contrasts.csv,
    mountain_car_features.csv, mountain_car_distances.csv and three figures into --out, and prints the summary.
    Interrupted, it goes on where it stopped when it is called again with the same options.
    """

    out: Path = Path("mountain-car")
    """Folder for the tables, the figures and the finished cells."""
    runs: int = 100
    """Independent runs of a cell."""
    episodes: int = 50
    """Episodes of a run."""
    most_steps: int = 5000
    """Longest episode; a diverged run counts as this from there on."""
    step_sizes: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5)
    """Step sizes as α·k·d, the same learning rate of the value function in every arm."""
    lambdas: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    """Coefficients λ of the paper's arm; λ = 0 is always run."""
    control_lambdas: tuple[float, ...] = (1e-2, 1e-1, 1.0)
    """Coefficients λ of the other estimators and of shrinkage."""
    full_lambdas: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)
    """Coefficients λ of the full form (θ, A)."""
    estimators: tuple[str, ...] = ("single", "two-sample", "norm", "two-sample-norm", "running")
    """Estimators of the decorrelating term; running costs O(d²) a step and is a costly arm."""
    costly: bool = True
    """Run the arms of O(d²) a step (projected, running), at the best step size and λ of the paper's arm alone."""
    costly_runs: int = 20
    """Runs of each costly arm."""
    tilings: int = 2
    """Tilings of the tile coding."""
    tiles: int = 8
    """Tiles per dimension of a tiling."""
    copies: tuple[Copies, ...] = (0, 1)
    """Feature sets: copies of every feature (all is 1), or one: a copy of one feature, the paper's example."""
    gamma: float = 1.0
    """Discount γ."""
    epsilon: float = 0.0
    """Share of random actions."""
    quick: bool = False
    """A smaller version: at most 5 runs of 20 episodes of 1,000 steps, fewer step sizes and λ, no costly arms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least(self, 1, "episodes", "most_steps", "costly_runs")
        object.__setattr__(self, "copies", tuple(1 if copies == "all" else copies for copies in self.copies))
        self.check_different("step_sizes", "copies", "estimators")
        for name in ("gamma", "epsilon"):
            require(0 <= getattr(self, name) <= 1, name, getattr(self, name), "in [0, 1]")
        for size in self.step_sizes:
            check_alpha(size, "a step size")
        for estimator in self.estimators:
            if estimator not in ESTIMATORS or estimator == "none":
                raise unknown("estimator", estimator, [name for name in ESTIMATORS if name != "none"])
        if self.costly and "single" not in self.estimators:
            raise UserError(
                f"estimators are {', '.join(self.estimators)}; the arms of O(d²) run at the best setting of 'single': "
                "add it, or give --no-costly"
            )
        for lambdas in (self.lambdas, self.control_lambdas, self.full_lambdas):
            check_lambdas(lambdas)
        for copies in self.copies:
            self.coding(copies)
        self.sort("step_sizes", "lambdas", "control_lambdas", "full_lambdas")

    def coding(self, copies: Copies) -> TileCoding:
        """Tile coding with so many copies; ``one`` copies pushing right at the bottom of the valley, first tiling."""
        if copies != "one":
            return TileCoding(LOW, HIGH, self.tilings, self.tiles, ACTIONS, int(copies))
        coding = TileCoding(LOW, HIGH, self.tilings, self.tiles, ACTIONS)
        return replace(coding, copies=1, copied=int(coding.active((-0.5, 0.0), action=2)[0]))

    def quickened(self) -> "MountainCar":
        """Return these options, or their smaller version where ``quick`` is set."""
        if not self.quick:
            return self
        return replace(
            self,
            **{name: min(getattr(self, name), most) for name, most in QUICK.items()},
            step_sizes=self.step_sizes[1::3] or self.step_sizes,
            lambdas=self.lambdas[1::2] or self.lambdas,
            control_lambdas=self.control_lambdas[1:2] or self.control_lambdas,
            full_lambdas=self.full_lambdas[:1],
            costly=False,
        )


@dataclass(frozen=True)
class Case:
    """An arm at a step size x = α·k·d, on the features with so many copies."""

    copies: Copies
    arm: Arm
    x: float
    same_alpha: bool = False
    """Whether this is plain learning at the α of A itself, the paper's own pairing: its x is that of A divided by d."""

    @property
    def name(self) -> str:
        """Of the cells' files: as exact as the numbers are, so that no two cases share one."""
        return f"copies-{self.copies}_{self.arm.name.replace(' ', '-')}_lambda-{self.arm.lam!r}_x-{self.x!r}"


def swept_arms(options: MountainCar) -> list[Arm]:
    """List the arms that are run at every step size."""
    arms = [Arm("plain"), Arm("reduced"), Arm("full")]
    if "single" in options.estimators:
        arms += [Arm("reduced", "single", lam) for lam in options.lambdas]
        arms += [Arm("plain", "single", lam) for lam in options.control_lambdas]
        arms += [Arm("full", "single", lam) for lam in options.full_lambdas]
    for estimator in ("two-sample", "norm", "two-sample-norm"):
        if estimator in options.estimators:
            arms += [Arm("reduced", estimator, lam) for lam in options.control_lambdas]
    return arms


def swept_cases(options: MountainCar) -> list[Case]:
    """List the cases of the sweep, and the plain form in the paper's own pairing."""
    cases = [Case(c, arm, x) for c in options.copies for arm in swept_arms(options) for x in options.step_sizes]
    return cases + [same_alpha_case(options, c, x) for c in options.copies for x in options.step_sizes]


def same_alpha_case(options: MountainCar, copies: Copies, x: float) -> Case:
    """Return plain learning with the very α that A has at x = α·k·d; without the factor d, so at x/d."""
    return Case(copies, Arm("plain"), x / options.coding(copies).d, same_alpha=True)


def costly_cases(options: MountainCar, best: dict[Copies, tuple[float, float]]) -> list[Case]:
    """List the O(d²) arms at the step size and λ that ``best`` names for each feature set."""
    arms: list[tuple[str, str, bool]] = [("reduced", "running", False)]
    if options.init != "zero":
        arms += [("reduced", "none", True), ("reduced", "single", True)]
        arms += [("full", "none", True), ("full", "single", True)]
    return [
        Case(copies, Arm(form, estimator, 0.0 if estimator == "none" else lam, projected), x)
        for copies, (x, lam) in best.items()
        for form, estimator, projected in arms
        if estimator in (*options.estimators, "none")
    ]


def initial_weights(options: MountainCar, case: Case, run: int) -> tuple[Weights, Floats]:
    """What a run starts from, and the members of its classes of exchangeable features, which a projected run has."""
    coding, arm = options.coding(case.copies), case.arm
    d = coding.d
    if arm.projected and options.init == "identity":  # one class of d features, and space for each to have its own
        n = coding.per_action * ACTIONS + 1
        members = np.concatenate([[float(d)], np.zeros(n - 1)])
        A, w, theta = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        A[0, 0], w[0], theta[0] = 1.0, math.sqrt(d), math.sqrt(d)
    else:
        n, members, theta = d, np.zeros(0), np.ones(d)
        A = initial_transform(options.init, d, np.random.default_rng([options.seed, run, 2]))
        w = A.sum(axis=1)
    S = np.zeros((n, n) if arm.estimator == "running" else (0, 0))
    return Weights(A, w, theta, S), members


def simulate(
    options: MountainCar,
    case: Case,
    run: int,
    stop: NDArray[np.bool_],
    trace: Floats,
    initial: tuple[Weights, Floats] | None = None,
) -> tuple[NDArray[np.int64], bool]:
    """One run: the lengths of its episodes, and whether it diverged. The weights of ``initial`` are changed in place.

    Starts and random choices depend on the seed and the run's number alone, so that runs of different arms are paired.
    """
    coding, arm = options.coding(case.copies), case.arm
    weights, members = initial or initial_weights(options, case, run)
    lengths = np.empty(options.episodes, dtype=np.int64)
    end = q_learning_run(
        coding.arrays,
        arm.rule(arm.alpha(case.x / (coding.k * coding.d), coding.d), options.beta),
        weights,
        members,
        np.random.default_rng([options.seed, run, 0]).uniform(START_LOW, START_HIGH, options.episodes),
        options.most_steps,
        options.gamma,
        options.epsilon,
        np.zeros((RESERVOIR if arm.two_samples else 1, coding.k + 1), dtype=np.int64),
        np.zeros((VECTORS, 0 if arm.form == "plain" else weights.w.size)),
        np.random.default_rng([options.seed, run, 1]),
        lengths,
        trace,
        stop,
    )
    return lengths, end == DIVERGED


def _distances(options: MountainCar, case: Case, stop: NDArray[np.bool_]) -> Arrays:
    """‖AᵀA − I‖_F/√d after each of the first `DISTANCE_RUNS` runs of an unprojected case; NaN where it diverged."""
    found = []
    for run in range(min(DISTANCE_RUNS, options.runs)):
        weights, members = initial_weights(options, case, run)
        _, diverged = simulate(options, case, run, stop, np.zeros((0, 3)), (weights, members))
        A = weights.A
        distance = np.linalg.norm(A.T @ A - np.eye(len(A))) / math.sqrt(len(A))
        found.append(np.nan if diverged else float(distance))
    return {"distances": np.array(found)}


def _cell(options: MountainCar, case: Case, runs: range, stop: NDArray[np.bool_]) -> Arrays:
    outcomes = [simulate(options, case, run, stop, np.zeros((0, 3))) for run in runs]
    return {
        "lengths": np.stack([lengths for lengths, _ in outcomes]),
        "diverged": np.array([diverged for _, diverged in outcomes]),
    }


@dataclass(frozen=True)
class Outcome:
    """What the runs of a case gave."""

    case: Case
    lengths: NDArray[np.int64]
    """Steps of every episode [run, episode]."""
    diverged: NDArray[np.bool_]
    """[run]"""

    @property
    def steps(self) -> Floats:
        """Mean steps per episode of each run [run]."""
        mean: Floats = self.lengths.mean(axis=1)
        return mean

    @property
    def late(self) -> Floats:
        """The same of the last episodes alone [run]."""
        mean: Floats = self.lengths[:, -LATE:].mean(axis=1)
        return mean


def _run(
    options: MountainCar, cells: Cells, cases: Iterable[Case], runs: int, cell_runs: int, description: str
) -> list[Outcome]:
    parts = [range(start, min(start + cell_runs, runs)) for start in range(0, runs, cell_runs)]
    names = {case: [f"{case.name}_runs-{part.start:04d}-{part.stop - 1:04d}" for part in parts] for case in cases}
    jobs = {
        name: partial(_cell, options, case, part)
        for case, case_names in names.items()
        for name, part in zip(case_names, parts, strict=True)
    }
    first = replace(options, episodes=1, most_steps=1)
    run_cells(
        cells,
        jobs,
        threads=options.threads_used,
        description=description,
        prepare=lambda: simulate(first, next(iter(names)), 0, np.zeros(1, dtype=bool), np.zeros((0, 3))),
    )
    outcomes = []
    for case, case_names in names.items():
        loaded = [cells.load(name) for name in case_names]
        lengths, diverged = (np.concatenate([part[key] for part in loaded]) for key in ("lengths", "diverged"))
        outcomes.append(Outcome(case, lengths, diverged))
    return outcomes


GRID, VISITED = 60, 20_000
"""States per dimension of the uniform grid, and the most visits that are looked at, evenly over the run."""


def feature_set(options: MountainCar, copies: Copies, x: float) -> Record:
    """Size of a feature set, and its mean |correlation| over all states and those that plain learning visits at x."""
    coding = options.coding(copies)
    axes = [np.linspace(low, high, GRID) for low, high in zip(LOW, HIGH, strict=True)]
    states = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    uniform = coding.matrix(np.tile(states, (ACTIONS, 1)), np.repeat(np.arange(ACTIONS), len(states)))
    trace = np.full((options.episodes * options.most_steps, 3), np.nan)
    simulate(options, Case(copies, Arm("plain"), x), 0, np.zeros(1, dtype=bool), trace)
    trace = trace[~np.isnan(trace[:, 0])]
    trace = trace[:: -(-len(trace) // VISITED)]
    visited = coding.matrix(trace[:, :2], trace[:, 2].astype(np.int64))
    found: Record = {"copies": copies, "d": coding.d, "k": coding.k}
    for name, phi in (("uniform", uniform), ("visited", visited)):
        found[f"mean_abs_correlation_{name}"] = mean_absolute_correlation(phi)
    return found


@dataclass(frozen=True)
class Results:
    """Everything that the tables and figures are made of."""

    options: MountainCar
    swept: list[Outcome]
    costly: list[Outcome]
    features: list[Record]
    distances: dict[Case, Floats]
    """‖AᵀA − I‖_F/√d after the run, of each unprojected arm at its best step size [run]."""

    def outcomes(self, copies: Copies, arm: Arm, *, same_alpha: bool = False) -> list[Outcome]:
        """What the arm gave at each of the step sizes, or plain learning at the α of A there."""
        found = {o.case: o for o in self.swept}
        sizes = self.options.step_sizes
        if same_alpha:
            return [found[same_alpha_case(self.options, copies, x)] for x in sizes]
        return [found[Case(copies, arm, x)] for x in sizes]

    def curve(self, copies: Copies, arm: Arm) -> Floats:
        """Mean steps of each run at each of the step sizes [step size, run]."""
        return np.stack([o.steps for o in self.outcomes(copies, arm)])

    def arms(self, copies: Copies) -> list[Arm]:
        """Arms of the sweep on this feature set, in the order of the tables."""
        return list(dict.fromkeys(o.case.arm for o in self.swept if o.case.copies == copies))


def best_of_paper_arm(options: MountainCar, swept: list[Outcome]) -> dict[Copies, tuple[float, float]]:
    """For each feature set the x and λ that are best for the paper's arm in its runs that costly arms do not have."""
    found = {}
    for copies in options.copies:
        mine = [o for o in swept if o.case.copies == copies and o.case.arm.name == "reduced single"]
        if mine:
            best = min(mine, key=lambda outcome: float(halves(outcome.steps)[1].mean()))
            found[copies] = (best.case.x, best.case.arm.lam)
    return found


def needed_bytes(options: MountainCar, copies: Copies) -> int:
    """Most memory of a feature set: A [d, d] of every thread, twice if running, or correlations of visited states."""
    d, real = options.coding(copies).d, np.dtype(np.float64).itemsize
    matrices = 2 if options.costly and "running" in options.estimators else 1
    runs = options.threads_used * matrices * d**2
    correlations = 2 * d**2 + 2 * max(VISITED, ACTIONS * GRID**2) * d + 3 * options.episodes * options.most_steps
    return real * max(runs, correlations)


def compute(options: MountainCar) -> Results:
    """Run what is missing in the folder of ``options`` and gather everything."""
    copies = max(options.copies, key=partial(needed_bytes, options))
    what = f"d = {options.coding(copies).d:,} features"
    check_memory(needed_bytes(options, copies), what, "--tiles, --tilings, --copies or --threads")
    left_out = ["out", "threads", "quick", "costly"]
    left_out += [name for name, default in (("gamma", 1.0), ("epsilon", 0.0)) if getattr(options, name) == default]
    configuration = {key: value for key, value in asdict(options).items() if key not in left_out}
    cells = Cells(options.out, {"command": "mountain-car", **configuration})
    swept = _run(options, cells, swept_cases(options), options.runs, CELL_RUNS, "mountain-car")
    costly: list[Outcome] = []
    if options.costly:
        cases = costly_cases(options, best_of_paper_arm(options, swept))
        costly = _run(options, cells, cases, options.costly_runs, 1, "mountain-car, O(d²) arms")
    features = []
    for copies in options.copies:
        plain = [o for o in swept if o.case.copies == copies and o.case.arm == Arm("plain")]
        x = min(plain, key=lambda outcome: float(outcome.steps.mean())).case.x
        features.append(feature_set(options, copies, x))
    results = Results(options, swept, costly, features, {})
    best = [
        min(results.outcomes(copies, arm), key=lambda outcome: float(outcome.steps.mean())).case
        for copies in options.copies
        for arm in results.arms(copies)
        if arm.form != "plain"
    ]
    names = {case: f"distances_{case.name}" for case in best}
    jobs = {name: partial(_distances, options, case) for case, name in names.items()}
    threads = options.threads_used
    run_cells(cells, jobs, threads=threads, description="mountain-car, distance of A from orthogonal")
    results.distances.update({case: cells.load(name)["distances"] for case, name in names.items()})
    return results
