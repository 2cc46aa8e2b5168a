"""The one kind of error that a person caused and can mend."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Bad input: one line that names the thing, its value and what would be right; exit code 2, without a traceback."""


class WorkFailed(Exception):  # noqa: N818 - it names what happened
    """Work that was not done to its end: one line that says why and what is left; exit code 1, without a traceback."""


def require(holds: bool, name: str, value: object, right: str) -> None:
    """Refuse a value, unless it ``holds``, with what would be right."""
    if not holds:
        shown = f"{value:g}" if isinstance(value, float) else value
        raise UserError(f"{name} is {shown}; it must be {right}")


def require_least(options: object, least: float, *names: str) -> None:
    """Refuse options that are less than ``least``."""
    for name in names:
        value = getattr(options, name)
        require(value >= least, name, value, f"at least {least:g}")


def unknown(what: str, value: str, choices: Iterable[str], near: str = "") -> UserError:
    """Error for a name that is not among ``choices``, with the nearest right one: ``near``, or else by its spelling.

    Examples
    --------
    >>> print(unknown("game", "seaqest", ["asterix", "seaquest"]))
    unknown game 'seaqest'; did you mean 'seaquest'?
    >>> print(unknown("arm", "xyz", ["dqn", "gram"]))
    unknown arm 'xyz'; choose from dqn, gram
    >>> print(unknown("arm", "gram:0.2", ["gram:0.1", "gram:10.24"], near="gram:0.1"))
    unknown arm 'gram:0.2'; did you mean 'gram:0.1'?
    """
    names = sorted(choices)
    lowered = {name.lower(): name for name in names}
    spelled = [lowered[name] for name in get_close_matches(value.lower(), lowered, n=1)]
    nearest = [near] if near else spelled
    advice = f"did you mean {nearest[0]!r}?" if nearest else "choose from " + ", ".join(names)
    return UserError(f"unknown {what} {value!r}; {advice}")
