"""DQN-Gram in one file: DQN whose loss has the Gram penalty on the features of its last hidden layer.

    J = mean Huber(r + γ max_a Q⁻(s', a) - Q(s, a)) + κ Σ_{i≠j} C_ij²,    C = XᵀX/n

X ``[n, d]`` holds the features of the batch, minus their mean. `gramian.gram_penalty` computes the sum from the n × n
Gram matrix XXᵀ. The defaults are those of the published code of DQN-decor (Mavrin, Yao & Kong 2019), for Atari.

    python examples/dqn_gram.py                                # Atari's Breakout; a GPU is used where there is one
    python examples/dqn_gram.py --env ALE/Seaquest-v5 --kappa 0   # plain DQN
    python examples/dqn_gram.py --env CartPole-v1 --steps 50000 --kappa 0.01 --learning-rate 5e-4 --prefill 1000 \
        --update-every 1 --target-every 500 --epsilon-decay 5000 --replay-capacity 50000 --log-every 2000

It needs torch, gymnasium, gramian and, for Atari, ale-py and opencv-python. The penalty is one line of `update`.
"""

import argparse
import random
import time
from collections import deque
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

from gramian.penalties import gram_penalty


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line; periods and durations are in agent steps, of which Atari has one every four frames."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--env", default="ALE/Breakout-v5", help="ALE/..., or any environment with discrete actions")
    parser.add_argument("--steps", type=int, default=5_000_000, help="agent steps of the whole run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--kappa", type=float, default=10.24, help="κ; 0 is DQN. 10.24 is the code's 0.01 · 32²")
    parser.add_argument("--features", type=int, default=512, help="features d of the last hidden layer")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--replay-capacity", type=int, default=1_000_000, help="7 GB for a million of Atari's frames")
    parser.add_argument("--prefill", type=int, default=50_000, help="random steps before the first update")
    parser.add_argument("--update-every", type=int, default=4)
    parser.add_argument("--target-every", type=int, default=10_000)
    parser.add_argument("--epsilon-final", type=float, default=0.02)
    parser.add_argument("--epsilon-decay", type=int, default=1_000_000, help="steps from ε = 1 to its final value")
    parser.add_argument("--log-every", type=int, default=10_000)
    return parser.parse_args(words)


def make_env(name: str) -> gymnasium.Env[Any, Any]:
    """The environment; Atari shows grey frames of 84×84, the larger of two of every four, without sticky actions."""
    if not name.startswith("ALE/"):
        return gymnasium.make(name)
    import ale_py

    gymnasium.register_envs(ale_py)
    console = gymnasium.make(name, frameskip=1, repeat_action_probability=0.0)
    return gymnasium.wrappers.AtariPreprocessing(console, noop_max=0, frame_skip=4)


class QNetwork(nn.Module):
    """A body that makes the features φ(s), the rectified last hidden layer, and a linear head Q(s, ·) = Wφ(s) + b."""

    def __init__(self, shape: tuple[int, ...], actions: int, features: int = 512) -> None:
        super().__init__()
        body: list[nn.Module]
        if len(shape) == 3:  # pictures: the network of Mnih et al. 2015
            body = [nn.Conv2d(shape[0], 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()]
            body += [nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 7 * 7, features), nn.ReLU()]
        else:
            inputs = int(np.prod(shape))
            body = [nn.Flatten(), nn.Linear(inputs, features), nn.ReLU(), nn.Linear(features, features), nn.ReLU()]
        self.body, self.head = nn.Sequential(*body), nn.Linear(features, actions)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Action values ``[n, actions]`` and features ``[n, d]`` of observations ``[n, *shape]``."""
        inputs = observations.to(self.head.weight.dtype)
        features = self.body(inputs / 255 if observations.dtype == torch.uint8 else inputs)
        return self.head(features), features


class Batch(NamedTuple):
    """Transitions: observations ``[n, *shape]``, everything else ``[n]``."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    discounts: Tensor
    """γ, or 0 where the next observation is not worth anything: a life or the game is over."""
    next_observations: Tensor


def update(
    online: QNetwork, target: QNetwork, optimizer: torch.optim.Optimizer, batch: Batch, kappa: float
) -> tuple[Tensor, Tensor]:
    """One gradient step; returns the TD loss and the penalty before κ, detached."""
    with torch.no_grad():
        best = target(batch.next_observations)[0].max(1).values
        td_targets = batch.rewards + batch.discounts * best
    values, features = online(batch.observations)
    td_loss = smooth_l1_loss(values.gather(1, batch.actions.unsqueeze(1)).squeeze(1), td_targets)
    penalty = gram_penalty(features)
    loss = td_loss + kappa * penalty if kappa else td_loss  # this line makes DQN to DQN-Gram
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return td_loss.detach(), penalty.detach()


class Replay:
    """The last ``capacity`` observations with what was done in them; an Atari frame is stored once, not in four stacks.

    Entries are counted from the beginning of the run; number n lies in row n modulo the capacity. The last observation
    of an episode is an entry too: no action follows it, so it is never drawn, and is the next one of the entry before.
    """

    def __init__(self, capacity: int, space: gymnasium.spaces.Box, stack: int) -> None:
        self.capacity, self.stack, self.count = capacity, stack, 0
        self.seen = np.zeros((capacity, *space.shape), space.dtype)
        self.starts = np.zeros(capacity, np.int64)
        self.actions = np.full(capacity, -1)
        self.rewards = np.zeros(capacity, np.float32)
        self.discounts = np.zeros(capacity, np.float32)

    def add_observation(self, observation: NDArray[Any], start: int) -> None:
        """Append an observation of the episode that began with entry ``start``."""
        row = self.count % self.capacity
        self.seen[row], self.starts[row], self.actions[row] = observation, start, -1
        self.count += 1

    def add_step(self, action: int, reward: float, discount: float) -> None:
        """Note what followed the last observation."""
        row = (self.count - 1) % self.capacity
        self.actions[row], self.rewards[row], self.discounts[row] = action, reward, discount

    def observations(self, entries: NDArray[np.int64]) -> NDArray[Any]:
        """What the network sees ``[n, *shape]``: of pictures a stack, in which the first repeats at the beginning."""
        if not self.stack:
            return self.seen[entries % self.capacity]
        first = self.starts[entries % self.capacity, None]
        seen: NDArray[Any] = self.seen[
            np.maximum(entries[:, None] - np.arange(self.stack)[::-1], first) % self.capacity
        ]
        return seen

    def sample(self, n: int, generator: np.random.Generator, device: str) -> Batch:
        """Draw transitions, each as likely, with replacement."""
        oldest = max(0, self.count - self.capacity + self.stack)  # whose stack is whole
        entries = np.empty(0, np.int64)
        while len(entries) < n:
            drawn = generator.integers(oldest, self.count - 1, n)
            entries = np.concatenate([entries, drawn[self.actions[drawn % self.capacity] >= 0]])[:n]
        rows = entries % self.capacity
        columns = (
            self.observations(entries), self.actions[rows], self.rewards[rows], self.discounts[rows],
            self.observations(entries + 1),
        )  # fmt: skip
        return Batch(*(torch.as_tensor(column, device=device) for column in columns))


def train(options: argparse.Namespace) -> tuple[QNetwork, list[float]]:
    """Train one agent; returns its network and the return of every episode that has ended."""
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    generator = np.random.default_rng(options.seed)
    env = make_env(options.env)
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    assert isinstance(env.action_space, gymnasium.spaces.Discrete)
    actions = int(env.action_space.n)
    stack = 4 if env.observation_space.shape == (84, 84) else 0
    replay = Replay(options.replay_capacity, env.observation_space, stack)
    shape = (stack, 84, 84) if stack else env.observation_space.shape
    online, target = (QNetwork(shape, actions, options.features).to(options.device) for _ in range(2))
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=options.learning_rate, eps=1.5e-4)

    returns, recent, episode_return = [], deque[float](maxlen=100), 0.0
    td_loss = penalty = torch.tensor(torch.nan)
    began = time.perf_counter()
    observation, info = env.reset(seed=options.seed)
    start, lives = replay.count, info.get("lives", 0)
    replay.add_observation(observation, start)
    for step in range(1, options.steps + 1):
        decayed = 1 - max(0, step - options.prefill) / options.epsilon_decay
        if random.random() < max(options.epsilon_final, decayed):
            action = random.randrange(actions)
        else:
            current = replay.observations(np.array([replay.count - 1]))
            with torch.no_grad():
                action = int(online(torch.as_tensor(current, device=options.device))[0].argmax())

        observation, reward, terminated, truncated, info = env.step(action)
        episode_return += float(reward)
        # A lost life has no future for the learner, though the game goes on. Atari's rewards count by their sign.
        over = terminated or info.get("lives", 0) < lives
        lives = info.get("lives", 0)
        clipped = float(np.sign(float(reward))) if stack else float(reward)
        replay.add_step(action, clipped, 0.0 if over else options.gamma)
        replay.add_observation(observation, start)
        if terminated or truncated:
            returns.append(episode_return)
            recent.append(episode_return)
            observation, info = env.reset()
            start, lives, episode_return = replay.count, info.get("lives", 0), 0.0
            replay.add_observation(observation, start)

        if step >= options.prefill and step % options.update_every == 0:
            batch = replay.sample(options.batch_size, generator, options.device)
            td_loss, penalty = update(online, target, optimizer, batch, options.kappa)
        if step % options.target_every == 0:
            target.load_state_dict(online.state_dict())
        if step % options.log_every == 0:
            mean = f"{np.mean(recent):.2f}" if recent else "none"
            print(
                f"step {step:,}: {len(returns):,} episodes, mean return of the last 100 {mean}, "
                f"TD loss {float(td_loss):.2e}, penalty {float(penalty):.2e}, "
                f"{step / (time.perf_counter() - began):,.0f} steps/s",
                flush=True,
            )
    env.close()
    return online, returns


if __name__ == "__main__":
    train(arguments())
