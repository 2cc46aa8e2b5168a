"""Tianshou's DQN: the penalty on what goes into the last layer of its Net."""

import sys

import gymnasium
import torch
from tianshou.data import Batch, ReplayBuffer
from tianshou.policy import DQNPolicy
from tianshou.utils.net.common import Net

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

torch.manual_seed(0)
env = gymnasium.make("CartPole-v1")
net = Net(env.observation_space.shape, env.action_space.n, hidden_sizes=[128, 128])
policy = DQNPolicy(net, torch.optim.Adam(net.parameters(), lr=1e-3), target_update_freq=320)
reg = gramian.attach(net.model.model[-1], ratio=0.1, on="input", inject=True)  # +

memory = ReplayBuffer(20_000)
observation, _ = env.reset(seed=0)
env.action_space.seed(0)
policy.train()
for step in range(agent_steps):
    action = env.action_space.sample()
    following, reward, terminated, truncated, _ = env.step(action)
    memory.add(
        Batch(
            obs=observation,
            act=action,
            rew=reward,
            terminated=terminated,
            truncated=truncated,
            obs_next=following,
            info={},
        )
    )
    observation = env.reset()[0] if terminated or truncated else following
    if step >= 64:
        policy.update(64, memory)

reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
