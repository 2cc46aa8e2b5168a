"""What the games share: the first places of a row, the six actions, sticky actions, the grid, and how turns are played.

numba compiles a kernel once more for each literal integer that it is called with. Numbers that are handed to kernels
are therefore ``np.int64`` where that would cost seconds.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import exact_kernel
from gramian.deep.envs.minatar_games.mersenne import Random, draw_uniform, seed_generator

Integer: TypeAlias = int | np.int64
State: TypeAlias = NDArray[np.int64]
Frame: TypeAlias = NDArray[np.uint8]

OVER, BEFORE, RAMPING = 0, 1, 2
"""Places in every row: whether the game is over, the action before, whether the game becomes harder."""
HEAD = 3
"""Where a game's own places begin."""

STAY, LEFT, UP, RIGHT, DOWN, FIRE = range(6)

CELLS = 10
"""Height and width of the grid."""


@exact_kernel
def begin(state: State, random: Random, seed: int) -> None:
    """Start an episode: all places but ``RAMPING`` are 0, and the action before is no action."""
    seed_generator(random, seed)
    ramping = state[RAMPING]
    for i in range(state.size):
        state[i] = 0
    state[RAMPING] = ramping


@exact_kernel
def choose(state: State, random: Random, action: int, sticky: float) -> int:
    """The action that is taken: with probability ``sticky`` the one before again."""
    if draw_uniform(random) < sticky:
        return int(state[BEFORE])
    state[BEFORE] = action
    return action


@exact_kernel
def clear(frame: Frame) -> None:
    """Set all of ``[channels, 10, 10]`` to 0."""
    for channel in range(frame.shape[0]):
        for y in range(CELLS):
            for x in range(CELLS):
                frame[channel, y, x] = 0


@exact_kernel
def paint_bits(plane: Frame, y: Integer, bits: Integer) -> None:
    """Set the cells of row ``y`` of ``plane`` ``[10, 10]`` whose bits are set; column x is bit x."""
    for x in range(CELLS):
        plane[y, x] = (bits >> x) & 1


@exact_kernel
def paint_mark(plane: Frame, y: Integer, x: Integer) -> None:
    """Set one cell of ``plane`` ``[10, 10]``, if it lies on the grid."""
    if 0 <= x < CELLS:
        plane[y, x] = 1


# Every game has its own, which `play_for` puts in the place of these:
reset: Any = None  # (state, random): begin a game
act: Any = None  # (state, random, action): take an action and return the reward
draw: Any = None  # (state, frame): draw the picture [channels, 10, 10]


def _play(
    states: NDArray[np.int64],
    randoms: NDArray[np.uint32],
    frames: NDArray[np.uint8],
    turns: NDArray[np.int64],
    actions: NDArray[np.int64],
    sticky: float,
    rewards: NDArray[np.float32],
    over: NDArray[np.bool_],
) -> None:
    """Play many copies of a game.

    Parameters
    ----------
    states, randoms, frames
        ``[n, SIZE]``, ``[n, 625]`` and ``[n, CHANNELS, 10, 10]``.
    turns
        ``[m, 3]``, each (i, seed, count): copy i starts a new episode where the seed is not negative, then takes the
        next ``count`` of the actions, and its picture is drawn.
    actions
        Those of all turns.
    sticky
        Chance that the action before is repeated.
    rewards, over
        ``[n]`` each: sum of a turn's rewards, and whether the game is over.
    """
    taken = 0
    for k in range(turns.shape[0]):
        i, seed, count = turns[k, 0], turns[k, 1], turns[k, 2]
        state, random = states[i], randoms[i]
        if seed >= 0:
            begin(state, random, seed)
            reset(state, random)
        total = 0
        for t in range(taken, taken + count):
            total += act(state, random, choose(state, random, actions[t], sticky))
        taken += count
        rewards[i], over[i] = total, state[OVER] != 0
        draw(state, frames[i])


def play_for(game: dict[str, Any]) -> Callable[..., None]:
    """Compile `_play` with the ``reset``, ``act`` and ``draw`` of the module whose names ``game`` holds.

    A kernel that is an argument of another cannot be kept on the disk. Machine code is kept by the kernel's name, so
    that it has to differ from game to game.
    """
    name = f"play_{game['__name__'].rpartition('.')[2]}"
    code = _play.__code__.replace(co_name=name, co_qualname=name)
    return exact_kernel(FunctionType(code, {**globals(), **game}))
