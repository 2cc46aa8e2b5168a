"""What the held-out measures of the representation cost: their share of the training's time, for each kind of game.

Trains a small population for a while, measures the held-out states, and relates one measurement to the training between
two of them at the preset's interval. The states are gathered once in a training; that time stands beside it.

Run with ``python -m benchmarks.held_out [--runs 2] [--steps 2000] [--device cpu]``.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch

from benchmarks.command_line import Parser, exit_code, whole
from gramian.core.arms import Arm
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.heldout import HeldOut
from gramian.deep.training.trainer import Trainer, make_environments

CASES = {"cartpole": "cartpole", "minatar/breakout": "minatar", "minatar/seaquest": "minatar", "pong": "author"}
WARM_UP_AGENT_STEPS = 600


def measure(game: str, preset: str, runs: int, steps: int, device: torch.device) -> str:
    """One line: seconds of gathering and of a measurement, and the share of the training's time."""
    settings = replace(load_preset(preset), prefill_agent_steps=500, replay_capacity=4000)
    config = Config(preset, settings, population([game], [Arm("gram", 10.24)], list(range(runs))))
    trainer = Trainer(config, make_environments(config, device=device), device=device)
    while trainer.agent_steps < WARM_UP_AGENT_STEPS:
        trainer.step()
    begin = _now(device)
    for _ in range(steps):
        trainer.step()
    step_s = (_now(device) - begin) / steps
    held_out = HeldOut(config, device)
    times = [_now(device)]
    for _ in range(3):
        held_out.measure(trainer.learner)
        times.append(_now(device))
    trainer.close()
    again_s = min(after - before for before, after in pairwise(times[1:]))
    gathering_s = times[1] - times[0] - again_s
    period = settings.representation_period_agent_steps
    share = again_s / (period * step_s / settings.envs_per_run)
    return (
        f"| {game} | {runs} | {gathering_s:.2f} | {1e3 * again_s:.1f} | {period:,} | {1e3 * step_s:.3f} | {share:.3%} |"
    )


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def measured(arguments: Sequence[str] | None) -> None:
    """Print a row for each kind of game."""
    parser = Parser("held_out", __doc__)
    parser.add_argument("--runs", type=whole(1, 1000), default=2)
    parser.add_argument("--steps", type=whole(1, 10**6), default=2000)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print("| game | runs | gathering, once (s) | a measurement (ms) | every (agent steps) | a step (ms) | share |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for game, preset in CASES.items():
        print(measure(game, preset, options.runs, options.steps, torch.device(options.device)), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("held_out", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
