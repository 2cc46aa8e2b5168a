"""Writes the tables of ``docs/results.md`` and ``docs/results-details.md`` from the tables in ``results``.

Run it as ``python -m docs.results`` after a result has changed. In a page a table stands between two comments with its
name; the text around them is not touched. ``--minatar FOLDER`` and ``--atari FOLDER`` first take the tables and figures
that the page needs from a report of that study; the figures get 256 colours.

A study's folder in ``results`` holds ``scores.csv`` and ``features.csv`` of ``gramian study report`` and
``measures.csv`` of ``gramian analyze``; that of MinAtar also ``kappa-a.csv`` and ``kappa-b.csv`` of the tuning studies;
that of Atari ``pilot.csv``, the features of its pilot, and ``kappa``, an export of the runs that tuned κ. ``first``
holds scores and features of an earlier set of runs.

Differences are of pairs of the same game and seed. They, and growths, have Student's 95 % intervals; scores, features
and measures of an arm, and shares of pairs, have 95 % percentile intervals of the stratified bootstrap over seeds.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import scipy.stats
from PIL import Image

from benchmarks.dopamine import read_later, read_runs, shown, told
from gramian.core import statistics
from gramian.core.arms import CONTROL, kind_of, order_arms
from gramian.core.csv_tables import Row, read_rows
from gramian.core.errors import UserError
from gramian.core.files import output_folder, replace_text, replacing
from gramian.core.statistics import Array, Interval, mean_interval, student, welch
from gramian.report import reference
from gramian.report.analysis import Options, analyse
from gramian.report.differences import ONLY_SHRINK, Between, interpolated
from gramian.report.sections import mixture_words
from gramian.study.store import WINDOW_EPISODES, Study, first_frames, read_study

DOCS = Path(__file__).parent
PAGES = ("results.md", "results-details.md")
PLACE = re.compile(r"<!-- (\S+) -->\n.*?<!-- end of \1 -->\n", re.DOTALL)
"""Of a table in the page."""
RESULTS = DOCS.parent / "results"

SECOND = "norm (0.1)"
"""Atari's second control: the norm penalty at a smaller κ, with features a little larger than those of `CHOSEN`."""
BASELINES = {"minatar": ("dqn", CONTROL, "norm"), "atari": ("dqn", CONTROL, SECOND)}
"""What the arms of each study are compared with, in turn."""
FEW = 5
"""Up to so many seeds the pairs that an arm wins are counted: an interval of their share would be far too narrow."""
PENALISED = ("gram", "decor")
"""Arms that minimise the same number."""
UNBIASED = ("gram-unbiased",)
CHOSEN = "gram (0.082)"
"""The arm of Atari's study whose κ was chosen on MinAtar."""
MOMENTS = (3_000_000, 3_250_000, 3_500_000, 3_750_000, 4_000_000)
"""Frames after which Atari's runs are compared, the last of them as in all other tables."""
TUNED = ("breakout", "space_invaders")
"""Games on which Atari's κ was tuned to the end; the third in its ``kappa.toml``, Pong, was stopped, and left out."""
FIRST = "minatar/first"
"""An earlier set of the runs of MinAtar's study: the same games, arms and seeds, and fewer frames."""
EARLIER, EARLIER_FRAMES = "atari/first", 3_750_000
"""Earlier runs of one seed of Atari's study, which ended before their time, and how far they are compared."""
_MINATAR = (("gram", "dqn"), ("gram", CONTROL), ("gram-unbiased", CONTROL))
CONTRASTS = {
    "minatar": _MINATAR,
    FIRST: _MINATAR,
    "atari": ((CHOSEN, "dqn"), (CHOSEN, CONTROL), (CHOSEN, SECOND), ("gram", "dqn")),
}
"""Arms whose features are compared in each study, each with the one after it."""
GROWING = {"minatar": ("dqn", "gram"), "atari": ("dqn", "gram", CHOSEN, CONTROL, SECOND)}
"""Arms of which it is shown where the growth of the gradient comes from."""
SETS = ("first set", "main set", "mean of both")
"""The two sets of runs, in the order in which they were made, and their mean."""
SIZES = {"training_norm": "‖φ‖", "training_std_sum": "Σσ", "held_out_std_sum": "Σσ, held out"}
"""What an arm and a control may have in common: the norm of the features, or the sum of their standard deviations."""
MEASURED = {"final_score": "score", "auc": "area"}
FEATURES = {
    "training_norm": "‖φ‖ in training",
    "held_out_sparsity": "share of zeros",
    "held_out_effective_rank": "effective rank",
    "held_out_participation_ratio": "participation ratio",
    "held_out_mean_abs_correlation": "mean |correlation|",
    "held_out_dormant_share_0.025": "dormant share",
}
MEASURES = {
    "feature_norm": "‖φ‖",
    "sparsity": "share of zeros",
    "effective_rank": "effective rank",
    "participation_ratio": "participation ratio",
    "srank": "srank",
    "mean_abs_correlation": "mean |correlation|",
    "dormant_share_0.025": "dormant share",
}
"""Of the features in play."""


# ---- reading ---------------------------------------------------------------------------------------------------------


def rows_of(study: str, name: str) -> list[Row]:
    """A table of a study's results."""
    return read_rows(RESULTS / study / f"{name}.csv")


def exported(study: str) -> Study:
    """The export of a study.

    Raises
    ------
    UserError
        If its runs are not those of the study's scores: one of the two is older, or lacks a part.
    """
    folder, scored = RESULTS / study / "study", RESULTS / study / "scores.csv"
    found = read_study(folder)
    runs = set(found.runs.select("game", "arm", pl.col("seed").cast(pl.String)).iter_rows())
    known = {(row["game"], row["arm"], row["seed"]) for row in read_rows(scored)}
    if odd := sorted(runs ^ known):
        game, arm, seed = odd[0]
        has, lacks = (folder, scored) if odd[0] in runs else (scored, folder)
        raise UserError(f"'{lacks}' has no run of '{game}', arm '{arm}', seed {seed}, which '{has}' has; make it again")
    return found


class Grid:
    """A column of a table of runs as arrays ``[S, G]`` by arm, NaN where there is no run."""

    def __init__(self, rows: Sequence[Row], column: str) -> None:
        rows = [row for row in rows if row["state"] in ("done", "diverged")]
        self.arms = order_arms(row["arm"] for row in rows)
        self.games = sorted({row["game"] for row in rows}, key=reference.title)
        self.seeds = sorted({int(row["seed"]) for row in rows})
        shape = len(self.seeds), len(self.games)
        self.values = {arm: np.full(shape, np.nan) for arm in self.arms}
        for row in rows:
            at = self.seeds.index(int(row["seed"])), self.games.index(row["game"])
            self.values[row["arm"]][at] = float(row[column]) if row[column] else np.nan

    @property
    def titles(self) -> list[str]:
        """Names of the games, without the word MinAtar."""
        return [reference.title(game).removeprefix("MinAtar ") for game in self.games]

    @property
    def seeds_text(self) -> str:
        """The number of seeds of an arm in a game."""
        found = np.isfinite(np.stack(list(self.values.values()))).sum(axis=1)
        return f"{found.max()} seeds" if found.min() == found.max() else f"{found.min()} to {found.max()} seeds"

    @property
    def groups(self) -> dict[str, list[bool]]:
        """The games that are put together, by name: all, and those with two seeds of every arm.

        A mean with a game of one seed has no interval.
        """
        seeds = np.isfinite(np.stack(list(self.values.values()))).sum(axis=1).min(axis=0)
        chosen = {"together, %": [True] * len(self.games)}
        if once := [title for title, count in zip(self.titles, seeds, strict=True) if count < 2]:
            chosen[f"together but {', '.join(once)}, %"] = [bool(count > 1) for count in seeds]
        return chosen

    def mean(self, arm: str) -> list[str]:
        """The mean of each game, with bootstrap intervals."""
        generator = np.random.default_rng(0)
        found = statistics.bootstrap(statistics.mean_over_runs, self.values[arm], generator, by_game=True)
        return [interval_text(found, at) for at in range(len(self.games))]

    def minus(self, arms: str | Sequence[str], other: str) -> Array:
        """An arm, or the mean of some, minus another ``[S, G]``, by pairs of the same game and seed."""
        own = [self.values[arm] for arm in ([arms] if isinstance(arms, str) else arms)]
        return np.asarray(np.mean(own, axis=0) - self.values[other])

    def won(self, arm: str, other: str) -> str:
        """The share of pairs that an arm wins; where they are few, their number."""
        apart = self.minus(arm, other)
        if np.isfinite(apart).sum(axis=0).min() <= FEW:
            return f"{(apart > 0).sum() + 0.5 * (apart == 0).sum():g} of {np.isfinite(apart).sum()}"
        share, generator = statistics.paired_improvement, np.random.default_rng(0)
        return interval_text(
            statistics.bootstrap_pair(share, self.values[arm], self.values[other], generator, paired=True)
        )


def scored(study: str, column: str = "final_score") -> Grid:
    """A column of the scores of a study."""
    return Grid(rows_of(study, "scores"), column)


def learned(rows: Sequence[Row]) -> Array:
    """What DQN learns in each game ``[G]``: its mean final score minus that of random play."""
    return statistics.learned(*(Grid(rows, column).values["dqn"] for column in ("final_score", "random")))


def percent(study: str, differences: Array) -> Array:
    """Differences ``[S, G]`` in percent of what DQN learns, so that games can be put together."""
    return np.asarray(100.0 * differences / learned(rows_of(study, "scores")))


# ---- text ------------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown, the first column to the left and the others to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in (header, marks, *lines)
    )


def turned(columns: Sequence[Sequence[str]]) -> str:
    """The same of columns, each with its heading first."""
    header, *lines = zip(*columns, strict=True)
    return table(header, lines)


def number(value: float, *, sign: bool = False) -> str:
    """Three significant digits, a true minus; with its sign where it is a difference."""
    if not math.isfinite(value):
        return "–"
    rounded = abs(float(f"{value:.3g}"))  # 0.9999 has as many places as 1
    places = max(0, 2 - math.floor(math.log10(rounded))) if rounded else 0
    shown = f"{value:,.{min(places, 3)}f}"
    return (f"+{shown}" if sign and value > 0 else shown).replace("-", "−")


def ends_text(low: str, high: str) -> str:
    """The ends of an interval, which a narrow column does not part."""
    return f"[{low},\N{NO-BREAK SPACE}{high}]"


def interval_text(found: Interval, at: int | None = None, *, sign: bool = False) -> str:
    """An estimate with its interval, where it has one; bold where that excludes 0 and it is a difference."""
    value, low, high = (float(part if at is None else part[at]) for part in found)
    if not math.isfinite(low + high):
        return number(value, sign=sign)
    text = f"{number(value, sign=sign)} {ends_text(number(low, sign=sign), number(high, sign=sign))}"
    return f"**{text}**" if sign and (low > 0 or high < 0) else text


def difference(pairs: Array) -> str:
    """The mean of differences ``[S, G]`` with Student's interval."""
    return interval_text(student(pairs), sign=True)


def by_game(pairs: Array) -> list[str]:
    """The same of each game."""
    return [difference(pairs[:, [at]]) for at in range(pairs.shape[1])]


def in_each_set(differences: Sequence[Array]) -> list[str]:
    """The same of each set of runs, and of their mean by seed, so that what a seed has in common counts once."""
    return [difference(one) for one in (*differences, np.mean(differences, axis=0))]


# ---- scores ----------------------------------------------------------------------------------------------------------


def scores(study: str) -> str:
    """Mean return of the last 100 episodes of each arm in each game."""
    grid = scored(study)
    return table([f"arm ({grid.seeds_text})", *grid.titles], [[f"`{arm}`", *grid.mean(arm)] for arm in grid.arms])


def minus(study: str, grid: Grid, arm: str, other: str) -> list[str]:
    """An arm minus another in each game, and in percent in each group of games."""
    pairs = grid.minus(arm, other)
    shares = percent(study, pairs)
    return [*by_game(pairs), *(difference(shares[:, games]) for games in grid.groups.values())]


def against(study: str, baseline: str, arms: Sequence[str] = ()) -> str:
    """Differences to a baseline, of all arms or of some, and how often it is beaten."""
    final, auc = (scored(study, column) for column in MEASURED)
    columns = [[f"less `{baseline}`", *final.titles, *final.groups, "pairs won", "pairs won by area"]]
    for arm in arms or [arm for arm in final.arms if arm != baseline]:
        won = [one.won(arm, baseline) for one in (final, auc)]
        columns.append([f"`{arm}`", *minus(study, final, arm, baseline), *won])
    return turned(columns)


def with_control(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Every arm with DQN, and `gram` at the κ that was chosen with the controls."""
    return [
        *((arm, "dqn") for arm in arms if arm != "dqn"),
        *((CHOSEN, arm) for arm in (CONTROL, SECOND) if arm in arms),
    ]


def by_area(study: str) -> str:
    """Differences by the area under the learning curve: every arm minus DQN, and `gram` minus the controls."""
    area = scored(study, "auc")
    columns = [["area", *area.titles, *area.groups, "pairs won"]]
    for arm, other in with_control(area.arms):
        columns.append([f"`{arm}` less `{other}`", *minus(study, area, arm, other), area.won(arm, other)])
    return turned(columns)


def both(study: str) -> str:
    """`gram` and `decor`, which minimise the same number, taken as one arm of twice the runs."""
    final = scored(study)
    pairs = [final.minus(PENALISED, other) for other in ("dqn", CONTROL)]
    shares = [percent(study, one) for one in pairs]
    lines = [
        [title, *(difference(one[:, [at]]) for one in pairs), number(detectable(pairs[1][:, [at]]))]
        for at, title in enumerate(final.titles)
    ]
    lines.append(["together, %", *map(difference, shares), number(detectable(shares[1]))])
    return table(["game", "less `dqn`", f"less `{CONTROL}`", "found 4 times of 5"], lines)


def detectable(differences: Array) -> float:
    """True mean of such differences ``[S, G]`` that a t-test at 5 % finds with a power of 80 %."""
    error, freedom = statistics.standard_error(differences)
    return error * float(scipy.stats.t.ppf(0.975, freedom) + scipy.stats.t.ppf(0.8, freedom))


def in_both_sets(together: Mapping[str, Sequence[str]], column: str = "final_score") -> str:
    """Arms minus DQN and minus the control in both sets of MinAtar's runs, and in their mean.

    ``together`` names the arms that are taken as one, by what a line calls them; every arm by itself where it is empty.
    """
    studies = (FIRST, "minatar")
    grids = [scored(study, column) for study in studies]
    together = together or {f", `{arm}`": [arm] for arm in grids[1].arms if arm != "dqn"}
    others = ("dqn", CONTROL)

    def cells(arms: Sequence[str], made: Callable[[Sequence[Array]], list[str]]) -> list[str]:
        return [
            cell
            for other in others
            for cell in (["–"] * 3 if other in arms else made([grid.minus(arms, other) for grid in grids]))
        ]

    lines = [
        [f"{title}{name}", *cells(arms, lambda pairs, at=at: in_each_set([one[:, [at]] for one in pairs]))]  # type: ignore[misc]
        for at, title in enumerate(grids[1].titles)
        for name, arms in together.items()
    ]

    def shares(pairs: Sequence[Array]) -> list[str]:
        return in_each_set([percent(study, one) for study, one in zip(studies, pairs, strict=True)])

    lines += [[f"together, %{name}", *cells(arms, shares)] for name, arms in together.items()]
    columns = [f"less `{other}`, {one}" for other in others for one in SETS]
    return table(["game, arm" if len(together) > 1 else "game", *columns], lines)


def moments(study: str, frames: Sequence[int]) -> str:
    """Final scores over all games as they would be if all runs had ended earlier.

    A control at equal norm is the mixture that has the norm at the end.
    """
    chance = {row["game"]: row["random"] for row in rows_of(study, "scores")}
    whole = exported(study)
    _, sizes, controls = beside_sizes(study, "training_norm", "final_score")
    lines, header = [], ["frames"]
    for end in frames:
        ends = (
            first_frames(whole, end)
            .episodes.group_by("game", "arm", "seed")
            .agg(pl.col("return").tail(WINDOW_EPISODES).mean())
        )
        rows = [
            {"state": "done", "final_score": str(score), "random": chance[game], "game": game, "arm": arm, "seed": seed}
            for game, arm, seed, score in ends.cast({"seed": pl.String}).rows()
        ]
        grid, scale = Grid(rows, "final_score"), learned(rows) / 100.0
        columns = {f"`{arm}` less `{other}`": grid.minus(arm, other) for arm, other in with_control(grid.arms)}
        columns[f"`{CHOSEN}` at equal ‖φ‖"] = interpolated(grid.values, sizes.values, CHOSEN, controls)[0]
        header = ["frames", *columns]
        for name, games in grid.groups.items():
            words = name.removeprefix("together").removesuffix(", %")
            cells = [difference((pairs / scale)[:, games]) for pairs in columns.values()]
            lines.append([f"{end / 1e6:g}M{words}", *cells])
    return table(header, lines)


def twice(study: str, earlier: str) -> str:
    """Differences of single pairs in two runs each: those of the study, as far as the earlier ones got."""
    past = rows_of(earlier, "scores")
    whole = analyse(first_frames(exported(study), EARLIER_FRAMES), Options(replicates=100)).scores
    later = [{name: str(value) for name, value in row.items()} for row in whole.to_dicts()]
    (seed,) = {row["seed"] for row in past}
    lines = []
    for game in sorted({row["game"] for row in past}, key=reference.title):
        for arm, other in with_control(order_arms(row["arm"] for row in past)):
            cells = []
            for column in MEASURED:
                for rows in (past, later):
                    own = [row for row in rows if (row["game"], row["seed"]) == (game, seed)]
                    found = {row["arm"]: float(row[column]) for row in own}
                    known = {arm, other} <= set(found)
                    cells.append(number(found[arm] - found[other], sign=True) if known else "–")
            lines.append([f"{reference.title(game)}, `{arm}` less `{other}`", *cells])
    columns = [f"{name}, {when}" for name in ("final score", "area") for when in ("first time", "second time")]
    return table([f"seed {seed}, {EARLIER_FRAMES / 1e6:g}M frames", *columns], lines)


# ---- scores at equal size of the features ----------------------------------------------------------------------------


def beside_sizes(study: str, size: str, column: str) -> tuple[Grid, Grid, list[str]]:
    """Scores, sizes of the features of the same runs, and the arms that are controls.

    Raises
    ------
    UserError
        If scores and features are not of the same games and seeds.
    """
    found = scored(study, column)
    # the features of a run that diverged say nothing
    sizes = Grid([row if row["state"] == "done" else {**row, size: ""} for row in rows_of(study, "features")], size)
    if (found.games, found.seeds) != (sizes.games, sizes.seeds):
        raise UserError(f"scores and features in '{RESULTS / study}' are not of the same runs; make the report again")
    return found, sizes, [one for one in sizes.arms if kind_of(one) in ONLY_SHRINK]


def at_equal_size(study: str, arms: Sequence[str], size: str, column: str) -> tuple[Array, list[Between | None]]:
    """Arms as one minus a control at each one's size, by pairs ``[S, G]``; what that is made of, of the last arm."""
    found, sizes, controls = beside_sizes(study, size, column)
    apart = [interpolated(found.values, sizes.values, arm, controls) for arm in arms]
    return np.mean([one for one, _ in apart], axis=0), apart[-1][1]


def parts_of(titles: Sequence[str], pairs: Array) -> dict[str, list[int]]:
    """Every game, all of them, and all but the one with the largest difference, by name."""
    means = np.abs(statistics.mean_over_runs(pairs))
    largest = int(np.where(np.isnan(means), -1.0, means).argmax())
    groups = {title: [at] for at, title in enumerate(titles)}
    groups["together"] = list(range(len(titles)))
    groups[f"without {titles[largest]}"] = [at for at in groups["together"] if at != largest]
    return groups


def shares(study: str) -> str:
    """`gram` at the κ that was chosen over DQN, over both controls, and over one at equal norm, in percent."""
    groups: dict[str, list[int]] = {}
    made = []
    for column, what in MEASURED.items():
        grid = scored(study, column)
        pairs = {
            f"over {other}": grid.minus(CHOSEN, arm)
            for arm, other in (("dqn", "DQN"), (CONTROL, f"`{CONTROL}`"), (SECOND, f"`{SECOND}`"))
        }
        pairs["at equal ‖φ‖"] = at_equal_size(study, [CHOSEN], "training_norm", column)[0]
        own = {name: percent(study, one) for name, one in pairs.items()}
        groups = groups or parts_of(grid.titles, own["over DQN"])
        lines = [[name, *(difference(one[:, games]) for one in own.values())] for name, games in groups.items()]
        made.append(table([f"{what} of `{CHOSEN}`, %", *own], lines))
    return "\n".join(made)


def equal_sizes(study: str, arm: str, sizes: Sequence[str]) -> str:
    """An arm beside controls at equal norm, and at equal spread, of the features, in percent of what DQN learns."""
    titles = scored(study).titles
    groups: dict[str, list[int]] = {}
    columns: list[list[str]] = []
    for size in sizes:
        for column, what in MEASURED.items():
            apart, places = at_equal_size(study, [arm], size, column)
            own = percent(study, apart)
            groups = groups or parts_of(titles, own)
            if column == "final_score":
                made_of = [mixture_words(place) for place in places]
                columns.append([f"control at equal {SIZES[size]}", *made_of, *[""] * (len(groups) - len(titles))])
            columns.append(
                [f"{what} at equal {SIZES[size]}", *(difference(own[:, games]) for games in groups.values())]
            )
    return turned([[f"`{arm}`, %", *groups], *columns])


def equal_sizes_as_one(study: str, arms: Sequence[str]) -> str:
    """Arms taken as one beside controls at equal norm, and at equal spread, of the features."""
    columns = [["game", *scored(study).titles, "together, %"]]
    for column, what in MEASURED.items():
        for size, name in SIZES.items():
            apart, _ = at_equal_size(study, arms, size, column)
            columns.append([f"{what} at equal {name}", *by_game(apart), difference(percent(study, apart))])
    return turned(columns)


def equal_in_both_sets(game: str) -> str:
    """Arms minus a control at their own size in both sets of MinAtar's runs: over all games, and in one of them."""
    studies = (FIRST, "minatar")
    at = scored("minatar").titles.index(game)
    lines = []
    for name, arms in (("`gram` and `decor`", PENALISED), ("`gram-unbiased`", UNBIASED)):
        for size in ("training_norm", "held_out_std_sum"):
            for column, what in MEASURED.items():
                apart = [at_equal_size(study, arms, size, column)[0] for study in studies]
                shares = [percent(study, one) for study, one in zip(studies, apart, strict=True)]
                cells = [*in_each_set(shares), *in_each_set([one[:, [at]] for one in apart])]
                lines.append([f"{name}, {what} at equal {SIZES[size]}", *cells])
    return table(["arms, measure", *(f"{what}, {one}" for what in ("together, %", game) for one in SETS)], lines)


def headline() -> str:
    """What `gram` and `decor` as one arm have over DQN, and over the norm penalty: over all games, in percent."""
    studies = (FIRST, "minatar")
    lines = []
    for title, column in (("final score", "final_score"), ("area under the learning curve", "auc")):
        grids = [scored(study, column) for study in studies]
        pairs = [[grid.minus(PENALISED, other) for grid in grids] for other in ("dqn", CONTROL)]
        pairs.append([at_equal_size(study, PENALISED, "training_norm", column)[0] for study in studies])
        cells = [in_each_set([percent(*one) for one in zip(studies, of, strict=True)])[1:] for of in pairs]
        lines += [[f"{title}, {runs}", *own] for runs, *own in zip(("main set", "both sets"), *cells, strict=True)]
    columns = ["over DQN", f"over `{CONTROL}`", "over a norm penalty at equal ‖φ‖, interpolated"]
    return table(["in percent of what DQN learns", *columns], lines)


def straight(*studies: str) -> str:
    """Of three controls the middle one, by norm, minus what a straight line between the outer ones gives there.

    In one set of runs, or in two and the mean of both.
    """
    titles = scored(studies[-1]).titles
    whichever = [f", {name}" for name in SETS] if len(studies) > 1 else [""]
    columns, places = [], [""]
    for column, what in MEASURED.items():
        apart, found = zip(*(middle_minus_line(study, column) for study in studies), strict=True)
        places = found[-1]
        rows = [in_each_set([one[:, [at]] for one in apart]) for at in range(len(titles))]
        rows.append(in_each_set([percent(*one) for one in zip(studies, apart, strict=True)]))
        columns += [[f"{what}{which}", *(row[at] for row in rows)] for at, which in enumerate(whichever)]
    names = [f"{title}, {place}" for title, place in zip(titles, places, strict=True)]
    return turned([["game, the one between", *names, "together, %"], *columns])


def middle_minus_line(study: str, column: str) -> tuple[Array, list[str]]:
    """The middle control of each game minus the line ``[S, G]``, and which one it is and where it lies."""
    found, sizes, controls = beside_sizes(study, "training_norm", column)
    means = {arm: np.nanmean(np.log(sizes.values[arm]), axis=0) for arm in controls}
    apart, places = np.empty_like(found.values["dqn"]), []
    for at in range(len(found.games)):
        low, middle, high = sorted(controls, key=lambda arm: float(means[arm][at]))
        pairs, between = interpolated(found.values, sizes.values, middle, [low, high])
        apart[:, at], place = pairs[:, at], between[at]
        assert place is not None
        places.append(f"`{middle}`, {100 * place.share:.0f}\N{NO-BREAK SPACE}%")
    return apart, places


def mixtures(study: str, arm: str, sizes: Sequence[str]) -> str:
    """How well it is known which mixture of two controls has the size of an arm, and what depends on it.

    The step from the smaller control to the larger one in log size, by pairs of the same seed; the share of the larger
    one, and what it is without each seed; and the difference that is left: as it is, and where the share of every game
    is the least or the most of those.
    """
    lines = []
    for size in sizes:
        found, own, controls = beside_sizes(study, size, "final_score")
        apart, places = interpolated(found.values, own.values, arm, controls)
        ends = np.full((2, *apart.shape), np.nan)
        for at, (title, place) in enumerate(zip(found.titles, places, strict=True)):
            if place is None or place.smaller == place.larger:
                lines.append([f"{title}, {SIZES[size]}", *["–"] * 6])
                continue
            low, middle, high = (np.log(own.values[one][:, at]) for one in (place.smaller, arm, place.larger))
            kept = [np.arange(len(low)) != out for out in range(len(low))]
            without = [float((middle - low)[seeds].mean() / (high - low)[seeds].mean()) for seeds in kept]
            score, smaller, larger = (found.values[one][:, at] for one in (arm, place.smaller, place.larger))
            for which, share in enumerate((min(without), max(without))):
                ends[which, :, at] = score - (1 - share) * smaller - share * larger
            words = ", ".join(f"{share:.2f}".replace("-", "−") for share in without)
            known = [difference((high - low)[:, None]), f"{place.share:.2f}", words]
            lines.append([f"{title}, {SIZES[size]}", *known, *(difference(one[:, [at]]) for one in (apart, *ends))])
        together = [difference(percent(study, one)) for one in (apart, *ends)]
        lines.append([f"together, %, {SIZES[size]}", "", "", "", *together])
    known = ["step in log size", "share of the larger control", "without each seed"]
    return table([f"`{arm}`", *known, "score", "with the least shares", "with the most"], lines)


# ---- features --------------------------------------------------------------------------------------------------------


def grids_of(rows: Sequence[Row], columns: Mapping[str, str]) -> dict[str, Grid]:
    """A grid of each column that a table has, by what it is called."""
    return {name: Grid(rows, column) for column, name in columns.items() if column in rows[0]}


def feature_differences(study: str) -> str:
    """Features of one arm minus those of another, by pairs of the same seed."""
    grids = grids_of(rows_of(study, "features"), FEATURES)
    titles = next(iter(grids.values())).titles
    return "\n".join(
        table(
            [f"`{arm}` less `{other}`", *grids],
            zip(titles, *(by_game(grid.minus(arm, other)) for grid in grids.values()), strict=True),
        )
        for arm, other in CONTRASTS[study]
    )


def features(study: str) -> str:
    """The features at the end of training."""
    grids = grids_of(rows_of(study, "features"), FEATURES)
    first = next(iter(grids.values()))
    means = {arm: [grid.mean(arm) for grid in grids.values()] for arm in first.arms}
    lines = [
        [f"{title}, `{arm}`", *(own[at] for own in means[arm])]
        for at, title in enumerate(first.titles)
        for arm in first.arms
    ]
    return table(["game, arm", *grids], lines)


def measures(study: str, game: str) -> str:
    """The features on states of play by the trained agents of a game."""
    rows = [row | {"state": "done"} for row in rows_of(study, "measures") if row["game"] == game]
    grids = {
        name: Grid([row for row in rows if row["measure"] == measure], "value") for measure, name in MEASURES.items()
    }
    first = next(iter(grids.values()))
    lines = [[f"`{arm}`", *(grid.mean(arm)[0] for grid in grids.values())] for arm in first.arms]
    for arm, other in CONTRASTS[study]:
        if {arm, other} <= set(first.arms):
            lines.append([f"`{arm}` less `{other}`", *(difference(grid.minus(arm, other)) for grid in grids.values())])
    return table([f"{first.titles[0]}, {first.seeds_text}", *grids], lines)


def growths(study: str) -> str:
    """Growth of the gradient of the head in training, and that of its factors."""
    columns = {"head_gradient": "log‖gradient of the head‖", "feature_norm": "log‖φ‖", "td_error": "log|TD error|"}
    rows = rows_of(study, "features")
    grids = {name: Grid(rows, f"growth_log_{column}") for column, name in columns.items()}
    first = next(iter(grids.values()))
    lines = [
        [f"{title}, `{arm}`", *(difference(grid.values[arm][:, [at]]) for grid in grids.values())]
        for at, title in enumerate(first.titles)
        for arm in first.arms
        if arm in GROWING[study]
    ]
    return table(["game, arm", *grids], lines)


def norms() -> str:
    """Rank correlation of feature norm and final score over the arms' means, game by game, in both sets of runs."""
    columns = []
    for study in (FIRST, "minatar"):
        final, norm = scored(study), Grid(rows_of(study, "features"), "training_norm")
        means = [np.array([np.nanmean(grid.values[arm], axis=0) for arm in final.arms]) for grid in (norm, final)]
        found = [
            float(scipy.stats.spearmanr(*pair).statistic) for pair in zip(*(mean.T for mean in means), strict=True)
        ]
        columns.append([f"{value:.2f}".replace("-", "−") for value in found])
    names = scored("minatar").titles
    return table(["rank correlation over the arms", *SETS[:2]], list(zip(names, *columns, strict=True)))


# ---- choices of κ ----------------------------------------------------------------------------------------------------


def kappas(study: str) -> str:
    """The κ that every arm was run with in each game."""
    grid = Grid(rows_of(study, "features"), "kappa")
    lines = []
    for arm in grid.arms:
        own = np.nanmax(np.where(np.isnan(grid.values[arm]), -np.inf, grid.values[arm]), axis=0)
        lines.append([f"`{arm}`", *(f"{value:g}" if np.isfinite(value) else "–" for value in own)])
    return table(["arm", *grid.titles], lines)


def chosen(study: str) -> str:
    """The κ of each penalty that was tuned, and how sure the choice is."""

    def score_text(row: Row) -> str:
        ends = [float(row[name]) if row[name] else math.nan for name in ("score", "score_low", "score_high")]
        return f"{number(ends[0])} {ends_text(number(ends[1]), number(ends[2]))}"

    lines = []
    for fold in "ab":
        rows = rows_of(study, f"kappa-{fold}")
        for penalty in dict.fromkeys(row["penalty"] for row in rows):
            own = [row for row in rows if row["penalty"] == penalty]
            best = next((row for row in own if row["chosen"] == "true"), own[0])
            if not best["kappa"]:
                lines.append([fold, f"`{penalty}`", "–", score_text(best), "–", "–"])
                continue
            within = [row["kappa"] for row in own if row["score"] and float(row["score"]) >= float(best["score_low"])]
            edge = " (an end of the grid)" if best in (own[0], own[-1]) else ""
            kappas = ", ".join(f"{float(kappa):g}" for kappa in within)
            last = max(own, key=lambda row: float(row["kappa"]))
            chosen = f"{float(best['kappa']):g}{edge}"
            lines.append([fold, f"`{penalty}`", chosen, score_text(best), kappas, score_text(last)])
    return table(["fold", "penalty", "chosen κ", "score", "κ within its interval", "score at κ = 10.24"], lines)


def tuned(study: str) -> str:
    """Every κ that was tried in an exported study of few seeds: the score of each run, and what is chosen by them."""
    folder = RESULTS / study / "kappa"
    found = analyse(read_study(folder), Options(replicates=100))
    sweep = found.sweep
    if sorted(found.games) != sorted(TUNED) or sweep is None:
        raise UserError(f"'{folder}' has the games {', '.join(found.games)}; it must have {', '.join(TUNED)}")

    def cells(arm: str, score: Interval, area: Interval, norm: float) -> list[str]:
        runs = [", ".join(map(number, found.final[arm][:, game])) for game in sweep.games]
        # the worst arm has 0, whose sign a sum may change
        scores = [round(float(one.estimate), 9) + 0.0 for one in (score, area)]
        return [*runs, *map(number, (*scores, norm))]

    lines = []
    if sweep.baseline is not None and sweep.baseline_auc is not None:
        arm = found.options.baseline
        lines.append([f"`{arm}`", *cells(arm, sweep.baseline, sweep.baseline_auc, sweep.baseline_norm), "–"])
    for penalty in sweep.penalties:
        for one in penalty.settings:
            taken = {"score": one is penalty.chosen, "area": one is penalty.chosen_by_auc}
            why = " and ".join(name for name, this in taken.items() if this) or "–"
            lines.append([f"`{penalty.name}`, κ = {one.kappa:g}", *cells(one.arm, one.score, one.auc, one.norm), why])
    seeds = ", ".join(map(str, found.seeds))
    games = [f"{reference.title(found.games[game])}, seeds {seeds}" for game in sweep.games]
    return table(["arm", *games, "score", "score by area", "‖φ‖", "chosen by"], lines)


def pilot(study: str) -> str:
    """Feature norms of the arms of a pilot, each with its ratio to that of `CHOSEN`; geometric means over the games."""
    grid = Grid(rows_of(study, "pilot"), "training_norm")
    norms = np.stack([np.exp(np.nanmean(np.log(grid.values[name]), axis=0)) for name in grid.arms])
    norms = np.column_stack([norms, np.exp(np.log(norms).mean(axis=1))])
    ratios = norms / norms[grid.arms.index(CHOSEN)]
    misses = (np.log(ratios[:, :-1]) ** 2).sum(axis=1)
    lines = [
        [f"`{name}`", *(f"{norm:.2f} (× {ratio:.2f})" for norm, ratio in zip(*rows, strict=True)), f"{miss:.3f}"]
        for name, *rows, miss in zip(grid.arms, norms, ratios, misses, strict=True)
    ]
    return table(["arm", *grid.titles, "geometric mean", "sum of squared log-ratios"], lines)


# ---- other programs --------------------------------------------------------------------------------------------------


def breakout() -> str:
    """Breakout's first three million frames: Dopamine's two sets of runs, ours, and ours with actors that wait."""
    folder, millions = RESULTS / "dopamine", 3
    published = reference.dopamine_curve("breakout")
    assert published is not None
    theirs = [curve.returns[:, :millions] for curve in (published, read_later(folder / "later-runs.csv")["breakout"])]
    usual, again, waiting = (
        {
            run.seed: [one.mean_return for one in run.iterations[:millions]]
            for run in read_runs([place])[0]
            if run.game == "breakout"
        }
        for place in (folder, folder / "again", folder / "sequential")
    )
    usual |= again
    both, ours = np.concatenate(theirs), np.array(list(usual.values()))
    sets = {"Dopamine's first": theirs[0], "Dopamine's later": theirs[1]}
    for name, runs in (("ours", usual), ("ours, `sequential`", waiting)):
        seeds = sorted(runs)
        for five in (seeds[begin : begin + 5] for begin in range(0, len(seeds), 5)):
            sets[f"{name}, seeds {five[0]} to {five[-1]}"] = np.array([runs[seed] for seed in five])
        sets[f"{name}, all {len(runs)}"] = np.array(list(runs.values()))
    lines = [
        [
            name,
            str(len(values)),
            *(shown(*mean_interval(values[:, million])) for million in range(millions)),
            told(*welch(values[:, -1], both[:, -1])) if name.startswith("ours") else "–",
            told(*welch(values[:, -1], ours[:, -1])) if "sequential" in name else "–",
        ]
        for name, values in sets.items()
    ]
    names = ["runs of Breakout", "how many", "first million", "second", "third", "third, less Dopamine's ten"]
    return table([*names, f"less our {len(ours)}"], lines)


def copied(*names: str) -> str:
    """A table as a benchmark has written it, or two of the same columns as one."""
    first, *others = ((RESULTS / f"{name}.md").read_text(encoding="utf-8") for name in names)
    if not others:
        return first
    header, *lines = first.splitlines(keepends=True)
    more = [line for other in others for line in other.splitlines(keepends=True)[2:]]
    return header + lines[0] + "".join(sorted([*lines[1:], *more]))


# ---- pages -----------------------------------------------------------------------------------------------------------


def tables() -> dict[str, Callable[[], str]]:
    """Every table of the pages by its name."""
    norm_and_spread = ["training_norm", "training_std_sum"]
    made: dict[str, Callable[[], str]] = {
        "dopamine": partial(copied, "dopamine/dopamine"),
        "breakout": breakout,
        "delay": partial(copied, "delay/delay"),
        "emulators": partial(copied, "emulators/emulators"),
        "starts": partial(copied, "starts/seaquest/starts", "starts/others/starts"),
        "minatar-chosen": partial(chosen, "minatar"),
        "minatar-chance": partial(against, "minatar", "gram", ["decor"]),
        "minatar-headline": headline,
        "minatar-both": partial(both, "minatar"),
        "minatar-norms": norms,
        "minatar-equal": partial(equal_sizes_as_one, "minatar", PENALISED),
        "minatar-equal-unbiased": partial(equal_sizes_as_one, "minatar", UNBIASED),
        "minatar-equal-both": partial(equal_in_both_sets, "Freeway"),
        "minatar-straight": partial(straight, FIRST, "minatar"),
        "atari-shares": partial(shares, "atari"),
        "atari-equal": partial(equal_sizes, "atari", CHOSEN, norm_and_spread),
        "atari-straight": partial(straight, "atari"),
        "atari-mixtures": partial(mixtures, "atari", CHOSEN, norm_and_spread),
        "atari-pilot": partial(pilot, "atari"),
        "atari-tuned": partial(tuned, "atari"),
        "atari-area": partial(by_area, "atari"),
        "atari-moments": partial(moments, "atari", MOMENTS),
        "atari-twice": partial(twice, "atari", EARLIER),
        "minatar-measures": partial(measures, "minatar", "minatar/seaquest"),
        "atari-measures": partial(measures, "atari", "seaquest"),
        "minatar-repeated": partial(in_both_sets, {}),
        "minatar-repeated-both": partial(in_both_sets, {"": PENALISED}),
        "minatar-repeated-area": partial(
            in_both_sets, {", `gram` and `decor`": PENALISED, ", `gram-unbiased`": UNBIASED}, "auc"
        ),
        "minatar-first-features": partial(feature_differences, FIRST),
    }
    for study, baselines in BASELINES.items():
        for one in (kappas, scores, growths, feature_differences, features):
            made[f"{study}-{one.__name__.replace('_', '-')}"] = partial(one, study)
        for baseline in baselines:
            made[f"{study}-against-{re.sub(r'[ ()]+', '-', baseline).strip('-')}"] = partial(against, study, baseline)
    return made


def filled(pages: Sequence[str], made: Mapping[str, Callable[[], str]]) -> list[str]:
    """The pages with each table in its place.

    Raises
    ------
    UserError
        If they have a place for a table that is not made, or lack one, or a table cannot be made from the results.
    """
    places = [name for page in pages for name in PLACE.findall(page)]
    if odd := sorted(set(places) ^ set(made)):
        what = "a place for" if odd[0] in places else "no place for"
        raise UserError(f"the pages have {what} the table '{odd[0]}'; they need one for each that is made")

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        try:
            text = made[name]()
        except KeyError as missing:
            raise UserError(f"the table '{name}' cannot be made: a table of the results lacks {missing}") from missing
        return f"<!-- {name} -->\n\n{text}\n<!-- end of {name} -->\n"

    return [PLACE.sub(fill, page) for page in pages]


def report_figures(study: str) -> dict[str, str]:
    """Figures of the page by the names that they have in a report of a study."""
    seaquest = "minatar-seaquest" if study == "minatar" else "seaquest"
    return {
        "learning-curves": "learning-curves",
        "differences": "differences",
        "against-control": "differences-control",
        "equal-norm": "differences-equal-norm",
        "feature-norm": "feature-norm",
        "dynamics": f"features-{seaquest}",
        "sparsity": f"representation/sparsity-{seaquest}",
    }


def take_report(report: Path, study: str) -> None:
    """Copy the tables of a report that the page is made from, and the figures that it shows, smaller."""
    drawings = {name: report / "figures" / f"{drawn}.png" for name, drawn in report_figures(study).items()}
    written = [report / "scores.csv", report / "features.csv"]
    if missing := [str(path) for path in (*written, *drawings.values()) if not path.exists()]:
        raise UserError(f"'{report}' is no whole report of {study}: it has no '{missing[0]}'")
    results, folder = output_folder(RESULTS / study), output_folder(DOCS / "figures" / "results")
    scored = [place / "scores.csv" for place in (results, report)]
    before, after = (len(read_rows(path)) if path.exists() else 0 for path in scored)
    if after < before:
        print(f"results.py: the report of {study} has {after} runs, the results had {before}", file=sys.stderr)
    for path in written:
        replace_text(results / path.name, path.read_text(encoding="utf-8"))
    for name, drawing in drawings.items():
        picture = Image.open(drawing).convert("RGB")
        with replacing(folder / f"{study}-{name}.png") as temporary:
            picture.quantize(256, dither=Image.Dither.NONE).save(temporary, "png", optimize=True)


def main(arguments: Sequence[str] = ()) -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for study in BASELINES:
        parser.add_argument(f"--{study}", type=Path, help="folder of a report of this study, to be taken first")
    for study, report in vars(parser.parse_args(arguments)).items():
        if report:
            take_report(report, study)
    pages = [DOCS / name for name in PAGES]
    made = filled([page.read_text(encoding="utf-8") for page in pages], tables())
    for page, text in zip(pages, made, strict=True):
        replace_text(page, text)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        print(f"results.py: {error}", file=sys.stderr)
        sys.exit(2)
