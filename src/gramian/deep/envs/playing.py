"""Games that are played side by side without learning: for evaluations, features and random play."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.deep.envs.games import Games, Outcome
from gramian.deep.envs.observations import FrameStack


class Players:
    """Slots of an emulator, each of which begins another game as soon as one ends.

    ``begin`` gives the seeds of the games that some slots begin. ``lengths`` ``[slots]`` are the agent steps so far.
    """

    def __init__(self, games: Games, slots: int, begin: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
        self.lengths = np.zeros(slots, np.int64)
        self._emulator, self._begin = games, begin
        self._stack = FrameStack(games.observation, (1, slots))
        self._frames = np.zeros((slots, *games.observation.frame_shape), games.observation.dtype)
        self._ended = np.arange(slots)
        self._life_lost = np.zeros(slots, np.bool_)

    def observe(self) -> tuple[Tensor, NDArray[np.bool_]]:
        """Begin the games that are due; give what all slots see ``[slots, *shape]``, and which have just begun."""
        begun = np.isin(np.arange(self.lengths.size), self._ended)
        if self._ended.size:
            self.lengths[self._ended] = 0
            self._frames[self._ended] = self._emulator.start(self._ended, self._begin(self._ended))
        cleared = begun | (self._life_lost & self._stack.spec.per_life)
        return self._stack.push(torch.from_numpy(self._frames)[None], torch.from_numpy(cleared)[None])[0], begun

    def step(self, actions: NDArray[np.int64]) -> tuple[Outcome, NDArray[np.int64]]:
        """Take an action in each slot; returns the outcome, and the slots whose games ended or ran out of time."""
        self._emulator.send(actions)
        outcome = self._emulator.recv()
        self._frames[:], self._life_lost[:] = outcome.frames, outcome.life_lost
        self.lengths += 1
        (self._ended,) = np.nonzero(outcome.terminated | (self.lengths >= self._emulator.max_episode_steps))
        return outcome, self._ended
