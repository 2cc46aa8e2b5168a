"""The tables of a report: every run's scores, and the games beside the paper's columns in Markdown and LaTeX."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.core import statistics
from gramian.core.progress import counted
from gramian.core.statistics import CONFIDENCE, Array, Interval
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.representation.seeds import MOST_OF_A_RANGE


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
        text = f"{self.score[0].upper()}{self.score[1:]}, mean over {seeds}"
        if self.seeds != 1:
            text += (
                f" [{CONFIDENCE:.0%} bootstrap interval over seeds, which of {MOST_OF_A_RANGE} or fewer is their range]"
            )
        text += "."
        if self.published and any(name.startswith("IQM") for name, *_ in self.summary):
            text += (
                " IQM and optimality gap of published columns are over means of games, those of arms over single runs."
            )
        return text


def score_table(analysis: Analysis) -> Table:
    """Build the table: random and human scores, each arm's mean final score, the paper's columns and Dopamine's."""
    columns = {f"paper {reference.PAPER_LABELS[kind]}": name for kind, name in reference.PAPER_ARMS.items()}
    columns["Dopamine DQN 20M"] = reference.DOPAMINE_20M
    published = [reference.atari(game) for game in analysis.games]
    if not any(published):
        columns = {}
    references = {"random": analysis.random, f"human ({analysis.options.human})": analysis.human}
    references = {name: scores for name, scores in references.items() if np.isfinite(scores).any()}
    rows = []
    for at, game in enumerate(analysis.games):
        row = published[at]
        rows.append(
            Row(
                reference.title(game),
                [float(scores[at]) for scores in references.values()],
                [_score(analysis, arm, at) for arm in analysis.arms],
                [math.nan if row is None else float(row[name]) for name in columns.values()],
            )
        )
    return Table(
        list(references), analysis.arms, list(columns), rows, _summary(analysis, columns), analysis.score_words
    )


def _score(analysis: Analysis, arm: str, game: int) -> Score:
    mean, low, high = (float(end[game]) for end in analysis.final_intervals[arm])
    return Score(mean, low, high, int(np.isfinite(analysis.final[arm][:, game]).sum()))


def _summary(analysis: Analysis, published: dict[str, str]) -> list[tuple[str, list[str], list[str]]]:
    lines = []
    if analysis.aggregates:
        games = counted(len(analysis.common), "game")
        for name, label, statistic in (
            ("median", "median", statistics.median_score),
            ("iqm", "IQM", statistics.interquartile_mean),
            ("mean", "mean", statistics.mean_score),
            ("optimality_gap", "optimality gap", statistics.optimality_gap),
        ):
            own = [
                interval_text(getattr(analysis.aggregates[arm], name)) if arm in analysis.aggregates else ""
                for arm in analysis.arms
            ]
            theirs = [
                f"{float(statistic(_published_normalised(analysis, column))):.3f}" for column in published.values()
            ]
            lines.append((f"{label}, human-normalised, {games}", own, theirs))
    if analysis.comparisons:
        paper = [_published_count(analysis, column) for column in published.values()]
        for label, attribute, theirs in (("final score", "final", paper), ("AUC", "auc", [""] * len(published))):
            own = [
                count_text(getattr(analysis.comparisons[arm], attribute)) if arm in analysis.comparisons else ""
                for arm in analysis.arms
            ]
            lines.append((f"games won-tied-lost against {analysis.options.baseline}, {label}", own, theirs))
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


def number(value: float) -> str:
    """A score for a person: one decimal below 1,000, two below 10, none above; a dash where it is missing.

    Examples
    --------
    >>> number(12345.6), number(234.56), number(-20.7), number(0.443), number(float("nan"))
    ('12,346', '234.6', '-20.7', '0.44', '–')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 or value == 0 else f"{value:.2f}"


def interval_text(interval: Interval) -> str:
    """An estimate with its interval, or alone where there is none.

    Examples
    --------
    >>> interval_text(Interval(np.array(0.5), np.array(0.25), np.array(0.75)))
    '0.500 [0.250, 0.750]'
    >>> interval_text(Interval(np.array(0.5), np.array(np.nan), np.array(np.nan)))
    '0.500'
    """
    if not math.isfinite(float(interval.estimate)):
        return "–"
    if not math.isfinite(float(interval.low)):
        return f"{float(interval.estimate):.3f}"
    return f"{float(interval.estimate):.3f} [{float(interval.low):.3f}, {float(interval.high):.3f}]"


def count_text(count: Sequence[int]) -> str:
    """Wins, ties and losses; a dash where there is no game.

    Examples
    --------
    >>> count_text((39, 1, 9)), count_text((0, 0, 0))
    ('39-1-9', '–')
    """
    return "-".join(map(str, count)) if any(count) else "–"


def markdown(table: Table, cautions: Sequence[str]) -> str:
    r"""The table in Markdown, with the cautions below it.

    Examples
    --------
    >>> print(markdown(Table([], ["a|b"], [], [], []), ["Few seeds."]), end="")
    | game | a\|b |
    | --- | --: |
    <BLANKLINE>
    Mean return of the last 100 training episodes, mean over seeds (their number) [95% ...].
    <BLANKLINE>
    - Few seeds.
    """
    lines = [_markdown_row(["game", *_headings(table)], escape_markdown)]
    lines.append("| --- |" + " --: |" * len(_headings(table)))
    lines += [_markdown_row(cells, escape_markdown) for cells in _cells(table)]
    lines += ["", table.caption, ""]
    lines += [f"- {escape_markdown(caution)}" for caution in cautions]
    return "\n".join(lines).rstrip() + "\n"


def latex(table: Table, cautions: Sequence[str]) -> str:
    r"""The table as a LaTeX ``tabular`` (booktabs), with the cautions as comments above it.

    Examples
    --------
    >>> print(latex(Table([], ["a_b"], [], [], []), []), end="")
    \begin{tabular}{lr}
    \toprule
    game & a\_b \\
    \midrule
    \bottomrule
    \end{tabular}
    % Mean return of the last 100 training episodes, mean over seeds (their number) [95% ...].
    """
    headings = _headings(table)
    lines = [r"\begin{tabular}{l" + "r" * len(headings) + "}", r"\toprule"]
    lines += [_latex_row(["game", *headings]), r"\midrule"]
    games, summary = len(table.rows), _cells(table)
    lines += [_latex_row(cells) for cells in summary[:games]]
    if len(summary) > games:
        lines += [r"\midrule", *(_latex_row(cells) for cells in summary[games:])]
    lines += [r"\bottomrule", r"\end{tabular}", f"% {table.caption}"]
    lines += ["% " + re.sub(r"\s+", " ", caution) for caution in cautions]
    return "\n".join(lines) + "\n"


def _headings(table: Table) -> list[str]:
    return [*table.references, *table.arms, *table.published]


def _cells(table: Table) -> list[list[str]]:
    rows = [
        [
            row.game,
            *map(number, row.reference),
            *(score_text(score, counted_elsewhere=bool(table.seeds)) for score in row.scores),
            *map(number, row.published),
        ]
        for row in table.rows
    ]
    return rows + [[name, *[""] * len(table.references), *own, *theirs] for name, own, theirs in table.summary]


def score_text(score: Score, *, counted_elsewhere: bool = False) -> str:
    """A cell of the table: mean, interval, and the number of runs unless it stands elsewhere.

    Examples
    --------
    >>> score_text(Score(1200.0, 1150.0, 1260.0, 3)), score_text(Score(7.0, math.nan, math.nan, 1))
    ('1,200 [1,150, 1,260] (3)', '7.00 (1)')
    >>> score_text(Score(1200.0, 1150.0, 1260.0, 3), counted_elsewhere=True)
    '1,200 [1,150, 1,260]'
    """
    if not score.runs:
        return "–"
    return ends_text(score.mean, score.low, score.high) + ("" if counted_elsewhere else f" ({score.runs})")


def ends_text(estimate: float, low: float, high: float) -> str:
    """A score with the ends of its interval, or alone where there is none.

    Examples
    --------
    >>> ends_text(12.0, 9.5, 14.0), ends_text(12.0, math.nan, math.nan)
    ('12.0 [9.50, 14.0]', '12.0')
    """
    text = number(estimate)
    return f"{text} [{number(low)}, {number(high)}]" if math.isfinite(low) else text


def _markdown_row(cells: Sequence[str], escape: Callable[[str], str]) -> str:
    return "| " + " | ".join(map(escape, cells)) + " |"


def escape_markdown(text: str) -> str:
    r"""Text that Markdown, and the HTML inside it, shows as it is.

    Examples
    --------
    >>> escape_markdown("<b>|*x*")
    '&lt;b&gt;\\|\\*x\\*'
    """
    plain = re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", plain)


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "–": "--", "κ": r"$\kappa$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    r"""Text that LaTeX sets as it is.

    Examples
    --------
    >>> escape_latex("50 % of a_b")
    '50 \\% of a\\_b'
    """
    return "".join(_LATEX.get(character, character) for character in re.sub(r"\s+", " ", text))


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, cells)) + r" \\"
