"""C51 in one file, in the style of CleanRL, with two parts of Rainbow: 3-step returns and double Q-learning.

The loss is in sight, so the penalty is added to it.
"""

import random
import sys
from collections import deque

import gymnasium
import numpy as np
import torch
from torch import nn

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
learning_starts = min(1_000, agent_steps // 2)
batch_size, gamma, target_period, n_step = 64, 0.99, 500, 3
atoms, v_max = 51, 100.0

random.seed(0)
torch.manual_seed(0)
env = gymnasium.make("CartPole-v1")
inputs, actions = env.observation_space.shape[0], int(env.action_space.n)
support = torch.linspace(0.0, v_max, atoms)


class QNetwork(nn.Module):
    """A body that makes features, and a head that puts out a distribution for each action."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.head = nn.Linear(128, actions * atoms)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logarithms of probabilities ``[n, actions, atoms]``."""
        return self.head(self.body(x)).view(-1, actions, atoms).log_softmax(-1)


def greedy(logs: torch.Tensor) -> torch.Tensor:
    """Actions of largest mean ``[n]``."""
    return (logs.exp() * support).sum(-1).argmax(-1)


def projected(returns: torch.Tensor, discounts: torch.Tensor, probabilities: torch.Tensor) -> torch.Tensor:
    """The distribution of returns + discount · support, on the support: ``[n, atoms]``."""
    places = (returns[:, None] + discounts[:, None] * support).clamp(0.0, v_max) / (v_max / (atoms - 1))
    shares = (1 - (places[:, :, None] - torch.arange(atoms)).abs()).clamp_min(0.0)  # of each old atom for each new one
    return (probabilities[:, :, None] * shares).sum(1)


online, target = QNetwork(), QNetwork()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=5e-4)
memory: deque[tuple] = deque(maxlen=10_000)
recent: deque[tuple] = deque(maxlen=n_step)

reg = gramian.attach(online.body, kappa=0.1)  # +

state, _ = env.reset(seed=0)
for step in range(agent_steps):
    with torch.no_grad():
        action = int(greedy(online(torch.as_tensor(state)[None])))
    if random.random() < max(0.05, 1 - step / 10_000):
        action = random.randrange(actions)
    next_state, reward, terminated, truncated, _ = env.step(action)
    recent.append((state, action, reward))
    while len(recent) == n_step or (recent and (terminated or truncated)):
        n_return = sum(gamma**k * past[2] for k, past in enumerate(recent))
        discount = 0.0 if terminated else gamma ** len(recent)
        memory.append((*recent.popleft()[:2], np.float32(n_return), next_state, np.float32(discount)))
    state = env.reset()[0] if terminated or truncated else next_state

    if step >= learning_starts:
        columns = zip(*random.sample(memory, min(batch_size, len(memory))), strict=True)
        s, a, returns, s_next, discounts = (torch.as_tensor(np.array(column)) for column in columns)
        with torch.no_grad():
            best = greedy(online(s_next))
            wanted = projected(returns, discounts, target(s_next)[range(len(best)), best].exp())
        logs = online(s)[range(len(a)), a]
        loss = -(wanted * logs).sum(-1).mean() + reg.loss()  # +
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    if step % target_period == 0:
        target.load_state_dict(online.state_dict())

reg.check()
print("penalty", float(reg.last.value))
