"""One linear learner, step by step: TD(0) policy evaluation and Q-learning on features that the caller brings."""

from collections.abc import Sequence

import numpy as np

from gramian.core.errors import UserError
from gramian.linear.arms import BETA, Arm, check_alpha, check_beta, initial_transform
from gramian.linear.kernels import Floats, Integers, Weights, dot_active, learn, transform

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
        if d < 1:
            raise UserError(f"the number of features is {d}; it must be at least 1")
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
        if (second is not None) != (self.arm.estimator == "two-sample"):
            raise UserError("a second sample goes with the estimator 'two-sample', and with no other")
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
