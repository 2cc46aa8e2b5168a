"""What a population will take of the memory, said before anything is allocated."""

import math
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from gramian.deep.config import Config
from gramian.deep.networks import NetworkSpec, parameter_shapes
from gramian.deep.observations import ObservationSpec
from gramian.deep.replay import bytes_needed
from gramian.errors import UserError

RESERVE_BYTES = 512 << 20
"""Left for activations, the emulators and the interpreter."""
LEARNER_COPIES = 6
"""Online and target weights, Adam's two moments, a gradient and a temporary of the optimiser."""


@dataclass(frozen=True)
class Bill:
    """Bytes that a population allocates.

    Examples
    --------
    >>> print(Bill(replay_bytes=7_100_000_000, learner_bytes=40_000_000, capacity=1_000_000, runs=1))
    memory: 7.10 GB of replay (1 run × 1,000,000 transitions) + 0.04 GB of learner
    """

    replay_bytes: int
    learner_bytes: int
    capacity: int
    runs: int

    def __str__(self) -> str:
        runs = f"{self.runs} run" + ("s" if self.runs > 1 else "")
        return (
            f"memory: {self.replay_bytes / 1e9:.2f} GB of replay ({runs} × {self.capacity:,} transitions)"
            f" + {self.learner_bytes / 1e9:.2f} GB of learner"
        )


def memory_bill(config: Config, observation: ObservationSpec, network: NetworkSpec, dtype: torch.dtype) -> Bill:
    """Add up what the population will allocate."""
    settings, runs = config.settings, len(config.runs)
    parameters = sum(math.prod(shape) for shape in parameter_shapes(network).values())
    return Bill(
        replay_bytes=bytes_needed(observation, runs, settings.envs_per_run, settings.replay_capacity),
        learner_bytes=LEARNER_COPIES * runs * parameters * dtype.itemsize,
        capacity=settings.replay_capacity,
        runs=runs,
    )


def check_fits(bill: Bill, device: torch.device, replay_device: torch.device) -> None:
    """Make sure that the bill can be paid.

    Raises
    ------
    UserError
        If it cannot, with the numbers and what helps.
    """
    if device == replay_device:
        parts = [(device, bill.replay_bytes + bill.learner_bytes)]
    else:
        parts = [(device, bill.learner_bytes), (replay_device, bill.replay_bytes)]
    for place, needed in parts:
        free = free_bytes(place) - RESERVE_BYTES
        if needed > free:
            other = needed - bill.replay_bytes if place == replay_device else needed
            share = max(0, free - other) / max(1, bill.replay_bytes)
            advice = f"--replay-capacity {int(bill.capacity * share):_} would fit" if share > 0.01 else "use fewer runs"
            raise UserError(
                f"{needed / 1e9:.1f} GB are needed on {place.type} and {max(0, free) / 1e9:.1f} GB are free; {advice}"
            )


def free_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated on a device.

    Examples
    --------
    >>> free_bytes(torch.device("cpu")) > 0
    True
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    table = Path("/proc/meminfo")
    if table.exists():
        for line in table.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
