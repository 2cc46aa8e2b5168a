"""Gymnasium's environments, CartPole among them: vectors or images to see, discrete actions."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import OrderEnforcing
from numpy.typing import NDArray

from gramian.core.errors import UserError
from gramian.deep.envs.games import Frames, Games, Outcome
from gramian.deep.envs.observations import ObservationSpec

MOST_ACTIONS = 256
"""Actions are kept as bytes."""
TIME_LIMIT_STEPS = 27_000
"""Of an environment that has none of its own: that of Atari."""


class GymGames(Games):
    """``count`` copies of one environment, stepped one after the other.

    Vectors become float32; images are uint8, and channels come first. The time limit is not the environment's but that
    of the caller: ``max_episode_steps``, or the environment's own where it is 0. An environment that truncates for
    another reason ends its episode. With ``render`` a frame is a picture ``[height, width, 3]`` for people to look at.
    """

    def __init__(self, environment: str, count: int, max_episode_steps: int = 0, *, render: bool = False):
        self._envs = [_make(environment, render) for _ in range(count)]
        space, actions, spec = self._envs[0].observation_space, self._envs[0].action_space, self._envs[0].spec
        if not isinstance(actions, Discrete) or actions.n > MOST_ACTIONS:
            raise UserError(f"'gym:{environment}' has actions {actions}; they must be Discrete, at most {MOST_ACTIONS}")
        self.observation = _observation(space, environment)
        self._last_axis = render is False and isinstance(space, Box) and space.shape != self.observation.frame_shape
        self.actions, self._first_action = int(actions.n), int(actions.start)
        self.frames_per_step = 1
        own = gymnasium.spec(spec.id).max_episode_steps if spec is not None else None
        self.max_episode_steps = max_episode_steps or own or TIME_LIMIT_STEPS
        self._render = render
        shape = np.shape(self._envs[0].render()) if render else self.observation.frame_shape  # type: ignore[arg-type]
        self._frames = np.zeros((count, *shape), np.uint8 if render else self.observation.dtype)
        self._sent: list[int] = []

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Games.start`."""
        for i, seed in zip(which.tolist(), seeds.tolist(), strict=True):
            self._see(i, self._envs[i].reset(seed=seed)[0])
        return self._frames[which]

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Games.send`; the work is done by :meth:`recv`."""
        self._sent = actions.tolist()

    def recv(self) -> Outcome:
        """See :meth:`Games.recv`."""
        count = len(self._envs)
        rewards, terminated = np.zeros(count, np.float32), np.zeros(count, np.bool_)
        for i, action in enumerate(self._sent):
            rewards[i], terminated[i] = self._play(i, action)
        return Outcome(self._frames, rewards, terminated, np.zeros(count, np.bool_))

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Games.replay`."""
        self.start(np.arange(len(self._envs)), seeds)
        alive = True
        for i, taken in enumerate(actions):
            for action in taken.tolist():
                alive &= not self._play(i, action)[1]
        return self._frames, alive

    def close(self) -> None:
        """See :meth:`Games.close`."""
        while self._envs:
            self._envs.pop().close()

    def _play(self, i: int, action: int) -> tuple[float, bool]:
        observation, reward, terminated, truncated, _ = self._envs[i].step(self._first_action + action)
        self._see(i, observation)
        return float(reward), bool(terminated or truncated)

    def _see(self, i: int, observation: Any) -> None:
        if self._render:
            observation = self._envs[i].render()
        self._frames[i] = np.moveaxis(observation, -1, 0) if self._last_axis else observation


def _make(environment: str, render: bool) -> gymnasium.Env[Any, Any]:
    try:
        made: gymnasium.Env[Any, Any] = gymnasium.make(
            environment,
            max_episode_steps=-1,
            disable_env_checker=True,
            **({"render_mode": "rgb_array"} if render else {}),
        )
        if render:
            made.reset(seed=0)
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"Gymnasium cannot make 'gym:{environment}': {reason}") from error
    return made.env if type(made) is OrderEnforcing and not render else made


def _observation(space: gymnasium.Space[Any], environment: str) -> ObservationSpec:
    if isinstance(space, Box) and len(space.shape) == 1:
        return ObservationSpec(space.shape, np.float32, 1)
    if isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3):
        shape = space.shape
        if len(shape) == 3 and shape[-1] < shape[0]:  # height, width, channels
            shape = (shape[-1], *shape[:-1])
        return ObservationSpec(shape, np.uint8, 1)
    raise UserError(
        f"'gym:{environment}' shows {space}; it must be a vector (Box) or an image of uint8 (Box), as 84×84×4"
    )
