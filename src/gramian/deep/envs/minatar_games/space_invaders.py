"""Space Invaders: a cannon shoots at a block of aliens that come down, faster the fewer they are, and shoot back.

Aliens, shots and bombs are ten rows of bits each; column x is bit x.
"""

from gramian.core.compiled import exact_kernel
from gramian.deep.envs.minatar_games.mersenne import Random
from gramian.deep.envs.minatar_games.rows import (
    CELLS,
    FIRE,
    HEAD,
    LEFT,
    OVER,
    RAMPING,
    RIGHT,
    STAY,
    Frame,
    State,
    clear,
    paint_bits,
    play_for,
)

CANNON, RELOAD, COURSE, MOVE_PERIOD, MOVE_WAIT, BOMB_WAIT = range(HEAD, HEAD + 6)
ALIENS, SHOTS, BOMBS = (HEAD + 6 + CELLS * i for i in range(3))
SIZE = BOMBS + CELLS
CHANNELS = 6  # cannon, aliens, aliens that go left, aliens that go right, shots, bombs
ACTIONS = (STAY, LEFT, RIGHT, FIRE)
WAVE_ROWS, WAVE_BITS = 4, 0b0011111100
RELOAD_PERIOD, BOMB_PERIOD, SLOWEST, FASTEST = 5, 10, 12, 6
LEFT_EDGE, RIGHT_EDGE, BOTTOM = 1, 1 << (CELLS - 1), CELLS - 1


@exact_kernel
def reset(state: State, random: Random) -> None:  # noqa: ARG001  (every game's signature)
    """Put the cannon under a new wave of aliens that go left."""
    state[CANNON] = 5
    state[COURSE] = -1
    state[MOVE_PERIOD] = state[MOVE_WAIT] = SLOWEST
    state[BOMB_WAIT] = BOMB_PERIOD
    send_wave(state)


@exact_kernel
def send_wave(state: State) -> None:
    """Put a block of 4×6 aliens at the top."""
    for y in range(WAVE_ROWS):
        state[ALIENS + y] = WAVE_BITS


@exact_kernel
def count_bits(bits: int) -> int:
    """The number of bits that are set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@exact_kernel
def move_aliens(state: State) -> None:
    """Move all aliens one column, or down where one stands at the edge they go to; below row 9 they have won."""
    alive, columns = 0, 0
    for y in range(CELLS):
        columns |= state[ALIENS + y]
        alive += count_bits(state[ALIENS + y])
    state[MOVE_WAIT] = min(alive, state[MOVE_PERIOD])
    if columns & (LEFT_EDGE if state[COURSE] < 0 else RIGHT_EDGE):
        state[COURSE] = -state[COURSE]
        lowest = state[ALIENS + BOTTOM]
        if lowest:
            state[OVER] = 1
        for y in range(BOTTOM, 0, -1):
            state[ALIENS + y] = state[ALIENS + y - 1]
        state[ALIENS] = lowest  # the picture of a lost game shows them at the top
    elif state[COURSE] < 0:
        for y in range(CELLS):
            state[ALIENS + y] >>= 1
    else:
        for y in range(CELLS):
            state[ALIENS + y] <<= 1


@exact_kernel
def drop_bomb(state: State) -> None:
    """Let the lowest alien of the column nearest to the cannon shoot; of two columns as near, the left one."""
    for distance in range(CELLS):
        for side in (-1, 1):
            x = state[CANNON] + side * distance
            if 0 <= x < CELLS:
                for y in range(BOTTOM, -1, -1):
                    if (state[ALIENS + y] >> x) & 1:
                        state[BOMBS + y] |= 1 << x
                        return


@exact_kernel
def act(state: State, random: Random, action: int) -> int:  # noqa: ARG001  (every game's signature)
    """Move or fire the cannon, then the shots, the bombs and the aliens; give the reward."""
    if state[OVER]:
        return 0
    for y in range(BOTTOM):
        state[SHOTS + y] = state[SHOTS + y + 1]
    state[SHOTS + BOTTOM] = 0
    if action == FIRE and state[RELOAD] == 0:
        state[SHOTS + BOTTOM - 1] |= 1 << state[CANNON]
        state[RELOAD] = RELOAD_PERIOD
    elif action == LEFT:
        state[CANNON] = max(0, state[CANNON] - 1)
    elif action == RIGHT:
        state[CANNON] = min(CELLS - 1, state[CANNON] + 1)
    for y in range(BOTTOM, 0, -1):
        state[BOMBS + y] = state[BOMBS + y - 1]
    state[BOMBS] = 0
    here = 1 << state[CANNON]
    if (state[BOMBS + BOTTOM] | state[ALIENS + BOTTOM]) & here:
        state[OVER] = 1
    if state[MOVE_WAIT] == 0:
        move_aliens(state)
        if state[ALIENS + BOTTOM] & here:
            state[OVER] = 1
    if state[BOMB_WAIT] == 0:
        state[BOMB_WAIT] = BOMB_PERIOD
        drop_bomb(state)
    reward, alive = 0, 0
    for y in range(CELLS):
        hit = state[ALIENS + y] & state[SHOTS + y]
        state[ALIENS + y] ^= hit
        state[SHOTS + y] ^= hit
        reward += count_bits(hit)
        alive |= state[ALIENS + y]
    if state[RELOAD] > 0:
        state[RELOAD] -= 1
    state[MOVE_WAIT] -= 1
    state[BOMB_WAIT] -= 1
    if not alive:
        if state[RAMPING] and state[MOVE_PERIOD] > FASTEST:
            state[MOVE_PERIOD] -= 1
        send_wave(state)
    return reward


@exact_kernel
def draw(state: State, frame: Frame) -> None:
    """Draw the picture ``[6, 10, 10]``."""
    clear(frame)
    frame[0, BOTTOM, state[CANNON]] = 1
    for y in range(CELLS):
        paint_bits(frame[1], y, state[ALIENS + y])
        paint_bits(frame[2 if state[COURSE] < 0 else 3], y, state[ALIENS + y])
        paint_bits(frame[4], y, state[SHOTS + y])
        paint_bits(frame[5], y, state[BOMBS + y])


play = play_for(globals())
