"""Mean feature norms, and the κ at which one penalty leaves features as large as another one does. Reads no files.

Penalties that shrink features (``norm``, ``cross``, ``l2``) may help or harm by the shrinking alone. At equal κ they
shrink differently, so they are also compared at the κ where the mean feature norm, ``feature_norm`` of
``metrics.csv``, is the same. A study with a grid of κ gives that κ by interpolation.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

LAST_SHARE = 0.25
"""Share of a run, from its end, that its mean feature norm, and whatever goes with it, is taken over."""


def penalty_of(arm: str) -> str:
    """An arm without its κ: what a grid of κ is a grid of.

    Examples
    --------
    >>> penalty_of("gram:10.24"), penalty_of("gram:1.0:uncentered"), penalty_of("l2:3.0 lr 0.001")
    ('gram', 'gram:uncentered', 'l2 lr 0.001')
    """
    head, *rest = arm.split(" ", maxsplit=1)
    kind, *options = head.split(":")
    return " ".join([":".join([kind, *options[1:]]), *rest])


def last_mean(logged: Sequence[float]) -> float:
    """Mean of the last quarter of what a run has logged, its feature norms for one; NaN where there is nothing.

    Examples
    --------
    >>> last_mean([9.0, 9.0, 9.0, 4.0])
    4.0
    """
    return fmean(logged[-max(1, round(LAST_SHARE * len(logged))) :]) if logged else math.nan


def mean_norm(norms: Sequence[float]) -> float:
    """Geometric mean over games and seeds, so that no game prevails; NaN where one is missing or not positive.

    Examples
    --------
    >>> round(mean_norm([1.0, 4.0]), 6), mean_norm([1.0, 0.0])
    (2.0, nan)
    """
    if not norms or not all(norm > 0 for norm in norms):
        return math.nan
    return math.exp(fmean(map(math.log, norms)))


def matched_kappa(norms: Mapping[float, float], target: float) -> float | None:
    """The κ at which the norm is ``target``: linear between neighbours of the grid, in log κ and log norm.

    Parameters
    ----------
    norms
        Feature norm by κ, for κ > 0.
    target
        The norm that is wanted.

    Returns
    -------
    float or None
        The smallest such κ; None where the grid does not reach the target.

    Examples
    --------
    >>> matched_kappa({0.1: 8.0, 10.0: 2.0}, target=4.0)
    1.0
    >>> matched_kappa({0.1: 8.0, 10.0: 2.0}, target=9.0) is None
    True
    """
    grid = sorted(norms.items())
    wanted = math.log10(target)
    if grid and grid[0][1] == target:
        return grid[0][0]
    for (left, left_norm), (right, right_norm) in pairwise(grid):
        low, high = math.log10(left_norm), math.log10(right_norm)
        if low != high and min(low, high) <= wanted <= max(low, high):
            share = (wanted - low) / (high - low)
            return float(10 ** ((1 - share) * math.log10(left) + share * math.log10(right)))
    return None
