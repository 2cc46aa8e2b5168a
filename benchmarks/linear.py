"""Speed of the linear half: cost of a step over d, within a run, and against dense NumPy.

    python -m benchmarks.linear [--out docs/tables/linear-cpu.md]

It takes about a minute. Every time of a step is the best of several passes. The
passes of the widths d take turns, so that the noise of the machine does not bend the growth with d.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numba
import numpy as np

from benchmarks.command_line import Parser, exit_code, new_file, table
from gramian.core.compiled import kernel
from gramian.core.files import replace_text
from gramian.linear.car import ACTIONS
from gramian.linear.kernels import FULL, NONE, TWO_SAMPLE, Floats, Integers, Rule, Weights, learn, transform
from gramian.linear.learner import Arm
from gramian.linear.mountain_car import Case, MountainCar, simulate

WIDTHS = (256, 512, 1024, 2048, 4096, 8192)
ACTIVE = 4
ROUNDS = 9
PATTERNS = {"trajectory": "features of a run", "random": "new random features each step"}
COMPARED = 2048
"""Width at which a step stands beside dense NumPy."""
STEEPEST, LEAST_RATIO = 1.15, 100
"""Bounds: the exponent of the growth with d, and how many times as long dense NumPy takes."""

ARMS = {
    "A, λ = 0": Arm("reduced"),
    "A, single-sample": Arm("reduced", "single", 0.01),
    "A, norm alone": Arm("reduced", "norm", 0.01),
    "A, two-sample": Arm("reduced", "two-sample", 0.01),
    "(θ, A), single-sample": Arm("full", "single", 0.01),
}
COSTLY = {
    "A, running": Arm("reduced", "running", 0.01),
    "A projected, single-sample": Arm("reduced", "single", 0.01, projected=True),
}


@kernel
def _steps(rule: Rule, weights: Weights, indices: Integers, others: Integers) -> None:
    """Take as many steps as ``indices`` [steps, k] has rows, with everything that a step of Q-learning needs of A."""
    d = weights.w.size
    ones, y, other, no_classes = np.ones(indices.shape[1]), np.zeros(d), np.zeros(d), np.zeros(0)
    workspace = np.zeros((4, d))
    for n in range(indices.shape[0]):
        if rule.estimator != NONE or rule.form == FULL or rule.projected:
            transform(weights.A, indices[n], ones, y)
        if rule.estimator == TWO_SAMPLE:
            transform(weights.A, others[n], ones, other)
        learn(rule, weights, indices[n], ones, y, other, 1e-9, no_classes, workspace)


def active_features(d: int, steps: int, pattern: str) -> Integers:
    """Active features [steps, k] of A with d rows.

    ``trajectory``: those of a real run of plain Q-learning on Mountain Car, 2 tilings and one copy, with as many tiles
    as fit into d; rows are used again and again, as they are there. ``random``: new random rows in every step, which
    come from memory where A is larger than the caches; the worst case.
    """
    if pattern == "random":
        return np.random.default_rng(0).integers(d, size=(steps, ACTIVE))
    stored = int(np.sqrt(d / (ACTIVE * ACTIONS)))
    options = MountainCar(tilings=2, tiles=stored - 1, copies=(1,), most_steps=1000)
    trace = np.full((options.episodes * options.most_steps, 3), np.nan)
    simulate(options, Case(1, Arm("plain"), 0.5), 0, np.zeros(1, dtype=bool), trace)
    trace = trace[~np.isnan(trace[:, 0])]
    trace = trace[np.arange(steps) % len(trace)]
    coding = options.coding(1)
    return np.array([coding.active((position, velocity), int(action)) for position, velocity, action in trace])


def steps_of(arm: Arm, d: int, indices: Integers) -> Callable[[], None]:
    """Return what takes one compiled step per row of ``indices`` [steps, k], compiled and with its memory touched."""
    A, w, theta = np.eye(d), np.ones(d), np.ones(d)
    S = np.zeros((d, d)) if arm.estimator == "running" else np.zeros((0, 0))
    others = np.random.default_rng(1).permutation(indices)  # what a reservoir of visited features gives

    def work() -> None:
        _steps(arm.rule(1e-9), Weights(A, w, theta, S), indices, others)

    work()
    return work


def step_seconds(arm: Arm, indices: dict[int, Integers], rounds: int = ROUNDS) -> Floats:
    """Seconds of one compiled step [rounds, widths]: in every round one pass over ``indices`` of each width."""
    works = {d: steps_of(arm, d, rows) for d, rows in indices.items()}
    return np.array([[best_seconds(works[d], 1) / len(indices[d]) for d in works] for _ in range(rounds)])


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of ``repeats`` calls: the others shared the machine with something."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def dense_step_seconds(d: int, repeats: int = 3) -> float:
    """Seconds of the single-sample step of the reduced form as the equations say it, with dense NumPy matrices."""
    A, phi = np.eye(d), np.zeros(d)
    phi[:: d // ACTIVE] = 1.0

    def step() -> Floats:
        moment = A.T @ np.outer(phi, phi) @ A
        term = np.outer(phi, phi) @ A @ (moment - np.diag(np.diag(moment)))
        result: Floats = A + 1e-9 * (np.outer(phi, np.ones(d)) - 0.01 * term)
        return result

    return best_seconds(step, repeats)


def growth(costs: Floats) -> float:
    """Exponent p of cost ∝ d^p, by least squares on the logarithms."""
    return float(np.polyfit(np.log(WIDTHS), np.log(costs), 1)[0])


def step_table(costs: dict[tuple[str, str], Floats]) -> str:
    """µs per step of every arm over d, with the exponent of its growth."""
    rows = [
        [f"{name}; {PATTERNS[pattern]}", *(f"{1e6 * c:.2f}" for c in cost), f"{growth(cost):.2f}"]
        for (name, pattern), cost in costs.items()
    ]
    return table([f"µs per step, k = {ACTIVE}", *(f"d = {d:,}" for d in WIDTHS), "exponent"], rows)


def costly_table() -> str:
    """µs per step of the arms of O(d²), with all d features apart."""
    rows = []
    for name, arm in COSTLY.items():
        cost = step_seconds(arm, {d: active_features(d, 20, "random") for d in WIDTHS[:4]}, rounds=3).min(axis=0)
        rows.append([name, *(f"{1e6 * c:.0f}" for c in cost)])
    return table([f"µs per step of O(d²), k = {ACTIVE}", *(f"d = {d:,}" for d in WIDTHS[:4])], rows)


def run_seconds(arm: Arm, repeats: int = 5) -> float:
    """Seconds of one step within a run on Mountain Car, d = 486 and k = 2: the car and the tile coding included."""
    options = MountainCar(episodes=4)
    stop, trace = np.zeros(1, dtype=bool), np.zeros((0, 3))
    case = Case(0, arm, 0.5)
    steps = simulate(options, case, 0, stop, trace)[0].sum()
    return best_seconds(lambda: simulate(options, case, 0, stop, trace), repeats) / float(steps)


def run_table() -> str:
    """µs of a step within a run on Mountain Car."""
    rows = [[name, f"{1e6 * run_seconds(arm):.2f}"] for name, arm in {"plain, α·d": Arm("plain"), **ARMS}.items()]
    return table(["µs a step of a run on Mountain Car, d = 486, k = 2", "µs"], rows)


def sections() -> Iterator[str]:
    """Yield the parts of the page as they are measured; the last one has the bounds."""
    busy = os.getloadavg()[0]
    yield (
        f"numba {numba.__version__}, NumPy {np.__version__}, {platform.machine()}, {os.cpu_count()} cores; "
        f"{busy:.1f} other processes at work on them at the start.\n"
    )
    costs: dict[tuple[str, str], Floats] = {}
    bounds = []
    for pattern, words in PATTERNS.items():
        indices = {d: active_features(d, max(2000, 4_000_000 // d), pattern) for d in WIDTHS}
        rounds = {name: step_seconds(arm, indices) for name, arm in ARMS.items()}
        costs |= {(name, pattern): found.min(axis=0) for name, found in rounds.items()}
        single = [growth(cost) for cost in rounds["A, single-sample"]]
        exponent = growth(costs["A, single-sample", pattern])
        spread = f"d^{exponent:.2f} (single rounds: {min(single):.2f} to {max(single):.2f})"
        name = f"growth of the single-sample step with d; {words}"
        bounds.append([name, spread, f"at most d^{STEEPEST}", verdict(exponent <= STEEPEST)])
    yield step_table(costs)
    single_sample, zero = costs["A, single-sample", "trajectory"], costs["A, λ = 0", "trajectory"]
    ratios = ", ".join(f"{r:.2f} at d = {d:,}" for r, d in zip(single_sample / zero, WIDTHS, strict=True))
    yield f"A single-sample step against one with λ = 0, features of a run: {ratios}.\n"
    yield costly_table()
    yield run_table()
    d = COMPARED
    fast, dense = single_sample[WIDTHS.index(d)], dense_step_seconds(d)
    rows = [
        ["compiled, O(kd)", f"{1e6 * fast:,.2f}", "1"],
        ["dense NumPy, as the equations say it", f"{1e6 * dense:,.0f}", f"{dense / fast:,.0f}"],
    ]
    yield table([f"single-sample step at d = {d:,}, k = {ACTIVE}", "µs", "times as long"], rows)
    enough = verdict(dense / fast >= LEAST_RATIO)
    bounds.append(["dense NumPy against the compiled step", f"{dense / fast:,.0f}", f"at least {LEAST_RATIO}", enough])
    yield table(["bound", "measured", "wanted", "met"], bounds)


def verdict(met: bool) -> str:
    """Yes or no."""
    return "yes" if met else "no"


def measured(arguments: Sequence[str] | None) -> None:
    """Print the tables, and write them where a file is named."""
    parser = Parser("linear", __doc__)
    parser.add_argument("--out", type=new_file, help="file to write the tables to, as Markdown")
    options = parser.parse_args(arguments)
    texts = []
    for text in sections():
        print(text, flush=True)
        texts.append(text)
    if options.out is not None:
        replace_text(options.out, "\n".join(texts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("linear", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
