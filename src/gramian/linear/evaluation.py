"""TD(0) policy evaluation over given transitions with dense features, a whole run inside one kernel."""

import numpy as np

from gramian.core.compiled import kernel
from gramian.linear.kernels import REDUCED, TWO_SAMPLE, Floats, dot_active, learn, transform

NORM_CAP = 1e6
"""Largest ‖A‖ of a run that has not diverged; near the equilibria it is about the norm of the weights."""


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

    A run whose ‖A‖ leaves `NORM_CAP` has diverged: it ends there and returns infinity.

    A [d, d] is changed in place. ``following`` [steps, d] are the features of s', and ``seconds`` [steps, d] the
    independent samples of the two-sample estimator.
    """
    steps, d = phi.shape
    indices = np.arange(d)
    w = A.sum(axis=1)
    y, other, alone, room = np.zeros(d), np.zeros(d), np.zeros(0), np.zeros((4, d))
    largest = 0.0
    for n in range(steps):
        values = phi[n]
        delta = rewards[n] + gamma * dot_active(w, indices, following[n]) - dot_active(w, indices, values)
        transform(A, indices, values, y)
        if estimator == TWO_SAMPLE:
            transform(A, indices, seconds[n], other)
        learn(
            REDUCED, estimator, False, A, w, w, A, indices, values, y, other, delta, alphas[n], lam, 0.0, 0, alone, room
        )
        square = (A * A).sum()
        if not square < NORM_CAP**2:
            return np.inf
        largest = max(largest, square)
    return float(np.sqrt(largest))
