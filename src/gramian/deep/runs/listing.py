"""The runs below a folder, as their files describe them."""

import csv
import math
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gramian.core.errors import UserError
from gramian.core.files import files_below
from gramian.deep.runs.load import CONFIG, read_run
from gramian.deep.training.logs import LAST_EPISODES, read_status

NARROW = 80
"""Columns where there is no terminal to ask."""


@dataclass(frozen=True)
class RunSummary:
    """How far a run has come."""

    folder: Path
    """Its folder."""
    state: str
    """As ``status.json`` has it, which a killed process leaves at ``running``; ``unreadable`` where it is damaged."""
    agent_steps: int
    """When its status was last written."""
    frames: int
    """The same in emulator frames."""
    games: int
    """Episodes in its log."""
    mean_return: float
    """Mean raw return of the last hundred of them; NaN before the first."""
    reason: str
    """Why it diverged, failed or cannot be read."""
    exported: bool = False
    """Whether it lies in an export of a study, without weights."""


def list_runs(folder: Path | str) -> list[RunSummary]:
    """All runs below ``folder``, itself included, by their paths; hidden folders below it are skipped.

    Raises
    ------
    UserError
        If ``folder`` does not exist.

    Examples
    --------
    >>> import tempfile
    >>> list_runs(tempfile.mkdtemp())
    []
    """
    root = Path(folder)
    if not root.is_dir():
        raise UserError(f"'{root}' is not a folder; name the one that was given as --out, or one above it")
    folders = [path.parent for path in files_below(root, CONFIG)]
    files = ("status.json", "provenance.json")
    return [_summary(folder) for folder in folders if any((folder / name).exists() for name in files)]


def table(runs: Sequence[RunSummary], root: Path, columns: int | None = None) -> str:
    """The runs as text, their folders as headings; a name too long for its row gets a line of its own.

    Examples
    --------
    >>> run = RunSummary(Path("runs/a/pong-dqn-s0"), "done", 5_000_000, 20_000_000, 4321, -3.25, "")
    >>> print(table([run], Path("runs")))
    state      steps      frames  games  return  run
    a
    done   5,000,000  20,000,000  4,321   -3.25  pong-dqn-s0
    """
    columns = columns or shutil.get_terminal_size((NARROW, 24)).columns
    rows = [("state", "steps", "frames", "games", "return")]
    for run in runs:
        mean = "–" if math.isnan(run.mean_return) else f"{run.mean_return:,.2f}"
        rows.append((run.state, f"{run.agent_steps:,}", f"{run.frames:,}", f"{run.games:,}", mean))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    heading, *cells = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    lines, above = [f"{heading}  run"], ""
    for run, line in zip(runs, cells, strict=True):
        if (place := _place(run, root)) != above:
            lines.append(above := place)
        row = f"{line}  {run.folder.name}"
        lines += [row] if len(row) <= columns else [line, f"  {run.folder.name}"]
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


def _summary(folder: Path) -> RunSummary:
    try:
        status = read_status(folder)
        state, steps, reason = str(status["state"]), int(status["agent_steps"]), str(status["reason"])
        frames = steps * read_run(folder).frames_per_agent_step
        # a log that is being written may end in the middle of a line
        whole, _, _ = (folder / "episodes.csv").read_text(encoding="utf-8").rpartition("\n")
        returns = [float(row["raw_return"]) for row in csv.DictReader(whole.splitlines())]
    except OSError as error:
        reason = f"cannot read '{error.filename}': {(error.strerror or str(error)).lower()}"
        return RunSummary(folder, "unreadable", 0, 0, 0, math.nan, reason)
    except (ValueError, LookupError, TypeError, UserError) as error:
        return RunSummary(folder, "unreadable", 0, 0, 0, math.nan, f"damaged: {error}")
    last = returns[-LAST_EPISODES:]
    return RunSummary(folder, state, steps, frames, len(returns), sum(last) / len(last) if last else math.nan, reason)
