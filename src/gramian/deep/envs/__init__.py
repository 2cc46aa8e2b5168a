"""The games: P×E environments behind one interface, stepped in lockstep, restorable from seeds and actions."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gramian.deep.envs.games import Games, find_flavours, make_games
    from gramian.deep.envs.options import (
        AtariOptions,
        CartPoleOptions,
        EnvironmentOptions,
        Flavour,
        GymOptions,
        MinAtarOptions,
    )
    from gramian.deep.envs.playing import Players
    from gramian.deep.envs.population import Environments, State, Step

__all__ = [
    "AtariOptions",
    "CartPoleOptions",
    "EnvironmentOptions",
    "Environments",
    "Flavour",
    "Games",
    "GymOptions",
    "MinAtarOptions",
    "Players",
    "State",
    "Step",
    "find_flavours",
    "make_games",
]

_HOME = {
    "AtariOptions": "options",
    "CartPoleOptions": "options",
    "EnvironmentOptions": "options",
    "Environments": "population",
    "Flavour": "options",
    "Games": "games",
    "GymOptions": "options",
    "MinAtarOptions": "options",
    "Players": "playing",
    "State": "population",
    "Step": "population",
    "find_flavours": "games",
    "make_games": "games",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gramian.deep.envs' has no attribute {name!r}")
    value = getattr(import_module(f"gramian.deep.envs.{_HOME[name]}"), name)
    globals()[name] = value
    return value
