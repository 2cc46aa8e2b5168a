"""Agent steps per second of the environments: Atari beside the bare vector environment, MinAtar and CartPole.

The bare vector environment starts its games by itself, without a seed, so that its episodes depend on those before
them and cannot be played again. The ratio says what episodes that are a function of their seeds cost.

Run with ``python -m benchmarks.environments [--count 12] [--steps 2000] [--rounds 3]``.
"""

import time
from collections.abc import Callable

import numpy as np
from ale_py.vector_env import AtariVectorEnv

from benchmarks.command_line import Parser
from gramian.deep.environments import Environments
from gramian.deep.games import find_game


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


def ours(name: str, count: int, steps: int) -> float:
    """Agent steps per second of the package's environments: ``count`` runs with one environment each."""
    environments = Environments([find_game(name)] * count, list(range(count)))
    environments.reset()
    actions = np.random.default_rng(0).integers(0, environments.actions[0], (steps, count, 1))
    try:
        return rate(lambda t: environments.step(actions[t]), steps, count)
    finally:
        environments.close()


def main() -> None:
    """Print the table."""
    parser = Parser("environments", __doc__)
    parser.add_argument("--count", type=int, default=12, help="environments")
    parser.add_argument("--steps", type=int, default=2000, help="steps of each")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions, of which the median is printed")
    options = parser.parse_args()
    print(f"{'game':24}{'bare':>10}{'gramian':>10}{'ratio':>8}")
    for name in ("breakout", "seaquest", "pong"):
        # one after the other in each round, so that both see the same machine
        pairs = [
            (bare(name, options.count, options.steps), ours(name, options.count, options.steps))
            for _ in range(options.rounds)
        ]
        theirs, mine = np.median(pairs, axis=0)
        print(f"{name:24}{theirs:10.0f}{mine:10.0f}{np.median([b / a for a, b in pairs]):8.2f}")
    for name in ("minatar/breakout", "minatar/space_invaders", "cartpole"):
        mine = np.median([ours(name, options.count, options.steps) for _ in range(options.rounds)])
        print(f"{name:24}{'':10}{mine:10.0f}")


if __name__ == "__main__":
    main()
