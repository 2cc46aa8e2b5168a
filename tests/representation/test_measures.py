"""Every measure against examples that were worked out by hand, and at the edges of its domain."""

import math

import numpy as np
import pytest
import torch

from gramian.representation import measures
from gramian.representation.streaming import MEASURES, FeatureStatistics

# Three states of four features: one dead, one constant, the last a copy (twice the third, plus one).
PHI = torch.tensor([[0.0, 2.0, 1.0, 3.0], [0.0, 2.0, 0.0, 1.0], [0.0, 2.0, 2.0, 5.0]])


def test_sparsity_counts_entries_at_or_below_the_threshold():
    # zeros: 3 of the dead feature and 1 of the third; ≤ 1 adds the 1 of row 0 and the 1 of row 1
    assert measures.sparsity(PHI, [0, 1, 4, 5]).tolist() == pytest.approx([4 / 12, 6 / 12, 11 / 12, 1])


def test_active_features_are_counted_by_state_and_by_feature():
    assert measures.active_per_state(PHI).tolist() == [0, 0, 1, 2, 0]
    assert measures.active_per_feature(PHI).tolist() == [0, 3, 2, 3]


def test_feature_norm_is_the_mean_norm():
    assert measures.feature_norm(PHI) == pytest.approx((math.sqrt(14) + math.sqrt(5) + math.sqrt(33)) / 3)


def test_cross_term_is_the_mean_squared_product_of_two_states():
    # φ0·φ1 = 4 + 3 = 7, φ0·φ2 = 4 + 2 + 15 = 21, φ1·φ2 = 4 + 5 = 9
    assert measures.cross_term(PHI) == pytest.approx((7**2 + 21**2 + 9**2) / 3)
    assert math.isnan(measures.cross_term(PHI[:1]))


def test_std_sum_adds_the_features_population_standard_deviations():
    # the third is 1, 0, 2 (variance 2/3), the fourth twice that
    assert measures.std_sum(PHI) == pytest.approx(3 * math.sqrt(2 / 3))


def test_mean_abs_correlation_ignores_scale_and_features_that_do_not_vary():
    assert measures.mean_abs_correlation(PHI) == pytest.approx(1)
    independent = torch.tensor([[1.0, 10.0], [-1.0, 10.0], [1.0, -10.0], [-1.0, -10.0]])
    assert measures.mean_abs_correlation(independent) == pytest.approx(0)
    # covariance 1/3 of variances 2/3 and 2/3: ½
    half = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    assert measures.mean_abs_correlation(half) == pytest.approx(0.5)
    assert measures.mean_abs_correlation(half * torch.tensor([1.0, -1000.0])) == pytest.approx(0.5)


def test_spectrum_condition_number_and_participation_ratio_of_a_diagonal_covariance():
    x = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]) + 5.0  # C = diag(2, ½) wherever it lies
    assert measures.spectrum(x).tolist() == pytest.approx([2, 0.5])
    assert measures.condition_number(x) == pytest.approx(4)
    assert measures.participation_ratio(x) == pytest.approx(2.5**2 / 4.25)


def test_effective_rank_is_the_exponential_of_the_entropy_of_the_singular_values():
    x = torch.diag(torch.tensor([2.0, 1.0, 1.0]))
    assert measures.effective_rank(x) == pytest.approx(math.exp(0.5 * math.log(2) + 0.5 * math.log(4)))


def test_srank_is_the_fewest_singular_values_that_hold_all_but_delta():
    x = torch.diag(torch.tensor([60.0, 30.0, 9.5, 0.5]))  # 60, 90, 99.5 and 100 percent
    assert [measures.srank(x, delta) for delta in (0.5, 0.1, 0.01, 0.001)] == [1, 2, 3, 4]


def test_feature_rank_counts_singular_values_with_and_without_the_root_of_the_number_of_states():
    x = torch.zeros(100, 3)
    x[0, 0], x[1, 1], x[2, 2] = 1.0, 0.05, 0.001  # σ; divided by 10: 0.1, 0.005, 0.0001
    assert measures.feature_rank(x) == 1
    assert measures.feature_rank(x, scaled=False) == 2


def test_dormancy_compares_a_feature_with_the_mean_of_its_layer():
    # mean activities 0, 2, 1, 3; their mean 1.5: scores 0, 4/3, 2/3, 2
    assert [measures.dormant_share(PHI, tau) for tau in (0, 0.025, 0.7, 1.5, 2)] == [0.25, 0.25, 0.5, 0.75, 1]


def test_dead_constant_and_duplicated_features_are_told_apart():
    assert measures.dead_share(PHI) == 0.25
    assert measures.constant_share(PHI) == 0.5
    assert measures.duplicated_share(PHI) == 0.25


def test_dr3_dot_is_the_mean_product_of_a_state_with_its_successor():
    assert measures.dr3_dot(PHI[:2], PHI[1:]) == pytest.approx((7 + 9) / 2)
    with pytest.raises(ValueError, match="same shape"):
        measures.dr3_dot(PHI, PHI[:2])


def test_all_zero_features_have_defined_measures():
    zero = torch.zeros(5, 3)
    assert measures.sparsity(zero).tolist() == [1] * len(measures.THRESHOLDS)
    assert measures.effective_rank(zero) == measures.srank(zero) == measures.feature_rank(zero) == 0
    assert measures.participation_ratio(zero) == measures.cross_term(zero) == measures.std_sum(zero) == 0
    assert measures.dormant_share(zero) == measures.dormant_share(zero, 0.1) == measures.dead_share(zero) == 1
    assert measures.condition_number(zero) == math.inf
    assert math.isnan(measures.mean_abs_correlation(zero))
    assert measures.duplicated_share(zero) == 0


def test_constant_features_have_one_direction_and_no_variance():
    constant = torch.full((7, 4), 0.1)
    assert measures.effective_rank(constant) == pytest.approx(1)
    assert measures.srank(constant) == measures.feature_rank(constant) == 1
    assert measures.participation_ratio(constant) == pytest.approx(0, abs=1e-9)
    assert math.isnan(measures.mean_abs_correlation(constant))
    assert measures.constant_share(constant) == 1
    assert measures.dead_share(constant) == 0


def test_features_that_are_not_finite_are_refused_with_their_number():
    bad = PHI.clone()
    bad[1, 2] = torch.nan
    for function in (measures.srank, measures.sparsity, measures.cross_term, measures.mean_abs_correlation):
        with pytest.raises(ValueError, match="not finite in 1 of 3 states"):
            function(bad)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        *((torch.zeros(*shape), ValueError, r"shape \[N, d\]") for shape in ((3,), (0, 3), (3, 0), (2, 2, 2))),
        (torch.ones(2, 2, dtype=torch.int64), TypeError, "floating-point"),
    ],
)
def test_anything_but_a_table_of_numbers_is_refused(bad, error, message):
    with pytest.raises(error, match=message):
        measures.srank(bad)


def test_numpy_arrays_are_features_too():
    assert measures.feature_norm(np.array([[3.0, 4.0]], np.float32)) == 5


def test_half_precision_is_computed_in_float64():
    x = torch.full((4096, 2), 0.1, dtype=torch.float16)
    assert measures.feature_norm(x) == pytest.approx(float(x[0, 0].double()) * math.sqrt(2), rel=1e-14)


def test_the_summary_has_every_measure_in_its_order():
    assert tuple(FeatureStatistics.of(PHI, PHI).summary()) == MEASURES
    assert tuple(FeatureStatistics(3).summary()) == MEASURES
