"""The numbers of the page, small enough to send along: four significant digits, and curves of at most 200 points."""

import base64
import json
import math
from typing import Any

import numpy as np

from gramian.core.arms import Style, arm_styles, kind_of
from gramian.core.statistics import Array, Interval
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.features import LABELS, POINTS, Dynamics, Growths, Heat, Representation
from gramian.report.figures import gain_limit
from gramian.report.sweep import Penalty, Sweep
from gramian.report.tables import ends_text
from gramian.representation.dynamics import GROWTH
from gramian.representation.figures import SPECTRUM_RANGE
from gramian.representation.series import Line, growth_shares

_SEED_STEP = 2
"""Curves of single seeds carry every second point."""
_LOG = (
    "feature_norm", "feature_cross", "feature_std", "td_error", "penalty", "penalty_loss", "td_loss", "grad_norm_body",
    "grad_norm_body_td", "grad_norm_head", "grad_norm_body_penalty",
)  # fmt: skip
"""Metrics that span orders of magnitude."""


def payload(
    analysis: Analysis, dynamics: Dynamics, growths: Growths, representation: Representation | None
) -> dict[str, Any]:
    """What the page's script reads, by name: ``meta``, ``curves``, ``aggregate``, ``gain``, ``features``, …."""
    return {
        "meta": _meta(analysis),
        "curves": [_game(analysis, at) for at in range(len(analysis.games))],
        "aggregate": _aggregate(analysis),
        "gain": _gain(analysis),
        "features": [_features(analysis, dynamics, game) for game in analysis.games],
        "growth": [_growth(analysis, growths, game) for game in analysis.games],
        "representation": [_representation(analysis, representation, game) for game in analysis.games],
        "kappa": None if analysis.sweep is None else _kappa(analysis.sweep),
    }


def script_json(value: Any) -> str:
    r"""JSON that may stand inside a script element: nothing in it can end the element.

    Examples
    --------
    >>> script_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return (
        text.replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _meta(analysis: Analysis) -> dict[str, Any]:
    styles = arm_styles(analysis.arms)
    return {
        "arms": [
            {
                "name": arm,
                "color": style.color,
                "dark": style.dark_color,
                "dash": style.dash,
                "marker": style.marker,
                "pattern": style.pattern,
                "paper": reference.PAPER_LABELS.get(kind_of(arm), ""),
            }
            for arm, style in styles.items()
        ],
        "games": [reference.title(game) for game in analysis.games],
        "points": len(analysis.grid(0)),
        "labels": LABELS,
        "shown": [at for at, arm in enumerate(analysis.arms) if arm in set(analysis.shown())],
        "baseline": analysis.options.baseline,
        "axis": analysis.axis_words,
        "published": any(reference.atari(game) for game in analysis.games),
    }


def _game(analysis: Analysis, at: int) -> dict[str, Any]:
    game = analysis.games[at]
    arms: dict[int, Any] = {}
    for position, arm in enumerate(analysis.arms):
        seeds = analysis.curves[arm][:, at]
        begun = np.flatnonzero(np.isfinite(seeds).any(-1))
        if not len(begun):
            continue
        comparison = analysis.comparisons.get(arm)
        finals = analysis.final[arm][:, at]
        finished = finals[np.isfinite(finals)]
        arms[position] = _series(Interval(*(end[:, at] for end in analysis.curve_intervals[arm]))) | {
            "seeds": [[analysis.seeds[seed], _numbers(seeds[seed, _SEED_STEP - 1 :: _SEED_STEP])] for seed in begun],
            "final": _in_points(analysis.final_intervals[arm], at) if len(finished) else "not finished",
            "runs": f"{len(finished)} of {len(begun)}",
            "gain": "" if comparison is None else _percent(comparison.gain, at),
            "difference": "" if comparison is None else _in_points(comparison.difference, at),
        }
    found: dict[str, Any] = {"horizon": float(analysis.horizon[at]), "arms": arms}
    row = reference.atari(game)
    if row is not None:
        kinds = {position: kind_of(arm) for position, arm in enumerate(analysis.arms)}
        found["paper"] = {
            position: float(row[reference.PAPER_ARMS[kind]])
            for position, kind in kinds.items()
            if kind in reference.PAPER_ARMS and position in arms
        }
    curve = reference.dopamine_curve(game)
    if curve is not None:
        shown = curve.frames <= analysis.horizon[at]
        returns = curve.returns[:, shown]
        if returns.size:
            found["dopamine"] = {
                "x": _numbers(curve.frames[shown]),
                "m": _numbers(returns.mean(0)),
                "l": _numbers(returns.min(0)),
                "h": _numbers(returns.max(0)),
            }
    return found


def _aggregate(analysis: Analysis) -> dict[str, Any]:
    by_arm = {analysis.arms.index(arm): aggregate for arm, aggregate in analysis.aggregates.items()}
    points = len(analysis.grid(0))
    return {
        "share": _numbers(100.0 * np.arange(1, points + 1) / points),
        "thresholds": _numbers(analysis.thresholds),
        "median": {at: _series(aggregate.median_curve) for at, aggregate in by_arm.items()},
        "iqm": {at: _series(aggregate.iqm_curve) for at, aggregate in by_arm.items()},
        "profile": {at: _series(aggregate.profile) for at, aggregate in by_arm.items()},
    }


def _gain(analysis: Analysis) -> dict[int, Any]:
    found = {}
    for arm, comparison in analysis.comparisons.items():
        estimate, low, high = comparison.gain
        if not np.isfinite(estimate).any():
            continue
        found[analysis.arms.index(arm)] = {
            "e": _numbers(estimate),
            "l": _numbers(low),
            "h": _numbers(high),
            "limit": gain_limit([comparison.gain]),
            "text": gain_sentence(analysis, arm),
        }
    return found


def gain_sentence(analysis: Analysis, arm: str) -> str:
    """In how many games an arm gains, beside the paper's own count where it has one."""
    comparison = analysis.comparisons[arm]
    wins, ties, losses = comparison.auc
    text = f"{arm} gains in {wins} of {comparison.games} games, loses in {losses}"
    text += f", ties in {ties}" if ties else ""
    undefined = comparison.games - int(np.isfinite(comparison.gain.estimate).sum())
    if undefined:
        noun = "game" if undefined == 1 else "games"
        text += f" ({undefined} {noun} without a bar: random play is unknown, or the baseline plays like it)"
    if kind_of(arm) == "gram" and any(reference.atari(game) for game in analysis.games):
        text += f"; the paper counts {reference.PAPER_AUC_GAINS} gains of 49 for its DQN-Gram"
    return text + "."


def _features(analysis: Analysis, dynamics: Dynamics, game: str) -> dict[str, Any]:
    found = {}
    for metric, by_arm in dynamics.get(game, {}).items():
        positive = all((series.mean > 0).all() for series in by_arm.values())
        # a band that reaches 0 has no end on a logarithmic axis
        floor = min(series.mean.min() for series in by_arm.values()) / 10 if metric in _LOG and positive else None
        found[metric] = {
            "log": metric in _LOG and positive,
            "arms": {at: _metric(by_arm[arm], floor) for at, arm in enumerate(analysis.arms) if arm in by_arm},
        }
    return found


def _growth(analysis: Analysis, growths: Growths, game: str) -> dict[int, Any]:
    """For each arm the growths of log‖g‖, log‖φ‖ and log|δ| with their intervals, and the shares of the last two."""
    names = GROWTH[:3]
    by_arm = growths.get(game, {})
    return {
        at: {
            "m": _numbers(np.array([by_arm[arm][name].value for name in names])),
            "l": _numbers(np.array([by_arm[arm][name].low for name in names])),
            "h": _numbers(np.array([by_arm[arm][name].high for name in names])),
            "s": _numbers(np.array(growth_shares(by_arm[arm]))),
        }
        for at, arm in enumerate(analysis.arms)
        if arm in by_arm and math.isfinite(by_arm[arm][names[0]].value)
    }


def _representation(analysis: Analysis, found: Representation | None, game: str) -> dict[str, Any] | None:
    if found is None or game not in found.arms:
        return None
    at = {arm: analysis.arms.index(arm) for arm in found.arms[game]}
    return {
        "lines": {
            name: {at[arm]: _banded(line, name == "eigenvalues") for arm, line in by_arm.items()}
            for name, by_arm in found.lines[game].items()
        },
        "heat": {at[arm]: _heat(heat) for arm, heat in found.heats[game].items()},
        "measures": list(found.measures[game].items()),
        "arms": list(at.values()),
    }


def _banded(line: Line, logarithmic: bool) -> dict[str, Any]:
    mean = line.mean
    if logarithmic:  # what lies far below the largest is rounding, and zero has no place on the axis
        mean = np.where(mean > np.nanmax(mean, initial=0.0) / SPECTRUM_RANGE, mean, np.nan)
    low = np.maximum(line.low, line.mean / 10) if logarithmic else line.low
    return _series(Interval(mean, low, line.high)) | {"x": _numbers(line.x)}


def _heat(heat: Heat) -> dict[str, Any]:
    """Cells as signed bytes, hundredths of a correlation, in base64."""
    cells = np.round(100 * np.nan_to_num(heat.cells)).astype(np.int8)
    return {
        "seed": heat.seed,
        "side": len(cells),
        "cells": base64.b64encode(cells.tobytes()).decode(),
        "varying": heat.varying,
        "features": heat.features,
    }


def _kappa(sweep: Sweep) -> dict[str, Any]:
    styles = arm_styles(list(dict.fromkeys(kind_of(penalty.name) for penalty in sweep.penalties)))
    return {
        "penalties": [_penalty(penalty, styles[kind_of(penalty.name)]) for penalty in sweep.penalties],
        "baseline": {
            name: None if score is None else _numbers(np.array([float(end) for end in score]))
            for name, score in (("final", sweep.baseline), ("auc", sweep.baseline_auc))
        },
    }


def _penalty(penalty: Penalty, style: Style) -> dict[str, Any]:
    def series(name: str) -> dict[str, Any]:
        return _series(
            Interval(*(np.array([float(getattr(s, name)[end]) for s in penalty.settings]) for end in range(3)))
        )

    return {
        "name": penalty.name,
        "centered": penalty.centered,
        "color": style.color,
        "dark": style.dark_color,
        "dash": style.dash,
        "marker": style.marker,
        "x": _numbers(np.array([setting.kappa for setting in penalty.settings])),
        "final": series("score"),
        "auc": series("auc"),
        "norm": _numbers(np.array([setting.norm for setting in penalty.settings])),
        "chosen": {
            "final": penalty.settings.index(penalty.chosen),
            "auc": penalty.settings.index(penalty.chosen_by_auc),
        },
    }


def _metric(series: Line, floor: float | None) -> dict[str, Any]:
    """A metric's points; where there are as many as there can be, their frames go without saying."""
    low = series.low if floor is None else np.maximum(series.low, floor)
    found = _series(Interval(series.mean, low, series.high))
    return found if len(series.x) == POINTS else found | {"x": _numbers(series.x)}


def _series(interval: Interval) -> dict[str, Any]:
    found = {"m": _numbers(interval.estimate)}
    if np.isfinite(interval.low).any():
        found |= {"l": _numbers(interval.low), "h": _numbers(interval.high)}
    return found


def _numbers(values: Array) -> list[float | int | None]:
    """Four significant digits; None where there is no number."""
    return [_short(value) if math.isfinite(value) else None for value in np.asarray(values, float).tolist()]


def _short(value: float) -> float | int:
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _percent(interval: Interval, at: int) -> str:
    estimate, low, high = (100.0 * float(end[at]) for end in interval)
    if not math.isfinite(estimate):
        return "–"
    text = f"{estimate:+.1f} %"
    return text if not math.isfinite(low) else f"{text} [{low:+.1f}, {high:+.1f}]"


def _in_points(interval: Interval, at: int) -> str:
    return ends_text(*(float(end[at]) for end in interval))
