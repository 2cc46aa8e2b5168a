"""Agent steps per second of the environments: Atari beside the bare vector environment, MinAtar and CartPole.

The bare vector environment starts its games by itself, without a seed, so that its episodes depend on those before
them and cannot be played again. The ratio says what episodes that are a function of their seeds cost.

With ``--patience-us`` the package's environments also play with processes that spin for so long when they wait, and
with ``--here`` without processes; the ratio after such a column, least and most in brackets, says what it brings.

    python -m benchmarks.environments --count 12 --steps 2000 --rounds 3 [--patience-us 2000] [--here]
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ale_py.vector_env import AtariVectorEnv

from benchmarks.command_line import Parser, whole
from gramian.core.games import find_game
from gramian.deep.envs import Environments


def rate(step: Callable[[int], object], steps: int, count: int) -> float:
    """Agent steps per second of ``count`` environments over ``steps`` steps."""
    begin = time.perf_counter()
    for t in range(steps):
        step(t)
    return count * steps / (time.perf_counter() - begin)


def bare(game: str, count: int, steps: int) -> float:
    """Agent steps per second of ale-py's vector environment alone."""
    env = AtariVectorEnv(
        game, count, noop_max=0, use_fire_reset=False, reward_clipping=False, stack_num=1, repeat_action_probability=0.0
    )
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, len(env.ale.get_action_set()), (steps, count))
    return rate(lambda t: env.step(actions[t]), steps, count)


def ours(name: str, count: int, steps: int, **way: Any) -> float:
    """Agent steps per second of the package's environments: ``count`` runs with one environment each."""
    environments = Environments([find_game(name)] * count, list(range(count)), **way)
    environments.reset()
    actions = np.random.default_rng(0).integers(0, environments.actions[0], (steps, count, 1))
    try:
        return rate(lambda t: environments.step(actions[t]), steps, count)
    finally:
        environments.close()


def in_turn(game: str, count: int, steps: int, ways: Sequence[dict[str, Any]]) -> list[float]:
    """One round of an Atari game: the bare environment, and ours in several ways."""
    return [bare(game, count, steps), *(ours(game, count, steps, **way) for way in ways)]


def main() -> None:
    """Print the table."""
    parser = Parser("environments", __doc__)
    parser.add_argument("--count", type=whole(1, 256), default=12, help="environments")
    parser.add_argument("--steps", type=whole(1, 100_000), default=2000, help="steps of each")
    parser.add_argument("--rounds", type=whole(1, 1000), default=3, help="repetitions, of which the median is printed")
    parser.add_argument(
        "--patience-us", type=whole(0, 1_000_000), default=0, help="microseconds that Atari's processes spin"
    )
    parser.add_argument("--here", action="store_true", help="also without processes")
    options = parser.parse_args()
    others: dict[str, dict[str, Any]] = {}
    if options.patience_us:
        others["awake"] = {"spin_s": options.patience_us / 1e6}
    if options.here:
        others["here"] = {"here": True}
    columns = "".join(f"{name:>10}{'ratio':>20}" for name in others)
    print(f"{'game':24}{'bare':>10}{'gramian':>10}{'ratio':>8}{columns}")
    for name in ("breakout", "seaquest", "pong"):
        # one after the other in each round, so that all see the same machine
        rounds = np.array(
            [in_turn(name, options.count, options.steps, [{}, *others.values()]) for _ in range(options.rounds)]
        )
        theirs, mine, *medians = np.median(rounds, axis=0)
        line = f"{name:24}{theirs:10.0f}{mine:10.0f}{np.median(rounds[:, 1] / rounds[:, 0]):8.2f}"
        for at, median in enumerate(medians, start=2):
            ratios = rounds[:, at] / rounds[:, 1]
            line += f"{median:10.0f}{f'{np.median(ratios):.2f} ({ratios.min():.2f}–{ratios.max():.2f})':>20}"
        print(line, flush=True)
    for name in ("minatar/breakout", "minatar/space_invaders", "cartpole"):
        mine = np.median([ours(name, options.count, options.steps) for _ in range(options.rounds)])
        print(f"{name:24}{'':10}{mine:10.0f}")


if __name__ == "__main__":
    main()
