"""Draws the figures of the pages from the tables in ``results``: ``python -m docs.figures``.

Each is drawn twice, ``NAME.svg`` for a light ground and ``NAME-dark.svg`` for a dark one, both transparent. An arm has
the colour that `gramian.core.arms` gives it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from docs.results import ATARI, CHOSEN, PENALISED, RESULTS, SECOND, gain
from gramian.core.arms import CONTROL, Style, arm_styles
from gramian.core.csv_tables import read_rows
from gramian.core.files import replacing
from gramian.core.statistics import student
from gramian.report import reference
from gramian.report.analysis import Options, analyse
from gramian.report.panels import curve
from gramian.study.store import read_study

FIGURES = Path(__file__).parent / "figures"
INK = {False: "#24292f", True: "#d5dae1"}
"""Colour of text and axes by whether the ground is dark."""
LOOK = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "gramian",
    "legend.frameon": False,
}
"""Of every figure, readable at 700 pixels."""


def color(style: Style, *, dark: bool) -> str:
    """Of an arm, for the ground."""
    return style.dark_color if dark else style.color


def findings(*, dark: bool) -> Figure:
    """What `gram` and a penalty that only shrinks gain over DQN, on MinAtar and on Atari."""
    figure = Figure(figsize=(7, 2.5), layout="constrained")
    styles = arm_styles(["gram", SECOND, CONTROL])
    panels = (
        ("MinAtar: 5 games × 10 seeds", "minatar", [("gram", PENALISED, "gram"), ("norm", (CONTROL,), CONTROL)]),
        (
            "Atari: 4 games × 3 seeds",
            "atari",
            [
                (ATARI[CHOSEN], (CHOSEN,), "gram"),
                (ATARI[SECOND], (SECOND,), SECOND),
                (ATARI[CONTROL], (CONTROL,), CONTROL),
            ],
        ),
    )
    for axes, (title, study, lines) in zip(figure.subplots(1, 2), panels, strict=True):
        for at, (_, arms, look) in enumerate(lines):
            style = styles[look]
            mean, low, high = (float(end) for end in student(gain(study, arms, "dqn", "final_score")))
            axes.plot([low, high], [-at, -at], color=color(style, dark=dark), linewidth=2)
            axes.plot([mean], [-at], color=color(style, dark=dark), marker=style.symbol, markersize=9, linestyle="")
        axes.axvline(0, color=INK[dark], linewidth=1)
        axes.set(title=title, xlabel="score over DQN, % of what it learns", ylim=(0.5 - len(lines), 0.5))
        axes.set_xlim(min(axes.get_xlim()[0], -1))
        axes.set_yticks([-at for at in range(len(lines))], [name.replace("`", "") for name, _, _ in lines])
        axes.tick_params(axis="y", length=0)
    return figure


def curves(study: str, arms: Sequence[str], shape: tuple[int, int], *, dark: bool) -> Figure:
    """Learning curves of some arms in every game; bands are 95 % bootstrap intervals over seeds."""
    analysis = analyse(read_study(RESULTS / study / "study"), Options(replicates=1_000))
    figure = Figure(figsize=(7, 2.1 * shape[0] + 0.4), layout="constrained")
    styles = arm_styles(arms)
    names = {arm: ATARI[arm].replace("`", "") if study == "atari" and arm in ATARI else arm for arm in arms}
    places = list(figure.subplots(*shape).flat)
    for unused in places[len(analysis.games) :]:
        unused.remove()
    for axes, game in zip(places, range(len(analysis.games)), strict=False):
        for arm in arms:
            line = curve(analysis, arm, game)
            own = color(styles[arm], dark=dark)
            axes.plot(line.x / 1e6, line.mean, color=own, linestyle=styles[arm].linestyle, label=names[arm])
            axes.fill_between(line.x / 1e6, line.low, line.high, color=own, alpha=0.15, linewidth=0)
        axes.set(title=reference.title(analysis.games[game]).removeprefix("MinAtar "), ylim=(0, None), xlim=(0, None))
    figure.legend(*places[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(arms))
    figure.supxlabel("million frames", fontsize=10)
    figure.supylabel("mean return of the last 100 episodes", fontsize=10)
    return figure


def dopamine(*, dark: bool) -> Figure:
    """Mean training return by million frames, ours and Dopamine's first public runs, with 95 % intervals over runs."""
    rows = read_rows(RESULTS / "dopamine" / "dopamine.csv")
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    ours, theirs = arm_styles(["gram", "dqn"]).values()
    games = list(dict.fromkeys(row["game"] for row in rows))
    places = list(figure.subplots(2, 3).flat)
    for axes, game in zip(places, games, strict=True):
        own = [row for row in rows if row["game"] == game]
        millions = [int(row["million_frames"]) for row in own]
        for name, style, prefix in (("Dopamine", theirs, "dopamine_"), ("gramian", ours, "")):
            mean, low, high = (
                np.array([float(row[f"{prefix}{end}"]) for row in own]) for end in ("mean", "low", "high")
            )
            look = color(style, dark=dark)
            axes.plot(millions, mean, color=look, linestyle=style.linestyle, marker=style.symbol, label=name)
            axes.fill_between(millions, low, high, color=look, alpha=0.15, linewidth=0)
        axes.set(title=reference.title(game), xticks=millions)
    figure.legend(*places[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.supxlabel("million frames", fontsize=10)
    figure.supylabel("mean training return", fontsize=10)
    return figure


DRAWN: dict[str, Callable[..., Figure]] = {
    "findings": findings,
    "minatar": partial(curves, "minatar", ["dqn", "gram", CONTROL], (2, 3)),
    "atari": partial(curves, "atari", ["dqn", CHOSEN, SECOND, CONTROL], (2, 2)),
    "dopamine": dopamine,
}


def main() -> None:
    """Draw every figure for both grounds."""
    for name, drawn in DRAWN.items():
        for dark in (False, True):
            ink = dict.fromkeys(
                ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK[dark]
            )
            with mpl.rc_context(LOOK | ink), replacing(FIGURES / f"{name}{'-dark' if dark else ''}.svg") as temporary:
                drawn(dark=dark).savefig(temporary, format="svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
