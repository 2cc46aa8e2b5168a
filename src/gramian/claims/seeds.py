"""Numbers over seeds: ``measures.csv`` of ``gramian analyze``, ``scores.csv`` and ``features.csv`` of ``study report``.

An arm is named by its kind; it fits the one arm of a table that is this kind with whatever κ.
"""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from gramian.claims.tables import MissingRowsError, Number, Quantity, Row, Sample, Tables, Where
from gramian.core import statistics
from gramian.core.errors import UserError, unknown
from gramian.core.statistics import Array, Interval, PairStatistic

FINISHED = ("done", "diverged")
UNPAIRED = "unpaired"
"""Note of a number of two arms that do not have the same seeds."""
SHARED = "of the seeds that both have"
"""Note of such a number that is of pairs."""
ALWAYS = "the same in every resample"
"""Note of a number that no draw of seeds changes, so that a bootstrap finds no interval."""
BASELINE = "dqn"
"""The arm by whose learning differences of scores are measured."""


def _of_arm(tables: Tables, table: str, kind: str, where: Where | None = None) -> list[Row]:
    """The rows that fit of the arm of a kind, whatever its κ."""
    rows = tables.rows(table, where)
    fitting = sorted({arm for row in rows if (arm := row.text("arm")) == kind or arm.startswith(f"{kind}:")})
    if not fitting:
        raise MissingRowsError(f"the table '{table}' has no runs of {kind}")
    if len(fitting) > 1:
        raise UserError(f"the table '{table}' has several arms of {kind}: {', '.join(fitting)}; keep one")
    return [row for row in rows if row.fields["arm"] == fitting[0]]


def _ended(rows: list[Row], table: str, arm: str, states: tuple[str, ...]) -> list[Row]:
    if not (found := [row for row in rows if row.text("state") in states]):
        raise MissingRowsError(f"the table '{table}' has no finished runs of {arm}")
    return found


def feature(table: str, game: str, name: str, arm: str, minus_arm: str = "", minus: str = "") -> Quantity:
    """Mean of a measure over the seeds of an arm, minus that of another arm, or minus another measure of its runs.

    ``table`` is a ``measures.csv``, or a ``features.csv``, which has one row for each run. Intervals are Student's, of
    pairs of the same seed: arms share its random numbers. Where two arms do not have the same seeds they are Welch's.
    """
    long = table.endswith("measures.csv")
    unit = "agent_steps" if long else "frames"

    def rows(tables: Tables, arm: str, name: str) -> list[Row]:
        found = _of_arm(tables, table, arm, {"game": game})
        if not long:
            return _ended(found, table, arm, ("done",))
        return tables.rows(table, {"game": game, "arm": found[0].text("arm"), "measure": name})

    def values(tables: Tables, arm: str, name: str) -> dict[str, float]:
        return {row.text("seed"): row.known("value" if long else name) for row in rows(tables, arm, name)}

    def number(tables: Tables) -> Number:
        first = values(tables, arm, name)
        if not (minus_arm or minus):
            return Number(*statistics.mean_interval(list(first.values())))
        second = values(tables, minus_arm or arm, minus or name)
        if minus_arm and first.keys() != second.keys():
            return Number(*statistics.welch(list(first.values()), list(second.values())), note=UNPAIRED)
        pairs = [first[seed] - second[seed] for seed in first if seed in second]
        return Number(*statistics.mean_interval(pairs))

    def sample(tables: Tables) -> Sample:
        found = [rows(tables, one, name) for one in (arm, minus_arm) if one]
        lengths = [int(row.number(unit)) for own in found for row in own]
        return Sample(min(map(len, found)), min(lengths), 1, unit.replace("_", " "), max(map(len, found)))

    return Quantity((table,), number, sample)


class Statistic(NamedTuple):
    """What is compared: a column, where both arms have the same seeds and where they do not."""

    column: str
    by_pairs: PairStatistic
    by_runs: PairStatistic


def _median_difference(arm: Array, baseline: Array) -> Array:
    return np.asarray(statistics.median_score(arm) - statistics.median_score(baseline))


def with_note(found: Interval, *notes: str) -> Number:
    """An interval as a number, with what is to be said of it."""
    value, low, high = map(float, found)
    return Number(value, low, high, "; ".join(filter(None, notes)))


STATISTICS = {
    "improvement": Statistic("final_score", statistics.paired_improvement, statistics.probability_of_improvement),
    "area_improvement": Statistic("auc", statistics.paired_improvement, statistics.probability_of_improvement),
    "median": Statistic("human_normalised", _median_difference, _median_difference),
}
"""Under a bootstrap that draws seeds."""
COLUMNS = {name: one.column for name, one in STATISTICS.items()} | {
    "games_won": "auc", "area_difference": "auc",
}  # fmt: skip


def scores(table: str, arm: str, minus_arm: str, statistic: str) -> Quantity:
    r"""A comparison of two arms over all games of a ``scores.csv``.

    ``statistic`` is one of

    - ``games_won``: share of games with a higher mean ``auc``; the interval is exact, with the game as the unit;
    - ``improvement``: share of pairs of the same game and seed that the arm wins in ``final_score``, a mean over games;
      where seeds differ, of all pairs of the same game;
    - ``area_improvement``: the same in ``auc``;
    - ``median``: difference of the medians over games of the mean ``human_normalised``;
    - ``area_difference``: mean difference of ``auc`` of pairs of the same game and seed, in percent of what DQN learns
      in the game, its own mean above random play, a mean over games.

    The intervals of the last are Student's of `statistics.ratios`, of the seeds that both arms have. Those of
    probabilities and medians are stratified bootstraps over seeds: a seed is drawn with the runs of both arms. Where
    two arms do not have the same seeds in every game, the runs of each are drawn on their own.
    """
    if statistic not in COLUMNS:
        raise unknown("statistic", statistic, COLUMNS)
    column = COLUMNS[statistic]

    def rows(tables: Tables, arm: str) -> list[Row]:
        return _ended(_of_arm(tables, table, arm), table, arm, FINISHED)

    def array(tables: Tables, arm: str, column: str) -> Array:
        """``[S, G]`` over all seeds and games of the table, NaN where there is no finished run."""
        every = tables.rows(table)
        games, seeds = (sorted({row.text(name) for row in every}) for name in ("game", "seed"))
        found = np.full((len(seeds), len(games)), np.nan)
        for row in rows(tables, arm):
            found[seeds.index(row.text("seed")), games.index(row.text("game"))] = row.number(column)
        return found

    def number(tables: Tables) -> Number:
        first, second = (array(tables, one, column) for one in (arm, minus_arm))
        both = np.isfinite(first).any(0) & np.isfinite(second).any(0)
        if not both.any():
            raise MissingRowsError(f"the table '{table}' has no game with {column} of both {arm} and {minus_arm}")
        first, second = first[:, both], second[:, both]
        paired = np.array_equal(np.isfinite(first), np.isfinite(second))
        if statistic == "games_won":
            won = statistics.count_games(statistics.mean_over_runs(first), statistics.mean_over_runs(second)).wins
            return Number(won / first.shape[1], *statistics.clopper_pearson(won, first.shape[1]))
        if statistic not in STATISTICS:
            own, random = (array(tables, BASELINE, name)[:, both] for name in (column, "random"))
            found = statistics.student(100.0 * statistics.ratios(first - second, own - random))
            return with_note(found, "" if paired else SHARED)
        function = STATISTICS[statistic].by_pairs if paired else STATISTICS[statistic].by_runs
        found = statistics.bootstrap_pair(function, first, second, np.random.default_rng(0), paired=paired)
        notes = ["" if paired else UNPAIRED, ALWAYS if found.low == found.estimate == found.high else ""]
        return with_note(found, *notes)

    def sample(tables: Tables) -> Sample:
        """Runs that have the score."""
        arms = [[row for row in rows(tables, one) if math.isfinite(row.number(column))] for one in (arm, minus_arm)]
        every = arms[0] + arms[1]
        seeds = Counter((row.text("game"), row.text("arm")) for row in every).values()
        finished = [int(row.number("frames")) for row in every if row.text("state") == "done"]
        games = set.intersection(*({row.text("game") for row in own} for own in arms))
        return Sample(min(seeds, default=0), min(finished, default=0), len(games), "frames", max(seeds, default=0))

    return Quantity((table,), number, sample)
