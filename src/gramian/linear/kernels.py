"""The linear learning steps, each in O(kd) time for k active features of d.

Notation (the paper's): φ a feature vector, given by its active ``indices`` and their ``values`` [k]; A [d, d] the
transform; y = Aᵀφ [d] the transformed features; 1 the vector of ones; δ the TD error; α the step size; λ the
coefficient of the decorrelating term. A row of A belongs to a feature, so a step changes k rows.

Three forms of the value function:

- ``PLAIN``: φᵀw, and w ← w + αδφ (with shrinkage as an option, see `learn`);
- ``REDUCED``: φᵀA·1 (Eq. 3), and A ← A + αφ(δ1 − λv)ᵀ; w = A·1 is kept beside A;
- ``FULL``: φᵀAθ (Eq. 2), and θ ← θ + αδy, A ← A + αφ(δθ − λv)ᵀ, both from the old values.

v estimates offdiag(AᵀCA)·y, the direction of the decorrelating term. The estimators differ only in v (`direction`).

Classes of exchangeable features make projected runs from A = I 5 times as fast as A [d, d] does, and with copies 20
times (51 and 56 µs a step on Mountain Car, in place of 246 and 1,206). Two features are exchangeable while they have
been active together in every step: the copies of a feature, and all features not seen yet. A maps vectors that are
constant on each class to such vectors and is the identity on what is orthogonal to them, so a run stores A in the basis
ê_c = Σ_{i∈c} e_i/√m_c, where class c has m_c ``members``. There 1 becomes √m, and y_i² y_i becomes ŷ_c² ŷ_c/m_c. Class
0 holds the features not seen yet: at first all d; every other class splits off it.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PLAIN, REDUCED, FULL = 0, 1, 2
NONE, SINGLE, TWO_SAMPLE, RUNNING, NORM, TWO_SAMPLE_NORM = 0, 1, 2, 3, 4, 5

PARALLEL = 1e-14
"""Relative size below which the part of u orthogonal to y is rounding."""


class Rule(NamedTuple):
    """How to learn: codes of form and estimator, and the coefficients in this form's own update."""

    form: int
    estimator: int
    projected: bool
    alpha: float
    lam: float
    beta: float


class Weights(NamedTuple):
    """What is learned, changed in place. A [d, d], w [d], θ [d], and the running second moment S [d, d]."""

    A: Floats
    w: Floats
    theta: Floats
    S: Floats


@kernel
def transform(A: Floats, indices: Integers, values: Floats, y: Floats) -> None:
    """Set y to Aᵀφ, two active rows at a time."""
    k = indices.size
    y[:] = 0.0
    for i in range(0, k - 1, 2):
        row, other, value, beside = indices[i], indices[i + 1], values[i], values[i + 1]
        for j in range(y.size):
            y[j] += value * A[row, j] + beside * A[other, j]
    if k % 2 == 1:
        row, value = indices[k - 1], values[k - 1]
        for j in range(y.size):
            y[j] += value * A[row, j]


@kernel
def dot_active(w: Floats, indices: Integers, values: Floats) -> float:
    """Return φᵀw."""
    total = 0.0
    for i in range(indices.size):
        total += values[i] * w[indices[i]]
    return total


@kernel
def add_active(w: Floats, indices: Integers, values: Floats, rate: float, delta: float, shrink: float) -> None:
    """Add (rate·δ − shrink)φ to w, rounded alike in every form: λ = 0 is plain learning at α·d, bit for bit."""
    step = rate * delta - shrink
    for i in range(indices.size):
        w[indices[i]] += step * values[i]


@kernel
def direction(estimator: int, y: Floats, other: Floats, S: Floats, beta: float, v: Floats) -> float:
    """Set v [d] to the estimate of offdiag(AᵀCA)·y and return Σv; ``other`` is y' = Aᵀφ' of an independent sample.

    - single: ‖y‖²y − y³, the paper's. Its mean is the gradient of ½Σ_{i<j}E[y_i²y_j²], not of ½Σ_{i<j}(E[y_i y_j])²;
    - two-sample: (y·y')y' − y∘y'∘y', whose mean is the gradient of ½Σ_{i<j}(E[y_i y_j])²;
    - norm: ‖y‖²y, the gradient of ¼‖y‖⁴: a control that shrinks features without regard to correlation;
    - two-sample norm: (y·y')y', the same control for the two-sample estimator, the gradient of ¼‖E yyᵀ‖_F²;
    - running: S ← (1−β)S + βyyᵀ, then offdiag(S)·y, in O(d²).
    """
    if estimator == RUNNING:
        v[:] = 0.0
        for i in range(y.size):
            row, scaled = S[i], beta * y[i]
            for j in range(y.size):
                row[j] = (1.0 - beta) * row[j] + scaled * y[j]
                v[j] += y[i] * row[j]
            v[i] -= y[i] * row[i]
        return float(v.sum())
    right = other if estimator in (TWO_SAMPLE, TWO_SAMPLE_NORM) else y
    product, total = 0.0, 0.0
    for j in range(y.size):
        product += y[j] * right[j]
    if estimator in (NORM, TWO_SAMPLE_NORM):
        for j in range(y.size):
            v[j] = product * right[j]
            total += v[j]
    else:
        for j in range(y.size):
            v[j] = (product - y[j] * right[j]) * right[j]
            total += v[j]
    return total


@kernel
def share_own_term(estimator: int, y: Floats, other: Floats, S: Floats, members: Floats, v: Floats) -> None:
    """Correct v for classes of several members: an estimator spares 1/m_c of a class's own part, not all of it."""
    for j in range(members.size):
        if members[j] > 1.0:
            shared = 1.0 - 1.0 / members[j]
            if estimator == SINGLE:
                v[j] += shared * y[j] ** 3
            elif estimator == TWO_SAMPLE:
                v[j] += shared * y[j] * other[j] ** 2
            elif estimator == RUNNING:
                v[j] += shared * S[j, j] * y[j]


@kernel
def add_rank_one(A: Floats, indices: Integers, values: Floats, u: Floats) -> None:
    """Add φuᵀ to A."""
    for i in range(indices.size):
        row, value = indices[i], values[i]
        for j in range(u.size):
            A[row, j] += value * u[j]


@kernel
def polar_2x2(b00: float, b01: float, b10: float, b11: float) -> tuple[float, float, float, float]:
    """Nearest orthogonal matrix of a 2×2 one: a rotation, or a reflection where the determinant is negative."""
    if b00 * b11 - b01 * b10 >= 0.0:
        cosine, sine = b00 + b11, b10 - b01
        size = math.sqrt(cosine * cosine + sine * sine)
        if size == 0.0:
            return 1.0, 0.0, 0.0, 1.0
        return cosine / size, -sine / size, sine / size, cosine / size
    cosine, sine = b00 - b11, b10 + b01
    size = math.sqrt(cosine * cosine + sine * sine)
    return cosine / size, sine / size, sine / size, -cosine / size


@kernel
def add_rank_one_projected(
    A: Floats, w: Floats, theta: Floats, y: Floats, u: Floats, first: Floats, second: Floats
) -> None:
    """Set A to polar(A + φuᵀ), for orthogonal A and y = Aᵀφ: Proposition 2 in O(d²).

    A + φuᵀ = A(I + yuᵀ), and I + yuᵀ is the identity outside span{y, u}. With W [d, 2] an orthonormal basis of it, the
    projection is A + AW(polar(I + Wᵀy uᵀW) − I)Wᵀ: a rotation in one plane. ``w`` receives the change of Aθ.
    ``first`` and ``second`` [d] are workspace for W.
    """
    d = y.size
    y_size, u_size = 0.0, 0.0
    for j in range(d):
        y_size += y[j] * y[j]
        u_size += u[j] * u[j]
    y_size, u_size = math.sqrt(y_size), math.sqrt(u_size)
    if y_size == 0.0 or u_size == 0.0:
        return
    for j in range(d):
        first[j] = y[j] / y_size
        second[j] = u[j]
    along = 0.0  # of u on y/‖y‖
    for _ in range(2):  # the second pass removes rounding
        left = 0.0
        for j in range(d):
            left += first[j] * second[j]
        for j in range(d):
            second[j] -= left * first[j]
        along += left
    across = 0.0
    for j in range(d):
        across += second[j] * second[j]
    across = math.sqrt(across)
    if across <= PARALLEL * u_size:
        across = 0.0
        second[:] = 0.0
    else:
        for j in range(d):
            second[j] /= across
    r00, r01, r10, r11 = polar_2x2(1.0 + y_size * along, y_size * across, 0.0, 1.0)
    r00 -= 1.0
    r11 -= 1.0
    theta_first, theta_second = 0.0, 0.0
    for j in range(d):
        theta_first += theta[j] * first[j]
        theta_second += theta[j] * second[j]
    for i in range(d):
        row = A[i]
        on_first, on_second = 0.0, 0.0
        for j in range(d):
            on_first += row[j] * first[j]
            on_second += row[j] * second[j]
        to_first = on_first * r00 + on_second * r10
        to_second = on_first * r01 + on_second * r11
        for j in range(d):
            row[j] += to_first * first[j] + to_second * second[j]
        w[i] += to_first * theta_first + to_second * theta_second


@kernel
def learn(
    rule: Rule,
    weights: Weights,
    indices: Integers,
    values: Floats,
    y: Floats,
    other: Floats,
    delta: float,
    members: Floats,
    workspace: Floats,
) -> None:
    """One step of any form and estimator, given the TD error δ, y = Aᵀφ and, for two samples, ``other`` = Aᵀφ'.

    ``y`` is not read by the plain form, nor by the reduced one with λ = 0 and no projection. In the reduced form
    w = A·1 follows with w ← w + α(dδ − λΣv)φ, and θ stays 1. ``members`` [classes] is empty except for classes of
    exchangeable features, which only the projected forms may have. ``workspace`` [4, d] holds v, u and the plane of the
    projection; ``workspace[1]`` is afterwards u, the change of a row of A for φ_i = 1 before any projection.

    The plain form has no transform. With the single-sample estimator it takes what that term is where all columns of A
    are equal, A = w1ᵀ/d: w ← w + α(δ − λ(d−1)/d³·(φᵀw)³)φ, the control that only shrinks values.
    """
    A, w, theta, S = weights
    form, estimator, projected, alpha, lam, beta = rule
    if form == PLAIN:
        shrink = 0.0
        if estimator == SINGLE:
            size = float(w.size)
            shrink = alpha * lam * (size - 1.0) / size**3 * dot_active(w, indices, values) ** 3
        add_active(w, indices, values, alpha, delta, shrink)
        return
    d = y.size
    v, u = workspace[0, :d], workspace[1, :d]
    v_sum = 0.0
    if estimator == NONE:
        lam = 0.0
        v[:] = 0.0
    else:
        v_sum = direction(estimator, y, other, S, beta, v)
    if form == REDUCED and not projected:
        constant, scale = alpha * delta, alpha * lam
        for j in range(d):
            u[j] = constant - scale * v[j]
        add_rank_one(A, indices, values, u)
        add_active(w, indices, values, alpha * w.size, delta, scale * v_sum)
        return
    share_own_term(estimator, y, other, S, members, v)
    for j in range(d):
        u[j] = alpha * (delta * theta[j] - lam * v[j])
    if form == FULL:
        for j in range(d):
            theta[j] += alpha * delta * y[j]
    if projected:
        add_rank_one_projected(A, w, theta, y, u, workspace[2, :d], workspace[3, :d])
    else:
        add_rank_one(A, indices, values, u)


@kernel
def split_vector(vector: Floats, n: int, new: float, rest: float) -> None:
    """Split class 0 of a vector that is constant on it: ``new``² and ``rest``² are the shares of the two parts."""
    vector[n] = new * vector[0]
    vector[0] *= rest


@kernel
def split_matrix(matrix: Floats, n: int, new: float, rest: float, outside: float) -> None:
    """Split class 0 of a matrix [n, n] that is ``outside`` times the identity on what is orthogonal to the classes."""
    for i in range(n):
        split_vector(matrix[i], n, new, rest)
    # the direction rest·ê_n − new·ê_0 is new to the basis, and an eigenvector
    matrix[n, :n] = 0.0
    matrix[n, 0], matrix[n, n] = -new * outside, rest * outside
    for j in range(n + 1):
        before, outer = matrix[0, j], matrix[n, j]
        matrix[0, j] = rest * before - new * outer
        matrix[n, j] = new * before + rest * outer


@kernel
def open_class(size: int, n: int, members: Floats, weights: Weights, Y: Floats) -> None:
    """Split ``size`` features off class 0 as class n of the weights and of the rows of Y, which are y of some φ."""
    new, rest = math.sqrt(size / members[0]), math.sqrt((members[0] - size) / members[0])
    split_matrix(weights.A, n, new, rest, 1.0)
    if weights.S.size > 0:
        split_matrix(weights.S, n, new, rest, 0.0)
    split_vector(weights.w, n, new, rest)
    split_vector(weights.theta, n, new, rest)
    for row in range(Y.shape[0]):
        split_vector(Y[row], n, new, rest)
    members[0] -= size
    members[n] = size
