"""What the figures with lines show, described once: panels, drawn by `figures` as files and by the page's script."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gramian.core.progress import counted
from gramian.core.statistics import Array, Interval
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.features import LABELS, Dynamics
from gramian.report.sweep import Penalty, Sweep
from gramian.representation.seeds import MOST_OF_A_RANGE
from gramian.representation.series import Line

SIZES = (
    "feature_norm", "feature_cross", "feature_std", "td_error", "penalty", "penalty_loss", "td_loss", "grad_norm_body",
    "grad_norm_body_td", "grad_norm_head", "grad_norm_body_penalty",
)  # fmt: skip
"""Metrics that span orders of magnitude: arms are compared by ratios."""
Axis = Literal["linear", "log", "category"]


@dataclass(frozen=True)
class Panel:
    """A line with its band for each arm."""

    title: str
    lines: Mapping[str, Line]
    x: str = "frames"
    """What the horizontal axis is."""
    end: float = 0.0
    """Of the horizontal axis; 0 where the lines end it."""
    across: Axis = "linear"
    up: Axis = "linear"
    top: float = 0.0
    """Of the vertical axis; 0 where the lines end it."""
    zero: bool = False
    """Whether the vertical axis begins at 0."""
    steps: bool = False
    """Whether a line keeps its height up to the next point."""
    level: Interval | None = None
    """A horizontal line with its band."""
    rings: Mapping[str, int] = field(default_factory=dict)
    """The point of a line that a ring is around."""


def without_runs(x: Array, interval: Interval) -> Line:
    """A line of which the single runs are not shown."""
    return Line(x, *interval, np.zeros((0, len(x))))


def curve(analysis: Analysis, arm: str, game: int) -> Line:
    """The learning curve of an arm in a game."""
    runs = analysis.curves[arm][:, game]
    mean, low, high = (end[:, game] for end in analysis.curve_intervals[arm])
    return Line(analysis.grid(game), mean, low, high, runs[np.isfinite(runs).any(axis=1)])


def curves(analysis: Analysis) -> list[Panel]:
    """The learning curves of each game."""
    return [
        Panel(
            game_title(game, _most_seeds(analysis, at)),
            {arm: curve(analysis, arm, at) for arm in analysis.arms},
            end=float(analysis.horizon[at]),
        )
        for at, game in enumerate(analysis.games)
    ]


def game_title(game: str, seeds: int) -> str:
    """A game's name, and how many seeds it has where they are few."""
    name = reference.title(game)
    return f"{name} ({counted(seeds, 'seed')})" if seeds <= MOST_OF_A_RANGE else name


def _most_seeds(analysis: Analysis, game: int) -> int:
    return max(int(np.isfinite(curves[:, game]).any(axis=-1).sum()) for curves in analysis.curves.values())


def metric(analysis: Analysis, dynamics: Dynamics, name: str) -> list[Panel]:
    """One metric of the features in each game."""
    return [
        feature(dynamics, game, name, game_title(game, _most_seeds(analysis, at)), float(analysis.horizon[at]))
        for at, game in enumerate(analysis.games)
    ]


def features(analysis: Analysis, dynamics: Dynamics, game: str, names: Iterable[str]) -> list[Panel]:
    """Those of the metrics that the runs of a game have."""
    end = float(analysis.horizon[analysis.games.index(game)])
    there = dynamics.get(game, {})
    return [feature(dynamics, game, name, LABELS[name], end) for name in names if name in there]


def feature(dynamics: Dynamics, game: str, name: str, title: str, end: float) -> Panel:
    """A metric in a game."""
    lines = dynamics.get(game, {}).get(name, {})
    positive = all((line.mean > 0).all() for line in lines.values())
    log = name in SIZES and positive and bool(lines)
    return Panel(title, lines, end=end, up="log" if log else "linear", zero=name in SIZES and not positive)


def aggregates(analysis: Analysis) -> dict[str, Panel]:
    """Median and interquartile mean over training, and the profile of the final scores."""
    points = len(analysis.grid(0))
    share = 100.0 * np.arange(1, points + 1) / points
    games = counted(len(analysis.common), "game")

    def lines(x: Array, name: str) -> dict[str, Line]:
        return {arm: without_runs(x, getattr(own, name)) for arm, own in analysis.aggregates.items()}

    x = "% of the frames of a run"
    return {
        "median": Panel(f"median, {games}", lines(share, "median_curve"), x, 100.0),
        "iqm": Panel(f"interquartile mean, {games}", lines(share, "iqm_curve"), x, 100.0),
        "profile": Panel(
            "", lines(analysis.thresholds, "profile"), "human-normalised final score τ",
            float(analysis.thresholds[-1]), top=1.0, zero=True,
        ),
    }  # fmt: skip


def kappas(sweep: Sweep, by: Literal["score", "auc"] = "score") -> list[Panel]:
    """Score against κ: the penalties that are centred or know no centring, and those that are not centred."""

    def line(penalty: Penalty) -> Line:
        scores = [getattr(setting, by) for setting in penalty.settings]
        ends = Interval(*(np.array([float(score[end]) for score in scores]) for end in range(3)))
        return without_runs(np.array([setting.kappa for setting in penalty.settings]), ends)

    groups = {
        title: [penalty for penalty in sweep.penalties if penalty.centered == centered]
        for title, centered in (("centred, or without centring", True), ("uncentred", False))
    }
    return [
        Panel(
            title,
            {penalty.name: line(penalty) for penalty in own},
            "κ",
            across="log",
            level=sweep.baseline if by == "score" else sweep.baseline_auc,
            rings={p.name: p.settings.index(p.chosen if by == "score" else p.chosen_by_auc) for p in own},
        )
        for title, own in groups.items()
        if own
    ]


def representation(lines: Mapping[str, Mapping[str, Line]]) -> list[Panel]:
    """The features of trained agents in a game, by the names of `features.Representation.lines`."""
    return [
        Panel("active features of a state", lines["states"], "share of features active", steps=True),
        Panel("activity of a feature", lines["features"], "share of states in which it is active", steps=True),
        Panel("sparsity: share of |φ| ≤ ε", lines["sparsity"], "threshold ε", across="category", top=1.0, zero=True),
        Panel("eigenvalues of the covariance", lines["eigenvalues"], "number", across="log", up="log"),
        Panel(
            "variance held by the first eigenvalues", lines["variance"], "how many", across="log", top=1.0, zero=True
        ),
    ]
