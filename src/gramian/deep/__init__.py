"""DQN with a penalty on its features, a population of runs at a time.

Examples
--------
Train two runs, then let one of them act:

>>> import tempfile
>>> from dataclasses import replace
>>> from gramian import deep
>>> settings = replace(deep.load_preset("cartpole"), frames=300, prefill_agent_steps=100)
>>> runs = deep.population(["cartpole"], [deep.Arm("dqn"), deep.Arm("gram", 0.01)], seeds=[0])
>>> out = deep.train(deep.Config("cartpole", settings, runs), tempfile.mkdtemp())
>>> run = deep.load_run(out / "cartpole-gram-k0.01-s0")
>>> run.agent_steps
300
>>> run.act([0.0, 0.0, 0.05, 0.0]) in (0, 1)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gramian.core.games import find_game
    from gramian.deep.agent.arms import Arm, parse_arm
    from gramian.deep.runs.evaluation import PlayedGame, evaluate
    from gramian.deep.runs.listing import RunSummary, list_runs
    from gramian.deep.runs.load import Run, load_run
    from gramian.deep.training.config import (
        Config,
        RunSpec,
        Settings,
        load_preset,
        population,
        preset_names,
        settings_from,
    )
    from gramian.deep.training.session import resume, train

__all__ = [
    "Arm",
    "Config",
    "PlayedGame",
    "Run",
    "RunSpec",
    "RunSummary",
    "Settings",
    "evaluate",
    "find_game",
    "list_runs",
    "load_preset",
    "load_run",
    "parse_arm",
    "population",
    "preset_names",
    "resume",
    "settings_from",
    "train",
]

_HOME = {
    "deep.agent.arms": ("Arm", "parse_arm"),
    "deep.training.config": (
        "Config",
        "RunSpec",
        "Settings",
        "load_preset",
        "population",
        "preset_names",
        "settings_from",
    ),
    "deep.runs.evaluation": ("PlayedGame", "evaluate"),
    "core.games": ("find_game",),
    "deep.runs.listing": ("RunSummary", "list_runs"),
    "deep.runs.load": ("Run", "load_run"),
    "deep.training.session": ("resume", "train"),
}
_MODULES = {name: f"gramian.{module}" for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'gramian.deep' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
