"""How an arm is drawn, the same in every figure: a colour, a line style and a marker, so that none needs colour."""

from collections import Counter
from collections.abc import Sequence
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
        Line style by plotly's name; `MATPLOTLIB_DASHES` has matplotlib's.
    marker
        Marker by plotly's name; `MATPLOTLIB_MARKERS` has matplotlib's.
    """

    color: str
    dark_color: str
    dash: str
    marker: str


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

MATPLOTLIB_DASHES: dict[str, tuple[float, tuple[float, ...]]] = {
    "solid": (0, ()),
    "dash": (0, (4, 2)),
    "dot": (0, (1, 2)),
    "dashdot": (0, (5, 2, 1, 2)),
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 3, 1, 3)),
}
"""Offset and lengths of dashes and gaps, in units of the line's width."""
MATPLOTLIB_MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "x": "x", "cross": "+", "triangle-down": "v",
    "star": "*",
}  # fmt: skip

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
"""The first arm of a kind looks the same in every report."""


def arm_styles(arms: Sequence[str]) -> dict[str, Style]:
    """A style for each arm, no two alike (up to 336 arms).

    Parameters
    ----------
    arms
        In order; the first arm of a known kind takes that kind's own style.

    Examples
    --------
    >>> styles = arm_styles(["dqn", "gram:10.24", "gram:1.0"])
    >>> styles["gram:10.24"] == arm_styles(["gram:10.24"])["gram:10.24"], styles["gram:10.24"] == styles["gram:1.0"]
    (True, False)
    """
    looks: dict[str, tuple[str, str, str]] = {}
    for arm in arms:
        own = _KINDS.get(arm.partition(":")[0])
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
