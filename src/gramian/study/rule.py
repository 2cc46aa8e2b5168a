"""The rules that a κ is chosen by: the highest score, or a feature norm of the same size. Pure functions.

**By score.** A run scores (return − lowest)/(highest − lowest), where lowest and highest are the means over seeds of
the worst and the best arm of its game: every game counts the same. An arm scores the mean over games of the mean over
runs. Of each penalty the κ with the highest score is taken, the smallest of equals.

**By norm.** Penalties that shrink features (``norm``, ``cross``, ``l2``) may help or harm by the shrinking alone, and
at equal κ they shrink differently. They are also compared at the κ where the mean feature norm (``feature_norm`` of
``metrics.csv``) is the same, interpolated in a grid of κ.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from gramian.core.arms import kind_of

Array = NDArray[np.float64]

WINDOW_EPISODES = 100
"""Last training episodes whose mean return is the final score, as in the paper."""
FEWEST_KAPPAS = 3
"""κ of one penalty that make a grid."""
FEWEST_RANDOM_EPISODES = 10
"""Episodes of a run's own prefill that make a random score."""
MATCHED = "norm"
"""The penalty that is also judged at the κ of ``gram``'s feature norm: it shrinks features and does nothing else."""
LAST_SHARE = 0.25
"""Share of a run, from its end, that its mean feature norm is taken over."""


def penalty_of(arm: str) -> str:
    """An arm without its κ: what a grid of κ is a grid of. A combination has no grid and stands for itself."""
    if "+" in kind_of(arm):
        return arm
    head, *rest = arm.split(" ", maxsplit=1)
    kind, *options = head.split(":")
    return " ".join([":".join([kind, *options[1:]]), *rest])


def last_mean(logged: Sequence[float]) -> float:
    """Mean of the last quarter of what a run has logged, its feature norms for one; NaN where there is nothing."""
    return fmean(logged[-max(1, round(LAST_SHARE * len(logged))) :]) if logged else math.nan


def mean_norm(norms: Sequence[float]) -> float:
    """Geometric mean over games and seeds, so that no game prevails; NaN where one is missing or not positive."""
    if not norms or not all(norm > 0 for norm in norms):
        return math.nan
    return math.exp(fmean(map(math.log, norms)))


def matched_kappa(norms: Mapping[float, float], target: float) -> float | None:
    """The smallest κ > 0 at which the norm is ``target``, linear in logarithms; None where the grid misses it."""
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


def grids(kappas: Mapping[str, float]) -> dict[str, list[str]]:
    """Arms of each penalty that has a grid of κ, by rising κ; ``kappas`` are those of the arms, 0 for none."""
    found: dict[str, list[str]] = {}
    for arm, kappa in kappas.items():
        if kappa > 0:
            found.setdefault(penalty_of(arm), []).append(arm)
    return {name: sorted(own, key=kappas.__getitem__) for name, own in found.items() if len(own) >= FEWEST_KAPPAS}


def counting_games(means: Mapping[str, Array], arms: Sequence[str]) -> list[int]:
    """Games with a score of every arm, which are not all the same; ``means`` over runs ``[G]`` are by arm."""
    stacked = np.stack([means[arm] for arm in arms])
    known = np.isfinite(stacked).all(0)
    differ = np.where(known, np.ptp(np.where(np.isfinite(stacked), stacked, 0.0), axis=0), 0.0) > 0
    return [int(at) for at in np.flatnonzero(known & differ)]


def within_range(
    scores: Mapping[str, Array], means: Mapping[str, Array], arms: Sequence[str], games: Sequence[int]
) -> dict[str, Array]:
    """Scores of runs ``[S, G]``, by arm, as shares of the range between the worst and the best arm of each game."""
    chosen = list(games)
    stacked = np.stack([means[arm][chosen] for arm in arms])
    low, span = stacked.min(0), np.ptp(stacked, axis=0)
    return {arm: (scores[arm][:, chosen] - low) / np.where(span > 0, span, np.nan) for arm in arms}


def best_kappa(scores: Iterable[tuple[float, float]]) -> float:
    """The κ with the highest score, the smallest of equals, from pairs of both."""
    kappa, _ = max(scores, key=lambda pair: (pair[1], -pair[0]))
    return kappa
