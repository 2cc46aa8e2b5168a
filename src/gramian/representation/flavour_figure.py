"""The figure of the unseen modes and difficulties."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gramian.core.arms import arm_styles
from gramian.representation.seeds import Mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FlavourName = TypeVar("FlavourName")


def flavour_figure(scores: Mapping[str, Mapping[FlavourName, Mean]], game: str) -> "Figure":
    """Score of each arm in each flavour; the first flavour is that of the training.

    Parameters
    ----------
    scores
        Arm → flavour → mean and standard error; a flavour's ``str`` is its label.
    game
        For the title.
    """
    from matplotlib.figure import Figure

    flavours = list(next(iter(scores.values())))
    figure = Figure(figsize=(7, 1.6 + 0.28 * len(flavours)), layout="constrained")
    axes = figure.subplots()
    axes.axhspan(-0.5, 0.5, color="0.92", linewidth=0)
    styles = arm_styles(list(scores))
    for number, (arm, found) in enumerate(scores.items()):
        axes.errorbar(
            [found[flavour].value for flavour in flavours],
            np.arange(len(flavours)) + 0.16 * (number - (len(scores) - 1) / 2),
            xerr=np.nan_to_num([found[flavour].error for flavour in flavours]),
            color=styles[arm].color,
            linestyle="",
            marker=styles[arm].symbol,
            markersize=5,
            capsize=2,
            label=arm,
        )
    labels = [f"{flavour}{'' if number else ' (training)'}" for number, flavour in enumerate(flavours)]
    axes.set_yticks(range(len(flavours)), labels)
    axes.set_ylim(len(flavours) - 0.5, -0.5)
    axes.set_xlabel("raw return")
    axes.set_ylabel("mode:difficulty")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=len(scores), frameon=False)
    figure.suptitle(f"{game}: the training's flavour and unseen ones", fontsize=11)
    return figure
