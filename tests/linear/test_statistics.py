import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.linear.statistics import bootstrap_interval, mean_and_error, share_within


def test_mean_and_error_of_a_hand_example():
    assert mean_and_error(np.array([1.0, 2.0, 3.0])) == pytest.approx((2.0, 1 / np.sqrt(3)))


def test_one_value_has_no_standard_error():
    mean, error = mean_and_error(np.array([4.0]))
    assert mean == 4.0
    assert np.isnan(error)


def test_the_interval_is_as_wide_as_the_normal_one():
    samples = np.random.default_rng(0).standard_normal(400)
    low, high = bootstrap_interval(samples, lambda means: means, seed=1)
    assert high - low == pytest.approx(2 * 1.96 * samples.std() / 20, rel=0.08)


def test_rows_are_resampled_together_so_that_paired_noise_cancels():
    noise = np.random.default_rng(0).standard_normal(50)
    low, high = bootstrap_interval(np.stack([noise + 1, noise]), lambda means: means[0] - means[1], seed=1)
    assert (low, high) == pytest.approx((1.0, 1.0))


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
