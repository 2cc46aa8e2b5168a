"""Products of small matrices against numpy's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.deep.engines.kernels.matrices import TILE, combine, dots, transpose

SIZES = st.integers(1, 13)
WIDTHS = st.sampled_from([1, 2, 7, 16, 33, TILE - 1, TILE, TILE + 5])


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@settings(deadline=None)  # the first one compiles
@given(SIZES, SIZES, WIDTHS)
def test_products_are_numpy_s(m, n, k):
    left, right, wide = normal(0, m, k), normal(1, n, k), normal(2, m, n)
    inner, sums, turned = np.full((m, n), np.nan, np.float32), np.full((m, k), np.nan, np.float32), np.zeros((k, m))
    dots(left, right, inner)
    np.testing.assert_allclose(inner, left.astype(float) @ right.T.astype(float), rtol=1e-5, atol=1e-4)
    combine(wide, right, sums)
    np.testing.assert_allclose(sums, wide.astype(float) @ right.astype(float), rtol=1e-5, atol=1e-4)
    transpose(left, turned)
    assert np.array_equal(turned, left.T)
