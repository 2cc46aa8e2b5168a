"""CartPole, through Gymnasium: the smallest task on which a learner can be seen to learn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from numpy.typing import NDArray

from gramian.deep.envs.games import Frames, Games, Outcome
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.envs.options import CartPoleOptions

if TYPE_CHECKING:
    from gymnasium import Env


class CartPoleGames(Games):
    """``count`` copies of CartPole, stepped one after the other."""

    def __init__(self, count: int, options: CartPoleOptions):
        self._envs: list[Env[Any, Any]] = [CartPoleEnv(sutton_barto_reward=False) for _ in range(count)]
        self._sent: list[int] = []
        self._frames = np.zeros((count, 4), np.float32)
        self.observation = ObservationSpec((4,), np.float32, 1)
        self.actions = 2
        self.frames_per_step = 1
        self.max_episode_steps = options.max_episode_steps

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Games.start`."""
        for i, seed in zip(which.tolist(), seeds.tolist(), strict=True):
            self._frames[i], _ = self._envs[i].reset(seed=seed)
        return self._frames[which]

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Games.send`; the work is done by :meth:`recv`."""
        self._sent = actions.tolist()

    def recv(self) -> Outcome:
        """See :meth:`Games.recv`."""
        count = len(self._envs)
        rewards, terminated = np.zeros(count, np.float32), np.zeros(count, np.bool_)
        for i, (env, action) in enumerate(zip(self._envs, self._sent, strict=True)):
            self._frames[i], rewards[i], terminated[i], _, _ = env.step(action)
        return Outcome(self._frames, rewards, terminated, np.zeros(count, np.bool_))

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Games.replay`."""
        self.start(np.arange(len(self._envs)), seeds)
        alive = True
        for i, (env, taken) in enumerate(zip(self._envs, actions, strict=True)):
            for action in taken.tolist():
                self._frames[i], _, over, _, _ = env.step(action)
                alive &= not over
        return self._frames, alive

    def close(self) -> None:
        """See :meth:`Games.close`."""
        self._envs.clear()
