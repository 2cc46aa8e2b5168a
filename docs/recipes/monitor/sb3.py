"""Watch the last hidden features of a Stable-Baselines3 DQN: the measures are in the agent's own log."""

import sys

from stable_baselines3 import DQN

import gramian

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000

agent = DQN("MlpPolicy", "CartPole-v1", learning_starts=100, seed=0, verbose=1)
watch = gramian.monitor(agent.q_net.q_net[-1], every=100, on="input")  # what goes into the last Linear
agent.learn(agent_steps, callback=watch.sb3_callback())
