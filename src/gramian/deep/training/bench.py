"""How fast a population trains here, and where the time of a step goes."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gramian.deep.choices import Execution
from gramian.deep.envs import Environments
from gramian.deep.training.config import Config
from gramian.deep.training.trainer import Trainer, make_environments

WARM_UP_UPDATES = 20
PIECES = ("draw", "synchronize", "act", "chosen", "send", "learn", "recv", "observe", "store")
"""The pieces of a step. On a CPU `draw` waits for the last update: `synchronize`, counted apart. `chosen` waits for the
actions that `act` has begun to choose."""


@dataclass(frozen=True)
class Speed:
    """What was measured."""

    agent_steps_per_second: float
    """Of the whole loop, over all runs."""
    emulator_steps_per_second: float
    """Of the same environments alone, with random actions."""
    start_seconds: dict[str, float]
    """From the start of the process to the end of the first update, without the prefill: ``before`` (imports),
    ``environments`` (their processes begun), ``learner`` (with the GPU's start, the replay and the first frames),
    ``actors`` (the first step) and ``update``; the last three include compiling. Empty where the system does not tell
    when a process began."""
    microseconds: dict[str, float]
    """Of the host in each piece of a step; ``other`` is the rest of the loop."""
    device_microseconds: dict[str, float]
    """Of the GPU for each piece of work, alone; empty on a CPU. ``look`` is ``observe`` and ``act`` in one launch."""


def measure(
    config: Config,
    seconds: float,
    *,
    device: torch.device,
    replay_device: torch.device | None = None,
    threads: int = 0,
    execution: Execution = "eager",
    spin_s: float | None = None,
    report: Callable[[str], object] = str,
) -> Speed:
    """Train a population for some seconds and look at the clock.

    The replay is prefilled with a few hundred steps, ε is at its final value, nothing is logged or saved. The processes
    that play Atari spin-wait for ``spin_s``, by default as in training. The environments alone come last, so that
    the time to the first update is that of ``gramian train``.
    """
    settings = replace(
        config.settings,
        prefill_agent_steps=max(config.settings.batch_size, 256, config.settings.n_step * config.settings.envs_per_run),
        epsilon_decay_agent_steps=1,
        frames=2**62,
    )
    config = replace(config, settings=settings)
    report("first updates: compiling" if execution == "compiled" else "first updates")
    age, began = _process_age_s(), time.perf_counter()
    environments = make_environments(config, threads, device, spin_s)
    playing = time.perf_counter()
    trainer = Trainer(config, environments, device=device, replay_device=replay_device, execution=execution)
    learning = time.perf_counter()
    try:
        first_step, prefill = _first_update(trainer, settings.prefill_agent_steps)
        trainer.engine.synchronize()
        start = {
            "environments": playing - began,
            "learner": learning - playing,
            "actors": first_step,
            "update": time.perf_counter() - learning - first_step - prefill,
        }
        while trainer.updates < WARM_UP_UPDATES:
            trainer.step()
        report("training")
        rate, pieces = _loop_rate(trainer, seconds)
        device_times = _device_times(trainer)
    finally:
        trainer.close()
    report("environments alone")
    emulator = _emulator_rate(make_environments(config, threads, device, spin_s), seconds)
    return Speed(rate, emulator, {} if age is None else {"before": age, **start}, pieces, device_times)


def _process_age_s() -> float | None:
    """Seconds since this process began, to a hundredth; None where the system has no ``/proc``."""
    stat = Path("/proc/self/stat")
    if not stat.exists():
        return None
    # the name, in brackets, may have blanks in it; the start, in ticks since the machine's, is the 22nd field
    ticks = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def _first_update(trainer: Trainer, prefill_agent_steps: int) -> tuple[float, float]:
    """Go on until the first update has begun; gives the seconds of the first step and of the prefill.

    The first step is none of it: in it the actors' work is compiled and recorded, prefill or not.
    """
    prefill, began = 0.0, time.perf_counter()
    trainer.step()
    first_step = time.perf_counter() - began
    while trainer.updates < 1:
        before = time.perf_counter()
        trainer.step()
        if trainer.agent_steps < prefill_agent_steps:
            prefill += time.perf_counter() - before
    return first_step, prefill


def _emulator_rate(environments: Environments, seconds: float) -> float:
    try:
        environments.reset()
        count = int(np.prod(environments.shape))
        actions = np.random.default_rng(0).integers(0, environments.actions.min(), (1024, *environments.shape))
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            environments.step(actions[steps % len(actions)])
            steps += 1
        return steps * count / (time.perf_counter() - began)
    finally:
        environments.close()


def _loop_rate(trainer: Trainer, seconds: float) -> tuple[float, dict[str, float]]:
    """Agent steps per second, and the host's microseconds a step in each piece."""
    spent = dict.fromkeys(PIECES, 0.0)
    trainer.engine.synchronize()
    with _timed(trainer, spent):
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            trainer.step()
            steps += 1
        trainer.engine.synchronize()
        total = time.perf_counter() - began
    spent["other"] = total - sum(spent.values())
    count = int(np.prod(trainer.environments.shape))
    return steps * count / total, {name: 1e6 * value / steps for name, value in spent.items()}


@contextmanager
def _timed(trainer: Trainer, spent: dict[str, float]) -> Iterator[None]:
    """Let the pieces of a step look at the clock; a piece inside another counts for itself alone."""
    owners: list[tuple[object, str]] = [(trainer.environments, name) for name in ("send", "recv")]
    owners += [(trainer.engine, name) for name in PIECES if name not in ("send", "recv")]
    inner = [0.0]

    def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            inner.append(0.0)
            began = time.perf_counter()
            try:
                return work(*arguments, **named)
            finally:
                elapsed = time.perf_counter() - began
                spent[name] += elapsed - inner.pop()
                inner[-1] += elapsed

        return run

    for owner, name in owners:
        setattr(owner, name, watched(name, getattr(owner, name)))
    try:
        yield
    finally:
        for owner, name in owners:
            delattr(owner, name)


def _device_times(trainer: Trainer, repetitions: int = 100) -> dict[str, float]:
    trainer.engine.synchronize()
    times = {}
    for name, launch in trainer.engine.launches.items():
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        launch()
        begin.record()
        for _ in range(repetitions):
            launch()
        end.record()
        end.synchronize()
        times[name] = 1e3 * begin.elapsed_time(end) / repetitions
    return times
