"""Products of small matrices against numpy's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.deep.engines.kernels.matrices import TILE, center, combine, dots, transpose

SIZES = st.integers(1, 13)
WIDTHS = st.sampled_from([1, 2, 7, 16, 33, TILE - 1, TILE, TILE + 5])


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@settings(deadline=None)  # the first one compiles
@given(SIZES, SIZES, WIDTHS)
def test_dots_are_the_inner_products_of_rows(m, n, k):
    left, right, out = normal(0, m, k), normal(1, n, k), np.full((m, n), np.nan, np.float32)
    dots(left, right, out)
    np.testing.assert_allclose(out, left.astype(float) @ right.T.astype(float), rtol=1e-5, atol=1e-4)


@settings(deadline=None)  # the first one compiles
@given(SIZES, SIZES, WIDTHS)
def test_combine_is_the_matrix_product(m, k, n):
    left, right, out = normal(0, m, k), normal(1, k, n), np.full((m, n), np.nan, np.float32)
    combine(left, right, out)
    np.testing.assert_allclose(out, left.astype(float) @ right.astype(float), rtol=1e-5, atol=1e-4)


@settings(deadline=None)  # the first one compiles
@given(SIZES, WIDTHS)
def test_transpose_turns_a_matrix(m, n):
    matrix, out = normal(0, m, n), np.zeros((n, m), np.float32)
    transpose(matrix, out)
    assert np.array_equal(out, matrix.T)


@settings(deadline=None)  # the first one compiles
@given(SIZES, WIDTHS)
def test_center_leaves_no_mean(m, n):
    matrix = normal(0, m, n)
    expected = matrix - matrix.mean(0)
    center(matrix, np.zeros(n, np.float32))
    np.testing.assert_allclose(matrix, expected, atol=1e-5)
