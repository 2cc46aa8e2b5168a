"""The figures of a report as PNG and SVG, for papers and slides; legible in black and white."""

import math
import textwrap
from collections.abc import Callable, Mapping
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
from gramian.report import reference
from gramian.report.analysis import Analysis
from gramian.report.differences import Differences, EqualNorm
from gramian.report.differences import differences as differences_of
from gramian.report.features import FIGURES, LABELS, Dynamics
from gramian.report.sweep import Penalty, Sweep
from gramian.report.tables import count_text
from gramian.representation.seeds import MOST_OF_A_RANGE
from gramian.representation.series import Line

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
CONTROL_FIGURE = "differences-control"
"""Name of the figure of differences to the control."""
EQUAL_FIGURE = "differences-equal-norm"
"""Name of the figure of differences to a control at equal norm."""
SIZES = PANELS[:6]
"""Metrics that are sizes."""
DOPAMINE: dict[str, Any] = {"color": "black", "linewidth": 1.0, "linestyle": (0, (6, 2, 1, 2))}
"""How Dopamine's curve is drawn, unlike the thin lines of single seeds."""
BEYOND = 1.04
"""A tick may lie so far beyond the last point, in the axis' margin: the last log is written somewhat before the end."""
LEADS = ((0, 1.0), (0, 2.0), (0, 5.0), (1, 3.0), (2, 2.5))
"""First digits of the steps of an axis, the roundest first."""
_LETTERS_PER_INCH = 15
"""Of the text below a figure, so that it is not cut off."""
MOST_STEPS = 4
"""Between the ticks of an axis of frames."""
NEARLY = 0.9
"""A run of this share of the paper's frames is as long as the paper's: its last episode may be cut off."""


def draw_figures(analysis: Analysis, dynamics: Dynamics, out: Path, equal: EqualNorm | None = None) -> list[Path]:
    """Draw every figure of a report into the folder ``out``, each as PNG and SVG; returns the files."""
    jobs: dict[str, Callable[[], Figure]] = {"learning-curves": lambda: learning_curves(analysis)}
    if analysis.aggregates:
        jobs["median-and-iqm"] = lambda: aggregate_curves(analysis)
        jobs["profiles"] = lambda: profiles(analysis)
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
    folder = output_folder(out)
    written = []
    with matplotlib.rc_context(_RC), Progress(len(jobs), "figures", unit="figure") as progress:
        for name, draw in jobs.items():
            figure = draw()
            for suffix in ("png", "svg"):
                with replacing(folder / f"{name}.{suffix}") as temporary:
                    figure.savefig(temporary, dpi=130, metadata={"Date": None} if suffix == "svg" else None)
                written.append(folder / f"{name}.{suffix}")
            progress.advance(note=name)
    return written


def learning_curves(analysis: Analysis) -> Figure:
    """A panel for each game, with Dopamine's curves, and the paper's final scores if runs are as long.

    Many arms have a panel each in every game, beside the baseline: their bands would hide each other.
    """
    styles = _shown_styles(analysis)
    as_long = [
        reference.atari(game) is not None and frames >= NEARLY * reference.PAPER_FRAMES
        for game, frames in zip(analysis.games, analysis.horizon, strict=True)
    ]

    def draw(axes: Axes, at: int, drawn: Mapping[str, Style], marked: bool = True) -> None:
        game, frames = analysis.games[at], analysis.grid(at)
        for number, (arm, style) in enumerate(drawn.items()):
            seeds = analysis.curves[arm][:, at]
            seeds = seeds[np.isfinite(seeds).any(axis=1)]
            interval = _at(analysis.curve_intervals[arm], at)
            _line(axes, frames, interval, style, shift=number / len(drawn), seeds=seeds, marked=marked)
        row = reference.atari(game)
        if row is not None and as_long[at]:
            for arm in drawn:
                column = reference.PAPER_ARMS.get(kind_of(arm))
                if column:
                    marker = styles[arm].symbol
                    axes.plot(
                        frames[-1] * 1.04, float(row[column]), marker, color=styles[arm].color, markersize=4,
                        markerfacecolor="none", clip_on=False,
                    )  # fmt: skip
        curve = reference.dopamine_curve(game)
        if curve is not None:
            shown = curve.frames <= frames[-1]
            axes.plot(curve.frames[shown], curve.returns.mean(0)[shown], **DOPAMINE)

    extra = []
    if any(reference.atari(game) for game in analysis.games):
        extra.append(Line2D([], [], **DOPAMINE, label="Dopamine DQN (Adam)"))
    if any(as_long):
        extra.append(
            Line2D([], [], color="black", marker="o", markerfacecolor="none", linestyle="", label="paper, final")
        )
    if analysis.curves_by_arm():
        return _beside_baseline(analysis, styles, lambda axes, at, pair: draw(axes, at, pair, marked=False), extra)
    return _grid(analysis, styles, lambda axes, at: draw(axes, at, styles), analysis.axis_words, extra)


def metric_grid(analysis: Analysis, dynamics: Dynamics, metric: str) -> Figure:
    """One metric of the features on every game: mean over seeds and its interval."""
    styles = _shown_styles(analysis)

    def draw(axes: Axes, at: int) -> None:
        by_arm = dynamics.get(analysis.games[at], {}).get(metric, {})
        for number, arm in enumerate(arm for arm in styles if arm in by_arm):
            _metric_line(axes, by_arm[arm], styles[arm], shift=number / len(styles))
        if by_arm:
            _scale(axes, metric, by_arm)

    return _grid(analysis, styles, draw, LABELS[metric], [])


def game_features(analysis: Analysis, dynamics: Dynamics, game: str) -> Figure:
    """The paper's six panels of one game, and what else says what became of the features: mean and interval."""
    styles = _shown_styles(analysis)
    metrics = [name for name in PANELS if name in dynamics[game]]
    columns = min(3, len(metrics))
    rows = math.ceil(len(metrics) / columns)
    width = max(4.6, 2.8 * columns)
    legend_columns = _legend_columns(list(styles), width)
    top = 0.65 + 0.17 * math.ceil(len(styles) / legend_columns)
    height = 1.9 * rows + 0.4 + top
    figure = Figure(figsize=(width, height))
    panels = _panels(figure, len(metrics), columns)
    figure.subplots_adjust(0.55 / width, 0.45 / height, 1 - 0.15 / width, 1 - top / height, wspace=0.25, hspace=0.45)
    for axes, metric in zip(panels, metrics, strict=True):
        by_arm = dynamics[game][metric]
        for number, arm in enumerate(arm for arm in styles if arm in by_arm):
            _metric_line(axes, by_arm[arm], styles[arm], shift=number / len(styles))
        _scale(axes, metric, by_arm)
        _frame_ticks(axes)
        axes.set_title(LABELS[metric], fontsize=8)
    figure.suptitle(reference.title(game), fontsize=9, y=1 - 0.06 / height, va="top")
    figure.legend(handles=_handles(styles), loc="upper center", ncols=legend_columns, frameon=False,
                  bbox_to_anchor=(0.5, 1 - 0.2 / height))  # fmt: skip
    figure.supxlabel("frames", fontsize=8, y=0.05 / height)
    return figure


def _scale(axes: Axes, metric: str, by_arm: Mapping[str, Line]) -> None:
    """Ratios of sizes as distances, so that arms with small features can be told apart beside one with large ones."""
    if metric not in SIZES:
        return
    if not all((series.mean > 0).all() for series in by_arm.values()):
        axes.set_ylim(bottom=0)
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 3)))
    axes.yaxis.set_major_formatter("{x:g}")  # powers would need mathematics, which names may not have
    axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def aggregate_curves(analysis: Analysis) -> Figure:
    """Median and IQM of the human-normalised learning curves."""
    styles = _shown_styles(analysis)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    share = np.linspace(0, 100, len(analysis.grid(0)) + 1)[1:]
    for axes, name, label in zip(
        figure.subplots(1, 2), ("median_curve", "iqm_curve"), ("median", "interquartile mean"), strict=True
    ):
        for arm in (arm for arm in styles if arm in analysis.aggregates):
            _line(axes, share, getattr(analysis.aggregates[arm], name), styles[arm], arm)
        axes.set_title(f"{label}, {counted(len(analysis.common), 'game')}", loc="left")
        axes.set_xlabel("% of the frames of a run")
        axes.set_ylabel(f"human-normalised ({analysis.options.human})")
    axes.legend(frameon=False)
    return figure


def profiles(analysis: Analysis) -> Figure:
    """Share of runs above each human-normalised score."""
    styles = _shown_styles(analysis)
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for arm in (arm for arm in styles if arm in analysis.aggregates):
        _line(axes, analysis.thresholds, analysis.aggregates[arm].profile, styles[arm], arm)
    axes.set_xlabel(f"human-normalised final score τ ({analysis.options.human})")
    axes.set_ylabel("share of runs above τ")
    axes.set_ylim(0, 1)
    axes.legend(frameon=False)
    return figure


def differences(analysis: Analysis, against: str) -> Figure:
    """Final score less that of one arm, by pairs of the same seed: a panel for each game, a line for each arm.

    Bars are Student's intervals. Of a few seeds, which would make them as wide as the panel, the seeds stand in their
    place, and the title says how many there are; a single seed is hollow. The last panel is the mean of the games, in
    percent of what the baseline learns in them.
    """
    found = differences_of(analysis, against)
    return _differences(analysis, found, found.means())


def equal_norm_differences(analysis: Analysis, equal: EqualNorm) -> Figure:
    """The same less that of a control at the arm's own norm; of the arms that have one in some game."""
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
        _difference_axes(axes, _game_title(analysis.games[at], found.seeds(at)), list(found.pairs))
    if together:
        axes = panels[len(games)]
        for place, (arm, interval) in enumerate(together.items()):
            _difference(axes, place, interval, styles[arm], hollow=math.isnan(float(interval.low)))
        axes.set_facecolor("#f2f2f2")
        _difference_axes(axes, f"together, % of what {analysis.options.baseline} learns", list(found.pairs))
    what = f"final score less that of {found.against}, pairs of the same seed"
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


def kappa_choice(sweep: Sweep, baseline: str) -> Figure:
    """Score against κ, the centred penalties beside the uncentred ones; a ring is around the chosen κ."""
    styles = arm_styles(list(dict.fromkeys(kind_of(penalty.name) for penalty in sweep.penalties)))
    groups: list[tuple[str, list[Penalty]]] = [
        ("centred, or without centring", [penalty for penalty in sweep.penalties if penalty.centered]),
        ("uncentred", [penalty for penalty in sweep.penalties if not penalty.centered]),
    ]
    groups = [(title, own) for title, own in groups if own]
    figure = Figure(figsize=(4.6 * len(groups) + 1, 3.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(groups), sharey=True))
    for axes, (title, penalties) in zip(panels, groups, strict=True):
        if sweep.baseline is not None:
            estimate, low, high = (float(end) for end in sweep.baseline)
            axes.axhline(estimate, color="black", linewidth=0.9, label=baseline)
            axes.axhspan(low, high, color="black", alpha=0.1, linewidth=0)
        for penalty in penalties:
            style = styles[kind_of(penalty.name)]
            kappas = np.array([setting.kappa for setting in penalty.settings])
            scores = Interval(*(np.array([float(s.score[end]) for s in penalty.settings]) for end in range(3)))
            _line(axes, kappas, scores, style, penalty.name, every=1)
            chosen = penalty.chosen
            axes.plot(chosen.kappa, float(chosen.score.estimate), "o", markersize=10, markerfacecolor="none",
                      markeredgecolor=style.color, markeredgewidth=1.4)  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("κ")
        axes.set_title(title, loc="left")
        axes.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    panels[0].set_ylabel(f"score: 0 worst arm, 1 best arm; {counted(len(sweep.games), 'game')}")
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
    """End of an axis of gains in percent: of a few games every interval has room, of many nine bars of ten.

    Examples
    --------
    >>> gain_limit([Interval(np.array([0.1, 0.2]), np.array([0.0, 0.1]), np.array([0.2, 0.4]))])
    42.0
    """
    limit = robust_limit(100.0 * np.concatenate([gain.estimate for gain in gains]))
    ends = np.abs(np.concatenate([end for gain in gains for end in gain]))
    few = len(gains[0].estimate) <= FEW_GAMES and np.isfinite(ends).any()
    return max(limit, round(105.0 * float(np.nanmax(ends)), 6)) if few else limit


def robust_limit(percent: Array) -> float:
    """End of an axis that shows nine of ten bars whole, so that one huge gain does not flatten the others.

    Examples
    --------
    >>> robust_limit(np.array([*range(1, 11), 5000.0]))
    13.0
    """
    sizes = np.abs(percent[np.isfinite(percent)])
    if not len(sizes) or not sizes.max():
        return 1.0
    return float(min(sizes.max() * 1.1, 1.3 * np.quantile(sizes, 0.9)))


def _grid(
    analysis: Analysis, styles: dict[str, Style], draw: Callable[[Axes, int], None], label: str, extra: list[Line2D]
) -> Figure:
    games = len(analysis.games)
    columns = min(7, max(1, math.ceil(math.sqrt(games))))
    rows = math.ceil(games / columns)
    panel = (2.7, 2.1) if games <= FEW_GAMES else (1.9, 1.5)
    width = max(4.6, panel[0] * columns)
    names = [*styles, *(str(line.get_label()) for line in extra)]
    legend_columns = _legend_columns(names, width)
    top = 0.45 + 0.17 * math.ceil(len(names) / legend_columns)
    height = panel[1] * rows + 0.45 + top
    figure = Figure(figsize=(width, height))  # a layout engine would take a minute for 49 panels
    panels = _panels(figure, games, columns)
    figure.subplots_adjust(0.75 / width, 0.45 / height, 1 - 0.15 / width, 1 - top / height, wspace=0.3, hspace=0.4)
    for at, axes in enumerate(panels):
        draw(axes, at)
        axes.set_title(_game_title(analysis.games[at], _most_seeds(analysis, at)), fontsize=8)
        _frame_ticks(axes)
        if axes.get_yscale() == "linear":
            axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))
    figure.legend(handles=[*_handles(styles), *extra], loc="upper center", ncols=legend_columns, frameon=False)
    figure.supxlabel(_frames_words(analysis, len(styles)), fontsize=8, y=0.05 / height)
    figure.supylabel(label, fontsize=8, x=0.05 / width)
    return figure


def _beside_baseline(
    analysis: Analysis,
    styles: dict[str, Style],
    draw: Callable[[Axes, int, Mapping[str, Style]], None],
    extra: list[Line2D],
) -> Figure:
    """A row for each game, and in it a panel for each arm: its line is solid, and that of the baseline dashed."""
    baseline = analysis.options.baseline
    dashed = replace(styles[baseline], dash="dash")
    arms = [arm for arm in styles if arm != baseline]
    width, height = 1.2 * len(arms) + 1.15, 1.2 * len(analysis.games) + 1.05
    figure = Figure(figsize=(width, height))
    panels = figure.subplots(len(analysis.games), len(arms), sharex="row", sharey="row", squeeze=False)
    figure.subplots_adjust(1.0 / width, 0.45 / height, 1 - 0.15 / width, 1 - 0.6 / height, wspace=0.1, hspace=0.35)
    for at, row in enumerate(panels):
        for arm, axes in zip(arms, row, strict=True):
            draw(axes, at, {baseline: dashed, arm: replace(styles[arm], dash="solid")})
            _frame_ticks(axes)
        name = _game_title(analysis.games[at], _most_seeds(analysis, at)).replace(" seed", "\N{NO-BREAK SPACE}seed")
        row[0].set_ylabel(textwrap.fill(name, 14, break_long_words=False), fontsize=8)
        row[0].yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))
    figure.align_ylabels(panels[:, 0])
    size = min(8.0, 8.0 * 16 / max(map(len, arms)))  # so many letters are as wide as a panel
    for arm, axes in zip(arms, panels[0], strict=True):
        axes.set_title(arm, fontsize=size)
    handles = [Line2D([], [], color=dashed.color, linestyle=dashed.linestyle, label=baseline), *extra]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False)
    figure.supxlabel(_frames_words(analysis, len(styles)), fontsize=8, y=0.05 / height)
    figure.supylabel(analysis.axis_words, fontsize=8, x=0.05 / width)
    return figure


def _frames_words(analysis: Analysis, shown: int) -> str:
    arms = len(analysis.arms)
    return f"frames ({shown} of {arms} arms; the page has all)" if shown < arms else "frames"


def _most_seeds(analysis: Analysis, game: int) -> int:
    return max(int(np.isfinite(curves[:, game]).any(axis=-1).sum()) for curves in analysis.curves.values())


def _game_title(game: str, seeds: int) -> str:
    """A game's name, and how many seeds it has where they are few.

    Examples
    --------
    >>> _game_title("pong", 10), _game_title("pong", 1)
    ('Pong', 'Pong (1 seed)')
    """
    name = reference.title(game)
    return f"{name} ({counted(seeds, 'seed')})" if seeds <= MOST_OF_A_RANGE else name


def _handles(styles: dict[str, Style]) -> list[Line2D]:
    """What a legend shows of each arm."""
    return [
        Line2D([], [], color=style.color, linestyle=style.linestyle, label=arm, marker=style.symbol, markersize=4)
        for arm, style in styles.items()
    ]


def _frame_ticks(axes: Axes) -> None:
    axes.tick_params(labelsize=6, which="both")
    if math.isfinite(end := float(axes.dataLim.x1)) and end > 0:
        axes.set_xticks(frame_ticks(end))
    axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(_frames_label))


def frame_ticks(end: float) -> list[float]:
    """From 0 to the end of training or near it, at two to four even steps of a round number of frames.

    Of the steps that come equally near to the end the roundest is taken, and of these the smallest.

    Examples
    --------
    >>> [[f"{tick:g}" for tick in frame_ticks(end)] for end in (3_990_000, 1_000, 900)]
    [['0', '1e+06', '2e+06', '3e+06', '4e+06'], ['0', '500', '1000'], ['0', '300', '600', '900']]
    """
    size = 10.0 ** math.floor(math.log10(end))
    steps = [(rank, lead * scale) for rank, lead in LEADS for scale in (size, size / 10)]
    counted_steps = ((rank, step, math.floor(end * BEYOND / step)) for rank, step in steps)
    fitting = [(rank, step, count) for rank, step, count in counted_steps if 2 <= count <= MOST_STEPS]
    _, step, count = min(fitting, key=lambda one: (round(max(0.0, 1 - one[2] * one[1] / end), 2), one[0], one[1]))
    return [step * at for at in range(count + 1)]


def _legend_columns(names: list[str], width_inches: float) -> int:
    """As many columns as have room for the longest name with its line.

    Examples
    --------
    >>> _legend_columns(["dqn", "gram"], 4.6), _legend_columns(["dqn", "gram-unbiased", "norm (matched)"] * 2, 4.6)
    (2, 2)
    """
    widest = 0.55 + 0.075 * max(map(len, names))
    return min(len(names), max(1, int(width_inches / widest)))


def _frames_label(frames: float, _position: int | None) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(frames) >= size:
            return f"{frames / size:g}{letter}"
    return f"{frames:g}"


def _metric_line(axes: Axes, line: Line, style: Style, shift: float) -> None:
    interval = Interval(line.mean, line.low, line.high)
    _line(axes, line.x, interval, style, shift=shift, seeds=line.runs)


def _line(
    axes: Axes,
    x: Array,
    interval: Interval,
    style: Style,
    label: str | None = None,
    every: int = 0,
    shift: float = 0,
    seeds: Array | None = None,
    marked: bool = True,
) -> None:
    """A line with its band; ``shift`` moves the markers by a share of their distance, so that arms do not hide them.

    Where ``seeds`` ``[S, K]`` are given and so few that the band would be their range, they stand in its place.
    """
    step = every or max(1, len(x) // 5)
    axes.plot(
        x, interval.estimate, color=style.color, linestyle=style.linestyle, linewidth=1.1, label=label,
        marker=style.symbol if marked else "", markevery=(int(shift * step), step), markersize=3,
    )  # fmt: skip
    if seeds is None or len(seeds) > MOST_OF_A_RANGE:
        axes.fill_between(x, interval.low, interval.high, color=style.color, alpha=0.18, linewidth=0)
        return
    for seed in seeds if len(seeds) > 1 else ():
        axes.plot(x, seed, color=style.color, linestyle=style.linestyle, linewidth=0.5, alpha=0.7)


def _at(interval: Interval, game: int) -> Interval:
    return Interval(*(end[:, game] for end in interval))
