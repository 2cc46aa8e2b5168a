"""Our agents beside Dopamine's, game by game and million frames by million frames.

    gramian train --agent … --preset dopamine-c51 --game pong --arm none --seeds 0 1 2 3 4 --out runs/c51 …
    python -m benchmarks.parity runs/c51 runs/qr … [--out FOLDER]

Dopamine's numbers are the curves that the package ships as ``gramian/data/dopamine_cnn_agents_20M.csv``. Ours are plain
runs (no penalty) of the presets in `AGENTS`, their episodes counted in iterations like Dopamine's
(`benchmarks.dopamine.by_iteration`). t is Welch's, of our runs and theirs; |t| > 3 in two neighbouring millions is a
systematic difference. ``FOLDER`` gets ``parity.csv`` and ``parity.md``.
"""

import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import scipy.stats

from benchmarks.command_line import Parser, exit_code, new_folder, table, write_csv
from benchmarks.dopamine import ITERATION_FRAMES, by_iteration, number, told
from gramian.core.errors import UserError
from gramian.core.files import replace_text
from gramian.core.statistics import Array, welch
from gramian.report import reference
from gramian.study.store import read_study

AGENTS = {
    "dopamine": "DQN",
    "dopamine-c51": "C51",
    "dopamine-qr": "QR-DQN",
    "dopamine-iqn": "IQN",
    "dopamine-rainbow": "Rainbow",
}
"""Dopamine's name of the agent of each preset."""
SYSTEMATIC = 3.0
"""Largest |t| that two neighbouring millions may both exceed."""
Curves = dict[tuple[str, str, int], list[float]]
"""Mean returns of the iterations of each run, by agent, game and seed."""


@dataclass(frozen=True)
class Row:
    """One million frames of one agent in one game."""

    agent: str
    game: str
    million_frames: int
    runs: int
    mean: float
    dopamine_runs: int
    dopamine_mean: float
    dopamine_least: float
    dopamine_most: float
    difference: float
    difference_low: float
    difference_high: float
    t: float


def read_curves(folders: Sequence[Path]) -> Curves:
    """Our plain runs of Dopamine's presets below some folders.

    Raises
    ------
    UserError
        If there are none, or one twice.
    """
    found: Curves = {}
    for folder in folders:
        study = read_study(folder)
        for run in study.runs.filter(pl.col("kind") == "dqn", pl.col("preset").is_in([*AGENTS])).iter_rows(named=True):
            cell = AGENTS[run["preset"]], run["game"], run["seed"]
            if cell in found:
                raise UserError(f"{cell[0]} in {cell[1]}, seed {cell[2]} is there twice; leave one")
            episodes = study.episodes.filter(pl.col("run") == run["run"]).sort("frames", maintain_order=True)
            frames, returns = episodes["frames"].to_numpy(), episodes["return"].to_numpy()
            whole = (run["frames_target"] or 0) // ITERATION_FRAMES
            iterations = by_iteration(frames, returns, stopped=run["state"] == "done")[:whole]
            found[cell] = [one.mean_return for one in iterations]
    if not any(found.values()):
        places = ", ".join(f"'{folder}'" for folder in folders)
        raise UserError(f"no plain run of {', '.join(AGENTS)} below {places} has completed a million frames")
    return found


def compare(curves: Curves) -> list[Row]:
    """A row for each million frames that at least one run has and Dopamine's curve of the agent too."""
    cells: dict[tuple[str, str, int], list[float]] = {}
    for (agent, game, _), means in curves.items():
        for million, mean in enumerate(means, start=1):
            cells.setdefault((agent, game, million), []).append(mean)
    rows = []
    for (agent, game, million), ours in sorted(cells.items()):
        published = reference.dopamine_curve(game, agent)
        if published is not None and million <= published.returns.shape[1]:
            rows.append(row_of(agent, game, million, np.array(ours), published.returns[:, million - 1]))
    return rows


def row_of(agent: str, game: str, million_frames: int, ours: Array, theirs: Array) -> Row:
    """Means of our runs and of theirs, their difference with Welch's interval, and Welch's t."""
    enough = min(len(ours), len(theirs)) > 1
    t = float(scipy.stats.ttest_ind(ours, theirs, equal_var=False).statistic) if enough else np.nan
    means = len(ours), float(ours.mean()), len(theirs), float(theirs.mean())
    return Row(agent, game, million_frames, *means, float(theirs.min()), float(theirs.max()), *welch(ours, theirs), t)


def systematic(rows: Sequence[Row]) -> list[str]:
    """Where |t| exceeds `SYSTEMATIC` in two neighbouring millions on the same side: ``C51 in Pong at 2 and 3``."""
    return [
        f"{one.agent} in {reference.title(one.game)} at {one.million_frames} and {other.million_frames}"
        for one, other in pairwise(rows)
        if (one.agent, one.game, one.million_frames + 1) == (other.agent, other.game, other.million_frames)
        and (min(one.t, other.t) > SYSTEMATIC or max(one.t, other.t) < -SYSTEMATIC)
    ]


def markdown(rows: Sequence[Row]) -> str:
    """The table, and the systematic differences in a sentence."""
    lines = [
        [
            row.agent,
            reference.title(row.game),
            str(row.million_frames),
            f"{number(row.mean)} ({row.runs})",
            f"{number(row.dopamine_mean)} ({row.dopamine_runs})",
            f"{number(row.dopamine_least)} to {number(row.dopamine_most)}",
            told(row.difference, row.difference_low, row.difference_high),
            number(row.t),
        ]
        for row in rows
    ]
    columns = ["million frames", "ours (runs)", "Dopamine's (runs)", "their range", "difference", "t"]
    places = systematic(rows)
    said = f"in {', '.join(places)}" if places else "nowhere"
    text = f"|t| > {SYSTEMATIC:g} in two neighbouring millions: {said}."
    return table(["agent", "game", *columns], lines, words=2) + f"\n{text}\n"


def compared(arguments: Sequence[str] | None) -> None:
    """Print the table, and write it where a folder is named."""
    parser = Parser("parity", __doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="populations or studies")
    parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="write the tables into it")
    options = parser.parse_args(arguments)
    rows = compare(read_curves(options.folders))
    print(markdown(rows), end="")
    if options.out:
        write_csv(options.out / "parity.csv", [field.name for field in fields(Row)], map(astuple, rows))
        replace_text(options.out / "parity.md", markdown(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("parity", lambda: compared(arguments))


if __name__ == "__main__":
    sys.exit(main())
