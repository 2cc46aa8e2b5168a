"""Microseconds an environment step of MinAtar: our kernels beside the package's games in Python, and compile times.

Both play the same episodes: the same seeds and the same random actions, and a new episode where one ends.

Run with ``python -m benchmarks.minatar [--counts 1 4 60] [--steps 2000] [--rounds 3]``.
"""

import time
from importlib import import_module

import numpy as np

from benchmarks.command_line import Parser, whole
from gramian.core.games import MINATAR_IDS
from gramian.deep.envs.minatar import MinAtarGames
from gramian.deep.envs.options import MinAtarOptions

OPTIONS = MinAtarOptions()


def compile_seconds(game: str) -> float:
    """Seconds of the first start of a game in this process."""
    engine = MinAtarGames(game, 1, OPTIONS)
    begin = time.perf_counter()
    engine.start(np.arange(1), np.zeros(1, np.int64))
    return time.perf_counter() - begin


def ours(game: str, count: int, steps: int) -> float:
    """Microseconds an environment step of ``count`` environments of the package gramian."""
    engine = MinAtarGames(game, count, OPTIONS)
    actions = np.random.default_rng(0).integers(0, 6, (steps, count))
    episodes = np.arange(count)
    engine.start(np.arange(count), episodes)
    begin = time.perf_counter()
    for taken in actions:
        engine.send(taken)
        outcome = engine.recv()
        if outcome.terminated.any():
            (ended,) = outcome.terminated.nonzero()
            episodes[ended] += count
            engine.start(ended, episodes[ended])
    return 1e6 * (time.perf_counter() - begin) / actions.size


def theirs(game: str, count: int, steps: int) -> float:
    """Microseconds an environment step of the package minatar, its pictures put beside each other."""
    rules = import_module(f"minatar.environments.{game}")
    games = [rules.Env(ramping=OPTIONS.difficulty_ramping) for _ in range(count)]
    actions = np.random.default_rng(0).integers(0, 6, (steps, count))
    episodes, before = np.arange(count), [0] * count
    frames = np.zeros((count, *games[0].state().shape[::-1]), np.uint8)

    def start(i: int) -> None:
        games[i].random = np.random.RandomState(episodes[i])
        games[i].reset()
        before[i] = 0

    for i in range(count):
        start(i)
    begin = time.perf_counter()
    for taken in actions.tolist():
        for i, game_ in enumerate(games):
            action = before[i] if game_.random.rand() < OPTIONS.sticky_probability else taken[i]
            before[i] = action
            _, over = game_.act(action)
            if over:
                episodes[i] += count
                start(i)
            frames[i] = game_.state().transpose(2, 0, 1)
    return 1e6 * (time.perf_counter() - begin) / actions.size


def main() -> None:
    """Print the table."""
    parser = Parser("minatar", __doc__)
    parser.add_argument("--counts", type=whole(1, 1000), nargs="+", default=[1, 4, 60], help="environments")
    parser.add_argument(
        "--steps", type=whole(1, 100_000), default=2000, help="environment steps in all of the package's games"
    )
    parser.add_argument("--rounds", type=whole(1, 1000), default=3, help="repetitions, of which the median is printed")
    options = parser.parse_args()
    print(f"{'game':16}{'compile s':>10}{'n':>5}{'minatar µs':>12}{'gramian µs':>12}{'ratio':>8}")
    for game in MINATAR_IDS:
        seconds = compile_seconds(game)
        for count in options.counts:
            # one after the other in each round, so that both see the same machine; ours takes more steps, to be seen
            pairs = [
                (theirs(game, count, -(-options.steps // count)), ours(game, count, options.steps))
                for _ in range(options.rounds)
            ]
            slow, fast = np.median(pairs, axis=0)
            ratio = np.median([a / b for a, b in pairs])
            print(f"{game:16}{seconds:10.2f}{count:5}{slow:12.2f}{fast:12.2f}{ratio:8.1f}")


if __name__ == "__main__":
    main()
