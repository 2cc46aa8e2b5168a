"""Speed of the linear half: cost of a step over d, against dense NumPy, and of the two figures.

Run: python benchmarks/linear.py [--figures] [--threads 2]. Without --figures it takes about a minute.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from gramian.linear.arms import ESTIMATORS, FORMS, Arm
from gramian.linear.car import ACTIONS
from gramian.linear.compiled import kernel
from gramian.linear.kernels import Floats, Integers, learn, transform
from gramian.linear.mountain_car import Case, MountainCar, simulate

WIDTHS = (256, 512, 1024, 2048, 4096, 8192)
ACTIVE = 4
PATTERNS = {"trajectory": "features of a run on Mountain Car", "random": "new random features each step"}
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
def _steps(
    form: int,
    estimator: int,
    projected: bool,
    A: Floats,
    w: Floats,
    theta: Floats,
    S: Floats,
    indices: Integers,
    others: Integers,
    lam: float,
) -> None:
    """Take as many steps as ``indices`` [steps, k] has rows, with everything that a step of Q-learning needs of A."""
    ones, y, other, alone = np.ones(indices.shape[1]), np.zeros(w.size), np.zeros(w.size), np.zeros(0)
    room = np.zeros((4, w.size))
    for n in range(indices.shape[0]):
        if estimator != 0 or form == 2 or projected:
            transform(A, indices[n], ones, y)
        if estimator == 2:
            transform(A, others[n], ones, other)
        learn(
            form, estimator, projected, A, w, theta, S, indices[n], ones, y, other, 1e-9, 1e-9, lam, 0.01, alone, room
        )


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


def step_seconds(arm: Arm, d: int, indices: Integers, repeats: int = 7) -> float:
    """Seconds of one compiled step: the best of several passes over ``indices`` [steps, k]."""
    A, w, theta = np.eye(d), np.ones(d), np.ones(d)
    S = np.zeros((d, d)) if arm.estimator == "running" else np.zeros((0, 0))
    others = np.random.default_rng(1).permutation(indices)  # what a reservoir of visited features gives
    arguments = (FORMS[arm.form], ESTIMATORS[arm.estimator], arm.projected, A, w, theta, S)
    _steps(*arguments, indices[:1], others[:1], arm.lam)
    return best_seconds(lambda: _steps(*arguments, indices, others, arm.lam), repeats) / len(indices)


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


def vector_step_seconds(d: int, repeats: int = 5) -> float:
    """Seconds of the same step in the best NumPy order, O(d²): y = Aᵀφ first, then one dense outer product."""
    A, phi = np.eye(d), np.zeros(d)
    phi[:: d // ACTIVE] = 1.0

    def step() -> None:
        y = phi @ A
        A.__iadd__(np.outer(phi, 1e-9 * (1.0 - 0.01 * ((y @ y) * y - y**3))))

    return best_seconds(step, repeats)


def growth(costs: Floats) -> float:
    """Exponent p of cost ∝ d^p, by least squares on the logarithms."""
    return float(np.polyfit(np.log(WIDTHS), np.log(costs), 1)[0])


def main() -> int:
    """Print the tables; the exit code says whether the bounds on the step hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", action="store_true", help="also time the commands, about 15 minutes")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    costs: dict[tuple[str, str], Floats] = {}
    for pattern, meaning in PATTERNS.items():
        print(f"µs per step, k = {ACTIVE}; {meaning}")
        print(f"{'arm':28}" + "".join(f"{f'd = {d}':>11}" for d in WIDTHS) + "   exponent")
        indices = {d: active_features(d, max(2000, 4_000_000 // d), pattern) for d in WIDTHS}
        for name, arm in ARMS.items():
            cost = np.array([step_seconds(arm, d, indices[d]) for d in WIDTHS])
            costs[name, pattern] = cost
            print(f"{name:28}" + "".join(f"{1e6 * c:11.3f}" for c in cost) + f"{growth(cost):11.3f}")
        print()
    print("µs per step of the arms of O(d²)")
    for name, arm in COSTLY.items():
        cells = [step_seconds(arm, d, active_features(d, 20, "random"), repeats=3) for d in WIDTHS[:4]]
        print(f"{name:28}" + "".join(f"{1e6 * c:11.3f}" for c in cells))
    single, zero = costs["A, single-sample", "trajectory"], costs["A, λ = 0", "trajectory"]

    d = 2048
    fast = single[WIDTHS.index(d)]
    dense, vector = dense_step_seconds(d), vector_step_seconds(d)
    print(f"\nSingle-sample step at d = {d}: {1e6 * fast:.2f} µs")
    print(f"    dense NumPy {1e3 * dense:.1f} ms, {dense / fast:,.0f} times as long")
    print(f"    NumPy in the best order {1e3 * vector:.2f} ms, {vector / fast:,.0f} times as long")
    print(
        "λ > 0 against λ = 0: " + ", ".join(f"{r:.2f} at d = {d}" for r, d in zip(single / zero, WIDTHS, strict=True))
    )
    steep = False
    for pattern, meaning in PATTERNS.items():
        exponent = growth(costs["A, single-sample", pattern])
        steep |= exponent > 1.15
        print(f"growth with d, {meaning}: exponent {exponent:.3f} (at most 1.15: {'no' if exponent > 1.15 else 'yes'})")

    if options.figures:
        for title, command in (
            ("regression", ["regression"]),
            ("mountain-car --quick", ["mountain-car", "--quick"]),
            ("mountain-car --no-costly", ["mountain-car", "--no-costly"]),
        ):
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                out = ["--out", folder, "--threads", str(options.threads)]
                subprocess.run([sys.executable, "-m", "gramian", *command, *out], check=True, stdout=subprocess.DEVNULL)
                print(
                    f"gramian {title}: {time.perf_counter() - start:.1f} s with {options.threads} threads", flush=True
                )
    return 1 if steep or dense / fast < 100 or vector / fast < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
