"""Processes that hold one contestant each and take turns.

A process fills its contestant's replay, warms up, says that it is ready, and then waits for orders on its standard
input, one JSON object a line, which it answers with one line each: how many agent steps were taken, in which time.
Each contestant so has its own memory and its own threads, and whoever gives the orders lets them take turns, so that
the noise of the machine hits all alike.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, NoReturn, Self
from unittest.mock import patch

from benchmarks.contestants import CONTESTANTS, Contestant, Part, Workload
from benchmarks.family import cpu_seconds, rss_bytes
from gramian.core.errors import WorkFailed

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Taken out of a process's environment, so that torch's default number of threads is its own."""
Clock = Literal["wall", "cpu"]
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}
"""What a profile counts: the time that passes, or that of the processor, which others cannot stretch."""


class Measurement(NamedTuple):
    """What one order brought."""

    agent_steps: int
    updates: int
    seconds: float
    cpu_seconds: float
    """Of all threads of the process and of those that it started; beside ``seconds`` it says how far the machine was
    shared."""
    rss_bytes: int
    """Of the process and of those that it started, as is the peak."""
    peak_rss_bytes: int
    device_bytes: int
    """Held on the GPU by this process's tensors and caches; 0 without a GPU."""
    parts_s: dict[str, float]
    """Seconds in each part, by the clock that a profile was asked for with."""

    @property
    def rate(self) -> float:
        """Agent steps per second, all runs together."""
        return self.agent_steps / self.seconds


def say(line: str) -> None:
    """Report what is going on, apart from the result."""
    print(line, file=sys.stderr, flush=True)


class Ready(NamedTuple):
    """What a process says when its contestant is warm."""

    default_threads: int
    """Of torch, if nobody sets them."""
    fill_s: float
    warm_up_s: float


class Worker:
    """A process with one contestant, as seen from outside.

    Parameters
    ----------
    work
        For the contestant.
    cores
        The process may use so many of the cores that this one may use; 0 for all.

    Raises
    ------
    WorkFailed
        By any method, if the process has died.
    """

    def __init__(self, work: Workload, cores: int = 0) -> None:
        self.work = work
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 - closed by close
        environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
        environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        with _on_cores(cores):  # a process is born with the cores of the one that starts it
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.workers", work.to_json()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                bufsize=1,
                env=environment,
            )

    def wait(self) -> Ready:
        """Wait until the contestant is filled and warm."""
        return Ready(**self._answer())

    def send(self, seconds: float, threads: int, profile: Clock | None = None) -> None:
        """Order a measurement, and with it a profile by some clock."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"seconds": seconds, "threads": threads, "profile": profile}) + "\n")
        except BrokenPipeError:
            self._fail()

    def receive(self) -> Measurement:
        """Wait for the measurement that was ordered."""
        return Measurement(**self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

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


@contextmanager
def _on_cores(count: int) -> Iterator[None]:
    if not count:
        yield
        return
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


@contextmanager
def profiled(
    parts: list[Part], clock: Callable[[], float], synchronise: Callable[[], None]
) -> Iterator[dict[str, float]]:
    """Count the seconds spent in each part while the block runs; a part inside another counts for itself alone.

    Methods that an object does not have are left out, so that the table follows the code and never stops it. Of the
    time that passes only the main thread's counts, which is the one that others can keep waiting; of the processor's
    time every thread's that does a part.
    """
    spent: dict[str, float] = defaultdict(float)
    stacks: dict[int, list[float]] = defaultdict(list)
    adding = threading.Lock()
    wall = clock is time.perf_counter

    def timed(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            if wall and threading.current_thread() is not threading.main_thread():
                return method(*arguments, **named)
            synchronise()
            inner = stacks[threading.get_ident()]
            inner.append(0.0)
            begin = clock()
            try:
                return method(*arguments, **named)
            finally:
                synchronise()
                elapsed = clock() - begin
                with adding:
                    spent[name] += elapsed - inner.pop()
                if inner:
                    inner[-1] += elapsed

        return call

    present = [part for part in parts if hasattr(part.owner, part.method)]
    with ExitStack() as undo:
        for name, owner, method in present:
            undo.enter_context(patch.object(owner, method, timed(name, getattr(owner, method))))
        yield spent


def measure(contestant: Contestant, seconds: float, profile: Clock | None, *, cuda: bool) -> Measurement:
    """Let a contestant run for so long.

    Parameters
    ----------
    contestant
        Filled and warm.
    seconds
        About so long.
    profile
        Look at this clock in each part of a step.
    cuda
        Whether it uses a GPU: all that it has begun there is then over before the clock begins, and before it ends.
    """
    import torch

    synchronise = torch.cuda.synchronize if cuda else lambda: None
    synchronise()  # a process's first call starts CUDA, which is nothing that was to be measured
    before, begin, (own_begin, others_begin) = contestant.updates(), time.perf_counter(), cpu_seconds()
    parts_s: dict[str, float] = {}
    if profile:
        with profiled(contestant.parts(), CLOCKS[profile], synchronise) as parts_s:
            steps = contestant.run(seconds)
    else:
        steps = contestant.run(seconds)
    synchronise()
    elapsed, (own_end, others_end) = time.perf_counter() - begin, cpu_seconds()
    own, others = own_end - own_begin, others_end - others_begin
    if profile == "cpu":  # what a contestant starts are its emulators
        parts_s["environment"] = parts_s.get("environment", 0.0) + others
    device_bytes = torch.cuda.memory_reserved() if cuda else 0
    return Measurement(
        steps, contestant.updates() - before, elapsed, own + others, *rss_bytes(), device_bytes, dict(parts_s)
    )


def main() -> None:
    """Be the process of one contestant: its workload is the first argument."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not get among the answers
    import torch

    work = Workload.from_json(sys.argv[1])
    cuda = work.device.startswith("cuda") and CONTESTANTS[work.contestant].learns
    begin = time.perf_counter()
    contestant = CONTESTANTS[work.contestant].make(work)
    contestant.fill()
    filled = time.perf_counter()
    contestant.run(work.warm_up_s)
    ready = {
        "default_threads": torch.get_num_threads(),
        "fill_s": filled - begin,
        "warm_up_s": time.perf_counter() - filled,
    }
    answers.write(json.dumps(ready) + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        torch.set_num_threads(order["threads"])
        result = measure(contestant, order["seconds"], order["profile"], cuda=cuda)
        answers.write(json.dumps(result._asdict()) + "\n")
    os._exit(0)  # emulators' threads need not be waited for


if __name__ == "__main__":
    main()
