"""The penalties of the arms and their gradients, with the formulas of `gramian.deep.agent.penalty_gradients`."""

from typing import NamedTuple

import numpy as np

from gramian.core.compiled import kernel
from gramian.deep.engines.kernels.matrices import Matrix, Number, Vector, center, combine, copy, dots, transpose

NONE, DECOR, GRAM, UNBIASED, NORM, CROSS, L2 = range(7)
"""What an arm penalises."""
KINDS = {"decor": DECOR, "gram": GRAM, "gram-unbiased": UNBIASED, "norm": NORM, "cross": CROSS, "l2": L2}
"""By the names of the arms."""


class Workspace(NamedTuple):
    """The workspace of `penalise`, for n samples of d features."""

    x: Matrix
    """X, ``[n, d]``"""
    turned: Matrix
    """Xᵀ, ``[d, n]``, for ``decor``"""
    products: Matrix
    """``[n, n]``; for ``decor`` ``[d, d]``"""
    columns: Matrix
    """Sums over the samples, ``[4, d]``"""
    rows: Vector
    """Sums over the features, ``[n]``"""


def workspace(kind: int, samples: int, width: int) -> Workspace:
    """The workspace that ``kind`` needs.

    Examples
    --------
    >>> [array.shape for array in workspace(GRAM, samples=32, width=128)]
    [(32, 128), (0, 0), (32, 32), (4, 128), (32,)]
    """
    side, turned = (width, (width, samples)) if kind == DECOR else (samples, (0, 0))
    shapes = (samples, width), turned, (side, side), (4, width), (samples,)
    return Workspace(*(np.zeros(shape, np.float32) for shape in shapes))


@kernel
def penalise(kind: int, centered: bool, features: Matrix, workspace: Workspace, gradient: Matrix) -> np.float32:
    """The penalty of ``features`` ``[n, d]``; its gradient goes to ``gradient`` ``[n, d]``.

    Examples
    --------
    >>> features, gradient = np.array([[1, 2], [3, 6]], np.float32), np.zeros((2, 2), np.float32)
    >>> penalise(GRAM, True, features, workspace(GRAM, 2, 2), gradient)
    8.0
    >>> gradient
    array([[-8., -4.],
           [ 8.,  4.]], dtype=float32)
    """
    x, products, mean = workspace.x, workspace.products, workspace.columns[0]
    n = np.float32(features.shape[0])
    copy(features, x)
    if centered:
        center(x, mean)
        center(x, mean)  # a float32 mean of large numbers is itself rounded
    if kind == L2:
        return scaled(x, np.float32(2) / n, gradient) / n
    if kind == NORM:
        value = norm(x, gradient)
    else:
        # Each product stands here once: compiling them takes long.
        left, right = products, x
        if kind == DECOR:
            transpose(x, workspace.turned)
            combine(workspace.turned, x, products)
            left, right = x, products
        else:
            dots(x, x, products)
        value = strip(products, np.float32(1) if kind == UNBIASED else np.float32(1) / n, kind != GRAM)
        combine(left, right, gradient)
        if kind == UNBIASED:
            value = unbiased(x, value, centered, workspace, gradient)
        elif kind == GRAM:
            value -= without_variance(x, mean, gradient)
        else:
            scaled(gradient, np.float32(4) / n, gradient)
    if centered and kind in (NORM, CROSS):
        center(gradient, mean)
    return value


@kernel
def scaled(x: Matrix, factor: Number, gradient: Matrix) -> np.float32:
    """``factor`` times X; gives ‖X‖²."""
    total = np.float32(0)
    for a in range(x.shape[0]):
        row, out = x[a], gradient[a]
        for i in range(row.size):
            total += row[i] * row[i]
            out[i] = factor * row[i]
    return total


@kernel
def norm(x: Matrix, gradient: Matrix) -> np.float32:
    """Σ_a G_aa², and its gradient with respect to X."""
    n = np.float32(x.shape[0])
    value = np.float32(0)
    for a in range(x.shape[0]):
        row, out = x[a], gradient[a]
        square = np.float32(0)
        for i in range(row.size):
            square += row[i] * row[i]
        square /= n
        value += square * square
        for i in range(row.size):
            out[i] = np.float32(4) / n * square * row[i]
    return value


@kernel
def strip(matrix: Matrix, factor: Number, offdiag: bool) -> np.float32:
    """Multiply by ``factor``, and with ``offdiag`` set the diagonal to zero; gives the sum of the squares."""
    total = np.float32(0)
    for a in range(matrix.shape[0]):
        row = matrix[a]
        if offdiag:
            row[a] = np.float32(0)
        for b in range(row.size):
            row[b] *= factor
            total += row[b] * row[b]
    return total


@kernel
def without_variance(x: Matrix, variance: Vector, gradient: Matrix) -> np.float32:
    """From GX in ``gradient`` make 4/n · (GX - X∘v), the gradient of ``gram``; gives ‖v‖²."""
    samples, width = x.shape
    n = np.float32(samples)
    variance[:] = np.float32(0)
    for a in range(samples):
        row = x[a]
        for i in range(width):
            variance[i] += row[i] * row[i]
    value = np.float32(0)
    for i in range(width):
        variance[i] /= n
        value += variance[i] * variance[i]
    for a in range(samples):
        row, out = x[a], gradient[a]
        for i in range(width):
            out[i] = np.float32(4) / n * (out[i] - row[i] * variance[i])
    return value


@kernel
def unbiased(x: Matrix, value: np.float32, centered: bool, workspace: Workspace, gradient: Matrix) -> np.float32:
    """`penalty_gradients.gram_unbiased`, with its names, from ‖K‖² and with Kx in ``gradient``."""
    samples, width = x.shape
    n = np.float32(samples)
    products, rows = workspace.products, workspace.rows
    p1, p2, p3, p4 = workspace.columns[0], workspace.columns[1], workspace.columns[2], workspace.columns[3]
    workspace.columns[:] = np.float32(0)
    for a in range(samples):
        row = x[a]
        for i in range(width):
            square = row[i] * row[i]
            p1[i] += row[i]
            p2[i] += square
            p3[i] += square * row[i]
            p4[i] += square * square
    for i in range(width):
        value -= p2[i] * p2[i] - p4[i]
    for a in range(samples):
        row, out = x[a], gradient[a]
        for i in range(width):
            out[i] = np.float32(4) * (out[i] - p2[i] * row[i] + row[i] * row[i] * row[i])
    if not centered:
        scaled(gradient, np.float32(1) / (n * (n - np.float32(1))), gradient)
        return value / (n * (n - np.float32(1)))
    everything = total = row_terms = np.float32(0)
    for a in range(samples):
        rows[a] = np.float32(0)
        for b in range(samples):
            rows[a] += products[a, b]
        everything += rows[a]
        row_terms += rows[a] * rows[a]
    # rᵀx, for which p4 is free once its sum is taken
    for i in range(width):
        column = p1[i] * p1[i] - p2[i]
        total -= column * column
        row_terms -= p1[i] * p1[i] * p2[i] - np.float32(2) * p1[i] * p3[i] + p4[i]
        p4[i] = np.float32(0)
    total += everything * everything
    for a in range(samples):
        row = x[a]
        for i in range(width):
            p4[i] += rows[a] * row[i]
    whole = np.float32(4) / ((n - np.float32(1)) * (n - np.float32(2)))
    part = np.float32(4) / (n - np.float32(2))
    scale = np.float32(1) / (n * (n - np.float32(3)))
    for a in range(samples):
        row, out = x[a], gradient[a]
        for i in range(width):
            own, first = row[i], p1[i]
            column = first * first - p2[i]
            by_rows = p4[i] + rows[a] * (first - np.float32(2) * own) - first * p2[i] - first * first * own + p3[i]
            by_rows += np.float32(3) * first * own * own - np.float32(2) * own * own * own
            out[i] = scale * (out[i] + whole * (everything - column) * (first - own) - part * by_rows)
    value += total / ((n - np.float32(1)) * (n - np.float32(2))) - row_terms * (np.float32(2) / (n - np.float32(2)))
    return value * scale
