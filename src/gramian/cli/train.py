"""``gramian train``."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

import torch
import tyro

from gramian.core.arms import parse_arm
from gramian.core.cores import cores
from gramian.core.errors import UserError, WorkFailed
from gramian.core.games import find_game
from gramian.deep.engines import Execution
from gramian.deep.training.boards import BoardName
from gramian.deep.training.config import Config, Settings, load_preset, population, settings_from
from gramian.deep.training.logs import read_status
from gramian.deep.training.provenance import torch_threads
from gramian.deep.training.session import read_population, resume, train

PRESET_FOR = {"atari": "author", "minatar": "minatar", "cartpole": "cartpole"}
"""The preset for each kind of game where none is named."""

WITH_RESUME = (
    "--resume", "--device", "--replay-device", "--log", "--tensorboard", "--execution", "--torch-threads", "--help",
)  # fmt: skip
"""Options that have a meaning for a population that was begun."""


@dataclass(frozen=True)
class TrainOptions:
    """What to train, and where. Every value of the preset can be overridden; the defaults shown are the preset's."""

    game: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """The paper's or ALE's name (seaquest, SpaceInvaders), minatar/breakout, or cartpole; may be given again."""
    arm: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KIND[:KAPPA][:uncentered] with KIND none (or dqn), decor, gram, gram-unbiased, norm, cross, l2, dr3, isotropy,
    correlation, gram-permuted, vicreg or sigreg; several joined by +, as gram:0.08+norm:0.2; may be given again.
    Games × arms × seeds make one population."""
    seeds: tuple[int, ...] = (0,)
    """One run for each."""
    preset: str = ""
    """author, nature, dopamine, minatar, cartpole, smoke, tiny, dopamine-c51, dopamine-qr, dopamine-iqn,
    dopamine-rainbow, full-rainbow, minatar-qr, minatar-rainbow, or your own .toml; the default goes with the game."""
    out: Path | None = None
    """Folder of the population; each run gets its own below it."""
    resume: Path | None = None
    """Go on with the population in this folder, the one that was given as --out; takes no other settings."""
    device: str = "auto"
    """cpu, cuda or auto."""
    replay_device: str = "auto"
    """Where the replay lies: cpu, cuda, or auto for the learner's device if it fits there."""
    checkpoint_replay: bool = True
    """Save the replay with the checkpoints, so that a resumed run is the one that was never interrupted."""
    log: tuple[BoardName, ...] = ()
    """Where live curves go too, offline and without an account: tensorboard, wandb, trackio (extras of these names)."""
    tensorboard: bool = False
    """The same as --log tensorboard."""
    execution: Execution | Literal["auto"] = "auto"
    """How the work reaches a GPU: eager, graphed (as CUDA graphs) or compiled (and graphed); auto is compiled."""
    torch_threads: int = 1
    """Threads of torch on the CPU: more than one starve the emulators."""
    settings: Annotated[Settings, tyro.conf.arg(name="")] = field(default_factory=Settings)

    @classmethod
    def defaults(cls, arguments: Sequence[str]) -> Self:
        """The options of the preset that ``arguments`` name, for the command line to override."""
        first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        for option in ("--preset", "--game", "--resume", "--agent"):
            first.add_argument(option)
        try:
            chosen, _ = first.parse_known_args(arguments)
        except argparse.ArgumentError:  # a missing value, of which tyro complains
            return cls()
        if chosen.resume is not None:
            for option in (argument.partition("=")[0] for argument in arguments if argument.startswith("--")):
                if option not in WITH_RESUME:
                    raise UserError(f"--resume goes on with what was begun; leave {option} away")
        default = PRESET_FOR[find_game(chosen.game).kind] if chosen.game else "author"
        preset = default if chosen.preset is None else chosen.preset
        named = {} if chosen.agent is None else {"agent": chosen.agent}
        return cls(preset=preset, settings=settings_from(named, "--agent", load_preset(preset)))


def train_command(options: TrainOptions) -> int:
    """Train a population of runs: games × arms × seeds."""
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
        for name in ("game", "arm", "out"):
            if not getattr(options, name):
                raise UserError(f"--{name} is missing; for instance --game seaquest --arm gram --out runs/first")
        arms = [parse_arm(arm, options.settings.kappa) for arm in options.arm]
        runs = population(options.game, arms, options.seeds)
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
