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


def bootstrap_interval(
    samples: Floats, statistic: Callable[[Floats], Floats], *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Percentile interval (95 %) of ``statistic`` when the last axis of ``samples`` [..., n], the runs, is resampled.

    All rows are resampled with the same runs: runs of different arms that share a number share their random start.
    ``statistic`` takes the means over the resampled runs [..., resamples] and returns [resamples].

    Examples
    --------
    >>> low, high = bootstrap_interval(np.arange(100.0), lambda means: means, seed=0)
    >>> 40 < low < 49.5 < high < 60
    True
    """
    rng = np.random.default_rng(seed)
    n = samples.shape[-1]
    counts = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
    values = statistic(samples @ (counts.T / n))
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def share_within(axis: Floats, values: Floats, limit: Floats | float) -> Floats:
    """Share of the range of ``axis`` [m] where the curve through ``values`` [m, ...] lies at or below ``limit``.

    Between the points the curve is straight, so that the share does not jump with the grid.

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
    share: Floats = (below * widths).sum(axis=0) / (axis[-1] - axis[0])
    return share
