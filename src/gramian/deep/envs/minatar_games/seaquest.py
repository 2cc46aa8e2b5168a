"""Seaquest: a submarine shoots fish and other submarines, takes divers on board and brings them up while it has air.

Everything that swims belongs to a *herd*: a stretch of the row that holds how many they are, then ``FIELDS`` integers
for each. Their order is part of the game: it says who meets whom first. Where one leaves, MinAtar takes out the first
of its herd that is its equal in all fields, and so do we; its twin is then moved a second time.
"""

import numpy as np

from gramian.core.compiled import exact_kernel
from gramian.deep.envs.minatar_games.mersenne import Random, draw_below, draw_uniform
from gramian.deep.envs.minatar_games.rows import (
    CELLS,
    DOWN,
    FIRE,
    HEAD,
    LEFT,
    OVER,
    RAMPING,
    RIGHT,
    STAY,
    UP,
    Frame,
    Integer,
    State,
    clear,
    paint_mark,
    play_for,
)

(
    X, Y, COURSE, RELOAD, OXYGEN, ON_BOARD, AT_SURFACE, ENEMY_PERIOD, ENEMY_WAIT, DIVER_WAIT, MOVE_PERIOD, LEVEL,
) = range(HEAD, HEAD + 12)  # fmt: skip
"""``ON_BOARD`` counts divers, and is −1 after six of them were brought up: one is taken for the air, as always."""
FIELDS = 5  # column, row, +1 or −1: the way it goes, steps until it moves, steps until it shoots
# An enemy leaves after ten moves of at most six steps, and one at most is born in a step; of their shots, which leave
# within ten steps, each has at most one on its way. A diver is born every 30 steps, our own shot every 5.
SHOTS = np.int64(HEAD + 12)
DIVERS = SHOTS + 1 + 8 * FIELDS
FISH = DIVERS + 1 + 8 * FIELDS
HUNTERS = FISH + 1 + 64 * FIELDS
TORPEDOES = HUNTERS + 1 + 64 * FIELDS
SIZE = int(TORPEDOES) + 1 + 128 * FIELDS
CHANNELS = 10  # our front, our back, our shots, trails, torpedoes, fish, hunters, oxygen, divers on board, divers
ACTIONS = (STAY, LEFT, UP, RIGHT, DOWN, FIRE)
FULL_OXYGEN, FULL_BOARD = 200, 6
RELOAD_PERIOD, DIVER_PERIOD = 5, 30
TORPEDO_PERIOD, DIVER_MOVE_PERIOD, NEVER = np.int64(10), np.int64(5), np.int64(0)
ROWS = np.int64(8)
"""Rows that others swim in, from row 1 on."""


@exact_kernel
def reset(state: State, random: Random) -> None:  # noqa: ARG001  (every game's signature)
    """Put the submarine at the surface of an empty sea."""
    state[X] = 5
    state[COURSE] = -1
    state[OXYGEN] = FULL_OXYGEN
    state[AT_SURFACE] = 1
    state[ENEMY_PERIOD] = state[ENEMY_WAIT] = 20
    state[DIVER_WAIT] = DIVER_PERIOD
    state[MOVE_PERIOD] = 5


@exact_kernel
def add(state: State, herd: Integer, x: Integer, y: Integer, course: Integer, wait: Integer, reload: Integer) -> None:
    """Put one more at the end of ``herd``."""
    at = herd + 1 + FIELDS * state[herd]
    state[at], state[at + 1], state[at + 2], state[at + 3], state[at + 4] = x, y, course, wait, reload
    state[herd] += 1


@exact_kernel
def take_out(state: State, herd: Integer, place: Integer) -> None:
    """Take out the one at ``place``; the others close up."""
    state[herd] -= 1
    for i in range(herd + 1 + FIELDS * place, herd + 1 + FIELDS * state[herd]):
        state[i] = state[i + FIELDS]


@exact_kernel
def take_out_equal(state: State, herd: Integer, place: Integer) -> Integer:
    """Take out the first that equals the one at ``place``; give where that one is now, −1 if it is gone."""
    for twin in range(place):
        same = True
        for i in range(FIELDS):
            same &= state[herd + 1 + FIELDS * twin + i] == state[herd + 1 + FIELDS * place + i]
        if same:
            take_out(state, herd, twin)
            return place - 1
    take_out(state, herd, place)
    return -1


@exact_kernel
def find(state: State, herd: Integer, x: Integer, y: Integer) -> int:
    """The place of the first of ``herd`` in that cell, −1 if there is none."""
    for place in range(state[herd]):
        at = herd + 1 + FIELDS * place
        if state[at] == x and state[at + 1] == y:
            return place
    return -1


@exact_kernel
def outside(state: State, at: Integer) -> bool:
    """Whether the one whose fields begin ``at`` has left the grid."""
    return bool(state[at] < 0 or state[at] >= CELLS)


@exact_kernel
def touches(state: State, at: Integer) -> bool:
    """Whether the one whose fields begin ``at`` is where we are."""
    return bool(state[at] == state[X] and state[at + 1] == state[Y])


@exact_kernel
def spawn_enemy(state: State, random: Random) -> None:
    """Let a fish or a hunter enter, unless somebody comes towards it in its row."""
    course = 1 if draw_uniform(random) < 1 / 2 else -1
    hunter = draw_uniform(random) < 1 / 3
    y = 1 + draw_below(random, ROWS)
    for herd in (HUNTERS, FISH):
        for at in range(herd + 1, herd + 1 + FIELDS * state[herd], FIELDS):
            if state[at + 1] == y and state[at + 2] != course:
                return
    x = 0 if course > 0 else CELLS - 1
    add(state, HUNTERS if hunter else FISH, x, y, course, state[MOVE_PERIOD], TORPEDO_PERIOD if hunter else NEVER)


@exact_kernel
def spawn_diver(state: State, random: Random) -> None:
    """Let a diver enter."""
    course = 1 if draw_uniform(random) < 1 / 2 else -1
    y = 1 + draw_below(random, ROWS)
    add(state, DIVERS, 0 if course > 0 else CELLS - 1, y, course, DIVER_MOVE_PERIOD, NEVER)


@exact_kernel
def steer(state: State, action: int) -> None:
    """Carry out our own action."""
    if action == FIRE and state[RELOAD] == 0:
        add(state, SHOTS, state[X], state[Y], state[COURSE], NEVER, NEVER)
        state[RELOAD] = RELOAD_PERIOD
    elif action == LEFT:
        state[X] = max(0, state[X] - 1)
        state[COURSE] = -1
    elif action == RIGHT:
        state[X] = min(CELLS - 1, state[X] + 1)
        state[COURSE] = 1
    elif action == UP:
        state[Y] = max(0, state[Y] - 1)
    elif action == DOWN:
        state[Y] = min(CELLS - 2, state[Y] + 1)


@exact_kernel
def move_shots(state: State) -> int:
    """Move our shots; give how many enemies they hit."""
    hits = 0
    for place in range(state[SHOTS] - 1, -1, -1):
        at = SHOTS + 1 + FIELDS * place
        state[at] += state[at + 2]
        if outside(state, at):
            take_out_equal(state, SHOTS, place)
            continue
        for herd in (FISH, HUNTERS):
            enemy = find(state, herd, state[at], state[at + 1])
            if enemy >= 0:
                take_out(state, herd, enemy)
                take_out_equal(state, SHOTS, place)
                hits += 1
                break
    return hits


@exact_kernel
def board(state: State, place: Integer) -> bool:
    """Take a diver on board if he is where we are and there is room; give whether it was done."""
    if state[ON_BOARD] >= FULL_BOARD or not touches(state, DIVERS + 1 + FIELDS * place):
        return False
    take_out_equal(state, DIVERS, place)
    state[ON_BOARD] += 1
    return True


@exact_kernel
def move_divers(state: State) -> None:
    """Move the divers, and take those on board whom we meet before or after."""
    for place in range(state[DIVERS] - 1, -1, -1):
        if board(state, place):
            continue
        at = DIVERS + 1 + FIELDS * place
        if state[at + 3] > 0:
            state[at + 3] -= 1
            continue
        state[at + 3] = DIVER_MOVE_PERIOD
        state[at] += state[at + 2]
        if outside(state, at):
            take_out_equal(state, DIVERS, place)
        else:
            board(state, place)


@exact_kernel
def move_enemies(state: State, herd: Integer) -> int:
    """Move the fish or the hunters, which then may shoot; give how many ran into our shots.

    A hunter that leaves or is hit can still shoot.
    """
    hits = 0
    for place in range(state[herd] - 1, -1, -1):
        at = herd + 1 + FIELDS * place
        if touches(state, at):
            state[OVER] = 1
        now: Integer = place
        x, y, course, reload = state[at], state[at + 1], state[at + 2], state[at + 4]
        if state[at + 3] > 0:
            state[at + 3] -= 1
        else:
            state[at + 3] = state[MOVE_PERIOD]
            x += course
            state[at] = x
            if outside(state, at):
                now = take_out_equal(state, herd, place)
            elif touches(state, at):
                state[OVER] = 1
            else:
                shot = find(state, SHOTS, x, y)
                if shot >= 0:
                    now = take_out_equal(state, herd, place)
                    take_out(state, SHOTS, shot)
                    hits += 1
        if herd == HUNTERS:
            if reload == 0:
                add(state, TORPEDOES, x, y, course, NEVER, NEVER)
            if now >= 0:
                state[herd + 1 + FIELDS * now + 4] = reload - 1 if reload > 0 else TORPEDO_PERIOD
    return hits


@exact_kernel
def move_torpedoes(state: State) -> None:
    """Move the shots of the hunters."""
    for place in range(state[TORPEDOES] - 1, -1, -1):
        at = TORPEDOES + 1 + FIELDS * place
        if touches(state, at):
            state[OVER] = 1
        state[at] += state[at + 2]
        if outside(state, at):
            take_out_equal(state, TORPEDOES, place)
        elif touches(state, at):
            state[OVER] = 1


@exact_kernel
def surface(state: State) -> int:
    """Take air for one diver; give the reward, which is for six of them and by the air that was left."""
    reward = 0
    if state[ON_BOARD] == FULL_BOARD:
        reward = state[OXYGEN] * CELLS // FULL_OXYGEN
        state[ON_BOARD] = 0
    state[ON_BOARD] -= 1
    state[OXYGEN] = FULL_OXYGEN
    state[AT_SURFACE] = 1
    if state[RAMPING] and (state[ENEMY_PERIOD] > 1 or state[MOVE_PERIOD] > 2):
        if state[MOVE_PERIOD] > 2 and state[LEVEL] % 2 == 1:
            state[MOVE_PERIOD] -= 1
        if state[ENEMY_PERIOD] > 1:
            state[ENEMY_PERIOD] -= 1
        state[LEVEL] += 1
    return reward


@exact_kernel
def act(state: State, random: Random, action: int) -> int:
    """Move everything, we first; give the reward."""
    if state[OVER]:
        return 0
    if state[ENEMY_WAIT] == 0:
        spawn_enemy(state, random)
        state[ENEMY_WAIT] = state[ENEMY_PERIOD]
    if state[DIVER_WAIT] == 0:
        spawn_diver(state, random)
        state[DIVER_WAIT] = DIVER_PERIOD
    steer(state, action)
    reward = move_shots(state)
    move_divers(state)
    reward += move_enemies(state, HUNTERS)
    move_torpedoes(state)
    reward += move_enemies(state, FISH)
    state[ENEMY_WAIT] -= 1
    state[DIVER_WAIT] -= 1
    if state[RELOAD] > 0:
        state[RELOAD] -= 1
    if state[OXYGEN] <= 0:
        state[OVER] = 1
    if state[Y] > 0:
        state[OXYGEN] -= 1
        state[AT_SURFACE] = 0
    elif not state[AT_SURFACE]:
        if state[ON_BOARD] == 0:
            state[OVER] = 1
        else:
            reward += surface(state)
    return reward


@exact_kernel
def draw_herd(state: State, plane: Frame, herd: Integer) -> None:
    """Draw a herd."""
    for at in range(herd + 1, herd + 1 + FIELDS * state[herd], FIELDS):
        plane[state[at + 1], state[at]] = 1


@exact_kernel
def draw_trails(state: State, plane: Frame, herd: Integer) -> None:
    """Draw where each of a herd came from."""
    for at in range(herd + 1, herd + 1 + FIELDS * state[herd], FIELDS):
        paint_mark(plane, state[at + 1], state[at] - state[at + 2])


@exact_kernel
def draw(state: State, frame: Frame) -> None:
    """Draw the picture ``[10, 10, 10]``."""
    clear(frame)
    frame[0, state[Y], state[X]] = 1
    frame[1, state[Y], state[X] - state[COURSE]] = 1
    draw_herd(state, frame[2], SHOTS)
    draw_herd(state, frame[4], TORPEDOES)
    draw_herd(state, frame[5], FISH)
    draw_herd(state, frame[6], HUNTERS)
    draw_herd(state, frame[9], DIVERS)
    for herd in (FISH, HUNTERS, DIVERS):
        draw_trails(state, frame[3], herd)
    for x in range(max(0, state[OXYGEN]) * CELLS // FULL_OXYGEN):
        frame[7, CELLS - 1, x] = 1
    for x in range(CELLS - 1 - state[ON_BOARD], CELLS - 1):
        frame[8, CELLS - 1, x] = 1


play = play_for(globals())
