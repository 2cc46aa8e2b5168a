"""Agent steps a second of the environments alone, beside the packages that they stand for.

    python -m benchmarks.environments [--count 12] [--steps 2000] [--rounds 3]

Atari stands beside ale-py's vector environment, which starts its games by itself: the ratio says what episodes that
are a function of their seeds cost. MinAtar stands beside the games of the package minatar, in Python.
"""

import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.command_line import Parser, exit_code, spread, table, whole
from benchmarks.contestants import Workload, emulator
from gramian.core.games import MINATAR_IDS, find_game
from gramian.deep.envs import Environments

GAMES = {"breakout": "nature", "seaquest": "nature", "pong": "nature"} | {
    f"minatar/{game}": "minatar" for game in MINATAR_IDS
}
"""Presets by game."""


def theirs(work: Workload, seconds: float) -> float:
    """Agent steps a second of the other package."""
    alone = emulator(work)
    begin = time.perf_counter()
    steps = alone.run(seconds)
    return steps / (time.perf_counter() - begin)


def ours(work: Workload, steps: int) -> float:
    """Agent steps a second of this package: as many runs with one environment each."""
    environments = Environments(
        [find_game(work.game)] * work.runs, list(range(work.runs)), 1, work.settings.environment
    )
    environments.reset()
    actions = np.random.default_rng(0).integers(0, int(environments.actions[0]), (steps, work.runs, 1))
    begin = time.perf_counter()
    for taken in actions:
        environments.step(taken)
    elapsed = time.perf_counter() - begin
    environments.close()
    return work.runs * steps / elapsed


def measured(arguments: Sequence[str] | None) -> None:
    """Print the table."""
    parser = Parser("environments", __doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=[*GAMES])
    parser.add_argument("--count", type=whole(1, 256), default=12, help="environments")
    parser.add_argument("--steps", type=whole(1, 1_000_000), default=2000, help="steps of each of ours")
    parser.add_argument("--rounds", type=whole(1, 1000), default=3, help="in turn; the table has their medians")
    options = parser.parse_args(arguments)
    lines = []
    for game in options.games:
        work = Workload("emulator", game, GAMES[game], options.count, 1, 2000, 2000, "cpu", 0.0)
        ours(work, 1)  # compiles
        rounds = []
        for _ in range(options.rounds):
            rate = ours(work, options.steps)
            rounds.append((rate, theirs(work, options.count * options.steps / rate)))
        mine, other = zip(*rounds, strict=True)
        ratios = [one / two for one, two in rounds]
        lines.append([game, spread(other, 0), spread(mine, 0), spread(ratios, 2)])
    print(table(["game", "ale-py or minatar", "gramian", "ratio"], lines), end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("environments", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
