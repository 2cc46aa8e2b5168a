"""Final scores less those of one arm, by pairs of the same game and seed: of each game, and of the games together."""

from dataclasses import dataclass

import numpy as np

from gramian.core.statistics import Array, Interval, learned, student
from gramian.report.analysis import Analysis

FEWEST_TOGETHER = 2
"""Games; one says the same alone."""


@dataclass(frozen=True)
class Differences:
    """Final scores of the other arms less those of one."""

    against: str
    pairs: dict[str, Array]
    """Arm less the one of the same seed ``[S, G]``, NaN where one of the two is missing."""
    learned: Array
    """What the study's baseline learns in each game ``[G]``, as `statistics.learned` has it."""

    def seeds(self, game: int) -> int:
        """Pairs of the arm that has the most of them in a game."""
        return max((int(np.isfinite(pairs[:, game]).sum()) for pairs in self.pairs.values()), default=0)

    def in_game(self, arm: str, game: int) -> Interval:
        """Mean difference in one game, with Student's interval."""
        return student(self.pairs[arm][:, [game]])

    @property
    def common(self) -> list[int]:
        """Games that can be put together: in which every arm has a pair, and the baseline learns something."""
        there = [np.isfinite(pairs).any(axis=0) for pairs in self.pairs.values()]
        games = np.flatnonzero(np.logical_and.reduce([np.isfinite(self.learned), *there]))
        return [int(game) for game in games] if len(games) >= FEWEST_TOGETHER else []

    def together(self, arm: str) -> Interval:
        """Mean over the `common` games of the difference in percent of what the baseline learns in them."""
        games = self.common
        return student(100.0 * self.pairs[arm][:, games] / self.learned[games])


def differences(analysis: Analysis, against: str) -> Differences:
    r"""Take the difference of every other arm that figures show.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.report.analysis import Options, analyse
    >>> from gramian.study.store import import_csv
    >>> path = Path(tempfile.mkdtemp()) / "theirs.csv"
    >>> rows = "dqn,Pong,0,400,-20\ndqn,Pong,1,400,-18\ngram,Pong,0,400,-19\ngram,Pong,1,400,-15\n"
    >>> _ = path.write_text("arm,game,seed,frames,return\n" + rows)
    >>> found = differences(analyse(import_csv(path), Options(replicates=100)), "dqn")
    >>> float(found.in_game("gram", 0).estimate), found.seeds(0)
    (2.0, 2)
    """
    final, baseline = analysis.final, analysis.options.baseline
    scale = learned(final[baseline], analysis.random) if baseline in final else np.full(len(analysis.games), np.nan)
    pairs = {arm: final[arm] - final[against] for arm in analysis.shown() if arm != against}
    return Differences(against, pairs, scale)


def difference_words(found: Differences, baseline: str, *, together: bool) -> str:
    """What a figure of differences shows, with a panel of the games together or without."""
    last = f" Together: mean over games, in percent of what {baseline} learns in each." if together else ""
    return (
        f"Final score less that of {found.against}, by pairs of the same game and seed; bars: Student's 95 % interval "
        f"of the mean, and where seeds are few the seeds themselves.{last}"
    )
