"""``gramian evaluate``."""

import sys
from collections.abc import Sequence

import torch

from gramian.cli.options import EvaluateOptions
from gramian.core.errors import WorkFailed
from gramian.core.files import output_folder, replace_text
from gramian.core.progress import counted
from gramian.deep.runs.evaluation import PlayedGame, evaluate, summary
from gramian.deep.runs.load import Run, load_run
from gramian.deep.runs.video import check_video, record

EVALUATION = "evaluation.csv"
EVALUATION_COLUMNS = (
    "agent_steps", "epsilon", "seed", "episode", "raw_return", "length_agent_steps", "truncated",
)  # fmt: skip
"""``agent_steps`` is when the weights were saved; ``epsilon`` and ``seed`` are the evaluation's."""


def evaluate_command(options: EvaluateOptions) -> int:
    """See `EvaluateOptions`."""
    torch.set_num_threads(1)  # more than one starve the emulators
    out = options.run if options.out is None else options.out
    if options.record is not None:
        check_video(options.record)
    run = load_run(options.run, options.device)
    for folder in (out, *([] if options.record is None else [options.record.parent])):
        # a folder that cannot be written is refused before the games are played, and none is made until then
        output_folder(next(path for path in (folder, *folder.absolute().parents) if path.exists()))
    games = evaluate(
        run,
        options.episodes,
        epsilon=options.epsilon,
        seed=options.seed,
        options=options.environment,
        at_once=options.at_once,
    )
    print(f"{run.spec.name} at agent step {run.agent_steps:,}, {counted(len(games), 'game')}, ε = {options.epsilon:g}")
    print(f"raw return: {summary([game.raw_return for game in games])}", flush=True)
    try:
        replace_text(output_folder(out) / EVALUATION, _csv(run, games, options))
        print(f"games in {out / EVALUATION}", file=sys.stderr)
        if options.record is not None:
            output_folder(options.record.parent)
            pictures = record(run, games[0], options.record, options.environment)
            shown = f"video of game 0, return {games[0].raw_return:g}, {pictures:,} pictures"
            print(f"{shown}: {options.record}", file=sys.stderr)
    except OSError as error:
        raise WorkFailed(f"cannot write what was played: {(error.strerror or str(error)).lower()}") from error
    return 0


def _csv(run: Run, games: Sequence[PlayedGame], options: EvaluateOptions) -> str:
    lines = [",".join(EVALUATION_COLUMNS)]
    for game in games:
        own = (game.episode, repr(game.raw_return), game.length_agent_steps, int(game.truncated))
        lines.append(",".join(map(str, (run.agent_steps, repr(options.epsilon), options.seed, *own))))
    return "\n".join(lines) + "\n"
