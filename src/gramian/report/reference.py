"""Numbers that others have published, shipped as data: the paper's table, human scores, Dopamine's curves."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
import polars as pl

from gramian.core.games import key as key
from gramian.core.games import title as title
from gramian.core.statistics import Array

HumanTable = Literal["atari-57", "nature"]

_HUMAN_COLUMNS: dict[HumanTable, tuple[str, str]] = {
    "atari-57": ("random", "human"),
    "nature": ("mnih2015_random", "mnih2015_human"),
}
PAPER_ARMS = {"dqn": "paper_dqn", "decor": "paper_decor", "gram": "paper_gram"}
"""Column of the paper's table for each kind of arm that it has."""
PAPER_LABELS = {"dqn": "DQN", "decor": "DQN-decor", "gram": "DQN-Gram"}
PAPER_FRAMES = 20_000_000
"""What the paper's table is read as: 5M agent steps."""
PAPER_AUC_GAINS = 40
"""Of 49 games, by the paper's own count for DQN-Gram; it cannot be checked from its table."""
DOPAMINE_20M = "dopamine_DQN_(Adam_+_MSE_in_JAX)_20M"

_DATA = files("gramian") / "data"


@dataclass(frozen=True)
class Curve:
    """Dopamine's public curve of one game: frames ``[K]`` and returns ``[runs, K]``."""

    frames: Array
    returns: Array


def atari(game: str) -> dict[str, float | str] | None:
    """The row of ``atari49.csv`` of a game; None where it has none."""
    return _atari().get(key(game))


def random_and_human(game: str, table: HumanTable) -> tuple[float, float] | None:
    """Scores of random play and of a human; None where the table lacks the game."""
    row = atari(game)
    if row is None:
        return None
    low, high = _HUMAN_COLUMNS[table]
    return float(row[low]), float(row[high])


def dopamine_curve(game: str, agent: str = "DQN") -> Curve | None:
    """Dopamine's public training curve of an agent: DQN, C51, QR-DQN, IQN or Rainbow; None where there is none."""
    return _dopamine(agent).get(key(game))


@cache
def paper_table() -> pl.DataFrame:
    """``atari49.csv``, whose columns the README beside it explains."""
    return pl.read_csv((_DATA / "atari49.csv").read_bytes())


@cache
def _atari() -> dict[str, dict[str, float | str]]:
    return {key(row["game"]): row for row in paper_table().iter_rows(named=True)}


def curves(table: pl.DataFrame) -> dict[str, Curve]:
    """Curves by the `key` of their game, from columns ``game``, ``million_frames``, ``run1``, ``run2`` and so on."""
    found = {}
    for (game,), rows in table.group_by("game", maintain_order=True):
        returns = rows.sort("million_frames").select(pl.col(r"^run\d+$")).to_numpy().T
        frames = 1e6 * rows["million_frames"].sort().to_numpy()
        found[key(str(game))] = Curve(frames, np.asarray(returns, float))
    return found


@cache
def _dopamine(agent: str) -> dict[str, Curve]:
    table = pl.read_csv((_DATA / "dopamine_cnn_agents_20M.csv").read_bytes())
    return curves(table.filter(pl.col("agent") == agent))
