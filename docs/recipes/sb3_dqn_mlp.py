"""Stable-Baselines3's DQN on vectors: the penalty on the last hidden layer of its MLP."""

import sys

from stable_baselines3 import DQN

import gramian

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

model = DQN("MlpPolicy", "CartPole-v1", learning_starts=min(1_000, agent_steps // 2), seed=0)

# The features extractor of MlpPolicy only flattens; q_net.q_net is Linear, ReLU, Linear, ReLU, Linear: the last ReLU.
reg = gramian.attach(model.q_net.q_net[-2], kappa=0.1, inject=True)

model.learn(agent_steps)
print("penalty", float(reg.last.value), "terms", [float(term) for term in reg.last.terms])
