"""Products of float32 matrices, each on one core, with their sums in registers.

A processor that adds up products fastest keeps a block of sums in its registers and lets each number that it fetches
take part in several of them. Here a block is six rows by sixteen columns: in each turn of the innermost loop 16 numbers
of one factor and six of the other make 96 products. Strides say where numbers lie, so that either factor may be
transposed; the sixteen columns lie side by side.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import fixed_kernel, inlined_kernel
from gramian.deep.engines.kernels.vectors import load16, multiply_add, spread16, store, zeros16

Numbers: TypeAlias = NDArray[np.float32]

PANEL = 16
"""Columns of a block."""


@inlined_kernel
def _keep(sums, out, place, adds):  # type: ignore[no-untyped-def] # vectors have no type in Python
    store(load16(out, place) + sums if adds else sums, out, place)


@inlined_kernel
def _six(left, at, row, step, right, to, jump, out, place, width, depth, adds):  # type: ignore[no-untyped-def]
    s0 = s1 = s2 = s3 = s4 = s5 = zeros16()
    for k in range(depth):
        b, a = load16(right, to + k * jump), at + k * step
        s0 = multiply_add(spread16(left, a), b, s0)
        s1 = multiply_add(spread16(left, a + row), b, s1)
        s2 = multiply_add(spread16(left, a + 2 * row), b, s2)
        s3 = multiply_add(spread16(left, a + 3 * row), b, s3)
        s4 = multiply_add(spread16(left, a + 4 * row), b, s4)
        s5 = multiply_add(spread16(left, a + 5 * row), b, s5)
    _keep(s0, out, place, adds)
    _keep(s1, out, place + width, adds)
    _keep(s2, out, place + 2 * width, adds)
    _keep(s3, out, place + 3 * width, adds)
    _keep(s4, out, place + 4 * width, adds)
    _keep(s5, out, place + 5 * width, adds)


@inlined_kernel
def _four(left, at, row, step, right, to, jump, out, place, width, depth, adds):  # type: ignore[no-untyped-def]
    s0 = s1 = s2 = s3 = zeros16()
    for k in range(depth):
        b, a = load16(right, to + k * jump), at + k * step
        s0 = multiply_add(spread16(left, a), b, s0)
        s1 = multiply_add(spread16(left, a + row), b, s1)
        s2 = multiply_add(spread16(left, a + 2 * row), b, s2)
        s3 = multiply_add(spread16(left, a + 3 * row), b, s3)
    _keep(s0, out, place, adds)
    _keep(s1, out, place + width, adds)
    _keep(s2, out, place + 2 * width, adds)
    _keep(s3, out, place + 3 * width, adds)


@inlined_kernel
def _one(left, at, step, right, to, jump, out, place, depth, adds):  # type: ignore[no-untyped-def]
    sums = zeros16()
    for k in range(depth):
        sums = multiply_add(spread16(left, at + k * step), load16(right, to + k * jump), sums)
    _keep(sums, out, place, adds)


@fixed_kernel(
    "void(float32[::1], intp, intp, intp, float32[::1], intp, intp, float32[::1], intp, intp, intp, intp, boolean)"
)
def multiply(
    left: Numbers,
    at: int,
    row: int,
    step: int,
    right: Numbers,
    to: int,
    jump: int,
    out: Numbers,
    place: int,
    width: int,
    rows: int,
    depth: int,
    adds: bool,
) -> None:
    """Sixteen columns of a product: out[r, j] = Σ_k left[r, k] · right[k, j], or that is added to what is there.

    Matrices are given as flat arrays, and nobody checks that they are large enough. A sum is made in the order of k:
    no number depends on how many rows there are.

    Parameters
    ----------
    left, at, row, step
        left[r, k] lies at ``at + r·row + k·step``.
    right, to, jump
        right[k, j] lies at ``to + k·jump + j``.
    out, place, width
        out[r, j] lies at ``place + r·width + j``.
    rows, depth
        Of the product; how many k there are.
    adds
        Whether it is added to what is there.

    Examples
    --------
    >>> left, right = np.ones((2, 3), np.float32), np.arange(48, dtype=np.float32).reshape(3, 16)
    >>> out = np.zeros((2, 16), np.float32)
    >>> multiply(left.ravel(), 0, 3, 1, right.ravel(), 0, 16, out.ravel(), 0, 16, 2, 3, False)
    >>> out[1, :3]
    array([48., 51., 54.], dtype=float32)
    """
    r = 0
    while r < rows:
        left_over = rows - r
        if left_over == 6 or left_over > 9:
            _six(left, at + r * row, row, step, right, to, jump, out, place + r * width, width, depth, adds)
            r += 6
        elif left_over >= 4:
            _four(left, at + r * row, row, step, right, to, jump, out, place + r * width, width, depth, adds)
            r += 4
        else:
            _one(left, at + r * row, step, right, to, jump, out, place + r * width, depth, adds)
            r += 1
