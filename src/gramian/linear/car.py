"""Mountain Car (Sutton & Barto 2018, Example 10.1) and Q-learning on it, a whole run in one kernel."""

import math

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import inlined_kernel, kernel
from gramian.linear.features import Tiles, action_value, active_tiles, with_action
from gramian.linear.kernels import (
    FULL,
    NONE,
    PLAIN,
    TWO_SAMPLE,
    TWO_SAMPLE_NORM,
    Floats,
    Integers,
    Rule,
    Weights,
    dot_active,
    learn,
    open_class,
    transform,
)

LOW, HIGH = (-1.2, -0.07), (0.6, 0.07)
"""Bounds of position and velocity. The car stops at the left wall; the goal lies at position 0.5."""

GOAL = 0.5
ACTIONS = 3
START_LOW, START_HIGH = -0.6, -0.4
FINISHED, DIVERGED, STOPPED = 0, 1, 2
TIE = 1e-9
"""Action values of exchangeable features that differ by less are equal: the difference is rounding."""

VECTORS = 6 + 2 * ACTIONS
"""Vectors of d numbers in a run's workspace."""

VALUE_CAP = 1e6
"""A run whose TD error leaves ±VALUE_CAP has diverged: true action values lie between −5,000 and 0."""


@kernel
def car_step(position: float, velocity: float, action: int) -> tuple[float, float]:
    """Position and velocity after pushing left (0), not at all (1) or right (2)."""
    velocity = min(max(velocity + 0.001 * (action - 1) - 0.0025 * math.cos(3 * position), -0.07), 0.07)
    position = min(max(position + velocity, -1.2), 0.6)
    if position == -1.2 and velocity < 0.0:
        velocity = 0.0
    return position, velocity


@inlined_kernel
def _greedy(q: Floats, margin: float, rng: np.random.Generator) -> int:
    """Index of the largest value; ties, values within ``margin``, are broken at random."""
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
    """Offer ``item`` [k] to ``reservoir`` [capacity, k], a uniform sample of all (Algorithm R, Vitter 1985)."""
    capacity = reservoir.shape[0]
    place = seen if seen < capacity else int(rng.random() * (seen + 1))
    if place < capacity:
        for i in range(item.size):  # assigning the row would take seconds to compile
            reservoir[place, i] = item[i]


@kernel
def _open_classes(
    coding: Tiles, tiles: Integers, place: Integers, n: int, members: Floats, weights: Weights, Y: Floats
) -> int:
    """Give unseen features at these ``tiles`` a class each, in ``place`` [features]; return the number of classes."""
    for action in range(ACTIONS):
        for tile in tiles:
            feature = action * coding.per_action + tile
            if place[feature] == 0:
                size = 1 + coding.copies if coding.copied < 0 or feature == coding.copied else 1
                open_class(size, n, members, weights, Y)
                place[feature] = n
                n += 1
    return n


@inlined_kernel
def _active(coding: Tiles, tiles: Integers, action: int, place: Integers, out: Integers) -> None:
    """Write the active features of (state, action), or their classes, into ``out`` [k]; see `_weigh` for copies."""
    if coding.copied >= 0 and place.size == 0:
        with_action(tiles, action, coding.per_action, ACTIONS, out[: tiles.size])
        out[tiles.size] = coding.per_action * ACTIONS
    else:
        with_action(tiles, action, coding.per_action, ACTIONS, out)
    if place.size > 0:
        for i in range(out.size):
            out[i] = place[out[i]]


@kernel
def _weigh(coding: Tiles, place: Integers, indices: Integers, values: Floats) -> None:
    """Set ``values`` [k] of the active features where a single feature is copied; otherwise they are constant."""
    if coding.copied < 0:
        return
    last = indices.size - 1
    if place.size > 0:
        for i in range(indices.size):
            values[i] = math.sqrt(2.0) if indices[i] == place[coding.copied] else 1.0
    else:
        values[last] = 0.0
        for i in range(last):
            if indices[i] == coding.copied:
                values[last] = 1.0


@inlined_kernel
def _value(
    coding: Tiles, w: Floats, tiles: Integers, action: int, place: Integers, indices: Integers, values: Floats
) -> float:
    """Return φᵀw of (state, action), for all forms but the full one; ``indices`` [k] is workspace."""
    if coding.copied < 0:
        return action_value(w, tiles, action, coding.per_action, ACTIONS, place, values)
    _active(coding, tiles, action, place, indices)
    _weigh(coding, place, indices, values)
    return dot_active(w, indices, values)


@kernel
def _look_ahead(
    weights: Weights,
    n: int,
    coding: Tiles,
    tiles: Integers,
    place: Integers,
    values: Floats,
    indices: Integers,
    at: Integers,
    stale: Integers,
    Y: Floats,
    q: Floats,
) -> float:
    """Find y of every action at ``tiles`` for the full form, and return the largest value.

    y of action a is row a or ``ACTIONS + a`` of Y: ``at[a]`` in the state before, ``at[ACTIONS + a]`` in this one. It
    and the value ``q[a]`` are kept unless ``stale[a]`` says that tiles or rows have changed. ``indices`` [k] is
    workspace.
    """
    best = -np.inf
    for a in range(ACTIONS):
        row, value = at[a], q[a]
        if stale[a]:
            row = 2 * a + ACTIONS - row
            _active(coding, tiles, a, place, indices)
            _weigh(coding, place, indices, values)
            transform(weights.A, indices, values, Y[row, :n])
            value = float(np.dot(Y[row, :n], weights.theta[:n]))
        at[ACTIONS + a] = row
        best = max(best, value)
    return best


@kernel
def _enter(theta: Floats, n: int, at: Integers, Y: Floats, q: Floats) -> None:
    """Go to the state of `_look_ahead` and set q [actions] to its values, for the full form."""
    for a in range(ACTIONS):
        at[a] = at[ACTIONS + a]
        q[a] = np.dot(Y[at[a], :n], theta[:n])


@inlined_kernel
def _action_values(
    coding: Tiles, w: Floats, tiles: Integers, place: Integers, indices: Integers, values: Floats, q: Floats
) -> None:
    """Set q [actions] to the value of every action, for the other forms."""
    for a in range(ACTIONS):
        q[a] = _value(coding, w, tiles, a, place, indices, values)


@kernel
def q_learning_run(
    coding: Tiles,
    rule: Rule,
    weights: Weights,
    members: Floats,
    starts: Floats,
    most_steps: int,
    gamma: float,
    epsilon: float,
    reservoir: Integers,
    vectors: Floats,
    rng: np.random.Generator,
    lengths: Integers,
    trace: Floats,
    stop: NDArray[np.bool_],
) -> int:
    """Run Algorithm 1 for one episode per entry of ``starts``; return FINISHED, DIVERGED or STOPPED.

    Each step: take the ε-greedy action, observe r = −1 and s'; δ = r + γ max_a Q(s', a) − Q(s, a), without the middle
    term at the goal; learn; choose the next action with the new values. The ``weights`` stay from episode to episode.
    ``lengths`` [episodes] are at most ``most_steps``, which unfinished episodes of a diverged run count. Setting
    ``stop[0]`` ends the run before its next episode.

    The second sample of the two-sample estimators is drawn from ``reservoir`` [capacity, k], a uniform sample of the
    (s, a) visited before; the first step goes without the term. ``trace`` [n, 3] receives position, velocity and action
    of the first n steps. ``vectors`` [VECTORS, d] is workspace. ``members`` [classes] is empty, or the weights are
    those of one class of exchangeable features (`gramian.linear.kernels`), with space for one more per feature;
    projected forms alone.
    """
    form, estimator, projected, _, _, _ = rule
    per_action, tilings, together = coding.per_action, coding.offsets.shape[0], members.size > 0
    A, w, theta, _ = weights
    k = tilings if together else tilings + 1 if coding.copied >= 0 else tilings * (1 + coding.copies)
    n = 1 if together else w.size  # features, or classes so far
    # few arrays of few kinds, cut into parts: code that makes arrays takes long to compile
    integers = np.zeros(2 * tilings + 3 * ACTIONS + 2 * k + (per_action * ACTIONS if together else 0), np.int64)
    tiles_now, tiles_next, rest = integers[:tilings], integers[tilings : 2 * tilings], integers[2 * tilings :]
    at, stale, rest = rest[: 2 * ACTIONS], rest[2 * ACTIONS : 3 * ACTIONS], rest[3 * ACTIONS :]
    indices, scratch, place = rest[:k], rest[k : 2 * k], rest[2 * k :]
    numbers = np.zeros(2 + ACTIONS + k)
    state, q, values = numbers[:2], numbers[2 : 2 + ACTIONS], numbers[2 + ACTIONS :]
    values[:] = math.sqrt(1.0 + coding.copies) if together else 1.0
    workspace, other, Y = vectors[:4], vectors[4], vectors[5:]
    for a in range(ACTIONS):  # Y has two rows for each action, see `_look_ahead`, and one for y of the reduced form
        at[a] = a
    reads_y = form != PLAIN and (estimator != NONE or projected)
    steps_in_all = 0
    lengths[:] = most_steps
    for episode in range(starts.size):
        if stop[0]:
            return STOPPED
        position, velocity = starts[episode], 0.0
        state[0], state[1] = position, velocity
        active_tiles(coding, state, tiles_now)
        if together:
            n = _open_classes(coding, tiles_now, place, n, members, weights, Y)
        corrected = -1  # the action whose y is not a sum of rows
        if form == FULL:
            stale[:] = 1
            _look_ahead(weights, n, coding, tiles_now, place, values, scratch, at, stale, Y, q)
            _enter(theta, n, at, Y, q)
        else:
            _action_values(coding, w, tiles_now, place, scratch, values, q)
        for step in range(1, most_steps + 1):
            action = _greedy(q, TIE if together else 0.0, rng)
            if epsilon > 0.0 and rng.random() < epsilon:
                action = int(rng.random() * ACTIONS)
            if steps_in_all < trace.shape[0]:
                trace[steps_in_all, 0], trace[steps_in_all, 1], trace[steps_in_all, 2] = position, velocity, action
            steps_in_all += 1
            position, velocity = car_step(position, velocity, action)
            state[0], state[1] = position, velocity
            active_tiles(coding, state, tiles_next)
            if together:
                n = _open_classes(coding, tiles_next, place, n, members, weights, Y)
            best_next = 0.0
            if position < GOAL:
                shared = 0  # tiles in common with the state before
                for t in range(tilings):
                    shared += tiles_now[t] == tiles_next[t]
                kept = shared == tilings
                if form == FULL:
                    for a in range(ACTIONS):
                        stale[a] = not kept or a == corrected
                    best_next = _look_ahead(weights, n, coding, tiles_next, place, values, scratch, at, stale, Y, q)
                else:
                    best_next = -np.inf
                    for a in range(ACTIONS):
                        value = q[a]  # w has not changed since then
                        if not kept:
                            value = _value(coding, w, tiles_next, a, place, scratch, values)
                        best_next = max(best_next, value)
            delta = -1.0 + gamma * best_next - q[action]
            if not abs(delta) < VALUE_CAP:
                return DIVERGED

            _active(coding, tiles_now, action, place, indices)
            y = Y[at[action] if form == FULL else 2 * ACTIONS, :n]
            if estimator in (TWO_SAMPLE, TWO_SAMPLE_NORM):
                seen = steps_in_all - 1
                if seen == 0:
                    other[:n] = 0.0  # so that v = 0
                else:
                    drawn = reservoir[int(rng.random() * min(seen, reservoir.shape[0])), :k]
                    _weigh(coding, place, drawn, values)
                    transform(A, drawn, values, other[:n])
                keep_in_reservoir(reservoir, indices, seen, rng)
            _weigh(coding, place, indices, values)
            if reads_y and form != FULL:
                transform(A, indices, values, y)
            learn(rule, weights, indices, values, y, other[:n], delta, members[:n], workspace)

            if position >= GOAL:
                lengths[episode] = step
                break
            if form == FULL and not projected:  # only the rows of φ(s, a) changed: correct y(s', a) by the overlap
                overlap, ahead = shared * (1.0 + coding.copies), Y[at[ACTIONS + action], :n]
                if coding.copied >= 0:
                    overlap = float(shared)
                    for t in range(tilings):
                        overlap += tiles_now[t] == tiles_next[t] and indices[t] == coding.copied
                for j in range(n):
                    ahead[j] += overlap * workspace[1, j]
                corrected = action
            if form == FULL and projected:
                stale[:] = 1
                _look_ahead(weights, n, coding, tiles_next, place, values, scratch, at, stale, Y, q)
            if form == FULL:
                _enter(theta, n, at, Y, q)
            else:
                _action_values(coding, w, tiles_next, place, scratch, values, q)
            tiles_now, tiles_next = tiles_next, tiles_now
    return FINISHED
