"""Who has worked on a population: a lock that one process holds at a time, and a log of all that held it.

``populations/<id>.lock`` is held with ``flock``: the kernel gives it back when its holder dies, however it dies. On a
network file system that means NFS 4, or a mount with ``flock`` (Lustre).

``populations/<id>.attempts.jsonl`` gets a line when a process takes the population up (``started``) and one for what
came of it: ``finished``, ``interrupted`` or ``failed``. There is one ``finished`` at most.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from gramian.study.plan import POPULATIONS

Event = Literal["started", "finished", "interrupted", "failed"]


@dataclass(frozen=True)
class Attempt:
    """A line of the log."""

    event: Event
    host: str
    pid: int
    time: str
    reason: str = ""


@contextmanager
def lock(study: Path, population: str) -> Iterator[bool]:
    """Hold the lock of a population; gives False, at once, where another process holds it.

    Examples
    --------
    >>> import tempfile
    >>> study = Path(tempfile.mkdtemp())
    >>> with lock(study, "p000") as first, lock(study, "p000") as second:
    ...     first, second
    (True, False)
    """
    path = _path(study, population, ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True  # closing the file gives the lock back


def is_locked(study: Path, population: str) -> bool:
    """Whether a process is at work on a population."""
    try:
        with _path(study, population, ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def record(study: Path, population: str, event: Event, reason: str = "") -> None:
    """Add a line to the log; only the holder of the lock does so.

    Examples
    --------
    >>> import tempfile
    >>> study = Path(tempfile.mkdtemp())
    >>> with lock(study, "p000"):
    ...     record(study, "p000", "started")
    ...     record(study, "p000", "failed", "no space left on device")
    >>> [(attempt.event, attempt.reason) for attempt in attempts(study, "p000")]
    [('started', ''), ('failed', 'no space left on device')]
    """
    line = {
        "event": event,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "reason": reason,
    }
    with _path(study, population, ".attempts.jsonl").open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # the writer before was killed in the middle of its line
                file.write(b"\n")
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def attempts(study: Path, population: str) -> list[Attempt]:
    """All lines of the log; one that was cut short is passed over."""
    try:
        lines = _path(study, population, ".attempts.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(Attempt(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def log_path(study: Path, population: str) -> Path:
    """What the processes that worked on a population printed."""
    return _path(study, population, ".log")


def _path(study: Path, population: str, suffix: str) -> Path:
    return study / POPULATIONS / f"{population}{suffix}"
