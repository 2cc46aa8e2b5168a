"""Our DQN beside Dopamine's, game by game and million frames by million frames.

    gramian study run dopamine --out runs/dopamine
    python -m benchmarks.dopamine runs/dopamine --out FOLDER

Dopamine's numbers are its first public training curves (github.com/google/dopamine, DQN with Adam and the mean squared
error, 5 runs) in ``results/dopamine/first-curves.csv``; `benchmarks.parity` compares all agents with its newer ones. A
point is the mean raw return of the training episodes of one iteration. An iteration lasts until an episode ends after
250,000 agent steps or more, a million frames; that episode belongs to it. Ours are counted in the same way
(`by_iteration`); only the last iteration of a run ends a little early, without the episode that was not over.

Intervals are Student's, 95 %, of the mean over runs; differences are ours minus theirs, with Welch's interval; *ours
better* is the share of pairs of one run of each that ours wins (ties are halves). Where our mean lies outside the range
of their runs, the table says so. Runs that are not finished count as far as their iterations are complete.

``FOLDER`` gets ``dopamine-whole.csv`` (means over all millions that all runs have), ``dopamine.csv`` (each million),
``dopamine.md``, ``dopamine.png`` and ``dopamine-runs.csv``. A folder with a ``dopamine-runs.csv`` stands for the runs
in it. ``--replaced FILE`` names runs that longer ones of the same seeds have replaced: a further table has all of them.
``--later FILE`` has later curves of Dopamine's: a further table compares both sets and ours.
"""

import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy.integrate
import scipy.stats
from matplotlib.figure import Figure

from benchmarks.command_line import Parser, exit_code, new_folder, new_picture, table, write_csv
from gramian.core.csv_tables import read_rows
from gramian.core.errors import UserError
from gramian.core.files import replace_text, replacing
from gramian.core.progress import counted
from gramian.core.statistics import Array, mean_interval, welch
from gramian.report import reference
from gramian.study.store import Study, read_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ITERATION_FRAMES = 1_000_000
"""Of Dopamine: 250,000 agent steps of four frames."""
ARM, PRESET = "dqn", "dopamine"
FIRST_CURVES = Path(__file__).parents[1] / "results" / "dopamine" / "first-curves.csv"
FILES = ("dopamine.csv", "dopamine-runs.csv", "dopamine.md", "dopamine.png", "dopamine-whole.csv")
"""Table by million, runs, page, figure, and table of whole curves."""
SIGNIFICANT = 0.05
OURS, THEIRS, LATER = "#0072b2", "#5f6670", "#8a6d00"
"""Colours of the figure."""


@dataclass(frozen=True)
class Iteration:
    """One iteration of one of our runs."""

    million_frames: int
    """Its number, from 1."""
    end_frames: int
    """Where its last episode ended."""
    episodes: int
    mean_return: float


@dataclass(frozen=True)
class Run:
    """One of our runs."""

    game: str
    seed: int
    state: str
    commit: str
    """Of the package; empty where it is not known."""
    device: str
    iterations: list[Iteration]


RUN_COLUMNS = [field.name for field in fields(Run) if field.name != "iterations"]
ITERATION_COLUMNS = [field.name for field in fields(Iteration)]
"""Of ``dopamine-runs.csv``, one after the other."""


@dataclass(frozen=True)
class Row:
    """One million frames of one game, or all until then."""

    game: str
    million_frames: int
    """Its end."""
    runs: int
    mean: float
    low: float
    high: float
    dopamine_runs: int
    dopamine_mean: float
    dopamine_low: float
    dopamine_high: float
    dopamine_least: float
    dopamine_most: float
    difference: float
    difference_low: float
    difference_high: float
    improvement: float
    """Share of pairs of one of our runs and one of theirs that ours wins."""
    outside: Literal["", "below", "above"]
    """Where our mean lies, if not within the range of their runs."""


@cache
def _first_curves() -> dict[str, reference.Curve]:
    return reference.curves(pl.read_csv(FIRST_CURVES))


def first_curve(game: str) -> reference.Curve | None:
    """Dopamine's first public curve of a game; None where there is none."""
    return _first_curves().get(reference.key(game))


def by_iteration(frames: Array, returns: Array, *, stopped: bool) -> list[Iteration]:
    """Mean returns of a run's episodes in iterations like Dopamine's.

    Parameters
    ----------
    frames, returns
        Of each episode ``[n]``: the run's frames when it ended, which never go down, and its return.
    stopped
        Whether the run has come to its end: its last iteration then counts as far as it went.

    Examples
    --------
    >>> ends, returns = np.array([400_000, 1_100_000, 2_000_000, 2_150_000]), np.array([1.0, 3.0, 4.0, 6.0])
    >>> [(one.end_frames, one.mean_return) for one in by_iteration(ends, returns, stopped=False)]
    [(1100000, 2.0), (2150000, 5.0)]
    """
    found: list[Iteration] = []
    first = begin = 0
    for after, end in enumerate(frames.tolist(), start=1):
        last = after == len(frames)
        complete = end - begin >= ITERATION_FRAMES and (last or frames[after] > end)
        if complete or (last and stopped):
            own = returns[first:after]
            found.append(Iteration(len(found) + 1, int(end), len(own), float(own.mean())))
            first, begin = after, end
    return found


def read_runs(folders: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Our runs of DQN in some folders, and what else is there, in words.

    Raises
    ------
    UserError
        If a folder has no runs, or if a run is there twice.
    """
    notes: list[str] = []
    found: dict[tuple[str, int], tuple[Run, Path]] = {}
    for folder in folders:
        if (folder / FILES[1]).exists():
            runs = _written(folder / FILES[1])
        else:
            study = read_study(folder)
            own = study.runs.filter(pl.col("arm") == ARM, pl.col("preset") == PRESET)
            runs = [_run(study, row) for row in own.iter_rows(named=True)]
            if others := study.runs.height - own.height:
                are = "is" if others == 1 else "are"
                notes.append(
                    f"Left aside: {counted(others, 'run')} in `{folder.name}` that {are} not `{ARM}` with preset "
                    f"`{PRESET}`."
                )
        for run in runs:
            other, place = found.setdefault((run.game, run.seed), (run, folder))
            if other is not run:
                raise UserError(f"{run.game}, seed {run.seed} is in '{place}' and in '{folder}'; leave one")
    return [found[cell][0] for cell in sorted(found)], notes


def _written(path: Path) -> list[Run]:
    """The runs that `write` has written.

    Raises
    ------
    UserError
        If the file cannot be read, if a line is no iteration of a run, or if a run lacks one or has one twice.
    """
    runs: dict[tuple[str, int], Run] = {}
    for line, row in enumerate(read_rows(path), start=2):
        try:
            million, end, episodes = (int(row[name]) for name in ITERATION_COLUMNS[:-1])
            one = Iteration(million, end, episodes, float(row["mean_return"]))
            run = Run(row["game"], int(row["seed"]), row["state"], row["commit"], row["device"], [])
        except (KeyError, ValueError) as error:
            raise UserError(f"line {line} of '{path}' is no iteration of a run: {error}") from error
        if not math.isfinite(one.mean_return):
            raise UserError(f"line {line} of '{path}' has mean_return {one.mean_return}; it must be finite")
        runs.setdefault((run.game, run.seed), run).iterations.append(one)
    if not runs:
        raise UserError(f"'{path}' has no runs; make it again from their folders, or take it away")
    for run in runs.values():
        run.iterations.sort(key=lambda one: one.million_frames)
        if [one.million_frames for one in run.iterations] != list(range(1, len(run.iterations) + 1)):
            raise UserError(f"'{path}' has not each million_frames of {run.game}, seed {run.seed} from 1 on once")
    return list(runs.values())


def _run(study: Study, row: dict[str, Any]) -> Run:
    own = study.episodes.filter(
        pl.col("run") == row["run"], pl.col("game") == row["game"], pl.col("seed") == row["seed"]
    ).sort("frames", maintain_order=True)
    done = row["state"] == "done"
    iterations = by_iteration(own["frames"].to_numpy(), own["return"].to_numpy(), stopped=done)
    record = (study.provenance.get(row["run"]) or [{}])[-1]
    return Run(
        row["game"],
        row["seed"],
        row["state"],
        (record.get("git") or {}).get("commit", ""),
        record.get("hardware", {}).get("device", ""),
        iterations[: (row["frames_target"] or 0) // ITERATION_FRAMES],
    )


def cells(runs: Iterable[Run]) -> Iterator[tuple[str, int, Array, Array]]:
    """Every game that Dopamine has a curve of, as far as our runs go: game, million, our returns and theirs."""
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        for one in run.iterations:
            found.setdefault((run.game, one.million_frames), []).append(one.mean_return)
    for (game, million), means in sorted(found.items()):
        published = first_curve(game)
        if published is None or million > published.returns.shape[1]:
            continue
        theirs = published.returns[:, million - 1]
        theirs = theirs[np.isfinite(theirs)]
        if len(theirs):
            yield game, million, np.array(means), theirs


def compare(runs: Iterable[Run]) -> list[Row]:
    """A row for each of the `cells`."""
    return [row_of(*cell) for cell in cells(runs)]


def spreads(runs: Iterable[Run]) -> list[str]:
    """In a sentence: where the variances of our runs and theirs differ, by an F-test and by Levene's about the median.

    No sentence without a million in which both have two runs and some variance.
    """
    wider = count = 0
    places: tuple[list[str], list[str]] = ([], [])
    for game, million, ours, theirs in cells(runs):
        if min(len(ours), len(theirs)) < 2 or min(np.ptp(ours), np.ptp(theirs)) == 0:
            continue
        ratio, freedom = ours.var(ddof=1) / theirs.var(ddof=1), (len(ours) - 1, len(theirs) - 1)
        p_f = 2 * min(scipy.stats.f.cdf(ratio, *freedom), scipy.stats.f.sf(ratio, *freedom))
        p_levene = scipy.stats.levene(ours, theirs, center="median").pvalue
        count, wider = count + 1, wider + (ratio > 1)
        for named, p in zip(places, (p_f, p_levene), strict=True):
            if p < SIGNIFICANT:
                named.append(f"{reference.title(game)} at {million} ({p:.2g})")
    if not count:
        return []
    by_f, by_levene = (", ".join(named) or "none" for named in places)
    return [
        f"Our runs are further apart than Dopamine's in {wider} of {counted(count, 'million')}. By an F-test of the "
        f"variances p is below {SIGNIFICANT} in {by_f}; by Levene's test about the median in {by_levene}."
    ]


def whole_curves(runs: Sequence[Run]) -> list[Row]:
    """Every game that Dopamine has a curve of: the mean of each run over the iterations that all of ours have."""
    rows = []
    for game in sorted({run.game for run in runs}):
        own = [run.iterations for run in runs if run.game == game]
        published = first_curve(game)
        if published is None:
            continue
        millions = min(published.returns.shape[1], *map(len, own))
        theirs = published.returns[:, :millions]
        theirs = theirs[np.isfinite(theirs).all(axis=1)].mean(axis=1) if millions else theirs[:0]
        if len(theirs):
            ours = np.array([np.mean([one.mean_return for one in curve[:millions]]) for curve in own])
            rows.append(row_of(game, millions, ours, theirs))
    return rows


def row_of(game: str, million_frames: int, ours: Array, theirs: Array) -> Row:
    """One line of the table: means of our runs and of theirs."""
    least, most, mean = theirs.min(), theirs.max(), ours.mean()
    won = 0.5 * (np.sign(ours[:, None] - theirs[None]) + 1.0)
    return Row(
        game,
        million_frames,
        len(ours),
        *mean_interval(ours),
        len(theirs),
        *mean_interval(theirs),
        float(least),
        float(most),
        *welch(ours, theirs),
        float(won.mean()),
        "below" if mean < least else "above" if mean > most else "",
    )


def number(value: float) -> str:
    """Three significant digits, a true minus.

    Examples
    --------
    >>> [number(value) for value in (1234.5, -20.71, 0.456, -0.001, math.inf)]
    ['1,234', '−20.7', '0.46', '0.00', '–']
    """
    if not math.isfinite(value):
        return "–"
    digits = min(2, max(0, 2 - math.floor(math.log10(abs(value))))) if value else 0
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def shown(value: float, low: float, high: float) -> str:
    """An estimate with its interval."""
    return f"{number(value)} [{number(low)}, {number(high)}]"


def with_replaced(runs: Sequence[Run], replaced: Sequence[Run]) -> list[Row]:
    """The `whole_curves` of all runs that are kept, of the games in which some have been replaced."""
    games = {run.game for run in replaced}
    if twice := [run for run in replaced if run in runs]:
        raise UserError(
            f"{twice[0].game}, seed {twice[0].seed} has been replaced by itself; name runs that are not there"
        )
    return whole_curves([run for run in (*runs, *replaced) if run.game in games])


class Between(NamedTuple):
    """One million frames of one game: Dopamine's later runs beside the first, ours beside the later, and beside all."""

    again: Row
    own: Row
    both: Row


def read_later(path: Path) -> dict[str, reference.Curve]:
    """Curves of Dopamine's that were made later, with the columns game, million_frames, run1, run2 and so on.

    Raises
    ------
    UserError
        If the file cannot be read, a return is no finite number, or a game lacks a million or has one twice.
    """
    try:
        found = pl.DataFrame(read_rows(path), infer_schema_length=None)
        returns = found.select(pl.col(r"^run\d+$").cast(pl.Float64))
        curves = found.select("game", pl.col("million_frames").cast(pl.Int64)).hstack(returns)
    except pl.exceptions.PolarsError as error:
        raise UserError(f"'{path}' is no table of curves: {str(error).splitlines()[0]}") from error
    if not returns.width or not np.isfinite(returns.to_numpy()).all():
        raise UserError(f"'{path}' must have a finite return in every column run1, run2 and so on")
    for (game,), rows in curves.group_by(pl.col("game").map_elements(reference.key, return_dtype=pl.String)):
        if rows["million_frames"].sort().to_list() != list(range(1, rows.height + 1)):
            raise UserError(f"'{path}' has not each million_frames of {game} from 1 on once; a curve has no gap")
    return reference.curves(curves)


def between(runs: Iterable[Run], later: dict[str, reference.Curve]) -> list[Between]:
    """A line for each of the `cells` that the later set has too.

    Raises
    ------
    UserError
        If it has none of them.
    """
    lines = []
    for game, million, ours, first in cells(runs):
        curve = later.get(reference.key(game))
        if curve is not None and million <= curve.returns.shape[1]:
            again = curve.returns[:, million - 1]
            beside = (again, first), (ours, again), (ours, np.concatenate([first, again]))
            lines.append(Between(*(row_of(game, million, *pair) for pair in beside)))
    if later and not lines:
        raise UserError(f"none of our games has later curves; those are of {', '.join(sorted(later))}")
    return lines


def markdown(
    rows: Sequence[Row],
    whole: Sequence[Row],
    notes: Sequence[str] = (),
    everything: Sequence[Row] = (),
    sets: Sequence[Between] = (),
) -> str:
    """The tables, and sentences below them: whole curves, and a line for each million frames of each game.

    ``everything`` are the rows of `with_replaced`, ``sets`` the lines of `between`; each is a table of its own.
    """
    parts = [_table(rows)]
    said = [outside([(f"{reference.title(row.game)} at {row.million_frames}", row) for row in rows], "million"), *notes]
    if whole:
        parts.insert(0, _table(whole, since_first=True))
        said.insert(0, outside([(reference.title(row.game), row) for row in whole], "whole curve"))
    parts.append("".join(f"- {note}\n" for note in said))
    if everything:
        parts.append("Together with the runs that they have replaced, over the millions that all of them have:\n")
        parts.append(_table(everything, since_first=True))
    if sets:
        parts += _of_two_sets(sets)
    return "\n".join(parts)


def _table(rows: Sequence[Row], *, since_first: bool = False) -> str:
    """A line for each row, of one million or of all since the first."""
    lines = [
        [
            reference.title(row.game),
            f"1–{row.million_frames}" if since_first and row.million_frames > 1 else str(row.million_frames),
            f"{shown(row.mean, row.low, row.high)} ({row.runs})",
            f"{shown(row.dopamine_mean, row.dopamine_low, row.dopamine_high)} ({row.dopamine_runs})",
            f"{number(row.dopamine_least)} to {number(row.dopamine_most)}",
            _difference(row),
            f"{row.improvement:.0%}",
            row.outside,
        ]
        for row in rows
    ]
    columns = ["million frames", "ours (runs)", "Dopamine's (runs)", "their range", "difference", "ours better"]
    return table(["game", *columns, "outside"], lines).replace("---: |\n", "--- |\n", 1)


def _of_two_sets(sets: Sequence[Between]) -> list[str]:
    """Dopamine's two sets and ours: what the table is, the table, and in how many millions means are outside."""
    lines = [
        [
            reference.title(one.own.game),
            str(one.own.million_frames),
            f"{number(one.own.mean)} ({one.own.runs})",
            _theirs(one.again),
            _theirs(one.own),
            *map(_difference, (one.again, one.own, one.both)),
        ]
        for one in sets
    ]
    named = [(f"{reference.title(one.again.game)} at {one.again.million_frames}", one) for one in sets]
    said = [
        outside([(name, one.again) for name, one in named], "million", "The later mean", "the first runs"),
        outside([(name, one.own) for name, one in named], "million", "Our mean", "the later runs"),
        outside([(name, one.both) for name, one in named], "million", "Our mean", "both together"),
    ]
    columns = ["million frames", "ours (runs)", "first", "later", "later − first", "ours − later", "ours − both"]
    return [
        "Dopamine's first set of runs, which the tables above have, a later one, and ours: means, and their ranges:\n",
        table(["game", *columns], lines),
        "".join(f"- {sentence}\n" for sentence in said),
    ]


def _theirs(row: Row) -> str:
    """The mean of what a row lays ours beside, and its range."""
    return f"{number(row.dopamine_mean)}, {number(row.dopamine_least)} to {number(row.dopamine_most)}"


def differs(row: Row) -> bool:
    """Whether the difference is significant: its interval excludes 0."""
    return row.difference_low > 0 or row.difference_high < 0


def _difference(row: Row) -> str:
    return told(row.difference, row.difference_low, row.difference_high)


def told(value: float, low: float, high: float) -> str:
    """A difference with its interval; bold where it is significant.

    Examples
    --------
    >>> told(1.0, 0.5, 1.5), told(1.0, -0.5, 2.5)
    ('**1.00 [0.50, 1.50]**', '1.00 [−0.50, 2.50]')
    """
    text = shown(value, low, high)
    return f"**{text}**" if low > 0 or high < 0 else text


def chance_outside(ours: int, theirs: int) -> float:
    """How often the mean of so many numbers lies outside the range of so many others, all of one normal distribution.

    Examples
    --------
    >>> round(chance_outside(5, 5), 3), round(chance_outside(1, 2), 3)  # the second by symmetry: 2 / 3
    (0.138, 0.667)
    """
    mean = scipy.stats.norm(scale=1 / math.sqrt(ours))
    below, _ = scipy.integrate.quad(lambda x: mean.pdf(x) * scipy.stats.norm.sf(x) ** theirs, -8.0, 8.0)
    return 2 * float(below)


def outside(rows: Sequence[tuple[str, Row]], kind: str, mean: str = "Our mean", theirs: str = "Dopamine's runs") -> str:
    """In a sentence: where our mean lies outside the range of Dopamine's runs, and how often it would by chance.

    ``rows`` have a name each, ``kind`` is what one of them is called, ``mean`` and ``theirs`` are what is compared.
    """
    places = [f"{name} ({row.outside})" for name, row in rows if row.outside]
    expected = sum(chance_outside(row.runs, row.dopamine_runs) for _, row in rows)
    chance = (
        f"of normally distributed runs with equal means and spreads it would be outside in {expected:.1f} on average"
    )
    if not places:
        where = f"every {kind}" if len(rows) > 1 else f"the one {kind}"
        return f"{mean} is within the range of {theirs} in {where}; {chance}."
    return (
        f"{mean} is outside the range of {theirs} in {len(places)} of {counted(len(rows), kind)}: "
        f"{', '.join(places)}; {chance}."
    )


def shortcomings(runs: Sequence[Run], rows: Sequence[Row]) -> list[str]:
    """What is missing, a sentence each: runs that did not come to their end, and games without a public curve."""
    short: dict[tuple[str, str, int], list[str]] = {}
    for run in runs:
        if run.state != "done":
            short.setdefault((run.game, run.state, len(run.iterations)), []).append(str(run.seed))
    told = [
        f"{reference.title(game)}, seed{'s'[: len(seeds) > 1]} {', '.join(seeds)}: {state}; "
        f"{'count' if len(seeds) > 1 else 'counts'} for {millions} million frames."
        for (game, state, millions), seeds in short.items()
    ]
    without = sorted({run.game for run in runs if first_curve(run.game) is None})
    if without:
        told.append(f"Without a public curve: {', '.join(map(reference.title, without))}.")
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.game] = max(row.runs, counts.get(row.game, 0))
    usual = statistics.mode(sorted(counts.values(), reverse=True)) if counts else 0  # of equally many, the larger
    told += [
        f"{reference.title(game)}: {counted(count, 'run')}, where other games have {usual}."
        for game, count in counts.items()
        if count != usual
    ]
    return told


def draw(rows: Sequence[Row], runs: Sequence[Run], later: dict[str, reference.Curve] | None = None) -> Figure:
    """Both curves of every game with intervals, the single runs thin behind them; dotted, the mean of the later set."""
    games = list(dict.fromkeys(row.game for row in rows))
    columns = min(3, len(games))
    lines = -(-len(games) // columns)
    figure = Figure(figsize=(max(4.8, 3.4 * columns), 2.6 * lines + 0.5), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False)
    figure.supxlabel("million frames", fontsize=8)
    figure.supylabel("mean training return", fontsize=8)
    for panel, game in zip(panels.flat, games, strict=False):
        own = [row for row in rows if row.game == game]
        _draw_game(panel, own, [run for run in runs if run.game == game], (later or {}).get(reference.key(game)))
    for panel in panels.flat[len(games) :]:
        panel.set_visible(False)
    keys = {
        label: line for panel in panels.flat for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(keys.values(), keys, loc="outside upper center", ncols=len(keys), fontsize=8, frameon=False)
    return figure


def _draw_game(panel: "Axes", rows: Sequence[Row], runs: Sequence[Run], later: reference.Curve | None) -> None:
    at = np.array([row.million_frames for row in rows])
    published = first_curve(rows[0].game)
    assert published is not None  # a row has one
    own = [[one.mean_return for one in run.iterations if one.million_frames <= at[-1]] for run in runs]
    for color, curves in ((THEIRS, [curve[at - 1] for curve in published.returns]), (OURS, own)):
        for curve in curves:
            panel.plot(at[: len(curve)], curve, color=color, linewidth=0.5, alpha=0.6)
    panel.margins(y=0.25)
    panel.set_ylim(panel.get_ylim())  # by the runs: the interval of two of them may be ten times as wide
    for label, style, color, values in (
        ("Dopamine's", "s--", THEIRS, [(row.dopamine_mean, row.dopamine_low, row.dopamine_high) for row in rows]),
        ("ours", "o-", OURS, [(row.mean, row.low, row.high) for row in rows]),
    ):
        mean, low, high = (np.array(part) for part in zip(*values, strict=True))
        known = np.isfinite(low)
        panel.plot(at, mean, style, color=color, markersize=4, label=label)
        panel.fill_between(at[known], low[known], high[known], color=color, alpha=0.18, linewidth=0)
    if later is not None:
        mean = later.returns.mean(axis=0)[: len(at)]
        panel.plot(at[: len(mean)], mean, "x:", color=LATER, markersize=4, label="Dopamine's, later")
    panel.set_title(reference.title(rows[0].game), fontsize=9)
    panel.set_xticks(at if len(at) <= 6 else at[:: -(-len(at) // 6)])
    panel.tick_params(labelsize=7)
    panel.grid(alpha=0.25, linewidth=0.5)


def write(
    rows: Sequence[Row],
    whole: Sequence[Row],
    runs: Sequence[Run],
    page: str,
    out: Path,
    figure: Path | None = None,
    later: dict[str, reference.Curve] | None = None,
) -> None:
    """Write the tables as CSV and Markdown, our runs one by one, and the figure."""
    by_million, single_runs, text, picture, curves = (out / name for name in FILES)
    for path, lines in ((by_million, rows), (curves, whole)):
        write_csv(path, [field.name for field in fields(Row)], map(astuple, lines))
    write_csv(
        single_runs,
        [*RUN_COLUMNS, *ITERATION_COLUMNS],
        [(*(getattr(run, name) for name in RUN_COLUMNS), *astuple(one)) for run in runs for one in run.iterations],
    )
    replace_text(text, page)
    with replacing(figure or picture) as temporary:
        draw(rows, runs, later).savefig(temporary, dpi=130, format="png")


def compared(arguments: Sequence[str] | None) -> None:
    """Print the tables, and write them where a folder is named."""
    parser = Parser("dopamine", __doc__)
    add = parser.add_argument
    add("studies", nargs="+", type=Path, metavar="STUDY", help="folders of the study dopamine")
    add("--out", type=new_folder, metavar="FOLDER", help="write tables, runs and figure into it")
    add("--figure", type=new_picture, metavar="PNG", help="the figure's place; default: FOLDER/dopamine.png")
    add("--replaced", type=Path, metavar="CSV", help="runs that these have replaced, as dopamine-runs.csv has them")
    add("--later", type=Path, metavar="CSV", help="later curves: game, million_frames, run1, run2 and so on")
    options = parser.parse_args(arguments)
    if options.figure and not options.out:
        raise UserError("--figure is written with the tables; name their folder by --out")
    runs, notes = read_runs(options.studies)
    rows = compare(runs)
    if not rows:
        places = ", ".join(f"'{folder}'" for folder in options.studies)
        raise UserError(
            f"no run of {ARM} with preset {PRESET} below {places} has completed a million frames of a game that has a "
            "public curve"
        )
    whole = whole_curves(runs)
    replaced = _written(options.replaced) if options.replaced else []
    said = [*spreads(runs), *shortcomings(runs, rows), *notes]
    later = read_later(options.later) if options.later else {}
    page = markdown(rows, whole, said, with_replaced(runs, replaced), between(runs, later))
    print(page, end="")
    if options.out:
        write(rows, whole, runs, page, options.out, options.figure, later)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("dopamine", lambda: compared(arguments))


if __name__ == "__main__":
    sys.exit(main())
