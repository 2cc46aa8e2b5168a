"""Runs that must learn: small, seeded, and far from what chance gives."""

import csv
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from gramian.deep.arms import Arm
from gramian.deep.config import Config, load_preset, population
from gramian.deep.session import train


def last_returns(folder: Path, count: int = 100) -> dict[str, float]:
    """Mean raw return of each run's last games."""
    found = {}
    for path in sorted(folder.glob("*/episodes.csv")):
        with path.open() as file:
            found[path.parent.name] = mean(float(row["raw_return"]) for row in list(csv.DictReader(file))[-count:])
    return found


def test_dqn_and_gram_solve_cartpole(tmp_path):
    settings = replace(load_preset("cartpole"), frames=30_000)
    runs = population(["cartpole"], [Arm("dqn"), Arm("gram", settings.kappa)], [0, 1])
    returns = last_returns(train(Config("cartpole", settings, runs), tmp_path / "cartpole"), count=20)
    assert len(returns) == 4
    # A random player keeps the pole up for 22 steps; 500 is the most.
    assert min(returns.values()) > 150, returns


@pytest.mark.slow
def test_dqn_and_gram_learn_minatar_breakout(tmp_path):
    settings = replace(load_preset("minatar"), frames=100_000, epsilon_decay_agent_steps=50_000)
    runs = population(["minatar/breakout"], [Arm("dqn"), Arm("gram", settings.kappa)], [0, 1])
    returns = last_returns(train(Config("minatar", settings, runs), tmp_path / "breakout"))
    # A random player gets 0.5.
    assert min(returns.values()) > 2.5, returns
