"""The figures of the linear commands, drawn from their tables. An arm looks the same in all of them."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from gramian.core.csv_tables import Row, read_rows
from gramian.core.files import replacing
from gramian.linear.contrasts import feature_set_name

INK = "#808080"
"""Of texts and axes: readable on white and on a dark page."""
Look = tuple[str, Any, str]
"""Colour, line style and marker."""
LOOKS: dict[str, Look] = {
    "plain, α·d": ("#808080", "--", "o"),
    "A, λ = 0": ("#808080", "-", "s"),
    "(θ, A), λ = 0": ("#808080", "-.", "D"),
    "A, single-sample": ("#0072b2", "-", "^"),
    "A, two-sample": ("#007d5b", (0, (8, 3)), "D"),
    "A, norm alone": ("#a34f7f", ":", "X"),
    "A, two-sample norm": ("#c44500", "-.", "*"),
    "(θ, A), single-sample": ("#b36b00", "-", "v"),
    "(θ, A), two-sample": ("#007d5b", "-", "P"),
    "(θ, A), norm alone": ("#a34f7f", "-", "h"),
    "(θ, A) projected, single-sample": ("#c44500", ":", "<"),
}
"""Of an arm; penalties have the colour that they have in the deep half."""
SHADES = ("#808080", "#9fd0f2", "#56a8e8", "#1f86cc", "#0060a8")
"""Of λ = 0 and of at most four rising λ of one arm."""
MARKERS = "os^Dv"


def _panels(columns: int, **options: Any) -> tuple[Any, Sequence[Axes]]:
    """A figure with panels side by side, each with a grid."""
    figure, panels = plt.subplots(
        1, columns, figsize=(0.6 + 4.2 * columns, 4.4), squeeze=False, layout="constrained", **options
    )
    for axes in panels.flat:
        axes.grid(alpha=0.3)
        axes.tick_params(colors=INK)
        for spine in axes.spines.values():
            spine.set_color(INK)
    return figure, panels[0]


def _save(figure: Any, axes: Axes | None, title: str, path: Path) -> None:
    """Write the figure as a small PNG without ground, with the legend of ``axes`` below all panels, and forget it."""
    if axes is not None:
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)), frameon=False)
    figure.suptitle(title, fontsize=11)
    for text in figure.findobj(mpl.text.Text):
        text.set_color(INK)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120, transparent=True)
    plt.close(figure)
    with replacing(path) as temporary:
        Image.open(stream).quantize(128, method=Image.Quantize.FASTOCTREE).save(temporary, optimize=True)


def _column(rows: Iterable[Row], name: str) -> Any:
    return np.array([float(row[name] or "nan") for row in rows])


def _line(axes: Axes, rows: Sequence[Row], x: str, measure: str, name: str, look: Look, **of: Any) -> None:
    """Draw a mean with its standard error as a shade."""
    at, mean, error = (_column(rows, column) for column in (x, f"{measure}_mean", f"{measure}_se"))
    color, line, marker = look
    axes.plot(at, mean, label=name, color=color, linestyle=line, marker=marker, linewidth=1.8, **of)
    axes.fill_between(at, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)


def _lambdas(rows: Iterable[Row]) -> list[str]:
    """The λ above 0, rising, as the tables have them."""
    return sorted({row["lambda"] for row in rows if float(row["lambda"]) > 0}, key=float)


# --- regression and TD(0)


def _curves(axes: Axes, rows: Sequence[Row], shown: Sequence[tuple[str, str, str, Look]]) -> None:
    """Draw the curves of (arm, λ, name, look) on logarithmic axes; step 0 stands at the left edge."""
    for style, (arm, lam, name, look) in enumerate(shown):
        mine = [row for row in rows if (row["arm"], row["lambda"]) == (arm, lam)]
        mine = [{**row, "step": "0.7"} if row["step"] == "0" else row for row in mine]
        if mine:
            _line(axes, mine, "step", "error", name, look, markevery=(2 * style, 11), markersize=5)
    axes.set_xscale("log")
    axes.set_yscale("log")


SINGLE = "A, single-sample (the paper)"


def _at(lam: str, *arms: str) -> list[tuple[str, str, str, Look]]:
    """Arms at one λ, those without a term at 0."""
    found = []
    for arm in arms:
        name = arm.removesuffix(" (the paper)")
        without = arm.startswith("plain") or arm.endswith("λ = 0")
        found.append((arm, "0" if without else lam, name, LOOKS[name]))
    return found


def write_regression_figures(folder: Path, into: Path | None = None) -> None:
    """Write ``regression.png``, the paper's pair, and ``regression_controls.png``, the controls at the middle λ."""
    rows = read_rows(folder / "regression.csv")
    lambdas = _lambdas(rows)
    lam = lambdas[len(lambdas) // 2]
    rhos = sorted({row["rho"] for row in rows}, key=float, reverse=True)  # the correlated inputs first, as in the paper
    pair = [("plain, α", "0", "plain regression", ("#808080", "--", "o"))]
    shades = zip(lambdas[-4:], SHADES[1:], MARKERS[1:], strict=False)
    pair += [(SINGLE, own, f"A, λ = {own}", (color, "-", marker)) for own, color, marker in shades]
    controls = _at(lam, "plain, α·d", "A, λ = 0", SINGLE, "A, two-sample", "A, norm alone")
    for name, shown, title in (
        ("regression", pair, "The paper's pairing: the same α for both"),
        ("regression_controls", controls, f"Matched step size, λ = {lam}"),
    ):
        figure, panels = _panels(len(rhos), sharey=True)
        for axes, rho in zip(panels, rhos, strict=True):
            _curves(axes, [row for row in rows if row["rho"] == rho], shown)
            axes.set_ylim(1e-6, 3)
            axes.set_xlabel("samples seen")
            axes.set_title("uncorrelated inputs (ρ = 0)" if float(rho) == 0 else f"correlated inputs (ρ = {rho})")
        panels[0].set_ylabel("excess squared error")
        _save(figure, panels[0], title, (into or folder) / f"{name}.png")


def write_td_figure(folder: Path, path: Path) -> None:
    """The error over steps at the middle λ, reduced and plain forms beside full ones."""
    rows = read_rows(folder / "td.csv")
    lambdas = _lambdas(rows)
    lam = lambdas[len(lambdas) // 2]
    sides = {
        "reduced and plain forms": ("plain, α·d", SINGLE, "A, two-sample", "A, norm alone"),
        "full and projected forms": (
            "(θ, A), λ = 0", "(θ, A), single-sample", "(θ, A), two-sample", "(θ, A), norm alone",
            "(θ, A) projected, single-sample",
        ),
    }  # fmt: skip
    figure, panels = _panels(2, sharey=True)
    for axes, (title, arms) in zip(panels, sides.items(), strict=True):
        _curves(axes, rows, _at(lam, *arms))
        axes.set_xlabel("transitions seen")
        axes.set_title(title)
        axes.legend(fontsize=8, loc="lower left", framealpha=0)
        axes.set_ylim(top=3)
    panels[0].set_ylabel("error over that at the start")
    what = "Boyan's chain" if rows[0]["process"] == "boyan" else "random processes"
    _save(figure, None, f"TD(0) on {what}, λ = {lam}", path)


# --- Mountain Car


def _car_panels(features: Sequence[Row], columns: str = "steps per episode") -> tuple[Any, dict[str, Axes]]:
    """A panel per feature set, the most copies first, as in the paper."""
    ordered = sorted(features, key=lambda row: int(row["d"]), reverse=True)
    figure, panels = _panels(len(ordered), sharey=True)
    for row, axes in zip(ordered, panels, strict=True):
        correlation = float(row["mean_abs_correlation_uniform"])
        axes.set_title(
            f"{feature_set_name(row['copies'])}\nd = {row['d']}, mean |correlation| {correlation:.4f}", fontsize=10
        )
    panels[0].set_ylabel(columns)
    return figure, {row["copies"]: axes for row, axes in zip(ordered, panels, strict=True)}


def _save_steps(figure: Any, panels: dict[str, Axes], title: str, path: Path) -> None:
    """Save a figure of steps over step size."""
    for axes in panels.values():
        axes.set_yscale("log")
        axes.set_xlabel("step size α·k·d (no unit)")
        low, high = axes.get_ylim()
        ticks = [t for t in (100, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 5000) if low <= t <= high]
        axes.set_yticks(ticks, [f"{t:,}" for t in ticks])
        axes.minorticks_off()
    _save(figure, axes, title, path)


def car_figure(rows: Sequence[Row], features: Sequence[Row], path: Path) -> None:
    """The paper's figure: steps per episode over the step size for rising λ; circles are plain learning at α·d."""
    figure, panels = _car_panels(features)
    for copies, axes in panels.items():
        mine = [row for row in rows if row["copies"] == copies]
        plain = [row for row in mine if row["arm"] == "plain, α·d"]
        circles: dict[str, Any] = {"markersize": 10, "markerfacecolor": "none", "color": INK, "linestyle": "none"}
        axes.plot(
            *(_column(plain, name) for name in ("alpha_k_d", "steps_mean")), marker="o", label="plain, α·d", **circles
        )
        single = [row for row in mine if row["arm"] == "A, single-sample"]
        arms = [("A, λ = 0", "0"), *(("A, single-sample", lam) for lam in _lambdas(single)[-4:])]
        for (arm, lam), color, marker in zip(arms, SHADES, MARKERS, strict=False):
            curve = [row for row in mine if (row["arm"], row["lambda"]) == (arm, lam)]
            _line(axes, curve, "alpha_k_d", "steps", f"A, λ = {lam}", (color, "-", marker), markersize=5)
    _save_steps(figure, panels, "Mountain Car: single-sample decorrelation at matched step sizes", path)


AT_THEIR_BEST = ("plain, α·d", "A, single-sample", "A, norm alone", "A, two-sample", "A, two-sample norm")


def controls_figure(rows: Sequence[Row], summary: Sequence[Row], features: Sequence[Row], path: Path) -> None:
    """Steps over the step size of the decorrelating terms and of their controls, each at its best λ."""
    figure, panels = _car_panels(features)
    for copies, axes in panels.items():
        for arm in AT_THEIR_BEST:
            mine = [row for row in summary if (row["copies"], row["arm"]) == (copies, arm)]
            if mine:
                lam = min(mine, key=lambda row: float(row["steps"]))["lambda"]
                curve = [row for row in rows if (row["copies"], row["arm"], row["lambda"]) == (copies, arm, lam)]
                _line(axes, curve, "alpha_k_d", "steps", arm, LOOKS[arm], markersize=5)
    _save_steps(figure, panels, "Mountain Car: decorrelating terms and their controls, each at its best λ", path)


def sensitivity_figure(summary: Sequence[Row], features: Sequence[Row], path: Path) -> None:
    """Share of the step-size range within 10 % of the arm's own best, over λ, with 95 % intervals."""
    figure, panels = _car_panels(features, "share of the step-size range\nwithin 10 % of its own best (%)")

    def share(rows: Sequence[Row]) -> Any:
        return [100 * _column(rows, f"share_own{end}") for end in ("", "_low", "_high")]

    for copies, axes in panels.items():
        mine = [row for row in summary if row["copies"] == copies]
        lambdas = [float(lam) for lam in _lambdas(mine)]
        span = (lambdas[0] / 2, lambdas[-1] * 2)
        (value,), low, high = share([row for row in mine if row["arm"] == "A, λ = 0"])
        axes.axhline(value, color=INK, label="A, λ = 0")
        axes.fill_between(span, low, high, color=INK, alpha=0.15, linewidth=0)
        for place, arm in enumerate(AT_THEIR_BEST[1:]):
            points = sorted((row for row in mine if row["arm"] == arm), key=lambda row: float(row["lambda"]))
            if points:
                at = _column(points, "lambda") * 1.1 ** (place - 1.5)  # side by side
                middle, below, above = share(points)
                color, line, marker = LOOKS[arm]
                bars = np.clip([middle - below, above - middle], 0, None)
                axes.errorbar(at, middle, yerr=bars, label=arm, color=color, linestyle=line, marker=marker, capsize=3)
        axes.set_xscale("log")
        axes.set_xlim(*span)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("λ (no unit)")
    _save(figure, axes, "Mountain Car: sensitivity to the step size", path)


def write_mountain_car_figures(folder: Path, into: Path | None = None) -> None:
    """Write ``mountain_car.png``, ``…_controls.png`` and, if there is a range of step sizes, ``…_sensitivity.png``."""
    rows, summary, features = (read_rows(folder / f"mountain_car{name}.csv") for name in ("", "_summary", "_features"))
    path = (into or folder) / "mountain_car.png"
    car_figure(rows, features, path)
    controls_figure(rows, summary, features, path.with_stem("mountain_car_controls"))
    if len({row["alpha_k_d"] for row in rows if row["arm"] == "A, λ = 0"}) > 1:
        sensitivity_figure(summary, features, path.with_stem("mountain_car_sensitivity"))
