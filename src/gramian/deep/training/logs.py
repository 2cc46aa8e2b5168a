"""The files that a run writes: plain, append-only, and the same bytes whenever the run is made again.

| file | content |
| --- | --- |
| ``config.toml`` | everything that the run is made of |
| ``provenance.json`` | command, commit, versions and hardware of each process that worked on it |
| ``episodes.csv`` | every game that ended |
| ``metrics.csv`` | losses and diagnostics, at a set interval |
| ``representation.csv`` | measures of the features on held-out states, at a set interval |
| ``timing.csv`` | wall-clock times; the only log that differs between two makings of the same run |
| ``status.json`` | ``running``, ``interrupted``, ``done``, ``diverged`` or ``failed``, with the reason |
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import tomli_w

from gramian.core.errors import WorkFailed
from gramian.core.files import replace_text
from gramian.deep.training.config import Config, RunSpec, to_mapping
from gramian.representation.measures import MEASURES

State = Literal["running", "interrupted", "done", "diverged", "failed"]

EPISODE_COLUMNS = (
    "frames", "environment", "episode", "raw_return", "clipped_return", "length_agent_steps", "truncated",
)  # fmt: skip
"""``frames`` is the run's count at the episode's end, over all its environments."""
METRIC_COLUMNS = (
    "frames", "agent_steps", "updates", "epsilon", "loss", "td_loss", "penalty_loss", "penalty", "td_error", "q",
    "feature_norm", "feature_cross", "feature_std", "active_features",
    "grad_norm_head", "grad_norm_head_td", "grad_norm_head_penalty",
    "grad_norm_body", "grad_norm_body_td", "grad_norm_body_penalty",
)  # fmt: skip
"""`gramian.deep.agent.diagnostics` defines them."""
REPRESENTATION_COLUMNS = (
    "frames", "agent_steps", "updates", *(name for name in MEASURES if name not in ("states", "dr3_dot")),
)  # fmt: skip
"""`gramian.representation.measures` defines them; the held-out states have no successors."""
TIMING_COLUMNS = ("agent_steps", "seconds", "agent_steps_per_second")
COLUMNS = {
    "episodes.csv": EPISODE_COLUMNS,
    "metrics.csv": METRIC_COLUMNS,
    "representation.csv": REPRESENTATION_COLUMNS,
    "timing.csv": TIMING_COLUMNS,
}
LAST_EPISODES = 100
"""Games that a run's score is the mean return of: the last ones of its training, as in the author's code."""


class CsvLog:
    r"""A CSV file that only grows, and knows its length and its SHA-256 sum."""

    def __init__(self, path: Path, columns: Sequence[str], length: int | None = None) -> None:
        """Open the log at ``path``; cut it to ``length`` bytes where one is given, else begin it anew."""
        self.path = path
        self._file = path.open("wb" if length is None else "r+b")
        self._sum = hashlib.sha256()
        if length is None:
            self._write(",".join(columns))
        else:
            self._file.truncate(length)
            self._sum.update(self._file.read())

    def append(self, values: Sequence[object]) -> None:
        """Add a row; floats are written so that they read back as the same numbers."""
        self._write(",".join(map(_cell, values)))

    def flush(self) -> tuple[int, str]:
        """Bring everything to the disk; give the length in bytes and the SHA-256 sum."""
        self.push()
        os.fsync(self._file.fileno())
        return self._file.tell(), self._sum.hexdigest()

    def push(self) -> None:
        """Let other processes see what was written, without waiting for the disk."""
        self._file.flush()
        if not self.path.exists() or not os.path.samestat(self.path.stat(), os.fstat(self._file.fileno())):
            raise WorkFailed(f"'{self.path}' was removed or replaced while it was written")

    def close(self) -> None:
        """Close the file. What counts was flushed before; an error here would hide the one that led to it."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, row: str) -> None:
        data = (row + "\n").encode()
        self._file.write(data)
        self._sum.update(data)


class RunLog:
    """The CSV files of one run; ``lengths`` in bytes, by name, where it goes on from a checkpoint."""

    def __init__(self, folder: Path, lengths: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        self.files = {
            name: CsvLog(folder / name, columns, None if lengths is None else lengths.get(name))
            for name, columns in COLUMNS.items()
        }

    def add(self, name: str, values: Mapping[str, object]) -> None:
        """Add a row to a file, by the names of its columns."""
        self.files[name].append([values[column] for column in COLUMNS[name]])

    def flush(self) -> dict[str, tuple[int, str]]:
        """Bring all files to the disk; give the length and the sum of each."""
        return {name: log.flush() for name, log in self.files.items()}

    def push(self) -> None:
        """Let other processes see what was written."""
        for log in self.files.values():
            log.push()

    def close(self) -> None:
        """Close all files."""
        for log in self.files.values():
            log.close()


def write_config(folder: Path, config: Config, run: RunSpec) -> None:
    """Write ``config.toml``."""
    replace_text(folder / "config.toml", tomli_w.dumps(to_mapping(config, run)))


def write_status(folder: Path, state: State, agent_steps: int, reason: str = "") -> None:
    """Write ``status.json``; on a full disk in place of the old one, which is better than an untrue one."""
    text = json.dumps({"state": state, "agent_steps": agent_steps, "reason": reason}, indent=1) + "\n"
    try:
        replace_text(folder / "status.json", text)
    except OSError:
        with contextlib.suppress(OSError):
            (folder / "status.json").write_text(text, encoding="utf-8")
        raise


def read_status(folder: Path) -> dict[str, Any]:
    """What `write_status` wrote."""
    status: dict[str, Any] = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    return status


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)
