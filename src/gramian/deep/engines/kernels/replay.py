"""What a replay in the host's memory does at every step and for every batch, each in one call.

`gramian.deep.replay.host` says the same in numpy, whose thirty short calls take longer than all else that a small
population does in a step. The numbers are the same; rewards of eight steps and more are added up in another order, in
float64. Nobody checks the sizes of arrays here.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import exact_kernel

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float32]
Truths: TypeAlias = NDArray[np.bool_]
Number: TypeAlias = int | np.int64


class Store(NamedTuple):
    """The arrays of a replay; see `gramian.deep.replay.device.Replay`."""

    pixels: NDArray[Any]
    """``[n · slots + 1, frame]``; the last frame is zero."""
    actions: Bytes
    rewards: Numbers
    ends: Bytes
    ages: Bytes
    starts: NDArray[np.int32]
    """``[n, starts]``: the slot of each transition."""
    origin: Integers
    newest: Integers
    oldest: Integers
    youngest: Integers


@exact_kernel
def write(
    store: Store,
    actions: Integers,
    rewards: Numbers,
    over: Truths,
    cut: Truths,
    started: Truths,
    frames: NDArray[Any],
    finals: NDArray[Any],
    number: int,
    sizes: tuple[int, int, int, int, int],
    flags: tuple[int, int],
    had_finals: bool,
) -> None:
    """Add one step of all n environments.

    Parameters
    ----------
    store
        Which is changed.
    actions, rewards, over, cut, started, frames, finals
        What happened, ``[n]`` or ``[n, frame]``.
    number
        Of the transition.
    sizes
        Slots of an environment, frames of an observation, steps of a transition, transitions kept, and slots that may
        lie between the oldest and the newest.
    flags
        What marks an end that is terminal, and one that is cut.
    had_finals
        Whether a game was ever cut.
    """
    slots, stack, steps, kept, reach = sizes
    for i in range(actions.size):
        head = store.newest[i]
        slot = store.origin[i] + head
        store.actions[slot] = actions[i]
        store.rewards[slot] = rewards[i]
        store.ends[slot] = over[i] * flags[0] + cut[i] * flags[1]
        store.starts[i, number % store.starts.shape[1]] = head
        age = min(store.ages[slot] + 1, stack)
        head = head + 1 if head + 1 < slots else 0
        if cut[i]:
            slot = store.origin[i] + head
            store.pixels[slot] = finals[i]
            store.ages[slot] = age
            head = head + 1 if head + 1 < slots else 0
        slot = store.origin[i] + head
        store.pixels[slot] = frames[i]
        store.ages[slot] = 0 if started[i] else age
        store.newest[i] = head
        store.youngest[i] = number if over[i] or cut[i] else max(store.youngest[i], number + 1 - steps)
        store.oldest[i] = max(store.oldest[i], number + 1 - kept)
        if had_finals:
            for _ in range(2):  # a step takes two slots at most
                first = store.starts[i, store.oldest[i] % store.starts.shape[1]]
                if (head - first) % slots > reach and store.oldest[i] <= number:
                    store.oldest[i] += 1


@exact_kernel
def gather(
    store: Store,
    rows: Integers,
    transitions: Integers,
    powers: NDArray[np.float64],
    sizes: tuple[int, int, int],
    terminal: int,
    actions: Integers,
    rewards: Numbers,
    discounts: Numbers,
    observations: NDArray[Any],
    next_observations: NDArray[Any],
) -> None:
    """Write a batch of transitions.

    Parameters
    ----------
    store
        From which.
    rows, transitions
        Environment and number of each, ``[B]``.
    powers
        Of γ, one more than steps.
    sizes
        Slots of an environment, frames of an observation, and steps of a transition.
    terminal
        What marks an end that is terminal.
    actions, rewards, discounts
        ``[B]``, which are written.
    observations, next_observations
        ``[B, stack, frame]``, which are written.
    """
    slots, stack, steps = sizes
    for b in range(rows.size):
        origin = rows[b] * slots
        start = np.int64(store.starts[rows[b], transitions[b] % store.starts.shape[1]])
        reward, length, ends = 0.0, 0, False
        for k in range(steps):
            slot = origin + (start + k) % slots
            reward += store.rewards[slot] * powers[k]
            length += 1
            if store.ends[slot]:  # an end cuts off the steps after it
                ends = (store.ends[slot] & terminal) > 0
                break
        actions[b] = store.actions[origin + start]
        rewards[b] = reward
        discounts[b] = 0.0 if ends else powers[length]
        _look_back(store, origin, start, slots, stack, False, observations[b])
        _look_back(store, origin, start + length, slots, stack, True, next_observations[b])


@exact_kernel
def _look_back(
    store: Store, origin: Number, local: Number, slots: int, stack: int, after_a_step: bool, out: NDArray[Any]
) -> None:
    """The frames of the observation that ends with a slot, zeros where they are of no game or of another."""
    age = np.int64(store.ages[origin + local % slots])
    for j in range(stack):
        back = stack - 1 - j
        # what follows a step is never a first frame: the game was over
        if back <= age and (age > 0 or not after_a_step):
            out[j] = store.pixels[origin + (local - back) % slots]
        else:
            out[j] = 0
