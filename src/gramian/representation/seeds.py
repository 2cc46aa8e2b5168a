"""Means over seeds, their standard errors and their intervals."""

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)
REPLICATES = 500
"""Of the bootstrap, as for learning curves."""
CONFIDENCE = 0.95
MOST_OF_A_RANGE = 3
"""Seeds up to which a percentile interval is the range of the seeds: of 3, one replicate in 27 is the lowest alone."""


def interval(runs: Array) -> tuple[Array, Array]:
    """95 % percentile interval of the mean over runs ``[S, K]``, by a bootstrap; NaN with fewer than two runs."""
    present = np.isfinite(runs)
    there = present.any(axis=1)
    values, present = np.where(present, runs, 0.0)[there], present[there].astype(np.float64)
    enough = present.sum(axis=0) > 1
    if not enough.any():
        return np.full(runs.shape[1], np.nan), np.full(runs.shape[1], np.nan)
    drawn = np.random.default_rng(0).integers(len(values), size=(REPLICATES, len(values)))
    weights = (drawn[:, :, None] == np.arange(len(values))).sum(axis=1).astype(np.float64)  # [REPLICATES, S]
    with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a point without any run is NaN throughout
        means = (weights @ values) / (weights @ present)
        quantile = np.nanquantile if np.isnan(means).any() else np.quantile
        low, high = quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


class Mean(NamedTuple):
    """A mean over seeds; standard error and ends of the interval are NaN for a single seed."""

    value: float
    error: float
    seeds: int
    """Those with a finite number."""
    low: float = math.nan
    high: float = math.nan

    def __str__(self) -> str:
        error = "" if math.isnan(self.error) else f" ± {_number(self.error, 3)}"
        return "–" if math.isnan(self.value) else f"{_number(self.value, 4)}{error}"


def _number(value: float, digits: int) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.{digits}g}"


def mean(values: Iterable[float]) -> Mean:
    """Mean, standard error s/√k and interval of the numbers that are finite."""
    finite = [value for value in values if math.isfinite(value)]
    count = len(finite)
    if not count:
        return Mean(math.nan, math.nan, 0)
    centre = math.fsum(finite) / count
    if count == 1:
        return Mean(centre, math.nan, 1)
    spread = math.sqrt(math.fsum((value - centre) ** 2 for value in finite) / (count - 1))
    low, high = interval(np.array(finite)[:, None])
    return Mean(centre, spread / math.sqrt(count), count, float(low[0]), float(high[0]))


def text(values: Sequence[float]) -> str:
    """Mean ± standard error as a table shows it; ∞ if a number is infinite."""
    return "∞" if any(map(math.isinf, values)) else str(mean(values))


def means(pairs: Iterable[tuple[Key, float]]) -> dict[Key, Mean]:
    """The mean of the values of each key, in the order in which the keys come."""
    grouped: dict[Key, list[float]] = {}
    for key, value in pairs:
        grouped.setdefault(key, []).append(value)
    return {key: mean(values) for key, values in grouped.items()}
