"""The tables of a report: every run's scores, and the games beside the paper's columns in Markdown and LaTeX."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gramian.progress import counted
from gramian.report import reference, statistics
from gramian.report.analysis import Analysis
from gramian.report.statistics import Array, Interval


@dataclass(frozen=True)
class Row:
    """One game of the table."""

    game: str
    reference: list[float]
    """In the order of `Table.references`; NaN where unknown."""
    means: list[float]
    """Mean final score of each arm; NaN where no run has finished."""
    spreads: list[float]
    """Standard deviation over seeds; NaN with fewer than two."""
    runs: list[int]
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
    def caption(self) -> str:
        """What the cells are."""
        text = f"{self.score[0].upper()}{self.score[1:]} ± standard deviation over seeds (number of seeds)."
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
        finals = [analysis.final[arm][:, at] for arm in analysis.arms]
        there = [scores[np.isfinite(scores)] for scores in finals]
        row = published[at]
        rows.append(
            Row(
                reference.title(game),
                [float(scores[at]) for scores in references.values()],
                [float(scores.mean()) if len(scores) else math.nan for scores in there],
                [float(scores.std(ddof=1)) if len(scores) > 1 else math.nan for scores in there],
                [len(scores) for scores in there],
                [math.nan if row is None else float(row[name]) for name in columns.values()],
            )
        )
    return Table(
        list(references), analysis.arms, list(columns), rows, _summary(analysis, columns), analysis.score_words
    )


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
    Mean return of the last 100 training episodes ± standard deviation over seeds (number of seeds).
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
    % Mean return of the last 100 training episodes ± standard deviation over seeds (number of seeds).
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
            *(score_text(*cell) for cell in zip(row.means, row.spreads, row.runs, strict=True)),
            *map(number, row.published),
        ]
        for row in table.rows
    ]
    return rows + [[name, *[""] * len(table.references), *own, *theirs] for name, own, theirs in table.summary]


def score_text(mean: float, spread: float, runs: int) -> str:
    """A cell of the table.

    Examples
    --------
    >>> score_text(1200.0, 34.0, 3), score_text(7.0, float("nan"), 1), score_text(float("nan"), float("nan"), 0)
    ('1,200 ± 34.0 (3)', '7.00 (1)', '–')
    """
    if not runs:
        return "–"
    return f"{number(mean)} ± {number(spread)} ({runs})" if runs > 1 else f"{number(mean)} (1)"


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
