"""Small worlds for the agents that the drop-in is tested on."""

import gymnasium
import numpy as np


class Pictures(gymnasium.Env[np.ndarray, np.int64]):
    """Random 36×36 pictures, a reward for naming the brighter half, episodes of eight steps."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return self._picture(), {}

    def step(self, action):
        reward = float(action == (self.picture[:18].mean() > self.picture[18:].mean()))
        self.steps += 1
        return self._picture(), reward, self.steps == 8, False, {}

    def _picture(self) -> np.ndarray:
        self.picture = self.np_random.integers(0, 256, (36, 36, 1), dtype=np.uint8)
        return self.picture
