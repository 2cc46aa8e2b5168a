"""What games are called in tables and figures, whichever way their names were spelled."""

import csv
import re
from functools import cache
from importlib.resources import files


def key(game: str) -> str:
    """What is left of a game's name for looking it up: ALE's and Gymnasium's ids and the paper's spelling agree.

    Examples
    --------
    >>> {key(game) for game in ("UpNDown", "up_n_down", "ALE/UpNDown-v5", "UpNDownNoFrameskip-v4")}
    {'upndown'}
    """
    bare = re.sub(r"(NoFrameskip|Deterministic)?-v\d+$", "", game.removeprefix("ALE/"))
    return re.sub(r"[_\s-]", "", bare).lower()


def title(game: str) -> str:
    """A game's name in tables and figures: the paper's, where the paper has it.

    Examples
    --------
    >>> title("space_invaders"), title("minatar/space_invaders"), title("cartpole"), title("their game")
    ('SpaceInvaders', 'MinAtar SpaceInvaders', 'CartPole', 'their game')
    """
    if game.startswith("minatar/"):
        return "MinAtar " + game.removeprefix("minatar/").title().replace("_", "")
    return _papers().get(key(game), "CartPole" if game == "cartpole" else game)


@cache
def _papers() -> dict[str, str]:
    """The paper's 49 names by their keys."""
    text = (files("gramian") / "data" / "atari49.csv").read_text(encoding="utf-8")
    return {key(row["game"]): row["game"] for row in csv.DictReader(text.splitlines())}
