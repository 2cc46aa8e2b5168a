import gymnasium
import numpy as np
import pytest

from gramian.linear.arms import ESTIMATORS, FORMS, Arm
from gramian.linear.car import (
    ACTIONS,
    DIVERGED,
    FINISHED,
    GOAL,
    HIGH,
    LOW,
    VECTORS,
    car_step,
    keep_in_reservoir,
    q_learning_run,
)
from gramian.linear.copied import initial_rows
from gramian.linear.features import TileCoding
from tests.linear.oracle import DenseLearner


def test_the_car_moves_as_in_gymnasium():
    environment = gymnasium.make("MountainCar-v0").unwrapped
    rng = np.random.default_rng(0)
    for _ in range(200):
        environment.reset(seed=0)
        state = environment.state = (rng.uniform(LOW[0], 0.5), rng.uniform(LOW[1], HIGH[1]))
        for _ in range(100):  # side by side from there on, walls and goal included
            action = int(rng.integers(3))
            _, reward, terminated, _, _ = environment.step(action)
            state = car_step(*state, action)
            np.testing.assert_allclose(state, environment.state, atol=1e-12)
            assert (reward, terminated) == (-1.0, state[0] >= GOAL)
            if terminated:
                break


def run(
    arm,
    *,
    copies=0,
    tiles=2,
    episodes=2,
    most_steps=150,
    x=0.5,
    capacity=400,
    trace=0,
    seed=0,
    exchangeable=False,
    stored_once=False,
):
    coding = TileCoding(LOW, HIGH, 2, tiles, ACTIONS, copies)
    d, k = coding.d, coding.k
    n = d // (1 + copies) + 1 if exchangeable else d
    A, w, theta, S, members = np.eye(n), np.ones(n), np.ones(n), np.zeros((n, n)), np.zeros(0)
    if exchangeable:
        A[1:, 1:], w[0], theta[0] = 0.0, np.sqrt(d), np.sqrt(d)
        members = np.array([d, *[0] * (n - 1)], dtype=float)
    if stored_once:
        A = initial_rows("identity", d // (1 + copies), copies)
    starts = np.random.default_rng([seed, 1]).uniform(-0.6, -0.4, episodes)
    lengths, steps = np.zeros(episodes, dtype=np.int64), np.zeros((trace, 3))
    end = q_learning_run(
        starts,
        most_steps,
        1.0,
        np.array(LOW),
        np.array(HIGH),
        coding.scale,
        coding.offsets,
        coding.per_action,
        copies,
        FORMS[arm.form],
        ESTIMATORS[arm.estimator],
        arm.projected,
        A,
        w,
        theta,
        S,
        members,
        arm.alpha(x / (k * d), d),
        arm.lam,
        0.01,
        np.zeros((capacity, k // (1 + copies) if exchangeable else k), dtype=np.int64),
        np.zeros((VECTORS, n)),
        np.random.default_rng([seed, 2]),
        lengths,
        steps,
        np.zeros(1, dtype=bool),
    )
    return end, lengths, steps, starts, coding, A, w, theta, members


def greedy(values, rng):
    """Break ties as the kernel does, with the same draws."""
    best, ties = 0, 1
    for action in range(1, len(values)):
        if values[action] > values[best]:
            best, ties = action, 1
        elif values[action] == values[best]:
            ties += 1
            if rng.random() * ties < 1:
                best = action
    return best


ARMS = [
    Arm("plain"),
    Arm("plain", "single", 0.3),
    Arm("reduced"),
    Arm("reduced", "single", 0.3),
    Arm("reduced", "two-sample", 0.3),
    Arm("reduced", "running", 0.3),
    Arm("reduced", "single", 0.3, projected=True),
    Arm("full", "single", 0.003),
    Arm("full", "two-sample", 0.003),
    Arm("full", "single", 0.003, projected=True),
]
PROJECTED = [
    Arm(form, estimator, lam, projected=True)
    for form, lam in (("reduced", 0.3), ("full", 0.003))
    for estimator in ("single", "two-sample", "running", "norm")
] + [Arm(form, projected=True) for form in ("reduced", "full")]


def oracle(arm, coding, starts, lengths, steps):
    """Repeat a run with dense matrices: the same draws, so the same actions, step by step."""
    slow = DenseLearner(arm, np.eye(coding.d), alpha=0.5 / (coding.k * coding.d))
    rng, visited, at = np.random.default_rng([0, 2]), [], 0
    for start, length in zip(starts, lengths, strict=True):
        state = (start, 0.0)
        for _ in range(length):
            phis = coding.matrix(np.tile(state, (ACTIONS, 1)), np.arange(ACTIONS))
            action = greedy(np.round([slow.value(phi) for phi in phis], 9), rng)
            np.testing.assert_allclose(steps[at], (*state, action), atol=1e-12)
            state, at, second = car_step(*state, action), at + 1, None
            if arm.estimator == "two-sample":
                second = visited[int(rng.random() * len(visited))] if visited else np.zeros(coding.d)
                visited.append(phis[action])
            next_phis = (
                [] if state[0] >= GOAL else list(coding.matrix(np.tile(state, (ACTIONS, 1)), np.arange(ACTIONS)))
            )
            slow.q_step(phis[action], -1.0, next_phis, 1.0, second)
    assert at == min(lengths.sum(), 300)
    return slow


@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_a_run_of_the_kernel_is_algorithm_1_with_dense_matrices(arm, copies):
    end, lengths, steps, starts, coding, A, w, theta, _ = run(arm, copies=copies, most_steps=150, trace=300)
    assert end == FINISHED
    slow = oracle(arm, coding, starts, lengths, steps)
    if arm.form != "plain":
        np.testing.assert_allclose(A, slow.A, atol=1e-10)
    if arm.form == "full":
        np.testing.assert_allclose(theta, slow.theta, atol=1e-10)
    else:
        np.testing.assert_allclose(w, slow.w if arm.form == "plain" else slow.A.sum(axis=1), atol=1e-10)


def every_row(stored, copies):
    """A [d, d] of what is stored for copied features, written straight from what it is to mean."""
    features = len(stored)
    d = features * (1 + copies)
    A = np.tile(stored[:, :d], (1 + copies, 1))
    for i in range(features):
        for row_copy in range(1, 1 + copies):
            row = A[row_copy * features + i]
            row[i] = stored[i, d]  # the first copy's column, in the row of another
            row[row_copy * features + i] = stored[i, d + row_copy]  # a copy's own column
    return A


@pytest.mark.parametrize(
    "arm",
    [arm for arm in ARMS if arm.form != "plain" and not arm.projected] + [Arm("full"), Arm("reduced", "norm", 0.3)],
    ids=lambda arm: arm.name,
)
def test_a_run_that_stores_copied_rows_once_is_algorithm_1_with_dense_matrices(arm):
    end, lengths, steps, starts, coding, A, w, theta, _ = run(arm, copies=1, trace=300, stored_once=True)
    assert end == FINISHED
    slow = oracle(arm, coding, starts, lengths, steps)
    np.testing.assert_allclose(every_row(A, 1), slow.A, atol=1e-10)
    if arm.form == "full":
        np.testing.assert_allclose(theta, slow.theta, atol=1e-10)
    else:
        np.testing.assert_allclose(w, slow.A.sum(axis=1), atol=1e-10)


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize(
    "arm",
    [Arm("reduced", "single", 1.0), Arm("reduced", "two-sample", 1.0), Arm("full", "single", 0.1)],
    ids=lambda arm: arm.name,
)
def test_storing_copied_rows_once_changes_no_bit(arm, copies):
    once, all_rows = (
        run(arm, copies=copies, tiles=8, episodes=20, most_steps=2000, x=0.9, stored_once=stored_once)
        for stored_once in (True, False)
    )
    np.testing.assert_array_equal(once[1], all_rows[1])
    assert every_row(once[5], copies).tobytes() == all_rows[5].tobytes()
    assert (once[6].tobytes(), once[7].tobytes()) == (all_rows[6].tobytes(), all_rows[7].tobytes())


@pytest.mark.parametrize("copies", [0, 1, 2])
@pytest.mark.parametrize("arm", PROJECTED, ids=lambda arm: arm.name)
def test_a_run_by_classes_of_exchangeable_features_is_algorithm_1_with_dense_matrices(arm, copies):
    end, lengths, steps, starts, coding, B, w, theta, members = run(arm, copies=copies, trace=300, exchangeable=True)
    assert end == FINISHED
    slow = oracle(arm, coding, starts, lengths, steps)
    states = [tuple(s[:2]) for s in steps]  # of all but the last, which the car left and did not choose in
    place = {}
    n = int((members > 0).sum())
    # The classes: features in the order in which they are first looked at, and class 0 of those that never are.
    position = 0
    for start, length in zip(starts, lengths, strict=True):
        path = [(start, 0.0), *states[position + 1 : position + length]]
        path.append(car_step(*path[-1], int(steps[position + length - 1, 2])))
        position += length
        for state in path:
            for action in range(ACTIONS):
                for feature in coding.active(state, action)[: coding.tilings]:
                    place.setdefault(int(feature), len(place) + 1)
    assert len(place) + 1 == n
    basis = np.zeros((coding.d, n))  # ê_c, one a column
    base = coding.d // (1 + copies)
    for feature in range(coding.d):
        basis[feature, place.get(feature % base, 0)] = 1.0
    np.testing.assert_array_equal(basis.sum(axis=0), members[:n])
    basis /= np.sqrt(basis.sum(axis=0))
    A = basis @ B[:n, :n] @ basis.T + np.eye(coding.d) - basis @ basis.T
    np.testing.assert_allclose(A, slow.A, atol=1e-10)
    if arm.form == "full":
        np.testing.assert_allclose(basis @ theta[:n], slow.theta, atol=1e-10)
    else:
        np.testing.assert_allclose(basis @ w[:n], slow.A.sum(axis=1), atol=1e-10)


def test_reduced_with_lambda_0_runs_as_plain_at_alpha_d_bit_for_bit():
    plain, reduced = (run(Arm(form), tiles=8, episodes=10, most_steps=2000) for form in ("plain", "reduced"))
    np.testing.assert_array_equal(plain[1], reduced[1])
    assert plain[6].tobytes() == reduced[6].tobytes()


def test_same_seed_same_run_other_seed_other_run():
    one, same, other = (
        run(Arm("reduced", "two-sample", 0.1), tiles=8, most_steps=2000, seed=seed)[1] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert one.tolist() != other.tolist()


def test_a_diverged_run_stops_and_its_unfinished_episodes_count_as_the_cap():
    end, lengths, *_ = run(Arm("reduced"), x=50.0, episodes=4, most_steps=1000)
    assert end == DIVERGED
    assert lengths[-1] == 1000


def test_a_reservoir_keeps_every_item_with_the_same_probability():
    items, capacity, trials = 20, 5, 4000
    kept = np.zeros(items)
    rng = np.random.default_rng(0)
    for _ in range(trials):
        reservoir = np.full((capacity, 1), -1, dtype=np.int64)
        for seen in range(items):
            keep_in_reservoir(reservoir, np.array([seen]), seen, rng)
        kept[reservoir[:, 0]] += 1
    expected = capacity / items
    assert np.abs(kept / trials - expected).max() < 5 * np.sqrt(expected * (1 - expected) / trials)
