"""Stable-Baselines3's SAC: the penalty on both critics. Their actor is trained through them and is left alone."""

import sys

from stable_baselines3 import SAC

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000

model = SAC("MlpPolicy", "Pendulum-v1", learning_starts=min(100, agent_steps // 2), seed=0)
only = gramian.depends_only_on(model.critic)  # +
for critic in model.critic.q_networks:  # +
    reg = gramian.attach(critic[-1], ratio=0.1, on="input", inject=True, when=only)  # +

model.learn(agent_steps)
reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
