"""Measure the features of Stable-Baselines3 agents: what is in DQN's last hidden layer, and in PPO's."""

import sys

import gymnasium
import numpy as np
from stable_baselines3 import DQN, PPO

from gramian.representation import probe

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000

dqn = DQN("MlpPolicy", "CartPole-v1", learning_starts=100, seed=0).learn(agent_steps)
ppo = PPO("MlpPolicy", "CartPole-v1", n_steps=min(2048, agent_steps), seed=0).learn(agent_steps)


def visited(agent, count):
    """States that an agent comes by, and the states that follow them."""
    env = gymnasium.make("CartPole-v1")
    pairs, (state, _) = [], env.reset(seed=1)
    while len(pairs) < count:
        action, _ = agent.predict(state, deterministic=False)
        following, _, terminated, truncated, _ = env.step(int(action))
        pairs.append((state, following))
        state = env.reset()[0] if terminated or truncated else following
    return (np.stack(states) for states in zip(*pairs, strict=True))


# q_net.q_net is Linear, ReLU, Linear, ReLU, Linear: number 3 is the rectified last hidden layer.
states, following = visited(dqn, 2048)
of_dqn = probe(dqn.q_net, states, layer="q_net.3", next_observations=following)

# An actor-critic policy draws actions where it is called; its value network is reached by predict_values.
states, following = visited(ppo, 2048)
of_ppo = probe(
    ppo.policy,
    states,
    layer="mlp_extractor.value_net",
    next_observations=following,
    forward=ppo.policy.predict_values,
)

for name in ("effective_rank", "srank", "mean_abs_correlation", "sparsity", "dead_share", "dr3_dot"):
    print(f"{name:22} DQN {of_dqn.measures[name]:10.3f}   PPO {of_ppo.measures[name]:10.3f}")
