"""What a study's folder says that it holds: its planned cells, the parts it is run in, the manifest of an export.

Reads JSON and TOML; needs neither polars nor a learner.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from gramian.core.arms import arm_label
from gramian.core.errors import UserError
from gramian.core.files import EXPORT, file_name, files_below, plan_paths, replace_text
from gramian.core.games import game_name

PLAN, STUDY, POPULATIONS = "plan.json", "study.toml", "populations"
SETTLED = ("done", "diverged")
"""States of a run that no further training changes; its logs are on the disk before it says so."""
PART = "# This folder holds a part of it: "
"""How the ``study.toml`` of a part begins; the options that make the part follow."""
IN_NO_PART = "in no part of the study"
"""Why a cell is missing that no part has planned."""
MOST_TITLES = 3
"""Studies side by side that are named one by one."""
FORMAT = 1
TABLES = ("runs", "episodes", "metrics", "held_out")
REST = "beside.json"
"""Manifest, without tables, of the files that lie in no part of an export, as the analysis does."""

Cell = tuple[str, str, int]
"""Game, arm (or its label) and seed."""


def read_json(path: Path) -> Any:
    """What a JSON file holds; refused in one line where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds; refused in one line where it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error


@dataclass(frozen=True)
class Planned:
    """What a study was meant to be."""

    title: str = ""
    cells: dict[Cell, str] = field(default_factory=dict)
    """Every cell, with the reason why it failed where it did."""
    evaluation_games: tuple[str, ...] = ()
    """Kept for judging what is chosen in the study."""
    evaluation_seeds: tuple[int, ...] = ()


def check_ids(ids: Sequence[str], where: str) -> None:
    """Refuse a plan whose populations would share a folder, or that has none."""
    if not ids or len(set(ids)) < len(ids):
        raise UserError(
            f"{where} is damaged (it must have populations, each with an id of its own); plan the study anew"
        )


def planned_cells(plan: Any, path: Path) -> dict[str, list[Cell]]:
    """The cells of a plan by the name of their population; ``path`` is the plan's, for the complaint."""
    try:
        cells = {
            file_name(population["id"], path): [
                (str(run["game"]), arm_label(run), int(run["seed"])) for run in population["runs"]
            ]
            for population in plan["populations"]
        }
        check_ids([population["id"] for population in plan["populations"]], f"'{path}'")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"'{path}' is not the plan of a study: {error!r}") from error
    return cells


def read_planned(folder: str | Path) -> Planned:
    """The plan in a study's folder, or those of its parts below, with the cells of the whole that no part has."""
    cells = dict.fromkeys(in_no_part(folder), IN_NO_PART)
    titles, kept = [], set()
    for path in plan_paths(Path(folder)):
        plan = read_json(path)
        for population, own in planned_cells(plan, path).items():
            cells |= dict.fromkeys(own, _failure(path.parent / POPULATIONS / f"{population}.attempts.jsonl"))
        titles.append(str(plan.get("title", "")))
        study = path.parent / STUDY
        table = read_toml(study).get("evaluation", {}) if study.exists() else {}
        kept.add((tuple(table.get("games", ())), tuple(table.get("seeds", ()))))
    return Planned(joined_title(titles), cells, *(kept.pop() if len(kept) == 1 else ()))


def joined_title(titles: Iterable[str]) -> str:
    """What studies side by side are called together: the title that all begin with, else all, where they are few."""
    found = list(dict.fromkeys(title for title in titles if title))
    shortest = min(found, key=len, default="")
    if all(title == shortest or re.match(rf"{re.escape(shortest)}\W", title) for title in found):
        return shortest
    return "; ".join(found) if len(found) <= MOST_TITLES else ""


def _failure(path: Path) -> str:
    """Why a population failed, by the last line of its log of attempts; empty where it did not."""
    try:
        last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    except (OSError, ValueError, IndexError):  # not there, or still being written
        return ""
    if not isinstance(last, dict) or last.get("event") != "failed":
        return ""
    return str(last.get("reason") or "failed")


def in_no_part(folder: str | Path) -> list[Cell]:
    """The cells of a study that none of its several parts has; none are known where an arm plays some games alone."""
    plans = plan_paths(Path(folder))
    planned: set[Cell] = set()
    whole: set[Cell] = set()
    for path in plans if len(plans) > 1 else ():
        own = {cell for cells in planned_cells(read_json(path), path).values() for cell in cells}
        planned |= own
        study = _whole(path.parent / STUDY)
        if not any("games" in arm for arm in study.get("arms", ())):
            games, seeds = (game_name(game) for game in study.get("games", ())), study.get("seeds", ())
            whole |= set(product(games, {arm for _, arm, _ in own}, seeds))
    return sorted(whole - planned)


def _whole(path: Path) -> dict[str, Any]:
    """The study that a part was taken from; empty where a folder holds no part, or its file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text) if text.startswith(PART) else {}
    except (OSError, ValueError):
        return {}


def cells_text(cells: Sequence[Cell]) -> str:
    """Cells of a study in few words: the seeds of each game."""
    seeds: dict[str, set[int]] = {}
    for game, _, seed in cells:
        seeds.setdefault(game, set()).add(seed)
    return ", ".join(
        f"{game} ({'seed' if len(own) == 1 else 'seeds'} {', '.join(map(str, sorted(own)))})"
        for game, own in sorted(seeds.items())
    )


def write_manifest(path: Path, *, tables: Sequence[str], beside: Sequence[str], **more: Any) -> None:
    """Write the manifest of an export: the SHA-256 of its tables, of the files beside them, and of itself."""

    def hashes(names: Sequence[str]) -> dict[str, str]:
        return {name: _sha256((path.parent / name).read_bytes()) for name in names}

    content = {"format": FORMAT, "files": hashes(tables), "beside": hashes(beside), **more}
    content["sha256"] = _sha256(json.dumps(content).encode())
    replace_text(path, json.dumps(content, indent=1) + "\n")


def read_manifest(path: Path) -> dict[str, Any]:
    """What the manifest of an export holds; it and every file that it names must be what was written."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        form, files = content["format"], {**content["files"], **content["beside"]}
        if form == FORMAT and content.pop("sha256") != _sha256(json.dumps(content).encode()):
            raise damaged(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, repr(error)) from error
    if form != FORMAT:
        raise UserError(f"'{path}' has format {form!r}, not {FORMAT}; use the version that wrote it")
    if missing := [name for name in files if not (path.parent / name).exists()]:
        raise _not_whole(path.parent, missing)
    for name, sha256 in files.items():
        if _sha256((path.parent / name).read_bytes()) != sha256:
            raise damaged(path.parent / name)
    return dict(content)


def check_exports(folder: Path) -> dict[Path, Mapping[str, Any]]:
    """The manifests of the exports in a folder and those below it, by their paths; see `read_manifest`."""
    for path in files_below(folder, "runs.parquet"):
        others = ((path.parent / f"{name}.parquet").exists() for name in TABLES)
        if all(others) and not (path.parent / EXPORT).exists():
            raise _not_whole(path.parent, [EXPORT])
    return {path: read_manifest(path) for name in (EXPORT, REST) for path in files_below(folder, name)}


def damaged(path: Path, why: object = "it is not what was written") -> UserError:
    """The error of a file of an export that is not as it was."""
    return UserError(f"'{path}' is damaged ({str(why).splitlines()[0]}); export the study again")


def _not_whole(folder: Path, missing: Sequence[str]) -> UserError:
    return UserError(f"the export '{folder}' is not whole, missing: {', '.join(missing)}; export the study again")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
