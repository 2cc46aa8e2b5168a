"""Stable-Baselines3's PPO on vectors: policy and value have hidden layers of their own, so each has its penalty."""

import sys

from stable_baselines3 import PPO

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

model = PPO("MlpPolicy", "CartPole-v1", n_steps=min(512, agent_steps), batch_size=64, seed=0)
for head in (model.policy.value_net, model.policy.action_net):  # +
    reg = gramian.attach(head, ratio=0.1, on="input", inject=True)  # +

model.learn(agent_steps)
reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
