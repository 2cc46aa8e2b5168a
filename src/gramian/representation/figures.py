"""The figures of an analysis, from its files alone: arms side by side, means over seeds.

A band is the 95 % interval of the mean, a bootstrap over seeds; three seeds or fewer are thin lines in its place.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramian.core.arms import CONTROL, Style, arm_styles, kind_of, order_arms
from gramian.core.files import output_folder, replacing
from gramian.core.games import title
from gramian.representation import series
from gramian.representation.dynamics import DYNAMICS, HELD_OUT
from gramian.representation.seeds import means
from gramian.representation.series import HISTOGRAM_BINS, Line
from gramian.representation.tables import (
    CORRELATION,
    Measure,
    Moment,
    Point,
    check_curves,
    read_curves,
    read_dynamics,
    read_measures,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Styles = Mapping[str, Style]
DPI = 110
SPECTRUM_RANGE = 1e10
"""Largest over smallest eigenvalue that is not rounding."""
MOST_HISTOGRAMS = 4
"""Arms that have a row of histograms."""
METADATA = {"svg": {"Date": None}}
"""The same files give the same bytes."""
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
MOST_COLUMNS = 4
"""Panels beside each other."""


def draw(
    folder: Path,
    out: Path | None = None,
    *,
    formats: Sequence[str] = ("png",),
    arms: Iterable[str] = (),
    control: str = CONTROL,
) -> list[Path]:
    """Draw every figure of the analysis in ``folder``, for each of its games, into ``out``; return their paths.

    ========================  ==========================================================================
    ``sparsity-<game>``       histograms of active features and sparsity_ε (the paper's figure)
    ``dynamics-<game>``       norms, gradients and TD error during training (the paper's figure)
    ``growth-<game>``         where the growth of the head's gradient comes from
    ``held-out-<game>``       ranks and correlation on held-out states during training
    ``correlation-<game>``    correlations of the features, ordered by clustering
    ``spectrum-<game>``       eigenvalues of the covariance
    ========================  ==========================================================================

    ``formats`` are matplotlib's. ``arms`` are those of the study that the analysis belongs to, so that each looks as in
    the study's figures. ``control`` is among the arms with histograms where there are more than `MOST_HISTOGRAMS`.
    """
    import matplotlib

    measures = read_measures(folder / "measures.csv")
    curves = read_curves(folder / "curves.csv")
    check_curves(folder, measures, curves)
    moments = read_dynamics(folder / "dynamics.csv")
    styles = arm_styles(order_arms([*arms, *(row.arm for row in measures)]))
    target = folder if out is None else output_folder(out)
    drawn = []
    for game in dict.fromkeys(row.game for row in measures):
        own = [row for row in measures if row.game == game]
        there = {row.arm for row in own}
        looks = {arm: style for arm, style in styles.items() if arm in there}
        points = [row for row in curves if row.game == game]
        during = [row for row in moments if row.game == game]
        figures = {
            "sparsity": sparsity_figure(points, looks, control),
            "dynamics": dynamics_figure(during, DYNAMICS, "", looks),
            "growth": growth_figure(own, looks),
            "correlation": correlation_figure(own, folder / CORRELATION),
            "spectrum": spectrum_figure(points, looks),
        }
        if any(row.metric.startswith("held_out.") for row in during):
            figures["held-out"] = dynamics_figure(during, HELD_OUT, "held_out.", looks)
        for name, figure in figures.items():
            figure.suptitle(f"{title(game)}: {figure.get_suptitle()}", fontsize=11)
            for suffix in formats:
                path = target / f"{name}-{game.replace('/', '-')}.{suffix}"
                with replacing(path) as temporary, matplotlib.rc_context({"svg.hashsalt": "gramian"}):
                    figure.savefig(temporary, format=suffix, dpi=DPI, metadata=METADATA.get(suffix))
                drawn.append(path)
    return drawn


def sparsity_figure(points: Sequence[Point], styles: Styles, control: str = CONTROL) -> "Figure":
    """Active features of a state and activity of a feature, a row of histograms per arm, and sparsity_ε."""
    arms = told_apart(list(styles), control)
    some = f" ({len(arms)} of {len(styles)} arms)" if len(arms) < len(styles) else ""
    figure = _empty(f"features of the trained agents{some}", width=12, height=max(4, 1.6 + 0.9 * len(arms)))
    grid = figure.add_gridspec(len(arms), 3)
    states, features, spare = grid.subplots(sharex="col", sharey="col", squeeze=False).T
    for axes in spare:
        axes.remove()
    thresholds = figure.add_subplot(grid[:, 2])
    for arm, of_states, of_features in zip(arms, states, features, strict=True):
        style = styles[arm]
        _stairs(of_states, series.active_of_states(points, arm), style)
        _stairs(of_features, series.activity_of_features(points, arm), style)
        found = series.sparsity(points, arm)
        _band(thresholds, found._replace(x=np.arange(len(found.x), dtype=np.float64)), arm, style, every=1)
        thresholds.set_xticks(range(len(found.x)), [f"{x:g}" for x in found.x], rotation=45)
    _label_column(states, "share of the features that are active", "share of\nstates", "active features of a state")
    _label_column(features, "share of the states in which it is active", "share of\nfeatures", "activity of a feature")
    _label(thresholds, "threshold ε", "share of |φ| ≤ ε", "sparsity")
    thresholds.set_ylim(0, 1.03)
    _legend(figure, thresholds)
    return figure


def told_apart(arms: Sequence[str], control: str = CONTROL) -> list[str]:
    """Arms whose histograms are shown: all where they are few, else the first, the control and those of ``gram``."""
    if len(arms) <= MOST_HISTOGRAMS:
        return list(arms)
    others = [arm for arm in arms[1:] if arm == control] + [arm for arm in arms[1:] if kind_of(arm) == "gram"]
    chosen = [arms[0], *others][:MOST_HISTOGRAMS] if others else arms[:MOST_HISTOGRAMS]
    return [arm for arm in arms if arm in chosen]


def dynamics_figure(moments: Sequence[Moment], metrics: Sequence[str], prefix: str, styles: Styles) -> "Figure":
    """Six metrics during training, from ``dynamics.csv`` of one game."""
    what = "held-out states during training" if prefix else "features and gradients during training"
    figure, panels = _figure(3, 2, what, width=9, height=9.4)
    for axes, metric in zip(panels, metrics, strict=True):
        for arm, style in styles.items():
            _band(axes, series.during_training(moments, arm, prefix + metric), arm, style)
        _label(axes, "frames", "", TITLES[metric])
        if not prefix and _positive(axes):
            axes.set_yscale("log")
    _legend(figure, panels[0])
    return figure


def growth_figure(measures: Sequence[Measure], styles: Styles) -> "Figure":
    """Growth of log‖g‖ of the head beside that of log‖φ‖ and log|δ| with their shares, ``measures.csv`` of one game."""
    figure, (axes,) = _figure(1, 1, "growth of the head's gradient, first to last tenth of training", width=7, height=4)
    names = {
        "growth_log_head_gradient": "log ‖gradient of the head‖",
        "growth_log_feature_norm": "log ‖φ‖",
        "growth_log_td_error": "log |δ|",
    }
    for place, (arm, style) in enumerate(styles.items()):
        own = [m for m in measures if m.arm == arm and m.measure in names]
        bars = means((m.measure, m.value) for m in own)
        width = 0.8 / len(styles)
        places = np.arange(len(names)) + (place - (len(styles) - 1) / 2) * width
        for where, share in zip(places[1:], series.growth_shares(bars), strict=True):
            if np.isfinite(share):
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0}
                size = 8 if len(styles) <= MOST_HISTOGRAMS else 6
                text_look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": size}
                axes.annotate(f"{share:.0%}", (where, 0), (0, 8), bbox=box, **text_look)
        grown = series.line((m.run, list(names).index(m.measure), m.value) for m in own)
        # lengths of error bars [2, K], none where there is no interval
        errors = None if grown.few else np.nan_to_num(np.stack([grown.mean - grown.low, grown.high - grown.mean]))
        look: dict[str, Any] = {"color": style.color, "hatch": style.hatch, "edgecolor": "white"}
        axes.bar(places, grown.mean, width, yerr=errors, capsize=3, label=arm, **look)
        if grown.few and len(grown.runs) > 1:
            axes.plot(places, grown.runs.T, "o", color="black", markersize=3, markerfacecolor="white")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), list(names.values()))
    _label(axes, "", "growth (1 is a factor of e)", "percentages: share of the gradient's growth")
    _legend(figure, axes)
    return figure


def correlation_figure(measures: Sequence[Measure], folder: Path) -> "Figure":
    """Correlations of the features of each arm's first seed, ordered by clustering; those that do not vary are out."""
    arms = order_arms(row.arm for row in measures)
    columns = min(len(arms), MOST_COLUMNS)
    rows = -(-len(arms) // columns)
    title = "correlation of the features, ordered by clustering"
    figure, panels = _figure(rows, columns, title, 3.6 * columns + 1, 3.7 * rows + 0.3)
    image = None
    for axes in panels[len(arms) :]:
        axes.set_axis_off()
    for axes, arm in zip(panels, arms, strict=False):
        found = series.first_correlation(measures, arm, folder)
        shown = found.matrix if found.matrix.size else np.zeros((1, 1))
        image = axes.imshow(shown, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
        still = found.features - len(found.matrix)
        left_out = f", {still} of {found.features} do not vary" if still else ""
        axes.set_title(f"{arm}, seed {found.seed}{left_out}", fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
    if image is not None:
        figure.colorbar(image, ax=panels, shrink=0.8)
    return figure


def spectrum_figure(points: Sequence[Point], styles: Styles) -> "Figure":
    """Eigenvalues of the covariance, and the share of the variance that the first of them hold."""
    figure, (values, shares) = _figure(1, 2, "spectrum of the features' covariance", width=9, height=4)
    means_shown = []
    for arm, style in styles.items():
        found = series.spectrum(points, arm)
        means_shown.append(found.mean)
        _band(values, found, arm, style)
        _band(shares, series.held_variance(points, arm), arm, style)
    _label(values, "number of the eigenvalue", "eigenvalue", "eigenvalues")
    _label(shares, "number of eigenvalues", "share of the variance", "variance held by the first")
    if _positive(values):
        values.set_yscale("log")
        # what lies far below the largest is rounding, and zero has no place on the axis
        every = np.concatenate(means_shown)
        top = float(np.nanmax(every))
        values.set_ylim(float(every[every > top / SPECTRUM_RANGE].min()) / 3, 3 * top)
    last = max(p.x for p in points if p.curve == "spectrum")
    for axes in (values, shares):
        axes.set_xscale("log")
        axes.set_xlim(0.9, 1.1 * last)  # by hand: where all is NaN there is nothing to go by
    shares.set_ylim(0, 1.03)
    _legend(figure, shares)
    return figure


def _figure(rows: int, columns: int, title: str, width: float, height: float = 3.6) -> "tuple[Figure, list[Axes]]":
    figure = _empty(title, width, height)
    panels = figure.subplots(rows, columns, squeeze=False)
    return figure, list(panels.flat)


def _empty(title: str, width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title)
    return figure


def _label(axes: "Axes", x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    if x == "frames":
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-4, 4))


def _label_column(column: "Sequence[Axes]", x: str, y: str, title: str) -> None:
    """Panels above each other that share an axis: its name below the last, the title above the first."""
    for axes in column:
        _label(axes, x if axes is column[-1] else "", y, title if axes is column[0] else "")


def _legend(figure: "Figure", axes: "Axes") -> None:
    """Names of the arms below all panels, where no line can run through them."""
    handles, names = axes.get_legend_handles_labels()
    room = int(figure.get_figwidth() / (0.75 + 0.085 * max(map(len, names), default=1)))
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(max(1, room), max(1, len(names))), frameon=False
    )


def _band(axes: "Axes", found: Line, arm: str, style: Style, every: int = 0) -> None:
    look: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle, "marker": style.symbol}
    every = every or max(1, len(found.x) // 6)
    axes.plot(found.x, found.mean, label=arm, markersize=4, markevery=every, linewidth=1.4, **look)
    if found.few:
        for run in _few_runs(found):
            axes.plot(found.x, run, color=style.color, alpha=0.6, linewidth=0.5)
    else:
        axes.fill_between(found.x, found.low, found.high, color=style.color, alpha=0.2, linewidth=0)


def _stairs(axes: "Axes", found: Line, style: Style) -> None:
    edges = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    axes.stairs(found.mean, edges, color=style.color, linewidth=1.4)
    if found.few:
        for run in _few_runs(found):
            axes.stairs(run, edges, color=style.color, alpha=0.6, linewidth=0.5)
    else:
        low, high = np.nan_to_num(found.low), np.nan_to_num(found.high)
        axes.stairs(high, edges, baseline=low, color=style.color, alpha=0.2, fill=True, linewidth=0)


def _few_runs(found: Line) -> NDArray[np.float64]:
    """The runs that are drawn in the place of an interval; none for a single one, which is the mean."""
    return found.runs if len(found.runs) > 1 else found.runs[:0]


def _positive(axes: "Axes") -> bool:
    """Whether a logarithmic axis has something to show."""
    return any((np.asarray(line.get_ydata(), np.float64) > 0).any() for line in axes.get_lines())
