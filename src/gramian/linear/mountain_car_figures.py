"""The figures of ``gramian mountain-car``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.linear.arms import Arm
from gramian.linear.figures import MARKERS, STYLES, plt, save_figure
from gramian.linear.mountain_car import Results
from gramian.linear.mountain_car_tables import ArmSummary, Interval, Summary, label
from gramian.linear.statistics import mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _panels(results: Results, rows: int = 1) -> tuple[Any, list[dict[int, "Axes"]]]:
    """Make a row of panels, one per feature set, the most copies first, as in the paper."""
    order = sorted(results.options.copies, reverse=True)
    figure, panels = plt.subplots(
        rows,
        len(order),
        figsize=(5.4 * len(order), 1.1 + 4.1 * rows),
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    found = [dict(zip(order, row, strict=True)) for row in panels]
    features = {f.copies: f for f in results.features}
    for copies, axes in (item for row in found for item in row.items()):
        f = features[copies]
        words = "no copies" if copies == 0 else "every feature copied" + (f" {copies} times" if copies > 1 else "")
        axes.set_title(f"{words}: d = {f.d}, mean |correlation| {f.uniform:.4f}", fontsize=10)
        axes.grid(alpha=0.3)
    return figure, found


def _finish(figure: Any, axes: "Axes", title: str) -> Any:
    handles, labels = axes.get_legend_handles_labels()
    wide = 2 * axes.get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]  # every panel has one
    figure.legend(handles, labels, loc="outside lower center", ncols=wide, fontsize=8)
    figure.suptitle(title, fontsize=10)
    return figure


def _steps_axes(panels: dict[int, "Axes"]) -> None:
    for axes in panels.values():
        axes.set_yscale("log")
        axes.set_xlabel("step size α·k·d (no unit)")
        low, high = axes.get_ylim()
        ticks = [t for t in (100, 200, 300, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000) if low <= t <= high]
        axes.set_yticks(ticks, [f"{t:,}" for t in ticks])
        axes.minorticks_off()
    next(iter(panels.values())).set_ylabel("steps per episode (mean of all episodes and runs)")


def _curve(axes: "Axes", x: Any, curve: Any, style: int, name: str, *, line: bool = True) -> None:
    mean = curve.mean(axis=1)
    error = np.array([mean_and_error(row)[1] for row in curve])
    look = STYLES[style % len(STYLES)]
    marker = MARKERS[style % len(MARKERS)]
    if line:
        axes.plot(x, mean, label=name, marker=marker, markersize=5, linewidth=1.6, **look)
        axes.fill_between(x, mean - error, mean + error, color=look["color"], alpha=0.2, linewidth=0)
    else:
        axes.plot(
            x, mean, label=name, marker="o", markersize=10, markerfacecolor="none", color="black", linestyle="none"
        )


def paper_figure(results: Results) -> Any:
    """Draw steps per episode over the step size for every λ of the paper's arm; circles are plain learning at α·d."""
    figure, (panels,) = _panels(results)
    x = np.array(results.options.step_sizes)
    for copies, axes in panels.items():
        _curve(axes, x, results.curve(copies, Arm("plain")), 0, "plain, α·d", line=False)
        arms = [a for a in results.arms(copies) if a.form == "reduced" and a.estimator in ("none", "single")]
        for style, arm in enumerate(arms):
            _curve(axes, x, results.curve(copies, arm), style, f"A, λ = {arm.lam:g}")
    _steps_axes(panels)
    return _finish(figure, axes, f"Single-sample decorrelation; mean and standard error of {results.options.runs} runs")


def _best(summary: Summary, copies: int, name: str) -> ArmSummary | None:
    mine = [one for one in summary.arms if one.copies == copies and one.label == name]
    return min(mine, key=lambda one: one.steps.value) if mine else None


CONTROLS = (
    "plain, α·d",
    "A, single-sample",
    "A, two-sample",
    "A, norm alone",
    "plain, α·d, shrinkage",
    "(θ, A), λ = 0",
    "(θ, A), single-sample",
)


def controls_figure(results: Results, summary: Summary) -> Any:
    """Draw every arm at its best λ over the step size; single points with error bars are the O(d²) arms."""
    figure, (panels,) = _panels(results)
    x = np.array(results.options.step_sizes)
    for copies, axes in panels.items():
        for style, name in enumerate(CONTROLS):
            best = _best(summary, copies, name)
            if best is not None:
                curve = results.curve(copies, best.arm)
                _curve(axes, x, curve, style, name + (", best λ" if best.arm.lam else ""))
        costly = [o for o in results.costly if o.case.copies == copies]
        for marker, shift, outcome in zip("<>dhp", np.linspace(-0.05, 0.05, 5), costly, strict=False):
            mean, error = mean_and_error(outcome.steps)
            axes.errorbar(
                outcome.case.x + shift,
                mean,
                yerr=1.96 * error,
                marker=marker,
                markersize=9,
                color="black",
                markerfacecolor="white",
                linestyle="none",
                capsize=3,
                label=label(outcome.case.arm) + " (O(d²))",
            )
    _steps_axes(panels)
    title = "Every arm at its best λ, at matched step sizes (reduced and plain forms); mean and standard error"
    if results.costly:
        title += "\nopen markers: one setting of an arm of O(d²), side by side; 95 % intervals"
    return _finish(figure, axes, title)


FAMILIES = ("A, single-sample", "A, two-sample", "A, norm alone", "plain, α·d, shrinkage", "(θ, A), single-sample")


def _shares(axes: "Axes", mine: list[ArmSummary], share: Callable[[ArmSummary], Interval]) -> None:
    zero = share(next(one for one in mine if one.label == "A, λ = 0"))
    lambdas = sorted({one.arm.lam for one in mine if one.arm.lam > 0})
    span = (lambdas[0] / 2, lambdas[-1] * 2)
    axes.axhline(100 * zero.value, color="black", label="λ = 0, with interval")
    axes.fill_between(span, 100 * zero.low, 100 * zero.high, color="black", alpha=0.12, linewidth=0)
    for style, name in enumerate(FAMILIES, start=1):
        points = sorted((one for one in mine if one.label == name), key=lambda one: one.arm.lam)
        if not points:
            continue
        lam = np.array([one.arm.lam for one in points]) * 1.08 ** (style - 3)  # side by side
        low, value, high = np.array([(share(o).low, share(o).value, share(o).high) for o in points]).T
        bars = 100 * np.clip([value - low, high - value], 0, None)
        axes.errorbar(
            lam, 100 * value, yerr=bars, label=name, marker=MARKERS[style], capsize=3, linewidth=1.4, **STYLES[style]
        )
    axes.set_xscale("log")
    axes.set_xlim(*span)
    axes.set_xlabel("λ (no unit)")


def sensitivity_figure(summary: Summary, results: Results) -> Any:
    """Draw the share of the step-size range within 10 % of the best, over λ, with 95 % intervals.

    The best is the arm's own in the upper row, and that of all arms in the lower one.
    """
    figure, (upper, lower) = _panels(results, rows=2)
    for copies in upper:
        mine = [one for one in summary.arms if one.copies == copies]
        _shares(upper[copies], mine, lambda one: one.share_own)
        _shares(lower[copies], mine, lambda one: one.share_overall)
    for row, best in ((upper, "its own best"), (lower, "the best of all arms")):
        first = next(iter(row.values()))
        first.set_ylabel(f"share of the step-size range\nwithin 10 % of {best} (%)")
        first.set_ylim(bottom=-2)
    low, high = results.options.step_sizes[0], results.options.step_sizes[-1]
    title = f"Sensitivity to the step size, α·k·d from {low:g} to {high:g}; 95 % intervals"
    return _finish(figure, lower[copies], title)


def write_figures(results: Results, summary: Summary) -> None:
    """Write ``mountain_car.png``, ``…_controls.png`` and, if there is a range of step sizes, ``…_sensitivity.png``."""
    folder = results.options.out
    save_figure(paper_figure(results), folder / "mountain_car.png")
    save_figure(controls_figure(results, summary), folder / "mountain_car_controls.png")
    if len(results.options.step_sizes) > 1:
        save_figure(sensitivity_figure(summary, results), folder / "mountain_car_sensitivity.png")
