"""What the games share: the first places of a row, the six actions, sticky actions, and the grid.

Every game has a kernel ``play(states, randoms, frames, turns, actions, sticky, rewards, over)``. A turn is (i, seed,
count): environment i starts a new episode where the seed is not negative, then takes the next ``count`` of the actions,
and its picture is drawn. The sum of its rewards and whether its game is over go to ``rewards[i]`` and ``over[i]``. The
few lines of this loop stand in every game: a kernel that is given to another as an argument cannot be kept on the disk.

numba compiles a kernel once more for each literal integer that it is called with. Numbers that are handed to kernels
are therefore ``np.int64`` where that would cost seconds.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import exact_kernel
from gramian.deep.envs.minatar_games.mersenne import Random, draw_uniform, seed_generator

Integer: TypeAlias = int | np.int64
State: TypeAlias = NDArray[np.int64]
Frame: TypeAlias = NDArray[np.uint8]

States: TypeAlias = NDArray[np.int64]
"""``[n, SIZE]``"""
Randoms: TypeAlias = NDArray[np.uint32]
"""``[n, 625]``"""
Frames: TypeAlias = NDArray[np.uint8]
"""``[n, channels, 10, 10]``"""
Turns: TypeAlias = NDArray[np.int64]
"""``[m, 3]``: environment, seed of a new episode or −1, number of actions"""
Actions: TypeAlias = NDArray[np.int64]
"""``[…]``: those of all turns, of the six"""
Rewards: TypeAlias = NDArray[np.float32]
"""``[n]``"""
Over: TypeAlias = NDArray[np.bool_]
"""``[n]``"""

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
