"""Which devices a population uses, and whether their memory suffices."""

import math
from collections.abc import Mapping

import torch

from gramian.core.errors import UserError
from gramian.core.host_memory import available_host_bytes
from gramian.deep.agent.networks import NetworkSpec, parameter_shapes
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay import bytes_needed
from gramian.deep.training.config import Config

LEARNER_COPIES = 7
"""Online, target and acting weights, Adam's two moments, a gradient and a temporary of the optimiser."""
REPLAY_SHARE = 0.9
"""Largest share of a GPU's free memory that a replay may take; the learner needs some too."""


def pick_device(name: str) -> torch.device:
    """A device by its name; ``auto`` is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"unknown device {name!r}; choose cpu, cuda or auto") from error
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device {name!r} is not supported; choose cpu, cuda or auto")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device {name!r} is not there: torch {torch.__version__} sees no CUDA; choose cpu or auto")
    return device


def place_replay(name: str, device: torch.device, size: int) -> torch.device:
    """Where a replay of ``size`` bytes lies; ``auto`` is the learner's device where it fits, and the host otherwise."""
    if name != "auto":
        place = pick_device(name)
        if device.type == "cpu" and place.type != "cpu":
            raise UserError("a learner on the CPU has its replay there too; omit --replay-device")
        return place
    fits = device.type == "cpu" or size <= REPLAY_SHARE * available_bytes(device)
    return device if fits else torch.device("cpu")


def learner_bytes(network: NetworkSpec, runs: int, dtype: torch.dtype) -> int:
    """What the learner of a population needs, the replay apart."""
    parameters = sum(math.prod(shape) for shape in parameter_shapes(network).values())
    return LEARNER_COPIES * runs * parameters * dtype.itemsize


def plan_memory(
    config: Config,
    observation: ObservationSpec,
    network: NetworkSpec,
    device: torch.device,
    replay_device: str,
    advice: str,
    dtype: torch.dtype = torch.float32,
) -> tuple[torch.device, list[str]]:
    """Where the replay of a population lies, and a line for each device on what will be allocated there."""
    settings, runs = config.settings, len(config.runs)
    sizes = runs, settings.envs_per_run, settings.replay_capacity
    replay_bytes = bytes_needed(observation, *sizes, prioritized=settings.prioritized)
    place = place_replay(replay_device, device, replay_bytes)
    needed: dict[torch.device, dict[str, int]] = {device: {}, place: {}}
    needed[device]["learner"] = learner_bytes(network, runs, dtype)
    if settings.representation_period_agent_steps:
        states = len({run.game for run in config.runs}) * settings.representation_states
        needed[device]["held-out states"] = states * observation.stack * observation.frame_bytes
    needed[place][f"replay of {runs} × {settings.replay_capacity:,} transitions"] = replay_bytes
    return place, [memory_bill(items, where, advice) for where, items in needed.items()]


def available_bytes(device: str | torch.device = "cpu") -> int:
    """Bytes that can still be allocated: on a GPU its free memory, else the host's within the container's limit."""
    device = torch.device(device)
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available_host_bytes()


def memory_bill(items: Mapping[str, int], device: str | torch.device, advice: str) -> str:
    """One line that says what will be allocated on ``device``: bytes by the name of each thing."""
    total, available = sum(items.values()), available_bytes(device)
    parts = ", ".join(f"{name} {size / 1e9:.2f} GB" for name, size in items.items())
    if total > available:
        raise UserError(
            f"not enough memory on {device}: {total / 1e9:.2f} GB are needed ({parts}) and {available / 1e9:.2f} GB "
            f"are free; {advice}"
        )
    return f"memory on {device}: {total / 1e9:.2f} GB ({parts}); {available / 1e9:.2f} GB are free"
