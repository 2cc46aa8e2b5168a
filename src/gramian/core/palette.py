"""How an arm is drawn and where it stands, the same in every figure and table.

An arm has a colour, a line style, a marker and a hatch of its own, so that no figure needs its colours to be read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class Style:
    """One arm's look.

    Attributes
    ----------
    color, dark_color
        The same hue for a light and for a dark ground.
    dash
        Line style by plotly's name; `linestyle` is matplotlib's.
    marker
        Marker by plotly's name; `symbol` is matplotlib's.
    """

    color: str
    dark_color: str
    dash: str
    marker: str

    @property
    def linestyle(self) -> tuple[float, tuple[float, ...]]:
        """Offset and lengths of dashes and gaps, in units of the line's width."""
        return _LINESTYLES[self.dash]

    @property
    def symbol(self) -> str:
        """Marker by matplotlib's name."""
        return _SYMBOLS[self.marker][0]

    @property
    def hatch(self) -> str:
        """Pattern of a bar by matplotlib's name, one for each marker."""
        return _SYMBOLS[self.marker][1]

    @property
    def pattern(self) -> str:
        """The same by plotly's name."""
        return _SYMBOLS[self.marker][2]


# Okabe & Ito's palette, told apart by colour-blind readers, without its yellow, which white swallows.
_COLORS = {
    "grey": ("#5f6670", "#a8b0bb"),
    "orange": ("#b36b00", "#f0b040"),
    "blue": ("#0072b2", "#56a8e8"),
    "green": ("#007d5b", "#2fc79a"),
    "purple": ("#a34f7f", "#e79bc4"),
    "red": ("#c44500", "#ff8a4c"),
    "sky": ("#2a8fc4", "#8fd0f5"),
}
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_MARKERS = ("circle", "square", "triangle-up", "diamond", "x", "cross", "triangle-down", "star")

_LINESTYLES: dict[str, tuple[float, tuple[float, ...]]] = {
    "solid": (0, ()),
    "dash": (0, (4, 2)),
    "dot": (0, (1, 2)),
    "dashdot": (0, (5, 2, 1, 2)),
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 3, 1, 3)),
}
_SYMBOLS = {
    "circle": ("o", "", ""), "square": ("s", "//", "/"), "triangle-up": ("^", "..", "."), "diamond": ("D", "xx", "x"),
    "x": ("x", "--", "-"), "cross": ("+", "||", "|"), "triangle-down": ("v", "\\\\", "\\"), "star": ("*", "++", "+"),
}  # fmt: skip
"""Marker and hatch by matplotlib's names, and the hatch by plotly's."""

_KINDS = {
    "dqn": ("grey", "dash", "circle"),
    "decor": ("orange", "dashdot", "square"),
    "gram": ("blue", "solid", "triangle-up"),
    "gram-unbiased": ("green", "longdash", "diamond"),
    "norm": ("purple", "dot", "x"),
    "cross": ("red", "longdashdot", "cross"),
    "l2": ("sky", "dash", "triangle-down"),
    "dr3": ("green", "dot", "star"),
}
"""The first arm of a kind looks the same everywhere; the kinds stand in the order of the documentation."""
CONTROL = "norm (matched)"
"""Label of the arm that only shrinks the features, to the norm that the arm it is the control of leaves them."""
_LABELS = {CONTROL: ("purple", "solid", "star")}
"""Looks of arms that `gramian study choose` gives a label: in the colour of their kind, with a line of their own."""


def arm_label(arm: str, learning_rate: float | None, label: str = "") -> str:
    """An arm as tables and legends name it: its label, where a study gave it one; else a learning rate is part of it.

    Examples
    --------
    >>> arm_label("gram:10.24", None), arm_label("dqn", 3e-4), arm_label("norm:0.3", None, "norm (matched)")
    ('gram:10.24', 'dqn lr 0.0003', 'norm (matched)')
    """
    if label:
        return label
    return arm if learning_rate is None else f"{arm} lr {learning_rate:g}"


def kind_of(arm: str) -> str:
    """The penalty of an arm, without κ and whatever else is written behind it.

    Examples
    --------
    >>> kind_of("gram:10.24:uncentered"), kind_of("dqn lr 0.0003"), kind_of("theirs")
    ('gram', 'dqn', 'theirs')
    """
    return re.split("[: ]", arm, maxsplit=1)[0]


def order_arms(arms: Iterable[str], baseline: str = "dqn") -> list[str]:
    """Each arm once: the baseline first, then the kinds as the documentation lists them, by rising κ; others last.

    Examples
    --------
    >>> order_arms(["l2:1.0", "gram:10.24", "gram:2.0", "mine", "dqn", "dqn"])
    ['dqn', 'gram:2.0', 'gram:10.24', 'l2:1.0', 'mine']
    """
    kinds = list(_KINDS)

    def rank(arm: str) -> tuple[object, ...]:
        kind = kind_of(arm)
        natural = [
            (0, float(part), "") if re.fullmatch(r"\d+(\.\d+)?", part) else (1, 0.0, part)
            for part in re.split(r"(\d+(?:\.\d+)?)", arm)
        ]
        return (arm != baseline, kinds.index(kind) if kind in kinds else len(kinds), natural)

    return sorted(dict.fromkeys(arms), key=rank)


def arm_styles(arms: Sequence[str]) -> dict[str, Style]:
    """A style for each arm, no two alike (up to 336 arms).

    Parameters
    ----------
    arms
        In order; the first arm of a known kind takes that kind's own style, as does one of a known label.

    Examples
    --------
    >>> styles = arm_styles(["dqn", "gram:10.24", "gram:1.0"])
    >>> styles["gram:10.24"] == arm_styles(["gram:10.24"])["gram:10.24"], styles["gram:10.24"] == styles["gram:1.0"]
    (True, False)
    """
    looks: dict[str, tuple[str, str, str]] = {}
    for arm in arms:
        own = _LABELS.get(arm, _KINDS.get(kind_of(arm)))
        if own is not None and own not in looks.values():
            looks[arm] = own
    for arm in arms:
        if arm not in looks:
            looks[arm] = _least_used(list(looks.values()))
    return {arm: Style(*_COLORS[looks[arm][0]], *looks[arm][1:]) for arm in arms}


def _least_used(taken: list[tuple[str, str, str]]) -> tuple[str, str, str]:
    """The look whose parts have been used least, colour before line style before marker."""
    used = [Counter(part) for part in zip(*taken, strict=True)] or [Counter[str]()] * 3
    looks = [look for look in product(_COLORS, _DASHES, _MARKERS) if look not in taken] or [taken[0]]
    return min(looks, key=lambda look: [used[part][value] for part, value in enumerate(look)])
