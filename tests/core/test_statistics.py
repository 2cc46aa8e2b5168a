"""Against rliable, and against slow obvious oracles where rliable has no such statistic."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gramian.core import statistics
from gramian.core.statistics import Count, bootstrap, bootstrap_pair, curve_interval, resample
from tests.core.rliable_bootstrap import rliable_library

metrics = pytest.importorskip("rliable.metrics")
library = rliable_library()
unhurried = settings(deadline=None)

finite = st.floats(-100, 100, allow_subnormal=False)
tables = st.tuples(st.integers(1, 6), st.integers(1, 8)).flatmap(lambda shape: arrays(float, shape, elements=finite))


def missing(scores: np.ndarray, *cells: tuple[int, int]) -> np.ndarray:
    holes = scores.copy()
    for cell in cells:
        holes[cell] = np.nan
    return holes


def mean_difference(arm, baseline):
    return statistics.mean_over_runs(arm - baseline)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (statistics.mean_score, "aggregate_mean"),
        (statistics.median_score, "aggregate_median"),
        (statistics.interquartile_mean, "aggregate_iqm"),
        (statistics.optimality_gap, "aggregate_optimality_gap"),
    ],
)
@unhurried
@given(scores=tables)
def test_aggregates_are_those_of_rliable(ours, theirs, scores):
    assert ours(scores) == pytest.approx(getattr(metrics, theirs)(scores), abs=1e-10)


@unhurried
@given(arm=arrays(float, (3, 4), elements=finite), baseline=arrays(float, (5, 4), elements=finite))
def test_probability_of_improvement_is_that_of_rliable(arm, baseline):
    expected = metrics.probability_of_improvement(arm, baseline)
    assert statistics.probability_of_improvement(arm, baseline) == pytest.approx(expected, abs=1e-12)


@unhurried
@given(scores=tables)
def test_performance_profile_is_that_of_rliable(scores):
    thresholds = np.linspace(-100, 100, 9)
    expected = library.score_distributions(scores, thresholds)
    np.testing.assert_allclose(statistics.performance_profile(scores, thresholds), expected)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(statistics.interquartile_mean, "aggregate_iqm"), (statistics.median_score, "aggregate_median")],
)
def test_bootstrap_intervals_are_those_of_rliable(ours, theirs):
    scores = np.random.default_rng(3).lognormal(size=(5, 12))
    np.random.seed(0)  # noqa: NPY002 - rliable draws from the global generator
    _, intervals = library.get_interval_estimates(
        {"arm": scores}, lambda x: np.array([getattr(metrics, theirs)(x)]), reps=2000
    )
    own = bootstrap(ours, scores, np.random.default_rng(0), replicates=4000)
    width = own.high - own.low
    np.testing.assert_allclose([own.low, own.high], intervals["arm"][:, 0], atol=0.08 * width)


def test_unpaired_intervals_of_two_arms_are_those_of_rliable():
    generator = np.random.default_rng(4)
    arm, baseline = generator.normal(0.4, 1, (6, 10)), generator.normal(size=(4, 10))
    np.random.seed(0)  # noqa: NPY002 - rliable draws from the global generator
    _, intervals = library.get_interval_estimates(
        {"pair": [arm, baseline]}, lambda x, y: np.array([metrics.probability_of_improvement(x, y)]), reps=600
    )
    own = bootstrap_pair(statistics.probability_of_improvement, arm, baseline, generator, paired=False)
    np.testing.assert_allclose([own.low, own.high], intervals["pair"][:, 0], atol=0.08 * (own.high - own.low))


def test_iqm_with_missing_runs_is_the_trimmed_mean_of_those_that_are_there():
    scores = missing(np.random.default_rng(0).normal(size=(4, 6)), (0, 0), (3, 2), (2, 5))
    there = scores[np.isfinite(scores)]
    assert statistics.interquartile_mean(scores) == pytest.approx(scipy.stats.trim_mean(there, 0.25))


def test_median_with_missing_runs_takes_the_mean_of_those_that_are_there():
    scores = missing(np.array([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]]), (0, 1))
    assert statistics.median_score(scores) == 4.0


def test_a_game_without_runs_is_left_out():
    scores = missing(np.array([[1.0, 7.0], [3.0, 7.0]]), (0, 1), (1, 1))
    assert statistics.mean_score(scores) == 2.0
    assert statistics.probability_of_improvement(scores, scores - 1) == pytest.approx(0.75)


def test_human_normalised_is_zero_for_random_play_and_one_for_the_human():
    assert statistics.human_normalised([3.0, 9.0], random=3.0, human=9.0).tolist() == [0.0, 1.0]


def test_final_score_is_the_mean_of_the_last_hundred_episodes_or_missing():
    assert statistics.final_score(np.arange(1000.0)) == np.arange(900.0, 1000.0).mean()
    assert np.isnan(statistics.final_score([]))


@unhurried
@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=40),
    window=st.integers(1, 12),
    data=st.data(),
)
def test_learning_curve_is_the_mean_of_the_last_episodes_that_had_ended(lengths, window, data):
    frames = np.cumsum(lengths)
    returns = np.array(data.draw(st.lists(finite, min_size=len(frames), max_size=len(frames))))
    grid = np.linspace(1, frames[-1] + 10, 17)
    expected = [
        np.mean([r for f, r in zip(frames, returns, strict=True) if f <= t][-window:] or returns[:1]) for t in grid
    ]
    np.testing.assert_allclose(statistics.learning_curve(frames, returns, grid, window), expected, atol=1e-9)


def test_learning_curve_ends_at_the_final_score():
    generator = np.random.default_rng(0)
    frames, returns = np.cumsum(generator.integers(1, 9, 500)), generator.normal(size=500)
    curve = statistics.learning_curve(frames, returns, [frames[-1]])
    assert curve[-1] == pytest.approx(statistics.final_score(returns))


def test_area_under_a_line_is_its_mean_wherever_the_grid_begins():
    grid = np.linspace(0, 20e6, 201)
    assert statistics.area_under_curve(3.0 * grid / 20e6 + 1.0, grid) == pytest.approx(2.5)
    assert statistics.area_under_curve([7.0, 7.0], [5.0, 10.0]) == 7.0


def test_auc_gain_of_a_hand_example():
    arm, baseline = np.array([[30.0, -10.0], [50.0, -10.0]]), np.array([[20.0, -20.0], [20.0, -16.0]])
    assert statistics.auc_gain(arm, baseline, random=[10.0, -14.0]).tolist() == [2.0, 2.0]


def test_auc_gain_over_a_baseline_that_plays_at_random_is_not_a_number():
    assert np.isnan(statistics.auc_gain([[1.0]], [[0.0]], random=[0.0])).all()


@unhurried
@given(arm=arrays(float, (3, 4), elements=finite), baseline=arrays(float, (3, 4), elements=finite))
def test_paired_improvement_counts_pairs_of_the_same_seed(arm, baseline):
    pairs = [(a > b) + 0.5 * (a == b) for a, b in zip(arm.flat, baseline.flat, strict=True)]
    assert statistics.paired_improvement(arm, baseline) == pytest.approx(np.mean(pairs))


def test_the_difference_of_one_game_has_the_interval_of_a_t_test_over_pairs():
    generator = np.random.default_rng(3)
    arm, baseline = generator.normal(1, 1, 10), generator.normal(size=10)
    estimate, low, high = statistics.student((arm - baseline)[:, None])
    theirs = scipy.stats.ttest_rel(arm, baseline).confidence_interval()
    np.testing.assert_allclose([estimate, low, high], [(arm - baseline).mean(), theirs.low, theirs.high])


def test_two_games_of_unlike_spread_have_the_freedom_of_welch():
    generator = np.random.default_rng(4)
    first, second = generator.normal(0, 1, 8), generator.normal(0, 5, 8)
    # the mean of two games is half the difference of one and of the other with its sign turned
    theirs = scipy.stats.ttest_ind(first, -second, equal_var=False).confidence_interval()
    _, low, high = statistics.student(np.stack([first, second], axis=1))
    np.testing.assert_allclose([low, high], [theirs.low / 2, theirs.high / 2])


def test_students_interval_holds_the_truth_as_often_as_it_says():
    drawn = np.random.default_rng(5).normal(size=(2_000, 10, 1))
    held = [low <= 0 <= high for _, low, high in map(statistics.student, drawn)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_a_ratio_has_the_error_of_both_means():
    numerators, denominators = np.random.default_rng(6).normal([[[2.0]], [[5.0]]], 1, (2, 12, 1))
    (nn, nd), (_, dd) = np.cov(numerators[:, 0], denominators[:, 0]) / 12
    mean, below = numerators.mean() / denominators.mean(), denominators.mean()
    half = scipy.stats.t.ppf(0.975, 11) * np.sqrt(nn - 2 * mean * nd + mean**2 * dd) / below
    found = statistics.student(statistics.ratios(numerators, denominators))
    np.testing.assert_allclose(found, [mean, mean - half, mean + half])


def test_a_log_ratio_is_that_of_the_means_and_the_same_from_both_sides():
    arm, baseline = np.random.default_rng(7).lognormal(size=(2, 5, 3))
    mean, low, high = statistics.student(statistics.log_ratios(arm, baseline))
    assert mean == pytest.approx(np.log(arm.mean(0) / baseline.mean(0)).mean())
    np.testing.assert_allclose(statistics.student(statistics.log_ratios(baseline, arm)), [-mean, -high, -low])


@pytest.mark.parametrize(("function", "truth"), [(statistics.ratios, 0.5), (statistics.log_ratios, np.log(0.5))])
def test_intervals_of_ratios_hold_the_truth_as_often_as_they_say(function, truth):
    drawn = np.random.default_rng(8).normal([[[[1.0]]], [[[2.0]]]], 0.3, (2, 2_000, 10, 1))
    held = [low <= truth <= high for _, low, high in map(statistics.student, map(function, *drawn))]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_a_ratio_to_a_mean_that_is_not_above_zero_is_missing_as_are_seeds_without_a_pair():
    numerators, denominators = np.array([[1.0, 1.0], [3.0, 1.0], [9.0, 1.0]]), np.ones((3, 2))
    denominators[:, 1], denominators[2, 0] = -1.0, np.nan
    found = statistics.mean_over_runs(statistics.ratios(numerators, denominators))
    np.testing.assert_array_equal(found, [2.0, np.nan])
    assert np.isnan(statistics.log_ratios(numerators, denominators)[:, 1]).all()


def test_a_difference_leaves_seeds_out_that_one_arm_lacks():
    arm, baseline = np.array([[5.0], [np.nan], [9.0]]), np.array([[1.0], [0.0], [np.nan]])
    found = statistics.student_by_game(arm - baseline)
    assert found.estimate.tolist() == [4.0]
    assert np.isnan(found.low).all()


def test_paired_interval_ignores_what_seeds_share_and_the_unpaired_one_does_not():
    generator = np.random.default_rng(0)
    shared = generator.normal(0, 100, (5, 8))
    arm, baseline = shared + 1 + generator.normal(0, 0.1, shared.shape), shared

    def difference(x, y):
        return statistics.mean_score(x) - statistics.mean_score(y)

    paired = bootstrap_pair(difference, arm, baseline, generator, paired=True)
    unpaired = bootstrap_pair(difference, arm, baseline, generator, paired=False)
    assert paired.low > 0.8
    assert unpaired.low < 0 < unpaired.high


def test_sign_test_is_the_exact_binomial_test():
    assert statistics.sign_test(Count(39, 0, 10)) == pytest.approx(scipy.stats.binomtest(39, 49).pvalue)


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (5, 5), (1, 7), (32, 49)])
def test_an_exact_interval_ends_where_a_tail_has_its_share(successes, trials):
    low, high = statistics.clopper_pearson(successes, trials)
    above = sum(scipy.stats.binom.pmf(k, trials, low) for k in range(successes, trials + 1))
    below = sum(scipy.stats.binom.pmf(k, trials, high) for k in range(successes + 1))
    assert above == pytest.approx(0.025) if successes else low == 0
    assert below == pytest.approx(0.025) if successes < trials else high == 1


@unhurried
@given(p_values=arrays(float, st.integers(1, 6), elements=st.floats(0, 1)), level=st.floats(0.001, 0.999))
def test_holm_rejects_while_each_smallest_is_below_its_share_of_the_level(p_values, level):
    rejected = set()
    for rank, at in enumerate(np.argsort(p_values)):
        if p_values[at] * (len(p_values) - rank) > level:
            break
        rejected.add(int(at))
    assert set(np.flatnonzero(statistics.holm(p_values) <= level)) == rejected


@unhurried
@given(st.lists(st.integers(-30, 30).filter(bool), max_size=7, unique_by=abs))
def test_wilcoxons_p_is_the_share_of_signs_with_ranks_as_far_from_even(differences):
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    sums = np.array([np.dot(signs, ranks) for signs in itertools.product([-1, 1], repeat=len(ranks))])
    share = (np.abs(sums) >= abs(np.dot(np.sign(differences), ranks))).mean()
    assert statistics.wilcoxon([0, *differences]) == pytest.approx(share)


def test_resampling_draws_each_game_from_its_own_runs():
    scores = np.arange(12.0).reshape(3, 4)
    drawn = resample(scores, np.random.default_rng(0), 200)
    for game in range(4):
        assert set(np.unique(drawn[:, :, game])) == set(scores[:, game])


def test_resampling_keeps_the_number_of_runs_of_each_game():
    scores = missing(np.arange(12.0).reshape(3, 4), (0, 1), (2, 1), (1, 2))
    drawn = resample(scores, np.random.default_rng(0), 50)
    assert (np.isfinite(drawn).sum(1) == np.isfinite(scores).sum(0)).all()
    assert not np.isin(drawn, [1.0, 9.0, 6.0]).any()


def test_resampling_draws_all_combinations_equally_often():
    drawn = resample(np.array([[0.0], [1.0]]), np.random.default_rng(0), 8000)[..., 0]
    counts = [(drawn == pair).all(1).sum() for pair in itertools.product([0.0, 1.0], repeat=2)]
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_the_same_generator_gives_the_same_interval_and_another_one_another():
    scores = np.random.default_rng(0).normal(size=(3, 5))
    first, again, other = (bootstrap(statistics.mean_score, scores, np.random.default_rng(s)) for s in (1, 1, 2))
    assert first == again
    assert first.low != other.low


def test_one_seed_gives_an_estimate_and_no_interval():
    interval = bootstrap(statistics.mean_score, np.ones((1, 5)), np.random.default_rng(0))
    assert interval.estimate == 1.0
    assert np.isnan([interval.low, interval.high]).all()


def test_no_two_runs_of_one_seed_give_no_paired_interval():
    arm, baseline = np.array([[1.0], [np.nan]]), np.array([[np.nan], [1.0]])
    interval = bootstrap_pair(mean_difference, arm, baseline, np.random.default_rng(0), paired=True)
    assert np.isnan(np.concatenate(interval)).all()


@settings(max_examples=20, deadline=None)
@given(curves=arrays(float, (3, 4, 5), elements=finite))
def test_interval_of_curves_holds_their_estimate_at_every_point(curves):
    interval = curve_interval(statistics.mean_score, curves, np.random.default_rng(0), replicates=50)
    np.testing.assert_allclose(interval.estimate, curves.mean((0, 1)), atol=1e-9)
    assert (interval.low <= interval.high).all()


def test_intervals_of_curves_are_those_of_rliable():
    curves = np.random.default_rng(5).lognormal(size=(5, 8, 3))
    np.random.seed(0)  # noqa: NPY002 - rliable draws from the global generator
    _, intervals = library.get_interval_estimates(
        {"arm": curves}, lambda x: np.array([metrics.aggregate_iqm(x[..., k]) for k in range(3)]), reps=1500
    )
    own = curve_interval(statistics.interquartile_mean, curves, np.random.default_rng(0), replicates=3000)
    assert (np.abs(np.stack([own.low, own.high]) - intervals["arm"]) < 0.1 * (own.high - own.low)).all()


def test_paired_intervals_are_those_of_scipy():
    generator = np.random.default_rng(6)
    arm, baseline = generator.normal(1, 1, (12, 1)), generator.normal(size=(12, 1))
    theirs = scipy.stats.bootstrap(
        (arm[:, 0], baseline[:, 0]),
        lambda x, y, axis: (x - y).mean(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    own = bootstrap_pair(mean_difference, arm, baseline, generator, paired=True, replicates=5000)
    assert [own.low.item(), own.high.item()] == pytest.approx([theirs.low, theirs.high], abs=0.05)


def test_an_arm_with_one_seed_has_no_unpaired_interval_however_many_the_baseline_has():
    arm, baseline = np.array([[1.0, 2.0]]), np.random.default_rng(0).normal(size=(3, 2))
    for first, second in ((arm, baseline), (baseline, arm)):
        found = bootstrap_pair(
            statistics.probability_of_improvement, first, second, np.random.default_rng(0), paired=False
        )
        assert np.isfinite(found.estimate)
        assert np.isnan([found.low, found.high]).all()


def test_an_aggregate_has_no_interval_where_one_of_its_games_has_one_seed():
    scores = missing(np.random.default_rng(0).normal(size=(2, 4)), (1, 3))
    for statistic in (statistics.median_score, lambda drawn: statistics.performance_profile(drawn, [0.0, 1.0])):
        found = bootstrap(statistic, scores, np.random.default_rng(0))
        assert np.isfinite(found.estimate).all()
        assert np.isnan([found.low, found.high]).all()
    curves = np.repeat(scores[..., None], 3, axis=-1)
    assert np.isnan(curve_interval(statistics.median_score, curves, np.random.default_rng(0)).low).all()


def test_a_game_without_runs_takes_no_interval_from_the_others():
    scores = missing(np.random.default_rng(0).normal(size=(2, 4)), (0, 3), (1, 3))
    assert np.isfinite(bootstrap(statistics.median_score, scores, np.random.default_rng(0)).low)


def test_a_statistic_of_each_game_has_the_intervals_of_the_games_with_two_seeds():
    scores = missing(np.random.default_rng(0).normal(size=(2, 3)), (1, 2))
    found = bootstrap(statistics.mean_over_runs, scores, np.random.default_rng(0), by_game=True)
    assert np.isnan(found.low).tolist() == [False, False, True]
    assert np.isfinite(found.estimate).all()
