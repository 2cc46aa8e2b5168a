"""Writes the tables of ``docs/results.md`` and ``docs/results-details.md`` into them, from the tables in ``results``.

Run it as ``python -m docs.results`` after a result has changed. In a page a table stands between two comments with its
name; the text around them is not touched. Of a study that has not been run, its table says so.
``--minatar FOLDER`` and ``--atari FOLDER`` take what the page needs of a report of that study first: its tables, and
its figures in 256 colours.

A study's folder in ``results`` holds ``scores.csv`` and ``features.csv`` of ``gramian study report`` and, of ``gramian
analyze``, ``measures.csv``; that of MinAtar also the ``kappa.csv`` of the report of either tuning study, as
``kappa-a.csv`` and ``kappa-b.csv``, and in ``first`` the scores and features of an earlier set of the same runs; that
of Atari ``features.csv`` of its pilot, as ``pilot.csv``, in ``kappa`` an export of the runs that tuned κ, and in
``first`` scores and features of earlier runs of one seed. Differences are of pairs of the same game and seed. They, and
growths, have Student's 95 % intervals, whatever the number of seeds; scores, features and measures of an arm by itself,
and shares of pairs, have 95 % percentile intervals of the stratified bootstrap over seeds.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from gramian.report.analysis import Options, analyse, by_arm
from gramian.report.control import mixture_words
from gramian.report.equal_norm import ONLY_SHRINK, Between, interpolated
from gramian.representation.figures import told_apart
from gramian.representation.seeds import MOST_OF_A_RANGE
from gramian.study.horizon import first_frames
from gramian.study.rule import WINDOW_EPISODES
from gramian.study.store import Study, read_study

DOCS = Path(__file__).parent
PAGES = ("results.md", "results-details.md")
PLACE = re.compile(r"<!-- (\S+) -->\n.*?<!-- end of \1 -->\n", re.DOTALL)
"""Of a table in the page."""
RESULTS = DOCS.parent / "results"
AWAITED = "*Not yet run"
"""How the text begins that stands in the place of a table that cannot be made yet."""

SECOND = "norm (0.1)"
"""Atari's second control: the norm penalty at a smaller κ, with features a little larger than those of `CHOSEN`."""
BASELINES = {"minatar": ("dqn", CONTROL, "norm"), "atari": ("dqn", CONTROL, SECOND)}
"""What the arms of each study are compared with, in turn."""
FEW = 5
"""Up to so many seeds the pairs that an arm wins are counted: an interval of their share would be far too narrow."""
PENALISED = ("gram", "decor")
"""Arms that minimise the same number."""
CHOSEN = "gram (0.082)"
"""The arm of Atari's study whose κ was chosen on MinAtar."""
MOMENTS = (3_000_000, 3_250_000, 3_500_000, 3_750_000, 4_000_000)
"""Frames after which Atari's runs are looked at, the last of them as in all other tables."""
TUNED = ("breakout", "space_invaders")
"""Games on which Atari's κ was tuned to the end; the third in its ``kappa.toml``, Pong, was stopped, and left out."""
FIRST = "minatar/first"
"""An earlier set of the runs of MinAtar's study: the same games, arms and seeds, and fewer frames."""
EARLIER, EARLIER_FRAMES = "atari/first", 3_750_000
"""Earlier runs of one seed of Atari's study, which ended before their time, and how far they are looked at."""
_MINATAR = (("gram", "dqn"), ("gram", "norm (matched)"), ("gram-unbiased", "norm (matched)"))
CONTRASTS = {
    "minatar": _MINATAR,
    FIRST: _MINATAR,
    "atari": ((CHOSEN, "dqn"), (CHOSEN, CONTROL), (CHOSEN, SECOND), ("gram", "dqn")),
}
"""Arms whose features are compared in each study, each with the one after it."""
GROWING = {"minatar": ("dqn", "gram"), "atari": ("dqn", "gram", CHOSEN, CONTROL, SECOND)}
"""Arms of which it is shown where the growth of the gradient comes from."""
SETS = ("first set", "main set")
"""The two sets of runs, in the order in which they were made."""
SCORED = ("scores.csv", "features.csv")
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


def read(path: Path) -> list[Row]:
    """Read a table of the results; nothing where there is none."""
    return read_rows(path) if path.exists() else []


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
    known = {(row["game"], row["arm"], row["seed"]) for row in read(scored)}
    if odd := sorted(runs ^ known):
        game, arm, seed = odd[0]
        has, lacks = (folder, scored) if odd[0] in runs else (scored, folder)
        raise UserError(f"'{lacks}' has no run of '{game}', arm '{arm}', seed {seed}, which '{has}' has; make it again")
    return found


def awaited(*paths: Path) -> str:
    """What stands in the place of a table that cannot be made yet."""
    return f"{AWAITED}: awaits {', '.join(f'`results/{path.relative_to(RESULTS)}`' for path in paths)}.*\n"


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown, the first column to the left and the others to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in (header, marks, *lines)
    )


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
    """An estimate with its interval, where it has one; bold where that leaves out 0 and it is a difference."""
    value, low, high = (float(part if at is None else part[at]) for part in found)
    if not math.isfinite(low + high):
        return number(value, sign=sign)
    text = f"{number(value, sign=sign)} {ends_text(number(low, sign=sign), number(high, sign=sign))}"
    return f"**{text}**" if sign and (low > 0 or high < 0) else text


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
        """Names of the games; where all are MinAtar's, that goes without saying."""
        titles = [reference.title(game) for game in self.games]
        if all(title.startswith("MinAtar ") for title in titles):
            return [title.removeprefix("MinAtar ") for title in titles]
        return titles

    @property
    def seeds_text(self) -> str:
        """How many seeds an arm has in a game."""
        found = np.isfinite(np.stack(list(self.values.values()))).sum(axis=1)
        return seeds_words(int(found.min()), int(found.max()))

    def means(self, arm: str) -> Interval:
        """Of each game, with intervals."""
        return statistics.bootstrap(statistics.mean_over_runs, self.values[arm], np.random.default_rng(0), by_game=True)

    def pairs(self, arm: str, baseline: str) -> Array:
        """An arm less another ``[S, G]``, by pairs of the same game and seed."""
        return np.asarray(self.values[arm] - self.values[baseline])

    def differences(self, arm: str, baseline: str) -> list[str]:
        """The mean of the pairs in each game."""
        apart = self.pairs(arm, baseline)
        return [interval_text(student(apart[:, [at]]), sign=True) for at in range(len(self.games))]

    @property
    def groups(self) -> dict[str, list[bool]]:
        """The games that are put together, by what that is called: all, and those of which all arms have two seeds.

        A mean with a game of one seed has no interval.
        """
        seeds = np.isfinite(np.stack(list(self.values.values()))).sum(axis=1).min(axis=0)
        chosen = {"together, %": [True] * len(self.games)}
        if once := [title for title, count in zip(self.titles, seeds, strict=True) if count < 2]:
            chosen[f"together but {', '.join(once)}, %"] = [bool(count > 1) for count in seeds]
        return chosen

    def together(self, arm: str, baseline: str) -> list[str]:
        """The means of the games that `groups` names."""
        apart = self.pairs(arm, baseline)
        return [interval_text(student(apart[:, games]), sign=True) for games in self.groups.values()]

    def won(self, arm: str, baseline: str) -> str:
        """The share of pairs that an arm wins; where they are few, their number."""
        apart = self.pairs(arm, baseline)
        if np.isfinite(apart).sum(axis=0).min() <= FEW:
            return f"{(apart > 0).sum() + 0.5 * (apart == 0).sum():g} of {np.isfinite(apart).sum()}"
        both: tuple[Array, Array] = self.values[arm], self.values[baseline]
        share = statistics.paired_improvement
        return interval_text(statistics.bootstrap_pair(share, *both, np.random.default_rng(0), paired=True))

    def relative(self, scale: Array) -> "Grid":
        """The same in percent of a scale ``[G]``, so that games can be put together."""
        made = Grid([], "")
        made.arms, made.games, made.seeds = self.arms, self.games, self.seeds
        made.values = {arm: 100.0 * values / scale for arm, values in self.values.items()}
        return made


def learned(rows: Sequence[Row]) -> Array:
    """What DQN learns in each game ``[G]``: its mean final score less that of random play."""
    return statistics.learned(*(Grid(rows, column).values["dqn"] for column in ("final_score", "random")))


def scores(study: str) -> str:
    """Mean return of the last 100 episodes of each arm in each game."""
    path = RESULTS / study / "scores.csv"
    if not (found := read(path)):
        return awaited(path)
    grid = Grid(found, "final_score")
    lines = []
    for arm in grid.arms:
        means = grid.means(arm)
        lines.append([f"`{arm}`", *(interval_text(means, at) for at in range(len(grid.games)))])
    return table([f"arm ({grid.seeds_text})", *grid.titles], lines)


def against(study: str, baseline: str, arms: Sequence[str] = ()) -> str:
    """Differences to a baseline, of all arms or of some, and how often it is beaten."""
    path = RESULTS / study / "scores.csv"
    if not (found := read(path)):
        return awaited(path)
    final, auc = (Grid(found, column) for column in ("final_score", "auc"))
    if baseline not in final.arms:
        return f"*The study has no arm `{baseline}`.*\n"
    relative = final.relative(learned(found))
    columns = [
        [
            f"`{arm}`",
            *final.differences(arm, baseline),
            *relative.together(arm, baseline),
            *(one.won(arm, baseline) for one in (final, auc)),
        ]
        for arm in arms or final.arms
        if arm != baseline
    ]
    names = [f"less `{baseline}`", *final.titles, *final.groups, "pairs won", "pairs won by area"]
    header, *lines = zip(names, *columns, strict=True)
    return table(header, lines)


def by_area(study: str) -> str:
    """Differences by the area under the learning curve: every arm less DQN, and `gram` less the control."""
    path = RESULTS / study / "scores.csv"
    if not (found := read(path)):
        return awaited(path)
    area = Grid(found, "auc")
    relative = area.relative(learned(found))
    columns = [
        [f"`{arm}` less `{other}`", *area.differences(arm, other), *relative.together(arm, other), area.won(arm, other)]
        for arm, other in with_control(area.arms)
    ]
    header, *lines = zip(["area", *area.titles, *area.groups, "pairs won"], *columns, strict=True)
    return table(header, lines)


def parts_of(titles: Sequence[str], pairs: Array) -> dict[str, list[int]]:
    """Every game, all of them, and all but the one with the largest difference, by what that is called."""
    means = np.abs(statistics.mean_over_runs(pairs))
    largest = int(np.where(np.isnan(means), -1.0, means).argmax())
    groups = {title: [at] for at, title in enumerate(titles)}
    groups["together"] = list(range(len(titles)))
    groups[f"without {titles[largest]}"] = [at for at in groups["together"] if at != largest]
    return groups


def shares(study: str) -> str:
    """`gram` at the κ that was chosen over DQN, over both controls, and over one at equal norm, in percent."""
    if missing := unread(study):
        return awaited(*missing)
    found = read(RESULTS / study / "scores.csv")
    scale = learned(found)
    groups: dict[str, list[int]] = {}
    made = []
    for column, what in MEASURED.items():
        grid = Grid(found, column).relative(scale)
        columns = {
            f"over {other}": grid.pairs(CHOSEN, arm)
            for arm, other in (("dqn", "DQN"), (CONTROL, f"`{CONTROL}`"), (SECOND, f"`{SECOND}`"))
        }
        columns["at equal ‖φ‖"] = 100.0 * at_equal_size(study, CHOSEN, "training_norm", column)[0] / scale
        groups = groups or parts_of(grid.titles, columns["over DQN"])
        lines = [
            [name, *(interval_text(student(one[:, games]), sign=True) for one in columns.values())]
            for name, games in groups.items()
        ]
        made.append(table([f"{what} of `{CHOSEN}`, %", *columns], lines))
    return "\n".join(made)


def unread(study: str) -> list[Path]:
    """Which of the scores and the features of a study are not there."""
    return [path for name in SCORED if not read(path := RESULTS / study / name)]


def at_equal_size(study: str, arm: str, size: str, column: str) -> tuple[Array, list[Between | None]]:
    """An arm less a control at its own size, by pairs ``[S, G]``, and what that is made of in each game."""
    scored, sizes, controls = beside_sizes(study, size, column)
    return interpolated(scored.values, sizes.values, arm, controls)


def beside_sizes(study: str, size: str, column: str) -> tuple[Grid, Grid, list[str]]:
    """Scores, sizes of the features of the same runs, and the arms that are controls.

    Raises
    ------
    UserError
        If scores and features are not of the same games and seeds.
    """
    scored = Grid(read(RESULTS / study / "scores.csv"), column)
    # what the features of a run had been before it diverged says nothing
    rows = [row if row["state"] == "done" else {**row, size: ""} for row in read(RESULTS / study / "features.csv")]
    sizes = Grid(rows, size)
    if (scored.games, scored.seeds) != (sizes.games, sizes.seeds):
        raise UserError(f"scores and features in '{RESULTS / study}' are not of the same runs; make the report again")
    return scored, sizes, [one for one in sizes.arms if kind_of(one) in ONLY_SHRINK]


def equal_sizes(study: str, arm: str, sizes: Sequence[str]) -> str:
    """An arm beside controls at equal norm, and at equal spread, of the features, in percent of what DQN learns."""
    if missing := unread(study):
        return awaited(*missing)
    found = read(RESULTS / study / "scores.csv")
    titles, scale = Grid(found, "auc").titles, learned(found)
    groups: dict[str, list[int]] = {}
    columns: list[list[str]] = []
    for size in sizes:
        for column, what in MEASURED.items():
            apart, places = at_equal_size(study, arm, size, column)
            percent = 100.0 * apart / scale
            if not groups:
                groups = parts_of(titles, percent)
            if column == "final_score":
                made_of = [mixture_words(place) for place in places]
                columns.append([f"control at equal {SIZES[size]}", *made_of, *[""] * (len(groups) - len(titles))])
            cells = [interval_text(student(percent[:, games]), sign=True) for games in groups.values()]
            columns.append([f"{what} at equal {SIZES[size]}", *cells])
    header, *lines = zip([f"`{arm}`, %", *groups], *columns, strict=True)
    return table(header, lines)


def equal_sizes_as_one(study: str, arms: Sequence[str]) -> str:
    """Arms taken as one beside controls at equal norm, and at equal spread, of the features."""
    if missing := unread(study):
        return awaited(*missing)
    found = read(RESULTS / study / "scores.csv")
    titles, scale = Grid(found, "auc").titles, learned(found)
    columns = []
    for column, what in MEASURED.items():
        for size, name in SIZES.items():
            apart = np.mean([at_equal_size(study, arm, size, column)[0] for arm in arms], axis=0)
            cells = [interval_text(student(apart[:, [at]]), sign=True) for at in range(len(titles))]
            columns.append(
                [f"{what} at equal {name}", *cells, interval_text(student(100.0 * apart / scale), sign=True)]
            )
    header, *lines = zip(["game", *titles, "together, %"], *columns, strict=True)
    return table(header, lines)


def equal_in_both_sets(study: str, first: str, game: str) -> str:
    """Arms less a control at their own size in both sets of runs: over all games, and in one of them."""
    if missing := [path for one in (first, study) for path in unread(one)]:
        return awaited(*missing)
    found = [read(RESULTS / one / "scores.csv") for one in (first, study)]
    at = Grid(found[1], "auc").titles.index(game)
    lines = []
    for name, arms in (("`gram` and `decor`", PENALISED), ("`gram-unbiased`", ("gram-unbiased",))):
        for size in ("training_norm", "held_out_std_sum"):
            for column, what in MEASURED.items():
                apart = [
                    np.mean([at_equal_size(one, arm, size, column)[0] for arm in arms], axis=0)
                    for one in (first, study)
                ]
                percent = [100.0 * one / learned(rows) for one, rows in zip(apart, found, strict=True)]
                cells = [*in_each_set(percent), *in_each_set([one[:, [at]] for one in apart])]
                lines.append([f"{name}, {what} at equal {SIZES[size]}", *cells])
    columns = [f"{what}, {one}" for what in ("together, %", game) for one in (*SETS, "mean of both")]
    return table(["arms, measure", *columns], lines)


def straight(*studies: str) -> str:
    """Of three controls the middle one, by norm, less what a straight line between the outer ones gives there.

    In one set of runs, or in two and the mean of both.
    """
    if missing := [path for one in studies for path in unread(one)]:
        return awaited(*missing)
    found = [read(RESULTS / one / "scores.csv") for one in studies]
    titles = Grid(found[-1], "auc").titles
    whichever = [f", {name}" for name in (*SETS, "mean of both")] if len(studies) > 1 else [""]
    columns = []
    for column, what in MEASURED.items():
        apart, places = zip(*(middle_less_line(one, column) for one in studies), strict=True)
        percent = [100.0 * one / learned(rows) for one, rows in zip(apart, found, strict=True)]
        cells = [in_each_set([one[:, [at]] for one in apart]) for at in range(len(titles))]
        together = in_each_set(percent)
        for at, which in enumerate(whichever):
            columns.append([f"{what}{which}", *(own[at] for own in cells), together[at]])
    names = [f"{title}, {place}" for title, place in zip(titles, places[-1], strict=True)]
    header, *lines = zip(["game, the one between", *names, "together, %"], *columns, strict=True)
    return table(header, lines)


def mixtures(study: str, arm: str, sizes: Sequence[str]) -> str:
    """How well it is known which mixture of two controls has the size of an arm, and what hangs on it.

    The step from the smaller control to the larger one in log size, by pairs of the same seed; the share of the larger
    one, and what it is where one seed is left out; and the difference that is left: as it is, and where the share of
    every game is the least or the most of those.
    """
    if missing := unread(study):
        return awaited(*missing)
    scale = learned(read(RESULTS / study / "scores.csv"))
    lines = []
    for size in sizes:
        scored, own, controls = beside_sizes(study, size, "final_score")
        apart, places = interpolated(scored.values, own.values, arm, controls)
        ends = np.full((2, *apart.shape), np.nan)
        for at, (title, place) in enumerate(zip(scored.titles, places, strict=True)):
            if place is None or place.smaller == place.larger:
                lines.append([f"{title}, {SIZES[size]}", *["–"] * 6])
                continue
            low, middle, high = (np.log(own.values[one][:, at]) for one in (place.smaller, arm, place.larger))
            kept = [np.arange(len(low)) != out for out in range(len(low))]
            shares = [float((middle - low)[seeds].mean() / (high - low)[seeds].mean()) for seeds in kept]
            scores = [scored.values[one][:, at] for one in (arm, place.smaller, place.larger)]
            for which, share in enumerate((min(shares), max(shares))):
                ends[which, :, at] = scores[0] - (1 - share) * scores[1] - share * scores[2]
            lines.append(
                [
                    f"{title}, {SIZES[size]}",
                    interval_text(student((high - low)[:, None]), sign=True),
                    f"{place.share:.2f}",
                    ", ".join(f"{share:.2f}".replace("-", "−") for share in shares),
                    *(interval_text(student(one[:, [at]]), sign=True) for one in (apart, *ends)),
                ]
            )
        together = [interval_text(student(100.0 * one / scale), sign=True) for one in (apart, *ends)]
        lines.append([f"together, %, {SIZES[size]}", "", "", "", *together])
    known = ["step in log size", "share of the larger control", "without each seed"]
    return table([f"`{arm}`", *known, "score", "with the least shares", "with the most"], lines)


def middle_less_line(study: str, column: str) -> tuple[Array, list[str]]:
    """The middle control of each game less the line ``[S, G]``, and which one it is and where it lies."""
    scored, sizes, controls = beside_sizes(study, "training_norm", column)
    means = {arm: np.nanmean(np.log(sizes.values[arm]), axis=0) for arm in controls}
    apart, places = np.empty_like(scored.values["dqn"]), []
    for at in range(len(scored.games)):
        low, middle, high = sorted(controls, key=lambda arm: float(means[arm][at]))
        difference, found = interpolated(scored.values, sizes.values, middle, [low, high])
        apart[:, at] = difference[:, at]
        place = found[at]
        assert place is not None
        places.append(f"`{middle}`, {100 * place.share:.0f}\N{NO-BREAK SPACE}%")
    return apart, places


def moments(study: str, frames: Sequence[int]) -> str:
    """Final scores over all games as they would be if all runs had ended earlier.

    A control at equal norm is the mixture that has the norm at the end.
    """
    known, folder = read(RESULTS / study / "scores.csv"), RESULTS / study / "study"
    if not known or not folder.exists():
        return awaited(RESULTS / study / "scores.csv", folder)
    chance = {row["game"]: row["random"] for row in known}
    whole = exported(study)
    sizes, controls = None, []
    if not unread(study):
        _, sizes, controls = beside_sizes(study, "training_norm", "final_score")
    lines = []
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
        relative = Grid(rows, "final_score").relative(learned(rows))
        pairs = with_control(relative.arms)
        columns = {f"`{arm}` less `{other}`": relative.together(arm, other) for arm, other in pairs}
        if sizes is not None:
            apart, _ = interpolated(relative.values, sizes.values, CHOSEN, controls)
            columns[f"`{CHOSEN}` at equal ‖φ‖"] = [
                interval_text(student(apart[:, games]), sign=True) for games in relative.groups.values()
            ]
        names = [name.removeprefix("together").removesuffix(", %") for name in relative.groups]
        lines += [
            [f"{end / 1e6:g}M{name}", *cells]
            for name, cells in zip(names, zip(*columns.values(), strict=True), strict=True)
        ]
    return table(["frames", *columns], lines)


def twice(study: str, earlier: str) -> str:
    """Differences of single pairs in two runs each: those of the study, looked at as far as the earlier ones got."""
    past, folder = read(RESULTS / earlier / "scores.csv"), RESULTS / study / "study"
    if not past or not folder.exists():
        return awaited(RESULTS / earlier / "scores.csv", folder)
    whole = analyse(first_frames(exported(study), EARLIER_FRAMES), Options(replicates=100)).scores
    later = [{name: str(value) for name, value in row.items()} for row in whole.to_dicts()]
    (seed,) = {row["seed"] for row in past}
    lines = []
    for game in sorted({row["game"] for row in past}, key=reference.title):
        for arm, other in with_control(order_arms(row["arm"] for row in past)):
            cells = []
            for column in ("final_score", "auc"):
                for rows in (past, later):
                    own = [row for row in rows if (row["game"], row["seed"]) == (game, seed)]
                    found = {row["arm"]: float(row[column]) for row in own}
                    known = {arm, other} <= set(found)
                    cells.append(number(found[arm] - found[other], sign=True) if known else "–")
            lines.append([f"{reference.title(game)}, `{arm}` less `{other}`", *cells])
    columns = [f"{name}, {when}" for name in ("final score", "area") for when in ("first time", "second time")]
    return table([f"seed {seed}, {EARLIER_FRAMES / 1e6:g}M frames", *columns], lines)


def with_control(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Every arm with DQN, and `gram` at the κ that was chosen with the controls that there are."""
    return [
        *((arm, "dqn") for arm in arms if arm != "dqn"),
        *((CHOSEN, arm) for arm in (CONTROL, SECOND) if arm in arms),
    ]


def both(study: str) -> str:
    """`gram` and `decor`, which minimise the same number, taken as one arm of twice the runs."""
    path = RESULTS / study / "scores.csv"
    if not (found := read(path)):
        return awaited(path)
    final = Grid(found, "final_score")
    if missing := {*PENALISED, "dqn", "norm (matched)"} - set(final.arms):
        return f"*The study has no arm {' or '.join(f'`{arm}`' for arm in sorted(missing))}.*\n"
    scale = learned(found)
    others = [final.values[other] for other in ("dqn", "norm (matched)")]
    mean = np.mean([final.values[arm] for arm in PENALISED], axis=0)
    differences = [mean - other for other in others]
    lines = [
        [
            game,
            *(interval_text(student(one[:, [at]]), sign=True) for one in differences),
            number(detectable(differences[1][:, [at]])),
        ]
        for at, game in enumerate(final.titles)
    ]
    percent = [100.0 * one / scale for one in differences]
    lines.append(
        ["together, %", *(interval_text(student(one), sign=True) for one in percent), number(detectable(percent[1]))]
    )
    return table(["game", "less `dqn`", "less `norm (matched)`", "found 4 times of 5"], lines)


def repeated(study: str, first: str) -> str:
    """Every arm in both sets of runs."""
    return in_both_sets(study, first, {})


def repeated_both(study: str, first: str) -> str:
    """`gram` and `decor` as one arm in both sets of runs."""
    return in_both_sets(study, first, {"": PENALISED})


def repeated_area(study: str, first: str) -> str:
    """The same and `gram-unbiased` by the area under the learning curve."""
    arms = {", `gram` and `decor`": PENALISED, ", `gram-unbiased`": ["gram-unbiased"]}
    return in_both_sets(study, first, arms, column="auc")


def headline(study: str, first: str) -> str:
    """What `gram` and `decor` as one arm have over DQN, and over the norm penalty: over all games, in percent."""
    if missing := [path for one in (first, study) for path in unread(one)]:
        return awaited(*missing)
    found = [read(RESULTS / one / "scores.csv") for one in (first, study)]
    scales = [learned(rows) / 100.0 for rows in found]
    lines = []
    for title, column in (("final score", "final_score"), ("area under the learning curve", "auc")):
        grids = [Grid(rows, column) for rows in found]
        equal = [
            np.mean([at_equal_size(one, arm, "training_norm", column)[0] for arm in PENALISED], axis=0) / scale
            for one, scale in zip((first, study), scales, strict=True)
        ]
        _, *at_equal_norm = in_each_set(equal)
        _, *cells = zip(*(less(grids, PENALISED, other, scales) for other in ("dqn", CONTROL)), strict=True)
        lines += [
            [f"{title}, {runs}", *own, last]
            for runs, own, last in zip(("main set", "both sets"), cells, at_equal_norm, strict=True)
        ]
    columns = ["over DQN", f"over `{CONTROL}`", "over a norm penalty at equal ‖φ‖, interpolated"]
    return table(["in percent of what DQN learns", *columns], lines)


def in_each_set(differences: Sequence[Array]) -> list[str]:
    """Of each set of runs, and of the mean of them by seed."""
    return [interval_text(student(one), sign=True) for one in (*differences, np.mean(differences, axis=0))]


def less(
    sets: Sequence[Grid], arms: Sequence[str], other: str, scales: Sequence[Array | float], games: slice = slice(None)
) -> list[str]:
    """Arms taken as one less another, in units of ``scales``: in each set of runs, and in the mean of them by seed."""
    differences = [
        ((np.mean([grid.values[arm] for arm in arms], axis=0) - grid.values[other]) / scale)[:, games]
        for grid, scale in zip(sets, scales, strict=True)
    ]
    return in_each_set(differences)


def in_both_sets(study: str, first: str, together: Mapping[str, Sequence[str]], *, column: str = "final_score") -> str:
    """Arms less DQN and less `norm (matched)` in the first set of runs, in the main one, and in the mean of the two.

    The mean is taken seed by seed, so that what the two runs of a seed have in common counts once. ``together`` names
    the arms that are taken as one, by what a line calls them; every arm by itself where it is empty.
    """
    found = [read(RESULTS / one / "scores.csv") for one in (first, study)]
    if not all(found):
        return awaited(*(RESULTS / one / "scores.csv" for one in (first, study)))
    finals = [Grid(rows, column) for rows in found]
    scales = [learned(rows) / 100.0 for rows in found]
    together = together or {f", `{arm}`": [arm] for arm in finals[1].arms if arm != "dqn"}
    others = ("dqn", "norm (matched)")

    def cells(arms: Sequence[str], games: slice, scales: Sequence[Array | float]) -> list[str]:
        return [
            cell
            for other in others
            for cell in (["–"] * 3 if other in arms else less(finals, arms, other, scales, games))
        ]

    lines = [
        [f"{game}{name}", *cells(arms, slice(at, at + 1), (1.0, 1.0))]
        for at, game in enumerate(finals[1].titles)
        for name, arms in together.items()
    ]
    lines += [[f"together, %{name}", *cells(arms, slice(None), scales)] for name, arms in together.items()]
    columns = [f"less `{other}`, {one}" for other in others for one in (*SETS, "mean of both")]
    return table(["game, arm" if len(together) > 1 else "game", *columns], lines)


def detectable(differences: Array) -> float:
    """True mean of such differences ``[S, G]`` that a t-test at 5 % finds with a power of 80 %."""
    error, freedom = statistics.standard_error(differences)
    return error * float(scipy.stats.t.ppf(0.975, freedom) + scipy.stats.t.ppf(0.8, freedom))


def feature_differences(study: str) -> str:
    """Features of one arm less those of another, by pairs of the same seed."""
    path = RESULTS / study / "features.csv"
    if not (found := read(path)):
        return awaited(path)
    grids = {name: Grid(found, column) for column, name in FEATURES.items() if column in found[0]}
    first = next(iter(grids.values()))
    tables = []
    for arm, other in CONTRASTS[study]:
        if not {arm, other} <= set(first.arms):
            continue
        lines = zip(first.titles, *(grid.differences(arm, other) for grid in grids.values()), strict=True)
        tables.append(table([f"`{arm}` less `{other}`", *grids], lines))
    return "\n".join(tables)


def features(study: str) -> str:
    """What the features were like at the end of training."""
    path = RESULTS / study / "features.csv"
    if not (found := read(path)):
        return awaited(path)
    grids = {name: Grid(found, column) for column, name in FEATURES.items() if column in found[0]}
    first = next(iter(grids.values()))
    lines = []
    for at, game in enumerate(first.titles):
        for arm in first.arms:
            cells = [interval_text(grid.means(arm), at) for grid in grids.values()]
            lines.append([f"{game}, `{arm}`", *cells])
    return table(["game, arm", *grids], lines)


def measures(study: str, game: str) -> str:
    """What the features are like on states that the trained agents of a game come by in play."""
    path = RESULTS / study / "measures.csv"
    if not (found := read(path)):
        return awaited(path)
    rows = [row | {"state": "done"} for row in found if row["game"] == game]  # what has been analyzed has ended
    grids = {
        name: Grid([row for row in rows if row["measure"] == measure], "value") for measure, name in MEASURES.items()
    }
    first = next(iter(grids.values()))
    lines = [[f"`{arm}`", *(interval_text(grid.means(arm), 0) for grid in grids.values())] for arm in first.arms]
    for arm, other in CONTRASTS[study]:
        if {arm, other} <= set(first.arms):
            lines.append([f"`{arm}` less `{other}`", *(grid.differences(arm, other)[0] for grid in grids.values())])
    return table([f"{first.titles[0]}, {first.seeds_text}", *grids], lines)


def chosen(study: str) -> str:
    """The κ of each penalty that was tuned, and how sure the choice is."""
    paths = [RESULTS / study / f"kappa-{fold}.csv" for fold in "ab"]
    if not all(path.exists() for path in paths):
        return awaited(*(path for path in paths if not path.exists()))
    lines = []
    for fold, path in zip("ab", paths, strict=True):
        rows = read(path)
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
    if not folder.exists():
        return awaited(folder)
    found = analyse(read_study(folder), Options(replicates=100))
    if sorted(found.games) != sorted(TUNED):
        raise UserError(f"'{folder}' has the games {', '.join(found.games)}; it must have {', '.join(TUNED)}")
    if found.sweep is None:
        raise UserError(f"no penalty in '{folder}' has a grid of κ")

    def cells(arm: str, score: Interval, area: Interval, norm: float) -> list[str]:
        runs = [", ".join(map(number, found.final[arm][:, game])) for game in found.sweep.games]
        # the worst arm has 0, whose sign a sum may change
        scores = [round(float(one.estimate), 9) + 0.0 for one in (score, area)]
        return [*runs, *map(number, (*scores, norm))]

    lines, sweep = [], found.sweep
    if sweep.baseline is not None and sweep.baseline_auc is not None:
        arm = found.options.baseline
        lines.append([f"`{arm}`", *cells(arm, sweep.baseline, sweep.baseline_auc, sweep.baseline_norm), "–"])
    for penalty in sweep.penalties:
        for one in penalty.settings:
            taken = {"score": one is penalty.chosen, "area": one is penalty.chosen_by_auc}
            why = " and ".join(name for name, this in taken.items() if this) or "–"
            lines.append([f"`{penalty.name}`, κ = {one.kappa:g}", *cells(one.arm, one.score, one.auc, one.norm), why])
    seeds = ", ".join(map(str, found.seeds))
    games = [f"{reference.title(found.games[game])}, seeds {seeds}" for game in found.sweep.games]
    return table(["arm", *games, "score", "score by area", "‖φ‖", "chosen by"], lines)


def score_text(row: Row) -> str:
    """The score of a κ with its interval."""
    ends = [float(row[name]) if row[name] else math.nan for name in ("score", "score_low", "score_high")]
    return f"{number(ends[0])} {ends_text(number(ends[1]), number(ends[2]))}"


def kappas(study: str) -> str:
    """The κ that every arm was run with in each game."""
    path = RESULTS / study / "features.csv"
    if not (found := read(path)):
        return awaited(path)
    grid = Grid(found, "kappa")
    lines = []
    for arm in grid.arms:
        own = np.nanmax(np.where(np.isnan(grid.values[arm]), -np.inf, grid.values[arm]), axis=0)
        lines.append([f"`{arm}`", *(f"{value:g}" if np.isfinite(value) else "–" for value in own)])
    return table(["arm", *grid.titles], lines)


def figures(study: str) -> str:
    """The figures of the scores that there are."""
    rows = read(RESULTS / study / "scores.csv")
    arms, games = ({row[name] for row in rows} for name in ("arm", "game"))
    beside = ", each arm beside DQN (dashed)" if by_arm(len(arms), len(games)) else ""
    less = "by pairs of the same game and seed"
    undetermined = "; what lies between them is badly known in CrazyClimber" if study == "atari" else ""
    return pictures(
        study,
        {
            "learning-curves": (
                "Learning curves",
                f"Learning curves{beside}: mean return of the last 100 training episodes, "
                f"{mean_words(rows)}{dopamine_words(rows)}",
            ),
            "differences": ("Final score less that of DQN", f"Final score less that of DQN, {less}, {bar_words(rows)}"),
            "against-control": (
                f"Final score less that of {CONTROL}",
                f"Final score less that of `{CONTROL}`, {less}, {bar_words(rows)}",
            ),
            "equal-norm": (
                "Final score less that of a norm penalty at equal feature norm",
                "Beyond shrinking alone: final score less that of the norm penalty at equal ‖φ‖, interpolated between "
                f"those that were run, {less}, {bar_words(rows)}. An arm stands in the games in which its features lie "
                f"between theirs{undetermined}",
            ),
        },
    )


def feature_figures(study: str) -> str:
    """The figures of the features that there are."""
    during = read(RESULTS / study / "features.csv")
    seaquest = [row for row in during if row["game"].endswith("seaquest")]
    trained = [row for row in read(RESULTS / study / "measures.csv") if row["game"].endswith("seaquest")]
    arms = ", ".join(f"`{arm}`" for arm in told_apart(order_arms(row["arm"] for row in trained)))
    return pictures(
        study,
        {
            "feature-norm": ("Feature norm during training", f"Mean ‖φ‖ during training, {mean_words(during)}"),
            "sparsity": (
                "Active features and sparsity of trained agents on Seaquest",
                "States that trained agents come by in play on Seaquest: how many features are active in a state, in "
                f"how many states a feature is active, and the share of |φ| ≤ ε. Arms: {arms}; {mean_words(trained)}",
            ),
            "dynamics": (
                "Features, gradients and TD error during training on Seaquest",
                "Norms, gradients, TD error, sparsity, rank, correlation and dormancy during training on Seaquest, "
                f"{mean_words(seaquest)}",
            ),
        },
    )


def dopamine_words(rows: Sequence[Row]) -> str:
    """Whose curve stands beside those of Atari games."""
    return "; black: Dopamine's DQN" if any(reference.atari(row["game"]) for row in rows) else ""


def counts(rows: Sequence[Row]) -> tuple[int, int]:
    """Fewest and most seeds of an arm in a game; 0 where there are no runs."""
    seeds: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        seeds.setdefault((row["game"], row["arm"]), set()).add(row["seed"])
    found = [len(own) for own in seeds.values()]
    return min(found, default=0), max(found, default=0)


def seeds_words(fewest: int, most: int) -> str:
    """How many seeds there are."""
    return (f"{most} seeds" if most != 1 else "1 seed") if fewest == most else f"{fewest} to {most} seeds"


def several(fewest: int) -> str:
    """What is to be said of single seeds where some game has one alone."""
    return ", where there are several" if fewest < 2 else ""


def mean_words(rows: Sequence[Row]) -> str:
    """What lines and bands of a figure are."""
    fewest, most = counts(rows)
    band = "band: 95 % bootstrap interval over seeds"
    if most <= MOST_OF_A_RANGE:
        band = f"thin lines: the single seeds{several(fewest)}"
    return f"mean over {seeds_words(fewest, most)}; {band}"


def bar_words(rows: Sequence[Row]) -> str:
    """What marks and bars of a figure of differences are."""
    fewest, most = counts(rows)
    bars, last = "bars: Student's 95 % interval", ""
    if most <= MOST_OF_A_RANGE:
        bars, last = f"small circles: the single seeds{several(fewest)}", ", with Student's 95 % interval"
    if fewest < 2:
        last = "; it has no interval, since a game of one seed is in it"
    return (
        f"mean over {seeds_words(fewest, most)}; {bars}. Last panel: the mean of the games, in percent of what DQN "
        f"learns in each{last}"
    )


def pictures(study: str, names: dict[str, tuple[str, str]]) -> str:
    """Those that there are, by name, each with what it is called and, below it, what it shows."""
    there = [
        f"![{called}](figures/results/{study}-{name}.png)\n\n*{caption}.*\n"
        for name, (called, caption) in names.items()
        if (DOCS / "figures" / "results" / f"{study}-{name}.png").exists()
    ]
    return "\n".join(there) or f"*Not yet run: awaits figures of the report of `{study}`.*\n"


def pilot(study: str, arm: str = CHOSEN) -> str:
    """Feature norms of the arms of a pilot, each with its ratio to that of one arm; a geometric mean over the games."""
    path = RESULTS / study / "pilot.csv"
    if not (found := read(path)):
        return awaited(path)
    grid = Grid(found, "training_norm")
    norms = np.stack([np.exp(np.nanmean(np.log(grid.values[name]), axis=0)) for name in grid.arms])
    norms = np.column_stack([norms, np.exp(np.log(norms).mean(axis=1))])
    ratios = norms / norms[grid.arms.index(arm)]
    misses = (np.log(ratios[:, :-1]) ** 2).sum(axis=1)
    lines = [
        [f"`{name}`", *(f"{norm:.2f} (× {ratio:.2f})" for norm, ratio in zip(*rows, strict=True)), f"{miss:.3f}"]
        for name, *rows, miss in zip(grid.arms, norms, ratios, misses, strict=True)
    ]
    return table(["arm", *grid.titles, "geometric mean", "sum of squared log-ratios"], lines)


def norms(study: str, first: str) -> str:
    """Rank correlation of feature norm and final score over the arms' means, game by game, in both sets of runs."""
    if not (main := ranked(study)):
        return awaited(*(RESULTS / study / name for name in ("scores.csv", "features.csv")))
    lines = [
        [game, *(f"{found[game]:.2f}".replace("-", "−") if game in found else "–" for found in (ranked(first), main))]
        for game in main
    ]
    return table(["rank correlation over the arms", *SETS], lines)


def ranked(study: str) -> dict[str, float]:
    """Rank correlation of feature norm and final score over the arms' means, by the game's name; none where not run."""
    rows = [read(RESULTS / study / name) for name in ("scores.csv", "features.csv")]
    if not all(rows):
        return {}
    final, norm = (Grid(own, column) for own, column in zip(rows, ("final_score", "training_norm"), strict=True))
    means = [{arm: np.nanmean(grid.values[arm], axis=0) for arm in final.arms} for grid in (norm, final)]
    return {
        game: float(scipy.stats.spearmanr(*([mean[arm][at] for arm in final.arms] for mean in means)).statistic)
        for at, game in enumerate(final.titles)
    }


def growths(study: str) -> str:
    """Growth of the gradient of the head in training, and that of what it is made of."""
    path = RESULTS / study / "features.csv"
    if not (found := read(path)):
        return awaited(path)
    names = {name: f"growth_log_{name}" for name in ("head_gradient", "feature_norm", "td_error")}
    if not set(names.values()) <= set(found[0]):
        return f"*Not yet run: awaits the growth of the gradient in `results/{study}/features.csv`.*\n"
    grids = {name: Grid(found, column) for name, column in names.items()}
    first = grids["head_gradient"]
    lines = [
        [
            f"{game}, `{arm}`",
            *(interval_text(student(grid.values[arm][:, [at]]), sign=True) for grid in grids.values()),
        ]
        for at, game in enumerate(first.titles)
        for arm in first.arms
        if arm in GROWING[study]
    ]
    return table(["game, arm", "log‖gradient of the head‖", "log‖φ‖", "log|TD error|"], lines)


def dopamine() -> str:
    """DQN beside Dopamine's: the table and, where there is one, the figure."""
    path = RESULTS / "dopamine" / "dopamine.md"
    if not path.exists():
        return awaited(path)
    text = (
        "Mean training return by million frames, ours and Dopamine's, with 95 % intervals over runs, cut "
        "off where they are far wider than the runs; thin: single runs; dotted: the mean of Dopamine's later runs"
    )
    picture = pictures("dopamine", {"curves": ("Mean training return, ours and Dopamine's", text)})
    return path.read_text(encoding="utf-8") + (f"\n{picture}" if picture.startswith("!") else "")


def breakout() -> str:
    """Breakout's first three million frames: Dopamine's two sets of runs, ours, and ours with actors that wait."""
    folder = RESULTS / "dopamine"
    places = (folder, folder / "again", folder / "sequential")
    for path in (folder / "later-runs.csv", *(place / "dopamine-runs.csv" for place in places)):
        if not path.exists():
            return awaited(path)
    published = reference.dopamine_curve("breakout")
    assert published is not None
    millions = 3
    theirs = [curve.returns[:, :millions] for curve in (published, read_later(folder / "later-runs.csv")["breakout"])]
    usual, again, waiting = (
        {
            run.seed: [one.mean_return for one in run.iterations[:millions]]
            for run in read_runs([place])[0]
            if run.game == "breakout"
        }
        for place in places
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


def copied(name: str) -> str:
    """A table as a benchmark has written it into a folder with its name."""
    path = RESULTS / name / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.exists() else awaited(path)


def starts() -> str:
    """Random play in games that begin in two ways."""
    paths = [RESULTS / "starts" / name / "starts.md" for name in ("seaquest", "others")]
    if missing := [path for path in paths if not path.exists()]:
        return awaited(missing[0])
    first, second = (path.read_text(encoding="utf-8").splitlines() for path in paths)
    return "\n".join([*first[:2], *sorted(first[2:] + second[2:])]) + "\n"


def tables() -> dict[str, Callable[[], str]]:
    """Every table of the pages by its name."""
    made: dict[str, Callable[[], str]] = {
        "dopamine": dopamine,
        "breakout": breakout,
        "delay": lambda: copied("delay"),
        "emulators": lambda: copied("emulators"),
        "starts": starts,
        "minatar-chosen": lambda: chosen("minatar"),
        "minatar-chance": lambda: against("minatar", "gram", ["decor"]),
        "minatar-headline": lambda: headline("minatar", FIRST),
        "minatar-both": lambda: both("minatar"),
        "minatar-norms": lambda: norms("minatar", FIRST),
        "minatar-equal": lambda: equal_sizes_as_one("minatar", PENALISED),
        "minatar-equal-unbiased": lambda: equal_sizes_as_one("minatar", ["gram-unbiased"]),
        "minatar-equal-both": lambda: equal_in_both_sets("minatar", FIRST, "Freeway"),
        "minatar-straight": lambda: straight(FIRST, "minatar"),
        "atari-shares": lambda: shares("atari"),
        "atari-equal": lambda: equal_sizes("atari", CHOSEN, ["training_norm", "training_std_sum"]),
        "atari-straight": lambda: straight("atari"),
        "atari-mixtures": lambda: mixtures("atari", CHOSEN, ["training_norm", "training_std_sum"]),
        "atari-pilot": lambda: pilot("atari"),
        "atari-tuned": lambda: tuned("atari"),
        "atari-area": lambda: by_area("atari"),
        "atari-moments": lambda: moments("atari", MOMENTS),
        "atari-twice": lambda: twice("atari", EARLIER),
        "minatar-measures": lambda: measures("minatar", "minatar/seaquest"),
        "atari-measures": lambda: measures("atari", "seaquest"),
        "minatar-repeated": lambda: repeated("minatar", FIRST),
        "minatar-repeated-both": lambda: repeated_both("minatar", FIRST),
        "minatar-repeated-area": lambda: repeated_area("minatar", FIRST),
        "minatar-first-features": lambda: feature_differences(FIRST),
    }
    for study, baselines in BASELINES.items():
        made[f"{study}-kappas"] = lambda study=study: kappas(study)  # type: ignore[misc]
        made[f"{study}-scores"] = lambda study=study: scores(study)  # type: ignore[misc]
        made[f"{study}-growths"] = lambda study=study: growths(study)  # type: ignore[misc]
        made[f"{study}-feature-differences"] = lambda study=study: feature_differences(study)  # type: ignore[misc]
        made[f"{study}-features"] = lambda study=study: features(study)  # type: ignore[misc]
        made[f"{study}-figures"] = lambda study=study: figures(study)  # type: ignore[misc]
        made[f"{study}-feature-figures"] = lambda study=study: feature_figures(study)  # type: ignore[misc]
        for baseline in baselines:
            name = baseline.replace(" (", "-").replace(")", "")
            made[f"{study}-against-{name}"] = lambda study=study, baseline=baseline: against(study, baseline)  # type: ignore[misc]
    return made


def filled(pages: Sequence[str], made: Mapping[str, Callable[[], str]]) -> list[str]:
    """The pages with each table in its place; of one that is not yet run, a line says so.

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
        if text.startswith(AWAITED):
            print(f"results.py: {name}: {text.strip().strip('*')}", file=sys.stderr)
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
    written = [report / name for name in ("scores.csv", "features.csv")]
    if missing := [str(path) for path in (*written, *drawings.values()) if not path.exists()]:
        raise UserError(f"'{report}' is no whole report of {study}: it has no '{missing[0]}'")
    results = output_folder(RESULTS / study)
    before, after = (len(read(folder / "scores.csv")) for folder in (results, report))
    if after < before:
        print(f"results.py: the report of {study} has {after} runs, the results had {before}", file=sys.stderr)
    for path in written:
        replace_text(results / path.name, path.read_text(encoding="utf-8"))
    folder = output_folder(DOCS / "figures" / "results")
    for name, drawing in drawings.items():
        picture = Image.open(drawing).convert("RGB")
        with replacing(folder / f"{study}-{name}.png") as temporary:
            picture.quantize(256, dither=Image.Dither.NONE).save(temporary, "png", optimize=True)


def main(arguments: Sequence[str] = ()) -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for study in BASELINES:
        parser.add_argument(
            f"--{study}", type=Path, help="folder of a report of this study: its tables and figures are taken"
        )
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
