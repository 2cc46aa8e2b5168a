"""The tables of a report: every run's scores, and the games beside the paper's columns in Markdown and LaTeX."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.core import statistics
from gramian.core.progress import counted
from gramian.core.statistics import CONFIDENCE, Array, Count, Interval
from gramian.core.text import bracketed, score_text
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.representation.seeds import MOST_OF_A_RANGE

AGGREGATES: dict[str, tuple[str, statistics.Statistic]] = {
    "median": ("median", statistics.median_score),
    "iqm": ("IQM", statistics.interquartile_mean),
    "mean": ("mean", statistics.mean_score),
    "optimality_gap": ("optimality gap", statistics.optimality_gap),
}
"""Fields of an `Aggregate`: what they are called, and how they are made."""


class Score(NamedTuple):
    """Mean final score of an arm in a game; NaN where no run has finished, its ends with fewer than two."""

    mean: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Row:
    """One game of the table."""

    game: str
    reference: list[float]
    """In the order of `Table.references`; NaN where unknown."""
    scores: list[Score]
    """Of each arm."""
    published: list[float]
    """In the order of `Table.published`."""


@dataclass(frozen=True)
class Table:
    """The games of a study beside what others have published."""

    references: list[str]
    arms: list[str]
    published: list[str]
    """Headings of the columns of others; empty where no game of the study is in them."""
    rows: list[Row]
    summary: list[tuple[str, list[str], list[str]]]
    """Name, a text for each arm, a text for each published column."""
    score: str = "mean return of the last 100 training episodes"
    """What a score is."""

    @property
    def seeds(self) -> int:
        """Finished runs of every cell that has any; 0 where they differ, so that each has to say its own."""
        found = {score.runs for row in self.rows for score in row.scores if score.runs}
        return found.pop() if len(found) == 1 else 0

    @property
    def caption(self) -> str:
        """What the cells are."""
        seeds = counted(self.seeds, "seed") if self.seeds else "seeds (their number)"
        over = f" [{CONFIDENCE:.0%} bootstrap interval over seeds, which of {MOST_OF_A_RANGE} or fewer is their range]"
        text = f"{self.score[0].upper()}{self.score[1:]}, mean over {seeds}{'' if self.seeds == 1 else over}."
        if self.published and any(name.startswith("IQM") for name, *_ in self.summary):
            text += (
                " IQM and optimality gap of published columns are over means of games, those of arms over single runs."
            )
        return text

    @property
    def headings(self) -> list[str]:
        """Of all columns but the first."""
        return [*self.references, *self.arms, *self.published]

    def cell(self, score: Score) -> str:
        """Mean, interval, and the number of runs unless the caption has it."""
        if not score.runs:
            return "–"
        return bracketed(score[:3]) + ("" if self.seeds else f" ({score.runs})")

    def cells(self) -> list[list[str]]:
        """The texts of all rows: games, then the summary."""
        rows = [
            [row.game, *map(score_text, row.reference), *map(self.cell, row.scores), *map(score_text, row.published)]
            for row in self.rows
        ]
        return rows + [[name, *[""] * len(self.references), *own, *theirs] for name, own, theirs in self.summary]


def score_table(analysis: Analysis) -> Table:
    """Build the table: random and human scores, each arm's mean final score, the paper's columns and Dopamine's."""
    columns = {f"paper {reference.PAPER_LABELS[kind]}": name for kind, name in reference.PAPER_ARMS.items()}
    columns["Dopamine DQN 20M"] = reference.DOPAMINE_20M
    published = [reference.atari(game) or {} for game in analysis.games]
    if not any(published):
        columns = {}
    references = {"random": analysis.random, f"human ({analysis.options.human})": analysis.human}
    references = {name: scores for name, scores in references.items() if np.isfinite(scores).any()}
    rows = [
        Row(
            reference.title(game),
            [float(scores[at]) for scores in references.values()],
            [_score(analysis, arm, at) for arm in analysis.arms],
            [float(published[at].get(name, math.nan)) for name in columns.values()],
        )
        for at, game in enumerate(analysis.games)
    ]
    summary = _summary(analysis, list(columns.values()))
    return Table(list(references), analysis.arms, list(columns), rows, summary, analysis.score_words)


def _score(analysis: Analysis, arm: str, game: int) -> Score:
    mean, low, high = (float(end[game]) for end in analysis.final_intervals[arm])
    return Score(mean, low, high, int(np.isfinite(analysis.final[arm][:, game]).sum()))


def _summary(analysis: Analysis, published: list[str]) -> list[tuple[str, list[str], list[str]]]:
    def of_arms(found: dict[str, str]) -> list[str]:
        return [found.get(arm, "") for arm in analysis.arms]

    lines = []
    for name, (label, statistic) in AGGREGATES.items() if analysis.aggregates else ():
        own = {arm: interval_text(getattr(aggregate, name)) for arm, aggregate in analysis.aggregates.items()}
        theirs = [f"{float(statistic(_published_normalised(analysis, column))):.3f}" for column in published]
        lines.append((f"{label}, human-normalised, {counted(len(analysis.common), 'game')}", of_arms(own), theirs))
    paper = [_published_count(analysis, column) for column in published]
    counts = {"final": ("final score", paper), "auc": ("AUC", [""] * len(published))}
    for name, (label, theirs) in counts.items() if analysis.comparisons else ():
        own = {arm: count_text(getattr(comparison, name)) for arm, comparison in analysis.comparisons.items()}
        lines.append((f"games won-tied-lost against {analysis.options.baseline}, {label}", of_arms(own), theirs))
    return lines


def _published_normalised(analysis: Analysis, column: str) -> Array:
    """A published column over the games of the aggregates, ``[1, len(common)]``: one run, the mean of theirs."""
    rows = [reference.atari(analysis.games[at]) or {} for at in analysis.common]
    scores = [float(row.get(column, math.nan)) for row in rows]
    return statistics.human_normalised(scores, analysis.random[analysis.common], analysis.human[analysis.common])[None]


def _published_count(analysis: Analysis, column: str) -> str:
    """The paper's arms against the paper's DQN, over the games of the study; nothing for the columns of others."""
    base = reference.PAPER_ARMS["dqn"]
    if column == base or column not in reference.PAPER_ARMS.values():
        return ""
    rows = [row for row in map(reference.atari, analysis.games) if row is not None]
    return count_text(statistics.count_games([float(row[column]) for row in rows], [float(row[base]) for row in rows]))


def interval_text(interval: Interval) -> str:
    """A share with its interval, three places each; alone where there is none."""
    return bracketed(interval, "{:.3f}".format)


def games_text(count: Count) -> str:
    """The share of games won, ties left out, with its exact interval over games; a dash where there is none."""
    games = count.wins + count.losses
    if not games:
        return "–"
    return bracketed((count.wins / games, *statistics.clopper_pearson(count.wins, games)), "{:.2f}".format)


def count_text(count: Sequence[int]) -> str:
    """Wins, ties and losses; a dash where there is no game."""
    return "-".join(map(str, count)) if any(count) else "–"


def markdown(table: Table, cautions: Sequence[str]) -> str:
    """The table in Markdown, with the cautions below it."""

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(map(escape_markdown, cells)) + " |"

    lines = [row(["game", *table.headings]), "| --- |" + " --: |" * len(table.headings), *map(row, table.cells())]
    lines += ["", table.caption, "", *(f"- {escape_markdown(caution)}" for caution in cautions)]
    return "\n".join(lines).rstrip() + "\n"


def latex(table: Table, cautions: Sequence[str]) -> str:
    """The table as a LaTeX ``tabular`` (booktabs), with the cautions as comments below it."""

    def row(cells: Sequence[str]) -> str:
        return " & ".join(map(escape_latex, cells)) + r" \\"

    rows, games = [row(cells) for cells in table.cells()], len(table.rows)
    summary = [r"\midrule", *rows[games:]] if len(rows) > games else []
    lines = [r"\begin{tabular}{l" + "r" * len(table.headings) + "}", r"\toprule", row(["game", *table.headings])]
    lines += [r"\midrule", *rows[:games], *summary, r"\bottomrule", r"\end{tabular}", f"% {table.caption}"]
    return "\n".join([*lines, *("% " + re.sub(r"\s+", " ", caution) for caution in cautions)]) + "\n"


def escape_markdown(text: str) -> str:
    """Text that Markdown, and the HTML inside it, shows as it is."""
    plain = re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", plain)


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "–": "--", "κ": r"$\kappa$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(_LATEX.get(character, character) for character in re.sub(r"\s+", " ", text))
