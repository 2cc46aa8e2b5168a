"""The linear learning steps, each in O(kd) time for k active features of d.

Notation (the paper's): φ a feature vector, given by its active ``indices`` and their ``values`` [k]; A [d, d] the
transform; y = Aᵀφ [d] the transformed features; 1 the vector of ones; δ the TD error; α the step size; λ the
coefficient of the decorrelating term. A row of A belongs to a feature, so that a step touches k rows.

Three forms of the value function:

- ``PLAIN``: φᵀw, and w ← w + αδφ (with shrinkage as an option, see `learn`);
- ``REDUCED``: φᵀA·1 (Eq. 3), and A ← A + αφ(δ1 − λv)ᵀ; w = A·1 is kept beside A;
- ``FULL``: φᵀAθ (Eq. 2), and θ ← θ + αδy, A ← A + αφ(δθ − λv)ᵀ, both from the old values.

v is an estimate of offdiag(AᵀCA)·y, the direction of the decorrelating term; the estimators differ in it alone.
"""

import math

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PLAIN, REDUCED, FULL = 0, 1, 2
NONE, SINGLE, TWO_SAMPLE, RUNNING, NORM = 0, 1, 2, 3, 4

PARALLEL = 1e-14
"""Relative size below which what is left of u beside y is rounding."""

_BLOCK = 1024  # columns: 8 kB of every vector, so that three or four lie in the first cache together


@kernel
def transform(A: Floats, indices: Integers, values: Floats, y: Floats) -> None:
    """Set y to Aᵀφ, the sum of the active rows of A, block by block of columns; only ``y.size`` columns are read.

    A block of y stays in the first cache while the rows pass by, two at a time.
    """
    k = indices.size
    if k == 0:
        y[:] = 0.0
        return
    for start in range(0, y.size, _BLOCK):
        stop = min(start + _BLOCK, y.size)
        part = y[start:stop]
        if k % 2 == 0:
            row, value = A[indices[0], start:stop], values[0]
            next_row, next_value = A[indices[1], start:stop], values[1]
            for j in range(part.size):
                part[j] = value * row[j] + next_value * next_row[j]
        else:
            row, value = A[indices[k - 1], start:stop], values[k - 1]
            for j in range(part.size):
                part[j] = value * row[j]
        for i in range(2 - 2 * (k % 2), k - 1, 2):
            row, value = A[indices[i], start:stop], values[i]
            next_row, next_value = A[indices[i + 1], start:stop], values[i + 1]
            for j in range(part.size):
                part[j] += value * row[j] + next_value * next_row[j]


@kernel
def dot_active(w: Floats, indices: Integers, values: Floats) -> float:
    """Return φᵀw."""
    total = 0.0
    for i in range(indices.size):
        total += values[i] * w[indices[i]]
    return total


@kernel
def add_active(w: Floats, indices: Integers, values: Floats, rate: float, delta: float, shrink: float) -> None:
    """Add (rate·δ − shrink)φ to w, rounded alike for every form: λ = 0 is plain learning at α·d, bit for bit."""
    step = rate * delta - shrink
    for i in range(indices.size):
        w[indices[i]] += step * values[i]


@kernel
def single_sample(y: Floats, v: Floats) -> float:
    """Set v to ‖y‖²y − y³ and return Σv: the paper's estimator, the gradient of ½Σ_{i<j}(y_i y_j)² through y = Aᵀφ.

    Its mean is the gradient of ½Σ_{i<j}E[y_i²y_j²], not of ½Σ_{i<j}(E[y_i y_j])²: one sample stands in both factors.
    """
    square, total = 0.0, 0.0
    for j in range(y.size):
        square += y[j] * y[j]
    for j in range(y.size):
        v[j] = (square - y[j] * y[j]) * y[j]
        total += v[j]
    return total


@kernel
def norm_only(y: Floats, v: Floats) -> float:
    """Set v to ‖y‖²y and return Σv: the gradient of ¼‖y‖⁴ = ¼‖yyᵀ‖_F², where the diagonal is penalised like the rest.

    The control for the single-sample term: it shrinks features and knows nothing of correlation.
    """
    square, total = 0.0, 0.0
    for j in range(y.size):
        square += y[j] * y[j]
    for j in range(y.size):
        v[j] = square * y[j]
        total += v[j]
    return total


@kernel
def two_samples(y: Floats, other: Floats, v: Floats) -> float:
    """Set v to (y·y')y' − y∘y'∘y' and return Σv, with y' = Aᵀφ' of an independent sample.

    Its mean is the gradient of ½Σ_{i<j}(E[y_i y_j])², what the paper means to minimise.
    """
    product, total = 0.0, 0.0
    for j in range(y.size):
        product += y[j] * other[j]
    for j in range(y.size):
        v[j] = (product - y[j] * other[j]) * other[j]
        total += v[j]
    return total


@kernel
def running_moment(S: Floats, y: Floats, beta: float, v: Floats) -> float:
    """Set S to (1−β)S + βyyᵀ, then v to offdiag(S)·y, and return Σv: O(d²), in one pass over S [d, d]."""
    v[:] = 0.0
    for i in range(y.size):
        row, scaled = S[i], beta * y[i]
        for j in range(y.size):
            row[j] = (1.0 - beta) * row[j] + scaled * y[j]
            v[j] += y[i] * row[j]
        v[i] -= y[i] * row[i]
    return float(v.sum())


@kernel
def share_own_term(estimator: int, y: Floats, other: Floats, S: Floats, members: Floats, v: Floats) -> None:
    """Correct v for classes of several members (`gramian.linear.exchangeable`).

    An estimator spares the diagonal, a feature's own part; of a class's that is one in m_c. ``members`` is empty where
    every feature stands alone.
    """
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
    """Add φuᵀ to A, block by block of columns: a block of u stays in the first cache for all active rows."""
    for start in range(0, u.size, _BLOCK):
        stop = min(start + _BLOCK, u.size)
        part = u[start:stop]
        for i in range(indices.size):
            row, value = A[indices[i], start:stop], values[i]
            for j in range(part.size):
                row[j] += value * part[j]


@kernel
def add_rank_one_reduced(
    A: Floats, indices: Integers, values: Floats, constant: float, slope: float, v: Floats
) -> None:
    """Add φ(constant·1 − slope·v)ᵀ to A without storing the row that is added, in blocks like `add_rank_one`."""
    for start in range(0, v.size, _BLOCK):
        stop = min(start + _BLOCK, v.size)
        part = v[start:stop]
        for i in range(indices.size):
            row, value = A[indices[i], start:stop], values[i]
            if slope == 0.0:
                for j in range(part.size):
                    row[j] += value * constant
            else:
                for j in range(part.size):
                    row[j] += value * (constant - slope * part[j])


@kernel
def add_rank_one_own(
    A: Floats, indices: Integers, values: Floats, copies: int, constant: float, slope: float, v: Floats
) -> None:
    """Add φ(constant·1 − slope·v)ᵀ to the columns from d on of A as `gramian.linear.copied` stores it."""
    base, tilings = v.size // (1 + copies), indices.size // (1 + copies)
    for t in range(tilings):
        for b in range(1 + copies):
            A[indices[t], v.size + b] += values[t] * (constant - slope * v[indices[t] + b * base])


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
    projection is A + AW(polar(I + Wᵀy uᵀW) − I)Wᵀ: a rotation in one plane. One pass over A does it row by row.
    ``w`` receives the change of Aθ, so that it remains Aθ if it was. ``first`` and ``second`` [d] are room for W.
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
    for _ in range(2):  # twice is enough: the second time removes what rounding left
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
    form: int,
    estimator: int,
    projected: bool,
    A: Floats,
    w: Floats,
    theta: Floats,
    S: Floats,
    indices: Integers,
    values: Floats,
    y: Floats,
    other: Floats,
    delta: float,
    alpha: float,
    lam: float,
    beta: float,
    copies: int,
    members: Floats,
    room: Floats,
) -> None:
    """One step of any form and estimator, given the TD error δ, y = Aᵀφ and, for two samples, ``other`` = Aᵀφ'.

    ``y`` is not read by the plain form, nor by the reduced one with λ = 0 and no projection. In the reduced form
    w = A·1 follows with w ← w + α(dδ − λΣv)φ, and θ stays 1. ``copies`` is 0, or A is that of so many copies of every
    feature (`gramian.linear.copied`), without projection or a running estimate. ``members`` is for exchangeable
    features, which the projected forms alone may have; empty otherwise. ``room`` [4, d] holds v and u, and the plane of
    the projection; in the full form ``room[1]`` is then u, the change of a row of A for φ_i = 1 before any projection.

    The plain form has no transform. With the single-sample estimator it takes what that term becomes where all columns
    of A are equal, A = w1ᵀ/d, and nothing is left to decorrelate: w ← w + α(δ − λ(d−1)/d³·(φᵀw)³)φ. It is the control
    that shrinks values and does nothing else.
    """
    if form == PLAIN:
        shrink = 0.0
        if estimator == SINGLE:
            size = float(w.size)
            shrink = alpha * lam * (size - 1.0) / size**3 * dot_active(w, indices, values) ** 3
        add_active(w, indices, values, alpha, delta, shrink)
        return
    d = y.size
    v, u = room[0, :d], room[1, :d]
    active = indices[: indices.size // (1 + copies)]
    v_sum = 0.0
    if estimator == SINGLE:
        v_sum = single_sample(y, v)
    elif estimator == TWO_SAMPLE:
        v_sum = two_samples(y, other, v)
    elif estimator == RUNNING:
        v_sum = running_moment(S, y, beta, v)
    elif estimator == NORM:
        v_sum = norm_only(y, v)
    else:
        lam = 0.0
        v[:] = 0.0
    if form == REDUCED and not projected:
        add_rank_one_reduced(A, active, values, alpha * delta, alpha * lam, v)
        if copies > 0:
            add_rank_one_own(A, indices, values, copies, alpha * delta, alpha * lam, v)
        add_active(w, indices, values, alpha * w.size, delta, alpha * lam * v_sum)
        return
    share_own_term(estimator, y, other, S, members, v)
    if form == FULL:
        for j in range(d):
            u[j] = alpha * (delta * theta[j] - lam * v[j])
            theta[j] += alpha * delta * y[j]
    else:
        for j in range(d):
            u[j] = alpha * (delta * theta[j] - lam * v[j])
    if projected:
        add_rank_one_projected(A, w, theta, y, u, room[2, :d], room[3, :d])
        return
    add_rank_one(A, active, values, u)
    if copies > 0:
        add_rank_one_own(A, indices, values, copies, 0.0, -1.0, u)
