from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

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
from gramian.linear.features import TileCoding
from gramian.linear.kernels import Weights
from gramian.linear.learner import Arm
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
    trace=300,
    seed=0,
    exchangeable=False,
    gamma=1.0,
    epsilon=0.0,
):
    coding = TileCoding(LOW, HIGH, 2, tiles, ACTIONS, 1 if copies == "one" else copies)
    if copies == "one":
        coding = replace(coding, copied=int(coding.active((-0.5, 0.0), action=2)[0]))
    d, k = coding.d, coding.k
    n = coding.per_action * ACTIONS + 1 if exchangeable else d
    weights, members = Weights(np.eye(n), np.ones(n), np.ones(n), np.zeros((n, n))), np.zeros(0)
    if exchangeable:
        weights.A[1:, 1:], weights.w[0], weights.theta[0] = 0.0, np.sqrt(d), np.sqrt(d)
        members = np.array([d, *[0] * (n - 1)], dtype=float)
    starts = np.random.default_rng([seed, 1]).uniform(-0.6, -0.4, episodes)
    lengths, steps = np.zeros(episodes, dtype=np.int64), np.zeros((trace, 3))
    end = q_learning_run(
        coding.arrays,
        arm.rule(arm.alpha(x / (k * d), d)),
        weights,
        members,
        starts,
        most_steps,
        gamma,
        epsilon,
        np.zeros((400, k + 1), dtype=np.int64),
        np.zeros((VECTORS, n)),
        np.random.default_rng([seed, 2]),
        lengths,
        steps,
        np.zeros(1, dtype=bool),
    )
    return SimpleNamespace(
        end=end, lengths=lengths, steps=steps, starts=starts, coding=coding, weights=weights, members=members
    )


def greedy(values, rng):
    """Break ties as the kernel does, with the same draws; what is a tie there differs here by rounding."""
    best, ties = 0, 1
    for action in range(1, len(values)):
        if values[action] > values[best] + 1e-9:
            best, ties = action, 1
        elif values[action] > values[best] - 1e-9:
            ties += 1
            if rng.random() * ties < 1:
                best = action
    return best


def oracle(arm, found, gamma=1.0, epsilon=0.0):
    """Repeat a run with dense matrices: the same draws, so the same actions, step by step."""
    coding = found.coding
    slow = DenseLearner(arm, np.eye(coding.d), alpha=0.5 / (coding.k * coding.d))
    rng, visited, at = np.random.default_rng([0, 2]), [], 0
    for start, length in zip(found.starts, found.lengths, strict=True):
        state = (start, 0.0)
        for _ in range(length):
            phis = coding.matrix(np.tile(state, (ACTIONS, 1)), np.arange(ACTIONS))
            values, before = [slow.value(phi) for phi in phis], rng.bit_generator.state
            action, took = greedy(values, rng), int(found.steps[at, 2])
            if action != took and not epsilon and values[took] > max(values) - 1e-9:
                rng.bit_generator.state, action = before, took  # the kernel's rounding, and so its BLAS, saw no tie
            if epsilon and rng.random() < epsilon:
                action = int(rng.random() * ACTIONS)
            np.testing.assert_allclose(found.steps[at], (*state, action), atol=1e-12)
            state, at, second = car_step(*state, action), at + 1, None
            if arm.two_samples:
                second = visited[int(rng.random() * len(visited))] if visited else np.zeros(coding.d)
                visited.append(phis[action])
            following = coding.matrix(np.tile(state, (ACTIONS, 1)), np.arange(ACTIONS))
            slow.q_step(phis[action], -1.0, [] if state[0] >= GOAL else list(following), gamma, second)
    assert at == min(found.lengths.sum(), 300)
    return slow


def check_weights(arm, slow, A, w, theta):
    if arm.form != "plain":
        np.testing.assert_allclose(A, slow.A, atol=1e-10)
    if arm.form == "full":
        np.testing.assert_allclose(theta, slow.theta, atol=1e-10)
    else:
        np.testing.assert_allclose(w, slow.w if arm.form == "plain" else slow.A.sum(axis=1), atol=1e-10)


ARMS = [
    Arm("plain"),
    Arm("plain", "single", 0.3),
    Arm("reduced"),
    Arm("reduced", "single", 0.3),
    Arm("reduced", "two-sample", 0.3),
    Arm("reduced", "running", 0.3),
    Arm("reduced", "norm", 0.3),
    Arm("reduced", "two-sample-norm", 0.3),
    Arm("reduced", "single", 0.3, projected=True),
    Arm("full"),
    Arm("full", "single", 0.003),
    Arm("full", "two-sample", 0.003),
    Arm("full", "single", 0.003, projected=True),
]
PROJECTED = [
    Arm(form, estimator, lam, projected=True)
    for form, lam in (("reduced", 0.3), ("full", 0.003))
    for estimator in ("single", "two-sample", "running", "norm", "two-sample-norm")
] + [Arm(form, projected=True) for form in ("reduced", "full")]


@pytest.mark.parametrize("copies", [0, 1, "one"])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_a_run_of_the_kernel_is_algorithm_1_with_dense_matrices(arm, copies):
    found = run(arm, copies=copies)
    assert found.end == FINISHED
    check_weights(arm, oracle(arm, found), *found.weights[:3])


@pytest.mark.parametrize(
    "arm", [Arm("reduced", "single", 0.3), Arm("full", "two-sample", 0.003)], ids=lambda arm: arm.name
)
def test_a_run_with_discount_and_exploration_is_algorithm_1_too(arm):
    found = run(arm, gamma=0.9, epsilon=0.3)
    check_weights(arm, oracle(arm, found, gamma=0.9, epsilon=0.3), *found.weights[:3])
    assert len(set(found.steps[:, 2])) == ACTIONS


@pytest.mark.parametrize("copies", [0, 1, 2, "one"])
@pytest.mark.parametrize("arm", PROJECTED, ids=lambda arm: arm.name)
def test_a_run_by_classes_of_exchangeable_features_is_algorithm_1_with_dense_matrices(arm, copies):
    found = run(arm, copies=copies, exchangeable=True)
    assert found.end == FINISHED
    slow, coding = oracle(arm, found), found.coding
    # the classes: features in the order in which they are first looked at, and class 0 of those that never are
    place, position = {}, 0
    for start, length in zip(found.starts, found.lengths, strict=True):
        path = [(start, 0.0), *(tuple(s[:2]) for s in found.steps[position + 1 : position + length])]
        path.append(car_step(*path[-1], int(found.steps[position + length - 1, 2])))
        position += length
        for state in path:
            for action in range(ACTIONS):
                for feature in coding.active(state, action)[: coding.tilings]:  # without copies
                    place.setdefault(int(feature), len(place) + 1)
    n = len(place) + 1
    assert n == (found.members > 0).sum()
    basis = np.zeros((coding.d, n))  # ê_c, one a column
    base = coding.per_action * ACTIONS
    for feature in range(coding.d):
        original = coding.copied if copies == "one" and feature == base else feature % base
        basis[feature, place.get(original, 0)] = 1.0
    np.testing.assert_array_equal(basis.sum(axis=0), found.members[:n])
    basis /= np.sqrt(basis.sum(axis=0))
    B, w, theta, _ = found.weights
    A = basis @ B[:n, :n] @ basis.T + np.eye(coding.d) - basis @ basis.T
    check_weights(arm, slow, A, basis @ w[:n], basis @ theta[:n])


def test_reduced_with_lambda_0_runs_as_plain_at_alpha_d_bit_for_bit():
    plain, reduced = (run(Arm(form), tiles=8, episodes=10, most_steps=2000) for form in ("plain", "reduced"))
    np.testing.assert_array_equal(plain.lengths, reduced.lengths)
    assert plain.weights.w.tobytes() == reduced.weights.w.tobytes()


def test_same_seed_same_run_other_seed_other_run():
    one, same, other = (
        run(Arm("reduced", "two-sample", 0.1), tiles=8, most_steps=2000, seed=seed).lengths.tolist()
        for seed in (0, 0, 1)
    )
    assert one == same != other


def test_a_diverged_run_stops_and_its_unfinished_episodes_count_as_the_cap():
    found = run(Arm("reduced"), x=50.0, episodes=4, most_steps=1000)
    assert (found.end, found.lengths[-1]) == (DIVERGED, 1000)


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
