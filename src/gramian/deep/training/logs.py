"""The files that a run writes: plain, append-only, and the same bytes whenever the run is made again.

| file | content |
| --- | --- |
| ``config.toml`` | everything that the run is made of |
| ``provenance.json`` | command, commit, versions and hardware of each process that worked on it |
| ``episodes.csv`` | every game that ended |
| ``metrics.csv`` | what the learner looked like, at a set interval |
| ``representation.csv`` | what the features looked like on held-out states, at a set interval |
| ``timing.csv`` | wall-clock times; the only log that differs between two makings of the same run |
| ``status.json`` | ``running``, ``interrupted``, ``done``, ``diverged`` or ``failed``, with the reason |
"""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import tomli_w
import torch

import gramian
from gramian.core.files import replace_text
from gramian.deep.training.config import Config, RunSpec, to_mapping
from gramian.representation.streaming import MEASURES

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
LAST_EPISODES = 100
"""Games that a run's score is the mean return of: the last ones of its training, as in the author's code."""
REPRESENTATION_COLUMNS = (
    "frames", "agent_steps", "updates", *(name for name in MEASURES if name not in ("states", "dr3_dot")),
)  # fmt: skip
"""`gramian.representation.measures` defines them; the held-out states have no successors."""
TIMING_COLUMNS = ("agent_steps", "seconds", "agent_steps_per_second")


class CsvLog:
    r"""A CSV file that only grows, and knows its length to the byte.

    Examples
    --------
    >>> import tempfile
    >>> log = CsvLog(Path(tempfile.mkdtemp()) / "log.csv", ["frames", "return"])
    >>> log.append([4, 0.5])
    >>> log.flush()
    20
    >>> log.path.read_text()
    'frames,return\n4,0.5\n'
    """

    def __init__(self, path: Path, columns: Sequence[str], length: int | None = None) -> None:
        """Open the log at ``path``; cut it to ``length`` bytes where one is given, else begin it anew."""
        self.path = path
        self._file = path.open("wb" if length is None else "r+b")
        if length is None:
            self._file.write((",".join(columns) + "\n").encode())
        else:
            self._file.truncate(length)
            self._file.seek(length)

    def append(self, values: Sequence[object]) -> None:
        """Add a row; floats are written so that they read back as the same numbers."""
        self._file.write((",".join(map(_cell, values)) + "\n").encode())

    def flush(self) -> int:
        """Bring everything to the disk; give the length in bytes."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def push(self) -> None:
        """Let other processes see what was written, without waiting for the disk."""
        self._file.flush()

    def close(self) -> None:
        """Close the file. What counts was flushed before; an error here would hide the one that led to it."""
        with contextlib.suppress(OSError):
            self._file.close()


class RunLog:
    """The folder of one run.

    Parameters
    ----------
    folder
        ``OUT/<run>``.
    lengths
        Lengths of its CSV files, by name, where it goes on from a checkpoint; None where it begins.
    """

    def __init__(self, folder: Path, lengths: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        self._logs = {
            name: CsvLog(folder / name, columns, None if lengths is None else lengths.get(name))
            for name, columns in (
                ("episodes.csv", EPISODE_COLUMNS),
                ("metrics.csv", METRIC_COLUMNS),
                ("representation.csv", REPRESENTATION_COLUMNS),
                ("timing.csv", TIMING_COLUMNS),
            )
        }

    def episode(self, **values: object) -> None:
        """Add an episode."""
        self._logs["episodes.csv"].append([values[name] for name in EPISODE_COLUMNS])

    def metrics(self, values: Mapping[str, object]) -> None:
        """Add a row of metrics."""
        self._logs["metrics.csv"].append([values[name] for name in METRIC_COLUMNS])

    def representation(self, values: Mapping[str, object]) -> None:
        """Add a row of measures."""
        self._logs["representation.csv"].append([values[name] for name in REPRESENTATION_COLUMNS])

    def timing(self, *values: object) -> None:
        """Add a row of wall-clock times."""
        self._logs["timing.csv"].append(values)

    def flush(self) -> dict[str, int]:
        """Bring all logs to the disk; give their lengths in bytes."""
        return {name: log.flush() for name, log in self._logs.items()}

    def push(self) -> None:
        """Let other processes see what was written."""
        for log in self._logs.values():
            log.push()

    def close(self) -> None:
        """Close all logs."""
        for log in self._logs.values():
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


def add_provenance(folder: Path, record: Mapping[str, Any]) -> None:
    """Add this process to ``provenance.json``, a list of all that have worked on the run."""
    path = folder / "provenance.json"
    text = path.read_text(encoding="utf-8") if path.exists() else "[]"
    try:
        records = list(json.loads(text))
    except (ValueError, TypeError):
        records = [{"damaged": text}]
    replace_text(path, json.dumps([*records, record], indent=1) + "\n")


def torch_threads(folder: Path) -> int:
    """Most threads of torch that a process which worked on the run had; 0 where ``provenance.json`` does not say."""
    try:
        records = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
        return max(int(record["hardware"]["torch_threads"]) for record in records if "hardware" in record)
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def own_command() -> list[str]:
    """How this process was called, the program without its folder; ``python -m gramian`` is ``gramian``."""
    program = Path(sys.argv[0])
    ours = program.resolve() == Path(gramian.__file__).resolve().with_name("__main__.py")
    return ["gramian" if ours else program.name, *sys.argv[1:]]


def provenance(device: torch.device, command: Sequence[str] | None = None) -> dict[str, Any]:
    """Who is at work here: command, commit, versions and hardware. Environment variables are left out.

    ``command`` is this process's own, unless it is given.

    Examples
    --------
    >>> provenance(torch.device("cpu"))["versions"]["gramian"] == gramian.__version__
    True
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": own_command() if command is None else list(command),
        "git": _git(),
        "versions": {
            "python": platform.python_version(),
            "gramian": gramian.__version__,
            "torch": str(torch.__version__),  # with its build ("+cu130"), which the wheel's metadata may leave out
            **{name: _version(name) for name in ("numpy", "ale-py", "gymnasium", "numba", "safetensors")},
        },
        "hardware": {
            "machine": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "cores": os.cpu_count(),
            "torch_threads": torch.get_num_threads(),
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        },
    }


def _git() -> dict[str, str] | None:
    """Commit of the package's sources and a hash of what differs from it; None where they are not in a repository."""
    root = Path(__file__).parents[2]

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", __file__)  # the repository may be somebody's who has installed the package
        commit, difference = git("rev-parse", "HEAD").decode().strip(), git("diff", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "diff_sha256": hashlib.sha256(difference).hexdigest() if difference else ""}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)
