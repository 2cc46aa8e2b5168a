"""Numbers over seeds: ``measures.csv`` of ``gramian analyze``, ``scores.csv`` and ``features.csv`` of ``study report``.

An arm is named by its kind; it fits the one arm of a table that is this kind with whatever κ.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.claims.number import Number, count
from gramian.claims.tables import MissingRowsError, Tables
from gramian.core import statistics
from gramian.core.csv_tables import Row
from gramian.core.errors import UserError, unknown
from gramian.core.statistics import Array, Interval, PairStatistic, mean_interval, welch

FINISHED = ("done", "diverged")
UNPAIRED = "unpaired"
"""Said of a number of two arms that do not have the same seeds."""
SHARED = "of the seeds that both have"
"""Said of such a number that is of pairs all the same."""
ALWAYS = "the same in every resample"
"""Said of a number that no draw of seeds changes, so that a bootstrap finds no interval."""
BASELINE = "dqn"
"""The arm by whose learning differences of scores are measured."""


@dataclass(frozen=True)
class Sample:
    """How much a number stands on."""

    seeds: int
    """The fewest of any arm and game."""
    frames: int
    """The fewest of any run; agent steps where the table counts those."""
    games: int
    unit: str
    """Of ``frames``."""
    most_seeds: int
    """Of any arm and game."""

    def __str__(self) -> str:
        games = "one game" if self.games == 1 else f"{self.games} games"
        seeds = count(self.most_seeds, "seeds")
        if self.seeds < self.most_seeds:
            seeds = f"{self.seeds} to {seeds}"
        return f"{games}, {seeds}, {count(self.frames, self.unit)}"


def find_arm(names: set[str], kind: str, table: str) -> str:
    """The arm of that kind, whatever its κ.

    Examples
    --------
    >>> find_arm({"dqn", "gram:10.24"}, "gram", "measures.csv")
    'gram:10.24'
    """
    fitting = sorted(name for name in names if name == kind or name.startswith(f"{kind}:"))
    if not fitting:
        raise MissingRowsError(f"the table '{table}' has no runs of {kind}")
    if len(fitting) > 1:
        raise UserError(f"the table '{table}' has several arms of {kind}: {', '.join(fitting)}; keep one")
    return fitting[0]


@dataclass(frozen=True)
class Measure:
    r"""Mean of a measure over the seeds of an arm, less that of another arm or less another measure of the same runs.

    Intervals are Student's t, of pairs of the same seed: arms share its random numbers. Where two arms do not have the
    same seeds they are Welch's.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = [f"pong,{arm},{seed},500,sparsity,{value}" for arm, seed, value in
    ...         [("dqn", 0, 0.7), ("dqn", 1, 0.72), ("gram:1", 0, 0.3), ("gram:1", 1, 0.33)]]
    >>> _ = (folder / "m.csv").write_text("\n".join(["game,arm,seed,agent_steps,measure,value", *rows, ""]))
    >>> denser = Measure("m.csv", "pong", "gram", "sparsity", minus_arm="dqn")
    >>> print(denser.number(Tables(folder)), "|", denser.sample(Tables(folder)))
    −0.39 [−0.46, −0.33] | one game, 2 seeds, 500 agent steps
    """

    table: str
    game: str
    arm: str
    measure: str
    minus_arm: str = ""
    minus_measure: str = ""

    def number(self, tables: Tables) -> Number:
        """The mean or the difference."""
        first = self._values(tables, self.arm, self.measure)
        if self.minus_measure:
            second = self._values(tables, self.arm, self.minus_measure)
            return _mean({seed: first[seed] - second[seed] for seed in first.keys() & second.keys()})
        if not self.minus_arm:
            return _mean(first)
        return _difference(first, self._values(tables, self.minus_arm, self.measure))

    def sample(self, tables: Tables) -> Sample:
        """Seeds and agent steps behind it."""
        arms = [self.arm, *([self.minus_arm] if self.minus_arm else [])]
        rows = [self._rows(tables, arm, self.measure) for arm in arms]
        steps = [int(tables.number(self.table, row, "agent_steps")) for found in rows for row in found]
        return Sample(min(map(len, rows)), min(steps), 1, "agent steps", max(map(len, rows)))

    def _rows(self, tables: Tables, arm: str, measure: str) -> list[Row]:
        rows = tables.select(self.table, {"game": self.game})
        name = find_arm({tables.text(self.table, row, "arm") for row in rows}, arm, self.table)
        return tables.select(self.table, {"game": self.game, "arm": name, "measure": measure})

    def _values(self, tables: Tables, arm: str, measure: str) -> dict[str, float]:
        rows = self._rows(tables, arm, measure)
        return {tables.text(self.table, row, "seed"): tables.known(self.table, row, "value") for row in rows}


@dataclass(frozen=True)
class Feature:
    r"""The same of a column of ``features.csv``, which has one row for each run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = ["pong,dqn,0,done,500,8", "pong,dqn,1,done,500,9", "pong,gram,0,done,500,4", "pong,gram,1,done,500,6"]
    >>> _ = (folder / "f.csv").write_text("\n".join(["game,arm,seed,state,frames,training_norm", *rows, ""]))
    >>> smaller = Feature("f.csv", "pong", "gram", "training_norm", minus_arm="dqn")
    >>> print(smaller.number(Tables(folder)), "|", smaller.sample(Tables(folder)))
    −4 [−10, 3] | one game, 2 seeds, 500 frames
    """

    table: str
    game: str
    arm: str
    column: str
    minus_arm: str = ""
    minus_column: str = ""

    def number(self, tables: Tables) -> Number:
        """The mean or the difference."""
        first = self._values(tables, self.arm, self.column)
        if self.minus_column:
            second = self._values(tables, self.arm, self.minus_column)
            return _mean({seed: first[seed] - second[seed] for seed in first})
        if not self.minus_arm:
            return _mean(first)
        return _difference(first, self._values(tables, self.minus_arm, self.column))

    def sample(self, tables: Tables) -> Sample:
        """Seeds and frames behind it."""
        rows = [self._rows(tables, arm) for arm in (self.arm, *([self.minus_arm] if self.minus_arm else []))]
        frames = [int(tables.number(self.table, row, "frames")) for found in rows for row in found]
        return Sample(min(map(len, rows)), min(frames), 1, "frames", max(map(len, rows)))

    def _rows(self, tables: Tables, arm: str) -> list[Row]:
        rows = tables.select(self.table, {"game": self.game})
        name = find_arm({tables.text(self.table, row, "arm") for row in rows}, arm, self.table)
        found = [row for row in rows if row["arm"] == name and tables.text(self.table, row, "state") == "done"]
        if not found:
            raise MissingRowsError(f"the table '{self.table}' has no finished runs of {arm}")
        return found

    def _values(self, tables: Tables, arm: str, column: str) -> dict[str, float]:
        rows = self._rows(tables, arm)
        return {tables.text(self.table, row, "seed"): tables.known(self.table, row, column) for row in rows}


def _mean(by_seed: dict[str, float]) -> Number:
    return Number(*mean_interval(list(by_seed.values())))


def _difference(first: dict[str, float], second: dict[str, float]) -> Number:
    """Of two arms, by seed."""
    if first.keys() == second.keys():
        return _mean({seed: first[seed] - second[seed] for seed in first})
    return Number(*welch(list(first.values()), list(second.values())), note=UNPAIRED)


@dataclass(frozen=True)
class Scores:
    r"""A comparison of two arms over all games of a ``scores.csv``.

    ``statistic`` is one of

    - ``games_won``: share of games with a higher mean ``auc``;
    - ``improvement``: share of pairs of the same game and seed that the arm wins in ``final_score``, a mean over games;
      where seeds differ, of all pairs of the same game;
    - ``area_improvement``: the same in ``auc``;
    - ``median``: difference of the medians over games of the mean ``human_normalised``;
    - ``difference``: mean difference of ``final_score`` of pairs of the same game and seed, in percent of what DQN
      learns in the game (`statistics.learned`), a mean over games;
    - ``area_difference``: the same in ``auc``.

    The intervals of the last two are Student's, as `statistics.student` has them; seeds that one arm lacks are left
    out. Those of the others are stratified bootstraps over seeds: arms share the random numbers of a seed, so seeds are
    drawn, and with each the runs of both arms. Where two arms do not have the same seeds in every game, the runs of
    each are drawn on their own.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = ["pong,dqn,0,done,2,1", "pong,dqn,1,done,6,1", "pong,gram,0,done,4,1", "pong,gram,1,done,8,1"]
    >>> header = "game,arm,seed,state,final_score,random"
    >>> _ = (folder / "s.csv").write_text("\n".join([header, *rows, ""]))
    >>> print(Scores("s.csv", "gram", "dqn", "improvement").number(Tables(folder)))
    1 (the same in every resample)
    >>> Scores("s.csv", "gram", "dqn", "difference").number(Tables(folder)).value  # 2 of the 3 above random play
    66.66666666666667
    >>> _ = (folder / "s.csv").write_text("\n".join([header, *rows, "pong,gram,2,done,5,1", ""]))
    >>> print(Scores("s.csv", "gram", "dqn", "improvement").number(Tables(folder)))
    0.7 [0.0, 1.0] (unpaired)
    """

    table: str
    arm: str
    minus_arm: str
    statistic: str

    def number(self, tables: Tables) -> Number:
        """The statistic."""
        column = self._column()
        first, second = (self._scores(tables, arm, column) for arm in (self.arm, self.minus_arm))
        both = np.isfinite(first).any(0) & np.isfinite(second).any(0)
        if not both.any():
            raise MissingRowsError(
                f"the table '{self.table}' has no game with {column} of both {self.arm} and {self.minus_arm}"
            )
        first, second = first[:, both], second[:, both]
        paired = np.array_equal(np.isfinite(first), np.isfinite(second))
        if self.statistic in DIFFERENCES:
            percent = 100.0 * (first - second) / self._learned(tables)[both]
            return _number(statistics.student(percent), "" if paired else SHARED)
        drawn = DRAWN[self.statistic]
        function = drawn.by_pairs if paired else drawn.by_runs
        found = statistics.bootstrap_pair(function, first, second, np.random.default_rng(0), paired=paired)
        always = found.low == found.estimate == found.high
        return _number(found, "" if paired else UNPAIRED, ALWAYS if always else "")

    def sample(self, tables: Tables) -> Sample:
        """Seeds, frames and games behind it: runs that have the score."""
        column = self._column()
        arms = [
            [row for row in self._rows(tables, arm) if math.isfinite(tables.number(self.table, row, column))]
            for arm in (self.arm, self.minus_arm)
        ]
        rows = arms[0] + arms[1]
        cells: dict[tuple[str, str], int] = {}
        for row in rows:
            cells[row["game"], row["arm"]] = cells.get((row["game"], row["arm"]), 0) + 1
        finished = [int(tables.number(self.table, row, "frames")) for row in rows if row["state"] == "done"]
        games = {row["game"] for row in arms[0]} & {row["game"] for row in arms[1]}
        seeds = [*cells.values()] or [0]
        return Sample(min(seeds), min(finished, default=0), len(games), "frames", max(seeds))

    def _column(self) -> str:
        columns = DIFFERENCES | {name: drawn.column for name, drawn in DRAWN.items()}
        if self.statistic not in columns:
            raise unknown("statistic", self.statistic, columns)
        return columns[self.statistic]

    def _learned(self, tables: Tables) -> Array:
        """What DQN learns in each game of the table ``[G]``."""
        final, random = (self._scores(tables, BASELINE, column) for column in ("final_score", "random"))
        return statistics.learned(final, random)

    def _rows(self, tables: Tables, arm: str) -> list[Row]:
        rows = tables.rows(self.table)
        for column in ("arm", "game", "seed", "state"):
            tables.text(self.table, rows[0], column)
        name = find_arm({row["arm"] for row in rows}, arm, self.table)
        finished = [row for row in rows if row["arm"] == name and row["state"] in FINISHED]
        if not finished:
            raise MissingRowsError(f"the table '{self.table}' has no finished runs of {arm}")
        return finished

    def _scores(self, tables: Tables, arm: str, column: str) -> Array:
        """``[S, G]`` over all seeds and games of the table, NaN where there is no finished run."""
        games = sorted({row["game"] for row in tables.rows(self.table)})
        seeds = sorted({row["seed"] for row in tables.rows(self.table)})
        scores = np.full((len(seeds), len(games)), np.nan)
        for row in self._rows(tables, arm):
            scores[seeds.index(row["seed"]), games.index(row["game"])] = tables.number(self.table, row, column)
        return scores


def _games_won(arm: Array, baseline: Array) -> Array:
    won = statistics.mean_over_runs(arm) > statistics.mean_over_runs(baseline)
    return np.asarray(won.mean(-1))


def _median_difference(arm: Array, baseline: Array) -> Array:
    return np.asarray(statistics.median_score(arm) - statistics.median_score(baseline))


def _number(found: Interval, *notes: str) -> Number:
    return Number(float(found.estimate), float(found.low), float(found.high), "; ".join(filter(None, notes)))


class Drawn(NamedTuple):
    """What is compared, and how where both arms have the same seeds, and where they do not; seeds are drawn."""

    column: str
    by_pairs: PairStatistic
    by_runs: PairStatistic


DRAWN = {
    "games_won": Drawn("auc", _games_won, _games_won),
    "improvement": Drawn("final_score", statistics.paired_improvement, statistics.probability_of_improvement),
    "area_improvement": Drawn("auc", statistics.paired_improvement, statistics.probability_of_improvement),
    "median": Drawn("human_normalised", _median_difference, _median_difference),
}
"""Statistics with an interval of the bootstrap."""
DIFFERENCES = {"difference": "final_score", "area_difference": "auc"}
"""Mean differences with Student's interval, and the column that they are of."""
