"""What the figures of an analysis show, as numbers: for each arm, mean over seeds and its interval."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gramian.representation.dynamics import GROWTH
from gramian.representation.seeds import MOST_OF_A_RANGE, Array, Mean, interval, mean, text
from gramian.representation.tables import Measure, Moment, Point, read_correlation

HISTOGRAM_BINS = 32


class Line(NamedTuple):
    """A mean over seeds with its interval, all ``[K]``; the ends are NaN where there is one seed."""

    x: Array
    mean: Array
    low: Array
    high: Array
    runs: Array
    """The seeds themselves, ``[S, K]``; NaN where one has nothing."""

    @property
    def few(self) -> bool:
        """Whether an interval would be the range of the seeds, so that a figure shows the seeds in its place."""
        return len(self.runs) <= MOST_OF_A_RANGE


def of_runs(x: Array, runs: Array) -> Line:
    """The line of runs ``[S, K]`` at places ``[K]``; runs without any finite number are left out."""
    finite = np.where(np.isfinite(runs), runs, np.nan)
    finite = finite[~np.isnan(finite).all(axis=1)]
    counts = np.isfinite(finite).sum(axis=0)
    sums = np.nansum(finite, axis=0)
    mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Line(x, mean, *interval(finite), finite)


def line(values: Iterable[tuple[Hashable, float, float]]) -> Line:
    """The line of a table of run, place and value, by rising place."""
    table: dict[Hashable, dict[float, float]] = {}
    for run, place, value in values:
        table.setdefault(run, {})[place] = value
    x = sorted({place for own in table.values() for place in own})
    runs = [[own.get(place, math.nan) for place in x] for own in table.values()]
    return of_runs(np.array(x, np.float64), np.array(runs, np.float64).reshape(len(runs), len(x)))


def sparsity(points: Iterable[Point], arm: str) -> Line:
    """Sparsity by threshold ε."""
    return line((p.run, p.x, p.value) for p in points if p.arm == arm and p.curve == "sparsity")


def active_of_states(points: Iterable[Point], arm: str) -> Line:
    """Share of states by the share of the features that are active in them, in `HISTOGRAM_BINS` bins of [0, 1]."""
    shares = (
        _histogram(np.arange(counts.size) / (counts.size - 1), counts)
        for counts in _curves(points, arm, "active_per_state")
    )
    return line((run, place, share) for run, histogram in enumerate(shares) for place, share in histogram)


def activity_of_features(points: Sequence[Point], arm: str) -> Line:
    """Share of features by the share of the states in which they are active, in `HISTOGRAM_BINS` bins of [0, 1]."""
    states = [max(counts.sum(), 1.0) for counts in _curves(points, arm, "active_per_state")]
    shares = (
        _histogram(counts / seen, np.ones(counts.size))
        for counts, seen in zip(_curves(points, arm, "active_per_feature"), states, strict=True)
    )
    return line((run, place, share) for run, histogram in enumerate(shares) for place, share in histogram)


def spectrum(points: Iterable[Point], arm: str) -> Line:
    """Eigenvalues of the covariance, largest first."""
    return line((p.run, p.x, p.value) for p in points if p.arm == arm and p.curve == "spectrum")


def held_variance(points: Iterable[Point], arm: str) -> Line:
    """Share of the variance that the first 1, 2, … eigenvalues hold; NaN of features that do not vary."""
    found: list[tuple[Hashable, float, float]] = []
    for run, eigenvalues in enumerate(_curves(points, arm, "spectrum")):
        total = eigenvalues.sum()
        shares = np.cumsum(eigenvalues) / (total if total > 0 else np.nan)
        found += [(run, place, share) for place, share in enumerate(shares.tolist(), start=1)]
    return line(found)


def during_training(moments: Iterable[Moment], arm: str, metric: str) -> Line:
    """A metric of ``dynamics.csv`` by frames."""
    return line((m.run, m.frames, m.value) for m in moments if m.arm == arm and m.metric == metric)


SLIGHT_GROWTH = 0.1
"""Growth of a logarithm below which there are no shares."""


def growth_shares(growths: Mapping[str, Mean]) -> tuple[float, float]:
    """Shares of log‖φ‖ and log abs(δ) in the growth of log‖g‖ of an arm: the ratio of its means over seeds.

    A mean of the runs' own ratios would be that of the run whose gradient grew least. NaN where it grew by less than
    `SLIGHT_GROWTH` or than its standard error. The keys are `gramian.representation.dynamics.GROWTH`.
    """
    gradient = growths["growth_log_head_gradient"]
    if not abs(gradient.value) > max(SLIGHT_GROWTH, gradient.error if math.isfinite(gradient.error) else 0.0):
        return math.nan, math.nan
    norm, error = (growths[name].value for name in ("growth_log_feature_norm", "growth_log_td_error"))
    return norm / gradient.value, error / gradient.value


class Correlation(NamedTuple):
    """The correlations of one run's features, ordered so that features that correlate stand together."""

    run: str
    seed: int
    matrix: Array
    """``[v, v]``, v the number of features that vary."""
    features: int
    """Number of all features."""


def unmeasured(measures: Iterable[Measure]) -> list[str]:
    """Runs without any measure, in the order in which they come: those that diverged."""
    found: dict[str, bool] = {}
    for row in measures:
        known = row.measure not in ("states", "nonfinite_share") and not math.isnan(row.value)
        found[row.run] = found.get(row.run, False) or known
    return [run for run, known in found.items() if not known]


def measure_texts(measures: Sequence[Measure], arms: Sequence[str]) -> dict[str, list[str]]:
    """The measures of one game as a table shows them: name → a text for each arm; runs that diverged are in no mean."""
    left_out = set(unmeasured(measures))
    values: dict[str, dict[str, list[float]]] = {}
    for row in measures:
        own = values.setdefault(row.measure, {arm: [] for arm in arms})
        if row.run not in left_out:
            own[row.arm].append(row.value)
    texts = {name: [text(by_arm[arm]) for arm in arms] for name, by_arm in values.items()}
    if set(GROWTH) <= set(values):
        shares = [growth_shares({name: mean(values[name][arm]) for name in GROWTH[:3]}) for arm in arms]
        for place, name in enumerate(GROWTH[3:]):
            texts[name] = [text([share[place]]) for share in shares]
    return texts


def first_measured(measures: Sequence[Measure], arm: str) -> Measure:
    """A row of an arm's first seed that was measured, or of its first seed where none was; in one game."""
    left_out = set(unmeasured(measures))
    return min((m for m in measures if m.arm == arm), key=lambda m: (m.run in left_out, m.seed))


def first_correlation(measures: Sequence[Measure], arm: str, folder: Path) -> Correlation:
    """Correlations of an arm's first seed that was measured; ordered by average linkage on 1 - abs(correlation)."""
    first = first_measured(measures, arm)
    matrix = read_correlation(folder, first.run)
    varies = ~np.isnan(matrix.diagonal())
    return Correlation(
        first.run, first.seed, _clustered(matrix[np.ix_(varies, varies)].astype(np.float64)), len(varies)
    )


def _clustered(matrix: Array) -> Array:
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(matrix) < 3:
        return matrix
    distance = squareform(np.clip(1 - np.abs(matrix), 0, None), checks=False)
    order = leaves_list(linkage(distance, "average", optimal_ordering=len(matrix) <= 1024))
    return np.asarray(matrix[np.ix_(order, order)])


def _curves(points: Iterable[Point], arm: str, curve: str) -> list[Array]:
    """The values of a curve, one array for each run of an arm, in the order of the runs."""
    runs: dict[str, list[float]] = {}
    for p in points:
        if p.arm == arm and p.curve == curve:
            runs.setdefault(p.run, []).append(p.value)
    return [np.array(values, np.float64) for values in runs.values()]


def _histogram(places: Array, weights: Array) -> list[tuple[float, float]]:
    """Left edge and share of each bin; NaN of a run that was not measured."""
    if np.isnan(places).any() or np.isnan(weights).any():
        weights = np.full_like(weights, np.nan)
    counts, edges = np.histogram(places, HISTOGRAM_BINS, (0, 1), weights=weights)
    shares = counts / np.maximum(weights.sum(), 1)
    return list(zip(edges[:-1].tolist(), shares.tolist(), strict=True))
