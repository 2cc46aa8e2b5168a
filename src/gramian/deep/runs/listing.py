"""The runs below a folder, as their files tell."""

import json
import math
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gramian.core.errors import UserError
from gramian.core.files import files_below
from gramian.deep.runs.load import CONFIG, read_run
from gramian.deep.training.logs import LAST_EPISODES

NARROW = 80
"""Columns where there is no terminal to ask."""


@dataclass(frozen=True)
class RunSummary:
    """Where a run stands.

    Attributes
    ----------
    folder
        Its folder.
    state
        As ``status.json`` has it, which a killed process leaves at ``running``; ``unreadable`` where it is damaged.
    agent_steps, frames
        How far it had come when its status was written last.
    games
        Episodes in its log.
    mean_return
        Mean raw return of the last hundred of them; NaN before the first.
    reason
        Why it diverged, failed or cannot be read.
    exported
        Whether it lies in an export of a study, without weights.
    """

    folder: Path
    state: str
    agent_steps: int
    frames: int
    games: int
    mean_return: float
    reason: str
    exported: bool = False


def list_runs(folder: Path | str) -> list[RunSummary]:
    """All runs below ``folder``, itself included, by their paths.

    Folders below it whose names begin with a dot are not looked into.

    Raises
    ------
    UserError
        If ``folder`` is not there.

    Examples
    --------
    >>> import tempfile
    >>> list_runs(tempfile.mkdtemp())
    []
    """
    root = Path(folder)
    if not root.is_dir():
        raise UserError(f"'{root}' is not a folder; name the one that was given as --out, or one above it")
    return [_summary(path.parent) for path in files_below(root, CONFIG) if _is_run(path.parent)]


def table(runs: Sequence[RunSummary], root: Path, columns: int | None = None) -> str:
    """The runs as text, the folders that they lie in as headings; a name too long for a row gets a line of its own.

    Examples
    --------
    >>> run = RunSummary(Path("runs/a/pong-dqn-s0"), "done", 5_000_000, 20_000_000, 4321, -3.25, "")
    >>> print(table([run], Path("runs")))
    state      steps      frames  games  return  run
    a
    done   5,000,000  20,000,000  4,321   -3.25  pong-dqn-s0
    """
    columns = columns or shutil.get_terminal_size((NARROW, 24)).columns
    heading = ("state", "steps", "frames", "games", "return")
    rows = [
        (
            run.state,
            f"{run.agent_steps:,}",
            f"{run.frames:,}",
            f"{run.games:,}",
            "–" if math.isnan(run.mean_return) else f"{run.mean_return:,.2f}",
        )
        for run in runs
    ]
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others)])

    lines = [f"{line(heading)}  run"]
    above = ""
    for run, cells in zip(runs, rows, strict=True):
        if (place := _place(run, root)) != above:
            lines.append(above := place)
        row = f"{line(cells)}  {run.folder.name}"
        lines += [row] if len(row) <= columns else [line(cells), f"  {run.folder.name}"]
        if run.reason:
            lines += textwrap.wrap(run.reason, columns, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _place(run: RunSummary, root: Path) -> str:
    """The folder that a run lies in, and what it is; nothing for runs that lie in the root itself."""
    parent = run.folder.parent
    place = parent.relative_to(root) if parent.is_relative_to(root) else parent
    if run.exported:
        return f"{place} (export, without weights)"
    return "" if place == Path() else str(place)


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("status.json", "provenance.json"))


def _summary(folder: Path) -> RunSummary:
    try:
        status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
        state, steps, reason = str(status["state"]), int(status["agent_steps"]), str(status["reason"])
        frames = steps * read_run(folder).frames_per_agent_step
        returns = _returns(folder / "episodes.csv")
    except OSError as error:
        reason = f"cannot read '{error.filename}': {(error.strerror or str(error)).lower()}"
        return RunSummary(folder, "unreadable", 0, 0, 0, math.nan, reason)
    except (ValueError, LookupError, TypeError, UserError) as error:
        return RunSummary(folder, "unreadable", 0, 0, 0, math.nan, f"damaged: {error}")
    last = returns[-LAST_EPISODES:]
    return RunSummary(folder, state, steps, frames, len(returns), sum(last) / len(last) if last else math.nan, reason)


def _returns(path: Path) -> list[float]:
    # A log that is being written may end in the middle of a line.
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
    heading, *rows = whole.split("\n")
    if not heading:
        return []
    column = heading.split(",").index("raw_return")
    return [float(row.split(",")[column]) for row in rows]
