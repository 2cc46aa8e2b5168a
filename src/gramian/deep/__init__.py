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
    from gramian.deep.arms import Arm, parse_arm
    from gramian.deep.config import Config, RunSpec, Settings, load_preset, population, preset_names, settings_from
    from gramian.deep.evaluation import PlayedGame, evaluate
    from gramian.deep.games import find_game
    from gramian.deep.listing import RunSummary, list_runs
    from gramian.deep.runs import Run, load_run
    from gramian.deep.session import resume, train

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
    "arms": ("Arm", "parse_arm"),
    "config": ("Config", "RunSpec", "Settings", "load_preset", "population", "preset_names", "settings_from"),
    "evaluation": ("PlayedGame", "evaluate"),
    "games": ("find_game",),
    "listing": ("RunSummary", "list_runs"),
    "runs": ("Run", "load_run"),
    "session": ("resume", "train"),
}
_MODULES = {name: f"gramian.deep.{module}" for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'gramian.deep' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
