"""Breakout: a paddle returns a ball that takes one brick at a time out of a wall of three rows."""

from gramian.core.compiled import exact_kernel
from gramian.deep.envs.minatar_games.mersenne import Random, draw_below
from gramian.deep.envs.minatar_games.rows import (
    CELLS,
    HEAD,
    LEFT,
    OVER,
    RIGHT,
    STAY,
    Frame,
    State,
    clear,
    paint_bits,
    play_for,
)

# STRUCK: the ball met a brick at the step before, and goes through the next one
PADDLE, X, Y, DX, DY, TRAIL_X, TRAIL_Y, STRUCK = range(HEAD, HEAD + 8)
WALL = HEAD + 8
"""The bricks of each row, as bits."""
WALL_TOP, WALL_ROWS = 1, 3
WHOLE_ROW = (1 << CELLS) - 1
SIZE = WALL + WALL_ROWS
CHANNELS = 4  # paddle, ball, trail, bricks
ACTIONS = (STAY, LEFT, RIGHT)


@exact_kernel
def reset(state: State, random: Random) -> None:
    """Put the ball at the left or the right edge under a whole wall, on its way down."""
    from_right = draw_below(random, 2)
    state[X] = state[TRAIL_X] = 9 * from_right
    state[Y] = state[TRAIL_Y] = 3
    state[DX], state[DY] = 1 - 2 * from_right, 1
    state[PADDLE] = 4
    build(state)


@exact_kernel
def build(state: State) -> None:
    """Put all bricks in their places."""
    for row in range(WALL_ROWS):
        state[WALL + row] = WHOLE_ROW


@exact_kernel
def act(state: State, random: Random, action: int) -> int:  # noqa: ARG001  (every game's signature)
    """Move the paddle, then the ball; give the reward."""
    if state[OVER]:
        return 0
    if action == LEFT:
        state[PADDLE] = max(0, state[PADDLE] - 1)
    elif action == RIGHT:
        state[PADDLE] = min(CELLS - 1, state[PADDLE] + 1)
    reward = 0
    met_brick = 0
    from_x, from_y = state[X], state[Y]
    x, y = from_x + state[DX], from_y + state[DY]
    if x < 0 or x >= CELLS:
        x = from_x
        state[DX] = -state[DX]
    row = y - WALL_TOP
    if y < 0:
        y = 0
        state[DY] = -state[DY]
    elif 0 <= row < WALL_ROWS and (state[WALL + row] >> x) & 1:
        met_brick = 1
        if not state[STRUCK]:
            reward = 1
            state[WALL + row] ^= 1 << x
            state[DY] = -state[DY]
            y = from_y
    elif y == CELLS - 1:
        if state[WALL] + state[WALL + 1] + state[WALL + 2] == 0:
            build(state)
        if state[PADDLE] == from_x or state[PADDLE] == x:
            if state[PADDLE] != from_x:  # hit from the side: the ball goes back where it came from
                state[DX] = -state[DX]
            state[DY] = -state[DY]
            y = from_y
        else:
            state[OVER] = 1
    state[STRUCK] = met_brick
    state[TRAIL_X], state[TRAIL_Y] = from_x, from_y
    state[X], state[Y] = x, y
    return reward


@exact_kernel
def draw(state: State, frame: Frame) -> None:
    """Draw the picture ``[4, 10, 10]``."""
    clear(frame)
    frame[0, 9, state[PADDLE]] = 1
    frame[1, state[Y], state[X]] = 1
    frame[2, state[TRAIL_Y], state[TRAIL_X]] = 1
    for row in range(WALL_ROWS):
        paint_bits(frame[3], WALL_TOP + row, state[WALL + row])


play = play_for(globals())
