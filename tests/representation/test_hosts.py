"""Probe and monitor on real agents of other libraries, and the recipes of the documentation as they are shown."""

import re
import runpy
from pathlib import Path

import pytest
import torch

from gramian.representation import measures, monitor, probe

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


def recipe(name, steps, monkeypatch, folder):
    """Run a recipe of the documentation as it is shown."""
    path = DOCS / "recipes" / "monitor" / name
    monkeypatch.setattr("sys.argv", [str(path), str(steps)])
    monkeypatch.chdir(folder)
    with torch.random.fork_rng():
        return runpy.run_path(str(path))


@pytest.mark.filterwarnings("ignore")
def test_the_recipe_of_the_probe_runs(monkeypatch, tmp_path):
    found = recipe("probe_sb3.py", 150, monkeypatch, tmp_path)
    assert found["of_dqn"].measures["states"] == found["of_ppo"].measures["states"] == 2048
    assert found["of_dqn"].measures["dr3_dot"] > 0


@pytest.mark.filterwarnings("ignore")
def test_the_measures_are_in_the_log_of_stable_baselines3(monkeypatch, tmp_path, capsys):
    watch = recipe("sb3.py", 700, monkeypatch, tmp_path)["watch"]
    assert 1 < watch.latest()["effective_rank"] <= 64
    assert "features/" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_the_measures_are_in_the_log_of_torchrl(monkeypatch, tmp_path):
    pytest.importorskip("torchrl")
    watch = recipe("torchrl.py", 400, monkeypatch, tmp_path)["watch"]
    assert 1 < watch.latest()["effective_rank"] <= 64
    (log,) = (tmp_path / "logs").rglob("effective_rank.csv")
    assert float(log.read_text().splitlines()[-1].split(",")[-1]) > 1


def test_the_measures_are_in_the_log_of_a_loop(tmp_path):
    """The line of the page for a script in the style of CleanRL."""
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    writer, body = tensorboard.SummaryWriter(tmp_path), torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    names = {"watch": monitor(body, every=10), "writer": writer}
    (line,) = re.findall(r"^for .*writer.add_scalar.*$", (DOCS / "monitor.md").read_text(), flags=re.MULTILINE)
    for global_step in range(30):
        body(torch.randn(16, 4))
        exec(line, names | {"global_step": global_step})
    writer.close()
    assert b"features/effective_rank" in next(tmp_path.glob("events*")).read_bytes()


def test_the_recipe_for_jax_trains(monkeypatch, tmp_path):
    pytest.importorskip("jax")
    found = recipe("purejaxrl.py", 200, monkeypatch, tmp_path)
    assert found["losses"].shape == (2, 200)
    assert (found["losses"][:, -20:].mean(1) < 0.7 * found["losses"][:, :20].mean(1)).all()


def _Pixels():  # noqa: N802 - it stands for a class of environments
    import gymnasium
    import numpy as np

    class Pixels(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
        action_space = gymnasium.spaces.Discrete(3)

    return Pixels()
