"""``gramian analyze``, and ``gramian evaluate`` with the modes of Atari games."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro

from gramian.cli import evaluate as run_commands
from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import output_folder
from gramian.deep.runs.load import load_run
from gramian.representation.analysis import SUMMARY, analyze
from gramian.representation.gather import AT_ONCE
from gramian.representation.generalisation import evaluate_flavours, flavour_table


@dataclass(frozen=True)
class AnalyzeOptions:
    """Which runs to compare, and on how many states."""

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN …]")]
    """Folders of the runs: OUT/<run>, or the folder of a whole study; or what was written of other runs before."""
    out: Path
    """Folder for tables, figures and summary.md."""
    states: int = 1_000_000
    """States of each run."""
    epsilon: float = 0.01
    """Share of random actions."""
    seed: int = 0
    """Another seed gives other games."""
    at_once: int = AT_ONCE
    """Games that are played side by side."""
    device: str = "cpu"
    """cpu, cuda or auto."""
    figures: bool = True
    """Draw figures, which needs matplotlib; 'gramian study report' draws them from the tables too."""


def analyze_command(options: AnalyzeOptions) -> int:
    """Let trained runs play, and compare what their features look like: tables, figures and a summary."""
    torch.set_num_threads(1)  # more than one starve the emulators
    try:
        folder = analyze(
            options.runs,
            options.out,
            states=options.states,
            epsilon=options.epsilon,
            seed=options.seed,
            at_once=options.at_once,
            device=options.device,
            figures=options.figures,
        )
    except OSError as error:
        raise WorkFailed(f"cannot write to '{options.out}': {(error.strerror or str(error)).lower()}") from error
    print((folder / SUMMARY).read_text(encoding="utf-8"))
    print(f"tables{' and figures' if options.figures else ''} in {folder}", file=sys.stderr)
    return 0


@dataclass(frozen=True)
class EvaluateOptions(run_commands.EvaluateOptions):
    """What to play. The games are those of the training, with its settings, unless they are overridden."""

    more: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="[RUN …]")] = ()
    """Further runs to compare, with --modes."""
    modes: str = ""
    """Play other modes and difficulties of an Atari game, without training in them: all, or MODE:DIFFICULTY,…"""


def evaluate_command(options: EvaluateOptions) -> int:
    """Let a trained run play whole games; show its raw returns and write them to evaluation.csv."""
    if not options.modes:
        if options.more:
            raise UserError("several runs are compared with --modes alone; evaluate them one by one")
        return run_commands.evaluate_command(options)
    torch.set_num_threads(1)
    if options.record is not None:
        raise UserError("--record makes no video of other modes; leave --record or --modes away")
    if options.more and options.out is None:
        raise UserError("--out is missing; several runs need a folder for their common table")
    out = options.run if options.out is None else options.out
    runs = [load_run(folder, options.device) for folder in (options.run, *options.more)]
    # what cannot be written is said before the games are played
    output_folder(next(path for path in (out, *out.absolute().parents) if path.exists()))
    try:
        rows = evaluate_flavours(
            runs,
            out,
            modes=options.modes,
            episodes=options.episodes,
            epsilon=options.epsilon,
            seed=options.seed,
            options=options.environment,
            at_once=options.at_once,
        )
    except OSError as error:
        raise WorkFailed(f"cannot write what was played: {(error.strerror or str(error)).lower()}") from error
    print(flavour_table(rows))
    return 0
