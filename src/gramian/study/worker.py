"""What a worker process does, on this machine or on a node of a Ray cluster. Everything in and out is plain JSON.

On this machine it runs `main`: a request on standard input is a line ``{"function": ..., "arguments": {...}}``, a reply
is a line ``{"result": ...}`` or ``{"complaint": ...}``. When standard input ends, because its owner has closed it or
has died, the worker saves what it is training and ends.
"""

import faulthandler
import gc
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
import torch

from gramian.core.cores import cores
from gramian.core.errors import UserError, WorkFailed
from gramian.deep.training.checkpoint import compress
from gramian.deep.training.config import Config
from gramian.deep.training.logs import write_status
from gramian.deep.training.memory import available_bytes, pick_device
from gramian.deep.training.session import POPULATION as BEGUN
from gramian.deep.training.session import resume, train
from gramian.deep.training.trainer import Trainer, make_environments
from gramian.study.manifest import POPULATIONS, SETTLED
from gramian.study.plan import Plan, Population, from_mapping, read_plan
from gramian.study.status import attempts, is_finished, lock, record, run_state

LOOKS = 30
"""How often the watchdog looks within its limit. It counts looks, so that a process that was suspended for less than
the limit is not killed for it."""
MEASURED_TRANSITIONS = 2_000
"""Capacity of the replay while the rate is measured."""
MEASURED_PREFILL = 512
"""Random steps before it: enough transitions to see how well they compress."""
SAVING_S = 600.0
"""How long a worker that is told to stop may take to save, before it is killed."""


@dataclass(frozen=True)
class Outcome:
    """What came of a population."""

    population: str
    state: Literal["done", "busy", "failed", "stopped"]
    """``busy``: another process is at work on it. ``stopped``: saved, for want of time."""
    reason: str = ""


def perform(
    study: str,
    population: str,
    emulator_threads: int,
    command: Sequence[str] | None = None,
    stall_s: float = 0.0,
) -> dict[str, Any]:
    """Do what is left of a population, unless another process is at it; gives an `Outcome`.

    Told to stop, it saves a checkpoint and raises KeyboardInterrupt. After ``stall_s`` seconds without a step (0:
    never) it writes down the failure and kills this process. ``command`` goes into the runs' ``provenance.json``.
    """
    folder = Path(study)
    try:
        plan = read_plan(folder)
    except UserError as error:
        reason = f"{error} (on {os.uname().nodename}; all nodes must see a study's folder under the same path)"
        return asdict(Outcome(population, "failed", reason))
    chosen = plan.population(population)
    with lock(folder, population) as held:
        if not held:
            return asdict(Outcome(population, "busy"))
        if not is_finished(folder, chosen):
            record(folder, population, "started")
            try:
                with (
                    _printing_to(folder / POPULATIONS / f"{population}.log"),
                    watched(stall_s, lambda reason: _failed(folder, chosen, reason)) as alive,
                ):
                    _train(folder, plan, chosen, emulator_threads, command, alive)
            except KeyboardInterrupt:
                record(folder, population, "interrupted")
                raise
            except Exception as error:  # whatever it is, the other populations go on
                return asdict(_failed(folder, chosen, one_line(error)))
        if all(attempt.event != "finished" for attempt in attempts(folder, population)):
            record(folder, population, "finished")
    return asdict(Outcome(population, "done"))


def _train(
    folder: Path,
    plan: Plan,
    population: Population,
    emulator_threads: int,
    command: Sequence[str] | None,
    alive: Callable[[], object],
) -> None:
    out = folder / POPULATIONS / population.id
    try:
        torch.set_num_threads(plan.torch_threads)
        _free_memory(plan.device)
        shared: dict[str, Any] = {"device": plan.device, "threads": emulator_threads, "command": command}
        if (out / BEGUN).exists():
            resume(out, **shared, alive=alive)
        else:
            train(plan.config(population), out, checkpoint_replay=plan.checkpoint_replay, **shared, alive=alive)
    except Exception:
        traceback.print_exc()
        raise


def _free_memory(device: str) -> None:
    """Free what the population before has left, for the next one looks at how much is free."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def record_failure(study: Path, population: Population, reason: str) -> None:
    """Write down that a population was given up, where the process that worked on it could not do so itself."""
    with lock(study, population.id) as held:
        if held and not is_finished(study, population):
            past = attempts(study, population.id)
            if not past or past[-1].event != "failed":
                _failed(study, population, reason)


def _failed(study: Path, population: Population, reason: str) -> Outcome:
    record(study, population.id, "failed", reason)
    for run in population.runs:
        folder = study / POPULATIONS / population.id / run.name
        state, agent_steps, _ = run_state(study, population, run.name)
        if (folder / "config.toml").exists() and state not in SETTLED:
            write_status(folder, "failed", agent_steps, reason)
    return Outcome(population.id, "failed", reason)


def probe(device: str) -> dict[str, Any]:
    """What a process finds here: the kind of device, its name, how many GPUs and cores there are, its free bytes."""
    chosen = pick_device(device)
    cuda = chosen.type == "cuda"
    return {
        "device": chosen.type,
        "gpus": torch.cuda.device_count() if cuda else 0,
        "cores": cores(),
        "name": torch.cuda.get_device_name(chosen) if cuda else "CPU",
        "free_bytes": available_bytes(chosen),
    }


def measure(
    plan: dict[str, Any],
    population: str,
    seconds: float,
    emulator_threads: int,
    stall_s: float = 0.0,
    note: Callable[[str], object] = lambda _: None,
) -> dict[str, float]:
    """Train a population for some seconds, with a small replay, and throw the result away.

    Gives ``agent_steps_per_second`` of all runs together, logs and checkpoints not counted, and
    ``bytes_per_transition`` of a checkpointed replay. ``note`` is called before this process is killed because it
    hangs.
    """
    said = "the rate was not measured: its process {} (--stall-min)"
    with watched(stall_s, lambda reason: note(said.format(reason))) as alive:
        return _measure(from_mapping(plan, "the plan"), population, seconds, emulator_threads, alive)


def _measure(
    plan: Plan, population: str, seconds: float, emulator_threads: int, alive: Callable[[], object]
) -> dict[str, float]:
    torch.set_num_threads(plan.torch_threads)
    _free_memory(plan.device)
    whole = plan.config(plan.population(population))
    settings, runs = whole.settings, len(whole.runs)
    capacity = max(min(settings.replay_capacity, MEASURED_TRANSITIONS), settings.n_step + settings.envs_per_run)
    prefill = max(min(settings.prefill_agent_steps, MEASURED_PREFILL), settings.n_step)
    small = replace(settings, replay_capacity=capacity, prefill_agent_steps=prefill)
    config = Config(whole.preset, small, whole.runs)
    device = pick_device(plan.device)
    trainer = Trainer(config, make_environments(config, emulator_threads, device), device=device)
    try:
        while trainer.updates < 3:  # the first ones are slow
            trainer.step()
            alive()
        before, started = trainer.agent_steps, time.monotonic()
        while time.monotonic() - started < seconds or trainer.agent_steps == before:
            trainer.step()
            alive()
        trainer.engine.synchronize()
        elapsed = time.monotonic() - started
        parts = list(trainer.segments(None))
        sizes = [len(compress(safetensors.torch.save(part))) / (end - first) for first, end, part in parts]
    finally:
        trainer.close()
    return {
        "agent_steps_per_second": (trainer.agent_steps - before) * runs / elapsed,
        "bytes_per_transition": sum(sizes) / len(sizes) / (runs * settings.envs_per_run),
    }


FUNCTIONS: dict[str, Callable[..., Any]] = {"perform": perform, "probe": probe, "measure": measure}
"""What a worker can be asked to do."""


@contextmanager
def _printing_to(path: Path) -> Iterator[None]:
    """Let everything that this process prints, in whatever language, go to the end of a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        with path.open("a", encoding="utf-8", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


@contextmanager
def watched(limit_s: float, note: Callable[[str], object]) -> Iterator[Callable[[], None]]:
    """Kill this process if the block does not call the function that it is given for ``limit_s`` seconds; 0 for never.

    A wait that never ends, for a compiler, a driver or a disk, holds the lock of its population. The process prints
    where each thread stood, calls ``note`` with the reason, and gets SIGKILL with its group if it leads one. If no
    thread of Python runs any more, the interpreter's own timer ends it.
    """
    beats = 0

    def alive() -> None:
        nonlocal beats
        beats += 1

    ended = threading.Event()

    def watch() -> None:
        seen, silent = beats, 0
        while not ended.wait(limit_s / LOOKS):
            faulthandler.dump_traceback_later(limit_s, exit=True, file=2)
            seen, silent = beats, silent + 1 if beats == seen else 0
            if silent == LOOKS:
                _kill_group(f"made no step for {limit_s / 60:g} minute{'' if limit_s == 60 else 's'}", note)
        faulthandler.cancel_dump_traceback_later()

    if not 0 < limit_s < threading.TIMEOUT_MAX:
        yield alive
        return
    faulthandler.dump_traceback_later(limit_s, exit=True, file=2)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield alive
    finally:
        ended.set()
        watcher.join()


def _kill_group(reason: str, note: Callable[[str], object]) -> None:
    with suppress(Exception):  # a full disk must not keep the process alive
        os.write(2, f"gramian: {reason}; the process is killed. Its threads stood here:\n".encode())
        faulthandler.dump_traceback(file=2)
    with suppress(Exception):
        note(reason)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def not_stopped(workers: int, limit_s: float) -> str:
    """Say that workers which were told to stop are killed."""
    whose = "1 worker that did" if workers == 1 else f"{workers} workers that did"
    what = "its population goes on from its" if workers == 1 else "their populations go on from their"
    return f"gramian: killing {whose} not stop within {limit_s / 60:g} minutes; {what} last checkpoint"


def one_line(error: Exception) -> str:
    """Say what went wrong, in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError | WorkFailed) else f"{type(error).__name__}: {text}"


def main() -> int:
    """Serve until standard input ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)  # nothing else that is printed may end up among the replies
        requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        working, ended = threading.Event(), threading.Event()

        def read() -> None:
            for line in sys.stdin:
                requests.put(json.loads(line))
            ended.set()
            requests.put(None)
            if working.is_set():
                os.kill(os.getpid(), signal.SIGTERM)  # training takes it as a wish to stop, and saves

        threading.Thread(target=read, daemon=True).start()
        while (request := requests.get()) is not None:
            working.set()
            if ended.is_set():  # its owner waits no more
                return 0
            function, arguments = FUNCTIONS[request["function"]], request["arguments"]
            if function is measure:  # if it hangs, only the thread that ends this process can answer
                arguments["note"] = lambda reason: print(json.dumps({"complaint": reason}), file=replies, flush=True)
            try:
                reply = {"result": function(**arguments)}
            except Exception as error:
                reply = {"complaint": one_line(error)}
            except KeyboardInterrupt:
                return 130
            finally:
                working.clear()
            try:
                print(json.dumps(reply), file=replies, flush=True)
            except BrokenPipeError:
                return 1
    return 0
