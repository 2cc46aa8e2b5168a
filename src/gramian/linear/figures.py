"""The figures of ``gramian regression`` and ``gramian mountain-car``: they survive a print in black and white."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from gramian.core.files import replacing
from gramian.core.statistics import mean_and_error
from gramian.linear import mountain_car, regression, td
from gramian.linear.contrasts import ArmSummary, Interval, Summary, feature_set_name, label
from gramian.linear.kernels import Floats
from gramian.linear.learner import Arm
from gramian.linear.mountain_car import Copies

STYLES: list[dict[str, Any]] = [
    {"color": "black", "linestyle": "-"},
    {"color": "tab:blue", "linestyle": "--"},
    {"color": "tab:orange", "linestyle": "-."},
    {"color": "tab:green", "linestyle": ":"},
    {"color": "tab:red", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "tab:purple", "linestyle": (0, (8, 3))},
    {"color": "tab:brown", "linestyle": (0, (1, 3))},
    {"color": "tab:gray", "linestyle": (0, (3, 1, 1, 1))},
]
MARKERS = "osD^vPX*"


def _panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """A figure with ``rows`` × ``columns`` panels, each with a grid."""
    size = (width * columns, height)
    figure, panels = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)
    for axes in panels.flat:
        axes.grid(alpha=0.3)
    return figure, panels


def _line(axes: Axes, x: Floats, mean: Floats, error: Floats, style: int, name: str, **options: Any) -> None:
    """Draw a mean [n] with its standard error as a shade."""
    look, marker = STYLES[style % len(STYLES)], MARKERS[style % len(MARKERS)]
    axes.plot(x, mean, label=name, marker=marker, linewidth=1.6, **look, **options)
    axes.fill_between(x, mean - error, mean + error, color=look["color"], alpha=0.2, linewidth=0)


def _save(figure: Any, axes: Axes | None, title: str, path: Path) -> None:
    """Write the figure as a PNG of 128 colours, with the legend of ``axes`` below all panels, and forget it."""
    if axes is not None:
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), fontsize=8)
    figure.suptitle(title, fontsize=10)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    plt.close(figure)
    with replacing(path) as temporary:
        Image.open(stream).convert("RGB").quantize(128).save(temporary, optimize=True)


# --- regression


def _regression_row(
    panels: Any, results: regression.Results, shown: list[tuple[int, str]], *, distance: bool = False
) -> None:
    """Draw the shown cases, the correlated inputs first as in the paper: the error, or the distance from orthogonal."""
    x = np.maximum(results.points, 0.7)  # step 0 at the left edge of a logarithmic axis
    values = results.distances if distance else results.errors
    for axes, r in zip(panels, reversed(range(len(results.options.rhos))), strict=True):
        rho = results.options.rhos[r]
        for style, (c, name) in enumerate(shown):
            mean, error = values[:, r, c]
            _line(axes, x, mean, error, style, name, markevery=(style, 9), markersize=4)
        axes.set_xscale("log")
        axes.set_xlabel("step (samples seen)")
        axes.set_title("Uncorrelated inputs (ρ = 0)" if rho == 0 else f"Correlated inputs (ρ = {rho:g})", fontsize=10)
        if distance:
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
            axes.set_ylim(1e-6, 3)
    panels[0].set_ylabel("distance ‖AᵀA − I‖_F/√d (no unit)" if distance else "excess squared error (label units²)")


CONTROLS = (
    ("plain, α·d", "A, λ = 0", *(label for form, _, projected, label in regression.KINDS
                                 if form != "full" and not projected)),
    ("plain, α·d", "(θ, A), λ = 0", "(θ, A), single-sample", "(θ, A), two-sample", "A projected, single-sample",
     "(θ, A) projected, single-sample"),
    ("A, λ = 0", "A, single-sample (the paper)", "A, two-sample", "A, running", "(θ, A), λ = 0",
     "(θ, A), single-sample"),
)  # fmt: skip
"""Labels in the rows of the figure of the controls: reduced forms; full and projected ones; distance."""


def write_regression_figures(results: regression.Results) -> None:
    """Write ``regression.png``, the paper's pair, and ``regression_controls.png``, the controls at the middle λ."""
    options, rhos = results.options, results.options.rhos
    shown = [(0, "plain regression")]
    for c, case in enumerate(results.cases):
        if case.arm.name == "reduced single":
            shown.append((c, f"A, λ = {case.arm.lam:g}"))
    figure, panels = _panels(1, len(rhos), 5.2, 4.6, sharey=True)
    _regression_row(panels[0], results, shown)
    said = f"mean and standard error of {options.runs:,} runs"
    title = f"Plain regression and A with the single-sample term, all at α = {options.alpha:g}; {said}"
    _save(figure, panels[0, 0], title, options.out / "regression.png")

    lam = options.lambdas[len(options.lambdas) // 2]
    index = {case.label: c for c, case in enumerate(results.cases) if case.arm.lam in (0, lam)}
    figure, panels = _panels(3, len(rhos), 5.2, 12.5)
    for row, names in enumerate(CONTROLS):
        _regression_row(panels[row], results, [(index[n], n) for n in names if n in index], distance=row == 2)
        for axes in panels[row]:
            axes.legend(fontsize=7, loc="upper left" if row == 2 else "lower left")
    title = f"Controls at λ = {lam:g}, matched step size (reduced and plain forms); {said}"
    _save(figure, None, title, options.out / "regression_controls.png")


def write_td_figure(results: td.Results) -> None:
    """Write ``td.png``: the error over steps at the middle λ, reduced and plain forms beside full ones."""
    options = results.options
    lam = options.lambdas[len(options.lambdas) // 2]
    index = {case.label: c for c, case in enumerate(results.cases) if case.arm.lam in (0, lam)}
    figure, panels = _panels(1, 2, 5.2, 4.6, sharey=True)
    titles = ("reduced and plain forms", "full and projected forms")
    for axes, names, title in zip(panels[0], CONTROLS, titles, strict=False):
        for style, name in enumerate(name for name in names if name in index):
            errors = results.errors[index[name]]
            mean, error = np.array([mean_and_error(row) for row in errors]).T
            _line(axes, np.maximum(results.points, 0.7), mean, error, style, name, markevery=(style, 9), markersize=4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("step (transitions seen)")
        axes.set_title(title, fontsize=10)
        axes.legend(fontsize=7, loc="lower left")
    panels[0, 0].set_ylabel("error against the TD(0) solution (share of the first)")
    title = f"TD(0) on {options.runs} random processes, λ = {lam:g}; mean and standard error"
    _save(figure, None, title, options.out / "td.png")


# --- Mountain Car


CarPanels = dict[Copies, Axes]


def _car_panels(results: mountain_car.Results, rows: int = 1) -> tuple[Any, list[CarPanels]]:
    """Make rows of panels, one per feature set, the most copies first, as in the paper."""
    features = sorted(results.features, key=lambda f: f.d, reverse=True)
    figure, panels = _panels(rows, len(features), 5.4, 1.1 + 4.1 * rows, sharey="row")
    for row in panels:
        for f, axes in zip(features, row, strict=True):
            name = f"{feature_set_name(f.copies)}: d = {f.d}, mean |correlation| {f.uniform:.4f}"
            axes.set_title(name, fontsize=10)
    return figure, [dict(zip([f.copies for f in features], row, strict=True)) for row in panels]


def _steps_axes(panels: CarPanels) -> Axes:
    """Label the axes of steps over step size, and return the last."""
    for axes in panels.values():
        axes.set_yscale("log")
        axes.set_xlabel("step size α·k·d (no unit)")
        low, high = axes.get_ylim()
        ticks = [t for t in (100, 200, 300, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000) if low <= t <= high]
        axes.set_yticks(ticks, [f"{t:,}" for t in ticks])
        axes.minorticks_off()
    next(iter(panels.values())).set_ylabel("steps per episode (mean of all episodes and runs)")
    return axes


def _curve(axes: Axes, results: mountain_car.Results, copies: Copies, arm: Arm, style: int, name: str) -> None:
    curve = results.curve(copies, arm)
    error = np.array([mean_and_error(row)[1] for row in curve])
    _line(axes, np.array(results.options.step_sizes), curve.mean(axis=1), error, style, name, markersize=5)


def _paper_figure(results: mountain_car.Results) -> None:
    """Draw steps per episode over the step size for every λ of the paper's arm; circles are plain learning at α·d."""
    figure, (panels,) = _car_panels(results)
    circles: dict[str, Any] = {"markersize": 10, "markerfacecolor": "none", "color": "black", "linestyle": "none"}
    for copies, axes in panels.items():
        plain = results.curve(copies, Arm("plain")).mean(axis=1)
        axes.plot(results.options.step_sizes, plain, label="plain, α·d", marker="o", **circles)
        arms = [a for a in results.arms(copies) if a.form == "reduced" and a.estimator in ("none", "single")]
        for style, arm in enumerate(arms):
            _curve(axes, results, copies, arm, style, f"A, λ = {arm.lam:g}")
    title = f"Single-sample decorrelation; mean and standard error of {results.options.runs} runs"
    _save(figure, _steps_axes(panels), title, results.options.out / "mountain_car.png")


FAMILIES = (
    "A, single-sample",
    "A, two-sample",
    "A, norm alone",
    "plain, α·d, shrinkage",
    "(θ, A), single-sample",
    "A, two-sample norm",
)
AT_THEIR_BEST = ("plain, α·d", *FAMILIES[:4], "(θ, A), λ = 0", *FAMILIES[4:])


def _controls_figure(results: mountain_car.Results, summary: Summary) -> None:
    """Draw every arm at its best λ over the step size; single points with error bars are the O(d²) arms."""
    figure, (panels,) = _car_panels(results)
    for copies, axes in panels.items():
        for style, name in enumerate(AT_THEIR_BEST):
            mine = [one for one in summary.arms if (one.copies, one.label) == (copies, name)]
            if mine:
                arm = min(mine, key=lambda one: one.steps.value).arm
                _curve(axes, results, copies, arm, style, name + (", best λ" if arm.lam else ""))
        costly = [o for o in results.costly if o.case.copies == copies]
        for marker, shift, outcome in zip("<>dhp", np.linspace(-0.05, 0.05, 5), costly, strict=False):
            mean, error = mean_and_error(outcome.steps)
            look: dict[str, Any] = {"markersize": 9, "color": "black", "markerfacecolor": "white", "linestyle": "none"}
            name = label(outcome.case.arm) + " (O(d²))"
            axes.errorbar(outcome.case.x + shift, mean, 1.96 * error, marker=marker, capsize=3, label=name, **look)
    title = "Every arm at its best λ, at matched step sizes (reduced and plain forms); mean and standard error"
    if results.costly:
        title += "\nopen markers: one setting of an arm of O(d²), side by side; 95 % intervals"
    _save(figure, _steps_axes(panels), title, results.options.out / "mountain_car_controls.png")


def _shares(axes: Axes, mine: list[ArmSummary], share: Callable[[ArmSummary], Interval]) -> None:
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
        look: dict[str, Any] = {"marker": MARKERS[style], "capsize": 3, "linewidth": 1.4, **STYLES[style]}
        axes.errorbar(lam, 100 * value, yerr=bars, label=name, **look)
    axes.set_xscale("log")
    axes.set_xlim(*span)
    axes.set_xlabel("λ (no unit)")


def _sensitivity_figure(results: mountain_car.Results, summary: Summary) -> None:
    """Draw the share of the step-size range within 10 % of the arm's own best, and of the best of all, over λ."""
    figure, rows = _car_panels(results, rows=2)
    shares: list[tuple[str, Callable[[ArmSummary], Interval]]] = [
        ("its own best", lambda one: one.share_own),
        ("the best of all arms", lambda one: one.share_overall),
    ]
    for panels, (best, share) in zip(rows, shares, strict=True):
        for copies, axes in panels.items():
            _shares(axes, [one for one in summary.arms if one.copies == copies], share)
        first = next(iter(panels.values()))
        first.set_ylabel(f"share of the step-size range\nwithin 10 % of {best} (%)")
        first.set_ylim(bottom=-2)
    sizes = results.options.step_sizes
    title = f"Sensitivity to the step size, α·k·d from {sizes[0]:g} to {sizes[-1]:g}; 95 % intervals"
    _save(figure, axes, title, results.options.out / "mountain_car_sensitivity.png")


def write_mountain_car_figures(results: mountain_car.Results, summary: Summary) -> None:
    """Write ``mountain_car.png``, ``…_controls.png`` and, if there is a range of step sizes, ``…_sensitivity.png``."""
    _paper_figure(results)
    _controls_figure(results, summary)
    if len(results.options.step_sizes) > 1:
        _sensitivity_figure(results, summary)
