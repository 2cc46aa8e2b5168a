import itertools

import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.linear.learner import ESTIMATORS, Arm, Learner, initial_transform
from tests.linear.oracle import DenseLearner

LAM = 0.05
ARMS = [
    Arm(form, estimator, 0.0 if estimator == "none" else LAM, projected)
    for form, estimator, projected in itertools.product(("reduced", "full"), ESTIMATORS, (False, True))
] + [Arm("plain"), Arm("plain", "single", LAM)]


def transitions(rng, steps, d, k):
    for _ in range(steps):
        phi, second, *others = np.zeros((5, d))
        for vector in (phi, second, *others):
            vector[rng.choice(d, k, replace=False)] = rng.standard_normal(k)
        yield phi, rng.standard_normal(), others, second


def sparse(phi):
    indices = np.flatnonzero(phi)
    return indices, phi[indices]


@pytest.mark.parametrize("initialisation", ["identity", "orthogonal"])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
@pytest.mark.parametrize(("k", "given"), [(3, "sparse"), (8, "dense")])
def test_the_fast_step_equals_the_dense_equations_over_hundreds_of_q_learning_steps(arm, initialisation, k, given):
    d, alpha, steps = 8, 0.01, 400
    fast = Learner(d, arm, alpha=alpha, initialisation=initialisation, seed=3)
    slow = DenseLearner(arm, initial_transform(initialisation, d, np.random.default_rng(3)), alpha=alpha)
    pack = sparse if given == "sparse" else (lambda phi: phi)
    for phi, reward, others, second in transitions(np.random.default_rng(0), steps, d, k):
        two = second if arm.two_samples else None
        delta = slow.q_step(phi, reward, others, 0.9, two)
        found = fast.q_step(pack(phi), reward, [pack(o) for o in others], 0.9, None if two is None else pack(two))
        assert found == pytest.approx(delta, abs=1e-10)
    if arm.form == "plain":
        np.testing.assert_allclose(fast.w, slow.w, atol=1e-10)
    else:
        np.testing.assert_allclose(fast.A, slow.A, atol=1e-10)
    if arm.form == "reduced":
        np.testing.assert_allclose(fast.w, slow.A.sum(axis=1), atol=1e-10)
    if arm.form == "full":
        np.testing.assert_allclose(fast.theta, slow.theta, atol=1e-10)


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_every_arm_starts_from_the_same_value_function(arm):
    phi = np.random.default_rng(1).standard_normal(5)
    plain = Learner(5, Arm("plain"), alpha=0.1, initialisation="orthogonal", seed=2)
    learner = Learner(5, arm, alpha=0.1, initialisation="orthogonal", seed=2)
    assert learner.value(phi) == pytest.approx(plain.value(phi), abs=1e-14)


def test_reduced_with_lambda_0_is_plain_learning_at_alpha_d_bit_for_bit():
    d = 7
    plain, reduced = Learner(d, Arm("plain"), alpha=0.013), Learner(d, Arm("reduced"), alpha=0.013)
    for phi, reward, others, _ in transitions(np.random.default_rng(5), 300, d, 3):
        assert plain.q_step(sparse(phi), reward, others, 0.9) == reduced.q_step(sparse(phi), reward, others, 0.9)
    assert plain.w.tobytes() == reduced.w.tobytes()


def test_plain_shrinkage_is_the_single_sample_term_of_a_transform_with_equal_columns():
    d = 6
    plain = Learner(d, Arm("plain", "single", 0.3), alpha=0.01, initialisation="zero")
    reduced = Learner(d, Arm("reduced", "single", 0.3), alpha=0.01, initialisation="zero")
    for phi, reward, others, _ in transitions(np.random.default_rng(5), 300, d, 3):
        plain.q_step(phi, 4 * reward, others, 0.9)
        reduced.q_step(phi, 4 * reward, others, 0.9)
    assert np.abs(plain.w).max() > 0.1
    np.testing.assert_allclose(plain.w, reduced.w, atol=1e-12)


def test_from_zero_all_columns_of_the_transform_stay_equal():
    learner = Learner(5, Arm("reduced", "single", LAM), alpha=0.01, initialisation="zero")
    for phi, reward, others, _ in transitions(np.random.default_rng(2), 100, 5, 5):
        learner.q_step(phi, reward, others, 0.9)
    assert np.abs(learner.A).max() > 0.01
    np.testing.assert_allclose(learner.A, learner.A[:, :1].repeat(5, axis=1), atol=1e-14)


def test_td_step_is_q_learning_with_one_action():
    rng = np.random.default_rng(0)
    one, other = (Learner(4, Arm("reduced", "single", LAM), alpha=0.1) for _ in range(2))
    phi, next_phi = rng.standard_normal((2, 4))
    assert one.td_step(phi, 1.0, next_phi, 0.9) == other.q_step(phi, 1.0, [next_phi], 0.9)
    assert one.td_step(phi, 1.0, None, 0.9) == pytest.approx(1.0 - other.value(phi))


def test_projection_stays_orthogonal_over_many_steps():
    learner = Learner(12, Arm("reduced", "single", LAM, projected=True), alpha=0.05)
    for phi, reward, others, _ in transitions(np.random.default_rng(2), 5000, 12, 4):
        learner.q_step(phi, reward, others, 0.9)
    np.testing.assert_allclose(learner.A.T @ learner.A, np.eye(12), atol=1e-11)
    np.testing.assert_allclose(learner.w, learner.A.sum(axis=1), atol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Arm("reduced", "sinlge", 0.1), "unknown estimator 'sinlge'; did you mean 'single'?"),
        (lambda: Arm("reduced", "single", -0.1), "λ is -0.1; it must be"),
        (lambda: Arm("reduced", "single", float("nan")), "λ is nan; it must be"),
        (lambda: Arm("dense"), "unknown form 'dense'"),
        (lambda: Arm("plain", "two-sample", 0.1), "the plain form has no transform"),
        (lambda: Arm("reduced", "none", 0.1), "λ = 0 goes with 'none' alone"),
        (
            lambda: Learner(3, Arm("reduced", projected=True), alpha=0.1, initialisation="zero"),
            "A = 0 is not orthogonal",
        ),
        (lambda: Learner(3, Arm("reduced"), alpha=0.1, initialisation="eye"), "unknown initialisation 'eye'"),
        (lambda: Learner(3, Arm("reduced"), alpha=0.0), "alpha is 0; it must be a number above 0"),
        (lambda: Learner(3, Arm("reduced"), alpha=float("nan")), "alpha is nan"),
        (lambda: Learner(3, Arm("reduced"), alpha=0.1, beta=1.5), r"beta is 1.5; it must be in \(0, 1\]"),
        (lambda: Learner(1, Arm("plain"), alpha=0.1).value(np.array([np.nan])), "a feature is nan; features must be"),
        (lambda: Learner(1, Arm("plain"), alpha=0.1).value(([0], [np.inf])), "a feature is inf; features must be"),
        (lambda: Learner(2, Arm("plain"), alpha=0.1).value(([0.5], [1.0])), "indices of type float64; they must be"),
        (lambda: Learner(3, Arm("reduced"), alpha=0.1).value(np.ones(4)), r"shape \(4,\); this learner takes \(3,\)"),
        (
            lambda: Learner(3, Arm("reduced"), alpha=0.1).td_step(np.ones(3), 0.0, None, 1.0, np.ones(3)),
            "second sample",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.parametrize(
    "phi", [(np.array([1000]), np.array([1.0])), (np.array([-1]), np.array([1.0])), (np.array([0, 1]), np.array([1.0]))]
)
def test_sparse_features_outside_the_learner_are_refused(phi):
    with pytest.raises(UserError, match="sparse features have"):
        Learner(3, Arm("reduced"), alpha=0.1).value(phi)
