"""Small populations, and what makes two of them the same."""

import hashlib
from dataclasses import replace

from benchmarks.kills import reproducible
from gramian.deep.agent.arms import Arm
from gramian.deep.training.config import Config, load_preset, population

PAIR = (Arm("dqn"), Arm("gram", 0.1))


def small(game="cartpole", arms=PAIR, seeds=(0, 1), **changes):
    """A population that trains in about a second."""
    defaults = {
        "frames": 1_200,
        "prefill_agent_steps": 100,
        "replay_capacity": 300,
        "metrics_period_agent_steps": 100,
        "representation_period_agent_steps": 150,
        "representation_states": 64,
        "checkpoint_period_agent_steps": 250,
        "epsilon_decay_agent_steps": 500,
        "update_period_agent_steps": 8,
        "max_grad_norm": 10.0,
    }
    settings = replace(load_preset("smoke"), **(defaults | changes))
    return Config("smoke", settings, population([game], list(arms), list(seeds)))


def fingerprint(folder):
    """Hashes of everything that must be the same bytes: logs, configuration, final weights and moments."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in reproducible(folder).items()}
