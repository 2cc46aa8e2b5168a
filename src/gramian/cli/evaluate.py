"""``gramian evaluate``."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Self

import torch
import tyro

from gramian.core.errors import WorkFailed
from gramian.core.files import output_folder, replace_text
from gramian.core.progress import counted
from gramian.deep.envs.options import EnvironmentOptions
from gramian.deep.runs.evaluation import AT_ONCE, PlayedGame, evaluate, summary
from gramian.deep.runs.load import CONFIG, Run, load_run, read_run
from gramian.deep.runs.video import check_video, record

EVALUATION = "evaluation.csv"
EVALUATION_COLUMNS = (
    "agent_steps", "epsilon", "seed", "episode", "raw_return", "length_agent_steps", "truncated",
)  # fmt: skip
"""``agent_steps`` is when the weights were saved; ``epsilon`` and ``seed`` are the evaluation's."""


@dataclass(frozen=True)
class EvaluateOptions:
    """What to play. The games are those of the training, with its settings, unless they are overridden."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of the run: OUT/<run>."""
    episodes: int = 30
    """Whole games to play."""
    epsilon: float = 0.01
    """Share of random actions."""
    seed: int = 0
    """Another seed gives other games."""
    record: Path | None = None
    """Make a video of the first game: a path that ends in .mp4 or .gif."""
    out: Path | None = None
    """Folder for evaluation.csv; the run's where none is named."""
    at_once: int = AT_ONCE
    """Games that are played side by side."""
    device: str = "cpu"
    """cpu, cuda or auto."""
    environment: Annotated[EnvironmentOptions, tyro.conf.arg(name="")] = field(default_factory=EnvironmentOptions)

    @classmethod
    def defaults(cls, arguments: Sequence[str]) -> Self:
        """The options with the settings of the run that ``arguments`` name, for the command line to override."""
        for before, argument in zip(["", *arguments], arguments, strict=False):
            if before not in ("--out", "--record") and (Path(argument) / CONFIG).is_file():
                return cls(tyro.MISSING, environment=read_run(Path(argument)).settings.environment)
        return cls(tyro.MISSING)


def evaluate_command(options: EvaluateOptions) -> int:
    """Let a trained run play whole games; show its raw returns and write them to evaluation.csv."""
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
