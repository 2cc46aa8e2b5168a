"""Sections of the page: beyond the control, at equal feature norm, the choice of κ, and what was run."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gramian.core.arms import kind_of
from gramian.core.progress import counted
from gramian.core.statistics import CONFIDENCE, Interval
from gramian.core.text import bracketed, score_text
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.differences import (
    AGAINST,
    EQUAL,
    Between,
    Differences,
    EqualNorm,
    difference_words,
    differences,
)
from gramian.report.figures import CONTROL_FIGURE, EQUAL_FIGURE
from gramian.report.page.html import block, pictures, table
from gramian.report.sweep import Matched, Penalty
from gramian.report.tables import interval_text
from gramian.study.manifest import Planned
from gramian.study.store import Study

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
    """What the arms have beyond the control, with the figure of it; nothing where the study has no control."""
    control = analysis.control
    if not control:
        return ""
    found = differences(analysis, control)
    baseline = analysis.options.baseline
    said = (_SHRINKS if kind_of(control) == "norm" else _OTHER).format(control=control, baseline=baseline)
    html = f"<p>{escape(said)}</p>"
    html += pictures(figures, {CONTROL_FIGURE: difference_words(found, baseline, together=bool(found.common))})
    rows = difference_rows(analysis, found, found.means())
    if not rows:
        return html + f"<p>No game yet with finished runs of {escape(control)} and of another arm.</p>"
    caption = f"Final score minus that of {control}, with Student's 95 % intervals"
    return html + table(["game", *found.pairs], rows, caption, frame="sticky")


def equal_norm_section(analysis: Analysis, found: EqualNorm | None, figures: Path) -> str:
    """What the arms have beyond a control at their own norm, with the figure of it; nothing where there is none."""
    if found is None:
        return ""
    *first, last = found.controls
    said = _INTERPOLATED.format(controls=f"{', '.join(first)} and {last}", equal=100 * EQUAL)
    html = f"<p>{escape(said)}</p>"
    final, together = found.judged(analysis.shown())
    if not final.pairs:
        return html + "<p>No arm that is shown here has features between theirs, in runs of the same seed.</p>"
    between = {arm: found.between[arm] for arm in final.pairs}
    words = difference_words(final, analysis.options.baseline, together=bool(together))
    html += pictures(figures, {EQUAL_FIGURE: f"{words} An arm stands in the games in which it has such a control."})
    if rows := difference_rows(analysis, final, together):
        caption = f"Final score minus that of {AGAINST}, with Student's 95 % intervals"
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
    """What a control at some norm is made of."""
    if place is None:
        return "–"
    if (share := round(place.share, 2)) in (0, 1):
        return place.larger if share else place.smaller
    return f"{1 - place.share:.2f} {place.smaller}, {place.share:.2f} {place.larger}"


def signed(value: float) -> str:
    """A difference of scores with its sign."""
    return f"+{score_text(value)}" if value > 0 else score_text(value)


def interval_words(interval: Interval) -> str:
    """A difference with its interval, where it has one."""
    return bracketed(interval, signed)


# ---- the choice of κ -------------------------------------------------------------------------------------------------


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
    if (target := sweep.reference) is not None:
        score = float(target.score.estimate)
        caption = f"At the feature norm of {target.arm}, {target.norm:.4g} (its score: {score:.3f})"
        rows = map(_matched_row, sweep.matched)
        matched = "<p></p>" + table(["penalty", "κ of equal norm", "score there", "norms of its grid"], rows, caption)
    return block(
        "kappa", games=escape(games), seeds=escape(seeds), kept=kept, effort=effort, choices=choices, matched=matched,
        picture=picture or block("kappa-figure"),
    )  # fmt: skip


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
        "{:.3g} to {:.3g}".format(*found.reach) if found.norms else "unknown",
    ]


# ---- what was run ----------------------------------------------------------------------------------------------------

_KINDS = ("atari", "minatar", "cartpole", "gym")


def settings_table(study: Study) -> list[tuple[str, str]]:
    """Every setting with its value, or its values and the number of runs of each where runs differ.

    Settings of emulators that no run of the study uses are left out.
    """
    kinds = {_kind(game) for game in study.runs["game"].to_list()}
    counts: dict[str, Counter[str]] = {}
    for settings in study.settings.values():
        for name, value in _flat(settings):
            parts = name.split(".")
            if parts[0] == "environment" and len(parts) > 1 and parts[1] in _KINDS and parts[1] not in kinds:
                continue
            counts.setdefault(name, Counter())[_text(value)] += 1
    return [(name, _counted(values)) for name, values in counts.items()]


def provenance_table(study: Study) -> list[tuple[str, str]]:
    """Versions, commits, hardware and dates of every process that worked on the study."""
    counts: dict[str, Counter[str]] = {}
    started: list[str] = []

    def count(name: str, value: object) -> None:
        if value not in (None, "", []):
            counts.setdefault(name, Counter())[_text(value)] += 1

    for records in study.provenance.values():
        for record in records if isinstance(records, list) else []:
            for name, value in record.get("versions", {}).items():
                count(name, value)
            git = record.get("git") or {}
            count("commit", git.get("commit", "") + (" with changes" if git.get("diff_sha256") else ""))
            for name in ("device", "machine", "system", "cores"):
                count(name, record.get("hardware", {}).get(name))
            count("imported from", record.get("imported_from"))
            count("SHA-256 of the import", record.get("sha256"))
            started += [str(record["started"])] if "started" in record else []
    # a run cannot be repeated without its commit: none is left out
    table = [(name, _counted(values, most=len(values) if name == "commit" else 5)) for name, values in counts.items()]
    if started:
        table.append(("processes started", f"{min(started)} to {max(started)}"))
    return table


def commands(study: Study) -> list[tuple[str, int]]:
    """Every command that worked on the study, as it can be typed again, and on how many runs; most runs first."""
    counts: Counter[str] = Counter()
    for records in study.provenance.values():
        own = records if isinstance(records, list) else []
        noted = [record.get("command") for record in own if isinstance(record, dict)]
        counts.update(list(dict.fromkeys(_command(words) for words in noted if isinstance(words, list) and words)))
    return counts.most_common()


def _command(words: Sequence[object]) -> str:
    """A command for a shell; ``python -m gramian`` has once been noted by the name of its file."""
    program, *options = map(str, words)
    return shlex.join(["gramian" if program == "__main__.py" else program, *options])


def _kind(game: str) -> str:
    kind = re.split("[/:]", game, maxsplit=1)[0]
    return kind if kind in _KINDS else "atari"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _counted(values: Counter[str], most: int = 12) -> str:
    if len(values) == 1:
        return next(iter(values))
    shown = [f"{value} ({count} run{'' if count == 1 else 's'})" for value, count in values.most_common(most)]
    return ", ".join(shown) + ("" if len(values) <= most else f" and {len(values) - most} more")
