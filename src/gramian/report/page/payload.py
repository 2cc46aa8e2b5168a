"""The numbers of the page, small enough to send along: four significant digits, and curves of at most 200 points."""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gramian.core.arms import Style, arm_styles, kind_of
from gramian.core.statistics import Array
from gramian.core.text import bracketed
from gramian.report import panels, reference
from gramian.report.analysis import Analysis
from gramian.report.features import LABELS, Dynamics, Growths, Heat, Representation
from gramian.report.figures import gain_limit
from gramian.report.panels import Panel
from gramian.report.sweep import Sweep
from gramian.representation.dynamics import GROWTH
from gramian.representation.figures import SPECTRUM_RANGE
from gramian.representation.series import Line, growth_shares

_SEED_STEP = 2
"""Curves of single seeds carry every second point."""


def payload(
    analysis: Analysis, dynamics: Dynamics, growths: Growths, representation: Representation | None
) -> dict[str, Any]:
    """What the page's script reads, by name. Panels are those of `gramian.report.panels`, with lines by arm."""
    arms = {arm: at for at, arm in enumerate(analysis.arms)}
    return {
        "meta": _meta(analysis),
        "curves": [_game(analysis, at, panel) for at, panel in enumerate(panels.curves(analysis))],
        "aggregate": {name: _panel(panel, arms) for name, panel in panels.aggregates(analysis).items()},
        "gain": _gain(analysis),
        "features": [
            [_panel(panel, arms) for panel in panels.features(analysis, dynamics, game, LABELS)]
            for game in analysis.games
        ],
        "growth": [_growth(analysis, growths, game) for game in analysis.games],
        "representation": [_representation(arms, representation, game) for game in analysis.games],
        "kappa": None if analysis.sweep is None else _kappa(analysis.sweep),
    }


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate({ord(letter): f"\\u{ord(letter):04x}" for letter in "<>\u2028\u2029"})


def _look(name: str, style: Style) -> dict[str, str]:
    return {
        "name": name,
        "color": style.color,
        "dark": style.dark_color,
        "dash": style.dash,
        "marker": style.marker,
        "pattern": style.pattern,
    }


def _meta(analysis: Analysis) -> dict[str, Any]:
    looks = [
        _look(arm, style) | {"paper": reference.PAPER_LABELS.get(kind_of(arm), "")}
        for arm, style in arm_styles(analysis.arms).items()
    ]
    return {
        "arms": looks,
        "games": [reference.title(game) for game in analysis.games],
        "shown": [at for at, arm in enumerate(analysis.arms) if arm in set(analysis.shown())],
        "baseline": analysis.options.baseline,
        "axis": analysis.axis_words,
        "published": any(reference.atari(game) for game in analysis.games),
    }


def _panel(panel: Panel, keys: Mapping[str, int]) -> dict[str, Any]:
    """A panel for the script; ``keys`` are what it knows the lines by."""
    lines = {keys[name]: line for name, line in panel.lines.items() if name in keys}
    # a band that reaches 0 has no end on a logarithmic axis
    lowest = min((np.nanmin(line.mean, initial=np.inf) for line in lines.values()), default=0.0)
    floor = lowest / 10 if panel.up == "log" and not panel.steps else -np.inf
    return {
        "title": panel.title + (" (log)" if panel.up == "log" else ""),
        "x": panel.x,
        "end": _short(panel.end),
        "across": panel.across,
        "up": panel.up,
        "top": panel.top,
        "steps": panel.steps,
        "lines": {at: _line(line, panel.end, floor) for at, line in sorted(lines.items())},
        "rings": {keys[name]: at for name, at in panel.rings.items()},
        "level": None if panel.level is None else _numbers(np.array([float(end) for end in panel.level])),
    }


def _line(line: Line, end: float, floor: float = -np.inf) -> dict[str, Any]:
    """Mean and ends of a line; its places go without saying where they divide the axis evenly."""
    found = {"m": _numbers(line.mean)}
    if np.isfinite(line.low).any():
        found |= {"l": _numbers(np.maximum(line.low, floor)), "h": _numbers(line.high)}
    even = end * np.arange(1, len(line.x) + 1) / max(1, len(line.x))
    return found if end and np.allclose(line.x, even) else found | {"x": _numbers(line.x)}


def _game(analysis: Analysis, at: int, panel: Panel) -> dict[str, Any]:
    """The learning curves of a game, with every seed and with what its table says."""
    game = analysis.games[at]
    arms: dict[int, Any] = {}
    for position, arm in enumerate(analysis.arms):
        seeds = analysis.curves[arm][:, at]
        begun = np.flatnonzero(np.isfinite(seeds).any(-1))
        if not len(begun):
            continue
        comparison = analysis.comparisons.get(arm)
        finished = int(np.isfinite(analysis.final[arm][:, at]).sum())
        final = [end[at] for end in analysis.final_intervals[arm]]
        arms[position] = _line(panel.lines[arm], panel.end) | {
            "seeds": [[analysis.seeds[seed], _numbers(seeds[seed, _SEED_STEP - 1 :: _SEED_STEP])] for seed in begun],
            "cells": [
                bracketed(final) if finished else "not finished",
                f"{finished} of {len(begun)}",
                "" if comparison is None else _percent([end[at] for end in comparison.gain]),
                "" if comparison is None else bracketed([end[at] for end in comparison.difference]),
            ],
        }
    found: dict[str, Any] = {"horizon": float(analysis.horizon[at]), "arms": arms}
    if (row := reference.atari(game)) is not None:
        columns = {position: reference.PAPER_ARMS.get(kind_of(analysis.arms[position])) for position in arms}
        found["paper"] = {position: float(row[column]) for position, column in columns.items() if column}
    if (curve := reference.dopamine_curve(game)) is not None:
        shown = curve.frames <= analysis.horizon[at]
        returns = curve.returns[:, shown]
        if returns.size:
            ends = {"x": curve.frames[shown], "m": returns.mean(0), "l": returns.min(0), "h": returns.max(0)}
            found["dopamine"] = {name: _numbers(values) for name, values in ends.items()}
    return found


def _percent(share: list[float]) -> str:
    estimate, *ends = (100.0 * end for end in share)
    return bracketed([estimate, *ends], "{:+.1f}".format, " %")


def _gain(analysis: Analysis) -> dict[int, Any]:
    return {
        analysis.arms.index(arm): {
            **{name: _numbers(end) for name, end in zip("elh", comparison.gain, strict=True)},
            "limit": gain_limit([comparison.gain]),
            "text": gain_sentence(analysis, arm),
        }
        for arm, comparison in analysis.comparisons.items()
        if np.isfinite(comparison.gain.estimate).any()
    }


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


def _growth(analysis: Analysis, growths: Growths, game: str) -> dict[int, Any]:
    """For each arm the growths of log‖g‖, log‖φ‖ and log|δ| with their intervals, and the shares of the last two."""
    found = {}
    for at, arm in enumerate(analysis.arms):
        own = growths.get(game, {}).get(arm)
        if own is not None and math.isfinite(own[GROWTH[0]].value):
            ends = np.array([(own[name].value, own[name].low, own[name].high) for name in GROWTH[:3]]).T
            found[at] = {name: _numbers(end) for name, end in zip("mlh", ends, strict=True)}
            found[at]["s"] = _numbers(np.array(growth_shares(own)))
    return found


def _representation(arms: Mapping[str, int], found: Representation | None, game: str) -> dict[str, Any] | None:
    if found is None or game not in found.arms:
        return None
    lines = dict(found.lines[game])
    lines["eigenvalues"] = {arm: _positive(line) for arm, line in lines["eigenvalues"].items()}
    return {
        "panels": [_panel(panel, arms) for panel in panels.representation(lines)],
        "heat": {arms[arm]: _heat(heat) for arm, heat in found.heats[game].items()},
        "measures": list(found.measures[game].items()),
        "arms": [arms[arm] for arm in found.arms[game]],
    }


def _positive(line: Line) -> Line:
    """A spectrum for a logarithmic axis: what lies far below the largest is rounding, and zero has no place on it."""
    largest = np.nanmax(line.mean, initial=0.0)
    mean = np.where(line.mean > largest / SPECTRUM_RANGE, line.mean, np.nan)
    return line._replace(mean=mean, low=np.maximum(line.low, line.mean / 10))


def _heat(heat: Heat) -> dict[str, Any]:
    """Cells as signed bytes, hundredths of a correlation, in base64."""
    cells = np.round(100 * np.nan_to_num(heat.cells)).astype(np.int8)
    shown = {"seed": heat.seed, "varying": heat.varying, "features": heat.features}
    return shown | {"side": len(cells), "cells": base64.b64encode(cells.tobytes()).decode()}


def _kappa(sweep: Sweep) -> dict[str, Any]:
    styles = arm_styles(list(dict.fromkeys(kind_of(penalty.name) for penalty in sweep.penalties)))
    keys = {penalty.name: at for at, penalty in enumerate(sweep.penalties)}
    return {
        "penalties": [
            _look(penalty.name, styles[kind_of(penalty.name)])
            | {"open": not penalty.centered, "norm": _numbers(np.array([one.norm for one in penalty.settings]))}
            for penalty in sweep.penalties
        ],
        "final": [_panel(panel, keys) for panel in panels.kappas(sweep)],
        "auc": [_panel(panel, keys) for panel in panels.kappas(sweep, "auc")],
    }


def _numbers(values: Array) -> list[float | int | None]:
    """Four significant digits; None if it is not a number."""
    return [_short(value) if math.isfinite(value) else None for value in np.asarray(values, float).tolist()]


def _short(value: float) -> float | int:
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
