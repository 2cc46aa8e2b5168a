"""Products of small float32 matrices, each on one core.

Sixteen running sums at a time stay in registers, and the innermost loops go over contiguous memory, so that they
become vector instructions.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import kernel

Number: TypeAlias = float | np.float32
Vector: TypeAlias = NDArray[np.float32]
Matrix: TypeAlias = NDArray[np.float32]

TILE = 512
"""Columns that `combine` works on at a time: four rows of its result, so wide, stay in the innermost cache."""


@kernel
def dots(left: Matrix, right: Matrix, out: Matrix) -> None:
    """LRᵀ: the inner products of the rows of ``left`` ``[M, K]`` with those of ``right`` ``[N, K]``, ``[M, N]``."""
    # At the edges the last row takes the places of those that are missing, and its products are found again.
    bottom, end = left.shape[0] - 1, right.shape[0] - 1
    for n in range(0, end + 1, 4):
        n1, n2, n3 = min(n + 1, end), min(n + 2, end), min(n + 3, end)
        r0, r1, r2, r3 = right[n], right[n1], right[n2], right[n3]
        for m in range(0, bottom + 1, 4):
            m1, m2, m3 = min(m + 1, bottom), min(m + 2, bottom), min(m + 3, bottom)
            l0, l1, l2, l3 = left[m], left[m1], left[m2], left[m3]
            s00 = s01 = s02 = s03 = np.float32(0)
            s10 = s11 = s12 = s13 = np.float32(0)
            s20 = s21 = s22 = s23 = np.float32(0)
            s30 = s31 = s32 = s33 = np.float32(0)
            for k in range(l0.size):
                a, b, c, d = r0[k], r1[k], r2[k], r3[k]
                s00 += l0[k] * a
                s01 += l0[k] * b
                s02 += l0[k] * c
                s03 += l0[k] * d
                s10 += l1[k] * a
                s11 += l1[k] * b
                s12 += l1[k] * c
                s13 += l1[k] * d
                s20 += l2[k] * a
                s21 += l2[k] * b
                s22 += l2[k] * c
                s23 += l2[k] * d
                s30 += l3[k] * a
                s31 += l3[k] * b
                s32 += l3[k] * c
                s33 += l3[k] * d
            out[m, n], out[m, n1], out[m, n2], out[m, n3] = s00, s01, s02, s03
            out[m1, n], out[m1, n1], out[m1, n2], out[m1, n3] = s10, s11, s12, s13
            out[m2, n], out[m2, n1], out[m2, n2], out[m2, n3] = s20, s21, s22, s23
            out[m3, n], out[m3, n1], out[m3, n2], out[m3, n3] = s30, s31, s32, s33


@kernel
def combine(left: Matrix, right: Matrix, out: Matrix) -> None:
    """LR: the sums of the rows of ``right`` ``[K, N]`` with the coefficients ``left`` ``[M, K]``, ``[M, N]``."""
    rows, terms = left.shape
    width = right.shape[1]
    whole_rows, whole_terms = rows - rows % 4, terms - terms % 4
    for begin in range(0, width, TILE):
        end = min(begin + TILE, width)
        for m in range(0, whole_rows, 4):
            o0, o1, o2, o3 = out[m, begin:end], out[m + 1, begin:end], out[m + 2, begin:end], out[m + 3, begin:end]
            o0[:] = o1[:] = o2[:] = o3[:] = np.float32(0)
            for k in range(0, whole_terms, 4):
                r0, r1 = right[k, begin:end], right[k + 1, begin:end]
                r2, r3 = right[k + 2, begin:end], right[k + 3, begin:end]
                c00, c01, c02, c03 = left[m, k], left[m, k + 1], left[m, k + 2], left[m, k + 3]
                c10, c11, c12, c13 = left[m + 1, k], left[m + 1, k + 1], left[m + 1, k + 2], left[m + 1, k + 3]
                c20, c21, c22, c23 = left[m + 2, k], left[m + 2, k + 1], left[m + 2, k + 2], left[m + 2, k + 3]
                c30, c31, c32, c33 = left[m + 3, k], left[m + 3, k + 1], left[m + 3, k + 2], left[m + 3, k + 3]
                for i in range(o0.size):
                    a, b, c, d = r0[i], r1[i], r2[i], r3[i]
                    o0[i] += c00 * a + c01 * b + c02 * c + c03 * d
                    o1[i] += c10 * a + c11 * b + c12 * c + c13 * d
                    o2[i] += c20 * a + c21 * b + c22 * c + c23 * d
                    o3[i] += c30 * a + c31 * b + c32 * c + c33 * d
            for k in range(whole_terms, terms):
                row = right[k, begin:end]
                for j in range(m, m + 4):
                    add_row(left[j, k], row, out[j, begin:end])
        for j in range(whole_rows, rows):
            last = out[j, begin:end]
            last[:] = np.float32(0)
            for k in range(terms):
                add_row(left[j, k], right[k, begin:end], last)


@kernel
def add_row(coefficient: Number, row: Vector, out: Vector) -> None:
    """Add ``coefficient`` times ``row`` to ``out``."""
    for i in range(out.size):
        out[i] += coefficient * row[i]


@kernel
def transpose(matrix: Matrix, out: Matrix) -> None:
    """``matrix`` ``[M, N]`` → ``[N, M]``."""
    for n in range(matrix.shape[1]):
        for m in range(matrix.shape[0]):
            out[n, m] = matrix[m, n]
