"""DQN in one file, in the style of CleanRL, with ``F.relu``: the penalty on what goes into the head."""

import random
import sys
from collections import deque

import gymnasium
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
learning_starts = min(1_000, agent_steps // 2)
batch_size, gamma, target_period = 64, 0.99, 500

random.seed(0)
torch.manual_seed(0)
env = gymnasium.make("CartPole-v1")
inputs, actions = env.observation_space.shape[0], int(env.action_space.n)


class QNetwork(nn.Module):
    """Two hidden layers; no module puts out the features after their activation."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, 128), nn.Linear(128, 128)
        self.head = nn.Linear(128, actions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Action values ``[n, actions]``."""
        return self.head(F.relu(self.second(F.relu(self.first(x)))))


online, target = QNetwork(), QNetwork()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=5e-4)
memory: deque[tuple] = deque(maxlen=10_000)

reg = gramian.attach(online.head, ratio=0.1, on="input", inject=True)  # +

state, _ = env.reset(seed=0)
for step in range(agent_steps):
    explore = random.random() < max(0.05, 1 - step / 10_000)
    action = random.randrange(actions) if explore else int(online(torch.as_tensor(state)).argmax())
    next_state, reward, terminated, truncated, _ = env.step(action)
    memory.append((state, action, reward, next_state, terminated))
    state = env.reset()[0] if terminated or truncated else next_state

    if step >= learning_starts:
        columns = zip(*random.sample(memory, min(batch_size, len(memory))), strict=True)
        s, a, r, s_next, done = (torch.as_tensor(np.array(column)) for column in columns)
        with torch.no_grad():
            td_target = r.float() + gamma * target(s_next).max(1).values * ~done
        values = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(values, td_target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    if step % target_period == 0:
        target.load_state_dict(online.state_dict())

reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
