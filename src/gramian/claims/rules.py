"""From numbers to a verdict. Each rule is a frozen dataclass whose fields are its keys in ``ledger.toml``.

What the rules have in common: an effect counts where its 95 % interval lies wholly on one side, and an interval that
reaches to what the claim says and to its contrary decides nothing. An effect is put down to decorrelation only where
the arm also differs, with an interval of its own, from a control that has everything but the decorrelation. Where it
does not, the two are not told apart by the number that was taken. That they are equal would take more, a narrow
interval (`Equivalent`), and another number may tell them apart.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gramian.claims.number import Number, count, shown
from gramian.claims.quantities import Quantity
from gramian.claims.tables import MissingNumberError, MissingRowsError, Tables
from gramian.core.csv_tables import Row
from gramian.core.errors import UserError

Verdict = Literal[
    "reproduced", "confounded", "undecided", "not reproduced", "false as stated", "not run in full", "not yet run",
]  # fmt: skip
VERDICTS: dict[Verdict, str] = {
    "reproduced": "we see what the paper says, and more of it than in the control where it is judged against one",
    "confounded": (
        "the effect is there, but the number that compares it with the control's shows none beyond it; that is no "
        "proof that there is none"
    ),
    "undecided": (
        "our interval reaches to what the claim says and to its contrary (of a level, such as 40 of 49 games: to no "
        "effect at all): these runs cannot say"
    ),
    "not reproduced": "our interval does not reach to what the claim says",
    "false as stated": "a statement that the claim consists of fails",
    "not run in full": (
        "less was run than a verdict takes: too few runs, games, frames or cases, no runs of an arm or of the control, "
        "or smaller settings alone"
    ),
    "not yet run": "there is no table of its runs, in any setting",
}
"""Every verdict and what it means: what was found, the milder ones first, then what was not run."""
HARDEST_FIRST: tuple[Verdict, ...] = (
    "false as stated", "not reproduced", "not run in full", "not yet run", "undecided", "confounded", "reproduced",
)  # fmt: skip
"""A claim of several parts has the first of these that one of its parts has."""
AWAITING_RUNS: tuple[Verdict, ...] = ("not run in full", "not yet run")
"""What stands for a verdict until there are runs enough for one."""


HOLDS = {"holds": True, "does not hold": False}
"""What a table says of a statement."""


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason and the numbers that it was made from."""

    verdict: Verdict
    reason: str
    numbers: list[tuple[str, str]]
    """What it is, and the number as it is shown; the first one is the claim's."""


class Rule(Protocol):
    """Anything that makes a verdict from tables."""

    def judge(self, tables: Tables) -> Judgement:
        """The verdict."""

    def quantities(self) -> list[Quantity]:
        """What it looks at."""

    def preliminary(self, tables: Tables) -> list[tuple[str, str]]:
        """Its numbers where there are too few runs for a verdict."""


@dataclass(frozen=True)
class Statements:
    """Computed statements of a table, all of which must hold on every random process; otherwise *false as stated*.

    ``claimed`` is what the paper says, ``beside`` what shows its limits; each is a statement of the table, where
    … stands for any words.
    """

    table: str
    claimed: Sequence[str]
    beside: Sequence[str] = ()
    wording: Mapping[str, str] = field(default_factory=dict)
    """How the page puts a statement whose text leans on its neighbours in the table."""

    def judge(self, tables: Tables) -> Judgement:
        """Reproduced where all that is claimed holds."""
        failed, numbers = [], []
        for statement in (*self.claimed, *self.beside):
            rows = self._rows(tables, statement)
            held = sum(self._holds(tables, row) for row in rows)
            computed = tables.text(self.table, rows[0], "computed")
            text = self.wording.get(statement, rows[0]["statement"])
            numbers.append((text, f"holds on {held} of {count(len(rows), 'processes')}; on the first: {computed}"))
            if statement in self.claimed and held < len(rows):
                failed.append(text)
        if failed:
            return Judgement("false as stated", "this fails: " + "; ".join(f"“{text}”" for text in failed), numbers)
        return Judgement("reproduced", "every statement of the claim holds on every process", numbers)

    def quantities(self) -> list[Quantity]:
        """None: statements are no numbers."""
        return []

    def preliminary(self, tables: Tables) -> list[tuple[str, str]]:
        """What the statements computed."""
        return self.judge(tables).numbers

    def _holds(self, tables: Tables, row: Row) -> bool:
        verdict = tables.text(self.table, row, "verdict")
        if verdict not in HOLDS:
            known = " or ".join(f"'{known}'" for known in HOLDS)
            raise MissingNumberError(
                f"the table '{tables.folder / self.table}' has '{verdict}' in column verdict; it must be {known}"
            )
        return HOLDS[verdict]

    def _rows(self, tables: Tables, statement: str) -> list[Row]:
        """The rows of one statement, one for each process."""
        pattern = re.compile(".*".join(map(re.escape, statement.split("…"))))
        rows = [row for row in tables.rows(self.table) if pattern.fullmatch(tables.text(self.table, row, "statement"))]
        found = {row["statement"] for row in rows}
        if not rows:
            raise MissingRowsError(f"the table '{tables.folder / self.table}' has no statement '{statement}'")
        if len(found) > 1:
            raise UserError(f"'{statement}' fits {len(found)} statements of the table '{tables.folder / self.table}'")
        return rows


@dataclass(frozen=True)
class Effect:
    """A number that must lie on the paper's side of ``null``, and beyond the control.

    ``beyond`` is the arm less the control; it must lie on that side of ``beyond_null``. The verdict is *reproduced*
    where both do, and *confounded* where the effect does and ``beyond`` does not. Of an effect that does not it is
    *undecided* where its interval reaches to that side, else *not reproduced*. Where there is nothing to confound the
    effect with, there is no control, and it alone decides.

    Examples
    --------
    A quantity is anything that has a number; the paper claims a gain, and the control has it too:

    >>> from dataclasses import make_dataclass
    >>> from pathlib import Path
    >>> Known = make_dataclass("Known", ["known"], namespace={"number": lambda self, tables: self.known})
    >>> gain, beyond = Known(Number(-314.0, -344.0, -287.0)), Known(Number(1.0, -13.0, 15.0))
    >>> rule = Effect("steps less plain", gain, "falls", beyond_label="steps less the control", beyond=beyond)
    >>> tables = Tables(Path("results"))
    >>> rule.judge(tables).verdict, len(rule.quantities())
    ('confounded', 2)
    >>> rule.preliminary(tables)[1]
    ('steps less the control', '1 [−13, 15]')
    """

    label: str
    effect: Quantity
    direction: Literal["falls", "rises"]
    null: float = 0.0
    beyond_label: str = ""
    beyond: Quantity | None = None
    beyond_null: float = 0.0

    def judge(self, tables: Tables) -> Judgement:
        """Compare the intervals with ``null``."""
        effect = _known(self.label, self.effect, tables)
        if not _beyond(effect, self.null, self.direction):
            numbers = self.preliminary(tables)
            reason = f"{self.label}: {effect}; the claim is that it {self._claim()}"
            if _reaches_beyond(effect, self.null, self.direction):
                return Judgement("undecided", f"{reason}, and the interval reaches to both sides", numbers)
            return Judgement("not reproduced", reason, numbers)
        if self.beyond is None:
            reason = f"{self.label}: {effect}; the claim is that it {self._claim()}"
            return Judgement("reproduced", reason, [(self.label, str(effect))])
        beyond = _known(self.beyond_label, self.beyond, tables)
        numbers = [(self.label, str(effect)), (self.beyond_label, str(beyond))]
        if _beyond(beyond, self.beyond_null, self.direction):
            return Judgement("reproduced", f"{self.label}: {effect}; {self.beyond_label}: {beyond}", numbers)
        reason = f"{self.label}: {effect}; but {self.beyond_label}: {beyond}{_behind(beyond, self.beyond_null)}"
        return Judgement("confounded", reason, numbers)

    def quantities(self) -> list[Quantity]:
        """Effect and control."""
        return [self.effect, *([self.beyond] if self.beyond else [])]

    def preliminary(self, tables: Tables) -> list[tuple[str, str]]:
        """The effect, and the control where it was run."""
        return [(self.label, str(self.effect.number(tables))), *_if_there(self.beyond_label, self.beyond, tables)]

    def _claim(self) -> str:
        return f"is {'below' if self.direction == 'falls' else 'above'} {shown(self.null)}"


@dataclass(frozen=True)
class Within:
    """A level that the number must be compatible with, ``least`` ≤ x ≤ ``most``: its interval reaches into that range.

    ``null`` is the contrary of the claim, outside that range: where a wide interval reaches to both, the verdict is
    *undecided*. An exact number needs none. Where there is a control, it must do worse: ``beyond`` > ``beyond_null``.
    Without one there is nothing to confound the number with.

    Examples
    --------
    A share of games of at least 0.8 is claimed, and half of them would be no difference:

    >>> from dataclasses import make_dataclass
    >>> from pathlib import Path
    >>> Known = make_dataclass("Known", ["known"], namespace={"number": lambda self, tables: self.known})
    >>> shares = [Number(0.7, 0.6, 0.9), Number(0.7, 0.4, 0.9), Number(0.6, 0.4, 0.7)]
    >>> rules = [Within("share of games", Known(share), least=0.8, null=0.5) for share in shares]
    >>> [rule.judge(Tables(Path("results"))).verdict for rule in rules]
    ['reproduced', 'undecided', 'not reproduced']
    """

    label: str
    value: Quantity
    least: float = -math.inf
    most: float = math.inf
    null: float | None = None
    beyond_label: str = ""
    beyond: Quantity | None = None
    beyond_null: float = 0.0

    def judge(self, tables: Tables) -> Judgement:
        """Compare the interval with the range."""
        value = _known(self.label, self.value, tables)
        bounds = " and ".join(
            [f"at least {shown(self.least)}"] * math.isfinite(self.least)
            + [f"at most {shown(self.most)}"] * math.isfinite(self.most)
        )
        reason = f"{self.label}: {value}, where the claim is {bounds}"
        if not _reaches_into(value, self.least, self.most):
            return Judgement("not reproduced", reason, self.preliminary(tables))
        if self.null is not None and _around(value, self.null):
            reason += f", and the interval reaches to {shown(self.null)} too"
            return Judgement("undecided", reason, self.preliminary(tables))
        numbers = [(self.label, str(value))]
        if self.beyond is None:
            return Judgement("reproduced", reason, numbers)
        beyond = _known(self.beyond_label, self.beyond, tables)
        numbers.append((self.beyond_label, str(beyond)))
        if _beyond(beyond, self.beyond_null, "rises"):
            return Judgement("reproduced", f"{self.label}: {value}; {self.beyond_label}: {beyond}", numbers)
        reason = f"{self.label}: {value}; but {self.beyond_label}: {beyond}{_behind(beyond, self.beyond_null)}"
        return Judgement("confounded", reason, numbers)

    def quantities(self) -> list[Quantity]:
        """Value and control."""
        return [self.value, *([self.beyond] if self.beyond else [])]

    def preliminary(self, tables: Tables) -> list[tuple[str, str]]:
        """The value, and the control where it was run."""
        return [(self.label, str(self.value.number(tables))), *_if_there(self.beyond_label, self.beyond, tables)]


@dataclass(frozen=True)
class Equivalent:
    """A difference whose whole interval must lie within ``margin`` of ``null``.

    It is *undecided* where the interval reaches into the margin and out of it, and *not reproduced* where it lies
    outside.
    """

    label: str
    value: Quantity
    margin: float
    null: float = 0.0

    def judge(self, tables: Tables) -> Judgement:
        """Compare the interval with the margin."""
        value = _known(self.label, self.value, tables)
        numbers = [(self.label, str(value))]
        least, most = self.null - self.margin, self.null + self.margin
        reason = f"{self.label}: {value}; the claim is that it lies within {shown(least)} to {shown(most)}"
        if least <= value.low and value.high <= most:
            return Judgement("reproduced", reason, numbers)
        if _reaches_into(value, least, most):
            return Judgement("undecided", f"{reason}, and the interval reaches out of that", numbers)
        return Judgement("not reproduced", reason, numbers)

    def quantities(self) -> list[Quantity]:
        """The difference."""
        return [self.value]

    def preliminary(self, tables: Tables) -> list[tuple[str, str]]:
        """The difference."""
        return [(self.label, str(self.value.number(tables)))]


def _known(label: str, quantity: Quantity, tables: Tables) -> Number:
    """A number with both ends of its interval: a verdict takes nothing less."""
    number = quantity.number(tables)
    if not all(map(math.isfinite, (number.value, number.low, number.high))):
        raise MissingNumberError(f"{label}: {number}; a verdict takes a number with its interval")
    return number


def _beyond(number: Number, null: float, direction: Literal["falls", "rises"]) -> bool:
    """Whether the whole interval lies on one side of ``null``."""
    return number.high < null if direction == "falls" else number.low > null


def _reaches_beyond(number: Number, null: float, direction: Literal["falls", "rises"]) -> bool:
    """Whether any of the interval lies on that side of ``null``."""
    return number.low < null if direction == "falls" else number.high > null


def _reaches_into(number: Number, least: float, most: float) -> bool:
    """Whether any of the interval lies within the range."""
    return number.high >= least and number.low <= most


def _around(number: Number, null: float) -> bool:
    """Whether the interval reaches to both sides of ``null``."""
    return number.low <= null <= number.high


def _behind(beyond: Number, null: float) -> str:
    """Where an interval lies that is not beyond the control: on both sides, or on the other one."""
    if _around(beyond, null):
        return f", an interval that reaches to both sides of {shown(null)}: by this number the two are not told apart"
    return f", on the other side of {shown(null)}: the control shows more of it"


def _if_there(label: str, quantity: Quantity | None, tables: Tables) -> list[tuple[str, str]]:
    """A control that decides nothing, or not yet, is shown where it was run."""
    if quantity is None:
        return []
    try:
        return [(label, str(quantity.number(tables)))]
    except (MissingRowsError, MissingNumberError):
        return [(label, "not run")]
