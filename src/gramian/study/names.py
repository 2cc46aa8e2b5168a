"""One name for a game, however somebody else spells it. Knows no learner."""

import csv
import re
from functools import cache
from importlib.resources import files

MINATAR = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
_VERSION = re.compile(r"(-ram)?(NoFrameskip|Deterministic)?-v\d+$")
_ATARI = re.compile(r"^ALE/|(NoFrameskip|Deterministic)-v\d+$")


def game_name(game: str) -> str:
    """The package's name of a game that it knows; that of any other as it is, of Atari without prefix and version.

    The paper's spelling, ALE's and the ids of Gymnasium are one game; the version of an Atari game (sticky actions,
    frame skip) is a setting of its runs, which the name does not carry. ``CartPole-v0`` is another task.

    Examples
    --------
    >>> {game_name(game) for game in ("UpNDown", "up_n_down", "ALE/UpNDown-v5", "UpNDownNoFrameskip-v4")}
    {'up_n_down'}
    >>> game_name("MinAtar/Breakout-v1"), game_name("CartPole-v1"), game_name("ALE/Skiing-v5"), game_name("their game")
    ('minatar/breakout', 'cartpole', 'Skiing', 'their game')
    """
    if game == "CartPole-v0":
        return game
    bare = _VERSION.sub("", game.removeprefix("ALE/"))
    return _known().get(_key(bare), bare if _ATARI.search(game) else game)


def _key(name: str) -> str:
    return re.sub(r"[_\s/-]", "", name).lower()


@cache
def _known() -> dict[str, str]:
    table = (files("gramian") / "data" / "atari49.csv").read_text(encoding="utf-8")
    atari = [re.sub(r"(?<!^)(?=[A-Z])", "_", row["game"]).lower() for row in csv.DictReader(table.splitlines())]
    return {_key(name): name for name in (*atari, *(f"minatar/{game}" for game in MINATAR), "cartpole")}
