"""The games a run can play, and their names."""

import re
from dataclasses import dataclass
from typing import Literal

from gramian.core.errors import unknown

Kind = Literal["atari", "minatar", "cartpole"]


@dataclass(frozen=True)
class Game:
    """One game.

    Attributes
    ----------
    kind
        Which emulator plays it.
    id
        The emulator's own name for it.
    name
        Its name on the command line and in folders.
    title
        Its name in tables and figures: the paper's, where the paper has it.
    """

    kind: Kind
    id: str
    name: str
    title: str


PAPER_TITLES = (
    "Alien", "Amidar", "Assault", "Asterix", "Asteroids", "Atlantis", "BankHeist", "BattleZone", "BeamRider",
    "Bowling", "Boxing", "Breakout", "Centipede", "ChopperCommand", "CrazyClimber", "DemonAttack", "DoubleDunk",
    "Enduro", "FishingDerby", "Freeway", "Frostbite", "Gopher", "Gravitar", "Hero", "IceHockey", "Jamesbond",
    "Kangaroo", "Krull", "KungFuMaster", "MontezumaRevenge", "MsPacman", "NameThisGame", "Pong", "PrivateEye", "Qbert",
    "Riverraid", "RoadRunner", "Robotank", "Seaquest", "SpaceInvaders", "StarGunner", "Tennis", "TimePilot",
    "Tutankham", "UpNDown", "Venture", "VideoPinball", "WizardOfWor", "Zaxxon",
)  # fmt: skip
"""The 49 Atari games of the paper, as its table spells them."""

MINATAR_IDS = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")


def _snake(title: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", title).lower()


def _camel(snake: str) -> str:
    return snake.title().replace("_", "")


GAMES: dict[str, Game] = {
    game.name: game
    for game in (
        *(Game("atari", _snake(title), _snake(title), title) for title in PAPER_TITLES),
        *(Game("minatar", id_, f"minatar/{id_}", f"MinAtar {_camel(id_)}") for id_ in MINATAR_IDS),
        Game("cartpole", "CartPole-v1", "cartpole", "CartPole"),
    )
}
"""Every game by its name."""


def _key(name: str) -> str:
    return re.sub(r"[_\s-]", "", name).lower()


_BY_KEY = {_key(name): game for name, game in GAMES.items()}


def find_game(name: str) -> Game:
    """Find a game by the paper's name, ALE's, ``minatar/<game>`` or ``cartpole``, in any case.

    Raises
    ------
    UserError
        If there is no such game; the message names the nearest one.

    Examples
    --------
    >>> find_game("SpaceInvaders") == find_game("space_invaders")
    True
    >>> find_game("minatar/breakout")
    Game(kind='minatar', id='breakout', name='minatar/breakout', title='MinAtar Breakout')
    """
    try:
        return _BY_KEY[_key(name)]
    except KeyError:
        raise unknown("game", name, GAMES) from None
