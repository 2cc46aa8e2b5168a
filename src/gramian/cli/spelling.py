"""Old and short spellings of options, brought to the one that tyro reads."""

import math
from collections.abc import Sequence
from typing import get_origin, get_type_hints

LISTS = ("--games", "--arms")
"""Options that take several words; each may be given several times, and by its singular."""


def spelled(options: type, arguments: Sequence[str]) -> list[str]:
    """The arguments of a command whose options are the dataclass ``options``, in one spelling.

    ``--game A --game B``, and bare games where a command has no positional argument, become ``--games A B``; arms
    likewise. ``--flag True`` becomes ``--flag``, ``--flag False`` ``--no-flag``, and ``--flag None`` is dropped.

    Examples
    --------
    >>> from gramian.cli.options import BenchOptions
    >>> spelled(BenchOptions, ["pong", "--arm", "gram", "--arm=dqn", "--tf32", "False", "--runs", "2"])
    ['--no-tf32', '--runs', '2', '--games', 'pong', '--arms', 'gram', 'dqn']
    """
    kinds = {f"--{name.replace('_', '-')}": kind for name, kind in get_type_hints(options).items()}
    hints = get_type_hints(options, include_extras=True).values()
    bare = "--games" in kinds and not any("Positional" in str(hint) for hint in hints)
    lists: dict[str, list[str]] = {}
    rest: list[str] = []
    option, room = "", 0.0  # the last option, and how many words it still takes
    for word in arguments:
        if word.startswith("-") and not word[1:2].isdigit():
            name, equals, value = word.partition("=")
            option = f"{name}s" if f"{name}s" in LISTS and f"{name}s" in kinds else name
            room = (
                0 if equals or kinds.get(option) is bool else math.inf if get_origin(kinds.get(option)) is tuple else 1
            )
            if option in LISTS and option in kinds:
                lists.setdefault(option, []).extend([value] if equals else [])
                room = 0 if equals else math.inf
            else:
                rest.append(word)
        elif option in lists and room:
            lists[option].append(word)
        elif room:
            rest.append(word)
            room -= 1
        elif kinds.get(option) is bool and rest[-1:] == [option] and word in ("True", "False", "None"):
            rest[-1:] = {"True": [option], "False": [f"--no-{option[2:]}"], "None": []}[word]
        elif bare:
            lists.setdefault("--games", []).append(word)
        else:
            rest.append(word)
    return rest + [word for name, words in lists.items() for word in (name, *words)]
