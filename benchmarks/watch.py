"""What studies take while they run: a row every few seconds, until it is told to stop.

    python -m benchmarks.watch runs/atari runs/dopamine --out watched.csv --every 10

Watches the studies in the folders, and below them, from a process of its own, and changes nothing of theirs. It ends
by Ctrl-C or SIGTERM; the file is whole at any time. Its columns:

``elapsed_s``
    since the beginning.
``processes``
    at work: those that hold the lock of a population, and ``gramian train`` where its command line names one of the
    folders, or one below it. On this machine alone, and not those that were stopped and may go on.
``agent_steps``
    that all runs have logged so far: the last row of each ``timing.csv``, which a run writes every 10,000 steps or so.
``cores_busy``, ``cores_stolen``
    share of the machine's cores that was at work, for whomever, and that its host gave to others, since the last row;
    empty where the system does not say.
``gpu_busy``
    share of the time, just then, in which the GPUs were at work, their mean; 0 without a GPU.
``rss_bytes``
    resident memory of these processes, stopped ones too, of the ``gramian`` commands that started them, and of all that
    those have started. What two of them share counts twice.
``device_bytes``
    in use on all GPUs, by whomever; 0 without a GPU.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from benchmarks.command_line import Parser, complain, new_file, whole
from benchmarks.family import PROC, descendants, rss_of
from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import files_below, output_folder
from gramian.core.progress import counted
from gramian.study.attempts import attempts

COLUMNS = (
    "elapsed_s", "processes", "agent_steps", "cores_busy", "cores_stolen", "gpu_busy", "rss_bytes", "device_bytes",
)  # fmt: skip
TAIL_BYTES = 4096
"""Of a log, from its end: more than a row has."""
GPU_QUERY = ("nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits")
GPU_PATIENCE_S = 10.0


class Ticks(NamedTuple):
    """Time of all cores since the machine started, in ticks."""

    busy: int
    stolen: int
    total: int


def ticks(stat: Path = PROC / "stat") -> Ticks:
    """What the system has counted so far."""
    user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen = map(
        int, stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    )
    busy = user + nice + system + interrupts + soft_interrupts
    return Ticks(busy, stolen, busy + stolen + idle + waiting)


def shares(before: Ticks, now: Ticks) -> tuple[str, str]:
    """Shares of the time between that cores were busy, and stolen; empty where nothing was counted.

    Examples
    --------
    >>> shares(Ticks(100, 10, 1000), Ticks(400, 20, 1400))
    ('0.750', '0.025')
    >>> shares(Ticks(0, 0, 0), Ticks(0, 0, 0))
    ('', '')
    """
    total = now.total - before.total
    return (
        (f"{(now.busy - before.busy) / total:.3f}", f"{(now.stolen - before.stolen) / total:.3f}")
        if total
        else ("", "")
    )


def logged_agent_steps(folders: Sequence[Path]) -> int:
    """Agent steps in the last whole row of each run's ``timing.csv`` below the folders, all runs together."""
    return sum(
        map(_last_agent_steps, {log.resolve() for folder in folders for log in files_below(folder, "timing.csv")})
    )


def _last_agent_steps(log: Path) -> int:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]  # after the last line's end is nothing, or what is being written
    except OSError:  # taken away since
        return 0
    last = lines[-1].split(b",")[0] if lines else b""
    return int(last) if last.isdigit() else 0


def holders(folders: Sequence[Path]) -> set[int]:
    """Processes of this machine that hold the lock of a population below the folders.

    The lock itself is not tried: for that moment nobody else could take it.
    """
    found = set()
    for folder in folders:
        for lock in folder.resolve().rglob("populations/*.lock"):
            past = attempts(lock.parents[1], lock.stem)
            here = past and past[-1].event == "started" and past[-1].host == socket.gethostname()
            if here and _has_open(past[-1].pid, lock):
                found.add(past[-1].pid)
    return found


def _has_open(process: int, file: Path) -> bool:
    for descriptor in (PROC / str(process) / "fd").glob("*"):
        with suppress(OSError):  # closed since, or of a process that is not ours
            if descriptor.readlink() == file:
                return True
    return False


def trainers(folders: Sequence[Path]) -> set[int]:
    """Processes whose command line is ``gramian train`` and names one of the folders, or one below."""
    roots = [folder.resolve() for folder in folders]
    found = set()
    for place in PROC.glob("[0-9]*"):
        words = command_line(place)
        if not (is_gramian(words) and "train" in words):
            continue
        with suppress(OSError):  # ended since, or not ours
            here = (place / "cwd").readlink()
            named = [(here / word.rpartition("=")[2]).resolve() for word in words]
            if any(path.is_relative_to(root) for path in named for root in roots):
                found.add(int(place.name))
    # of one that was started by another, as by a launcher with the same words, the inner one is at work
    return {process for process in found if not any(int(below.name) in found for below in descendants(process))}


def command_line(place: Path) -> list[str]:
    """Words of a process's command line, by its folder in ``/proc``; none of one that has ended."""
    with suppress(OSError):
        return (place / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    return []


def is_gramian(words: Sequence[str]) -> bool:
    """Whether a command line calls the package.

    Examples
    --------
    >>> is_gramian(["python", "-m", "gramian", "train"]), is_gramian(["python", "/usr/bin/gramian", "train"])
    (True, True)
    >>> is_gramian(["tail", "-f", "gramian/log"])
    False
    """
    return any(Path(word).name == "gramian" or word.startswith("gramian.") for word in words[:4])


def family(process: int) -> set[Path]:
    """Folders, in ``/proc``, of a process, of the ``gramian`` commands it comes from, and of all that they started."""
    top = PROC / str(process)
    with suppress(OSError, ValueError):
        while is_gramian(command_line(above := PROC / _parent(top))):
            top = above
    return {top, *descendants(top.name)}


def _parent(place: Path) -> str:
    return _stat(place)[1]


def is_stopped(process: int) -> bool:
    """Whether a process was told to stop, and not yet to go on."""
    with suppress(OSError):
        return _stat(PROC / str(process))[0] == "T"
    return False


def _stat(place: Path) -> list[str]:
    """State, parent and what else follows a process's name, which is in brackets and may have blanks in it."""
    return (place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def gpu() -> tuple[float, int]:
    """Mean share of busy time of the GPUs and the bytes that are in use on them; 0 of both where none answers."""
    if shutil.which(GPU_QUERY[0]) is None:
        return 0.0, 0
    try:
        said = subprocess.run(GPU_QUERY, capture_output=True, text=True, check=True, timeout=GPU_PATIENCE_S).stdout
        rows = [[float(cell) for cell in line.split(",")] for line in said.splitlines()]
        return sum(busy for busy, _ in rows) / len(rows) / 100, sum(int(used) << 20 for _, used in rows)
    except (subprocess.SubprocessError, OSError, ValueError, ZeroDivisionError):
        return 0.0, 0


def sample(folders: Sequence[Path]) -> tuple[int, int, float, int, int]:
    """Processes at work, agent steps, share of the GPUs, memory of the host and of the GPUs."""
    found = holders(folders) | trainers(folders)
    at_work = sum(not is_stopped(process) for process in found)
    places = set().union(*map(family, found))
    gpu_busy, device_bytes = gpu()
    return at_work, logged_agent_steps(folders), gpu_busy, rss_of(places)[0], device_bytes


def watch(folders: Sequence[Path], out: Path, every_s: float, stopped: threading.Event) -> int:
    """Append a row every few seconds until it is to stop; the number of rows.

    Parameters
    ----------
    folders
        Of studies or of runs, or with such below them.
    out
        A row is there whole, or not at all.
    every_s
        Seconds between two rows.
    stopped
        Ends it.

    Raises
    ------
    WorkFailed
        If a row cannot be written; those before it are there.
    """
    rows, began, before = 0, time.monotonic(), ticks()
    with out.open("ab", buffering=0) as file:  # each line in one piece, and at once
        _append(file, COLUMNS)
        while not stopped.wait(max(0.0, began + (rows + 1) * every_s - time.monotonic())):
            processes, agent_steps, gpu_busy, rss_bytes, device_bytes = sample(folders)
            now = ticks()
            cells = (
                round(time.monotonic() - began), processes, agent_steps, *shares(before, now), f"{gpu_busy:.2f}",
                rss_bytes, device_bytes,
            )  # fmt: skip
            _append(file, cells)
            rows, before = rows + 1, now
    return rows


def _append(file: FileIO, cells: Sequence[object]) -> None:
    """Add a row to the end of a file, or nothing of it."""
    end = file.seek(0, os.SEEK_END)
    line = (",".join(map(str, cells)) + "\n").encode()
    try:
        whole_line = file.write(line) == len(line)
        reason = "no space left on device"
    except OSError as error:
        whole_line, reason = False, (error.strerror or str(error)).lower()
    if not whole_line:
        file.truncate(end)
        raise WorkFailed(f"cannot write '{file.name}' any further: {reason}")


@contextmanager
def told_to_stop() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set while the block runs."""
    stopped = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = [signal.signal(number, lambda *_: stopped.set()) for number in numbers]
    try:
        yield stopped
    finally:
        for number, handler in zip(numbers, former, strict=True):
            signal.signal(number, handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch until it is told to stop; the exit code."""
    parser = Parser("watch", __doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="of studies or of runs; must be there")
    parser.add_argument("--out", type=new_file, required=True, metavar="CSV", help="a new file")
    parser.add_argument("--every", type=whole(1, 3600), default=10, metavar="SECONDS", help="between rows; default 10")
    options = parser.parse_args(arguments)
    try:
        if not (PROC / "stat").exists():
            raise UserError(f"what processes take is read from Linux's {PROC}, which is not there")
        for folder in options.folders:
            if not folder.is_dir():
                raise UserError(f"there is no folder '{folder}'; name those of studies, or make it before they begin")
        if options.out.exists():
            raise UserError(f"'{options.out}' is there already; name a new file, or take it away")
        output_folder(options.out.parent)
        with told_to_stop() as stopped:
            rows = watch(options.folders, options.out, options.every, stopped)
    except UserError as error:
        complain("watch", error)
        return 2
    except WorkFailed as error:
        complain("watch", error)
        return 1
    print(f"benchmarks.watch: {counted(rows, 'row')} in '{options.out}'", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
