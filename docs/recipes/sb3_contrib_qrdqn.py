"""QR-DQN of sb3-contrib: the penalty on what goes into the layer that puts out the quantiles."""

import sys

from sb3_contrib import QRDQN

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

model = QRDQN("MlpPolicy", "CartPole-v1", learning_starts=min(1_000, agent_steps // 2), train_freq=1, seed=0)
reg = gramian.attach(model.quantile_net.quantile_net[-1], ratio=0.1, on="input", inject=True)  # +

model.learn(agent_steps)
reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
