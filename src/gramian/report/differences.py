"""Scores of an arm minus those of another one, or of a control at the arm's own feature norm, by pairs of one seed.

DQN and the norm penalty at one or several κ leave features of different size; DQN is the norm penalty with κ = 0.
Between two of them that are next to each other the score is taken to be linear in log ‖φ‖, so that there is a control
for every norm between the smallest and the largest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gramian.core.arms import CENTRABLE, kind_of
from gramian.core.statistics import Array, Interval, mean_over_runs, ratios, student, student_by_game
from gramian.report.analysis import Analysis

FEWEST_TOGETHER = 2
"""Games that have a mean together."""
ONLY_SHRINK = ("dqn", "norm")
"""Kinds of arms whose losses differ by the shrinking term alone."""
EQUAL = 0.05
"""Norms that differ by no more than this share count as equal, where an arm's is beyond those of all controls."""
AGAINST = "the norm penalty at equal norm"
"""The name of the interpolated control."""


@dataclass(frozen=True)
class Differences:
    """Scores of the other arms minus those of one."""

    against: str
    pairs: dict[str, Array]
    """Arm minus the one of the same seed ``[S, G]``, NaN where one of the two is missing."""
    learned: Array
    """What each run of the study's baseline learns ``[S, G]``: its final score minus that of random play."""

    def seeds(self, game: int) -> int:
        """Pairs in a game of the arm that has the most."""
        return max((int(np.isfinite(pairs[:, game]).sum()) for pairs in self.pairs.values()), default=0)

    def in_game(self, arm: str, game: int) -> Interval:
        """Mean difference in one game, with Student's interval."""
        return student(self.pairs[arm][:, [game]])

    @property
    def begun(self) -> NDArray[np.bool_]:
        """Games in which the baseline learns something ``[G]``."""
        return np.asarray(mean_over_runs(self.learned) > 0)

    @property
    def common(self) -> list[int]:
        """Games in which every arm has a pair and the baseline learns something; empty where there are too few."""
        there = [np.isfinite(pairs).any(axis=0) for pairs in self.pairs.values()]
        games = np.flatnonzero(np.logical_and.reduce([self.begun, *there]))
        return [int(game) for game in games] if len(games) >= FEWEST_TOGETHER else []

    def together(self, arm: str) -> Interval:
        """Mean over the `common` games of the difference in percent of what the baseline learns, with both errors."""
        games = self.common
        return student(100.0 * ratios(self.pairs[arm][:, games], self.learned[:, games]))

    def means(self) -> dict[str, Interval]:
        """The means `together` by arm; none without common games."""
        return {arm: self.together(arm) for arm in self.pairs} if self.common else {}


def differences(analysis: Analysis, against: str) -> Differences:
    """Final scores of every other arm that figures show, minus those of one."""
    final, baseline = analysis.final, analysis.options.baseline
    learned = final[baseline if baseline in final else against] - analysis.random
    pairs = {arm: final[arm] - final[against] for arm in analysis.shown() if arm != against}
    return Differences(against, pairs, learned if baseline in final else np.full_like(learned, np.nan))


def difference_words(found: Differences, baseline: str, *, together: bool) -> str:
    """What a figure of differences shows, with a panel of the games together or without."""
    last = f" Together: mean over games, in percent of what {baseline} learns in each." if together else ""
    return (
        f"Final score minus that of {found.against}, by pairs of the same game and seed; bars: Student's 95 % interval "
        f"of the mean, and where seeds are few the seeds themselves.{last}"
    )


class Between(NamedTuple):
    """The two controls that an arm's norm lies between in a game."""

    smaller: str
    larger: str
    share: float
    """Of the larger one in the mean of both."""


def interpolated(
    scores: Mapping[str, Array], norms: Mapping[str, Array], arm: str, controls: Sequence[str]
) -> tuple[Array, list[Between | None]]:
    """An arm's scores ``[S, G]`` minus those of a control at its own norm, and what that is made of in each game.

    A game has one norm of each arm, the geometric mean over its seeds, so that the control of every pair of a game is
    the same mixture of two runs of the pair's seed. The difference is NaN where a run is missing, or where the arm's
    features are smaller, or larger, than those of every control and not nearly equal to one.
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

        An arm without a control in a game in which the baseline learns something has no mean; without any mean there
        are none.
        """
        found = [arm for arm in arms if arm in self.between and np.isfinite(self.final.pairs[arm]).any()]
        final = replace(self.final, pairs={arm: self.final.pairs[arm] for arm in found})
        means = {arm: self._together(final, arm) for arm in found}
        return final, means if any(np.isfinite(mean.estimate) for mean in means.values()) else {}

    def _together(self, found: Differences, arm: str) -> Interval:
        alone = replace(found, pairs={arm: found.pairs[arm]})
        if len(alone.common) < found.begun.sum():
            return Interval(*(np.array(np.nan) for _ in range(3)))
        return alone.together(arm)

    def table(self, games: Sequence[str]) -> pl.DataFrame:
        """The rows of ``equal_norm.csv``: one for each arm in each game."""
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
    """Compare every arm that shrinks features and does more with a control at its own norm.

    ``runs`` are those of `gramian.study.store`, ``features`` the table of `features.feature_table`; norms are of runs
    that are done. Arms with a learning rate of their own, or with uncentred penalties, differ by more than
    their size and are left out. None where the study lacks the arms `dqn`, `norm` (one of them the baseline) or another
    one, has no logs of its features, or no arm's features lie between theirs.
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
    learned = analysis.final[analysis.options.baseline] - analysis.random
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
        *(Differences(AGAINST, {arm: pairs for arm, (pairs, _) in one.items()}, learned) for one in (final, auc)),
    )
