import gymnasium
import numpy as np
import pytest
from oracle import DenseLearner

from gramian.linear.arms import ESTIMATORS, FORMS, Arm
from gramian.linear.car import ACTIONS, GOAL, HIGH, LOW, car_step, q_learning_run
from gramian.linear.features import TileCoding


def test_the_car_moves_as_in_gymnasium():
    environment = gymnasium.make("MountainCar-v0").unwrapped
    rng = np.random.default_rng(0)
    for _ in range(200):
        state = np.array([rng.uniform(LOW[0], 0.5), rng.uniform(LOW[1], HIGH[1])])
        environment.reset(seed=0)
        for _ in range(20):
            environment.state = tuple(state)  # Gymnasium's own arithmetic is in double precision from a tuple of floats
            action = int(rng.integers(3))
            _, reward, terminated, _, _ = environment.step(action)
            state = np.array(car_step(*state, action))
            np.testing.assert_allclose(state, environment.state, atol=1e-15)
            assert (reward, terminated) == (-1.0, state[0] >= GOAL)
            if terminated:
                break


def run(arm, *, copies=0, tiles=2, episodes=2, most_steps=150, x=0.5, capacity=64, trace=0, seed=0):
    coding = TileCoding(LOW, HIGH, 2, tiles, ACTIONS, copies)
    d, k = coding.d, coding.k
    A, w, theta, S = np.eye(d), np.ones(d), np.ones(d), np.zeros((d, d))
    starts = np.random.default_rng([seed, 1]).uniform(-0.6, -0.4, episodes)
    lengths, steps = np.zeros(episodes, dtype=np.int64), np.zeros((trace, 3))
    finite = q_learning_run(
        starts,
        most_steps,
        1.0,
        np.array(LOW),
        np.array(HIGH),
        coding.scale,
        coding.offsets,
        copies,
        FORMS[arm.form],
        ESTIMATORS[arm.estimator],
        arm.projected,
        A,
        w,
        theta,
        S,
        arm.alpha(x / (k * d), d),
        arm.lam,
        0.01,
        np.zeros((capacity, k), dtype=np.int64),
        np.random.default_rng([seed, 2]),
        lengths,
        steps,
    )
    return finite, lengths, steps, starts, coding, A, w, theta


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


@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_a_run_of_the_kernel_is_algorithm_1_on_its_own_trajectory(arm, copies):
    most = 150
    finite, lengths, steps, starts, coding, A, w, theta = run(arm, copies=copies, most_steps=most, trace=2 * most)
    assert finite
    alpha = 0.5 / (coding.k * coding.d)
    slow = DenseLearner(arm, np.eye(coding.d), alpha=alpha)
    rng, seen, capacity = np.random.default_rng([0, 2]), [], 64
    at = 0

    def phis(state):
        return coding.matrix(np.tile(state, (ACTIONS, 1)), np.arange(ACTIONS))

    for start, length in zip(starts, lengths, strict=True):
        state = (start, 0.0)
        for _ in range(length):
            position, velocity, action = steps[at]
            np.testing.assert_allclose((position, velocity), state, atol=1e-12)
            own = phis(state)
            values = [slow.value(phi) for phi in own]
            assert values[int(action)] >= max(values) - 1e-9  # the action was greedy
            if arm.form != "full":
                greedy(np.round(values, 9), rng)  # keep in step with the draws for ties
            state = car_step(position, velocity, int(action))
            others = [] if state[0] >= GOAL else list(phis(state))
            phi, second = own[int(action)], None
            if arm.estimator == "two-sample":
                break  # its draws are checked below
            slow.q_step(phi, -1.0, others, 1.0, second)
            at += 1
        if arm.estimator == "two-sample":
            return
    np.testing.assert_allclose(w if arm.form == "plain" else A, slow.w if arm.form == "plain" else slow.A, atol=1e-9)
