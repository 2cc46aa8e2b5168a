"""``gramian runs``: the runs below a folder, in folders of their own and in exports of studies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from gramian.core.errors import UserError
from gramian.core.files import EXPORT, files_below
from gramian.core.games import find_game
from gramian.deep.runs.listing import RunSummary, list_runs, table
from gramian.deep.training.config import settings_from
from gramian.deep.training.logs import LAST_EPISODES


@dataclass(frozen=True)
class RunsOptions:
    """Where to look."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Every run below it is shown, also of exported studies."""


def runs_command(options: RunsOptions) -> int:
    """List the runs below a folder: how far they are, and the mean raw return of their last 100 games."""
    runs = sorted([*list_runs(options.folder), *exported_runs(options.folder)], key=lambda run: run.folder)
    if not runs:
        raise UserError(f"there is no run below '{options.folder}'; name the folder that was given as --out")
    print(table(runs, options.folder))
    print("\nsteps: agent steps; return: mean raw return of the last 100 games")
    return 0


def exported_runs(folder: Path) -> list[RunSummary]:
    """The runs of all exports below a folder as they stood then; other people's, which are imported, are left out.

    What cannot be read is there too, an export as one run.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / EXPORT).write_text('{"format": 1, "files": {"runs.parquet": "0"}, "beside": []}')
    >>> [(run.state, run.reason) for run in exported_runs(folder)]
    [('unreadable', "the export '...' is not whole, missing: runs.parquet; export the study again")]
    """
    found: list[RunSummary] = []
    for head in files_below(folder, EXPORT):
        try:
            found += _read(head)
        except UserError as error:
            found.append(_unreadable(head.parent, str(error)))
        except ModuleNotFoundError as error:  # where a study was trained there may be no polars
            found.append(_unreadable(head.parent, f"an export is read by the package {error.name!r}; install it"))
    return found


def _read(head: Path) -> list[RunSummary]:
    import polars as pl

    from gramian.study.packed import Packed

    packed = Packed(head)
    settings = packed.notes("settings")
    ours = packed.runs().filter(pl.col("run").is_in(list(settings)))
    last = pl.col("return").cast(pl.Float64).tail(LAST_EPISODES)
    played = packed.log("episodes").group_by("run").agg(pl.len(), last.mean().fill_null(math.nan))
    scores = {run: (games, mean) for run, games, mean in played.iter_rows()}
    standing = ours.select("run", "game", "folder", "state", "agent_steps", "reason")
    found = []
    for run, game, own, state, steps, reason in standing.iter_rows():
        try:
            frames = (steps or 0) * _frames_per_agent_step(game, settings[run], head)
        except UserError as error:
            found.append(_unreadable(head.parent / own, str(error)))
            continue
        games, mean = scores.get(run, (0, math.nan))
        found.append(RunSummary(head.parent / own, state, steps or 0, frames, games, mean, reason, exported=True))
    return found


def _frames_per_agent_step(game: str, settings: Mapping[str, Any], head: Path) -> int:
    atari = settings_from(settings, f"'{head}'").environment.atari
    return atari.frame_skip if find_game(game).kind == "atari" else 1


def _unreadable(folder: Path, reason: str) -> RunSummary:
    return RunSummary(folder, "unreadable", 0, 0, 0, math.nan, reason, exported=True)
