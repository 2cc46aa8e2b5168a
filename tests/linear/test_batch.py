"""Batches of runs against the dense equations, run by run."""

import numpy as np
import pytest

from gramian.linear.batch import ERROR_CAP, Samples, distance_from_orthogonal, learn_runs
from gramian.linear.learner import ESTIMATORS, Arm, initial_transform
from gramian.linear.mdp import random_process
from tests.linear.oracle import DenseLearner

LAMBDAS = (0.1, 0.03)
ARMS = [Arm("plain"), Arm("plain", "single", 0.1)] + [
    Arm(form, estimator, 0.0 if estimator == "none" else 0.1, projected)
    for form in ("reduced", "full")
    for estimator in ESTIMATORS
    for projected in (False, True)
]
RECORD = np.array([0, 7, 200])


def regression(d, runs=3, steps=200):
    """Samples of runs with a common second moment, with what they are judged by."""
    rng = np.random.default_rng(0)
    C, best = 0.4 * np.eye(d) + 0.6, np.arange(1.0, d + 1)
    phi, second = (np.einsum("ij,tjb->tib", np.linalg.cholesky(C), rng.standard_normal((steps, d, runs))) for _ in "ab")
    return Samples(phi, np.einsum("i,tib->tb", best, phi), second), C[:, :, None], best[:, None]


def evaluation(d, runs=3, steps=200):
    """The same of random processes, one for each run."""
    drawn = []
    for run in range(runs):
        process = random_process(6, d, seed=run)
        samples = process.sample(np.random.default_rng(run), steps)
        drawn.append([*samples, process.C, process.td_fixed_point()])
    phi, rewards, following, seconds, C, solution = (np.stack(part, axis=-1) for part in zip(*drawn, strict=True))
    return Samples(phi, rewards, seconds, following, 0.9), C, solution


def arms_like(arm):
    return [Arm(arm.form, arm.estimator, lam if arm.lam else 0.0, arm.projected) for lam in LAMBDAS]


def learned(task, arms, alpha=0.02):
    samples, C, solution = task
    d, runs = samples.phi.shape[1:]
    A = np.stack([initial_transform("orthogonal", d, np.random.default_rng(run)) for run in range(runs)], axis=-1)
    return A, learn_runs([arm.rule(arm.alpha(alpha, d)) for arm in arms], samples, C, solution, A, RECORD)


@pytest.mark.parametrize("task", [regression(2), regression(3), evaluation(3)], ids=["d=2", "d=3", "TD(0)"])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_a_batch_equals_the_dense_equations_run_by_run(arm, task):
    samples, C, solution = task
    A, found = learned(task, arms := arms_like(arm))
    assert not found.diverged.any()
    for k, own in enumerate(arms):
        for b in range(A.shape[2]):
            slow, curve, far = DenseLearner(own, A[:, :, b], alpha=0.02), [], []
            moment, best = (values[..., b % values.shape[-1]] for values in (C, solution))
            for n in range(201):
                off = {"plain": slow.w, "reduced": slow.A.sum(axis=1), "full": slow.A @ slow.theta}[arm.form] - best
                curve.append(off @ moment @ off)
                far.append(distance_from_orthogonal(slow.A))
                if n < 200:
                    following = [] if samples.following is None else [samples.following[n, :, b]]
                    second = samples.seconds[n, :, b] if arm.two_samples else None
                    slow.q_step(samples.phi[n, :, b], samples.rewards[n, b], following, samples.gamma, second)
            np.testing.assert_allclose(found.errors[k, :, b], np.array(curve)[RECORD], atol=1e-10)
            assert found.areas[k, b] == pytest.approx(np.mean(curve[:-1]), abs=1e-10)
            expected = np.full(3, np.nan) if arm.form == "plain" else np.array(far)[RECORD]
            np.testing.assert_allclose(found.distances[k, :, b], expected, atol=1e-10)


def test_distance_from_orthogonal_is_a_norm():
    A = np.random.default_rng(0).standard_normal((3, 3))
    assert distance_from_orthogonal(A) == pytest.approx(np.linalg.norm(A.T @ A - np.eye(3)) / np.sqrt(3))


@pytest.mark.parametrize("task", [regression(2), evaluation(3)], ids=["regression", "TD(0)"])
def test_a_diverged_run_is_capped_and_marked_and_its_distance_is_not_recorded(task):
    _, found = learned(task, [Arm("reduced", "single", 0.1), Arm("full")], alpha=50.0)  # of two kinds
    assert found.diverged.all()
    assert (found.errors[:, -1] == ERROR_CAP).all()
    assert (found.areas <= ERROR_CAP).all()
    assert np.isfinite(found.distances[:, 0]).all()
    assert np.isnan(found.distances[:, -1]).all()


def test_the_reduced_form_with_lambda_0_is_plain_regression_at_alpha_d_bit_for_bit():
    samples, C, solution = regression(2)
    A, record = np.repeat(np.eye(2)[:, :, None], 3, axis=2), np.array([1, 200])
    rules = [[arm.rule(arm.alpha(0.01, 2))] for arm in (Arm("plain"), Arm("reduced"))]
    plain, reduced = (learn_runs(rule, samples, C, solution, A, record) for rule in rules)
    np.testing.assert_array_equal(plain.errors, reduced.errors)
