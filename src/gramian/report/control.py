"""The sections on what the arms have beyond the control, and beyond a control at their own feature norm."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np

from gramian.core.arms import kind_of
from gramian.core.statistics import Interval
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.differences import Differences, difference_words, differences
from gramian.report.equal_norm import AGAINST, EQUAL, Between, EqualNorm
from gramian.report.figures import CONTROL_FIGURE, EQUAL_FIGURE
from gramian.report.html import table
from gramian.report.section import picture
from gramian.report.small import COLORS
from gramian.report.tables import number

_SHRINKS = (
    "{control} makes features small and does nothing else. What an arm has beyond it is what it has beyond shrinking "
    "the features, as far as those of both are equally large; what it has beyond {baseline} may be due to the "
    "shrinking alone."
)
_INTERPOLATED = (
    "Arms seldom leave features of exactly the same size. The losses of {controls} differ by the shrinking term alone. "
    "Between two of them that are next to each other the score is taken to be linear in log ‖φ‖, the mean over the "
    "last quarter of training, so that every arm has a control at its own norm: in each game the same mixture of two "
    "runs of the same seed. A dash stands where the arm's features are smaller, or larger, than those of all controls, "
    "by more than {equal:.0f} %, or where runs of the same seed are missing. The intervals take the norms as they are."
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
        html += picture(drawn, difference_words(found, analysis.options.baseline, together=bool(found.common)), COLORS)
    rows = difference_rows(analysis, found, {arm: found.together(arm) for arm in found.pairs} if found.common else {})
    if not rows:
        return html + f"<p>No game yet with finished runs of {escape(control)} and of another arm.</p>"
    caption = f"Final score less that of {control}, with Student's 95 % intervals"
    return html + table(["game", *found.pairs], rows, caption, frame="sticky")


def equal_norm_section(analysis: Analysis, found: EqualNorm | None, figures: Path) -> str:
    """What the arms have beyond a control at their own norm, with the figure of it; nothing where there is none.

    Parameters
    ----------
    analysis
        Of the study.
    found
        Its arms beside such controls.
    figures
        Folder of the report's figures.
    """
    if found is None:
        return ""
    *first, last = found.controls
    said = _INTERPOLATED.format(controls=f"{', '.join(first)} and {last}", equal=100 * EQUAL)
    html = f"<p>{escape(said)}</p>"
    final, together = found.judged(analysis.shown())
    if not final.pairs:
        return html + "<p>No arm that is shown here has features between theirs, in runs of the same seed.</p>"
    between = {arm: found.between[arm] for arm in final.pairs}
    drawn = figures / f"{EQUAL_FIGURE}.png"
    if drawn.is_file():
        words = difference_words(final, analysis.options.baseline, together=bool(together))
        html += picture(drawn, f"{words} An arm stands in the games in which it has such a control.", COLORS)
    if rows := difference_rows(analysis, final, together):
        caption = f"Final score less that of {AGAINST}, with Student's 95 % intervals"
        html += table(["game", *between], rows, caption, frame="sticky")
    mixtures = [
        [reference.title(game), *(mixture_words(places[at]) for places in between.values())]
        for at, game in enumerate(analysis.games)
    ]
    html += "<p>That control is, in each game:</p>"
    return html + table(["game", *between], mixtures, "What the control is made of", frame="sticky")


def difference_rows(analysis: Analysis, found: Differences, together: Mapping[str, Interval]) -> list[list[str]]:
    """A row for each game in which there are pairs, and one for games together, where an arm has that."""
    rows = [
        [reference.title(game), *(interval_words(found.in_game(arm, at)) for arm in found.pairs)]
        for at, game in enumerate(analysis.games)
        if found.seeds(at)
    ]
    if any(np.isfinite(mean.estimate) for mean in together.values()):
        rows.append(["together, %", *map(interval_words, together.values())])
    return rows


def mixture_words(place: Between | None) -> str:
    """What a control at some norm is made of.

    Examples
    --------
    >>> mixture_words(Between("norm", "dqn", 0.08)), mixture_words(Between("norm", "norm", 0.0)), mixture_words(None)
    ('0.92 norm, 0.08 dqn', 'norm', '–')
    """
    if place is None:
        return "–"
    if (share := round(place.share, 2)) in (0, 1):
        return place.larger if share else place.smaller
    return f"{1 - place.share:.2f} {place.smaller}, {place.share:.2f} {place.larger}"


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
