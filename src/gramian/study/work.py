"""What a worker does, on this machine or on a node of a Ray cluster. Everything in and out is plain JSON."""

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
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
from gramian.study.attempts import attempts, lock, log_path, record
from gramian.study.plan import POPULATIONS, Plan, Population, from_mapping, read_plan
from gramian.study.states import SETTLED
from gramian.study.watchdog import watched

UNREADABLE = "its status.json cannot be read; the same command goes on from the checkpoint and writes it anew"
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
    """Do what is left of a population, unless another process is at it. Never does a finished one again.

    Parameters
    ----------
    study
        Folder of the study.
    population
        Its name in the plan.
    emulator_threads
        Processes that play Atari, as for `training.trainer.make_environments`; they do not change any number.
    command
        What was called to run the study, for the runs' ``provenance.json``; this process's own where it is left away.
    stall_s
        Seconds without a step after which the failure is written down and this process killed; 0 for never.

    Returns
    -------
    dict
        An `Outcome`.

    Raises
    ------
    KeyboardInterrupt
        When the process is told to stop, after a checkpoint has been saved.
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
                    _printing_to(log_path(folder, population)),
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
        _give_memory_back(plan.device)
        if (out / BEGUN).exists():
            resume(out, device=plan.device, threads=emulator_threads, command=command, alive=alive)
        else:
            train(
                plan.config(population),
                out,
                device=plan.device,
                checkpoint_replay=plan.checkpoint_replay,
                threads=emulator_threads,
                command=command,
                alive=alive,
            )
    except Exception:
        traceback.print_exc()
        raise


def _give_memory_back(device: str) -> None:
    """Free what the population before has left, for the next one looks at how much is free."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def run_state(study: Path, population: Population, run: str) -> tuple[str, int, str]:
    """State, agent steps and reason of a run, from its folder.

    ``waiting`` where it has not begun; ``unknown`` where the file is damaged, so that its population is taken up again
    and goes on from its checkpoint.
    """
    try:
        status = json.loads((study / POPULATIONS / population.id / run / "status.json").read_text(encoding="utf-8"))
        return str(status["state"]), int(status["agent_steps"]), str(status["reason"])
    except (FileNotFoundError, NotADirectoryError):
        return "waiting", 0, ""
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown", 0, UNREADABLE


def is_finished(study: Path, population: Population) -> bool:
    """Whether all runs of a population have come to their end."""
    return all(run_state(study, population, run.name)[0] in SETTLED for run in population.runs)


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
    """What a process finds here: the kind of device, its name, how many GPUs and cores there are, its free bytes.

    Examples
    --------
    >>> probe("cpu")["device"]
    'cpu'
    """
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
    """Train a population for a few seconds, with a small replay, and throw the result away.

    Parameters
    ----------
    plan
        Content of ``plan.json``.
    population
        Which of its populations.
    seconds
        How long to look.
    emulator_threads, stall_s
        As in `perform`.
    note
        Called with the reason before this process is killed because it hangs.

    Returns
    -------
    dict
        ``agent_steps_per_second`` of all its runs together, updates included, logs and checkpoints not;
        ``bytes_per_transition`` of a checkpointed replay.
    """
    with watched(
        stall_s, lambda reason: note(f"the rate was not measured: its process {reason} (--stall-min)")
    ) as alive:
        return _measure(plan, population, seconds, emulator_threads, alive)


def _measure(
    plan: dict[str, Any], population: str, seconds: float, emulator_threads: int, alive: Callable[[], object]
) -> dict[str, float]:
    made = from_mapping(plan, "the plan")
    torch.set_num_threads(made.torch_threads)
    _give_memory_back(made.device)
    whole = made.config(made.population(population))
    settings = whole.settings
    small = replace(
        settings,
        replay_capacity=max(
            min(settings.replay_capacity, MEASURED_TRANSITIONS), settings.n_step + settings.envs_per_run
        ),
        prefill_agent_steps=max(min(settings.prefill_agent_steps, MEASURED_PREFILL), settings.n_step),
    )
    config = Config(whole.preset, small, whole.runs)
    device = pick_device(made.device)
    trainer = Trainer(config, make_environments(config, emulator_threads, device), device=device)
    try:
        while trainer.updates < 3:  # the first ones are slow
            trainer.step()
            alive()
        before, started = trainer.agent_steps, time.monotonic()
        while time.monotonic() - started < seconds or trainer.agent_steps == before:
            trainer.step()
            alive()
        trainer.pipeline.settle()
        elapsed = time.monotonic() - started
        stored = sum(
            len(compress(safetensors.torch.save(part))) / (end - first) for first, end, part in trainer.segments(None)
        )
        parts = len(list(trainer.segments(None)))
    finally:
        trainer.close()
    runs = len(config.runs)
    return {
        "agent_steps_per_second": (trainer.agent_steps - before) * runs / elapsed,
        "bytes_per_transition": stored / parts / (runs * settings.envs_per_run),
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


def not_stopped(workers: int, limit_s: float) -> str:
    """Say that workers which were told to stop are killed.

    Examples
    --------
    >>> print(not_stopped(1, 600.0))
    gramian: killing 1 worker that did not stop within 10 minutes; its population goes on from its last checkpoint
    """
    whose = "1 worker that did" if workers == 1 else f"{workers} workers that did"
    what = "its population goes on from its" if workers == 1 else "their populations go on from their"
    return f"gramian: killing {whose} not stop within {limit_s / 60:g} minutes; {what} last checkpoint"


def one_line(error: Exception) -> str:
    r"""Say what went wrong, in one line.

    Examples
    --------
    >>> one_line(RuntimeError("the GPU\nfell off the bus"))
    'RuntimeError: the GPU fell off the bus'
    """
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError | WorkFailed) else f"{type(error).__name__}: {text}"
