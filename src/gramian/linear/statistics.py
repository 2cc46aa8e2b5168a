"""Means with standard errors and bootstrap intervals, and the share of a step-size range that does well."""

from collections.abc import Callable

import numpy as np

from gramian.linear.kernels import Floats

RESAMPLES = 2000


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean of ``values`` [n] and its standard error s/√n; the error is NaN for n = 1.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    n = len(values)
    error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return float(values.mean()), error


def halves(samples: Floats) -> tuple[Floats, Floats]:
    """Split the runs, the last axis of ``samples`` [..., n], into a first and a second half; one run is both.

    Examples
    --------
    >>> [half.tolist() for half in halves(np.array([1.0, 2.0, 3.0]))]
    [[1.0], [2.0, 3.0]]
    """
    n = samples.shape[-1]
    return (samples[..., : n // 2], samples[..., n // 2 :]) if n > 1 else (samples, samples)


def cross_fitted_best(first: Floats, second: Floats, judges: tuple[Floats, Floats] | None = None) -> Floats:
    """Mean of the best of m cells [...], chosen on one half of the runs and judged on the other, both ways round.

    ``first`` and ``second`` [m, ...] are the means of the cells over each half; less is better. The minimum over all
    runs would be too good: it takes the luck of the cell that it chooses along. ``judges`` are the means over each half
    of another measure, for the cells that are best by the first.

    Examples
    --------
    >>> float(cross_fitted_best(np.array([1.0, 3.0]), np.array([4.0, 2.0])))
    3.5
    >>> judges = np.array([10.0, 20.0]), np.array([30.0, 50.0])
    >>> float(cross_fitted_best(np.array([1.0, 3.0]), np.array([4.0, 2.0]), judges))
    25.0
    """

    def judged(chosen: Floats, judge: Floats) -> Floats:
        best = chosen.argmin(axis=0, keepdims=True)
        return np.asarray(np.take_along_axis(judge, best, axis=0)[0])

    of_first, of_second = judges or (first, second)
    return 0.5 * (judged(first, of_second) + judged(second, of_first))


def bootstrap_interval(
    samples: Floats, statistic: Callable[[Floats, Floats], Floats], *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Percentile interval (95 %) of ``statistic`` when the last axis of ``samples`` [..., n], the runs, is resampled.

    All rows are resampled with the same runs: runs of different arms that share a number share their random start. The
    halves of the runs are resampled apart, so that no run is on both sides of a choice. ``statistic`` takes the means
    over the resampled runs of each half [..., resamples] and returns [resamples].

    Examples
    --------
    >>> low, high = bootstrap_interval(np.arange(100.0), lambda one, other: (one + other) / 2, seed=0)
    >>> 40 < low < 49.5 < high < 60
    True
    """
    rng = np.random.default_rng(seed)
    means = []
    for half in halves(samples):
        n = half.shape[-1]
        counts = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
        means.append(half @ (counts.T / n))
    low, high = np.percentile(statistic(*means), [2.5, 97.5])
    return float(low), float(high)


def share_within(axis: Floats, values: Floats, limit: Floats | float) -> Floats:
    """Share of the range of ``axis`` [m] where the curve through ``values`` [m, ...] lies at or below ``limit``.

    Between the points the curve is straight, so that the share does not jump with the grid. One point has no range, and
    its share is NaN.

    Examples
    --------
    >>> float(share_within(np.array([0.0, 1.0, 2.0]), np.array([2.0, 0.0, 2.0]), 1.0))
    0.5
    """
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
    share: Floats = (below * widths).sum(axis=0) / (span if span > 0 else np.nan)
    return share
