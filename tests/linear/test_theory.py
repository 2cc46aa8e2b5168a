import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.cli import main
from gramian.linear.kernels import SINGLE, TWO_SAMPLE
from gramian.linear.learner import Arm, Learner
from gramian.linear.mdp import evaluate_reduced, offdiag, random_process
from gramian.linear.theory import (
    Theory,
    check,
    constructed_minimum,
    equilibrium,
    mean_along,
    paper_offdiagonal,
    proposition_3,
    proposition_6,
    single_sample_bias,
)

SMALL = Theory(states=6, features=3, processes=1, samples=20_000, steps=40_000)

processes = st.builds(random_process, st.integers(4, 8), st.integers(2, 4), st.integers(0, 1000))


@pytest.fixture(scope="module")
def found():
    return [finding for _, finding in check(SMALL)]


@pytest.mark.slow
def test_every_verdict_is_the_expected_one(found):
    assert [f.statement for f in found if f.holds != f.expected] == []


@pytest.mark.parametrize("lam", [1e-4, 0.01, 10.0])
@pytest.mark.parametrize(
    ("statement", "power"), [("h is Lipschitz over all matrices", 2.0), ("with the same K over all matrices", 4.0)]
)
def test_a_bound_that_no_matrix_keeps_is_seen_at_every_lambda(lam, statement, power):
    options = replace(SMALL, lam=lam, samples=1000)
    process, rng = random_process(6, 3, seed=1), np.random.default_rng(0)
    found = [*proposition_3(process, options, rng), *proposition_6(process, options, rng)]
    (finding,) = [f for f in found if f.statement == statement]
    assert not finding.holds
    assert float(finding.computed.split("^")[1]) == pytest.approx(power, abs=0.1)


def test_every_mean_of_the_noise_is_shown_with_an_interval(found):
    shown = [f for f in found if f.proposition == "6" and ("mean zero" in f.statement or "less its" in f.statement)]
    assert len(shown) == 3
    for finding in shown:
        mean, half = map(
            float,
            re.match(r"mean along the bias (\S+) ± (\S+) \(99.9 %\)", finding.computed.replace("−", "-")).groups(),
        )
        assert (abs(mean) <= half) == finding.expected
        assert "inf" not in finding.computed


def test_the_mean_along_a_direction_ignores_all_others():
    samples = np.zeros((100, 2, 2))
    samples[:, 0, 0], samples[:, 1, 1] = np.tile([1.0, 3.0], 50), 7.0
    mean, half = mean_along(samples, np.array([[5.0, 0.0], [0.0, 0.0]]))
    assert mean == pytest.approx(2.0)
    assert half == pytest.approx(3.2905 * np.sqrt(100 / 99) / 10, rel=1e-4)


def test_every_proposition_is_checked(found):
    assert {f.proposition for f in found} == {"Eq. 4", "1", "2", "3", "4", "5", "6"}


def test_what_the_paper_has_wrong_does_not_hold(found):
    wrong = {
        "the single-sample noise has mean zero",
        "so does the mean single-sample update",
        "h is Lipschitz over all matrices",
        "with the same K over all matrices",
        "the paper's E₁, E₂ give offdiag at d = 4",
    }
    assert {f.statement for f in found if not f.holds} == wrong


@settings(max_examples=25, deadline=None)
@given(processes, st.integers(0, 1000))
def test_the_mean_of_the_sampled_updates_over_all_transitions_is_the_expected_update(process, seed):
    """Exact: sum over s, s' and s'' with their probabilities, instead of drawing them."""
    rng, lam = np.random.default_rng(seed), 0.7
    A = rng.standard_normal((process.d, process.d))
    w = A.sum(axis=1)
    mean_two, mean_one = np.zeros_like(A), np.zeros_like(A)
    for s, phi in enumerate(process.phi):
        target = process.r[s] + process.gamma * process.P[s] @ process.phi @ w
        y = A.T @ phi
        td = np.outer(phi, np.full(process.d, target - phi @ w))
        mean_one += process.mu[s] * (lam * np.outer(phi, (y @ y) * y - y**3) - td)
        for s2, phi2 in enumerate(process.phi):
            other = A.T @ phi2
            v = (y @ other) * other - y * other**2
            mean_two += process.mu[s] * process.mu[s2] * (lam * np.outer(phi, v) - td)
    np.testing.assert_allclose(mean_two, process.h(A, lam), atol=1e-9)
    np.testing.assert_allclose(mean_one, process.h(A, lam) + single_sample_bias(process, A, lam), atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(processes)
def test_the_best_weights_have_no_descent_direction(process):
    best = process.best_weights()
    for step in 1e-4 * np.eye(process.d):
        assert process.td_loss(best + step) >= process.td_loss(best) - 1e-12
        assert process.td_loss(best - step) >= process.td_loss(best) - 1e-12


@settings(max_examples=25, deadline=None)
@given(processes)
def test_the_equilibrium_has_the_values_of_td_and_uncorrelated_features(process):
    A = equilibrium(process)
    np.testing.assert_allclose(process.M @ A.sum(axis=1) + process.b, 0, atol=1e-8)
    np.testing.assert_allclose(offdiag(A.T @ process.C @ A), 0, atol=1e-6)


def test_a_minimum_needs_orthogonal_eigenvectors():
    process = random_process(6, 3, seed=0)
    w = np.array([1.0, 2.0, 3.0])
    assert process.penalty(constructed_minimum(process, w)) == pytest.approx(0, abs=1e-12)
    assert process.penalty(np.diag(w)) > 0.1


def test_the_penalty_is_half_the_sum_over_pairs():
    process = random_process(6, 3, seed=0)
    A = np.random.default_rng(0).standard_normal((3, 3))
    S = A.T @ process.C @ A
    assert process.penalty(A) == pytest.approx(0.5 * (S[0, 1] ** 2 + S[0, 2] ** 2 + S[1, 2] ** 2))


def test_samples_follow_the_stationary_distribution_and_the_transitions():
    process = random_process(5, 5, seed=1)
    phi, reward, following, second = process.sample(np.random.default_rng(0), 200_000)
    np.testing.assert_allclose(phi.mean(axis=0), process.mu @ process.phi, atol=0.02)
    np.testing.assert_allclose(following.mean(axis=0), process.mu @ process.P @ process.phi, atol=0.02)
    np.testing.assert_allclose(second.T @ second / len(second), process.C, atol=0.05)
    np.testing.assert_allclose(
        phi.T @ following / len(phi), process.phi.T @ (process.mu[:, None] * process.P) @ process.phi, atol=0.05
    )
    assert reward.mean() == pytest.approx(process.mu @ process.r, abs=0.02)


@pytest.mark.parametrize(("name", "estimator"), [("single", SINGLE), ("two-sample", TWO_SAMPLE)])
def test_the_evaluation_kernel_takes_the_learners_steps(name, estimator):
    process = random_process(6, 3, seed=0)
    phi, reward, following, second = process.sample(np.random.default_rng(0), 300)
    A = np.eye(3)
    evaluate_reduced(phi, reward, following, second, process.gamma, np.full(300, 0.01), 0.3, estimator, A)
    learner = Learner(3, Arm("reduced", name, 0.3), alpha=0.01)
    for n in range(300):
        learner.td_step(phi[n], reward[n], following[n], process.gamma, second[n] if name == "two-sample" else None)
    np.testing.assert_allclose(A, learner.A, atol=1e-12)


def test_the_papers_matrices_miss_two_pairs_at_d_4():
    S = np.arange(16.0).reshape(4, 4)
    S = S + S.T
    missed = np.argwhere((paper_offdiagonal(S) == 0) & (offdiag(S) != 0))
    assert missed.tolist() == [[0, 3], [1, 2], [2, 1], [3, 0]]


def test_the_command_prints_verdicts_and_writes_its_table(tmp_path, capsys):
    options = ["--processes", "1", "--samples", "5000", "--steps", "20000", "--features", "3", "--out", str(tmp_path)]
    assert main(["theory", *options]) == 0
    assert "Proposition 6: the single-sample noise has mean zero" in capsys.readouterr().out
    with (tmp_path / "theory.csv").open(encoding="utf-8") as stream:
        assert {row["verdict"] == row["expected"] for row in csv.DictReader(stream)} == {True}
