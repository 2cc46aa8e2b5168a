"""The games: P×E environments behind one interface, stepped in lockstep, restorable from seeds and actions."""

from gramian.deep.envs.options import (
    AtariOptions,
    CartPoleOptions,
    EnvironmentOptions,
    Flavour,
    MinAtarOptions,
)
from gramian.deep.envs.population import (
    Environments,
    State,
    Step,
    find_flavours,
    make_engine,
    make_flavour_engine,
)

__all__ = [
    "AtariOptions",
    "CartPoleOptions",
    "EnvironmentOptions",
    "Environments",
    "Flavour",
    "MinAtarOptions",
    "State",
    "Step",
    "find_flavours",
    "make_engine",
    "make_flavour_engine",
]
