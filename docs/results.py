"""Writes every number of the pages that comes from the tables in ``results``.

Run it as ``python -m docs.results`` after a result has changed. In a page a table or a number stands between two
comments, ``<!-- FUNCTION ARGUMENTS -->`` with a function of `MAKERS`, and ``<!-- end -->``; the text around them is not
touched.

Differences are of pairs of the same game and seed, with Student's 95 % intervals. Percentages are of what DQN learns,
its own value of the same measure above random play; their intervals have the error of that denominator too
(`statistics.ratios`). In a table of differences those are bold that differ from 0 after Holm's correction over it.
"""

import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.stats

from benchmarks.dopamine import first_curve, read_later, read_runs, shown
from docs import linear, speed
from gramian.core import statistics
from gramian.core.arms import CONTROL, kind_of, order_arms
from gramian.core.csv_tables import Row, read_rows
from gramian.core.errors import UserError
from gramian.core.files import replace_text
from gramian.core.statistics import Array, Interval, holm, log_ratios, ratios, student, welch
from gramian.core.text import number
from gramian.report import reference
from gramian.report.analysis import Options, analyse
from gramian.report.differences import ONLY_SHRINK, interpolated
from gramian.report.page.sections import mixture_words
from gramian.study.store import read_study

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PLACE = re.compile(r"<!-- (\w[^>]*?) -->(?:(?!<!-- ).)*?<!-- end -->", re.DOTALL)
"""Of a table or a number in a page."""

SECOND = "norm (0.1)"
"""Atari's second control: the norm penalty at a smaller κ, with features a little larger than those of `CHOSEN`."""
CHOSEN = "gram (0.082)"
"""The arm of Atari's study whose κ was chosen on MinAtar."""
ATARI = {CHOSEN: "`gram` κ=0.08", SECOND: "`norm` κ=0.1", CONTROL: "`norm` κ=0.5"}
"""What the page of Atari calls its arms."""
PENALISED = ("gram", "decor")
"""Arms that minimise the same number."""
HEADLINE = {"minatar": PENALISED, "minatar/first": PENALISED, "atari": (CHOSEN,)}
"""The arms of each study that the pages speak of, taken as one."""
SHRINKING = {"minatar": CONTROL, "atari": SECOND}
"""The control that their features are compared with, beside DQN."""
ARMS = {
    "`gram` and `decor`": PENALISED,
    f"`{CONTROL}`": (CONTROL,),
    "`norm`": ("norm",),
    "`gram-unbiased`": ("gram-unbiased",),
    "`cross`": ("cross",),
}
"""MinAtar's arms in the order of its page; two that minimise the same number are one."""
FIRST = "minatar/first"
"""An earlier set of the runs of MinAtar's study: the same games, arms and seeds, and fewer frames."""
MEASURED = {"final_score": "score", "auc": "area"}
SIZES = {"training_norm": "‖φ‖", "training_std_sum": "Σσ", "held_out_std_sum": "Σσ, held out"}
"""What an arm and a control may have in common: the norm of the features, or the sum of their standard deviations
(in training batches, or on held-out states of a random player)."""
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
    "mean_abs_correlation": "mean |correlation|",
    "dormant_share_0.025": "dormant share",
}
"""Of the features in play."""
GROWTHS = {"head_gradient": "log‖gradient of the head‖", "feature_norm": "log‖φ‖", "td_error": "log|TD error|"}


# ---- reading ---------------------------------------------------------------------------------------------------------


def rows_of(study: str, name: str) -> list[Row]:
    """A table of a study's results."""
    return read_rows(RESULTS / study / f"{name}.csv")


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

    def mean(self, arm: str) -> list[str]:
        """The mean of each game, with Student's intervals."""
        return [interval_text(student(self.values[arm][:, [at]])) for at in range(len(self.games))]

    def minus(self, arms: Sequence[str], other: str) -> Array:
        """The mean of some arms minus another ``[S, G]``, by pairs of the same game and seed."""
        return np.asarray(np.mean([self.values[arm] for arm in arms], axis=0) - self.values[other])


def scored(study: str, column: str = "final_score") -> Grid:
    """A column of the scores of a study."""
    return Grid(rows_of(study, "scores"), column)


def above_random(study: str, arm: str, column: str) -> Array:
    """What an arm has learned ``[S, G]``: its score, or its area, minus the score of random play."""
    return np.asarray(scored(study, column).values[arm] - scored(study, "random").values[arm])


def percent(study: str, differences: Array, column: str) -> Array:
    """Differences ``[S, G]`` in percent of what DQN learns, with the error of that: see `statistics.ratios`."""
    return 100.0 * ratios(differences, above_random(study, "dqn", column))


def gain(study: str, arms: Sequence[str], other: str, column: str) -> Array:
    """Arms taken as one minus another, in percent of what DQN learns ``[S, G]``."""
    return percent(study, scored(study, column).minus(arms, other), column)


def at_equal_size(study: str, arms: Sequence[str], size: str, column: str) -> tuple[Array, list[str]]:
    """Arms as one minus a norm penalty at each one's size ``[S, G]``; what that is made of, of the last arm.

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
    controls = [one for one in sizes.arms if kind_of(one) in ONLY_SHRINK]
    apart = [interpolated(found.values, sizes.values, arm, controls) for arm in arms]
    return np.mean([one for one, _ in apart], axis=0), [mixture_words(place) for place in apart[-1][1]]


def beyond(study: str, arms: Sequence[str], column: str) -> Array:
    """Arms as one minus a norm penalty at equal ‖φ‖, in percent of what DQN learns ``[S, G]``."""
    return percent(study, at_equal_size(study, arms, "training_norm", column)[0], column)


# ---- text ------------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown, the first column to the left and the others to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in (header, marks, *lines)
    )


def interval_text(found: Interval, *, sign: bool = False, digits: int = 3) -> str:
    """An estimate with its interval, where it has one."""
    value, low, high = (number(float(end), sign=sign and at == 0, digits=digits) for at, end in enumerate(found))
    return value if "–" in (low, high) else f"{value} [{low},\N{NO-BREAK SPACE}{high}]"


def difference(pairs: Array, digits: int = 2) -> str:
    """The mean of differences ``[S, G]`` with Student's interval."""
    return interval_text(student(pairs), sign=True, digits=digits)


def differences(header: Sequence[str], lines: Mapping[str, Sequence[Array]], digits: int = 2) -> str:
    """A table of differences ``[S, G]``, bold where they differ from 0 after Holm's correction over the whole table."""
    cells = [pairs for own in lines.values() for pairs in own]
    p_values = np.array([p_value(pairs) for pairs in cells])
    known = np.isfinite(p_values)
    p_values[known] = holm(p_values[known])
    bold = iter(p_values < 0.05)
    texts = {name: [(difference(pairs, digits), next(bold)) for pairs in own] for name, own in lines.items()}
    return table(
        header, [[name, *(f"**{text}**" if bold else text for text, bold in own)] for name, own in texts.items()]
    )


def p_value(pairs: Array) -> float:
    """Two-sided p of the mean of differences ``[S, G]`` by Student's test; NaN where it has no interval."""
    error, freedom = statistics.standard_error(pairs)
    if not error > 0:
        return math.nan if math.isnan(error) or not float(student(pairs).estimate) else 0.0
    return float(2.0 * scipy.stats.t.sf(abs(float(student(pairs).estimate)) / error, freedom))


def by_game(titles: Sequence[str], columns: Sequence[Array]) -> dict[str, list[Array]]:
    """The same columns of differences ``[S, G]`` in each game."""
    return {title: [one[:, [at]] for one in columns] for at, title in enumerate(titles)}


# ---- pages of results ------------------------------------------------------------------------------------------------


def steps(copies: str, question: str) -> str:
    """A difference of steps per episode on Mountain Car, of arms at their best."""
    (row,) = [
        row
        for row in rows_of("linear", "mountain_car_contrasts")
        if (row["copies"], row["question"]) == (copies, question)
    ]
    value, low, high = (f"{float(row[end]):,.0f}".replace("-", "−") for end in ("difference", "low", "high"))
    return f"{value if value.startswith('−') else f'+{value}'} [{low},\N{NO-BREAK SPACE}{high}]"


def overview() -> str:
    """The Gram penalty and a norm penalty against no penalty, and against each other."""
    questions = "what remains at matched step size", "norm penalty at matched step size", "beyond the norm penalty"
    lines = [
        [f"Mountain Car, linear, {name}: steps", *(steps(copies, question) for question in questions)]
        for copies, name in (("0", "no copies"), ("1", "copied features"))
    ]
    for title, study, arms in (
        ("MinAtar, 5 games × 10 seeds", "minatar", PENALISED),
        ("Atari, 4 games × 3 seeds", "atari", (CHOSEN,)),
    ):
        for column, what in MEASURED.items():
            lines.append(
                [
                    f"{title}: {what}, %",
                    difference(gain(study, arms, "dqn", column)),
                    difference(gain(study, [SHRINKING[study]], "dqn", column)),
                    difference(beyond(study, arms, column)),
                ]
            )
    return table(["setting", "gram minus no penalty", "norm minus no penalty", "gram minus norm"], lines)


def in_percent(pairs: Array, *, sign: bool = True) -> str:
    """A difference in percent, for running text."""
    value, _, interval = interval_text(student(pairs), sign=sign, digits=2).partition(" ")
    return f"{value}\N{NO-BREAK SPACE}% {interval}"


def over_dqn(study: str, column: str, *arms: str) -> str:
    """What the study's arms, or those named, gain over DQN: a number without plus, as in "gains 5 %"."""
    return in_percent(gain(study, arms or HEADLINE[study], "dqn", column), sign=False)


def beyond_norm(study: str, column: str, game: str = "") -> str:
    """What the study's arms have over a norm penalty at equal ‖φ‖, over all games or in one."""
    pairs = beyond(study, HEADLINE[study], column)
    games = scored(study).games
    return in_percent(pairs[:, [games.index(game)]] if game else pairs)


def most_beyond_norm(study: str, column: str) -> str:
    """The upper end of that interval."""
    return f"{number(float(student(beyond(study, HEADLINE[study], column)).high), digits=2)} points"


def tuning_scores(penalty: str, kappa: str = "") -> str:
    """Scores of both folds of MinAtar's tuning runs, from 0 for the worst arm to 1 for the best."""
    found = [row for fold in "ab" for row in rows_of("minatar", f"kappa-{fold}")]
    return " and ".join(
        number(float(row["score"]), digits=2) for row in found if (row["penalty"], row["kappa"]) == (penalty, kappa)
    )


def minatar() -> str:
    """Every arm over DQN, and beyond a norm penalty at its own feature norm; mean over games in percent."""
    lines = {}
    for name, arms in ARMS.items():
        apart = [gain("minatar", arms, "dqn", column) for column in MEASURED]
        shrinks = kind_of(arms[0]) == "norm"
        unknown = np.full_like(apart[0], np.nan)
        apart += [unknown if shrinks else beyond("minatar", arms, column) for column in MEASURED]
        lines[name] = apart
    header = ["arm", "score over DQN, %", "area over DQN, %", "score at equal ‖φ‖, %", "area at equal ‖φ‖, %"]
    return differences(header, lines)


def minatar_games() -> str:
    """`gram` and `decor` as one arm in each game, in its own points."""
    found = scored("minatar")
    columns = [found.minus(PENALISED, other) for other in ("dqn", CONTROL)]
    columns += [
        at_equal_size("minatar", PENALISED, size, "final_score")[0] for size in ("training_norm", "held_out_std_sum")
    ]
    header = ["game", "over DQN", f"over `{CONTROL}`", "at equal ‖φ‖", "at equal Σσ"]
    return differences(header, by_game(found.titles, columns))


def minatar_sets() -> str:
    """The same comparison in two sets of runs of the same seeds, and in their mean by seed; percent."""
    lines = {}
    for column, what in MEASURED.items():
        for name, made in (
            ("over DQN", lambda study, column=column: gain(study, PENALISED, "dqn", column)),
            ("at equal ‖φ‖", lambda study, column=column: beyond(study, PENALISED, column)),
        ):
            sets = [made(study) for study in (FIRST, "minatar")]
            lines[f"{what} {name}"] = [*sets, np.mean(sets, axis=0)]
    return differences(["`gram` and `decor`, %", "first set", "main set", "mean of both"], lines)


def atari(column: str) -> str:
    """`gram` at the κ that was chosen in each Atari game and over all, in percent of what DQN learns."""
    columns = [gain("atari", [CHOSEN], other, column) for other in ("dqn", CONTROL, SECOND)]
    columns.append(beyond("atari", [CHOSEN], column))
    lines = by_game(scored("atari").titles, columns) | {"all four": columns}
    over = [f"over {other}, %" for other in ("DQN", ATARI[CONTROL], ATARI[SECOND])]
    header = [f"{MEASURED[column]} of {ATARI[CHOSEN]}", *over, "at equal ‖φ‖, %"]
    return differences(header, lines)


def atari_ratio(column: str) -> str:
    """Geometric mean over the games of what `gram` learns in units of what DQN learns."""
    ends = student(log_ratios(above_random("atari", CHOSEN, column), above_random("atari", "dqn", column)))
    value, low, high = (f"{math.exp(float(end)):.2f}" for end in ends)
    return f"×{value} [{low}, {high}]"


def atari_share(column: str, arm: str) -> str:
    """Games in which an arm is above DQN, with the exact interval of the share."""
    wins = int((np.nanmean(scored("atari", column).minus([arm], "dqn"), axis=0) > 0).sum())
    games = len(scored("atari").games)
    low, high = statistics.clopper_pearson(wins, games)
    return f"{wins} of {games} games [{low:.2f}, {high:.2f}]"


def atari49(what: str = "games") -> str:
    """How much of the study of 49 games is done, and with ``games`` which games have all three arms."""
    found = read_study(RESULTS / "atari49" / "study").runs.filter(state="done")
    done = found.group_by("game").len().filter(len=3)["game"].to_list()
    count = f"{len(found)} of 147 runs, {len(done)} of 49 games"
    return count if what == "count" else f"{count}: {', '.join(sorted(map(reference.title, done)))}"


def decorrelation() -> str:
    """How much of the study of decorrelation is done."""
    found = read_study(RESULTS / "decorrelation" / "study").runs.filter(state="done")
    return f"{len(found)} of 1,450 runs"


def simulated(what: str) -> str:
    """What the simulation of the study expects of 49 games with one seed if the paper's effects hold."""
    rows = read_rows(RESULTS / "atari49" / "power.csv")
    (row,) = [row for row in rows if (row["scenario"], row["games"], row["seeds"]) == ("full", "49", "1")]
    if what == "power":
        return f"{float(row['sign_test']):.2f}"
    return "{:.2f} ({:.2f}–{:.2f})".format(*(float(row[end]) for end in ("share", "share_low", "share_high")))


def size_share(arm: str, other: str, study: str = "minatar") -> str:
    """‖φ‖ of an arm in units of another's, the least and the most of a study's games."""
    norms = Grid(rows_of(study, "features"), "training_norm").values
    shares = norms[arm].mean(axis=0) / norms[other].mean(axis=0)
    return f"{shares.min():.2f}–{shares.max():.2f}"


def feature_range(study: str, column: str, other: str) -> str:
    """A feature of the study's arm minus another's: the least and the most of the means of its games."""
    means = np.nanmean(Grid(rows_of(study, "features"), column).minus(HEADLINE[study][:1], other), axis=0)
    return " to ".join(number(float(end), sign=True, digits=2) for end in (means.min(), means.max()))


def feature_differences(study: str) -> str:
    """Features of the study's arm minus those of DQN and of a control in each game, by pairs of the same seed."""
    grids = [Grid(rows_of(study, "features"), column) for column in FEATURES]
    names = ATARI if study == "atari" else {}
    lines = {
        f"{title}, less {names.get(other, f'`{other}`')}": own
        for other in ("dqn", SHRINKING[study])
        for title, own in by_game(grids[0].titles, [grid.minus(HEADLINE[study][:1], other) for grid in grids]).items()
    }
    return differences(["game", *FEATURES.values()], lines)


# ---- the engine beside Dopamine's ------------------------------------------------------------------------------------


def dopamine() -> str:
    """Means over four million frames beside Dopamine's first runs."""
    lines = [
        [
            reference.title(row["game"]),
            *(f"{interval_of(row, *ends)} ({row[runs]})" for ends, runs in ((OURS, "runs"), (THEIRS, "dopamine_runs"))),
            interval_of(row, "difference", "difference_low", "difference_high", sign=True),
        ]
        for row in rows_of("dopamine", "dopamine-whole")
    ]
    return table(["game", "ours (runs)", "Dopamine's (runs)", "difference"], lines)


OURS = ("mean", "low", "high")
THEIRS = ("dopamine_mean", "dopamine_low", "dopamine_high")


def interval_of(row: Row, value: str, low: str, high: str, *, sign: bool = False) -> str:
    """Three cells of a row as an estimate with its interval."""
    return interval_text(Interval(*(np.asarray(float(row[end])) for end in (value, low, high))), sign=sign)


def millions_apart() -> str:
    """In how many of the millions of frames our runs differ from Dopamine's first ones."""
    rows = rows_of("dopamine", "dopamine")
    apart = [row for row in rows if float(row["difference_low"]) > 0 or float(row["difference_high"]) < 0]
    names = ", ".join(f"number {row['million_frames']} of {reference.title(row['game'])}" for row in apart)
    return f"{len(apart)} of {len(rows)} millions of frames ({names})"


def breakout() -> str:
    """Breakout's third million frames: Dopamine's two sets of runs, ours, and ours with actors that wait."""
    folder, third = RESULTS / "dopamine", 2
    published = first_curve("breakout")
    assert published is not None
    theirs = [curve.returns[:, third] for curve in (published, read_later(folder / "later-runs.csv")["breakout"])]

    def runs(*places: str) -> Array:
        return np.array(
            [
                run.iterations[third].mean_return
                for place in places
                for run in read_runs([folder / place])[0]
                if run.game == "breakout"
            ]
        )

    both, usual = np.concatenate(theirs), runs("", "again")
    sets = {
        "Dopamine's first": theirs[0],
        "Dopamine's later": theirs[1],
        "ours": usual,
        "ours, `--sequential`": runs("sequential"),
    }
    lines = [
        [
            name,
            str(len(values)),
            shown(*statistics.mean_interval(values)),
            shown(*welch(values, both)) if name.startswith("ours") else "–",
            shown(*welch(values, usual)) if "sequential" in name else "–",
        ]
        for name, values in sets.items()
    ]
    return table(["runs of Breakout", "how many", "third million", "less Dopamine's ten", "less our 20"], lines)


def copied(*names: str) -> str:
    """A table as a benchmark has written it, or two of the same columns as one."""
    first, *others = ((RESULTS / f"{name}.md").read_text(encoding="utf-8") for name in names)
    if not others:
        return first
    header, *lines = first.splitlines(keepends=True)
    more = [line for other in others for line in other.splitlines(keepends=True)[2:]]
    return header + lines[0] + "".join(sorted([*lines[1:], *more]))


# ---- full tables -----------------------------------------------------------------------------------------------------


def means(rows: Sequence[Row], columns: Mapping[str, str]) -> str:
    """Columns of a table of runs, of every arm in every game."""
    grids = {title: Grid(rows, column) for column, title in columns.items()}
    first = next(iter(grids.values()))
    own = {arm: [grid.mean(arm) for grid in grids.values()] for arm in first.arms}
    lines = [
        [f"{title}, `{arm}`", *(cells[at] for cells in own[arm])]
        for at, title in enumerate(first.titles)
        for arm in first.arms
    ]
    return table(["game, arm", *grids], lines)


def scores(study: str) -> str:
    """Score and area of every arm in every game."""
    return means(rows_of(study, "scores"), MEASURED)


def features(study: str) -> str:
    """The same of the features at the end of training."""
    return means(rows_of(study, "features"), FEATURES)


def growths(study: str) -> str:
    """The same of the growth of the head's gradient in training, and of its factors."""
    return means(rows_of(study, "features"), {f"growth_log_{column}": name for column, name in GROWTHS.items()})


def pilot(study: str) -> str:
    """The same of the feature norms in a pilot."""
    return means(rows_of(study, "pilot"), {"training_norm": "‖φ‖"})


def against(study: str, other: str, column: str) -> str:
    """Every arm minus another in each game, and over all in percent of what DQN learns."""
    found = scored(study, column)
    arms = [arm for arm in found.arms if arm != other]
    lines = by_game(found.titles, [found.minus([arm], other) for arm in arms])
    lines["all, %"] = [gain(study, [arm], other, column) for arm in arms]
    return differences([f"{MEASURED[column]} less `{other}`", *(f"`{arm}`" for arm in arms)], lines)


def equal_sizes(study: str, arm: str = "") -> str:
    """The study's arms, or one, minus a norm penalty at equal size of the features, and what that is made of."""
    arms = (arm,) if arm else HEADLINE[study]
    titles = scored(study).titles
    tables = []
    for size, words in SIZES.items():
        apart = {what: at_equal_size(study, arms, size, column) for column, what in MEASURED.items()}
        lines = by_game(titles, [pairs for pairs, _ in apart.values()])
        columns = [percent(study, pairs, column) for column, (pairs, _) in zip(MEASURED, apart.values(), strict=True)]
        lines["all, %"] = columns
        tables.append(differences([f"`{arms[0]}` at equal {words}", *MEASURED.values()], lines))
        made_of = apart["score"][1]
        tables.append(table(["game", "the control"], list(map(list, zip(titles, made_of, strict=True)))))
    return "\n".join(tables)


def measures(study: str, game: str) -> str:
    """The features on states of play by the trained agents of a game."""
    rows = [row | {"state": "done"} for row in rows_of(study, "measures") if row["game"] == game]
    grids = {
        name: Grid([row for row in rows if row["measure"] == measure], "value") for measure, name in MEASURES.items()
    }
    first = next(iter(grids.values()))
    return table(["arm", *grids], [[f"`{arm}`", *(grid.mean(arm)[0] for grid in grids.values())] for arm in first.arms])


def kappas(study: str) -> str:
    """The κ that every arm was run with in each game."""
    grid = Grid(rows_of(study, "features"), "kappa")
    return table(
        ["arm", *grid.titles],
        [[f"`{arm}`", *(f"{value:g}" for value in np.nanmax(grid.values[arm], axis=0))] for arm in grid.arms],
    )


def chosen(study: str) -> str:
    """The κ of each penalty that was tuned, and how sure the choice is."""
    lines = []
    for fold in "ab":
        rows = rows_of(study, f"kappa-{fold}")
        for penalty in dict.fromkeys(row["penalty"] for row in rows):
            own = [row for row in rows if row["penalty"] == penalty]
            best = next((row for row in own if row["chosen"] == "true"), own[0])
            score = interval_of(best, "score", "score_low", "score_high")
            if not best["kappa"]:
                lines.append([fold, f"`{penalty}`", "–", score, "–", "–"])
                continue
            within = [row["kappa"] for row in own if row["score"] and float(row["score"]) >= float(best["score_low"])]
            last = max(own, key=lambda row: float(row["kappa"]))
            at_last = interval_of(last, "score", "score_low", "score_high")
            others = ", ".join(f"{float(kappa):g}" for kappa in within)
            lines.append([fold, f"`{penalty}`", f"{float(best['kappa']):g}", score, others, at_last])
    return table(["fold", "penalty", "chosen κ", "score", "κ within its interval", "score at κ = 10.24"], lines)


def tuned(study: str) -> str:
    """Every κ that was tried in an exported study of few seeds: scores, and what is chosen by them."""
    sweep = analyse(read_study(RESULTS / study / "kappa"), Options(replicates=100)).sweep
    assert sweep is not None
    lines = [
        [
            f"`{penalty.name}`, κ = {one.kappa:g}",
            *(number(round(float(score.estimate), 9) + 0.0) for score in (one.score, one.auc)),
            number(one.norm),
            " and ".join(
                name for name, best in (("score", penalty.chosen), ("area", penalty.chosen_by_auc)) if best is one
            )
            or "–",
        ]
        for penalty in sweep.penalties
        for one in penalty.settings
    ]
    return table(["arm", "score", "score by area", "‖φ‖", "chosen by"], lines)


# ---- pages -----------------------------------------------------------------------------------------------------------


def filled(page: str) -> str:
    """A page with each table and number in its place.

    Raises
    ------
    UserError
        If a place names no function of `MAKERS`, or its block cannot be made from the results.
    """

    def fill(found: re.Match[str]) -> str:
        name, *arguments = shlex.split(found[1])
        if name not in MAKERS:
            raise UserError(f"a page has a place for '{name}'; there are {', '.join(MAKERS)}")
        try:
            text = MAKERS[name](*arguments)
        except KeyError as missing:
            raise UserError(f"'{found[1]}' cannot be made: a table of the results lacks {missing}") from missing
        block = f"\n\n{text}\n" if text.endswith("\n") else text
        return f"<!-- {found[1]} -->{block}<!-- end -->"

    return PLACE.sub(fill, page)


MAKERS: dict[str, Callable[..., str]] = {
    made.__name__: made
    for made in (
        *(overview, over_dqn, beyond_norm, most_beyond_norm, steps),
        *(minatar, minatar_games, minatar_sets, tuning_scores, size_share),
        *(atari, atari_ratio, atari_share, atari49, decorrelation, simulated),
        *(feature_range, feature_differences),
        *(dopamine, millions_apart, breakout, copied),
        *(scores, against, equal_sizes, features, measures, growths, kappas, chosen, tuned, pilot),
        *(speed.speed_cpu, speed.speed_h200, speed.speed_penalty, speed.speed_start),
    )
} | linear.MAKERS
"""What can stand in a page: a function of words that gives a table, which ends with a newline, or a number."""


def pages() -> dict[Path, str]:
    """The pages that have something from the results, as they should be."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))}
    return {path: filled(text) for path, text in sorted(texts.items()) if PLACE.search(text)}


def main() -> None:
    """Write every page."""
    for path, text in pages().items():
        replace_text(path, text)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        print(f"results.py: {error}", file=sys.stderr)
        sys.exit(2)
