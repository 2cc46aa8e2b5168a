"""The figures of ``gramian regression``."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.linear.figures import MARKERS, STYLES, plt, save_figure
from gramian.linear.regression import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _curve(axes: "Axes", results: Results, r: int, c: int, style: int, label: str, *, distance: bool = False) -> None:
    mean, error = (results.distances if distance else results.errors)[:, r, c]
    look = STYLES[style % len(STYLES)]
    x = np.maximum(results.points, 0.7)  # step 0 at the left edge of a logarithmic axis
    axes.plot(
        x, mean, label=label, linewidth=1.6, marker=MARKERS[style % 6], markevery=(style, 9), markersize=4, **look
    )
    axes.fill_between(x, mean - error, mean + error, color=look["color"], alpha=0.25, linewidth=0)


def _panel(axes: "Axes", title: str, *, floor: float | None = 1e-6) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("step (samples seen)")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    if floor is not None:
        axes.set_yscale("log")
        axes.set_ylim(floor, 3)


def _title(rho: float) -> str:
    return "Uncorrelated inputs (ρ = 0)" if rho == 0 else f"Correlated inputs (ρ = {rho:g})"


def paper_figure(results: Results) -> Any:
    """Draw the paper's pair: plain regression and A with λ, one panel per ρ; the shade is the standard error."""
    rhos = results.options.rhos
    figure, panels = plt.subplots(
        1, len(rhos), figsize=(5.2 * len(rhos), 4.6), sharey=True, squeeze=False, layout="constrained"
    )
    shown = [(0, "plain regression")] + [
        (c, f"A, λ = {case.arm.lam:g}")
        for c, case in enumerate(results.cases)
        if case.arm.form == "reduced" and case.arm.estimator == "single" and not case.arm.projected
    ]
    for r in reversed(range(len(rhos))):  # correlated first, as in the paper
        axes = panels[0, len(rhos) - 1 - r]
        for style, (c, label) in enumerate(shown):
            _curve(axes, results, r, c, style, label)
        _panel(axes, _title(rhos[r]))
    panels[0, 0].set_ylabel("excess squared error (label units²)")
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(4, len(shown)), fontsize=8
    )
    figure.suptitle(
        f"The paper's pair: plain regression and A with the single-sample term, all at α = {results.options.alpha:g}; "
        f"mean and standard error of {results.options.runs:,} runs",
        fontsize=10,
    )
    return figure


def controls_figure(results: Results) -> Any:
    """Draw the controls at the middle λ: reduced forms, full and projected forms, and the distance from orthogonal."""
    rhos, lambdas = results.options.rhos, sorted(results.options.lambdas)
    lam = lambdas[len(lambdas) // 2]
    index = {(case.label, case.arm.lam): c for c, case in enumerate(results.cases)}

    def pick(*labels: str) -> list[tuple[int, str]]:
        found = [(index.get((label, 0.0), index.get((label, lam))), label) for label in labels]
        return [(c, label) for c, label in found if c is not None]

    rows = [
        pick(
            "plain, α·d",
            "A, λ = 0",
            "A, single-sample (the paper)",
            "A, two-sample",
            "A, running",
            "A, norm alone",
            "plain, α·d, shrinkage",
        ),
        pick(
            "plain, α·d",
            "(θ, A), λ = 0",
            "(θ, A), single-sample",
            "(θ, A), two-sample",
            "A projected, single-sample",
            "(θ, A) projected, single-sample",
        ),
        pick(
            "A, λ = 0",
            "A, single-sample (the paper)",
            "A, two-sample",
            "A, running",
            "(θ, A), λ = 0",
            "(θ, A), single-sample",
        ),
    ]
    figure, panels = plt.subplots(3, len(rhos), figsize=(5.2 * len(rhos), 12.5), squeeze=False, layout="constrained")
    for row, shown in enumerate(rows):
        for r in range(len(rhos)):
            axes = panels[row, len(rhos) - 1 - r]
            for style, (c, label) in enumerate(shown):
                _curve(axes, results, r, c, style, label, distance=row == 2)
            _panel(axes, _title(rhos[r]), floor=None if row == 2 else 1e-6)
            axes.set_ylabel("distance ‖AᵀA − I‖_F/√d (no unit)" if row == 2 else "excess squared error (label units²)")
            if row == 2:
                axes.set_ylim(bottom=0)
        axes.legend(fontsize=7, loc="upper left" if row == 2 else "lower left")
    figure.suptitle(
        f"Controls at λ = {lam:g}, matched step size (reduced and plain forms); "
        f"mean and standard error of {results.options.runs:,} runs",
        fontsize=10,
    )
    return figure


def write_figures(results: Results) -> None:
    """Write ``regression.png`` and ``regression_controls.png``."""
    save_figure(paper_figure(results), results.options.out / "regression.png")
    save_figure(controls_figure(results), results.options.out / "regression_controls.png")
