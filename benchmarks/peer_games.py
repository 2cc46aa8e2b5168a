"""The games as other DQN programs play them: one Gymnasium environment, with the settings of one of our presets.

An observation is the whole stack, channels first. A lost life ends the learner's episode and the game goes on, as in
the package itself: the wrapper stands outside the stack, so that ``reset`` after a lost life returns what is seen.
"""

from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation, TimeLimit
from numpy.typing import NDArray

from gramian.core.games import Game, find_game
from gramian.deep.envs.options import SCREEN_PIXELS, AtariOptions, MinAtarOptions
from gramian.deep.training.config import Settings

if TYPE_CHECKING:
    from ale_py.vector_env import AtariVectorEnv

Observation = NDArray[np.uint8]
Env = gymnasium.Env[Observation, np.int64]
Outcome = tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]


def make_game(name: str, settings: Settings, seed: int) -> Env:
    """One environment, seeded and ready to be reset; an Atari game needs OpenCV."""
    game = find_game(name)
    if game.kind == "minatar":
        minatar = settings.environment.minatar
        return TimeLimit(MinAtarRules(game, minatar, seed), minatar.max_episode_steps)
    import ale_py

    gymnasium.register_envs(ale_py)
    options = settings.environment.atari
    env: Env = gymnasium.make(
        f"ALE/{game.title}-v5",
        frameskip=1,
        repeat_action_probability=options.sticky_probability,
        full_action_space=options.full_actions,
        max_num_frames_per_episode=options.max_episode_frames,
    )
    env = AtariPreprocessing(env, noop_max=options.noop_max, frame_skip=options.frame_skip, screen_size=SCREEN_PIXELS)
    env = FrameStackObservation(env, options.stack, padding_type="zero")
    env.reset(seed=seed)
    return LifeIsEpisode(env, settings.terminal_on_life_loss, settings.clip_rewards)


def atari_vector(game: Game, count: int, options: AtariOptions) -> "AtariVectorEnv":
    """ale-py's vector environment with the options of a preset."""
    from ale_py.vector_env import AtariVectorEnv

    return AtariVectorEnv(
        game.id,
        count,
        max_num_frames_per_episode=options.max_episode_frames,
        repeat_action_probability=options.sticky_probability,
        full_action_space=options.full_actions,
        img_height=SCREEN_PIXELS,
        img_width=SCREEN_PIXELS,
        stack_num=options.stack,
        frameskip=options.frame_skip,
        noop_max=options.noop_max,
        use_fire_reset=options.fire_reset,
        reward_clipping=False,
    )


class LifeIsEpisode(gymnasium.Wrapper[Observation, np.int64, Observation, np.int64]):
    """Ends an episode where a life is lost, without ending the game; returns the sign of the reward."""

    def __init__(self, env: Env, life_loss: bool, signs: bool) -> None:
        super().__init__(env)
        self._life_loss, self._signs = life_loss, signs
        self._lives = 0
        self._over = True
        self._seen: Observation

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Any]:
        """Start a new game where the last one is over, else go on with it."""
        info: dict[str, Any] = {}
        if self._over or seed is not None:
            self._seen, info = self.env.reset(seed=seed, options=options)
            self._lives, self._over = info["lives"], False
        return self._seen, info

    def step(self, action: np.int64) -> Outcome:
        """See `gymnasium.Env.step`."""
        self._seen, reward, terminated, truncated, info = self.env.step(action)
        lost, self._lives = info["lives"] < self._lives, info["lives"]
        self._over = terminated or truncated
        ended = terminated or (self._life_loss and lost)
        return self._seen, float(np.sign(float(reward))) if self._signs else reward, ended, truncated, info


class MinAtarRules(gymnasium.Env[Observation, np.int64]):
    """The package minatar's environment with the planes first."""

    def __init__(self, game: Game, options: MinAtarOptions, seed: int) -> None:
        from minatar import Environment

        self._game = Environment(game.id, options.sticky_probability, options.difficulty_ramping)
        self._game.seed(seed)
        height, width, planes = self._game.state_shape()
        self._table = list(range(6)) if options.full_actions else self._game.minimal_action_set()
        self.observation_space = Box(0, 1, (planes, height, width), np.uint8)
        self.action_count = len(self._table)
        self.action_space = Discrete(self.action_count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Any]:
        """See `gymnasium.Env.reset`."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._game.seed(seed)
        self._game.reset()
        return self._picture(), {}

    def step(self, action: np.int64) -> Outcome:
        """See `gymnasium.Env.step`."""
        reward, over = self._game.act(self._table[action])
        return self._picture(), float(reward), bool(over), False, {}

    def _picture(self) -> Observation:
        planes: Observation = self._game.state().transpose(2, 0, 1).astype(np.uint8, order="C")
        return planes
