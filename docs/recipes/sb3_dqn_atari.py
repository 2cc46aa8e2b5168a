"""Stable-Baselines3's DQN on Atari: the penalty on the 512 features of its convolutional network."""

import sys

import ale_py
import gymnasium
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000

gymnasium.register_envs(ale_py)
env = VecFrameStack(make_atari_env("BreakoutNoFrameskip-v4", seed=0), n_stack=4)
model = DQN(
    "CnnPolicy",
    env,
    learning_rate=1e-4,
    buffer_size=min(100_000, agent_steps),
    learning_starts=min(50_000, agent_steps // 2),
    batch_size=32,
    seed=0,
)

kappa = gramian.kappa(0.01, n=32, convention="author")  # 10.24
reg = gramian.attach(model.q_net.features_extractor, kappa=kappa, inject=True)  # +

model.learn(agent_steps)
print("penalty", float(reg.last.value), "terms", [float(term) for term in reg.last.terms])
