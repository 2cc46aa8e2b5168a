"""Runs that must learn: small, seeded, and far from what chance gives."""

import csv
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from gramian.core.arms import Arm
from gramian.deep.training.config import Config, load_preset, population, settings_from
from gramian.deep.training.session import train

pytestmark = pytest.mark.slow


def returns(folder: Path) -> dict[str, list[float]]:
    """Raw returns of each run's games."""
    found = {}
    for path in sorted(folder.glob("*/episodes.csv")):
        with path.open() as file:
            found[path.parent.name] = [float(row["raw_return"]) for row in csv.DictReader(file)]
    return found


def test_dqn_and_gram_solve_cartpole(tmp_path):
    settings = replace(load_preset("cartpole"), frames=40_000)
    runs = population(["cartpole"], [Arm("dqn"), Arm("gram", settings.kappa)], [0])
    found = returns(train(Config("cartpole", settings, runs), tmp_path / "cartpole"))
    assert len(found) == 2
    # A random player keeps the pole up for 22 steps, 500 is the most, and 195 counts as solved.
    best = {run: max(mean(games[i : i + 50]) for i in range(len(games) - 49)) for run, games in found.items()}
    assert min(best.values()) > 195, best


def test_dqn_and_gram_learn_minatar_breakout(tmp_path):
    settings = replace(load_preset("minatar"), frames=100_000, epsilon_decay_agent_steps=50_000)
    runs = population(["minatar/breakout"], [Arm("dqn"), Arm("gram", settings.kappa)], [0])
    found = returns(train(Config("minatar", settings, runs), tmp_path / "breakout"))
    # A random player gets 0.5.
    last = {run: mean(games[-100:]) for run, games in found.items()}
    assert min(last.values()) > 2.5, last


FEW = {"tau_samples": 8, "target_tau_samples": 8, "acting_tau_samples": 8}
AGENTS = {
    "c51": {},
    "qr": {"quantiles": 32, "n_step": 3},
    "iqn": FEW | {"n_step": 3},
    "rainbow": {},
    "full-rainbow": {},
}


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_learns_cartpole(agent, tmp_path):
    settings = settings_from({"agent": agent, **AGENTS[agent]}, "a test", load_preset("cartpole"))
    settings = replace(
        settings,
        frames=12_000,
        prefill_agent_steps=500,
        epsilon_decay_agent_steps=3_000,
        features_dim=64,
        batch_size=32,
        learning_rate=1e-3,
        update_period_agent_steps=4,
        target_period_agent_steps=100,
        representation_period_agent_steps=0,
    )
    runs = population(["cartpole"], [Arm("none")], [0])
    (games,) = returns(train(Config("cartpole", settings, runs), tmp_path / "cartpole")).values()
    assert max(mean(games[i : i + 50]) for i in range(len(games) - 49)) > 80


@pytest.mark.parametrize("agent", ["rainbow", "qr"])
def test_an_agent_of_distributions_learns_minatar_breakout(agent, tmp_path):
    settings = load_preset(f"minatar-{agent}")
    settings = replace(
        settings,
        frames=20_000,
        prefill_agent_steps=1_000,
        epsilon_decay_agent_steps=10_000,
        target_period_agent_steps=500,
        representation_period_agent_steps=0,
        **({"quantiles": 32} if agent == "qr" else {}),
    )
    runs = population(["minatar/breakout"], [Arm("none")], [0])
    (games,) = returns(train(Config("minatar", settings, runs), tmp_path / "breakout")).values()
    # A random player gets 0.5.
    assert mean(games[-100:]) > 1.2, mean(games[-100:])
