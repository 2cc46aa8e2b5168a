"""The rule that a κ is chosen by, for whoever has the scores. Pure functions of arrays; reads no files.

The score of a run is (return - lowest)/(highest - lowest), where lowest and highest are the means over seeds of the
worst and the best arm of its game: every game counts the same, whatever its points are. The score of an arm is the mean
over games of the mean over runs, and of each penalty the κ with the highest score is taken, the smallest of equals.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gramian.study.norms import penalty_of

Array = NDArray[np.float64]

WINDOW_EPISODES = 100
"""A return at the end of training is the mean of so many last training episodes, as in the paper."""
FEWEST_KAPPAS = 3
"""κ of one penalty that make a grid."""
FEWEST_RANDOM_EPISODES = 10
"""A random score from the runs' own prefill is the mean of at least so many episodes."""


def grids(kappas: Mapping[str, float]) -> dict[str, list[str]]:
    """Arms of each penalty that has a grid of κ, by rising κ.

    Parameters
    ----------
    kappas
        By arm; those with κ = 0 are left aside.

    Examples
    --------
    >>> grids({"dqn": 0.0, "gram:1.0": 1.0, "gram:0.1": 0.1, "gram:10.0": 10.0, "l2:1.0": 1.0})
    {'gram': ['gram:0.1', 'gram:1.0', 'gram:10.0']}
    """
    found: dict[str, list[str]] = {}
    for arm, kappa in kappas.items():
        if kappa > 0:
            found.setdefault(penalty_of(arm), []).append(arm)
    return {name: sorted(own, key=kappas.__getitem__) for name, own in found.items() if len(own) >= FEWEST_KAPPAS}


def counting_games(means: Mapping[str, Array], arms: Sequence[str]) -> list[int]:
    """Games with a score of every arm in which the arms do not all score the same.

    Parameters
    ----------
    means
        Mean over runs of each game ``[G]``, by arm; NaN where there is none.
    arms
        Those that must have one.

    Examples
    --------
    >>> counting_games({"dqn": np.array([1.0, 5.0, 2.0]), "gram": np.array([2.0, 5.0, np.nan])}, ["dqn", "gram"])
    [0]
    """
    stacked = np.stack([means[arm] for arm in arms])
    known = np.isfinite(stacked).all(0)
    differ = np.where(known, np.ptp(np.where(np.isfinite(stacked), stacked, 0.0), axis=0), 0.0) > 0
    return [int(at) for at in np.flatnonzero(known & differ)]


def within_range(
    scores: Mapping[str, Array], means: Mapping[str, Array], arms: Sequence[str], games: Sequence[int]
) -> dict[str, Array]:
    """Scores of runs ``[S, G]``, by arm, as shares of the range between the worst and the best arm of each game.

    Examples
    --------
    >>> scores = {"dqn": np.array([[1.0], [3.0]]), "gram": np.array([[4.0], [4.0]])}
    >>> within_range(scores, {arm: own.mean(0) for arm, own in scores.items()}, ["dqn", "gram"], [0])["dqn"].tolist()
    [[-0.5], [0.5]]
    """
    chosen = list(games)
    stacked = np.stack([means[arm][chosen] for arm in arms])
    low, span = stacked.min(0), np.ptp(stacked, axis=0)
    return {arm: (scores[arm][:, chosen] - low) / np.where(span > 0, span, np.nan) for arm in arms}


def best_kappa(scores: Iterable[tuple[float, float]]) -> float:
    """The κ with the highest score, the smallest of equals, from pairs of both.

    Examples
    --------
    >>> best_kappa([(10.0, 0.5), (0.1, 0.5), (1.0, 0.2)])
    0.1
    """
    kappa, _ = max(scores, key=lambda pair: (pair[1], -pair[0]))
    return kappa
