"""The page's section on the choice of κ."""

import math
from html import escape

from gramian.core.progress import counted
from gramian.core.statistics import CONFIDENCE
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.html import table
from gramian.report.sweep import Matched, Penalty
from gramian.report.tables import interval_text
from gramian.study.manifest import Planned


def kappa_section(analysis: Analysis, planned: Planned, picture: str = "") -> str:
    """Figure, choices and comparison at equal feature norm; nothing where the study has no grid of κ.

    ``picture`` takes the place of the figure that a script draws.
    """
    sweep = analysis.sweep
    if sweep is None:
        return ""
    games = ", ".join(reference.title(analysis.games[at]) for at in sweep.games)
    seeds = ", ".join(map(str, analysis.seeds))
    kept = ""
    if planned.evaluation_games:
        seen = ", ".join(map(str, planned.evaluation_seeds))
        kept = (
            f" Kept apart to judge what is chosen: {counted(len(planned.evaluation_games), 'game')}, "
            f"seeds {escape(seen)}."
        )
    effort = (
        "Every penalty was tried at the same κ with as many runs."
        if sweep.grids_agree
        else "The penalties were not tried at the same κ with as many runs."
    )
    headings = ["penalty", "chosen κ", "score", "κ within its interval", "κ by AUC", "runs", "κ tried"]
    choices = table(headings, map(_choice_row, sweep.penalties), f"The choice; {CONFIDENCE:.0%} intervals over seeds")
    matched = ""
    if sweep.reference is not None:
        reference_arm = sweep.reference
        caption = (
            f"At the feature norm of {reference_arm.arm}, {reference_arm.norm:.4g} (its score: "
            f"{float(reference_arm.score.estimate):.3f})"
        )
        rows = map(_matched_row, sweep.matched)
        matched = "<p></p>" + table(["penalty", "κ of equal norm", "score there", "norms of its grid"], rows, caption)
    return f"""
<p class="quiet small">Score of a run: (return − worst arm) / (best arm − worst arm) of its game, the arms' means over
seeds; an arm's score is the mean over games. Chosen on {escape(games)} with the seeds {escape(seeds)}.{kept} {effort}
A ring is around the chosen κ. The numbers are in <code>kappa.csv</code>.</p>
{picture or _FIGURE}
{choices}{matched}"""


_FIGURE = """
<div class="bar"><label for="kappa-score">By</label> <select id="kappa-score"><option value="final">final score</option>
<option value="auc">area under the curve</option></select></div>
<fieldset class="boxes" id="penalties"><legend>Penalties</legend></fieldset>
<div id="kappa-figure" class="figure tall" role="img" aria-label="Score against κ; the choices are in the table
below"></div>"""


def _choice_row(penalty: Penalty) -> list[str]:
    chosen = penalty.chosen
    return [
        penalty.name,
        f"{chosen.kappa:g}" + (" (end of the grid)" if penalty.at_edge else ""),
        interval_text(chosen.score),
        ", ".join(f"{kappa:g}" for kappa in penalty.indistinct) or "–",
        f"{penalty.chosen_by_auc.kappa:g}",
        str(chosen.runs),
        ", ".join(f"{setting.kappa:g}" for setting in penalty.settings),
    ]


def _matched_row(found: Matched) -> list[str]:
    return [
        found.penalty,
        "the grid does not reach it" if found.kappa is None else f"{found.kappa:.3g}",
        "–" if math.isnan(found.score) else f"{found.score:.3f}",
        "unknown" if math.isnan(found.smallest_norm) else f"{found.smallest_norm:.3g} to {found.largest_norm:.3g}",
    ]
