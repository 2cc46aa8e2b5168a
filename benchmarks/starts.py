"""Does it matter how a game begins? Random play from one saved state of the console, and after resets of it.

This package saves a console once and begins every game there, so that an episode is a function of its seed and its
actions. Others, Dopamine among them, reset the console, and in some games its memory then hangs on what was played
before, or on how often it was reset. Here both play at random, with Dopamine's sticky actions: mean returns with
Student's 95 % intervals, the difference, saved less reset, with Welch's, and how many bytes of the 128 differ after a
reset, at most at one beginning.

    python -m benchmarks.starts seaquest kung_fu_master --episodes 1000 --out FOLDER

The games of a way to begin are played in blocks, each on a console of its own; the first one of a block, before which
nothing was played, does not count.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import ale_py
import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import Parser, check_file, complain, new_folder, whole
from benchmarks.dopamine import present, shown
from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.core.statistics import mean_interval, welch
from gramian.deep.envs.emulator import PIXELS, Console
from gramian.report import reference

FRAME_SKIP, STICKY_PROBABILITY, MOST_AGENT_STEPS = 4, 0.25, 27_000
"""Of Dopamine."""
BLOCK_EPISODES = 25
FILES = ("starts.csv", "starts.md")


class ResetConsole(Console):
    """A console whose games begin with a reset, and not with a saved state."""

    def _begin(self) -> None:
        self._ale.reset_game()
        self._before = ale_py.Action.NOOP


@dataclass(frozen=True)
class Block:
    """Games that were played one after the other on one console."""

    returns: list[float]
    lengths: list[int]
    """In agent steps."""
    bytes_changed: int
    """Of the console's memory at the beginning of one of them, at most, against when it was switched on."""


@dataclass(frozen=True)
class Row:
    """One game, begun in both ways."""

    game: str
    episodes: int
    """Of each way."""
    saved: float
    saved_low: float
    saved_high: float
    saved_agent_steps: float
    """Mean length."""
    reset: float
    reset_low: float
    reset_high: float
    reset_agent_steps: float
    difference: float
    difference_low: float
    difference_high: float
    bytes_changed: int


def play(game: str, kind: type[Console], seed: int, episodes: int) -> Block:
    """Play so many games at random, after one that does not count; all random numbers are functions of ``seed``."""
    console = kind(game, frame_skip=FRAME_SKIP, sticky_probability=STICKY_PROBABILITY)
    frame = np.zeros((PIXELS, PIXELS), np.uint8)
    generator = np.random.default_rng([seed, kind is ResetConsole])
    returns, lengths, changed, first = [], [], 0, memory(console)
    for _ in range(1 + episodes):
        console.start(int(generator.integers(2**31)), 0, frame)
        changed = max(changed, int((memory(console) != first).sum()))
        total, steps, over = 0.0, 0, False
        while not over and steps < MOST_AGENT_STEPS:
            reward, over = console.act(int(generator.integers(console.actions)), frame)
            total, steps = total + reward, steps + 1
        returns.append(total)
        lengths.append(steps)
    return Block(returns[1:], lengths[1:], changed)


def memory(console: Console) -> NDArray[np.uint8]:
    """The console's 128 bytes, as they are now."""
    return np.array(console._ale.getRAM())


def compare(game: str, episodes: int, workers: ProcessPoolExecutor) -> Row:
    """Play a game in both ways."""
    seeds = range(-(-episodes // BLOCK_EPISODES))
    sizes = [min(BLOCK_EPISODES, episodes - BLOCK_EPISODES * seed) for seed in seeds]
    begun = {
        kind: [workers.submit(play, game, kind, seed, size) for seed, size in zip(seeds, sizes, strict=True)]
        for kind in (Console, ResetConsole)
    }
    played = {kind: [task.result() for task in tasks] for kind, tasks in begun.items()}
    saved, reset = (np.array([value for block in blocks for value in block.returns]) for blocks in played.values())
    lengths = [float(np.mean([step for block in blocks for step in block.lengths])) for blocks in played.values()]
    changed = max(block.bytes_changed for block in played[ResetConsole])
    return Row(
        game,
        episodes,
        *mean_interval(saved),
        lengths[0],
        *mean_interval(reset),
        lengths[1],
        *welch(saved, reset),
        changed,
    )


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    lines = [
        "| game | games each | from the saved state | after a reset | difference | % | bytes changed |",
        "| --- |" + " ---: |" * 6,
    ]
    for row in rows:
        known = row.reset_low * row.reset_high > 0  # or there is nothing that it could be a share of
        share = f"{100 * row.difference / abs(row.reset):.1f}".replace("-", "−") if known else "–"
        cells = [
            reference.title(row.game),
            f"{row.episodes:,}",
            shown(row.saved, row.saved_low, row.saved_high),
            shown(row.reset, row.reset_low, row.reset_high),
            shown(row.difference, row.difference_low, row.difference_high),
            share,
            str(row.bytes_changed),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and write it where a folder is named; the exit code."""
    parser = Parser("starts", __doc__)
    parser.add_argument("games", nargs="+", metavar="GAME", help="of Atari")
    parser.add_argument("--episodes", type=whole(2, 1_000_000), default=500, help="of each game and way to begin")
    parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="write the table into it")
    options = parser.parse_args(arguments)
    try:
        for name in FILES if options.out else ():
            check_file(options.out / name)
        games = [find_game(name) for name in options.games]
        for game in games:
            if game.kind != "atari":
                raise UserError(f"{game.name} is no Atari game; a console is what is saved or reset")
        rows = []
        with ProcessPoolExecutor(cores()) as workers:
            for game in games:
                rows.append(compare(game.id, options.episodes, workers))
                print(f"{game.name}: {len(rows)} of {len(games)} games", file=sys.stderr)
        present(markdown(rows), rows, FILES, options.out)
    except UserError as error:
        complain("starts", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
