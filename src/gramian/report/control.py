"""The section on what the arms have beyond the control."""

from html import escape
from pathlib import Path

from gramian.palette import kind_of
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.differences import difference_words, differences
from gramian.report.figures import CONTROL_FIGURE
from gramian.report.html import table
from gramian.report.section import picture
from gramian.report.small import COLORS
from gramian.report.statistics import Interval
from gramian.report.tables import number

_SHRINKS = (
    "{control} makes features small and does nothing else. What an arm has beyond it is what it has beyond shrinking "
    "the features, as far as those of both are equally large; what it has beyond {baseline} may be due to the "
    "shrinking alone."
)
_OTHER = "What an arm has beyond {control} is due to what {control} lacks, and not to what the two have in common."


def control_section(analysis: Analysis, figures: Path) -> str:
    """What the arms have beyond the control, with the figure of it; nothing where the study has no control.

    Parameters
    ----------
    analysis
        Of the study.
    figures
        Folder of the report's figures.
    """
    control = analysis.control
    if not control:
        return ""
    found = differences(analysis, control)
    said = (_SHRINKS if kind_of(control) == "norm" else _OTHER).format(
        control=control, baseline=analysis.options.baseline
    )
    html = f"<p>{escape(said)}</p>"
    drawn = figures / f"{CONTROL_FIGURE}.png"
    if drawn.is_file():
        html += picture(drawn, difference_words(found, analysis.options.baseline), COLORS)
    games = [at for at in range(len(analysis.games)) if found.seeds(at)]
    if not games:
        return html + f"<p>No game yet with finished runs of {escape(control)} and of another arm.</p>"
    headings = ["game", *found.pairs]
    rows = [
        [reference.title(analysis.games[at]), *(interval_words(found.in_game(arm, at)) for arm in found.pairs)]
        for at in games
    ]
    if found.common:
        rows.append(["together, %", *(interval_words(found.together(arm)) for arm in found.pairs)])
    return html + table(
        headings, rows, f"Final score less that of {control}, with Student's 95 % intervals", frame="sticky"
    )


def interval_words(interval: Interval) -> str:
    """A difference with its interval, where it has one; – where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> interval_words(Interval(np.array(1.5), np.array(-0.5), np.array(3.5)))
    '+1.50 [-0.50, +3.50]'
    """
    estimate, low, high = (float(end) for end in interval)
    if estimate != estimate:
        return "–"
    return _signed(estimate) if low != low else f"{_signed(estimate)} [{_signed(low)}, {_signed(high)}]"


def _signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)
