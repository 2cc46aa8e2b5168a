"""Copied features: one row of A stands for all copies of a feature.

Copies of a feature are active together in every step, so that their rows of A [d, d] change alike. Where the first A is
the identity or zero, they differ in a few columns for ever, those of the feature's own copies: row (i, a) of copy a has
one number in column (i, a), and in a column (i, b) the number that all other rows of i have there. With m = 1 + copies
and d = m·F features A is stored as [F, at least d + m]: the row of the first copy, and in column d + b what column
(i, b) has in rows of the other kind: b = 0 in the rows of the other copies, any other b in the row of copy b itself.

Everything is added up as with all d² numbers, in the same order: results are the same bit for bit.
"""

import numpy as np

from gramian.core.compiled import exact_kernel, kernel
from gramian.linear.kernels import Floats, Integers, transform

_LINE = 8  # numbers in a cache line


def aligned_rows(rows: int, columns: int) -> Floats:
    """Zeros [rows, at least columns] of which every row begins on a cache line, so that few reads touch two.

    Examples
    --------
    >>> aligned_rows(3, 9).shape
    (3, 16)
    """
    wide = -(-columns // _LINE) * _LINE
    given = np.zeros(rows * wide + _LINE)
    skipped = -(given.ctypes.data // given.itemsize) % _LINE
    return given[skipped : skipped + rows * wide].reshape(rows, wide)


def initial_rows(initialisation: str, features: int, copies: int) -> Floats:
    """First A of so many features with ``copies`` each, as it is stored here: the identity or zero.

    Examples
    --------
    >>> initial_rows("identity", 2, copies=1)[:, :6]
    array([[1., 0., 0., 0., 0., 1.],
           [0., 1., 0., 0., 0., 1.]])
    """
    d = features * (1 + copies)
    A = aligned_rows(features, d + (1 + copies if copies else 0))
    if initialisation == "identity":
        np.fill_diagonal(A, 1.0)
        A[:, d + 1 : d + 1 + copies] = 1.0
    return A


@exact_kernel
def _two_rows_twice(first: Floats, second: Floats, y: Floats) -> None:
    """Set y to the sum of two rows with one copy each, in the order of `transform` but in one pass."""
    for j in range(y.size):
        y[j] = ((first[j] + second[j]) + first[j]) + second[j]


@exact_kernel
def _sum_own_columns(A: Floats, active: Integers, values: Floats, copies: int, y: Floats) -> None:
    """Set y in the columns of the active features' copies, the only ones in which rows of copies differ."""
    base = y.size // (1 + copies)
    for t in range(active.size):
        for b in range(1 + copies):
            column, total = active[t] + b * base, 0.0
            for copy in range(1 + copies):
                of_other_kind = (copy == b) != (b == 0)
                for s in range(active.size):
                    total += values[s] * A[active[s], y.size + b if s == t and of_other_kind else column]
            y[column] = total


@kernel
def transform_copied(A: Floats, indices: Integers, values: Floats, copies: int, rows: Integers, y: Floats) -> None:
    """Set y [d] to Aᵀφ for A as it is stored here, or for A [d, d] without ``copies``, where this is `transform`.

    ``indices`` [k] are the active features, copy by copy; ``rows`` [k] is room.
    """
    if copies == 0:
        transform(A, indices, values, y)
        return
    tilings = indices.size // (1 + copies)
    if tilings == 2 and copies == 1:
        _two_rows_twice(A[indices[0], : y.size], A[indices[1], : y.size], y)
    else:
        for copy in range(1 + copies):
            for t in range(tilings):
                rows[copy * tilings + t] = indices[t]
        transform(A, rows, values, y)
    _sum_own_columns(A, indices[:tilings], values, copies, y)
