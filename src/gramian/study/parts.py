"""A study that is run in parts: which of its cells are in none of them. Reads files and knows no learner."""

import json
import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from gramian.core.errors import UserError
from gramian.core.files import plan_paths
from gramian.core.games import game_name

PART = "# This folder holds a part of it: "
"""How the ``study.toml`` of a part begins; the options that make the part follow."""
Cell = tuple[str, str, int]
"""Game, arm and seed."""


def planned_cells(plan: Mapping[str, Any], path: Path) -> dict[str, list[Cell]]:
    """The cells of a plan, by the name of their population.

    Raises
    ------
    UserError
        If ``plan``, which ``path`` holds, is none.

    Examples
    --------
    >>> runs = [{"game": "pong", "arm": "gram:0.1", "label": "gram", "seed": 0}]
    >>> planned_cells({"populations": [{"id": "p000", "runs": runs}]}, Path("plan.json"))
    {'p000': [('pong', 'gram', 0)]}
    """
    try:
        return {
            str(population["id"]): [
                (str(run["game"]), str(run.get("label") or run["arm"]), int(run["seed"])) for run in population["runs"]
            ]
            for population in plan["populations"]
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"'{path}' is not the plan of a study: {error!r}") from error


def in_no_part(folder: str | Path) -> list[Cell]:
    """The cells of a study that none of its parts has; none where it was not run in several parts.

    The ``study.toml`` of a part is the whole study. All parts have all arms; where an arm plays some games alone,
    nothing is said.
    """
    plans = plan_paths(Path(folder))
    if len(plans) < 2:
        return []
    planned: set[Cell] = set()
    whole: set[Cell] = set()
    for path in plans:
        own = {cell for cells in planned_cells(read_json(path), path).values() for cell in cells}
        planned |= own
        study = _whole(path.parent / "study.toml")
        if not any("games" in arm for arm in study.get("arms", ())):
            games, seeds = (game_name(game) for game in study.get("games", ())), study.get("seeds", ())
            whole |= set(product(games, {arm for _, arm, _ in own}, seeds))
    return sorted(whole - planned)


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises
    ------
    UserError
        If it cannot be read, or holds no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error


def _whole(path: Path) -> dict[str, Any]:
    """The study that a part was taken from; empty where a folder holds no part, or its file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text) if text.startswith(PART) else {}
    except (OSError, ValueError):
        return {}


def cells_text(cells: list[Cell]) -> str:
    """Cells of a study in few words: the seeds of each game.

    Examples
    --------
    >>> cells_text([("pong", "dqn", 0), ("pong", "gram", 0), ("pong", "gram", 1), ("qbert", "dqn", 2)])
    'pong (seeds 0, 1), qbert (seed 2)'
    """
    seeds: dict[str, set[int]] = {}
    for game, _, seed in cells:
        seeds.setdefault(game, set()).add(seed)
    return ", ".join(
        f"{game} ({'seed' if len(own) == 1 else 'seeds'} {', '.join(map(str, sorted(own)))})"
        for game, own in sorted(seeds.items())
    )
