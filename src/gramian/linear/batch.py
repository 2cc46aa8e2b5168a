"""Many runs of regression or TD(0) learn at once, in NumPy.

The steps of `gramian.linear.kernels`, written a second time, because with few features they are 25 times as fast for a
batch of runs as one by one. Arrays have the features first, then the K cases and the R runs: A [d, d, K, R].
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.linear.kernels import (
    FULL,
    NONE,
    NORM,
    PARALLEL,
    PLAIN,
    REDUCED,
    RUNNING,
    SINGLE,
    TWO_SAMPLE,
    TWO_SAMPLE_NORM,
    Floats,
    Integers,
    Rule,
)

ERROR_CAP = 1e6
"""A run whose error reaches this has diverged; its error counts as the cap from there on."""


class Samples(NamedTuple):
    """What the runs learn from: a step of TD(0) for each row; regression has no following state."""

    phi: Floats
    """φ(s) [steps, d, R]."""
    rewards: Floats
    """[steps, R]."""
    seconds: Floats
    """Independent samples of the two-sample estimator [steps, d, R]."""
    following: Floats | None = None
    """φ(s') [steps, d, R]."""
    gamma: float = 0.0


class Curves(NamedTuple):
    """How K cases of R runs learned."""

    errors: Floats
    """(w − w*)ᵀC(w − w*) after the recorded steps [K, points, R]."""
    distances: Floats
    """‖AᵀA − I‖_F/√d then [K, points, R]; NaN without A and once a run has diverged."""
    areas: Floats
    """Mean error before each step [K, R]: the area under the learning curve over its length."""
    diverged: NDArray[np.bool_]
    """[K, R]."""


def learn_runs(
    rules: list[Rule],
    samples: Samples,
    C: Floats,
    solution: Floats,
    A: Floats,
    record: Integers,
    stop: NDArray[np.bool_] | None = None,
) -> Curves:
    """Learn from ``samples`` by K rules, from A [d, d, R] and θ = 1.

    The error is taken against the ``solution`` w* [d, R] in the second moment C [d, d, R]; R may be 1 in both.
    ``record`` [points] counts steps. Setting ``stop[0]`` ends it early.
    """
    shape = len(rules), len(record), A.shape[2]
    found = Curves(np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape[::2]), np.zeros(shape[::2], bool))
    alike: dict[tuple[int, int, bool], list[int]] = {}
    for place, rule in enumerate(rules):
        alike.setdefault((rule.form, rule.estimator, rule.projected), []).append(place)
    for group in alike.values():
        if stop is not None and stop[0]:
            break
        own = _learn([rules[place] for place in group], samples, C, solution, A, record)
        for ours, theirs in zip(found, own, strict=True):
            ours[group] = theirs
    return found


def _learn(rules: list[Rule], samples: Samples, C: Floats, solution: Floats, A: Floats, record: Integers) -> Curves:
    """The same for rules that differ in α and λ alone; the plain form with a single sample shrinks, as in `learn`."""
    form, estimator, projected, _, _, beta = rules[0]
    alpha, lam = (np.array([[getattr(rule, name)] for rule in rules]) for name in ("alpha", "lam"))
    phi, rewards, seconds, following, gamma = samples
    steps, d, runs = phi.shape
    A = np.repeat(A[:, :, None], len(rules), axis=2)
    w, theta, S = A.sum(axis=1), np.ones(A.shape[1:]), np.zeros_like(A)
    errors, distances = np.full((2, len(rules), len(record), runs), np.nan)
    areas, diverged = np.zeros((len(rules), runs)), np.zeros((len(rules), runs), dtype=bool)
    with np.errstate(all="ignore"):  # of runs that diverge
        for step in range(steps + 1):
            off = w - solution[:, None]
            error = (off * (C[:, :, None] * off).sum(axis=1)).sum(axis=0)
            diverged |= ~(error < ERROR_CAP)
            error[diverged] = ERROR_CAP
            for point in np.flatnonzero(record == step) if step in record else ():
                errors[:, point] = error
                if form != PLAIN:
                    far = distance_from_orthogonal(A)
                    distances[:, point] = np.where(diverged | ~(far < ERROR_CAP), np.nan, far)
            if step == steps:
                return Curves(errors, distances, areas, diverged)
            areas += error / steps
            x = phi[step][:, None]
            delta = rewards[step] - (w * x).sum(axis=0)
            if following is not None:
                delta += gamma * (w * following[step][:, None]).sum(axis=0)
            if form == PLAIN:
                if estimator == SINGLE:
                    delta -= lam * (d - 1) / d**3 * (w * x).sum(axis=0) ** 3
                w += alpha * delta * x
                continue
            y = (A * x[:, None]).sum(axis=0)
            v = np.zeros_like(y)
            if estimator != NONE:
                other = y
                if estimator in (TWO_SAMPLE, TWO_SAMPLE_NORM):
                    other = (A * seconds[step][:, None, None]).sum(axis=0)
                v = lam * _direction(estimator, y, other, S, beta)
            u = alpha * (delta * theta - v)
            if form == FULL:
                theta += alpha * delta * y
            if projected:
                _project(A, y, u)
            else:
                A += x[:, None] * u
            if form == REDUCED and not projected:  # rounded as the plain form: λ = 0 is plain learning at α·d
                w += (alpha * d * delta - alpha * v.sum(axis=0)) * x
            else:
                w = (A * theta).sum(axis=1)
    raise AssertionError("the last step returns")


def _direction(estimator: int, y: Floats, other: Floats, S: Floats, beta: float) -> Floats:
    """The direction of the decorrelating term [d, K, R], as `gramian.linear.kernels.direction`; S is updated."""
    if estimator == RUNNING:
        S *= 1 - beta
        S += beta * y[:, None] * y
        return np.asarray((S * y).sum(axis=1) - S[np.arange(len(y)), np.arange(len(y))] * y)
    product = (y * other).sum(axis=0)
    return np.asarray((product if estimator in (NORM, TWO_SAMPLE_NORM) else product - y * other) * other)


def _project(A: Floats, y: Floats, u: Floats) -> None:
    """Set orthogonal A to polar(A + φuᵀ), y = Aᵀφ: see `gramian.linear.kernels.add_rank_one_projected`."""
    size = np.sqrt((y * y).sum(axis=0))
    first = np.divide(y, size, out=np.zeros_like(y), where=size > 0)
    along, second = np.zeros_like(size), u.copy()
    for _ in range(2):  # the second pass removes rounding
        left = (first * second).sum(axis=0)
        along += left
        second -= left * first
    across = np.sqrt((second * second).sum(axis=0))
    second = np.where(across > PARALLEL * abs(along), second / across, 0.0)
    # polar of the 2×2 matrix I + (size, 0)ᵀ(along, across): a rotation, or a reflection if its determinant is negative
    corner, side = 1 + size * along, size * across
    sign = np.where(corner >= 0, 1.0, -1.0)
    corner += sign
    norm = np.hypot(corner, side)
    on_first, on_second = ((A * vector).sum(axis=1) for vector in (first, second))
    A += (on_first * (corner / norm - 1) - on_second * sign * side / norm)[:, None] * first
    A += (on_first * side / norm + on_second * (sign * corner / norm - 1))[:, None] * second


def distance_from_orthogonal(A: Floats) -> Floats:
    """‖AᵀA − I‖_F/√d of each A [d, d, ...]."""
    gram = np.einsum("ni...,nj...->ij...", A, A)
    gram -= np.eye(len(A)).reshape(len(A), len(A), *[1] * (A.ndim - 2))
    return np.asarray(np.sqrt((gram * gram).sum(axis=(0, 1)) / len(A)))
