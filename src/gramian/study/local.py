"""The executor of one machine: long-lived worker processes, each with its share of the cores and its GPU."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramian.core.errors import UserError
from gramian.deep.training.provenance import own_command
from gramian.study.cost import Hardware
from gramian.study.worker import SAVING_S, Outcome, not_stopped

GPUS = "CUDA_VISIBLE_DEVICES"
WAKE_S = 0.5
"""Pause between two looks for Ctrl-C: where a library (polars) has taken the signal, it ends no endless wait."""
KILLED_S = 10.0
"""How long killed workers are waited for: one that hangs in a driver may not go."""


class WorkerDied(Exception):  # noqa: N818 - it names what happened
    """A worker process ended before it had answered."""


class Worker:
    """One worker process with environment variables of its own, started when needed, and again after it has died."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[str] | None = None

    def call(self, function: str, **arguments: Any) -> Any:
        """Let the process do one of `gramian.study.worker.FUNCTIONS`; raises `WorkerDied` if it ends instead."""
        if self.wait(0.0):
            # A session of its own: Ctrl-C reaches us alone, and we tell the workers.
            self._process = subprocess.Popen(
                [sys.executable, "-c", "import sys; from gramian.study.worker import main; sys.exit(main())"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=self._environment,
                start_new_session=True,
            )
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            print(json.dumps({"function": function, "arguments": arguments}), file=process.stdin, flush=True)
            line = process.stdout.readline()
        except (OSError, ValueError):  # it died, or `stop` closed its input
            line = ""
        if not line:
            code = process.wait()
            self.wait()
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise WorkerDied(how)
        reply = json.loads(line)
        if "complaint" in reply:
            raise UserError(reply["complaint"])
        return reply["result"]

    def stop(self) -> None:
        """Ask the process to save and end; does not wait for it."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it is dead already
                self._process.stdin.close()

    def wait(self, limit_s: float | None = None) -> bool:
        """Wait for the end of the process, and end what it has left; gives False where the limit comes first."""
        if self._process is not None:
            try:
                self._process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return False
            self.kill()
            self.stop()
            if self._process.stdout is not None:
                self._process.stdout.close()
        return True

    def kill(self) -> None:
        """End the process, and those that it has started, at once."""
        if self._process is None or self._process.stdout is None or self._process.stdout.closed:
            return  # `wait` has seen to it, and its number may be another's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):  # its group is empty
            os.killpg(self._process.pid, signal.SIGKILL)


def local_hardware(device: str) -> Hardware:
    """What this machine has, as a process of its own finds it: ours would occupy a part of the GPU."""
    worker = Worker({})
    try:
        found = worker.call("probe", device=device)
    except WorkerDied as error:
        raise UserError(f"cannot look at device {device!r}: the process that was to do it {error}") from error
    finally:
        worker.stop()
        worker.wait()
    gpus = found.pop("gpus")
    return Hardware(**found, places=gpus or found["cores"], units=gpus or 1)


def worker_environments(hardware: Hardware, workers: int, torch_threads: int) -> list[dict[str, str]]:
    """Environment variables that give each worker its threads and its GPU; GPUs are shared where they are too few."""
    threads = {"OMP_NUM_THREADS": str(torch_threads)}
    if hardware.device != "cuda":
        return [threads] * workers
    visible = os.environ[GPUS].split(",") if os.environ.get(GPUS) else [str(gpu) for gpu in range(hardware.places)]
    return [threads | {GPUS: visible[worker % hardware.places]} for worker in range(workers)]


class LocalExecutor:
    """Workers of this machine, one for each of the ``environments``, with its environment variables.

    A population that failed is taken up again ``retries`` times. A worker without a step for ``stall_s`` ends itself.
    """

    def __init__(
        self,
        environments: Sequence[Mapping[str, str]],
        retries: int,
        emulator_threads: int,
        stall_s: float = 0.0,
    ) -> None:
        self._workers = [Worker(environment) for environment in environments]
        self._retries, self.emulator_threads, self._stall_s = retries, emulator_threads, stall_s
        self._stopping = threading.Event()
        self._given_up: dict[str, float] = {}
        """Since when."""
        self._at_work: dict[str, Worker] = {}
        self._lock = threading.Lock()
        """Of the two above."""

    def call(self, function: str, **arguments: Any) -> Any:
        """Let the first worker do something."""
        try:
            return self._workers[0].call(function, **arguments)
        except WorkerDied as error:
            raise UserError(f"the worker that was to {function} {error}") from error

    def run(self, study: Path, populations: Sequence[str]) -> Iterator[Outcome]:
        """Do the populations; gives what came of each as it becomes known."""
        waiting = deque(populations)
        retries = dict.fromkeys(populations, self._retries)
        outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()

        def serve(worker: Worker) -> None:
            while not self._stopping.is_set():
                try:
                    population = waiting.popleft()
                except IndexError:
                    return
                outcome = self._perform(worker, study, population)
                if self._is_given_up(population):  # however far it came, its process was told to end
                    worker.stop()
                    worker.wait()
                if outcome.state == "failed" and retries[population] > 0 and not self._stopping.is_set():
                    retries[population] -= 1
                    waiting.append(population)
                else:
                    outcomes.put(outcome)

        for worker in self._workers[: len(populations)]:
            threading.Thread(target=serve, args=(worker,), daemon=True).start()
        known = 0
        while known < len(populations):
            with contextlib.suppress(queue.Empty):
                outcome = outcomes.get(timeout=WAKE_S)
                known += 1
                yield outcome

    def stop(self, population: str) -> None:
        """Do no more of a population than to save it; called again later than `SAVING_S`, not even that."""
        with self._lock:
            waited_s = time.monotonic() - self._given_up.setdefault(population, time.monotonic())
            worker = self._at_work.get(population)
            if worker is not None and waited_s > SAVING_S:
                print(not_stopped(1, SAVING_S), file=sys.stderr)
                worker.kill()
            elif worker is not None:
                worker.stop()

    def _is_given_up(self, population: str) -> bool:
        with self._lock:
            return population in self._given_up

    def _perform(self, worker: Worker, study: Path, population: str) -> Outcome:
        with self._lock:
            if population in self._given_up:
                return Outcome(population, "stopped")
            self._at_work[population] = worker
        try:
            reply = worker.call(
                "perform",
                study=str(study),
                population=population,
                emulator_threads=self.emulator_threads,
                command=own_command(),
                stall_s=self._stall_s,
            )
        except WorkerDied as error:
            if self._is_given_up(population):
                return Outcome(population, "stopped")
            return Outcome(population, "failed", f"its process {error}")
        except UserError as error:
            return Outcome(population, "failed", str(error))
        finally:
            with self._lock:
                del self._at_work[population]
        return Outcome(**reply)

    def close(self) -> None:
        """Stop the workers after they have saved, for `SAVING_S` at most; a second Ctrl-C does not wait."""
        self._stopping.set()
        for worker in self._workers:
            worker.stop()
        late = self._workers
        try:
            late = _late(self._workers, SAVING_S)
            if late:
                print(not_stopped(len(late), SAVING_S), file=sys.stderr)
        finally:
            for worker in late:
                worker.kill()
            _late(late, KILLED_S)


def _late(workers: Sequence[Worker], limit_s: float) -> list[Worker]:
    """Wait for the end of workers; gives those that have not ended within the limit."""
    deadline = time.monotonic() + limit_s
    return [worker for worker in workers if not worker.wait(max(0.0, deadline - time.monotonic()))]
