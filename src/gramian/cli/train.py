"""``gramian train``."""

import sys
from pathlib import Path

import torch

from gramian.cli.options import TrainOptions
from gramian.core.arms import parse_arm
from gramian.core.cores import cores
from gramian.core.errors import UserError, WorkFailed
from gramian.deep.training.config import Config, population
from gramian.deep.training.logs import read_status
from gramian.deep.training.provenance import torch_threads
from gramian.deep.training.session import read_population, resume, train


def train_command(options: TrainOptions) -> int:
    """See `TrainOptions`."""
    begun = _threads_of(options.resume) if options.resume is not None else 0
    torch.set_num_threads(check_torch_threads(options.torch_threads, max(cores(), begun)))
    places = {
        "device": options.device,
        "replay_device": options.replay_device,
        "log": options.log,
        "tensorboard": options.tensorboard,
        "execution": options.execution,
    }
    if options.resume is not None:
        folder = resume(options.resume, **places)  # type: ignore[arg-type]
    else:
        for name in ("games", "arms", "out"):
            if not getattr(options, name):
                raise UserError(f"--{name} is missing; for instance --games seaquest --arms gram --out runs/first")
        arms = [parse_arm(arm, options.settings.kappa) for arm in options.arms]
        runs = population(options.games, arms, options.seeds)
        config = Config(options.preset, options.settings, runs)
        folder = train(config, options.out, checkpoint_replay=options.checkpoint_replay, **places)  # type: ignore[arg-type]
    states = [read_status(folder / run.name)["state"] for run in read_population(folder)[0].runs]
    if all(state == "diverged" for state in states):
        raise WorkFailed(f"every run in '{folder}' diverged; lower the learning rate or κ")
    print(f"runs in {folder}", file=sys.stderr)
    return 0


def check_torch_threads(threads: int, most: int) -> int:
    """The number of torch's threads, as it was given. Far too many end the process in a segmentation fault.

    Raises
    ------
    UserError
        If it is less than 1 or more than ``most``.
    """
    if threads < 1:
        raise UserError(f"--torch-threads {threads} is too small; give 1 or more")
    if threads > most:
        raise UserError(
            f"--torch-threads {threads} is too large; give at most {most}, the cores that this process may use"
        )
    return threads


def _threads_of(folder: Path) -> int:
    """What a population was trained with: on a machine with fewer cores the same number gives the same results."""
    return max(torch_threads(folder / run.name) for run in read_population(folder)[0].runs)
