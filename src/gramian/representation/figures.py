"""The figures of an analysis, from its files alone: arms side by side, mean and standard error over seeds."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.files import replacing
from gramian.representation.dynamics import DYNAMICS, HELD_OUT
from gramian.representation.seeds import Mean, in_order, means
from gramian.representation.tables import (
    CORRELATION,
    Measure,
    Moment,
    Point,
    read_curves,
    read_dynamics,
    read_measures,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "dqn": "#0072B2", "decor": "#E69F00", "gram": "#009E73", "gram-unbiased": "#CC79A7", "norm": "#D55E00",
    "cross": "#56B4E9", "l2": "#7F7F7F", "dr3": "#8C6D31",
}  # fmt: skip
"""Blue, orange and green as in the paper; all are told apart by readers who do not see red and green."""
LINES = ("-", "--", ":", "-.")
HATCHES = ("", "//", "..", "xx")
DPI = 110
HISTOGRAM_BINS = 32
SPECTRUM_RANGE = 1e10
SHARES = ("growth_share_feature_norm", "growth_share_td_error")
TITLES = {
    "feature_norm": "‖φ‖, mean over states",
    "grad_norm_body": "gradient of the body",
    "feature_cross": "(φₙ·φₘ)², mean over n ≠ m",
    "grad_norm_head": "gradient of the head",
    "feature_std": "sum of the features' standard deviations",
    "td_error": "TD error, mean |δ|",
    "effective_rank": "effective rank",
    "srank": "srank, δ = 0.01",
    "feature_rank": "feature rank, ε = 0.01",
    "participation_ratio": "participation ratio",
    "mean_abs_correlation": "mean |correlation|",
    "dormant_share_0.025": "share of dormant features, τ = 0.025",
}


def draw(folder: Path) -> list[Path]:
    """Draw every figure of the analysis in ``folder``, for each of its games; give their paths.

    ========================  ==========================================================================
    ``sparsity-<game>``       histograms of active features and sparsity_ε (the paper's figure)
    ``dynamics-<game>``       norms, gradients and TD error during training (the paper's figure)
    ``growth-<game>``         where the growth of the head's gradient comes from
    ``held-out-<game>``       ranks and correlation on held-out states during training
    ``correlation-<game>``    correlations of the features, ordered by clustering
    ``spectrum-<game>``       eigenvalues of the covariance
    ========================  ==========================================================================
    """
    measures = read_measures(folder / "measures.csv")
    curves = read_curves(folder / "curves.csv")
    moments = read_dynamics(folder / "dynamics.csv")
    drawn = []
    for game in dict.fromkeys(row.game for row in measures):
        own = [row for row in measures if row.game == game]
        points = [row for row in curves if row.game == game]
        during = [row for row in moments if row.game == game]
        figures = {
            "sparsity": sparsity_figure(points),
            "dynamics": dynamics_figure(during, DYNAMICS, ""),
            "growth": growth_figure(own),
            "correlation": correlation_figure(own, folder / CORRELATION),
            "spectrum": spectrum_figure(points),
        }
        if any(row.metric.startswith("held_out.") for row in during):
            figures["held-out"] = dynamics_figure(during, HELD_OUT, "held_out.")
        for name, figure in figures.items():
            figure.suptitle(f"{game}: {figure.get_suptitle()}", fontsize=11)
            path = folder / f"{name}-{game.replace('/', '-')}.png"
            with replacing(path) as temporary:
                figure.savefig(temporary, dpi=DPI)
            drawn.append(path)
    return drawn


def sparsity_figure(points: Sequence[Point]) -> "Figure":
    """Active features of a state, activity of a feature, and sparsity_ε, from ``curves.csv`` of one game."""
    figure, (states, features, thresholds) = _figure(1, 3, "features of the trained agents", width=12)
    for arm, style in _styles(points).items():
        by_state, by_feature = {}, {}
        for run in dict.fromkeys(p.run for p in points if p.arm == arm):
            own = [p for p in points if p.run == run]
            counts = np.array([p.value for p in own if p.curve == "active_per_state"])
            activity = np.array([p.value for p in own if p.curve == "active_per_feature"])
            by_state[run] = _histogram(np.arange(counts.size) / (counts.size - 1), counts)
            by_feature[run] = _histogram(activity / max(counts.sum(), 1), np.ones(activity.size))
        for axes, histograms in ((states, by_state), (features, by_feature)):
            bins = means(
                (place, share) for shares in histograms.values() for place, share in enumerate(shares.tolist())
            )
            _stairs(axes, bins, arm, style)
        lines = means((p.x, p.value) for p in points if p.arm == arm and p.curve == "sparsity")
        thresholds.errorbar(
            range(len(lines)),
            [m.value for m in lines.values()],
            [np.nan_to_num(m.error) for m in lines.values()],
            color=style.colour,
            linestyle=style.line,
            marker="o",
            markersize=3,
            capsize=3,
            label=arm,
        )
        thresholds.set_xticks(range(len(lines)), [f"{x:g}" for x in lines], rotation=45)
    _label(states, "share of the features that are active", "share of states", "active features of a state")
    _label(features, "share of the states in which it is active", "share of features", "activity of a feature")
    _label(thresholds, "threshold ε", "share of |φ| ≤ ε", "sparsity")
    thresholds.set_ylim(0, 1.03)
    thresholds.legend(frameon=False)
    return figure


def dynamics_figure(moments: Sequence[Moment], metrics: Sequence[str], prefix: str) -> "Figure":
    """Six metrics during training, from ``dynamics.csv`` of one game."""
    what = "held-out states during training" if prefix else "features and gradients during training"
    figure, panels = _figure(3, 2, what, width=9, height=9)
    for axes, metric in zip(panels, metrics, strict=True):
        for arm, style in _styles(moments).items():
            _band(
                axes,
                means((m.frames, m.value) for m in moments if m.arm == arm and m.metric == prefix + metric),
                arm,
                style,
            )
        _label(axes, "frames", "", TITLES[metric])
        if not prefix and _positive(axes):
            axes.set_yscale("log")
    panels[0].legend(frameon=False)
    return figure


def growth_figure(measures: Sequence[Measure]) -> "Figure":
    """Growth of log‖g‖ of the head beside that of log‖φ‖ and log|δ| with their shares, ``measures.csv`` of one game."""
    figure, (axes,) = _figure(1, 1, "growth of the head's gradient, first to last tenth of training", width=7)
    names = {
        "growth_log_head_gradient": "log ‖gradient of the head‖",
        "growth_log_feature_norm": "log ‖φ‖",
        "growth_log_td_error": "log |δ|",
    }
    styles = _styles(measures)
    for place, (arm, style) in enumerate(styles.items()):
        bars = means((m.measure, m.value) for m in measures if m.arm == arm and m.measure in names)
        shares = means((m.measure, m.value) for m in measures if m.arm == arm and m.measure in SHARES)
        width = 0.8 / len(styles)
        places = np.arange(len(names)) + (place - (len(styles) - 1) / 2) * width
        for where, share in zip(places[1:], shares.values(), strict=True):
            if np.isfinite(share.value):
                axes.annotate(f"{share.value:.0%}", (where, 0), (0, 4), textcoords="offset points", ha="center")
        axes.bar(
            places,
            [bars[name].value for name in names],
            width,
            yerr=[np.nan_to_num(bars[name].error) for name in names],
            color=style.colour,
            hatch=style.hatch,
            capsize=3,
            alpha=0.75,
            label=arm,
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), list(names.values()))
    _label(axes, "", "growth (1 is a factor of e)", "percentages: share of the gradient's growth")
    axes.legend(frameon=False)
    return figure


def correlation_figure(measures: Sequence[Measure], folder: Path) -> "Figure":
    """Correlations of the features of each arm's first seed, ordered by clustering; those that do not vary are out."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    arms = _styles(measures)
    figure, panels = _figure(1, len(arms), "correlation of the features, ordered by clustering", 3.6 * len(arms) + 1, 4)
    image = None
    for axes, arm in zip(panels, arms, strict=True):
        first = min((m for m in measures if m.arm == arm), key=lambda m: m.seed)
        matrix = np.load(folder / f"{first.run}.npy", allow_pickle=False)
        varies = ~np.isnan(matrix.diagonal())
        inner = matrix[np.ix_(varies, varies)].astype(np.float64)
        if len(inner) > 2:
            distance = squareform(np.clip(1 - np.abs(inner), 0, None), checks=False)
            order = leaves_list(linkage(distance, "average", optimal_ordering=len(inner) <= 1024))
            inner = inner[np.ix_(order, order)]
        image = axes.imshow(inner if inner.size else np.zeros((1, 1)), cmap="RdBu_r", vmin=-1, vmax=1)
        left_out = f", {int((~varies).sum())} of {len(varies)} do not vary" if not varies.all() else ""
        axes.set_title(f"{arm}, seed {first.seed}{left_out}", fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
    if image is not None:
        figure.colorbar(image, ax=panels, shrink=0.8)
    return figure


def spectrum_figure(points: Sequence[Point]) -> "Figure":
    """Eigenvalues of the covariance, and the share of the variance that the first of them hold."""
    figure, (values, shares) = _figure(1, 2, "spectrum of the features' covariance", width=9)
    for arm, style in _styles(points).items():
        own = [p for p in points if p.arm == arm and p.curve == "spectrum"]
        _band(values, means((p.x, p.value) for p in own), arm, style)
        cumulative = {}
        for run in dict.fromkeys(p.run for p in own):
            eigenvalues = np.array([p.value for p in own if p.run == run])
            total = eigenvalues.sum()
            cumulative[run] = np.cumsum(eigenvalues) / (total if total > 0 else np.nan)
        _band(shares, means((i + 1, float(x)) for line in cumulative.values() for i, x in enumerate(line)), arm, style)
    _label(values, "number of the eigenvalue", "eigenvalue", "eigenvalues")
    _label(shares, "number of eigenvalues", "share of the variance", "variance held by the first")
    if _positive(values):
        values.set_yscale("log")
        # what lies far below the largest is rounding, and zero has no place on the axis
        top = max(p.value for p in points if p.curve == "spectrum" and p.value > 0)
        values.set_ylim(top / SPECTRUM_RANGE, 3 * top)
    last = max(p.x for p in points if p.curve == "spectrum")
    for axes in (values, shares):
        axes.set_xscale("log")
        axes.set_xlim(0.9, 1.1 * last)  # by hand: where all is NaN there is nothing to go by
    shares.set_ylim(0, 1.03)
    shares.legend(frameon=False)
    return figure


class Style(NamedTuple):
    """How an arm is drawn."""

    colour: str
    line: str
    hatch: str


def styles_of(arms: Iterable[str]) -> dict[str, Style]:
    """A look for each arm: colour by its kind, line by its order among those of the kind."""
    styles: dict[str, Style] = {}
    kinds: dict[str, int] = {}
    for arm in in_order(arms):
        kind = re.split("[: ]", arm)[0]
        number = kinds[kind] = kinds.get(kind, -1) + 1
        styles[arm] = Style(COLOURS.get(kind, "black"), LINES[number % len(LINES)], HATCHES[number % len(HATCHES)])
    return styles


def _styles(rows: Iterable[Measure | Point | Moment]) -> dict[str, Style]:
    return styles_of(row.arm for row in rows)


def _figure(rows: int, columns: int, title: str, width: float, height: float = 3.6) -> "tuple[Figure, list[Axes]]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(rows, columns, squeeze=False)
    return figure, list(panels.flat)


def _label(axes: "Axes", x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    if x == "frames":
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-4, 4))


def _band(axes: "Axes", line: Mapping[float, Mean], arm: str, style: Style) -> None:
    x = np.array(sorted(line), np.float64)
    y = np.array([line[place].value for place in x])
    error = np.nan_to_num([line[place].error for place in x])
    axes.plot(x, y, color=style.colour, linestyle=style.line, label=arm, linewidth=1.4)
    axes.fill_between(x, y - error, y + error, color=style.colour, alpha=0.2, linewidth=0)


def _stairs(axes: "Axes", bins: Mapping[int, Mean], arm: str, style: Style) -> None:
    edges = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    y = np.array([mean.value for mean in bins.values()])
    error = np.nan_to_num([mean.error for mean in bins.values()])
    axes.stairs(y, edges, color=style.colour, linestyle=style.line, label=arm, linewidth=1.4)
    axes.stairs(y + error, edges, baseline=y - error, color=style.colour, alpha=0.2, fill=True, linewidth=0)


def _histogram(places: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    counts, _ = np.histogram(places, HISTOGRAM_BINS, (0, 1), weights=weights)
    return np.asarray(counts / max(weights.sum(), 1))


def _positive(axes: "Axes") -> bool:
    """Whether a logarithmic axis has something to show."""
    return any((np.asarray(line.get_ydata(), np.float64) > 0).any() for line in axes.get_lines())
