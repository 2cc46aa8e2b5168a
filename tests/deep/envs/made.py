"""Environments of Gymnasium made for the tests: ``gym:tests.deep.envs.made:<id>``."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete


class Made(gymnasium.Env):
    """It shows noise, rewards action 3 and ends by chance."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  as Gymnasium has it

    def __init__(self, observation_space, action_space, render_mode=None):
        self.observation_space, self.action_space, self.render_mode = observation_space, action_space, render_mode

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        return self._see(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self._see(), float(action == 3), self.np_random.random() < 0.05, False, {}

    def render(self):
        return np.full((31, 20, 3), 7, np.uint8)

    def _see(self):
        shape, kind = self.observation_space.shape, self.observation_space.dtype
        return (255 * self.np_random.random(shape)).astype(kind)


FROM_ONE = Discrete(3, start=1)
PIXELS = Box(0, 255, (84, 84, 4), np.uint8)
VECTOR = Box(-1, 1, (5,), np.float64)
for name, seen, actions in (
    ("Pixels-v0", PIXELS, FROM_ONE),
    ("ChannelsFirst-v0", Box(0, 255, (4, 84, 84), np.uint8), FROM_ONE),
    ("Grey-v0", Box(0, 255, (84, 84), np.uint8), FROM_ONE),
    ("Vector-v0", VECTOR, FROM_ONE),
    ("Dict-v0", Dict({"seen": VECTOR}), FROM_ONE),
    ("Matrix-v0", Box(-1, 1, (3, 3)), FROM_ONE),
    ("Continuous-v0", VECTOR, Box(-1, 1, (1,))),
    ("Many-v0", VECTOR, Discrete(257)),
):
    gymnasium.register(name, Made, kwargs={"observation_space": seen, "action_space": actions}, max_episode_steps=40)
