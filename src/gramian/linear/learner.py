"""A linear value function, step by step, and what is compared: form, estimator of the term, λ and projection."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramian.core.errors import UserError, require, unknown
from gramian.linear.kernels import (
    FULL,
    NONE,
    NORM,
    PLAIN,
    REDUCED,
    RUNNING,
    SINGLE,
    TWO_SAMPLE,
    TWO_SAMPLE_NORM,
    Floats,
    Integers,
    Rule,
    Weights,
    dot_active,
    learn,
    transform,
)

FORMS = {"plain": PLAIN, "reduced": REDUCED, "full": FULL}
ESTIMATORS = {
    "none": NONE,
    "single": SINGLE,
    "two-sample": TWO_SAMPLE,
    "running": RUNNING,
    "norm": NORM,
    "two-sample-norm": TWO_SAMPLE_NORM,
}
INITIALISATIONS = ("identity", "orthogonal", "zero")
BETA = 0.01


@dataclass(frozen=True)
class Arm:
    """One way to learn a linear value function.

    Parameters
    ----------
    form
        ``plain`` (φᵀw), ``reduced`` (φᵀA·1, Eq. 3) or ``full`` (φᵀAθ, Eq. 2).
    estimator
        Of the decorrelating term: ``none``, ``single`` (the paper's), ``two-sample`` (unbiased) or ``running`` (a
        running second-moment matrix). ``norm`` and ``two-sample-norm`` are controls that shrink features without regard
        to correlation. ``plain`` takes ``none`` or ``single``, which then shrinks values.
    lam
        The coefficient λ of the term.
    projected
        Whether A is projected onto the orthogonal matrices after each step.

    Examples
    --------
    >>> arm = Arm("plain")
    >>> alpha = arm.alpha(0.01, d=4)
    >>> alpha, arm.rule(alpha).alpha
    (0.04, 0.04)
    """

    form: str
    estimator: str = "none"
    lam: float = 0.0
    projected: bool = False

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise unknown("form", self.form, FORMS)
        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)
        check_lambda(self.lam)
        if self.form == "plain" and (self.projected or self.estimator not in ("none", "single")):
            raise UserError(
                f"the plain form has no transform A: no projection and no {self.estimator!r} estimator; use 'reduced'"
            )
        if (self.estimator == "none") != (self.lam == 0):
            raise UserError(f"λ is {self.lam:g} with the estimator {self.estimator!r}; λ = 0 goes with 'none' alone")

    @property
    def name(self) -> str:
        """Form, estimator and projection in words, without λ."""
        words = [self.form] + ["projected"] * self.projected
        if self.estimator != "none":
            words.append("shrinkage" if self.form == "plain" else self.estimator)
        return " ".join(words)

    @property
    def two_samples(self) -> bool:
        """Whether a step needs a second, independent sample."""
        return self.estimator.startswith("two-sample")

    def alpha(self, transform_alpha: float, d: int) -> float:
        """Step size of this arm that matches ``transform_alpha``, the step size of A, with d features.

        φ1ᵀ·1 = dφ: w = A·1 learns at α·d, so the plain form gets α·d.
        """
        return transform_alpha * d if self.form == "plain" else transform_alpha

    def rule(self, alpha: float, beta: float = BETA) -> Rule:
        """The arm for the kernels, with α of its own update and the rate β of a running second moment."""
        return Rule(FORMS[self.form], ESTIMATORS[self.estimator], self.projected, alpha, self.lam, beta)


def check_lambda(lam: float) -> None:
    """Refuse a coefficient λ that is not finite or negative."""
    require(math.isfinite(lam) and lam >= 0, "λ", lam, "a finite number, at least 0")


def check_beta(beta: float) -> None:
    """Refuse a rate β of a running second moment outside of (0, 1]."""
    require(0 < beta <= 1, "beta", beta, "in (0, 1]")


def check_alpha(alpha: float, name: str = "alpha") -> None:
    """Refuse a step size that is not finite or not above 0."""
    require(0 < alpha < math.inf, name, alpha, "a number above 0")


def check_lambdas(lambdas: Sequence[float]) -> None:
    """Refuse λ that are not different numbers above 0; λ = 0 is always among the controls."""
    for lam in lambdas:
        check_lambda(lam)
        if lam == 0:
            raise UserError("λ = 0 is always run as a control; list only the λ above 0")
    if len(set(lambdas)) != len(lambdas) or not lambdas:
        raise UserError(f"the λ to try are {tuple(lambdas)}; give at least one, each once")


def initial_transform(initialisation: str, d: int, rng: np.random.Generator) -> Floats:
    """First A [d, d]: the identity, a random orthogonal matrix (Haar) or zero."""
    if initialisation == "identity":
        return np.eye(d)
    if initialisation == "zero":
        return np.zeros((d, d))
    if initialisation == "orthogonal":
        Q, R = np.linalg.qr(rng.standard_normal((d, d)))
        return np.ascontiguousarray(Q * np.sign(np.diag(R)))
    raise unknown("initialisation", initialisation, INITIALISATIONS)


Sparse = tuple[Integers, Floats]
"""Active indices and their values, both [k]."""

_NO_CLASSES: Floats = np.zeros(0)


class Learner:
    """A linear value function with the decorrelating step, in O(kd) per step (O(d²) if projected or ``running``).

    Features are a dense vector [d], or the pair (indices, values) of the active ones. Every form starts from the same
    value function: w = A·1.

    Parameters
    ----------
    d
        Number of features.
    arm
        What to learn with.
    alpha
        Step size α of the transform A; the plain form takes α·d (`Arm.alpha`).
    initialisation
        ``identity``, ``orthogonal`` or ``zero``. From zero all columns of A stay equal.
    beta
        Rate of the running second-moment matrix.
    seed
        Of the random orthogonal initialisation.

    Examples
    --------
    >>> learner = Learner(2, Arm("reduced", "single", 0.01), alpha=0.1)
    >>> phi, next_phi = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> learner.value(phi)
    1.0
    >>> learner.td_step(phi, reward=1.0, next_phi=next_phi, gamma=0.5)
    0.5
    >>> round(learner.value(phi), 12)
    1.1
    >>> round(learner.q_step(phi, reward=0.0, next_phis=[phi, next_phi], gamma=0.5), 12)
    -0.55
    """

    def __init__(
        self,
        d: int,
        arm: Arm,
        *,
        alpha: float,
        initialisation: str = "identity",
        beta: float = BETA,
        seed: int = 0,
    ) -> None:
        require(d >= 1, "the number of features", d, "at least 1")
        check_alpha(alpha)
        check_beta(beta)
        A = initial_transform(initialisation, d, np.random.default_rng(seed))
        if arm.projected and initialisation == "zero":
            raise UserError("A = 0 is not orthogonal; a projected learner starts from 'identity' or 'orthogonal'")
        self.arm, self.d = arm, d
        self.w: Floats = A.sum(axis=1)
        self.theta: Floats = np.ones(d)
        self.A: Floats = np.zeros((0, 0)) if arm.form == "plain" else A
        self._rule = arm.rule(arm.alpha(alpha, d), beta)
        S = np.zeros((d, d) if arm.estimator == "running" else (0, 0))
        self._weights = Weights(self.A, self.w, self.theta, S)
        self._y, self._other, self._workspace = np.zeros(d), np.zeros(d), np.zeros((4, d))

    def value(self, phi: Floats | Sparse) -> float:
        """φᵀw, φᵀA·1 or φᵀAθ."""
        indices, values = self._active(phi)
        if self.arm.form == "full":
            transform(self.A, indices, values, self._y)
            return float(np.dot(self._y, self.theta))
        return float(dot_active(self.w, indices, values))

    def td_step(
        self,
        phi: Floats | Sparse,
        reward: float,
        next_phi: Floats | Sparse | None,
        gamma: float,
        second: Floats | Sparse | None = None,
    ) -> float:
        """TD(0): learn from one transition and return δ = r + γ·value(φ') − value(φ); no ``next_phi`` at the end.

        ``second`` is the independent sample that the two-sample estimator needs.
        """
        return self.q_step(phi, reward, () if next_phi is None else (next_phi,), gamma, second)

    def q_step(
        self,
        phi: Floats | Sparse,
        reward: float,
        next_phis: Sequence[Floats | Sparse],
        gamma: float,
        second: Floats | Sparse | None = None,
    ) -> float:
        """Q-learning: δ = r + γ max over ``next_phis``, one per action in s', − value(φ); none where s' is terminal."""
        if (second is not None) != self.arm.two_samples:
            raise UserError("a second sample goes with the estimators 'two-sample' and 'two-sample-norm' alone")
        bootstrap = max((self.value(next_phi) for next_phi in next_phis), default=0.0)
        delta = reward + gamma * bootstrap - self.value(phi)
        indices, values = self._active(phi)
        if self.arm.form != "plain":
            transform(self.A, indices, values, self._y)
        if second is not None:
            transform(self.A, *self._active(second), self._other)
        learn(self._rule, self._weights, indices, values, self._y, self._other, delta, _NO_CLASSES, self._workspace)
        return delta

    def _active(self, phi: Floats | Sparse) -> Sparse:
        if isinstance(phi, tuple):
            given, values = np.asarray(phi[0]), np.asarray(phi[1], dtype=np.float64)
            if given.size and given.dtype.kind not in "iu":
                raise UserError(f"sparse features have indices of type {given.dtype}; they must be integers")
            indices = given.astype(np.int64)
            if indices.ndim != 1 or indices.shape != values.shape:
                raise UserError(
                    f"sparse features have indices {indices.shape} and values {values.shape}; both must be [k]"
                )
            # the kernels do not check bounds
            if indices.size and not (indices.min() >= 0 and indices.max() < self.d):
                raise UserError(f"sparse features have indices {indices.min()} to {indices.max()}; d is {self.d}")
        else:
            values = np.asarray(phi)
            if values.shape != (self.d,):
                raise UserError(f"features have the shape {values.shape}; this learner takes ({self.d},)")
            indices, values = np.arange(self.d), np.ascontiguousarray(values, dtype=np.float64)
        if not np.isfinite(values).all():  # it would spoil the weights for ever
            raise UserError(f"a feature is {values[~np.isfinite(values)][0]}; features must be finite numbers")
        return indices, values
