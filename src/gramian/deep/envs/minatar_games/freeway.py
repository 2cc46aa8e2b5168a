"""Freeway: a chicken crosses eight lanes of cars as often as it can before the time is up."""

from gramian.core.compiled import exact_kernel
from gramian.deep.envs.minatar_games.mersenne import Random, draw_below, draw_uniform
from gramian.deep.envs.minatar_games.rows import CELLS, DOWN, HEAD, OVER, STAY, UP, Frame, State, clear, play_for

Y, REST, CLOCK = range(HEAD, HEAD + 3)
LANES = 8
PLACE, WAIT, PACE, COURSE = (HEAD + 3 + LANES * i for i in range(4))
"""The column of each lane's car, the steps until it moves, those between its moves, and +1 or −1: the way it goes."""
SIZE = COURSE + LANES
CHANNELS = 7  # chicken, cars, a trail for each of the five paces
ACTIONS = (STAY, UP, DOWN)
COLUMN = 4
"""Where the chicken walks."""
STEP_PERIOD, TIME_LIMIT, FASTEST, SLOWEST = 3, 2500, 1, 5


@exact_kernel
def reset(state: State, random: Random) -> None:
    """Put the chicken at the bottom and all cars at the left."""
    renew_cars(state, random)
    state[Y] = CELLS - 1
    state[REST] = STEP_PERIOD
    state[CLOCK] = TIME_LIMIT


@exact_kernel
def renew_cars(state: State, random: Random) -> None:
    """Draw the paces of all cars, then their ways; they stay where they are."""
    for lane in range(LANES):
        state[PACE + lane] = FASTEST + draw_below(random, SLOWEST - FASTEST + 1)
    for lane in range(LANES):
        state[COURSE + lane] = 1 if draw_uniform(random) > 0.5 else -1
        state[WAIT + lane] = state[PACE + lane]


@exact_kernel
def meet(state: State, lane: int) -> None:
    """Send the chicken back to the bottom if the car of ``lane`` is where it stands."""
    if state[Y] == lane + 1 and state[PLACE + lane] == COLUMN:
        state[Y] = CELLS - 1


@exact_kernel
def act(state: State, random: Random, action: int) -> int:
    """Move the chicken, then the cars; give the reward."""
    if state[OVER]:
        return 0
    reward = 0
    if state[REST] == 0 and action in (UP, DOWN):
        state[REST] = STEP_PERIOD
        state[Y] = state[Y] - 1 if action == UP else min(CELLS - 1, state[Y] + 1)
    if state[Y] == 0:
        reward = 1
        renew_cars(state, random)
        state[Y] = CELLS - 1
    for lane in range(LANES):
        meet(state, lane)
        if state[WAIT + lane] > 0:
            state[WAIT + lane] -= 1
        else:
            state[WAIT + lane] = state[PACE + lane]
            state[PLACE + lane] = (state[PLACE + lane] + state[COURSE + lane]) % CELLS
            meet(state, lane)
    if state[REST] > 0:
        state[REST] -= 1
    state[CLOCK] -= 1
    if state[CLOCK] < 0:
        state[OVER] = 1
    return reward


@exact_kernel
def draw(state: State, frame: Frame) -> None:
    """Draw the picture ``[7, 10, 10]``."""
    clear(frame)
    frame[0, state[Y], COLUMN] = 1
    for lane in range(LANES):
        x = state[PLACE + lane]
        frame[1, lane + 1, x] = 1
        frame[1 + state[PACE + lane], lane + 1, (x - state[COURSE + lane]) % CELLS] = 1


play = play_for(globals())
