"""Small trained runs for the tests of what is done with a run afterwards."""

from dataclasses import replace

from gramian.deep.arms import Arm
from gramian.deep.config import Config, load_preset, population, settings_from
from gramian.deep.session import train

PLAIN = (Arm("dqn"),)


def small_config(games, arms=PLAIN, seeds=(0,), frames=400, **environment):
    """A population that trains in a second; ``environment`` overrides the emulators' settings."""
    settings = replace(
        load_preset("smoke"),
        frames=frames,
        prefill_agent_steps=50,
        replay_capacity=200,
        metrics_period_agent_steps=50,
        checkpoint_period_agent_steps=50,
    )
    settings = settings_from({"environment": environment}, "a test", settings)
    return Config("smoke", settings, population(games, arms, seeds))


def train_small(folder, games, arms=PLAIN, seeds=(0,), frames=400, **environment):
    """Train it in ``folder``; give the folders of its runs."""
    config = small_config(games, arms, seeds, frames, **environment)
    out = train(config, folder, device="cpu")
    return [out / run.name for run in config.runs]
