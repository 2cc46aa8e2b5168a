"""Policy evaluation on small random Markov decision processes: the paper's loss, its semi-gradient and TD(0)."""

from dataclasses import dataclass

import numpy as np

from gramian.core.compiled import kernel
from gramian.core.errors import require
from gramian.linear.kernels import (
    REDUCED,
    TWO_SAMPLE,
    Floats,
    Rule,
    Weights,
    dot_active,
    learn,
    transform,
)

NORM_CAP = 1e6
"""Largest ‖A‖ of a run that has not diverged; near the equilibria it is about the norm of the weights."""


def offdiag(matrix: Floats) -> Floats:
    """Return the matrix with its diagonal set to zero: what the paper's E₁ᵀD̃E₂ + E₂ᵀD̃E₁ is meant to be."""
    return matrix - np.diag(np.diag(matrix))


@dataclass(frozen=True)
class RewardProcess:
    """A Markov decision process under a fixed policy, with features of its states.

    Its quantities are exact sums over the n states: C = ΦᵀDΦ the second moment of the features, M = ΦᵀD(γP − I)Φ and
    b = ΦᵀDr, so that TD(0) has its fixed point where M·w + b = 0.
    """

    P: Floats
    """Transition probabilities [n, n]. An end is a state without features, reward and weight in ``mu``."""
    r: Floats
    """Expected rewards [n]."""
    phi: Floats
    """Features [n, d]."""
    gamma: float
    mu: Floats
    """Stationary distribution [n]."""

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.phi.shape[1])

    @property
    def C(self) -> Floats:  # noqa: N802  (the paper's letter)
        """Second moment of the features under μ [d, d]."""
        return self.phi.T @ (self.mu[:, None] * self.phi)

    @property
    def M(self) -> Floats:  # noqa: N802
        """ΦᵀD(γP − I)Φ [d, d]."""
        return self.phi.T @ (self.mu[:, None] * (self.gamma * self.P @ self.phi - self.phi))

    @property
    def b(self) -> Floats:
        """ΦᵀDr [d]."""
        return self.phi.T @ (self.mu * self.r)

    def td_loss(self, w: Floats) -> float:
        """L_TD(w) of Eq. (1): half the mean squared TD error, over s ~ μ and s' ~ P."""
        value = self.phi @ w
        errors = self.r[:, None] + self.gamma * value[None, :] - value[:, None]
        return float(0.5 * (self.mu[:, None] * self.P * errors**2).sum())

    def best_weights(self) -> Floats:
        """Return the w that minimises L_TD: least squares over all transitions, each weighted by its probability."""
        weight = np.sqrt(self.mu[:, None] * self.P)
        rows = (weight[:, :, None] * (self.phi[:, None, :] - self.gamma * self.phi[None, :, :])).reshape(-1, self.d)
        target = (weight * self.r[:, None]).reshape(-1)
        return np.asarray(np.linalg.lstsq(rows, target, rcond=None)[0], dtype=np.float64)

    def td_fixed_point(self) -> Floats:
        """Return the w where TD(0) rests: M·w + b = 0."""
        return np.asarray(np.linalg.solve(self.M, -self.b), dtype=np.float64)

    def penalty(self, A: Floats) -> float:
        """½Σ_{i<j}(AᵀCA)_ij², the decorrelating term of Eq. (3) without λ."""
        return float(0.25 * (offdiag(A.T @ self.C @ A) ** 2).sum())

    def loss(self, A: Floats, lam: float) -> float:
        """L_REG(A) of Eq. (3)."""
        return self.td_loss(A.sum(axis=1)) + lam * self.penalty(A)

    def h(self, A: Floats, lam: float) -> Floats:
        """Semi-gradient of L_REG(A), Eq. (4): −(M·A·1 + b)1ᵀ + λCA·offdiag(AᵀCA)."""
        td = np.outer(self.M @ A.sum(axis=1) + self.b, np.ones(self.d))
        decorrelating: Floats = self.C @ A @ offdiag(A.T @ self.C @ A)
        return lam * decorrelating - td

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Independent draws of (φ(s), r, φ(s'), φ(s'')) with s ~ μ, s' ~ P(s, ·) and an independent s'' ~ μ."""
        states = rng.choice(len(self.mu), size=size, p=self.mu)
        cumulative = self.P.cumsum(axis=1)
        following = (rng.random(size)[:, None] > cumulative[states, :-1]).sum(axis=1)
        seconds = rng.choice(len(self.mu), size=size, p=self.mu)
        return self.phi[states], self.r[states], self.phi[following], self.phi[seconds]


def check_features(d: int, states: int) -> None:
    """Refuse numbers of features that cannot have full rank."""
    require(2 <= d <= states, "features", d, f"from 2 to {states}, the number of states, to have full rank")


def random_process(states: int, d: int, seed: int, gamma: float = 0.9, actions: int = 3) -> RewardProcess:
    """Draw a decision process and a policy, and return the chain that the policy makes of it, with correlated features.

    Transitions and policy are Dirichlet, rewards normal; the features are normal with a common part, which makes their
    second moment far from diagonal. They have full rank.
    """
    check_features(d, states)
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(states, 0.3), size=(states, actions))
    policy = rng.dirichlet(np.ones(actions), size=states)
    rewards = rng.standard_normal((states, actions))
    P = np.einsum("sa,sat->st", policy, transitions)
    P = 0.95 * P + 0.05 / states  # every state is reached, so that μ is unique
    values, vectors = np.linalg.eig(P.T)
    mu = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    mu /= mu.sum()
    phi = rng.standard_normal((states, d)) + rng.standard_normal((states, 1))
    phi /= np.sqrt((mu[:, None] * phi**2).sum(axis=0).mean())
    return RewardProcess(P, (policy * rewards).sum(axis=1), phi, gamma, mu)


BOYAN_FEATURES = 4


def boyan_chain(gamma: float) -> RewardProcess:
    """The chain of Boyan (2002): from state s ≥ 2 to s − 1 or s − 2 for −3, from 1 to the end 0 for −2.

    Episodes start in state 12. The four features interpolate between the states 12, 8, 4 and 0, scaled to the mean
    square 1; the values −2s of γ = 1 are linear in them.
    """
    last = 12
    P = np.zeros((last + 1, last + 1))
    P[1, 0] = 1.0
    for state in range(2, last + 1):
        P[state, [state - 1, state - 2]] = 0.5
    visits = np.linalg.solve(np.eye(last + 1) - P.T, np.eye(last + 1)[last])  # of an episode
    visits[0] = 0.0
    corners = np.array([12, 8, 4, 0])
    phi = np.maximum(1 - np.abs(np.arange(last + 1)[:, None] - corners) / 4, 0.0)
    phi[0] = 0.0
    mu = visits / visits.sum()
    phi /= np.sqrt((mu[:, None] * phi**2).sum(axis=0).mean())
    rewards = np.where(np.arange(last + 1) > 1, -3.0, -2.0)
    rewards[0] = 0.0
    return RewardProcess(P, rewards, phi, gamma, mu)


@kernel
def evaluate_reduced(
    phi: Floats,
    rewards: Floats,
    following: Floats,
    seconds: Floats,
    gamma: float,
    alphas: Floats,
    lam: float,
    estimator: int,
    A: Floats,
) -> float:
    """Take one TD(0) step of the reduced form per row of φ [steps, d], step size α_n; return the largest ‖A‖.

    A [d, d] is changed in place. ``following`` [steps, d] are the features of s', and ``seconds`` [steps, d] the
    independent samples of the two-sample estimator. A run whose ‖A‖ leaves `NORM_CAP` has diverged: it ends there and
    returns infinity.
    """
    steps, d = phi.shape
    indices = np.arange(d)
    w = A.sum(axis=1)
    weights = Weights(A, w, w, A)  # the reduced form reads A and w alone
    y, other, no_classes, workspace = np.zeros(d), np.zeros(d), np.zeros(0), np.zeros((4, d))
    largest = 0.0
    for n in range(steps):
        values = phi[n]
        delta = rewards[n] + gamma * dot_active(w, indices, following[n]) - dot_active(w, indices, values)
        transform(A, indices, values, y)
        if estimator == TWO_SAMPLE:
            transform(A, indices, seconds[n], other)
        rule = Rule(REDUCED, estimator, False, alphas[n], lam, 0.0)
        learn(rule, weights, indices, values, y, other, delta, no_classes, workspace)
        square = (A * A).sum()
        if not square < NORM_CAP**2:
            return np.inf
        largest = max(largest, square)
    return float(np.sqrt(largest))
