"""DQN as one would write it in an afternoon, in one file: the plain loop that faster engines are measured against.

One environment, a ring of whole observations in NumPy, torch modules, Adam: the shape of CleanRL's ``dqn_atari.py``,
without its logging. It knows nothing of populations and rebuilds nothing; what it stores is what it samples.
"""

from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

from benchmarks.peer_games import Env, Observation
from gramian.deep.training.config import Settings


class Scale(nn.Module):
    """Bytes to [0, 1]."""

    def forward(self, pictures: Tensor) -> Tensor:
        """x/255."""
        return pictures.float() / 255


class AsFloat(nn.Module):
    """Planes of 0 and 1 as numbers."""

    def forward(self, planes: Tensor) -> Tensor:
        """The same numbers, as floats."""
        return planes.float()


def body(shape: tuple[int, ...], features_dim: int) -> nn.Sequential:
    """The network up to its features: Mnih et al. 2015 for pictures of 84×84, Young & Tian 2019 for MinAtar's planes.

    Examples
    --------
    >>> body((4, 84, 84), 512)(torch.zeros(2, 4, 84, 84, dtype=torch.uint8)).shape
    torch.Size([2, 512])
    >>> body((4, 10, 10), 128)(torch.zeros(2, 4, 10, 10, dtype=torch.uint8)).shape
    torch.Size([2, 128])
    """
    if shape[-1] == 84:
        layers: list[nn.Module] = [
            Scale(),
            *(nn.Conv2d(shape[0], 32, 8, 4), nn.ReLU()),
            *(nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3, 1), nn.ReLU()),
        ]
        inputs = 64 * 7 * 7
    else:
        layers = [AsFloat(), nn.Conv2d(shape[0], 16, 3, 1), nn.ReLU()]
        inputs = 16 * (shape[1] - 2) * (shape[2] - 2)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, features_dim), nn.ReLU())


class Sample(NamedTuple):
    """A batch of transitions."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    terminal: Tensor
    next_observations: Tensor


class Ring:
    """The last ``capacity`` transitions, each with both of its observations."""

    def __init__(self, capacity: int, shape: tuple[int, ...]) -> None:
        self.observations = np.zeros((capacity, *shape), np.uint8)
        self.next_observations = np.zeros((capacity, *shape), np.uint8)
        self.actions = np.zeros(capacity, np.int64)
        self.rewards = np.zeros(capacity, np.float32)
        self.terminal = np.zeros(capacity, np.float32)
        self.added = 0

    def add(
        self, observation: Observation, action: int, reward: float, terminal: bool, next_observation: Observation
    ) -> None:
        """Write over the oldest transition."""
        i = self.added % len(self.actions)
        self.observations[i], self.next_observations[i] = observation, next_observation
        self.actions[i], self.rewards[i], self.terminal[i] = action, reward, terminal
        self.added += 1

    def sample(self, random: np.random.Generator, batch_size: int, device: torch.device) -> Sample:
        """Draw uniformly, with replacement."""
        i = random.integers(0, min(self.added, len(self.actions)), batch_size)
        arrays = (self.observations, self.actions, self.rewards, self.terminal, self.next_observations)
        return Sample(*(torch.from_numpy(array[i]).to(device) for array in arrays))


class PlainDQN:
    """DQN on one environment, with the values of a preset and ε at its final value once the prefill is over."""

    def __init__(self, env: Env, settings: Settings, features_dim: int, seed: int, device: torch.device) -> None:
        assert isinstance(env.action_space, Discrete)
        assert env.observation_space.shape is not None
        torch.manual_seed(seed)
        self.env, self.settings, self.device = env, settings, device
        self.random = np.random.default_rng(seed)
        self.action_count = int(env.action_space.n)
        shape = env.observation_space.shape
        self.online = nn.Sequential(body(shape, features_dim), nn.Linear(features_dim, self.action_count)).to(device)
        self.target = deepcopy(self.online)
        self.optimiser = torch.optim.Adam(self.online.parameters(), settings.learning_rate, eps=settings.adam_epsilon)
        self.ring = Ring(settings.replay_capacity, shape)
        self.agent_steps = self.updates = 0
        self.observation, _ = env.reset()

    def act(self) -> int:
        """ε-greedy; random in the prefill."""
        in_prefill = self.agent_steps < self.settings.prefill_agent_steps
        if in_prefill or self.random.random() < self.settings.epsilon_final:
            return int(self.random.integers(self.action_count))
        with torch.no_grad():
            return int(self.online(torch.from_numpy(self.observation).to(self.device)[None]).argmax(1).item())

    def update(self, batch: Sample) -> None:
        """One step of Adam on the mean Huber loss."""
        with torch.no_grad():
            best = self.target(batch.next_observations).max(1).values
            targets = batch.rewards + self.settings.gamma * (1 - batch.terminal) * best
        values = self.online(batch.observations).gather(1, batch.actions[:, None]).squeeze(1)
        loss = smooth_l1_loss(values, targets)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.updates += 1

    def step(self) -> None:
        """One agent step, and the update and the copy that are due."""
        settings = self.settings
        action = self.act()
        seen, reward, terminated, truncated, _ = self.env.step(np.int64(action))
        self.ring.add(self.observation, action, float(reward), terminated, seen)
        self.observation = self.env.reset()[0] if terminated or truncated else seen
        self.agent_steps += 1
        learned = self.agent_steps - settings.prefill_agent_steps
        if learned > 0 and learned % settings.update_period_agent_steps == 0:
            self.update(self.ring.sample(self.random, settings.batch_size, self.device))
        if learned > 0 and learned % settings.target_period_agent_steps == 0:
            self.target.load_state_dict(self.online.state_dict())
