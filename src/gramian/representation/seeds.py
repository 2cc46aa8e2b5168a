"""Means and standard errors over seeds."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Mean(NamedTuple):
    """A mean over seeds."""

    value: float
    error: float
    """Its standard error; NaN of a single seed."""
    seeds: int
    """Those with a finite number."""

    def __str__(self) -> str:
        error = "" if math.isnan(self.error) else f" ± {_number(self.error, 3)}"
        return "–" if math.isnan(self.value) else f"{_number(self.value, 4)}{error}"


def _number(value: float, digits: int) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.{digits}g}"


def mean(values: Iterable[float]) -> Mean:
    """Mean and standard error s/√k of the numbers that are finite.

    Examples
    --------
    >>> mean([1.0, 3.0, float("nan")])
    Mean(value=2.0, error=1.0, seeds=2)
    >>> print(mean([1.5]), mean([1.0, 3.0]), mean([]))
    1.5 2 ± 1 –
    >>> print(mean([1e6]))
    1,000,000
    """
    finite = [value for value in values if math.isfinite(value)]
    count = len(finite)
    if not count:
        return Mean(math.nan, math.nan, 0)
    centre = math.fsum(finite) / count
    if count == 1:
        return Mean(centre, math.nan, 1)
    spread = math.sqrt(math.fsum((value - centre) ** 2 for value in finite) / (count - 1))
    return Mean(centre, spread / math.sqrt(count), count)


def text(values: Sequence[float]) -> str:
    """Mean ± standard error as a table shows it; ∞ where a number is infinite, as a mean over those is none.

    Examples
    --------
    >>> text([1.0, 3.0]), text([1.0, math.inf])
    ('2 ± 1', '∞')
    """
    return "∞" if any(map(math.isinf, values)) else str(mean(values))


def means(pairs: Iterable[tuple[Key, float]]) -> dict[Key, Mean]:
    """The mean of the values of each key, in the order in which the keys come.

    Examples
    --------
    >>> means([("a", 1.0), ("b", 5.0), ("a", 3.0)])["a"].value
    2.0
    """
    grouped: dict[Key, list[float]] = {}
    for key, value in pairs:
        grouped.setdefault(key, []).append(value)
    return {key: mean(values) for key, values in grouped.items()}
