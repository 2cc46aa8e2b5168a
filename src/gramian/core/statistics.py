"""Statistics of scores, as pure functions of arrays.

Scores are arrays ``[S, G]`` of S runs (one a seed) by G games, NaN where a run is missing; leading axes, written
``...``, are carried along. Where nothing is missing the numbers are those of rliable (Agarwal et al. 2021, arXiv
2108.13264). Functions that draw random numbers take a generator.
"""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]
"""``[..., S, G]`` → ``[..., *shape]``."""
PairStatistic = Callable[[Array, Array], Array]
"""``[..., S, G]``, ``[..., S', G]`` → ``[..., *shape]``."""

REPLICATES = 2_000
"""Bootstrap replicates, as in rliable's profiles."""
CONFIDENCE = 0.95
FEWEST_SEEDS = 2
"""Seeds that an interval needs."""
FEW_SEEDS = 10
"""With fewer runs of a game, a percentile interval is too narrow."""
FEW_GAMES = 10
"""With fewer games, median and IQM say more about the choice of games than about the arm."""


class Interval(NamedTuple):
    """An estimate with the ends of its interval; the ends are NaN where the data do not suffice for one."""

    estimate: Array
    low: Array
    high: Array


class Count(NamedTuple):
    """The number of games in which one arm does better, as well, and worse."""

    wins: int
    ties: int
    losses: int


# ---- scores of a run -------------------------------------------------------------------------------------------------


def human_normalised(scores: ArrayLike, random: ArrayLike, human: ArrayLike) -> Array:
    """(score - random)/(human - random): 0 is random play, 1 is the human of the table."""
    low = np.asarray(random, float)
    return np.asarray((np.asarray(scores, float) - low) / (np.asarray(human, float) - low))


def final_score(returns: ArrayLike, episodes: int = 100) -> float:
    """Mean return of the last ``episodes`` training episodes, or of all where there are fewer; NaN where none."""
    last = np.asarray(returns, float)[-episodes:]
    return float(last.mean()) if len(last) else math.nan


def learning_curve(frames: ArrayLike, returns: ArrayLike, grid: ArrayLike, episodes: int = 100) -> Array:
    """R(t) at the frames ``grid`` ``[K]``: mean return of the last ``episodes`` episodes that had ended by frame t.

    ``frames`` and ``returns`` ``[E]`` are the ends and returns of the episodes, by rising frames. Before the first end
    R is that episode's return; without any episode it is NaN. The last value is the final score.

    Examples
    --------
    >>> learning_curve([10, 20, 30], [1.0, 2.0, 6.0], grid=[5, 20, 40], episodes=2).tolist()
    [1.0, 1.5, 4.0]
    """
    ends, values = np.asarray(frames), np.asarray(returns, float)
    if not len(values):
        return np.full(np.shape(grid), np.nan)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    last = np.maximum(np.searchsorted(ends, np.asarray(grid), side="right"), 1)
    first = np.maximum(last - episodes, 0)
    return np.asarray((sums[last] - sums[first]) / (last - first))


def area_under_curve(curve: ArrayLike, grid: ArrayLike) -> Array:
    """(1/T) ∫₀ᵀ R(t) dt of ``curve`` ``[..., K]`` by trapezoids over ``grid`` ``[K]``; R is constant before it."""
    values, frames = np.asarray(curve, float), np.asarray(grid, float)
    area = scipy.integrate.trapezoid(values, frames, axis=-1) + values[..., 0] * frames[0]
    return np.asarray(area / frames[-1])


# ---- scores of an arm, and of one arm against another ----------------------------------------------------------------


def auc_gain(arm: ArrayLike, baseline: ArrayLike, random: ArrayLike) -> Array:
    """(AUC_arm - AUC_baseline)/|AUC_baseline - AUC_random|, each AUC a mean over seeds, ``[..., S, G]`` → ``[..., G]``.

    The AUC of random play is its score, ``[G]``.

    Examples
    --------
    >>> auc_gain([[30.0], [50.0]], [[20.0], [20.0]], random=[10.0]).tolist()
    [2.0]
    """
    ours, theirs = mean_over_runs(np.asarray(arm, float)), mean_over_runs(np.asarray(baseline, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = (ours - theirs) / np.abs(theirs - np.asarray(random, float))
    return np.asarray(np.where(np.isfinite(gain), gain, np.nan))


def mean_over_runs(scores: Array) -> Array:
    """Mean over the runs that are not missing, ``[..., S, G]`` → ``[..., G]``; NaN for a game without any."""
    present = ~np.isnan(scores)
    counts = present.sum(-2)
    with np.errstate(invalid="ignore"):
        means = np.where(present, scores, 0.0).sum(-2) / np.where(counts, counts, 1)
    return np.asarray(np.where(counts, means, np.nan))


def mean_score(scores: Array) -> Array:
    """Mean over games of the mean over runs, ``[..., S, G]`` → ``[...]``."""
    return _mean(mean_over_runs(scores))


def median_score(scores: Array) -> Array:
    """Median over games of the mean over runs, ``[..., S, G]`` → ``[...]``; the paper's aggregate."""
    with warnings.catch_warnings():  # without numpy's warning where all is NaN
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian(mean_over_runs(scores), axis=-1))


def interquartile_mean(scores: Array) -> Array:
    """Mean of the middle half of all runs of all games, ``[..., S, G]`` → ``[...]``.

    A quarter of the runs (rounded down) is cut off at each end. Every run has the same weight.

    Examples
    --------
    >>> float(interquartile_mean(np.array([[0.0, 1.0, 3.0, 100.0]])))
    2.0
    """
    values = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)  # NaN comes last
    counts = np.isfinite(values).sum(-1)
    cut = counts // 4
    position = np.arange(values.shape[-1])
    kept = (position >= cut[..., None]) & (position < (counts - cut)[..., None])
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(kept, values, 0.0).sum(-1) / kept.sum(-1))


def optimality_gap(scores: Array, gamma: float = 1.0) -> Array:
    """γ minus the mean of min(score, γ) over all runs, ``[..., S, G]`` → ``[...]``."""
    capped = np.minimum(scores, gamma)
    return np.asarray(gamma - _mean(capped.reshape(*capped.shape[:-2], -1)))


def performance_profile(scores: Array, thresholds: ArrayLike) -> Array:
    """Share of all runs with a score above τ, ``[..., S, G]`` and ``[T]`` → ``[..., T]``."""
    flat = scores.reshape(*scores.shape[:-2], -1)
    present = np.isfinite(flat)
    above = [((flat > tau) & present).sum(-1) for tau in np.asarray(thresholds, float)]
    return np.asarray(np.stack(above, axis=-1) / present.sum(-1)[..., None])


def probability_of_improvement(arm: Array, baseline: Array) -> Array:
    """P(X > Y) + ½ P(X = Y) for runs X ``[..., S, G]`` of the arm and Y ``[..., S', G]`` of the baseline, over games.

    Within a game it is the Mann-Whitney U over the number of pairs. Games without runs of both are left out.

    Examples
    --------
    >>> float(probability_of_improvement(np.array([[1.0], [3.0]]), np.array([[0.0], [3.0]])))
    0.625
    """
    pairs = _better(arm[..., :, None, :], baseline[..., None, :, :])
    return _mean(mean_over_runs(pairs.reshape(*pairs.shape[:-3], -1, pairs.shape[-1])))


def paired_improvement(arm: Array, baseline: Array) -> Array:
    """Share of seeds on which the arm beats the baseline run of the same row (ties a half), a mean over games."""
    return _mean(mean_over_runs(_better(arm, baseline)))


def count_games(arm: ArrayLike, baseline: ArrayLike) -> Count:
    """In how many games the arm's score is higher, equal and lower; games without both are left out."""
    difference = np.asarray(arm, float) - np.asarray(baseline, float)
    return Count(int((difference > 0).sum()), int((difference == 0).sum()), int((difference < 0).sum()))


def sign_test(count: Count) -> float:
    """Two-sided p of the wins and losses if each game were a fair coin; ties are left out, 1 where none is left."""
    games = count.wins + count.losses
    return float(scipy.stats.binomtest(count.wins, games).pvalue) if games else 1.0


def wilcoxon(differences: ArrayLike) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; zeros are left out, 1 where nothing is left."""
    different = np.asarray(differences, float)
    different = different[different != 0]
    return float(scipy.stats.wilcoxon(different).pvalue) if different.size else 1.0


def holm(p_values: ArrayLike) -> Array:
    """P-values ``[m]`` of one family of tests, adjusted by Holm's step-down method: at rank i, times m − i + 1."""
    raw = np.asarray(p_values, float)
    order, adjusted = np.argsort(raw), np.empty(raw.shape)
    adjusted[order] = np.minimum(np.maximum.accumulate(raw[order] * np.arange(raw.size, 0, -1)), 1.0)
    return adjusted


def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact interval of a share of which ``successes`` of ``trials`` were seen."""
    ends = scipy.stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
    return float(ends.low), float(ends.high)


# ---- Student's and Welch's intervals ---------------------------------------------------------------------------------


def mean_interval(values: ArrayLike, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Mean of ``values`` ``[n]`` with Student's interval, mean ± t·s/√n; unbounded where n < 2."""
    numbers = np.asarray(values, float)
    mean, n = float(numbers.mean()), len(numbers)
    if n < FEWEST_SEEDS:
        return mean, -math.inf, math.inf
    half = float(student_quantile(n - 1, confidence) * numbers.std(ddof=1) / math.sqrt(n))
    return mean, mean - half, mean + half


def welch(first: ArrayLike, second: ArrayLike, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Difference of two means with Welch's interval; unbounded where one of the two has fewer than two values.

    Examples
    --------
    >>> [round(end, 2) for end in welch([2.0, 4.0], [0.0, 1.0])]
    [2.5, -4.42, 9.42]
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    value = float(one.mean() - other.mean())
    if min(len(one), len(other)) < FEWEST_SEEDS:
        return value, -math.inf, math.inf
    if np.ptp(one) == np.ptp(other) == 0:
        return value, value, value
    ends = scipy.stats.ttest_ind(one, other, equal_var=False).confidence_interval(confidence)
    return value, float(ends.low), float(ends.high)


def standard_error(differences: Array) -> tuple[float, float]:
    """Standard error of the mean over games of the mean over seeds of differences ``[S, G]``, and its freedom.

    Games are fixed, seeds are drawn. Games do not share a variance, so the degrees of freedom are Satterthwaite's,
    (Σv)²/Σ(v²/(n-1)), with v the variance of the mean over the n seeds of a game. The error is NaN where a game has
    fewer than two seeds.
    """
    seeds = np.isfinite(differences).sum(axis=0)
    if not seeds.size or seeds.min() < FEWEST_SEEDS:
        return math.nan, 1.0
    variances = np.nanvar(differences, axis=0, ddof=1) / seeds
    total = float(variances.sum())
    freedom = total**2 / float((variances**2 / (seeds - 1)).sum()) if total > 0 else float(seeds.min() - 1)
    return float(np.sqrt(total)) / len(seeds), freedom


def student(differences: Array, confidence: float = CONFIDENCE) -> Interval:
    """Mean over games of the mean over seeds of differences ``[S, G]``, with Student's interval: see `standard_error`.

    For few seeds the bootstrap's percentiles are too narrow: with ten seeds they cover 90 % in place of 95 %.

    Examples
    --------
    >>> [round(float(end), 2) for end in student(np.array([[1.0], [2.0], [3.0]]))]
    [2.0, -0.48, 4.48]
    """
    error, freedom = standard_error(differences)
    half = error * student_quantile(freedom, confidence)
    by_game = mean_over_runs(differences)
    mean = float(by_game.mean()) if by_game.size else math.nan
    return Interval(*(np.asarray(end) for end in (mean, mean - half, mean + half)))


def student_by_game(differences: Array, confidence: float = CONFIDENCE) -> Interval:
    """The same for each game alone, ``[S, G]`` → ``[G]``."""
    found = [student(differences[:, [game]], confidence) for game in range(differences.shape[1])]
    return Interval(*(np.array([float(one[end]) for one in found]) for end in range(3)))


def ratios(numerators: Array, denominators: Array) -> Array:
    """Pseudo-values ``[S, G]`` of r = n̄/d̄, the ratio of the means over the seeds of each game: r + (n - r·d)/d̄.

    Their mean is r. `student` of them is the delta method: the interval has the error of the denominator too. Seeds
    that lack either value are left out, as are games whose mean denominator is not above 0.

    Examples
    --------
    >>> ratios(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]]))[:, 0].tolist()
    [0.5, 0.5]
    """
    upper, lower, above, below = _pairs(numerators, denominators)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = above / below
        return np.asarray(np.where(below > 0, ratio + (upper - ratio * lower) / below, np.nan))


def log_ratios(numerators: Array, denominators: Array) -> Array:
    """The same of log(n̄/d̄): log(n̄/d̄) + n/n̄ - d/d̄; NaN for games where one mean is not above 0.

    exp of the ends of `student` is the interval of the geometric mean over games of the ratios. Unlike the ratio it is
    the same whichever arm is the denominator.

    Examples
    --------
    >>> log_ratios(np.array([[3.0], [3.0]]), np.array([[1.0], [5.0]]))[:, 0].round(3).tolist()
    [0.667, -0.667]
    """
    upper, lower, above, below = _pairs(numerators, denominators)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(above / below) + upper / above - lower / below
        return np.asarray(np.where((above > 0) & (below > 0), values, np.nan))


def _pairs(first: Array, second: Array) -> tuple[Array, Array, Array, Array]:
    """Two arrays ``[S, G]`` where both have a value, else NaN, and the means of both over seeds, ``[G]``."""
    both = np.isfinite(first) & np.isfinite(second)
    one, other = np.where(both, first, np.nan), np.where(both, second, np.nan)
    return one, other, mean_over_runs(one), mean_over_runs(other)


def student_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Half the width of Student's interval in standard errors."""
    return float(scipy.stats.t.ppf(0.5 + 0.5 * confidence, freedom))


# ---- the stratified bootstrap ----------------------------------------------------------------------------------------


def resample(scores: Array, generator: np.random.Generator, replicates: int = REPLICATES) -> Array:
    """Draw the runs of each game with replacement, each game on its own: ``[S, G, ...]`` → ``[replicates, S, G, ...]``.

    Trailing axes (a curve, or two arms of the same seed) go with their run. A run is missing where all its values are
    NaN; each game keeps the number of its runs, the missing ones last.
    """
    return np.asarray(scores[_draw(scores, generator, replicates), np.arange(scores.shape[1])])


def _draw(scores: Array, generator: np.random.Generator, replicates: int) -> NDArray[np.int64]:
    """The run in each place of each replicate, ``[replicates, S, G]``."""
    runs, games = scores.shape[:2]
    present = _present(scores)
    order = np.argsort(~present, axis=0, kind="stable")  # the missing ones last
    counts = present.sum(0)
    drawn = np.floor(generator.random((replicates, runs, games)) * counts).astype(np.int64)
    places = np.arange(runs)[:, None]
    return np.asarray(order[np.where(places < counts, drawn, places), np.arange(games)])


def bootstrap(
    statistic: Statistic,
    scores: Array,
    generator: np.random.Generator,
    *,
    by_game: bool = False,
    replicates: int = REPLICATES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """A statistic of scores ``[S, G, ...]`` with its percentile interval under the stratified bootstrap.

    With ``by_game`` the statistic is one of each game, ``[..., G]``, and each game has an interval of its own. The ends
    are NaN where the game, or one of the games that have runs, has only one run: its spread is unknown.

    Examples
    --------
    >>> scores = np.random.default_rng(0).normal(size=(5, 20))
    >>> interval = bootstrap(interquartile_mean, scores, np.random.default_rng(1))
    >>> bool(interval.low < interval.estimate < interval.high)
    True
    """
    estimate = np.asarray(statistic(scores))
    enough = _enough(_seeds(scores), by_game)
    if not enough.any():
        return _no_interval(estimate)
    return _where(enough, _percentiles(estimate, statistic(resample(scores, generator, replicates)), confidence))


def bootstrap_pair(
    statistic: PairStatistic,
    arm: Array,
    baseline: Array,
    generator: np.random.Generator,
    *,
    paired: bool,
    by_game: bool = False,
    replicates: int = REPLICATES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """A comparison of two arms, ``[S, G]`` and ``[S', G]``, with its percentile interval; see `bootstrap`.

    ``paired`` draws seeds, and with each the runs of both arms: the same seed is in the same row, and seeds that one
    arm lacks are left out. Otherwise the runs of each arm are drawn on their own.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> baseline = generator.normal(size=(5, 20))
    >>> improvement = bootstrap_pair(paired_improvement, baseline + 0.1, baseline, generator, paired=True)
    >>> [float(end) for end in improvement]
    [1.0, 1.0, 1.0]
    """
    if paired:
        both = np.stack([arm, baseline], axis=-1)
        both = np.where(np.isnan(both).any(-1, keepdims=True), np.nan, both)
        return bootstrap(
            lambda pair: statistic(pair[..., 0], pair[..., 1]),
            both,
            generator,
            by_game=by_game,
            replicates=replicates,
            confidence=confidence,
        )
    estimate = np.asarray(statistic(arm, baseline))
    enough = _enough(np.minimum(_seeds(arm), _seeds(baseline)), by_game)
    if not enough.any():
        return _no_interval(estimate)
    drawn_arm, drawn_baseline = (resample(scores, generator, replicates) for scores in (arm, baseline))
    return _where(enough, _percentiles(estimate, statistic(drawn_arm, drawn_baseline), confidence))


def curve_interval(
    statistic: Statistic,
    curves: Array,
    generator: np.random.Generator,
    *,
    by_game: bool = False,
    replicates: int = 500,
    confidence: float = CONFIDENCE,
) -> Interval:
    """A statistic at each point of curves ``[S, G, K]``, as ``[K, *shape]``; the same runs are drawn for all points."""
    estimate = np.asarray(statistic(np.moveaxis(curves, -1, 0)))
    seeds = (~np.isnan(curves)).sum(0).T
    enough = np.stack([_enough(at_point, by_game) for at_point in seeds])  # [K] or [K, G]
    if not enough.any():
        return _no_interval(estimate)
    drawn, games = _draw(curves, generator, replicates), np.arange(curves.shape[1])
    # Point by point: all points at once would hold [B, S, G, K] numbers.
    replicated = np.stack([statistic(curves[drawn, games, at]) for at in range(curves.shape[-1])], axis=1)
    return _where(enough, _percentiles(estimate, replicated, confidence))


def _present(scores: Array) -> NDArray[np.bool_]:
    """Which runs of ``[S, G, ...]`` have a number, ``[S, G]``."""
    return np.asarray(~np.isnan(scores.reshape(*scores.shape[:2], -1)).all(-1))


def _seeds(scores: Array) -> NDArray[np.int64]:
    """The number of runs of each game, ``[G]``."""
    return np.asarray(_present(scores).sum(0))


def _enough(seeds: NDArray[np.int64], by_game: bool) -> NDArray[np.bool_]:
    """Where an interval can be given: ``[G]`` by game, else ``[]``: not where one of the games has a single run."""
    enough = seeds >= FEWEST_SEEDS
    return enough if by_game else np.asarray(seeds.any() and enough[seeds > 0].all())


def _mean(values: Array) -> Array:
    """Mean over the last axis of what is not NaN; NaN where nothing is left."""
    return mean_over_runs(values[..., None])[..., 0]


def _better(arm: Array, baseline: Array) -> Array:
    """1 where the arm is better, ½ where they tie, 0 where it is worse, NaN where one is missing."""
    return 0.5 * (np.sign(arm - baseline) + 1.0)


def _percentiles(estimate: Array, replicated: Array, confidence: float) -> Interval:
    tail = 50.0 * (1.0 - confidence)
    tails = [tail, 100.0 - tail]
    if not np.isnan(replicated).any():
        return Interval(estimate, *np.percentile(replicated, tails, axis=0))
    with warnings.catch_warnings():  # a game without runs is NaN in every replicate, and so is its interval
        warnings.simplefilter("ignore", RuntimeWarning)
        return Interval(estimate, *np.nanpercentile(replicated, tails, axis=0))


def _where(enough: NDArray[np.bool_], interval: Interval) -> Interval:
    """The interval where there are enough runs; the estimate everywhere."""
    enough = enough.reshape(enough.shape + (1,) * (interval.estimate.ndim - enough.ndim))
    return Interval(interval.estimate, *(np.where(enough, end, np.nan) for end in interval[1:]))


def _no_interval(estimate: Array) -> Interval:
    nothing = np.full(estimate.shape, np.nan)
    return Interval(estimate, nothing, nothing)


# ---- sweeps of settings: runs are the last axis ----------------------------------------------------------------------


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean of ``values`` [n] that are not NaN, and its standard error s/√n; NaN where there are too few."""
    known = values[~np.isnan(values)]
    error = float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else math.nan
    return (float(known.mean()) if known.size else math.nan), error


def halves(samples: Array) -> tuple[Array, Array]:
    """Split the runs, the last axis of ``samples`` [..., n], into a first and a second half; one run is both."""
    n = samples.shape[-1]
    return (samples[..., : n // 2], samples[..., n // 2 :]) if n > 1 else (samples, samples)


def cross_fitted_best(first: Array, second: Array, judges: tuple[Array, Array] | None = None) -> Array:
    """Mean of the lowest of m cells [...], chosen on one half of the runs, judged on the other, both ways round.

    ``first`` and ``second`` [m, ...] are the means over each half; ``judges`` those of another measure, for the same
    choice. The minimum over all runs would be too good.
    """

    def judged(chosen: Array, judge: Array) -> Array:
        best = chosen.argmin(axis=0, keepdims=True)
        return np.asarray(np.take_along_axis(judge, best, axis=0)[0])

    of_first, of_second = judges or (first, second)
    return 0.5 * (judged(first, of_second) + judged(second, of_first))


def half_bootstrap(
    samples: Array, statistic: Callable[[Array, Array], Array], *, seed: int, resamples: int = REPLICATES
) -> tuple[float, float]:
    """Percentile interval (95 %) of ``statistic`` when the runs, the last axis of ``samples`` [..., n], are resampled.

    All rows are resampled with the same runs, and the halves apart. ``statistic`` takes the means over each half [...,
    resamples].
    """
    rng = np.random.default_rng(seed)
    means = []
    for half in halves(samples):
        n = half.shape[-1]
        counts = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
        means.append(half @ (counts.T / n))
    low, high = np.percentile(statistic(*means), [2.5, 97.5])
    return float(low), float(high)


def share_within(axis: Array, values: Array, limit: Array | float) -> Array:
    """Share of the range of ``axis`` [m] where straight lines through ``values`` [m, ...] lie at or below ``limit``."""
    left, right = values[:-1] - limit, values[1:] - limit
    widths = np.diff(axis).reshape(-1, *([1] * (values.ndim - 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(left == right, 0.0, left / (left - right))
    below = np.where(
        (left <= 0) & (right <= 0),
        1.0,
        np.where((left > 0) & (right > 0), 0.0, np.where(left <= 0, crossing, 1 - crossing)),
    )
    span = axis[-1] - axis[0]
    share: Array = (below * widths).sum(axis=0) / (span if span > 0 else np.nan)
    return share
