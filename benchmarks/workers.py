"""Processes that hold one contestant each and take turns.

A process fills its contestant's replay, warms up, says that it is ready, and then waits for orders on its standard
input, one JSON object a line, which it answers with one line each: how many agent steps were taken, in which time.
Each contestant has its own memory and its own threads.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

from benchmarks.contestants import CONTESTANTS, Contestant, Workload
from gramian.core.errors import WorkFailed

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Taken out of a process's environment, so that torch chooses its number of threads."""
PROC = Path("/proc")


class Measurement(NamedTuple):
    """What one order brought. Time and memory are of the process and of those that it has started."""

    agent_steps: int
    updates: int
    seconds: float
    cpu_seconds: float
    rss_bytes: int
    peak_rss_bytes: int
    device_bytes: int
    """Held on the GPU by the tensors and caches of the process; 0 without a GPU."""

    @property
    def rate(self) -> float:
        """Agent steps per second, all runs together."""
        return self.agent_steps / self.seconds


class Worker:
    """A process with one contestant, as seen from outside.

    Raises
    ------
    WorkFailed
        By any method, if the process has died.
    """

    def __init__(self, work: Workload) -> None:
        self.work = work
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 - closed by close
        environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
        environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.workers", work.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            bufsize=1,
            env=environment,
        )

    def wait(self) -> int:
        """Wait until the contestant is filled and warm; torch's own number of threads."""
        return int(self._answer()["default_threads"])

    def send(self, seconds: float, threads: int) -> None:
        """Order a measurement."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"seconds": seconds, "threads": threads}) + "\n")
        except BrokenPipeError:
            self._fail()

    def receive(self) -> Measurement:
        """Wait for the measurement that was ordered."""
        return Measurement(**self._answer())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._fail()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _fail(self) -> NoReturn:
        code = self._process.wait()
        self._errors.seek(0)
        last = (self._errors.read().strip().splitlines() or ["it said nothing"])[-1]
        raise WorkFailed(f"the process of '{self.work.contestant}' ended with code {code}: {last}")


def family(process: int | str = "self") -> Iterator[Path]:
    """Folders in Linux's ``/proc`` of a process and of those that it has started; none on other systems."""
    if (PROC / str(process)).exists():
        yield PROC / str(process)
    for file in PROC.glob(f"{process}/task/*/children"):
        with suppress(OSError):  # a thread that has ended
            for child in file.read_text(encoding="ascii").split():
                yield from family(child)


def rss_bytes() -> tuple[int, int]:
    """Resident memory of this process and its children: now, and the sum of their peaks.

    What two of them share, such as the code of a library, counts twice.
    """
    now = most = 0
    for place in family():
        with suppress(OSError):  # a process that has ended
            lines = dict(line.split(":", 1) for line in (place / "status").read_text(encoding="utf-8").splitlines())
            if "VmRSS" in lines:  # a zombie has none
                now += int(lines["VmRSS"].split()[0]) * 1024
                most += int(lines["VmHWM"].split()[0]) * 1024
    return now, most


def cpu_seconds() -> float:
    """Processor time so far of this process and of its children that are alive, these in hundredths of a second."""
    others = 0
    for place in list(family())[1:]:
        with suppress(OSError):
            # the name, in brackets, may have blanks in it; the times are the 14th and 15th field
            fields = (place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            others += int(fields[11]) + int(fields[12])
    return time.process_time() + others / os.sysconf("SC_CLK_TCK")


def measure(contestant: Contestant, seconds: float, *, cuda: bool) -> Measurement:
    """Let a contestant run for so long; with CUDA, what it has begun is over before the clock starts and stops."""
    import torch

    synchronize = torch.cuda.synchronize if cuda else lambda: None
    synchronize()  # the first call of a process starts CUDA, which is not measured
    updates, cpu, begin = contestant.updates(), cpu_seconds(), time.perf_counter()
    steps = contestant.run(seconds)
    synchronize()
    elapsed = time.perf_counter() - begin
    device_bytes = torch.cuda.memory_reserved() if cuda else 0
    return Measurement(steps, contestant.updates() - updates, elapsed, cpu_seconds() - cpu, *rss_bytes(), device_bytes)


def main() -> None:
    """Be the process of one contestant: its workload is the first argument."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not get among the answers
    import torch

    work = Workload(**json.loads(sys.argv[1]))
    cuda = work.device == "cuda" and CONTESTANTS[work.contestant].learns
    contestant = CONTESTANTS[work.contestant].make(work)
    contestant.fill()
    contestant.run(work.warm_up_s)
    answers.write(json.dumps({"default_threads": torch.get_num_threads()}) + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        torch.set_num_threads(order["threads"])
        answers.write(json.dumps(measure(contestant, order["seconds"], cuda=cuda)._asdict()) + "\n")
    os._exit(0)  # emulators' threads need not be waited for


if __name__ == "__main__":
    main()
