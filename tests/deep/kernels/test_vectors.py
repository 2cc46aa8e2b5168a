"""Vectors in kernels against numpy."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from gramian.core.compiled import kernel
from gramian.deep.engines.kernels.vectors import (
    load8,
    load16,
    multiply_add,
    passed,
    rectified,
    spread16,
    store,
    total,
    zeros8,
    zeros16,
)


@kernel
def combine(a, b, out):
    store(np.float32(3) * (load8(a, 1) + load8(b, 2)) - load8(a, 3), out, 5)


def test_sums_differences_and_multiples_are_those_of_their_numbers():
    a, b = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    out = np.zeros(16, np.float32)
    combine(a, b, out)
    expected = 3 * (a.ravel()[1:9] + b.ravel()[2:10]) - a.ravel()[3:11]
    np.testing.assert_allclose(out[5:13], expected, rtol=1e-6, atol=1e-6)
    assert not out[:5].any()
    assert not out[13:].any()


@kernel
def accumulate(a, b, out):
    sums = zeros16()
    for k in range(4):
        sums = multiply_add(spread16(a, k), load16(b, 16 * k), sums)
    store(sums, out, 0)


def test_products_are_added_up():
    a, b = np.arange(4, dtype=np.float32), np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
    out = np.full(16, np.nan, np.float32)
    accumulate(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-6, atol=1e-6)


@kernel
def widen(numbers, out):
    store(load8(numbers, 0), out, 0)
    store(load16(numbers, 8), out, 8)


def test_bytes_become_numbers_without_a_sign():
    numbers, out = np.arange(240, 264).astype(np.uint8), np.zeros(24, np.float32)
    widen(numbers, out)
    assert np.array_equal(out, numbers.astype(np.float32))


@kernel
def gates(a, b, out):
    store(rectified(load8(a, 0)), out, 0)
    store(passed(load8(a, 0), load8(b, 0)), out, 8)
    store(zeros8(), out, 16)


def test_rectifiers_keep_what_is_not_a_number():
    a = np.array([-1, -0.5, 0, 0.5, 1, np.nan, np.inf, -np.inf], np.float32)
    b = np.array([1, 0, -1, 2, np.nan, 3, np.inf, 1], np.float32)
    out = np.full(24, 7, np.float32)
    gates(a, b, out)
    np.testing.assert_array_equal(out[:8], [0, 0, 0, 0.5, 1, np.nan, np.inf, 0])
    np.testing.assert_array_equal(out[8:16], [-1, 0, 0, 0.5, 0, np.nan, np.inf, -np.inf])
    assert not out[16:].any()


@kernel
def totals(a):
    return total(load8(a, 0)), total(load16(a, 0))


def test_totals_are_sums():
    numbers = np.random.default_rng(0).normal(size=16).astype(np.float32)
    np.testing.assert_allclose(totals(numbers), [numbers[:8].sum(), numbers.sum()], rtol=1e-5)


@pytest.mark.parametrize("array", [np.zeros(32), np.zeros((32, 2), np.float32)[:, 0], np.zeros(32, np.int32)])
def test_arrays_of_another_kind_are_refused(array):
    with pytest.raises(TypingError):
        widen(array, np.zeros(32, np.float32))


def test_bytes_are_not_written():
    with pytest.raises(TypingError):
        widen(np.zeros(32, np.uint8), np.zeros(32, np.uint8))
