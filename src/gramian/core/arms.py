"""Arms by name: the plain agent or penalties with their coefficients κ, and how figures and tables show them.

The text of an arm is ``KIND[:KAPPA][:uncentered]``, or several of them joined by ``+``. An arm has a colour, a line
style, a marker and a hatch, so that no figure needs its colours to be read; it has the same ones in every figure.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from gramian.core.errors import UserError, unknown


class Penalty(NamedTuple):
    """What an arm of a kind penalises."""

    function: str
    """Its name in `gramian.penalties`."""
    look: tuple[str, str, str]
    """Colour, line style and marker of the first arm of the kind."""
    centrable: bool = False
    """Whether it takes ``centered``: it may subtract the mean over the batch first."""
    samples: tuple[int, int] = (1, 1)
    """Fewest samples that it is defined for, uncentred and centred."""
    next_features: bool = False
    """Whether it takes the features of the next states too."""
    noise: tuple[str, str] | None = None
    """Shape of the normal random numbers that it takes too: ``n`` and ``d`` of the features, or a number."""

    @property
    def of_features_alone(self) -> bool:
        """Whether it is a function of the features and of nothing else."""
        return not self.next_features and self.noise is None


PENALTIES = {
    "decor": Penalty("covariance_penalty", ("orange", "dashdot", "square"), centrable=True),
    "gram": Penalty("gram_penalty", ("blue", "solid", "triangle-up"), centrable=True),
    "gram-unbiased": Penalty("unbiased_gram_penalty", ("green", "longdash", "diamond"), centrable=True, samples=(2, 4)),
    "norm": Penalty("norm_penalty", ("purple", "dot", "x"), centrable=True),
    "cross": Penalty("cross_penalty", ("red", "longdashdot", "cross"), centrable=True),
    "l2": Penalty("l2_penalty", ("sky", "dash", "triangle-down")),
    "dr3": Penalty("dr3_penalty", ("green", "dot", "star"), next_features=True),
    "isotropy": Penalty("isotropy_penalty", ("blue", "dash", "diamond"), centrable=True),
    "correlation": Penalty("correlation_penalty", ("red", "solid", "square"), centrable=True),
    "gram-permuted": Penalty("permuted_gram_penalty", ("blue", "dot", "triangle-up"), centrable=True, noise=("n", "d")),
    "vicreg": Penalty("vicreg_penalty", ("orange", "solid", "x"), samples=(2, 2)),
    "sigreg": Penalty("sigreg_penalty", ("purple", "longdash", "circle"), noise=("d", "16")),
}
"""Every penalty by the name of its arm, in the order of the documentation: to add one, add its function and its row."""
PLAIN = "dqn"
"""The plain agent's arm; ``none`` is read as the same."""
KINDS = (PLAIN, *PENALTIES)
CENTRABLE = tuple(kind for kind, penalty in PENALTIES.items() if penalty.centrable)
CONTROL = "norm (matched)"
"""Label of the arm that only shrinks the features, to the norm of the arm that it controls for."""


@dataclass(frozen=True)
class Arm:
    """A penalty with its coefficient, or a combination of several. With κ = 0 it is the plain agent, bit for bit.

    Attributes
    ----------
    kind
        A name of `PENALTIES`, or ``dqn`` or ``none``, the plain agent; of a combination its kinds joined by ``+``.
    kappa
        Coefficient κ of the penalty beside the mean TD loss; always 0 for ``dqn``. Of a combination the sum of its κs.
    centered
        Subtract the mean over the batch first; always False for kinds that are not centred, and of a combination.
    terms
        The arms that a combination is made of; see `combined`.

    Examples
    --------
    >>> print(Arm("gram", 0.1, centered=False))
    gram:0.1:uncentered
    >>> Arm("l2", 0.1).centered
    False
    """

    kind: str
    kappa: float = 0.0
    centered: bool = True
    terms: tuple["Arm", ...] = ()

    def __post_init__(self) -> None:
        if self.terms:
            return
        if self.kind == "none":
            object.__setattr__(self, "kind", PLAIN)
        if self.kind not in KINDS:
            raise unknown("arm", self.kind, KINDS)
        if not (math.isfinite(self.kappa) and self.kappa >= 0):
            raise UserError(f"kappa of arm {self.kind!r} is {self.kappa}; it must be a finite number, 0 or more")
        if self.kind == PLAIN and self.kappa != 0:
            raise UserError(f"arm 'dqn' has no penalty, so its kappa cannot be {self.kappa}; choose 'gram'")
        if self.kind not in CENTRABLE:
            object.__setattr__(self, "centered", False)

    @property
    def active(self) -> tuple["Arm", ...]:
        """Its penalties with κ > 0; none for the plain agent."""
        return tuple(term for term in self.terms or (self,) if term.kappa != 0)

    @property
    def minimum_batch_size(self) -> int:
        """Fewest samples that its penalties are defined for."""
        terms = (term for term in self.terms or (self,) if term.kind != PLAIN)
        return max((PENALTIES[term.kind].samples[term.centered] for term in terms), default=1)

    def __str__(self) -> str:
        if self.terms:
            return "+".join(map(str, self.terms))
        if self.kind == PLAIN:
            return self.kind
        return f"{self.kind}:{self.kappa!r}" + (":uncentered" if self.kind in CENTRABLE and not self.centered else "")


def combined(arms: Iterable[Arm]) -> Arm:
    """One arm with the penalties of all of them, each with its own κ, in the order of `PENALTIES`.

    Examples
    --------
    >>> arm = combined([Arm("norm", 0.25), Arm("gram", 0.5)])
    >>> str(arm), arm.kind, arm.kappa
    ('gram:0.5+norm:0.25', 'gram+norm', 0.75)
    """
    terms = tuple(sorted(arms, key=lambda arm: (KINDS.index(arm.kind), not arm.centered)))
    if len(terms) == 1:
        return terms[0]
    for place, term in enumerate(terms):
        if term.kind == PLAIN:
            raise UserError("'dqn' has no penalty to combine with others; omit it")
        if any((other.kind, other.centered) == (term.kind, term.centered) for other in terms[:place]):
            raise UserError(f"{term.kind!r} stands twice in a combination; keep one")
    return Arm("+".join(term.kind for term in terms), sum(term.kappa for term in terms), False, terms)


def parse_arm(text: str, default_kappa: float) -> Arm:
    """Read an arm as the command line has it: ``KIND[:KAPPA][:centered|:uncentered]``, several joined by ``+``.

    Parameters
    ----------
    text
        For instance ``none``, ``gram``, ``gram:0.1:uncentered``, ``gram:0.08+norm:0.2``. ``str(arm)`` reads back as the
        same arm.
    default_kappa
        κ where the text names none.

    Examples
    --------
    >>> parse_arm("gram:0.1:uncentered", default_kappa=10.24)
    Arm(kind='gram', kappa=0.1, centered=False, terms=())
    >>> print(parse_arm("cross+norm:0.2", default_kappa=10.24))
    norm:0.2+cross:10.24
    """
    return combined(_parse_term(part, default_kappa) for part in _PLUS.split(text))


_PLUS = re.compile(r"\+(?=[A-Za-z])")
"""Between the penalties of a combination; not the plus of 1e+20."""


def _parse_term(text: str, default_kappa: float) -> Arm:
    name, *options = text.split(":")
    kind = next((kind for kind in (*KINDS, "none") if kind == name.lower()), None)
    if kind is None:
        raise unknown("arm", name, KINDS)
    kappa: float | None = None
    centered: bool | None = None
    for option in options:
        if option in ("centered", "uncentered"):
            if centered is not None:
                raise UserError(f"arm {text!r} names its centring twice; keep one")
            if kind not in CENTRABLE:
                raise UserError(f"arm {kind!r} has no centring; omit {option!r} in {text!r}")
            centered = option == "centered"
            continue
        if kappa is not None:
            raise UserError(f"cannot read {option!r} in arm {text!r}; write KIND:KAPPA:uncentered, as in gram:0.1")
        try:
            kappa = float(option)
        except ValueError:
            raise UserError(f"kappa {option!r} in arm {text!r} is not a number; write for instance gram:0.1") from None
    if kappa is None:
        kappa = default_kappa if kind in PENALTIES else 0.0
    return Arm(kind, kappa, centered is not False)


def arm_label(run: Mapping[str, Any]) -> str:
    """The name of a run's arm in tables and legends, from its ``config.toml``.

    The label that a study gave it; else the arm with what it alone sets: learning rate and other settings.

    Examples
    --------
    >>> arm_label({"arm": "gram:10.24"}), arm_label({"arm": "norm:0.3", "label": "norm (matched)"})
    ('gram:10.24', 'norm (matched)')
    >>> arm_label({"arm": "dqn", "learning_rate": 3e-4}), arm_label({"arm": "dqn", "variant": "weight-decay0.01"})
    ('dqn lr 0.0003', 'dqn weight-decay0.01')
    """
    if label := run.get("label"):
        return str(label)
    rate = "" if run.get("learning_rate") is None else f" lr {run['learning_rate']:g}"
    return f"{run['arm']}{rate} {run.get('variant', '')}".strip()


def kind_of(arm: str) -> str:
    """The kind of an arm by name: the part before κ and other options; of a combination all its kinds.

    Examples
    --------
    >>> kind_of("gram:10.24:uncentered"), kind_of("dqn lr 0.0003"), kind_of("gram:0.1+norm:0.2"), kind_of("theirs")
    ('gram', 'dqn', 'gram+norm', 'theirs')
    """
    return "+".join(re.split("[: ]", part, maxsplit=1)[0] for part in _PLUS.split(arm))


def order_arms(arms: Iterable[str], baseline: str = "dqn") -> list[str]:
    """Each arm once: the baseline, then the kinds in the order of `KINDS`, by rising κ, then others.

    Examples
    --------
    >>> order_arms(["l2:1.0", "gram:10.24", "gram:2.0", "mine", "dqn", "dqn"])
    ['dqn', 'gram:2.0', 'gram:10.24', 'l2:1.0', 'mine']
    """

    def rank(arm: str) -> tuple[object, ...]:
        kind = kind_of(arm)
        natural = [
            (0, float(part), "") if re.fullmatch(r"\d+(\.\d+)?", part) else (1, 0.0, part)
            for part in re.split(r"(\d+(?:\.\d+)?)", arm)
        ]
        return (arm != baseline, KINDS.index(kind) if kind in KINDS else len(KINDS), natural)

    return sorted(dict.fromkeys(arms), key=rank)


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


# Okabe & Ito's palette, distinguished by colour-blind readers, without its yellow, which white swallows.
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

_LOOKS = {PLAIN: ("grey", "dash", "circle")} | {kind: penalty.look for kind, penalty in PENALTIES.items()}
_LABELS = {CONTROL: ("purple", "solid", "star")}
"""Looks of labelled arms: the colour of their kind, with a line of their own."""


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
        own = _LABELS.get(arm, _LOOKS.get(kind_of(arm)))
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
