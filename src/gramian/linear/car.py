"""Mountain Car (Sutton & Barto 2018, Example 10.1) and Q-learning on it, whole runs inside one kernel."""

import math

import numpy as np
from numpy.typing import NDArray

from gramian.compiled import inlined_kernel, kernel
from gramian.linear.copied import aligned_rows, transform_copied
from gramian.linear.exchangeable import open_classes
from gramian.linear.features import action_value, active_tiles, with_action
from gramian.linear.kernels import (
    FULL,
    NONE,
    PLAIN,
    TWO_SAMPLE,
    Floats,
    Integers,
    learn,
)

LOW, HIGH = (-1.2, -0.07), (0.6, 0.07)
"""Bounds of position and velocity. The car stops at the left wall; the goal lies at position 0.5."""

GOAL = 0.5
ACTIONS = 3
START_LOW, START_HIGH = -0.6, -0.4
FINISHED, DIVERGED, STOPPED = 0, 1, 2
TIE = 1e-9
"""Largest difference of two action values that are told apart from rounding, where they must be."""

VALUE_CAP = 1e6
"""A run whose TD error leaves ±VALUE_CAP has diverged: true action values lie between −5,000 and 0."""

@kernel
def car_step(position: float, velocity: float, action: int) -> tuple[float, float]:
    """Position and velocity after pushing left (0), not at all (1) or right (2).

    Examples
    --------
    >>> position, velocity = car_step(-0.5, 0.0, 2)
    >>> round(position, 6), round(velocity, 6)
    (-0.499177, 0.000823)
    """
    velocity = min(max(velocity + 0.001 * (action - 1) - 0.0025 * math.cos(3 * position), -0.07), 0.07)
    position = min(max(position + velocity, -1.2), 0.6)
    if position == -1.2 and velocity < 0.0:
        velocity = 0.0
    return position, velocity


@inlined_kernel
def _greedy(q: Floats, margin: float, rng: np.random.Generator) -> int:
    """Index of the largest value; ties are broken at random, so that equal first values favour no action.

    Values within ``margin`` are a tie: with exchangeable features values that are equal differ by rounding.
    """
    best, ties = 0, 1
    for a in range(1, q.size):
        if q[a] > q[best] + margin:
            best, ties = a, 1
        elif q[a] >= q[best] - margin:
            ties += 1
            if rng.random() * ties < 1.0:
                best = a
    return best


@kernel
def keep_in_reservoir(reservoir: Integers, item: Integers, seen: int, rng: np.random.Generator) -> None:
    """Offer ``item`` [k], the one after ``seen`` others, to ``reservoir`` [capacity, k], a uniform sample of all.

    Algorithm R (Vitter 1985): item n takes a random place with probability capacity/n.
    """
    capacity = reservoir.shape[0]
    place = seen if seen < capacity else int(rng.random() * (seen + 1))
    if place < capacity:
        for i in range(item.size):  # assigning rows would compile seconds of code for a shape that does not fit
            reservoir[place, i] = item[i]


@kernel
def add_row(factor: float, given: Floats, out: Floats) -> None:
    """Add ``factor`` times ``given`` [n] to ``out`` [n]."""
    for j in range(out.size):
        out[j] += factor * given[j]


@inlined_kernel
def _active(tiles: Integers, action: int, per_action: int, place: Integers, out: Integers) -> None:
    """Write the active features of (state, action) into ``out`` [k], or their classes where ``place`` has them."""
    with_action(tiles, action, per_action, ACTIONS, out)
    if place.size > 0:
        for i in range(out.size):
            out[i] = place[out[i]]


@inlined_kernel
def _value(
    form: int,
    w: Floats,
    theta: Floats,
    n: int,
    tiles: Integers,
    action: int,
    per_action: int,
    place: Integers,
    values: Floats,
    Y: Floats,
    row: int,
) -> float:
    """Return the value of an action: from its y, a row of Y, and the first n of θ in the full form, else from w."""
    if form == FULL:  # parts of arrays are made here alone: each is counted in and out, in every step
        return float(np.dot(Y[row, :n], theta[:n]))
    return action_value(w, tiles, action, per_action, ACTIONS, place, values)


@kernel
def q_learning_run(
    starts: Floats,
    most_steps: int,
    gamma: float,
    low: Floats,
    high: Floats,
    scale: Floats,
    offsets: Floats,
    per_action: int,
    copies: int,
    form: int,
    estimator: int,
    projected: bool,
    A: Floats,
    w: Floats,
    theta: Floats,
    S: Floats,
    members: Floats,
    alpha: float,
    lam: float,
    beta: float,
    reservoir: Integers,
    rng: np.random.Generator,
    lengths: Integers,
    trace: Floats,
    stop: NDArray[np.bool_],
) -> int:
    """Run Algorithm 1 with ε = 0 for one episode per entry of ``starts``; return FINISHED, DIVERGED or STOPPED.

    Each step: take the greedy action, observe r = −1 and s'; δ = r + γ max_a Q(s', a) − Q(s, a), where the middle term
    is missing at the goal; learn; choose the next action with the new values. A and w (or θ) are changed in place and
    stay from episode to episode. ``lengths`` [episodes] receives the number of steps of each, at most ``most_steps``.
    A run that diverges ends there, and the episodes that it did not finish count ``most_steps``. Setting ``stop[0]``
    from another thread ends the run before its next episode.

    The second sample of the two-sample estimator is drawn uniformly from ``reservoir`` [capacity, k], a uniform sample
    of the (s, a) visited before; the very first step has none and goes without the term. ``trace`` [n, 3] receives
    position, velocity and action of the first n steps.

    A is [d, at least d], or that of copied features as `gramian.linear.copied` stores it, where it has fewer rows
    than there are features; not with a projection or the running estimator.
    ``members`` [classes] is empty, or A, w, θ and S are those of one class of exchangeable features
    (`gramian.linear.exchangeable`), with room for one more per feature before copying; the projected forms alone.
    """
    tilings, together = offsets.shape[0], members.size > 0
    k = tilings if together else tilings * (1 + copies)
    n = 1 if together else w.size  # features, or classes so far
    folded = copies if form != PLAIN and A.shape[0] < w.size else 0
    # Few arrays of few kinds, cut into parts: code that makes arrays takes long to compile.
    integers = np.zeros(2 * tilings + 2 * ACTIONS + 2 * k + (per_action * ACTIONS if together else 0), np.int64)
    tiles_now, tiles_next, rest = integers[:tilings], integers[tilings : 2 * tilings], integers[2 * tilings :]
    at, at_next, rest = rest[:ACTIONS], rest[ACTIONS : 2 * ACTIONS], rest[2 * ACTIONS :]
    indices, rows, place = rest[:k], rest[k : 2 * k], rest[2 * k :]
    numbers = np.zeros(2 + 2 * ACTIONS + k)
    state, q, q_next = numbers[:2], numbers[2 : 2 + ACTIONS], numbers[2 + ACTIONS : 2 + 2 * ACTIONS]
    values = numbers[2 + 2 * ACTIONS :]
    values[:] = math.sqrt(1.0 + copies) if together else 1.0
    vectors = aligned_rows(6 + 2 * ACTIONS, w.size if form != PLAIN else 0)
    room, other, Y = vectors[:4], vectors[4], vectors[5:]
    # Y[at[a]] is y of action a, in the full form alone, where it is row a or row ACTIONS + a; the last row is for y of
    # the reduced one.
    reads_y = form != PLAIN and (estimator != NONE or projected)
    steps_in_all = 0
    lengths[:] = most_steps
    for episode in range(starts.size):
        if stop[0]:
            return STOPPED
        position, velocity = starts[episode], 0.0
        state[0], state[1] = position, velocity
        active_tiles(state, low, high, scale, offsets, tiles_now)
        if together:
            n = open_classes(tiles_now, per_action, ACTIONS, 1 + copies, place, members, n, A, S, w, theta, Y)
        for a in range(ACTIONS):
            at[a] = a
            if form == FULL:
                _active(tiles_now, a, per_action, place, indices)
                transform_copied(A, indices, values, folded, rows, Y[a, :n])
            q[a] = _value(form, w, theta, n, tiles_now, a, per_action, place, values, Y, a)
        corrected = -1  # the action whose y is not a sum of rows
        for step in range(1, most_steps + 1):
            action = _greedy(q, TIE if together else 0.0, rng)
            if steps_in_all < trace.shape[0]:
                trace[steps_in_all, 0], trace[steps_in_all, 1], trace[steps_in_all, 2] = position, velocity, action
            steps_in_all += 1
            position, velocity = car_step(position, velocity, action)
            state[0], state[1] = position, velocity
            active_tiles(state, low, high, scale, offsets, tiles_next)
            if together:
                n = open_classes(tiles_next, per_action, ACTIONS, 1 + copies, place, members, n, A, S, w, theta, Y)
            best_next = 0.0
            if position < GOAL:
                best_next = -np.inf
                shared = 0  # tiles in common with the state before
                for t in range(tilings):
                    shared += tiles_now[t] == tiles_next[t]
                for a in range(ACTIONS):
                    if shared == tilings and a != corrected:
                        # Neither the tiles nor the weights have changed since this action's value was computed.
                        at_next[a], q_next[a] = at[a], q[a]
                    else:
                        at_next[a] = 2 * a + ACTIONS - at[a]
                        if form == FULL:
                            _active(tiles_next, a, per_action, place, indices)
                            transform_copied(A, indices, values, folded, rows, Y[at_next[a], :n])
                        q_next[a] = _value(form, w, theta, n, tiles_next, a, per_action, place, values, Y, at_next[a])
                    best_next = max(best_next, q_next[a])
            delta = -1.0 + gamma * best_next - q[action]
            if not abs(delta) < VALUE_CAP:
                return DIVERGED

            _active(tiles_now, action, per_action, place, indices)
            term = estimator
            y = Y[at[action] if form == FULL else 2 * ACTIONS, :n]
            if reads_y and form != FULL:
                transform_copied(A, indices, values, folded, rows, y)
            if estimator == TWO_SAMPLE:
                seen = steps_in_all - 1
                if seen == 0:
                    term = NONE
                else:
                    drawn = int(rng.random() * min(seen, reservoir.shape[0]))
                    transform_copied(A, reservoir[drawn], values, folded, rows, other[:n])
                keep_in_reservoir(reservoir, indices, seen, rng)
            learn(
                form,
                term,
                projected,
                A,
                w,
                theta,
                S,
                indices,
                values,
                y,
                other[:n],
                delta,
                alpha,
                lam,
                beta,
                folded,
                members[:n],
                room,
            )

            if position >= GOAL:
                lengths[episode] = step
                break
            if form == FULL and not projected:  # only the rows of φ(s, a) changed: correct y(s', a) by the overlap
                add_row(shared * (1.0 + copies), room[1, :n], Y[at_next[action], :n])
                corrected = action
            for a in range(ACTIONS):
                if form == FULL and projected:
                    _active(tiles_next, a, per_action, place, indices)
                    transform_copied(A, indices, values, 0, rows, Y[at_next[a], :n])
                q[a] = _value(form, w, theta, n, tiles_next, a, per_action, place, values, Y, at_next[a])
            tiles_now, tiles_next = tiles_next, tiles_now
            at, at_next = at_next, at
    return FINISHED
