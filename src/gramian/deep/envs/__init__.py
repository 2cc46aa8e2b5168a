"""The games: P×E environments behind one interface, stepped in lockstep, restorable from seeds and actions."""

from gramian.deep.envs.games import Games, find_flavours, make_games
from gramian.deep.envs.options import AtariOptions, CartPoleOptions, EnvironmentOptions, Flavour, MinAtarOptions
from gramian.deep.envs.playing import Players
from gramian.deep.envs.population import Environments, State, Step

__all__ = [
    "AtariOptions",
    "CartPoleOptions",
    "EnvironmentOptions",
    "Environments",
    "Flavour",
    "Games",
    "MinAtarOptions",
    "Players",
    "State",
    "Step",
    "find_flavours",
    "make_games",
]
