"""The games a run can play, and their names."""

import re
from dataclasses import dataclass
from typing import Literal

from gramian.core.errors import UserError, unknown

Kind = Literal["atari", "minatar", "cartpole", "gym"]


@dataclass(frozen=True)
class Game:
    """One game: its emulator and ``id`` there, its ``name`` in commands, its ``title`` in tables."""

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

_VERSION = re.compile(r"(-ram)?(NoFrameskip|Deterministic)?-v\d+$")
_ATARI_ID = re.compile(r"^ALE/|(NoFrameskip|Deterministic)-v\d+$")


def key(name: str) -> str:
    """What all spellings of a game's name have in common: the paper's, ALE's and Gymnasium's ids."""
    return re.sub(r"[_\s/-]", "", _VERSION.sub("", name.removeprefix("ALE/"))).lower()


_GYM = "gym:"
_GYM_ID = re.compile(r"\w[\w.:-]*(/\w[\w.-]*)?")
"""Of Gymnasium's environments: ``[module:][namespace/]name-v0``."""
_BY_KEY = {key(name): game for name, game in GAMES.items()}


def _known(name: str) -> Game | None:
    if name.startswith(_GYM):
        own = name.removeprefix(_GYM)
        return Game("gym", own, name, own) if _GYM_ID.fullmatch(own) else None
    return None if name == "CartPole-v0" else _BY_KEY.get(key(name))  # CartPole-v0 is another task


def find_game(name: str) -> Game:
    """Find a game by the paper's name, ALE's, Gymnasium's id, ``minatar/<game>`` or ``cartpole``, in any case.

    Every other environment of Gymnasium is ``gym:<id>``; whether it can be played is seen when it is made.

    Examples
    --------
    >>> find_game("SpaceInvaders") == find_game("space_invaders")
    True
    >>> find_game("minatar/breakout")
    Game(kind='minatar', id='breakout', name='minatar/breakout', title='MinAtar Breakout')
    >>> find_game("gym:LunarLander-v3")
    Game(kind='gym', id='LunarLander-v3', name='gym:LunarLander-v3', title='LunarLander-v3')
    """
    if (game := _known(name)) is None:
        if name.startswith(_GYM):
            raise UserError(f"unknown game {name!r}; write gym: and an environment's id, as gym:LunarLander-v3")
        raise unknown("game", name, GAMES)
    return game


def game_name(name: str) -> str:
    """The package's name of a game. An unknown one keeps its name; Atari's without prefix and version.

    The version of an Atari game (sticky actions, frame skip) is a setting of its runs, not part of the name.

    Examples
    --------
    >>> game_name("MinAtar/Breakout-v1"), game_name("CartPole-v1"), game_name("ALE/Skiing-v5"), game_name("their game")
    ('minatar/breakout', 'cartpole', 'Skiing', 'their game')
    """
    if (game := _known(name)) is not None:
        return game.name
    return _VERSION.sub("", name.removeprefix("ALE/")) if _ATARI_ID.search(name) else name


def title(name: str) -> str:
    """A game's name in tables and figures; an unknown one as it is."""
    game = _known(name)
    return name if game is None else game.title
