"""Every verdict of `gramian theory` can fail: break the maths that it speaks of, and it turns."""

import numpy as np
import pytest
import scipy.linalg

from gramian.linear import theory
from gramian.linear.mdp import RewardProcess, offdiag, random_process
from gramian.linear.theory import STATEMENTS, Theory

OPTIONS = Theory(states=6, features=3, processes=1, samples=20_000, steps=20_000)
PROCESS = random_process(6, 3, seed=0)


def verdicts(number):
    statement = STATEMENTS[number]
    findings = statement(PROCESS, OPTIONS, np.random.default_rng([0, 0, number]))
    return {f"{f.proposition}: {f.statement}": f for f in findings}


def scaled(owner, name, factor):
    """Make the function give ``factor`` times what it gives."""
    original = getattr(owner, name)
    return lambda patch: patch.setattr(owner, name, lambda *a, **k: factor * original(*a, **k))


def replaced(owner, name, function):
    return lambda patch: patch.setattr(owner, name, function)


def without_own_diagonal(self, A):
    return float(0.25 * ((A.T @ self.C @ A) ** 2).sum())


def h_without_the_term(self, A, _):
    return -np.outer(self.M @ A.sum(axis=1) + self.b, np.ones(self.d))


def h_with_the_wrong_sign(self, A, lam):
    return h_without_the_term(self, A, lam) - lam * self.C @ A @ offdiag(A.T @ self.C @ A)


def flip_svd(patch):
    original = np.linalg.svd

    def flipped(matrix):
        U, sizes, Vt = original(matrix)
        return U * [-1, *[1] * (len(U) - 1)], sizes, Vt

    patch.setattr(np.linalg, "svd", flipped)


def noise_off_in_one_entry(patch):
    original = theory._noise

    def shifted(*arguments):
        noise = original(*arguments)
        noise[:, 0, 1] += 0.5
        return noise

    patch.setattr(theory, "_noise", shifted)


def unbiased_noise(patch):
    original = theory._noise
    patch.setattr(theory, "_noise", lambda p, A, lam, _, rng, n: original(p, A, lam, "two-sample", rng, n))


def wrong_rewards(patch):
    original = theory.evaluate_reduced
    patch.setattr(theory, "evaluate_reduced", lambda phi, rewards, *others: original(phi, 1 - rewards, *others))


EQUATION_4, FIRST, SECOND, THIRD, FOURTH, SIXTH = range(6)
diagonal_matrix = replaced(theory, "constructed_minimum", lambda _, w: np.diag(w))
no_steps = scaled(theory, "_robbins_monro", 0.0)
MUTATIONS = [
    (EQUATION_4, "Eq. 4: h is the semi-gradient", replaced(RewardProcess, "h", h_with_the_wrong_sign)),
    (EQUATION_4, "Eq. 4: the paper's E₁, E₂ give offdiag at d = 3", scaled(theory, "paper_offdiagonal", 2.0)),
    (EQUATION_4, "Eq. 4: the paper's E₁, E₂ give offdiag at d = 4", replaced(theory, "paper_offdiagonal", offdiag)),
    (FIRST, "1: min L_REG = min L_TD", diagonal_matrix),
    (FIRST, "1: AᵀΦᵀDΦA is diagonal there", diagonal_matrix),
    (FIRST, "1: θe₁ᵀ is a minimum too", replaced(RewardProcess, "penalty", without_own_diagonal)),
    (FIRST, "1: θe₁ᵀ is a minimum too", replaced(np, "outer", lambda w, _: theory.constructed_minimum(PROCESS, w))),
    (FIRST, "1: descent from random A", scaled(theory, "_loss_gradient", 0.0)),
    (SECOND, "2: UVᵀ is scipy's polar factor", replaced(scipy.linalg, "polar", lambda A: (A, A))),
    (SECOND, "2: no orthogonal matrix is nearer", flip_svd),
    (SECOND, "2: the O(d²) rotation", replaced(theory, "add_rank_one_projected", lambda *_: None)),
    (THIRD, "3: h is Lipschitz over orthogonal matrices", scaled(RewardProcess, "h", 10.0)),
    (THIRD, "3: h is Lipschitz over all matrices", replaced(RewardProcess, "h", h_without_the_term)),
    (FOURTH, "5: h vanishes at the constructed point", diagonal_matrix),
    (FOURTH, "5: so does the mean single-sample update", scaled(theory, "single_sample_bias", 0.0)),
    (FOURTH, "5: the mean single-sample update vanishes", replaced(theory, "single_sample_bias", lambda *_: 1.0)),
    (FOURTH, "4: expected update", no_steps),
    (FOURTH, "4: two-sample update", no_steps),
    (FOURTH, "4: single update", no_steps),
    (FOURTH, "4: two-sample update", scaled(theory, "_robbins_monro", 1000.0)),
    (FOURTH, "4: two-sample update", wrong_rewards),
    (FOURTH, "4: single update", wrong_rewards),
    (SIXTH, "6: the single-sample noise has mean zero", unbiased_noise),
    (SIXTH, "6: less its exact bias it has", scaled(theory, "single_sample_bias", 1.2)),
    (SIXTH, "6: the two-sample noise has mean zero", noise_off_in_one_entry),
    (SIXTH, "6: E‖M‖² ≤ K(1 + ‖A‖²)", scaled(theory, "_noise", 5.0)),
    (SIXTH, "6: with the same K over all matrices", replaced(theory, "_largest_square", lambda *_: 1.0)),
]


@pytest.mark.parametrize(
    ("number", "start", "mutate"), MUTATIONS, ids=[f"{n}-{s}" for n, (_, s, _) in enumerate(MUTATIONS)]
)
def test_broken_maths_turns_the_verdict(monkeypatch, number, start, mutate):
    mutate(monkeypatch)
    (found,) = [f for statement, f in verdicts(number).items() if statement.startswith(start)]
    assert found.holds != found.expected


def test_every_verdict_has_a_mutation():
    for number in range(len(STATEMENTS)):
        for statement in verdicts(number):
            assert any(n == number and statement.startswith(start) for n, start, _ in MUTATIONS), statement


def test_divergence_is_reported(monkeypatch):
    scaled(theory, "_robbins_monro", 1000.0)(monkeypatch)
    found = next(f for statement, f in verdicts(FOURTH).items() if statement.startswith("4: two-sample"))
    assert "diverged" in found.computed
