import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.core.statistics import cross_fitted_best, half_bootstrap, halves, mean_and_error, share_within


def test_mean_and_standard_error_of_a_hand_example():
    assert mean_and_error(np.array([1.0, 2.0, 3.0])) == pytest.approx((2.0, 1 / np.sqrt(3)))
    assert mean_and_error(np.array([4.0])) == pytest.approx((4.0, np.nan), nan_ok=True)


def test_the_interval_is_as_wide_as_the_normal_one():
    samples = np.random.default_rng(0).standard_normal(400)
    low, high = half_bootstrap(samples, lambda first, second: (first + second) / 2, seed=1)
    assert high - low == pytest.approx(2 * 1.96 * samples.std() / 20, rel=0.08)


def test_rows_are_resampled_together_so_that_paired_noise_cancels():
    noise = np.random.default_rng(0).standard_normal(50)
    samples = np.stack([noise + 1, noise])
    low, high = half_bootstrap(samples, lambda first, second: (first + second)[0] / 2 - (first + second)[1] / 2, seed=1)
    assert (low, high) == pytest.approx((1.0, 1.0))


def test_halves_share_no_run_and_miss_none_and_one_run_is_both():
    first, second = halves(np.arange(14.0).reshape(2, 7))
    np.testing.assert_array_equal(np.hstack([first, second]), np.arange(14.0).reshape(2, 7))
    np.testing.assert_array_equal(halves(np.array([[3.0]])), [[[3.0]], [[3.0]]])


def test_the_best_is_chosen_on_one_half_and_judged_on_the_other():
    first, second = np.array([[1.0], [2.0], [9.0]]), np.array([[5.0], [4.0], [3.0]])
    assert cross_fitted_best(first, second).tolist() == [(5.0 + 9.0) / 2]


def test_the_best_of_equal_cells_is_not_better_than_they_are():
    cells = np.random.default_rng(0).standard_normal((40, 2000, 10))  # cells, repetitions, runs
    first, second = (half.mean(axis=-1) for half in halves(cells))
    assert cross_fitted_best(first, second).mean() == pytest.approx(0.0, abs=0.03)
    assert cells.mean(axis=-1).min(axis=0).mean() < -0.5  # what choosing and judging on the same runs gives


def test_one_step_size_has_no_share():
    assert np.isnan(share_within(np.array([0.5]), np.array([[1.0, 2.0]]), 3.0)).all()


tenths = st.integers(0, 100).map(lambda number: number / 10)


@settings(deadline=None)
@given(st.lists(tenths, min_size=2, max_size=6), tenths)
def test_share_within_counts_the_straight_line_curve(values, limit):
    axis = np.arange(len(values), dtype=float)
    fine = np.linspace(0, len(values) - 1, 20_001)
    counted = (np.interp(fine, axis, values) <= limit).mean()
    assert share_within(axis, np.array(values), limit) == pytest.approx(counted, abs=2e-3)


def test_share_within_takes_many_curves_at_once():
    axis = np.array([0.0, 1.0, 3.0])
    curves = np.array([[0.0, 5.0], [0.0, 5.0], [2.0, 5.0]])
    np.testing.assert_allclose(share_within(axis, curves, np.array([1.0, 1.0])), [2 / 3, 0.0])
