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
from gramian.linear.compiled import kernel
from gramian.linear.kernels import Floats, Integers, learn, transform

WIDTHS = (256, 512, 1024, 2048, 4096, 8192)
ACTIVE = 4
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
    ones, y, other, room = np.ones(indices.shape[1]), np.zeros(w.size), np.zeros(w.size), np.zeros((4, w.size))
    for n in range(indices.shape[0]):
        if estimator != 0 or form == 2 or projected:
            transform(A, indices[n], ones, y)
        if estimator == 2:
            transform(A, others[n], ones, other)
        learn(form, estimator, projected, A, w, theta, S, indices[n], ones, y, other, 1e-9, 1e-9, lam, 0.01, room)


def active_features(d: int, steps: int, stay: int, seed: int) -> Integers:
    """Active features [steps, k] of a trajectory on which each stays active for ``stay`` steps on average.

    On Mountain Car a tile stays active for about 8 steps. With 1 all rows of A are new in every step and, where A is
    larger than the caches, come from memory: the worst case.
    """
    rng = np.random.default_rng(seed)
    if stay == 1:
        return rng.integers(d, size=(steps, ACTIVE))
    found = np.empty((steps, ACTIVE), dtype=np.int64)
    now = rng.choice(d, ACTIVE, replace=False)
    for n in range(steps):
        now = np.where(rng.random(ACTIVE) < 1 / stay, rng.integers(d, size=ACTIVE), now)
        found[n] = now
    return found


def step_seconds(arm: Arm, d: int, steps: int, stay: int = 8, repeats: int = 7) -> float:
    """Seconds of one compiled step: the best of several blocks of steps."""
    A, w, theta = np.eye(d), np.ones(d), np.ones(d)
    S = np.zeros((d, d)) if arm.estimator == "running" else np.zeros((0, 0))
    indices, others = active_features(d, steps, stay, seed=0), active_features(d, steps, 1, seed=1)
    arguments = (FORMS[arm.form], ESTIMATORS[arm.estimator], arm.projected, A, w, theta, S)
    _steps(*arguments, indices[:1], others[:1], arm.lam)
    return best_seconds(lambda: _steps(*arguments, indices, others, arm.lam), repeats) / steps


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

    costs: dict[tuple[str, int], Floats] = {}
    for stay in (8, 1):
        meaning = (
            "each feature stays active 8 steps, as on Mountain Car" if stay == 8 else "new random features each step"
        )
        print(f"µs per step, k = {ACTIVE}; {meaning}")
        print(f"{'arm':28}" + "".join(f"{f'd = {d}':>11}" for d in WIDTHS) + "   exponent")
        for name, arm in ARMS.items():
            cost = np.array([step_seconds(arm, d, steps=max(1000, 4_000_000 // d), stay=stay) for d in WIDTHS])
            costs[name, stay] = cost
            print(f"{name:28}" + "".join(f"{1e6 * c:11.3f}" for c in cost) + f"{growth(cost):11.3f}")
        print()
    print("µs per step of the arms of O(d²)")
    for name, arm in COSTLY.items():
        cells = [step_seconds(arm, d, steps=20, repeats=3) for d in WIDTHS[:4]]
        print(f"{name:28}" + "".join(f"{1e6 * c:11.3f}" for c in cells))
    single, zero = costs["A, single-sample", 8], costs["A, λ = 0", 8]
    steep = growth(single) > 1.15

    d = 2048
    fast = single[WIDTHS.index(d)]
    dense, vector = dense_step_seconds(d), vector_step_seconds(d)
    print(f"\nSingle-sample step at d = {d}: {1e6 * fast:.2f} µs")
    print(f"    dense NumPy {1e3 * dense:.1f} ms, {dense / fast:,.0f} times as long")
    print(f"    NumPy in the best order {1e3 * vector:.2f} ms, {vector / fast:,.0f} times as long")
    print(
        "λ > 0 against λ = 0: " + ", ".join(f"{r:.2f} at d = {d}" for r, d in zip(single / zero, WIDTHS, strict=True))
    )
    print(f"growth with d: exponent {growth(single):.3f} (at most 1.15: {'no' if steep else 'yes'})")

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
