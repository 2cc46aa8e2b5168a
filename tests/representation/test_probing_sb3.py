"""The probe on real agents of Stable-Baselines3, and the recipe of the documentation as it is shown."""

import runpy
from pathlib import Path

import pytest
import torch

from gramian.representation import measures, probe

pytestmark = pytest.mark.slow

stable_baselines3 = pytest.importorskip("stable_baselines3")
pytest.importorskip("gymnasium")

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def states():
    return torch.randn(300, 4, generator=torch.Generator().manual_seed(0))


def test_a_dqns_last_hidden_layer_is_what_its_head_sees(states):
    agent = stable_baselines3.DQN("MlpPolicy", "CartPole-v1", learning_starts=10, seed=0, device="cpu").learn(60)
    with torch.no_grad():
        features = agent.q_net.q_net[:4](states)
    result = probe(agent.q_net, states, layer="q_net.3", batch_size=64)
    assert result.measures["srank"] == measures.srank(features)
    assert result.measures["feature_norm"] == pytest.approx(measures.feature_norm(features))


def test_a_ppos_value_features_are_what_its_value_head_sees(states):
    agent = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0, device="cpu").learn(64)
    policy = agent.policy
    with torch.no_grad():
        _, features = policy.mlp_extractor(states)
    result = probe(policy, states, layer="mlp_extractor.value_net", forward=policy.predict_values)
    assert result.measures["effective_rank"] == pytest.approx(measures.effective_rank(features), rel=1e-6)


def test_a_convolutional_policys_features_are_measured_too():
    agent = stable_baselines3.DQN(
        "CnnPolicy", _Pixels(), buffer_size=10, policy_kwargs={"normalize_images": True}, device="cpu"
    )
    images = torch.randint(0, 256, (6, 4, 84, 84), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    result = probe(agent.q_net, images, layer="features_extractor")
    assert result.statistics.features_dim == 512
    assert result.measures["states"] == 6


@pytest.mark.filterwarnings("ignore")
def test_the_recipe_runs(monkeypatch):
    path = DOCS / "recipes" / "representation" / "sb3.py"
    monkeypatch.setattr("sys.argv", [str(path), "150"])
    with torch.random.fork_rng():
        found = runpy.run_path(str(path))
    assert found["of_dqn"].measures["states"] == found["of_ppo"].measures["states"] == 2048
    assert found["of_dqn"].measures["dr3_dot"] > 0


def _Pixels():  # noqa: N802 - it stands for a class of environments
    import gymnasium
    import numpy as np

    class Pixels(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
        action_space = gymnasium.spaces.Discrete(3)

    return Pixels()
