"""What actors lose whose weights are some updates old.

While the learner is at work this package's actors go on with weights that lack its newest update, at one step in four
the two newest (`engines.pipeline`). Here runs of DQN differ in that alone. A *lag* is how many updates the weights
lack: 0 is the setting ``sequential``, 1 is the engine's own order, and with more the actors get weights that are so
much older still. If an update more or less mattered, 64 would matter a great deal.

    python -m benchmarks.delay minatar/breakout minatar/asterix --lags 0 1 64 --seeds 8 --frames 300000 --out FOLDER

A run's *final* return is the mean of the games that ended in the last fifth of its frames; its *area* is the mean over
all fifths. Both with Student's 95 % intervals over runs, and the difference to lag 1 with Welch's, in percent of what
runs of lag 1 have. *Together* takes the runs of one seed in all games, as shares of the mean of lag 1, for one. The
folder gets ``delay-runs.csv``, run by run, ``delay.csv`` and ``delay.md``. What it has already is not trained again, so
that the same command goes on where it was stopped.
"""

import csv
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.command_line import Parser, check_file, complain, new_folder, whole
from benchmarks.dopamine import present, shown, write_csv
from gramian.cli.train import PRESET_FOR
from gramian.core.arms import Arm
from gramian.core.errors import UserError
from gramian.core.files import output_folder
from gramian.core.games import find_game
from gramian.core.statistics import mean_interval, welch
from gramian.deep.engines.pipeline import HostPipeline
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.trainer import Trainer, make_environments
from gramian.report import reference

OWN_LAG = 1
"""Of the engine."""
PARTS = 5
FILES = ("delay.csv", "delay.md")
RUNS_FILE = "delay-runs.csv"
TOGETHER = "together"


@dataclass(frozen=True)
class Run:
    """What came of one run."""

    game: str
    lag: int
    seed: int
    frames: int
    episodes: int
    area: float
    final: float

    @property
    def place(self) -> tuple[str, int, int, int]:
        """Game, lag, frames and seed."""
        return self.game, self.lag, self.frames, self.seed


@dataclass(frozen=True)
class Row:
    """Runs of one game, or of all of them, with one lag."""

    game: str
    lag: int
    runs: int
    final: float
    final_low: float
    final_high: float
    area: float
    area_low: float
    area_high: float
    final_change: float
    """Against the engine's own lag, in percent of its mean; so are the next five."""
    final_change_low: float
    final_change_high: float
    area_change: float
    area_change_low: float
    area_change_high: float


def lagging(pipeline: HostPipeline, lag: int) -> Callable[[], None]:
    """A `HostPipeline.hand_over` that hands over weights from before so many updates, or the first ones."""
    hand_over = pipeline.hand_over
    weights: deque[Tensor] = deque(maxlen=lag)  # the newest of these lacks an update, as the engine's own actors do

    def hand_over_older() -> None:
        hand_over()
        weights.append(pipeline.acting.clone())
        pipeline.acting.copy_(weights[0])

    return hand_over_older


def train(game: str, lag: int, seeds: int, frames: int, report: Callable[[int], object]) -> list[Run]:
    """Train a run of DQN for each seed; ``report`` hears of each fifth that is over."""
    preset = PRESET_FOR[find_game(game).kind]
    settings = replace(load_preset(preset), frames=frames, sequential=lag == 0)
    config = Config(preset, settings, population([game], [Arm("dqn")], list(range(seeds))))
    ended: list[list[list[float]]] = [[[] for _ in range(PARTS)] for _ in range(seeds)]
    trainer = Trainer(config, make_environments(config))
    try:
        if lag > OWN_LAG:
            assert isinstance(trainer.pipeline, HostPipeline)
            trainer.pipeline.hand_over = lagging(trainer.pipeline, lag)  # type: ignore[method-assign]
        for part in range(PARTS):
            while PARTS * trainer.agent_steps < (part + 1) * config.agent_steps:
                for episode in trainer.step():
                    ended[episode.run][part].append(episode.raw_return)
            for seed, parts in enumerate(ended):
                if not parts[part]:
                    raise UserError(
                        f"no {game} ended in a fifth of {frames:,} frames with seed {seed}; give more --frames"
                    )
            report(part + 1)
    finally:
        trainer.close()
    means = [[float(np.mean(part)) for part in parts] for parts in ended]
    return [
        Run(game, lag, seed, frames, sum(map(len, ended[seed])), float(np.mean(own)), own[-1])
        for seed, own in enumerate(means)
    ]


def read(path: Path) -> list[Run]:
    """The runs that were written.

    Raises
    ------
    UserError
        If the file is no table of runs, or has one of them twice.
    """
    if not path.exists():
        return []
    kinds = {field.name: field.type for field in fields(Run)}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            runs = [
                Run(**{name: kind(row[name]) for name, kind in kinds.items()})  # type: ignore[operator]
                for row in csv.DictReader(file)
            ]
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, ValueError, TypeError) as error:
        raise UserError(f"'{path}' is no table of runs ({error}); take it away to begin anew") from error
    for run in runs:
        if not math.isfinite(run.area) or not math.isfinite(run.final):
            raise UserError(f"'{path}' has a return that is no number, of {_words(run)}; take its line away")
    if len({run.place for run in runs}) < len(runs):
        twice = next(run for run in runs if sum(run.place == other.place for other in runs) > 1)
        raise UserError(f"'{path}' has {_words(twice)} twice; leave one of its lines")
    return runs


def _words(run: Run) -> str:
    return f"{run.game}, lag {run.lag}, seed {run.seed}, {run.frames:,} frames"


def compare(runs: Iterable[Run], lags: Sequence[int], games: Sequence[str]) -> list[Row]:
    """A row for each game and lag, the engine's own among them, and for all games together where they are several."""
    of: dict[tuple[str, int], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        of.setdefault((run.game, run.lag), []).append(run)
    returns = {
        (game, lag, name): np.array([getattr(run, name) for run in of[game, lag]])
        for game in games
        for lag in lags
        for name in ("final", "area")
    }
    names = list(games)
    if len(games) > 1:
        names.append(TOGETHER)
        for lag in lags:
            for name in ("final", "area"):
                shares = [returns[game, lag, name] / returns[game, OWN_LAG, name].mean() for game in games]
                returns[TOGETHER, lag, name] = np.mean(shares, 0)
    rows = []
    for game in names:
        for lag in lags:
            values = {name: returns[game, lag, name] for name in ("final", "area")}
            changes = []
            for name, own in values.items():
                base = returns[game, OWN_LAG, name]
                changes += [math.nan] * 3 if lag == OWN_LAG else [100 * x / base.mean() for x in welch(own, base)]
            final, area = (mean_interval(own) for own in values.values())
            rows.append(Row(game, lag, len(values["final"]), *final, *area, *changes))
    return rows


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    lines = [
        "| game | lag | runs | final return | area | final, % of lag 1 | area, % of lag 1 |",
        "| --- |" + " ---: |" * 6,
    ]
    for row in rows:
        cells = [
            row.game if row.game == TOGETHER else reference.title(row.game),
            str(row.lag),
            str(row.runs),
            shown(row.final, row.final_low, row.final_high),
            shown(row.area, row.area_low, row.area_high),
            change(row.final_change, row.final_change_low, row.final_change_high),
            change(row.area_change, row.area_change_low, row.area_change_high),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def change(value: float, low: float, high: float) -> str:
    """A difference in percent with its interval; a dash where there is none.

    Examples
    --------
    >>> change(-1.25, -3.0, 0.5)
    '−1.2 [−3.0, +0.5]'
    """
    if math.isnan(value):
        return "–"
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]".replace("-", "−")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing, print the table and write it; the exit code."""
    parser = Parser("delay", __doc__)
    parser.add_argument("games", nargs="+", metavar="GAME", help="as for gramian train")
    parser.add_argument("--lags", nargs="+", type=whole(0, 10_000), default=[0, 1, 64], help="updates; 1 is added")
    parser.add_argument("--seeds", type=whole(2, 1000), default=8, metavar="COUNT", help="runs of each game and lag")
    parser.add_argument("--frames", type=whole(1000, 10**9), default=300_000, help="of each run")
    parser.add_argument("--out", type=new_folder, required=True, metavar="FOLDER", help="write runs and tables into it")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # as gramian train does
    try:
        for name in (*FILES, RUNS_FILE):
            check_file(options.out / name)
        games = list(dict.fromkeys(find_game(name).name for name in options.games))
        lags = sorted({*options.lags, OWN_LAG})
        known = read(options.out / RUNS_FILE)
        runs: list[Run] = []
        for game in games:
            for lag in lags:
                places = {(game, lag, options.frames, seed) for seed in range(options.seeds)}
                own = [run for run in known if run.place in places]
                if len(own) < options.seeds:

                    def report(part: int, what: str = f"{game}, lag {lag}") -> None:
                        print(f"{what}: {part} of {PARTS} parts", file=sys.stderr)

                    own = train(game, lag, options.seeds, options.frames, report)
                    known = [run for run in known if run.place not in places] + own
                    folder = output_folder(options.out)
                    write_csv(folder / RUNS_FILE, [field.name for field in fields(Run)], map(asdict, known))
                runs += own
        rows = compare(runs, lags, games)
        present(markdown(rows), rows, FILES, options.out)
    except UserError as error:
        complain("delay", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
