"""``gramian analyze``, and ``gramian evaluate`` with the modes of Atari games."""

import sys

import torch

from gramian.cli import evaluate as run_commands
from gramian.cli.options import AnalyzeOptions, EvaluateOptions
from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import output_folder
from gramian.deep.runs.load import load_run
from gramian.representation.analysis import SUMMARY, analyze
from gramian.representation.generalisation import evaluate_flavours, flavour_table


def analyze_command(options: AnalyzeOptions) -> int:
    """See `AnalyzeOptions`."""
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


def evaluate_command(options: EvaluateOptions) -> int:
    """See `EvaluateOptions`."""
    if not options.modes:
        if options.more:
            raise UserError("several runs are compared with --modes alone; evaluate them one by one")
        return run_commands.evaluate_command(options)
    torch.set_num_threads(1)
    if options.record is not None:
        raise UserError("--record makes no video of other modes; omit --record or --modes")
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
