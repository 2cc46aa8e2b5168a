"""Numbers over seeds: ``measures.csv`` of ``gramian analyze``, ``scores.csv`` and ``features.csv`` of ``study report``.

An arm is named by its kind; it fits the one arm of a table that is this kind with whatever κ.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gramian.claims.tables import MissingRowsError, Number, Quantity, Sample, Tables
from gramian.core import statistics
from gramian.core.csv_tables import Row
from gramian.core.errors import UserError, unknown
from gramian.core.statistics import Array, PairStatistic

FINISHED = ("done", "diverged")
UNPAIRED = "unpaired"
"""Note of a number of two arms that do not have the same seeds."""
SHARED = "of the seeds that both have"
"""Note of such a number that is of pairs."""
ALWAYS = "the same in every resample"
"""Note of a number that no draw of seeds changes, so that a bootstrap finds no interval."""
BASELINE = "dqn"
"""The arm by whose learning differences of scores are measured."""


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


def measure(table: str, game: str, name: str, arm: str, minus_arm: str = "", minus: str = "") -> Quantity:
    r"""Mean of a measure over the seeds of an arm, minus that of another arm, or minus another measure of its runs.

    Intervals are Student's, of pairs of the same seed: arms share its random numbers. Where two arms do not have the
    same seeds they are Welch's.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = [f"pong,{arm},{seed},500,sparsity,{value}" for arm, seed, value in
    ...         [("dqn", 0, 0.7), ("dqn", 1, 0.72), ("gram:1", 0, 0.3), ("gram:1", 1, 0.33)]]
    >>> _ = (folder / "m.csv").write_text("\n".join(["game,arm,seed,agent_steps,measure,value", *rows, ""]))
    >>> denser = measure("m.csv", "pong", "sparsity", "gram", "dqn")
    >>> print(denser.number(Tables(folder)), "|", denser.sample(Tables(folder)))
    −0.39 [−0.46, −0.33] | one game, 2 seeds, 500 agent steps
    """

    def rows(tables: Tables, arm: str, name: str) -> list[Row]:
        of_game = tables.select(table, {"game": game})
        full = find_arm({tables.text(table, row, "arm") for row in of_game}, arm, table)
        return tables.select(table, {"game": game, "arm": full, "measure": name})

    return _over_seeds(table, rows, lambda _: "value", "agent_steps", name, arm, minus_arm, minus)


def feature(table: str, game: str, name: str, arm: str, minus_arm: str = "", minus: str = "") -> Quantity:
    r"""The same of a column of ``features.csv``, which has one row for each run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = ["pong,dqn,0,done,500,8", "pong,dqn,1,done,500,9", "pong,gram,0,done,500,4", "pong,gram,1,done,500,6"]
    >>> _ = (folder / "f.csv").write_text("\n".join(["game,arm,seed,state,frames,training_norm", *rows, ""]))
    >>> smaller = feature("f.csv", "pong", "training_norm", "gram", "dqn")
    >>> print(smaller.number(Tables(folder)), "|", smaller.sample(Tables(folder)))
    −4 [−10, 3] | one game, 2 seeds, 500 frames
    """

    def rows(tables: Tables, arm: str, _name: str) -> list[Row]:
        of_game = tables.select(table, {"game": game})
        full = find_arm({tables.text(table, row, "arm") for row in of_game}, arm, table)
        found = [row for row in of_game if row["arm"] == full and tables.text(table, row, "state") == "done"]
        if not found:
            raise MissingRowsError(f"the table '{table}' has no finished runs of {arm}")
        return found

    return _over_seeds(table, rows, lambda name: name, "frames", name, arm, minus_arm, minus)


def _over_seeds(
    table: str,
    rows: Callable[[Tables, str, str], list[Row]],
    column: Callable[[str], str],
    unit: str,
    name: str,
    arm: str,
    minus_arm: str,
    minus: str,
) -> Quantity:
    """A mean or a difference over seeds; ``rows`` are those of an arm and a measure, ``column`` has its values."""

    def values(tables: Tables, arm: str, name: str) -> dict[str, float]:
        return {
            tables.text(table, row, "seed"): tables.known(table, row, column(name)) for row in rows(tables, arm, name)
        }

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
        lengths = [int(tables.number(table, row, unit)) for own in found for row in own]
        return Sample(min(map(len, found)), min(lengths), 1, unit.replace("_", " "), max(map(len, found)))

    return Quantity((table,), number, sample)


def scores(table: str, arm: str, minus_arm: str, statistic: str) -> Quantity:
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

    The intervals of the last two are Student's (`statistics.student`), of the seeds that both arms have. Those of the
    others are stratified bootstraps over seeds: a seed is drawn with the runs of both arms. Where two arms do not have
    the same seeds in every game, the runs of each are drawn on their own.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = ["pong,dqn,0,done,2,1", "pong,dqn,1,done,6,1", "pong,gram,0,done,4,1", "pong,gram,1,done,8,1"]
    >>> header = "game,arm,seed,state,final_score,random"
    >>> _ = (folder / "s.csv").write_text("\n".join([header, *rows, ""]))
    >>> print(scores("s.csv", "gram", "dqn", "improvement").number(Tables(folder)))
    1 (the same in every resample)
    >>> scores("s.csv", "gram", "dqn", "difference").number(Tables(folder)).value  # 2 of the 3 above random play
    66.66666666666667
    >>> _ = (folder / "s.csv").write_text("\n".join([header, *rows, "pong,gram,2,done,5,1", ""]))
    >>> print(scores("s.csv", "gram", "dqn", "improvement").number(Tables(folder)))
    0.7 [0.0, 1.0] (unpaired)
    """
    columns = DIFFERENCES | {name: drawn.column for name, drawn in DRAWN.items()}
    if statistic not in columns:
        raise unknown("statistic", statistic, columns)
    column = columns[statistic]

    def rows(tables: Tables, arm: str) -> list[Row]:
        every = tables.rows(table)
        for name in ("arm", "game", "seed", "state"):
            tables.text(table, every[0], name)
        full = find_arm({row["arm"] for row in every}, arm, table)
        finished = [row for row in every if row["arm"] == full and row["state"] in FINISHED]
        if not finished:
            raise MissingRowsError(f"the table '{table}' has no finished runs of {arm}")
        return finished

    def array(tables: Tables, arm: str, column: str) -> Array:
        """``[S, G]`` over all seeds and games of the table, NaN where there is no finished run."""
        games = sorted({row["game"] for row in tables.rows(table)})
        seeds = sorted({row["seed"] for row in tables.rows(table)})
        found = np.full((len(seeds), len(games)), np.nan)
        for row in rows(tables, arm):
            found[seeds.index(row["seed"]), games.index(row["game"])] = tables.number(table, row, column)
        return found

    def number(tables: Tables) -> Number:
        first, second = (array(tables, one, column) for one in (arm, minus_arm))
        both = np.isfinite(first).any(0) & np.isfinite(second).any(0)
        if not both.any():
            raise MissingRowsError(f"the table '{table}' has no game with {column} of both {arm} and {minus_arm}")
        first, second = first[:, both], second[:, both]
        paired = np.array_equal(np.isfinite(first), np.isfinite(second))
        if statistic in DIFFERENCES:
            learned = statistics.learned(*(array(tables, BASELINE, name) for name in ("final_score", "random")))
            found = statistics.student(100.0 * (first - second) / learned[both])
            notes = ["" if paired else SHARED]
        else:
            function = DRAWN[statistic].by_pairs if paired else DRAWN[statistic].by_runs
            found = statistics.bootstrap_pair(function, first, second, np.random.default_rng(0), paired=paired)
            notes = ["" if paired else UNPAIRED, ALWAYS if found.low == found.estimate == found.high else ""]
        estimate, low, high = map(float, found)
        return Number(estimate, low, high, "; ".join(filter(None, notes)))

    def sample(tables: Tables) -> Sample:
        """Runs that have the score."""
        arms = [
            [row for row in rows(tables, one) if math.isfinite(tables.number(table, row, column))]
            for one in (arm, minus_arm)
        ]
        every = arms[0] + arms[1]
        cells: dict[tuple[str, str], int] = {}
        for row in every:
            cells[row["game"], row["arm"]] = cells.get((row["game"], row["arm"]), 0) + 1
        finished = [int(tables.number(table, row, "frames")) for row in every if row["state"] == "done"]
        games = {row["game"] for row in arms[0]} & {row["game"] for row in arms[1]}
        seeds = [*cells.values()] or [0]
        return Sample(min(seeds), min(finished, default=0), len(games), "frames", max(seeds))

    return Quantity((table,), number, sample)


class Drawn(NamedTuple):
    """What is compared, where both arms have the same seeds and where they do not; seeds are drawn."""

    column: str
    by_pairs: PairStatistic
    by_runs: PairStatistic


def _games_won(arm: Array, baseline: Array) -> Array:
    return np.asarray((statistics.mean_over_runs(arm) > statistics.mean_over_runs(baseline)).mean(-1))


def _median_difference(arm: Array, baseline: Array) -> Array:
    return np.asarray(statistics.median_score(arm) - statistics.median_score(baseline))


DRAWN = {
    "games_won": Drawn("auc", _games_won, _games_won),
    "improvement": Drawn("final_score", statistics.paired_improvement, statistics.probability_of_improvement),
    "area_improvement": Drawn("auc", statistics.paired_improvement, statistics.probability_of_improvement),
    "median": Drawn("human_normalised", _median_difference, _median_difference),
}
"""Statistics with an interval of the bootstrap."""
DIFFERENCES = {"difference": "final_score", "area_difference": "auc"}
"""Mean differences with Student's interval, and the column that they are of."""
