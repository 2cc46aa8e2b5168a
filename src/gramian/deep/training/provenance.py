"""``provenance.json``: command, commit, versions and hardware of each process that worked on a run."""

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
from typing import Any

import torch

import gramian
from gramian.core.files import replace_text


def add_provenance(folder: Path, record: Mapping[str, Any]) -> None:
    """Add this process to ``provenance.json``, a list of all that have worked on the run."""
    path = folder / "provenance.json"
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else "[]"
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
    """Command (by default this process's own), commit, versions and hardware. Environment variables are left out."""
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
    root = Path(gramian.__file__).parent

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", __file__)  # the repository may belong to the environment of an installation
        commit, difference = git("rev-parse", "HEAD").decode().strip(), git("diff", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "diff_sha256": hashlib.sha256(difference).hexdigest() if difference else ""}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
