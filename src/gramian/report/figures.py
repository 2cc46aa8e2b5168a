"""The figures of a report as PNG and SVG, for papers and slides; legible in black and white."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gramian.core import statistics
from gramian.core.arms import Style, arm_styles, kind_of
from gramian.core.files import output_folder, replacing
from gramian.core.progress import Progress, counted
from gramian.core.statistics import FEW_GAMES, Array, Interval
from gramian.report import panels as described
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.differences import Differences, EqualNorm
from gramian.report.differences import differences as differences_of
from gramian.report.features import FIGURES, LABELS, Dynamics
from gramian.report.panels import Panel, game_title
from gramian.report.sweep import Sweep
from gramian.report.tables import count_text
from gramian.representation.seeds import MOST_OF_A_RANGE

_RC: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.hashsalt": "gramian",  # the same study gives the same bytes
    "text.parse_math": False,  # a name may hold dollar signs
}
PANELS = (
    "feature_norm", "feature_cross", "feature_std", "grad_norm_body", "grad_norm_head", "td_error", "sparsity",
    "held_out.mean_abs_correlation", "held_out.dormant_share_0.025", "held_out.effective_rank", "held_out.srank",
    "held_out.participation_ratio",
)  # fmt: skip
"""Metrics of the figure of one game; the first six are the paper's."""
CONTROL_FIGURE, EQUAL_FIGURE = "differences-control", "differences-equal-norm"
"""Names of the figures of differences to the control, and to a control at equal norm."""
DOPAMINE: dict[str, Any] = {"color": "black", "linewidth": 1.0, "linestyle": (0, (6, 2, 1, 2))}
"""How Dopamine's curve is drawn, unlike the thin lines of single seeds."""
BEYOND = 1.04
"""A tick may lie so far beyond the last point, in the axis' margin: the last log is written somewhat before the end."""
LEADS = ((0, 1.0), (0, 2.0), (0, 5.0), (1, 3.0), (2, 2.5))
"""First digits of the steps of an axis, the roundest first."""
MOST_STEPS = 4
"""Between the ticks of an axis of frames."""
NEARLY = 0.9
"""A run of this share of the paper's frames is as long as the paper's: its last episode may be cut off."""
_LETTERS_PER_INCH = 15
"""Of the text below a figure, so that it is not cut off."""


def draw_figures(analysis: Analysis, dynamics: Dynamics, out: Path, equal: EqualNorm | None = None) -> list[Path]:
    """Draw every figure of a report into the folder ``out``, each as PNG and SVG; returns the files."""
    jobs: dict[str, Callable[[], Figure]] = {"learning-curves": lambda: learning_curves(analysis)}
    if analysis.aggregates:
        jobs["median-and-iqm"] = partial(aggregate_curves, analysis)
        jobs["profiles"] = partial(profiles, analysis)
    if any(np.isfinite(comparison.gain.estimate).any() for comparison in analysis.comparisons.values()):
        jobs["auc-gain"] = lambda: auc_gains(analysis)
    few = len(analysis.games) <= FEW_GAMES
    if analysis.comparisons and few:
        jobs["differences"] = lambda: differences(analysis, analysis.options.baseline)
    if analysis.control and few:
        jobs[CONTROL_FIGURE] = lambda: differences(analysis, analysis.control)
    if equal is not None and equal.judged(analysis.shown())[0].pairs and few:
        jobs[EQUAL_FIGURE] = lambda: equal_norm_differences(analysis, equal)
    if (sweep := analysis.sweep) is not None:
        jobs["kappa"] = lambda: kappa_choice(sweep, analysis.options.baseline)
    for metric in FIGURES:
        if any(metric in by for by in dynamics.values()):
            jobs[metric.replace("_", "-").replace(".", "-")] = partial(metric_grid, analysis, dynamics, metric)
    for game in dynamics if few else ():
        jobs[f"features-{game.replace('/', '-')}"] = partial(game_features, analysis, dynamics, game)
    return draw(jobs, out)


def draw(jobs: Mapping[str, Callable[[], Figure]], out: Path) -> list[Path]:
    """Draw figures into the folder ``out``, each as PNG and SVG by its name; returns the files."""
    folder = output_folder(out)
    written = []
    with matplotlib.rc_context(_RC), Progress(len(jobs), "figures", unit="figure") as progress:
        for name, job in jobs.items():
            figure = job()
            for suffix in ("png", "svg"):
                with replacing(folder / f"{name}.{suffix}") as temporary:
                    figure.savefig(temporary, dpi=130, metadata={"Date": None} if suffix == "svg" else None)
                written.append(folder / f"{name}.{suffix}")
            progress.advance(note=name)
    return written


# ---- lines ----------------------------------------------------------------------------------------------------------


def learning_curves(analysis: Analysis) -> Figure:
    """A panel for each game, with Dopamine's curves, and the paper's final scores if runs are as long.

    Many arms have a panel each in every game, beside the baseline: their bands would hide each other.
    """
    styles, panels = _shown_styles(analysis), described.curves(analysis)
    as_long = [
        reference.atari(game) is not None and frames >= NEARLY * reference.PAPER_FRAMES
        for game, frames in zip(analysis.games, analysis.horizon, strict=True)
    ]

    def publish(axes: Axes, at: int, drawn: Mapping[str, Style]) -> None:
        game, end = analysis.games[at], float(analysis.horizon[at])
        row = reference.atari(game) or {}
        for arm in drawn if as_long[at] else ():
            if column := reference.PAPER_ARMS.get(kind_of(arm)):
                axes.plot(end * 1.04, float(row[column]), styles[arm].symbol, color=styles[arm].color, markersize=4,
                          markerfacecolor="none", clip_on=False)  # fmt: skip
        if (curve := reference.dopamine_curve(game)) is not None:
            shown = curve.frames <= end
            axes.plot(curve.frames[shown], curve.returns.mean(0)[shown], **DOPAMINE)

    extra = []
    if any(reference.atari(game) for game in analysis.games):
        extra.append(Line2D([], [], **DOPAMINE, label="Dopamine DQN (Adam)"))
    if any(as_long):
        open_marker: Any = {"color": "black", "marker": "o", "markerfacecolor": "none", "linestyle": ""}
        extra.append(Line2D([], [], **open_marker, label="paper, final"))
    if analysis.curves_by_arm():
        return _beside_baseline(analysis, panels, styles, publish, extra)
    figure = _grid(panels, styles, label=analysis.axis_words, below=_frames_words(analysis, len(styles)), extra=extra)
    for at, axes in enumerate(_shown(figure)):
        publish(axes, at, styles)
        _frame_ticks(axes)
    return figure


def metric_grid(analysis: Analysis, dynamics: Dynamics, metric: str) -> Figure:
    """One metric of the features on every game: mean over seeds and its interval."""
    styles, panels = _shown_styles(analysis), described.metric(analysis, dynamics, metric)
    return _grid(panels, styles, label=LABELS[metric], below=_frames_words(analysis, len(styles)))


def game_features(analysis: Analysis, dynamics: Dynamics, game: str) -> Figure:
    """The paper's six panels of one game, and what else says what became of the features: mean and interval."""
    panels = described.features(analysis, dynamics, game, PANELS)
    return _grid(panels, _shown_styles(analysis), heading=reference.title(game), most_columns=3, size=(2.8, 1.9))


def line_figure(analysis: Analysis, panels: Sequence[Panel], label: str) -> Figure:
    """Panels of the arms that the figures show, beside each other."""
    return _grid(panels, _shown_styles(analysis), label=label, below=panels[0].x, size=(4.0, 2.6))


def aggregate_curves(analysis: Analysis) -> Figure:
    """Median and IQM of the human-normalised learning curves."""
    panels = described.aggregates(analysis)
    both = [panels["median"], panels["iqm"]]
    return line_figure(analysis, both, f"human-normalised ({analysis.options.human})")


def profiles(analysis: Analysis) -> Figure:
    """Share of runs above each human-normalised score."""
    panel = described.aggregates(analysis)["profile"]
    below = f"{panel.x} ({analysis.options.human})"
    return _grid([panel], _shown_styles(analysis), label="share of runs above τ", below=below, size=(5.2, 2.6))


def kappa_choice(sweep: Sweep, baseline: str) -> Figure:
    """Score against κ, the centred penalties beside the uncentred ones; a ring is around the chosen κ."""
    kinds = arm_styles(list(dict.fromkeys(kind_of(penalty.name) for penalty in sweep.penalties)))
    styles = {penalty.name: kinds[kind_of(penalty.name)] for penalty in sweep.penalties}
    panels = described.kappas(sweep)
    label = f"score: 0 worst arm, 1 best arm; {counted(len(sweep.games), 'game')}"
    extra = [Line2D([], [], color="black", linewidth=0.9, label=baseline)] if sweep.baseline is not None else []
    figure = _grid(panels, styles, label=label, below="κ", size=(4.6, 2.9), extra=extra, sharey=True)
    for axes, panel in zip(_shown(figure), panels, strict=True):
        if panel.level is not None:
            level, low, high = map(float, panel.level)
            axes.axhline(level, color="black", linewidth=0.9)
            axes.axhspan(low, high, color="black", alpha=0.1, linewidth=0)
        for name, at in panel.rings.items():
            line = panel.lines[name]
            axes.plot(line.x[at], line.mean[at], "o", markersize=10, markerfacecolor="none",
                      markeredgecolor=styles[name].color, markeredgewidth=1.4)  # fmt: skip
    return figure


def _grid(
    panels: Sequence[Panel],
    styles: Mapping[str, Style],
    *,
    label: str = "",
    below: str = "frames",
    heading: str = "",
    extra: Sequence[Line2D] = (),
    most_columns: int = 7,
    size: tuple[float, float] = (0.0, 0.0),
    sharey: bool = False,
) -> Figure:
    """Panels in rows, with a legend above them."""
    columns = min(most_columns, max(1, len(panels) if any(size) else math.ceil(math.sqrt(len(panels)))))
    panel = size if any(size) else (2.7, 2.1) if len(panels) <= FEW_GAMES else (1.9, 1.5)
    rows, width = math.ceil(len(panels) / columns), max(4.6, panel[0] * columns)
    handles = [*_handles({arm: style for arm, style in styles.items() if _any(panels, arm)}), *extra]
    legend_columns = _legend_columns([str(handle.get_label()) for handle in handles], width)
    top = 0.45 + 0.2 * bool(heading) + 0.17 * math.ceil(len(handles) / legend_columns)
    height = panel[1] * rows + 0.45 + top
    figure = Figure(figsize=(width, height))  # a layout engine would take a minute for 49 panels
    found = _panels(figure, len(panels), columns, sharey=sharey)
    figure.subplots_adjust(0.75 / width, 0.45 / height, 1 - 0.15 / width, 1 - top / height, wspace=0.3, hspace=0.4)
    for axes, own in zip(found, panels, strict=True):
        _draw(axes, own, styles)
        axes.set_title(own.title, fontsize=8)
    figure.suptitle(heading, fontsize=9, y=1 - 0.06 / height, va="top")
    figure.legend(handles=handles, loc="upper center", ncols=legend_columns, frameon=False,
                  bbox_to_anchor=(0.5, 1 - 0.2 * bool(heading) / height))  # fmt: skip
    figure.supxlabel(below, fontsize=8, y=0.05 / height)
    figure.supylabel(label, fontsize=8, x=0.05 / width)
    return figure


def _any(panels: Sequence[Panel], arm: str) -> bool:
    return any(arm in panel.lines for panel in panels)


def _shown(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


def _beside_baseline(
    analysis: Analysis,
    panels: Sequence[Panel],
    styles: Mapping[str, Style],
    publish: Callable[[Axes, int, Mapping[str, Style]], None],
    extra: Sequence[Line2D],
) -> Figure:
    """A row for each game, and in it a panel for each arm: its line is solid, and that of the baseline dashed."""
    baseline = analysis.options.baseline
    dashed = replace(styles[baseline], dash="dash")
    arms = [arm for arm in styles if arm != baseline]
    width, height = 1.2 * len(arms) + 1.15, 1.2 * len(panels) + 1.05
    figure = Figure(figsize=(width, height))
    found = figure.subplots(len(panels), len(arms), sharex="row", sharey="row", squeeze=False)
    figure.subplots_adjust(1.0 / width, 0.45 / height, 1 - 0.15 / width, 1 - 0.6 / height, wspace=0.1, hspace=0.35)
    for at, (panel, row) in enumerate(zip(panels, found, strict=True)):
        for arm, axes in zip(arms, row, strict=True):
            pair = {baseline: dashed, arm: replace(styles[arm], dash="solid")}
            _draw(axes, panel, pair, marked=False)
            publish(axes, at, pair)
            _frame_ticks(axes)
        name = panel.title.replace(" seed", "\N{NO-BREAK SPACE}seed")
        row[0].set_ylabel(textwrap.fill(name, 14, break_long_words=False), fontsize=8)
        row[0].yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))
    figure.align_ylabels(found[:, 0])
    size = min(8.0, 8.0 * 16 / max(map(len, arms)))  # so many letters are as wide as a panel
    for arm, axes in zip(arms, found[0], strict=True):
        axes.set_title(arm, fontsize=size)
    handles = [Line2D([], [], color=dashed.color, linestyle=dashed.linestyle, label=baseline), *extra]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False)
    figure.supxlabel(_frames_words(analysis, len(styles)), fontsize=8, y=0.05 / height)
    figure.supylabel(analysis.axis_words, fontsize=8, x=0.05 / width)
    return figure


def _draw(axes: Axes, panel: Panel, styles: Mapping[str, Style], *, marked: bool = True) -> None:
    """The lines of a panel. Markers are moved by a share of their distance, so that arms do not hide them."""
    there = [arm for arm in styles if arm in panel.lines]
    for number, arm in enumerate(there):
        line, style = panel.lines[arm], styles[arm]
        step = 1 if panel.rings else max(1, len(line.x) // 5)
        color: Any = {"color": style.color, "linestyle": style.linestyle}
        axes.plot(line.x, line.mean, **color, linewidth=1.1, marker=style.symbol if marked else "",
                  markevery=(int(number / len(styles) * step), step), markersize=3)  # fmt: skip
        if len(line.runs) and line.few:  # the band would be their range
            for run in line.runs if len(line.runs) > 1 else ():
                axes.plot(line.x, run, **color, linewidth=0.5, alpha=0.7)
        else:
            axes.fill_between(line.x, line.low, line.high, color=style.color, alpha=0.18, linewidth=0)
    if panel.across == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    if panel.up == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 3)))
        axes.yaxis.set_major_formatter("{x:g}")  # powers would need mathematics, which names may not have
        axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    else:
        axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))
    if panel.zero:
        axes.set_ylim(0, panel.top or None)
    axes.tick_params(labelsize=6, which="both")
    if panel.x == "frames":
        _frame_ticks(axes)


# ---- differences and gains -------------------------------------------------------------------------------------------


def differences(analysis: Analysis, against: str) -> Figure:
    """Final score minus that of one arm, by pairs of the same seed: a panel for each game, a line for each arm.

    Bars are Student's intervals. Of a few seeds, which would make them as wide as the panel, the seeds stand in their
    place, and the title says how many there are; a single seed is hollow. The last panel is the mean of the games, in
    percent of what the baseline learns in them.
    """
    found = differences_of(analysis, against)
    return _differences(analysis, found, found.means())


def equal_norm_differences(analysis: Analysis, equal: EqualNorm) -> Figure:
    """The same minus that of a control at the arm's own norm; of the arms that have one in some game."""
    return _differences(analysis, *equal.judged(analysis.shown()))


def _differences(analysis: Analysis, found: Differences, together: Mapping[str, Interval]) -> Figure:
    """Differences in each game, and together, where there are such."""
    styles = _shown_styles(analysis)
    games = [at for at in range(len(analysis.games)) if found.seeds(at)]
    count = max(1, len(games) + bool(together))
    columns = min(3 if count <= 6 else 4, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(1.9 * columns + 1.3, rows * (0.2 * len(found.pairs) + 0.9) + 0.4), layout="constrained")
    panels = _panels(figure, len(games) + bool(together), columns, sharey=True)
    for axes, at in zip(panels, games, strict=False):
        _game_differences(axes, found, at, styles)
        _difference_axes(axes, game_title(analysis.games[at], found.seeds(at)), list(found.pairs))
    if together:
        axes = panels[len(games)]
        for place, (arm, interval) in enumerate(together.items()):
            _difference(axes, place, interval, styles[arm], hollow=math.isnan(float(interval.low)))
        axes.set_facecolor("#f2f2f2")
        _difference_axes(axes, f"together, % of what {analysis.options.baseline} learns", list(found.pairs))
    what = f"final score minus that of {found.against}, pairs of the same seed"
    counts = [found.seeds(at) for at in games]
    if max(counts, default=0) > MOST_OF_A_RANGE:
        what += "\nbars: Student's 95 % interval"
    elif together and 1 not in counts:
        what += "\nbars of the last panel: Student's 95 % interval"
    if any(1 < seeds <= MOST_OF_A_RANGE for seeds in counts):
        what += "\nsmall circles: single seeds, where they are few"
    if 1 in counts:
        what += "\nhollow: one seed, or a mean with games of one seed, whose spread is unknown"
    wide = int(figure.get_figwidth() * _LETTERS_PER_INCH)
    figure.supxlabel("\n".join(textwrap.fill(line, wide) for line in what.splitlines()), fontsize=8)
    return figure


def _game_differences(axes: Axes, found: Differences, game: int, styles: dict[str, Style]) -> None:
    """The arms in one game: the mean of the pairs with its interval, or the pairs where they are few."""
    for place, arm in enumerate(found.pairs):
        pairs = found.pairs[arm][:, game]
        seeds = pairs[np.isfinite(pairs)]
        interval = found.in_game(arm, game)
        if len(seeds) <= MOST_OF_A_RANGE:
            interval = Interval(interval.estimate, np.asarray(np.nan), np.asarray(np.nan))
            if len(seeds) > 1:  # above the marker of their mean
                places = np.full(len(seeds), place)
                axes.plot(seeds, places, "o", color=styles[arm].color, markersize=3.2, mfc="white", zorder=3)
        _difference(axes, place, interval, styles[arm], hollow=len(seeds) < statistics.FEWEST_SEEDS)


def _difference(axes: Axes, place: int, interval: Interval, style: Style, *, hollow: bool) -> None:
    estimate, low, high = (float(end) for end in interval)
    error = np.nan_to_num(np.abs(np.array([[low], [high]]) - estimate))
    filled = {"markerfacecolor": "none", "markeredgewidth": 0.8} if hollow else {"markeredgewidth": 1.6}
    axes.errorbar(estimate, place, xerr=error, fmt=style.symbol, color=style.color, markersize=6, elinewidth=1.1,
                  capsize=0 if math.isnan(low) else 2, **filled)  # fmt: skip


def _difference_axes(axes: Axes, title: str, arms: list[str]) -> None:
    axes.axvline(0, color="black", linewidth=0.7)
    axes.set_title(title, fontsize=8)
    axes.set_yticks(range(len(arms)), arms)
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))


def auc_gains(analysis: Analysis) -> Figure:
    """AUC gain over the baseline of every game, one panel for each arm, sorted by the first, all of one scale."""
    styles = _shown_styles(analysis)
    comparisons = {arm: comparison for arm, comparison in analysis.comparisons.items() if arm in styles}
    games, columns = len(analysis.games), min(3, len(comparisons))
    rows = math.ceil(len(comparisons) / columns)
    size = 3.2 * columns + 1.2, rows * max(1.7, 0.17 * games + 1.2)
    figure = Figure(figsize=size, layout="constrained")
    panels = _panels(figure, len(comparisons), columns, sharey=True)
    first = np.nan_to_num(next(iter(comparisons.values())).gain.estimate, nan=-np.inf)
    order = [int(at) for at in np.argsort(first)]
    limit = gain_limit([comparison.gain for comparison in comparisons.values()])
    for axes, (arm, comparison) in zip(panels, comparisons.items(), strict=False):
        percent = [100.0 * end for end in comparison.gain]
        estimate, low, high = (end[order] for end in percent)
        errors = np.nan_to_num(np.stack([estimate - low, high - estimate]).clip(0))
        hatches = ["" if value >= 0 else "////" for value in estimate]
        axes.barh(np.arange(games), estimate, color=styles[arm].color, hatch=hatches, edgecolor="white", linewidth=0.3)
        axes.errorbar(estimate, np.arange(games), xerr=errors, fmt="none", ecolor="black", elinewidth=0.7)
        axes.set_xlim(-limit, limit)
        axes.axvline(0, color="black", linewidth=0.7)
        for at in np.flatnonzero(np.isnan(estimate)):  # the baseline plays as at random, or there is no run
            axes.text(0, float(at), " undefined", va="center", fontsize=6)
        axes.set_title(f"{arm}: won-tied-lost {count_text(comparison.auc)}", loc="left", fontsize=8)
        axes.set_xlabel(f"AUC gain over {analysis.options.baseline} (%)")
        axes.set_yticks(np.arange(games), [reference.title(analysis.games[at]) for at in order])
        axes.set_ylim(-0.6, games - 0.4)
    return figure


def _panels(figure: Figure, count: int, columns: int, *, sharey: bool = False) -> list[Axes]:
    """So many panels in rows; what is left of the last row is empty."""
    rows = max(1, math.ceil(count / columns))
    panels = np.atleast_1d(figure.subplots(rows, columns, sharey=sharey)).ravel()
    for axes in panels[count:]:
        axes.set_axis_off()
    return list(panels[:count])


def _shown_styles(analysis: Analysis) -> dict[str, Style]:
    """Looks of the arms that the figures show; those that are left out keep theirs."""
    styles = arm_styles(analysis.arms)
    return {arm: styles[arm] for arm in analysis.shown()}


def gain_limit(gains: list[Interval]) -> float:
    """End of an axis of gains in percent: of a few games every interval has room, of many nine bars of ten."""
    limit = robust_limit(100.0 * np.concatenate([gain.estimate for gain in gains]))
    ends = np.abs(np.concatenate([end for gain in gains for end in gain]))
    few = len(gains[0].estimate) <= FEW_GAMES and np.isfinite(ends).any()
    return max(limit, round(105.0 * float(np.nanmax(ends)), 6)) if few else limit


def robust_limit(percent: Array) -> float:
    """End of an axis that shows nine of ten bars whole, so that one huge gain does not flatten the others."""
    sizes = np.abs(percent[np.isfinite(percent)])
    if not len(sizes) or not sizes.max():
        return 1.0
    return float(min(sizes.max() * 1.1, 1.3 * np.quantile(sizes, 0.9)))


def _frames_words(analysis: Analysis, shown: int) -> str:
    arms = len(analysis.arms)
    return f"frames ({shown} of {arms} arms; the page has all)" if shown < arms else "frames"


def _handles(styles: dict[str, Style]) -> list[Line2D]:
    """What a legend shows of each arm."""
    return [
        Line2D([], [], color=style.color, linestyle=style.linestyle, label=arm, marker=style.symbol, markersize=4)
        for arm, style in styles.items()
    ]


def _frame_ticks(axes: Axes) -> None:
    if math.isfinite(end := float(axes.dataLim.x1)) and end > 0:
        axes.set_xticks(frame_ticks(end))
    axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(_frames_label))


def frame_ticks(end: float) -> list[float]:
    """From 0 to the end of training or near it, at two to four even steps of a round number of frames.

    Of the steps that come equally near to the end the roundest is taken, and of these the smallest.
    """
    size = 10.0 ** math.floor(math.log10(end))
    steps = [(rank, lead * scale) for rank, lead in LEADS for scale in (size, size / 10)]
    counted_steps = ((rank, step, math.floor(end * BEYOND / step)) for rank, step in steps)
    fitting = [(rank, step, count) for rank, step, count in counted_steps if 2 <= count <= MOST_STEPS]
    _, step, count = min(fitting, key=lambda one: (round(max(0.0, 1 - one[2] * one[1] / end), 2), one[0], one[1]))
    return [step * at for at in range(count + 1)]


def _legend_columns(names: list[str], width_inches: float) -> int:
    """As many columns as have room for the longest name with its line."""
    widest = 0.55 + 0.075 * max(map(len, names))
    return min(len(names), max(1, int(width_inches / widest)))


def _frames_label(frames: float, _position: int | None) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(frames) >= size:
            return f"{frames / size:g}{letter}"
    return f"{frames:g}"
