"""Stable-Baselines3's PPO on Atari: the penalty on the features that policy and value share."""

import sys

import ale_py
import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2_500_000

gymnasium.register_envs(ale_py)
env = VecFrameStack(make_atari_env("BreakoutNoFrameskip-v4", n_envs=8, seed=0), n_stack=4)
model = PPO("CnnPolicy", env, n_steps=min(128, agent_steps), batch_size=256, n_epochs=4, ent_coef=0.01, seed=0)

reg = gramian.attach(model.policy.features_extractor, kappa=0.01, inject=True)  # +

model.learn(agent_steps)
print("penalty", float(reg.last.value), "terms", [float(term) for term in reg.last.terms])
