"""The games: P×E environments behind one interface, stepped in lockstep, restorable from seeds and actions."""

from gramian.deep.environments.options import AtariOptions, CartPoleOptions, EnvironmentOptions, MinAtarOptions
from gramian.deep.environments.population import Environments, State, Step, cores, make_engine

__all__ = [
    "AtariOptions",
    "CartPoleOptions",
    "EnvironmentOptions",
    "Environments",
    "MinAtarOptions",
    "State",
    "Step",
    "cores",
    "make_engine",
]
