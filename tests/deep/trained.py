"""Small trained runs for the tests of what is done with a run afterwards."""

from gramian.deep.agent.arms import Arm
from gramian.deep.training.config import Config, population, settings_from
from gramian.deep.training.session import train
from tests.deep.sessions import small

PLAIN = (Arm("dqn"),)


def small_config(games, arms=PLAIN, frames=400, **environment):
    """A population of one seed that trains in a second; ``environment`` overrides the emulators' settings."""
    settings = small(frames=frames, prefill_agent_steps=50).settings
    settings = settings_from({"environment": environment}, "a test", settings)
    return Config("smoke", settings, population(games, arms, [0]))


def train_small(folder, games, arms=PLAIN, frames=400, **environment):
    """Train it in ``folder``; give the folders of its runs."""
    config = small_config(games, arms, frames, **environment)
    out = train(config, folder, device="cpu")
    return [out / run.name for run in config.runs]
