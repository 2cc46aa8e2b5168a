"""Trained runs in the modes and difficulties of their games that they have never seen (Farebrother et al. 2018)."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gramian.core.arms import arm_label, arm_styles, order_arms
from gramian.core.errors import UserError, unknown
from gramian.core.files import output_folder, replace_text, replacing
from gramian.core.games import Game
from gramian.deep.envs import EnvironmentOptions, Flavour, find_flavours
from gramian.deep.runs.evaluation import AT_ONCE, evaluate
from gramian.deep.runs.load import Run
from gramian.representation.figures import DPI
from gramian.representation.seeds import Mean, mean, means
from gramian.representation.tables import csv_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLAVOURS = "flavours.csv"
TABLE = "flavours.md"


class FlavourGame(NamedTuple):
    """A row of ``flavours.csv``: one game that was played."""

    run: str
    game: str
    arm: str
    seed: int
    agent_steps: int
    epsilon: float
    mode: int
    difficulty: int
    trained: int
    """1 for the flavour of the training, else 0."""
    episode: int
    raw_return: float
    length_agent_steps: int
    truncated: int

    @property
    def flavour(self) -> Flavour:
        """Mode and difficulty."""
        return Flavour(self.mode, self.difficulty)


def parse_modes(text: str, game: Game) -> tuple[Flavour, ...]:
    """``all``, or flavours MODE:DIFFICULTY with commas between them; that of the training always comes first."""
    known = find_flavours(game)
    if text == "all":
        return known
    by_name = {str(flavour): flavour for flavour in known}
    named = text.split(",")
    for name in named:
        if name not in by_name:
            raise unknown(f"mode of '{game.name}':", name, ["all", *by_name])
    return tuple(dict.fromkeys((known[0], *(by_name[name] for name in named))))


def evaluate_flavours(
    runs: Sequence[Run],
    out: Path,
    *,
    modes: str = "all",
    episodes: int = 30,
    epsilon: float = 0.01,
    seed: int = 0,
    options: EnvironmentOptions | None = None,
    at_once: int = AT_ONCE,
) -> list[FlavourGame]:
    """Let runs play their games in every flavour without training in it; write table and figure to ``out``.

    ``flavours.csv`` is written anew after each run. For ``modes`` see `parse_modes`; the other settings of the emulator
    are those of the training.
    """
    chosen = {run.spec.name: parse_modes(modes, run.spec.game) for run in runs}
    if len(chosen) < len(runs):
        raise UserError("a run is given twice; name each game, arm and seed once")
    if broken := next((name for name, run in zip(chosen, runs, strict=True) if not run.finite), None):
        raise UserError(f"the weights of run '{broken}' are not finite: it diverged, so that it cannot play")
    rows: list[FlavourGame] = []
    for run in runs:
        for number, flavour in enumerate(chosen[run.spec.name]):
            played = evaluate(
                run, episodes, epsilon=epsilon, seed=seed, options=options, at_once=at_once, flavour=flavour
            )
            rows += [
                FlavourGame(
                    run.spec.name,
                    run.spec.game.name,
                    arm_label(run.spec.to_mapping()),
                    run.spec.seed,
                    run.agent_steps,
                    epsilon,
                    *flavour,
                    int(number == 0),
                    game.episode,
                    game.raw_return,
                    game.length_agent_steps,
                    int(game.truncated),
                )
                for game in played
            ]
        replace_text(output_folder(out) / FLAVOURS, csv_text([FlavourGame._fields, *rows]))
    replace_text(out / TABLE, flavour_table(rows))
    for name in dict.fromkeys(row.game for row in rows):
        own = [row for row in rows if row.game == name]
        with replacing(out / f"flavours-{name.replace('/', '-')}.png") as temporary:
            flavour_figure(scores(own), name).savefig(temporary, dpi=DPI)
    print(f"games, table and figure in {out}", file=sys.stderr)
    return rows


def scores(rows: Sequence[FlavourGame]) -> dict[str, dict[Flavour, Mean]]:
    """Mean raw return of each arm in each flavour of one game; its error is over seeds, or games of a single seed."""
    found: dict[str, dict[Flavour, Mean]] = {}
    for arm in order_arms(row.arm for row in rows):
        own = [row for row in rows if row.arm == arm]
        if len({row.seed for row in own}) == 1:
            found[arm] = means((row.flavour, row.raw_return) for row in own)
        else:
            of_runs = means(((row.run, row.flavour), row.raw_return) for row in own)
            found[arm] = means((flavour, score.value) for (_, flavour), score in of_runs.items())
    return found


def flavour_table(rows: Sequence[FlavourGame]) -> str:
    """Markdown tables, one for each game: the flavour of the training first, then the others and their mean."""
    lines = ["# Unseen modes and difficulties", ""]
    lines += ["Mean raw return ± standard error over seeds (over games where there is one seed)."]
    for name in dict.fromkeys(row.game for row in rows):
        found = scores([row for row in rows if row.game == name])
        flavours = list(next(iter(found.values())))
        lines += ["", f"## {name}", "", f"| mode:difficulty | {' | '.join(found)} |", "| --- |" + " --- |" * len(found)]
        for number, flavour in enumerate(flavours):
            label = f"{flavour}{'' if number else ' (training)'}"
            lines.append(f"| {label} | {' | '.join(str(found[arm][flavour]) for arm in found)} |")
        if len(flavours) > 1:
            unseen = (f"{mean(found[arm][flavour].value for flavour in flavours[1:]).value:.4g}" for arm in found)
            lines.append(f"| mean of the unseen | {' | '.join(unseen)} |")
    return "\n".join(lines) + "\n"


def flavour_figure(scores: dict[str, dict[Flavour, Mean]], game: str) -> "Figure":
    """Score of each arm in each flavour; the first flavour is that of the training."""
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
