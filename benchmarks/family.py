"""What a process takes together with those that it has started: the package's emulators are processes of their own."""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def descendants(process: int | str = "self") -> list[Path]:
    """Folders, in Linux's ``/proc``, of the processes that a process has started, and those have; none elsewhere."""
    found = []
    for file in PROC.glob(f"{process}/task/*/children"):
        with suppress(OSError):  # a thread that has ended
            for child in file.read_text(encoding="ascii").split():
                found += [PROC / child, *descendants(child)]
    return found


def rss_bytes() -> tuple[int, int]:
    """Memory that lies in RAM, of this process and its descendants: now, and the sum of their peaks.

    What two of them share, such as the code of a library, counts twice.
    """
    if not (PROC / "self").exists():
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
        return peak, peak
    return rss_of((PROC / "self", *descendants()))


def rss_of(processes: Iterable[Path]) -> tuple[int, int]:
    """Memory that lies in RAM, of processes by their folders in ``/proc``: now, and the sum of their peaks."""
    now = most = 0
    for place in processes:
        with suppress(OSError):  # a process that has ended
            lines = dict(line.split(":", 1) for line in (place / "status").read_text(encoding="utf-8").splitlines())
            if "VmRSS" in lines:  # which one that has ended and was not waited for lacks
                now += int(lines["VmRSS"].split()[0]) * 1024
                most += int(lines["VmHWM"].split()[0]) * 1024
    return now, most


def cpu_seconds() -> tuple[float, float]:
    """Processor time so far: of this process, and of its descendants that are at work, in hundredths of a second."""
    others = 0
    for place in descendants():
        with suppress(OSError):
            # the name, in brackets, may have blanks in it; the times are the 14th and 15th field
            fields = (place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            others += int(fields[11]) + int(fields[12])
    return time.process_time(), others / os.sysconf("SC_CLK_TCK")
