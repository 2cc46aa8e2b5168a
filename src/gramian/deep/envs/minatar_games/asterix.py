"""Asterix: enemies and gold cross eight lanes; the player takes the gold and must not be touched by an enemy."""

from gramian.core.compiled import exact_kernel
from gramian.deep.envs.minatar_games.mersenne import Random, draw_below, draw_uniform
from gramian.deep.envs.minatar_games.rows import (
    CELLS,
    DOWN,
    HEAD,
    LEFT,
    OVER,
    RAMPING,
    RIGHT,
    STAY,
    UP,
    Frame,
    State,
    clear,
    paint_mark,
    play_for,
)

# a PERIOD is that many steps; a WAIT counts down to the next time
X, Y, SPAWN_PERIOD, SPAWN_WAIT, MOVE_PERIOD, MOVE_WAIT, RAMP_WAIT, LEVEL = range(HEAD, HEAD + 8)
LANES = 8
KIND, PLACE, COURSE = HEAD + 8, HEAD + 8 + LANES, HEAD + 8 + 2 * LANES
"""What is in each lane (lane 0 is row 1 of the grid), its column, and +1 or −1: the way it goes."""
NOTHING, ENEMY, GOLD = range(3)
SIZE = COURSE + LANES
CHANNELS = 4  # player, enemies, trails, gold
ACTIONS = (STAY, LEFT, UP, RIGHT, DOWN)
RAMP_PERIOD = 100


@exact_kernel
def reset(state: State, random: Random) -> None:  # noqa: ARG001  (every game's signature)
    """Put the player in the middle of empty lanes."""
    state[X] = state[Y] = 5
    state[SPAWN_PERIOD] = state[SPAWN_WAIT] = 10
    state[MOVE_PERIOD] = state[MOVE_WAIT] = 5
    state[RAMP_WAIT] = RAMP_PERIOD


@exact_kernel
def spawn(state: State, random: Random) -> None:
    """Let an enemy or gold enter one of the empty lanes, if there are any."""
    from_left = draw_uniform(random) < 1 / 2
    gold = draw_uniform(random) < 1 / 3
    empty = 0
    for lane in range(LANES):
        empty += state[KIND + lane] == NOTHING
    if empty == 0:
        return
    skip = draw_below(random, empty)
    for lane in range(LANES):
        if state[KIND + lane] == NOTHING:
            if skip == 0:
                state[KIND + lane] = GOLD if gold else ENEMY
                state[PLACE + lane] = 0 if from_left else CELLS - 1
                state[COURSE + lane] = 1 if from_left else -1
                return
            skip -= 1


@exact_kernel
def meet(state: State, lane: int) -> int:
    """Let the player meet what is in ``lane``, if both are at one place; give the reward."""
    if state[KIND + lane] == NOTHING or state[Y] != lane + 1 or state[X] != state[PLACE + lane]:
        return 0
    if state[KIND + lane] == GOLD:
        state[KIND + lane] = NOTHING
        return 1
    state[OVER] = 1
    return 0


@exact_kernel
def ramp(state: State) -> None:
    """Every 102 steps: spawn faster, and move faster every other time."""
    if not state[RAMPING] or (state[SPAWN_PERIOD] == 1 and state[MOVE_PERIOD] == 1):
        return
    if state[RAMP_WAIT] >= 0:
        state[RAMP_WAIT] -= 1
        return
    if state[MOVE_PERIOD] > 1 and state[LEVEL] % 2 == 1:
        state[MOVE_PERIOD] -= 1
    if state[SPAWN_PERIOD] > 1:
        state[SPAWN_PERIOD] -= 1
    state[LEVEL] += 1
    state[RAMP_WAIT] = RAMP_PERIOD


@exact_kernel
def act(state: State, random: Random, action: int) -> int:
    """Move the player, then what is in the lanes; give the reward."""
    if state[OVER]:
        return 0
    if state[SPAWN_WAIT] == 0:
        spawn(state, random)
        state[SPAWN_WAIT] = state[SPAWN_PERIOD]
    if action == LEFT:
        state[X] = max(0, state[X] - 1)
    elif action == RIGHT:
        state[X] = min(CELLS - 1, state[X] + 1)
    elif action == UP:
        state[Y] = max(1, state[Y] - 1)
    elif action == DOWN:
        state[Y] = min(LANES, state[Y] + 1)
    reward = meet(state, state[Y] - 1)
    if state[MOVE_WAIT] == 0:
        state[MOVE_WAIT] = state[MOVE_PERIOD]
        for lane in range(LANES):
            state[PLACE + lane] += state[COURSE + lane]
            if state[PLACE + lane] < 0 or state[PLACE + lane] >= CELLS:
                state[KIND + lane] = NOTHING
        reward += meet(state, state[Y] - 1)
    state[SPAWN_WAIT] -= 1
    state[MOVE_WAIT] -= 1
    ramp(state)
    return reward


@exact_kernel
def draw(state: State, frame: Frame) -> None:
    """Draw the picture ``[4, 10, 10]``."""
    clear(frame)
    frame[0, state[Y], state[X]] = 1
    for lane in range(LANES):
        if state[KIND + lane] != NOTHING:
            x = state[PLACE + lane]
            frame[3 if state[KIND + lane] == GOLD else 1, lane + 1, x] = 1
            paint_mark(frame[2], lane + 1, x - state[COURSE + lane])


play = play_for(globals())
