"""``gramian bench``."""

import sys
from collections.abc import Sequence
from dataclasses import replace

import torch

from gramian.cli.options import BenchOptions
from gramian.cli.train import check_torch_threads
from gramian.core.arms import parse_arm
from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.core.progress import counted
from gramian.deep.engines import compare, pick_execution
from gramian.deep.envs import make_games
from gramian.deep.training.agents import AGENTS, agent_parts, head_of
from gramian.deep.training.bench import measure
from gramian.deep.training.config import Config, Settings, check_preset, load_preset, population, settings_from
from gramian.deep.training.memory import pick_device, plan_memory
from gramian.deep.training.trainer import network_spec, spin_time

TOLERANCE = 1e-5
"""Largest relative difference that graphed and eager weights may have after ten updates."""


def bench_command(options: BenchOptions) -> int:
    """See `BenchOptions`."""
    device = pick_device(options.device)
    if options.check:
        return _check(device, [options.agent] if options.agent else AGENTS)
    for name, least in (("runs", 1), ("envs_per_run", 1), ("cores", 0), ("patience_us", 0)):
        if (number := getattr(options, name) or 0) < least:
            raise UserError(f"--{name.replace('_', '-')} {number} is too small; give {least} or more")
    if not 0 < options.seconds < 3600:
        raise UserError(f"--seconds {options.seconds} is no time to measure; give more than 0 and less than 3600")
    torch.set_num_threads(check_torch_threads(options.torch_threads, cores()))
    for game in map(find_game, options.games):
        check_preset(options.preset, game.kind)
    named = {"agent": options.agent} if options.agent else {}
    settings = _sized(settings_from(named, "--agent", load_preset(options.preset)), options)
    arms = [parse_arm(arm, settings.kappa) for arm in options.arms]
    config = Config(options.preset, settings, population(options.games, arms, list(range(options.runs))))
    execution = pick_execution(options.execution, device)
    replay_device = _placed(config, device, options.replay_device)
    spin_s = spin_time(config, options.cores, device) if options.patience_us is None else options.patience_us / 1e6
    names = ", ".join(dict.fromkeys(run.game.name for run in config.runs))
    waits = ", emulator in the learner's process" if spin_s is None else ""
    if spin_s:
        waits = f", spinning for {1e6 * spin_s:,.0f} µs"
    rounding = ", TF32" if device.type == "cuda" and settings.tf32 else ""
    order = ", sequential" if settings.sequential else ""
    print(
        f"{options.runs} × {names}, {settings.agent}, {', '.join(map(str, arms))}, preset {options.preset}, "
        f"{counted(options.envs_per_run, 'environment')} a run, "
        f"on {device} ({execution}{rounding}{order}), replay on {replay_device}{waits}, torch {torch.__version__}"
    )
    speed = measure(
        config,
        options.seconds,
        device=device,
        replay_device=replay_device,
        execution=execution,
        threads=options.cores,
        spin_s=spin_s,
        report=lambda line: print(f"gramian: {line}", file=sys.stderr),
    )
    share = speed.agent_steps_per_second / speed.emulator_steps_per_second
    print(f"whole loop          {speed.agent_steps_per_second:12,.0f} agent steps/s")
    print(f"environments alone  {speed.emulator_steps_per_second:12,.0f} agent steps/s; the loop reaches {share:.0%}")
    if speed.start_seconds:
        pieces = ", ".join(f"{name} {value:.1f}" for name, value in speed.start_seconds.items())
        print(
            f"first update after  {sum(speed.start_seconds.values()):12.1f} s from the process's start, the prefill "
            f"apart: {pieces}"
        )
    total = sum(speed.microseconds.values())
    print("\npiece of a step     µs of the host     share")
    for name, value in speed.microseconds.items():
        print(f"{name:<18}{value:16.1f}{value / total:10.0%}")
    if speed.device_microseconds:
        print("\nwork of the GPU     µs, alone")
        for name, value in speed.device_microseconds.items():
            print(f"{name:<18}{value:11.1f}")
    return 0


def _sized(preset: Settings, options: BenchOptions) -> Settings:
    """The preset with what the options change of it; a prefill that is too short for them is lengthened."""
    least = preset.n_step * options.envs_per_run
    if options.replay_capacity <= least:
        raise UserError(
            f"--replay-capacity {options.replay_capacity} is too small; give more than {least}, n_step for each "
            "environment of a run"
        )
    return replace(
        preset,
        representation_period_agent_steps=0,  # nothing is logged
        envs_per_run=options.envs_per_run,
        replay_capacity=options.replay_capacity,
        prefill_agent_steps=max(preset.prefill_agent_steps, least),
        tf32=options.tf32,
        sequential=options.sequential,
    )


def _placed(config: Config, device: torch.device, replay_device: str) -> torch.device:
    """Where the replay lies. Refuses a population that does not fit, before anything of it is made."""
    games = make_games(config.runs[0].game, 1, config.settings.environment, here=True)
    network = network_spec(config, games.observation, games.actions)
    games.close()
    return plan_memory(config, games.observation, network, device, replay_device, "lower --runs or --replay-capacity")[
        0
    ]


def _check(device: torch.device, agents: Sequence[str]) -> int:
    if device.type != "cuda":
        reason = (
            "and a CPU has none; choose --device cuda" if torch.cuda.is_available() else "and there is no CUDA here"
        )
        raise UserError(f"--check compares CUDA graphs with eager updates, {reason}")
    code = 0
    for agent in agents:
        parts = agent_parts(agent)
        head, double_q = head_of(parts, "atari"), parts["double_q"]
        for execution in ("graphed", "compiled"):
            difference = compare(device, execution=execution, head=head, double_q=double_q)
            fine = difference <= TOLERANCE
            code |= not fine
            print(
                f"{agent}: {execution} against eager after 10 updates: largest relative difference of a parameter "
                f"{difference:.1e}, {'within' if fine else 'MORE THAN'} {TOLERANCE:.0e}",
                flush=True,
            )
    return code
