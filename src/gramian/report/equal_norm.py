"""What an arm has beyond the norm penalty at equal norm of the features, where no run of it has quite that norm.

DQN and the norm penalty at one or several κ leave features of different size. Between two of them that are next to each
other the score is taken to be linear in log ‖φ‖, so that there is a control for every norm between the smallest and the
largest. DQN is the norm penalty with κ = 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from gramian.core.arms import CENTRABLE, kind_of
from gramian.core.statistics import Array, Interval, learned, mean_over_runs, student_by_game
from gramian.report.analysis import Analysis
from gramian.report.differences import Differences

ONLY_SHRINK = ("dqn", "norm")
"""Kinds of arms whose losses differ by the shrinking term alone."""
EQUAL = 0.05
"""Norms that differ by no more than this share count as equal, where an arm's is beyond those of all controls."""
AGAINST = "the norm penalty at equal norm"
"""What it is that arms are compared with."""


class Between(NamedTuple):
    """The two controls that an arm's norm lies between in a game."""

    smaller: str
    larger: str
    share: float
    """Of the larger one in the mean of both."""


def interpolated(
    scores: Mapping[str, Array], norms: Mapping[str, Array], arm: str, controls: Sequence[str]
) -> tuple[Array, list[Between | None]]:
    """An arm's scores less those of a control at its own norm.

    A game has one norm of each arm, the geometric mean over its seeds, so that in every pair of a game the control is
    the same mixture of two runs of the pair's seed.

    Parameters
    ----------
    scores, norms
        Of each run ``[S, G]``, by arm; NaN where missing.
    arm
        The one that is judged.
    controls
        Arms to interpolate between.

    Returns
    -------
    tuple
        Differences ``[S, G]``, NaN where a run is missing, or where the arm's features are smaller, or larger, than
        those of every control, and not nearly equal to one; and between which two they lie in each game.

    Examples
    --------
    >>> scores = {"dqn": np.array([[1.0]]), "norm": np.array([[3.0]]), "gram": np.array([[5.0]])}
    >>> norms = {"dqn": np.array([[9.0]]), "norm": np.array([[1.0]]), "gram": np.array([[3.0]])}
    >>> interpolated(scores, norms, "gram", ["dqn", "norm"])
    (array([[3.]]), [Between(smaller='norm', larger='dqn', share=0.5)])
    """
    sizes = {one: _log_norm(norms[one]) for one in (arm, *controls)}
    apart = np.full_like(scores[arm], np.nan)
    places = [
        _between(dict(zip(sizes, game.tolist(), strict=True)), arm) for game in np.stack(list(sizes.values()), axis=1)
    ]
    for game, place in enumerate(places):
        if place is not None:
            smaller, larger = (scores[one][:, game] for one in (place.smaller, place.larger))
            apart[:, game] = scores[arm][:, game] - ((1.0 - place.share) * smaller + place.share * larger)
    return apart, places


def _log_norm(norms: Array) -> Array:
    """Mean log ‖φ‖ over seeds ``[G]``; NaN where a game has none, or features that are all zero."""
    known = np.isfinite(norms) & (norms > 0)
    return mean_over_runs(np.log(norms, out=np.full(norms.shape, np.nan), where=known))


def _between(sizes: Mapping[str, float], arm: str) -> Between | None:
    own = sizes[arm]
    smaller = [(size, one) for one, size in sizes.items() if one != arm and size <= own]
    larger = [(size, one) for one, size in sizes.items() if one != arm and size >= own]
    if not smaller or not larger:
        beyond = [min(larger)] if larger else [max(smaller)] if smaller else []
        return next((Between(one, one, 0.0) for size, one in beyond if abs(size - own) <= np.log1p(EQUAL)), None)
    (low, below), (high, above) = max(smaller), min(larger)
    return Between(below, above, (own - low) / (high - low)) if high > low else Between(below, below, 0.0)


@dataclass(frozen=True)
class EqualNorm:
    """Every other arm of a study against a control at its own norm."""

    controls: list[str]
    norms: dict[str, Array]
    """Geometric mean over the seeds of each game ``[G]``, by arm."""
    between: dict[str, list[Between | None]]
    """Of each game, by arm."""
    final: Differences
    auc: Differences

    def judged(self, arms: Iterable[str]) -> tuple[Differences, dict[str, Interval]]:
        """Final scores of those of the arms that have a pair with such a control, and their means over the games.

        No means where no arm has one.
        """
        found = [arm for arm in arms if arm in self.between and np.isfinite(self.final.pairs[arm]).any()]
        final = replace(self.final, pairs={arm: self.final.pairs[arm] for arm in found})
        means = {arm: self.together(final, arm) for arm in found}
        return final, means if any(np.isfinite(mean.estimate) for mean in means.values()) else {}

    def together(self, found: Differences, arm: str) -> Interval:
        """Mean over all games in which the baseline learns something; NaN where the arm has no control in one of them.

        In percent of what the baseline learns in each, with Student's interval.
        """
        alone = Differences(found.against, {arm: found.pairs[arm]}, found.learned)
        if len(alone.common) < np.isfinite(found.learned).sum():
            return Interval(*(np.array(np.nan) for _ in range(3)))
        return alone.together(arm)

    def table(self, games: Sequence[str]) -> pl.DataFrame:
        """What ``equal_norm.csv`` holds: one row for each arm in each game."""
        rows = []
        for arm, places in self.between.items():
            ends = {name: student_by_game(one.pairs[arm]) for name, one in (("final", self.final), ("auc", self.auc))}
            for at, (game, place) in enumerate(zip(games, places, strict=True)):
                row: dict[str, str | float] = {"game": game, "arm": arm, "norm": float(self.norms[arm][at])}
                if place is not None:
                    row |= {"smaller": place.smaller, "larger": place.larger, "share": place.share}
                    row |= {f"{which}_norm": float(self.norms[str(row[which])][at]) for which in ("smaller", "larger")}
                for name, interval in ends.items():
                    values = (float(end[at]) for end in interval)
                    row |= dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))
                rows.append(row)
        columns = ["game", "arm", "norm", "smaller", "smaller_norm", "larger", "larger_norm", "share"]
        columns += [f"{name}{end}" for name in ("final", "auc") for end in ("", "_low", "_high")]
        schema = {name: pl.String if name in ("game", "arm", "smaller", "larger") else pl.Float64 for name in columns}
        return pl.DataFrame(rows, schema).fill_nan(None)


def equal_norm(analysis: Analysis, runs: pl.DataFrame, features: pl.DataFrame | None) -> EqualNorm | None:
    """Lay every arm that shrinks features and does more beside a control at its own norm.

    Norms are of runs that are done; those of runs that have diverged say nothing.

    Parameters
    ----------
    analysis
        Of the study.
    runs
        Of the study, as `gramian.study.store` reads them.
    features
        As `gramian.report.features.feature_table` gives them.

    Returns
    -------
    EqualNorm or None
        None where the study has not the arms `dqn`, `norm` and another one, one of the first two as the baseline, or no
        logs of its features, or where no arm's features lie between theirs. Arms with a learning rate of their own, or
        with uncentred penalties, differ by more than that and are left out.
    """
    kinds = {arm: kind_of(kind) for arm, kind in runs.select("arm", "kind").unique().iter_rows()}
    uncentred = set(runs.filter(pl.col("centered").not_() & pl.col("kind").is_in(CENTRABLE))["arm"])
    alike = [arm for arm in analysis.arms if " lr " not in arm and arm not in uncentred]
    controls = [arm for arm in alike if kinds[arm] in ONLY_SHRINK]
    others = [arm for arm in alike if arm not in controls]
    if features is None or not others or {kinds[arm] for arm in controls} != set(ONLY_SHRINK):
        return None
    if analysis.options.baseline not in controls:
        return None
    norms = {arm: np.full(analysis.final[arm].shape, np.nan) for arm in analysis.arms}
    done = features.filter(state="done").select("game", "arm", "seed", "training_norm")
    for game, arm, seed, norm in done.iter_rows():
        norms[arm][analysis.seeds.index(seed), analysis.games.index(game)] = norm
    scale = learned(analysis.final[analysis.options.baseline], analysis.random)
    final, auc = (
        {arm: interpolated(scores, norms, arm, controls) for arm in others} for scores in (analysis.final, analysis.auc)
    )
    between = {arm: places for arm, (_, places) in final.items()}
    if not any(place for places in between.values() for place in places):
        return None
    return EqualNorm(
        controls,
        {arm: np.exp(_log_norm(own)) for arm, own in norms.items()},
        between,
        *(Differences(AGAINST, {arm: pairs for arm, (pairs, _) in one.items()}, scale) for one in (final, auc)),
    )
