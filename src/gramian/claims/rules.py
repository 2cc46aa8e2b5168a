"""From numbers to a verdict.

An effect counts where its 95 % interval lies wholly on one side; an interval that reaches to what the claim says and to
its contrary decides nothing. An effect is put down to decorrelation only where the arm also differs, with an interval
of its own, from a control that has everything but the decorrelation. Where it does not, that number shows no difference
between the two. That they are equal would take a narrow interval (`equivalent`).
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from gramian.claims.tables import (
    MissingNumberError,
    MissingRowsError,
    MissingTableError,
    Number,
    Quantity,
    Row,
    Tables,
    count,
    shown,
)  # fmt: skip
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
SAMPLED = ("games", "seeds", "frames")
"""What is known of every number over seeds; what else a part needs, it counts itself."""
NEARLY = 0.9
"""From this share of a setting's games and frames on, numbers are shown as preliminary ones."""
Direction = Literal["falls", "rises"]
Numbers = list[tuple[str, str]]
"""What a number is, and the number as it is shown."""


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason and the numbers that it was made from, the claim's first."""

    verdict: Verdict
    reason: str
    numbers: Numbers


@dataclass(frozen=True)
class Statements:
    """Computed statements of a table, all of which must hold on every random process; otherwise *false as stated*.

    ``claimed`` is what the paper says, ``beside`` what shows its limits; each is a statement of the table, where
    … stands for any words. ``wording`` replaces the text of a statement that leans on its neighbours in the table.
    """

    table: str
    claimed: Sequence[str]
    beside: Sequence[str] = ()
    wording: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """The table."""
        return (self.table,)

    def judge(self, tables: Tables) -> Judgement:
        """Reproduced where all that is claimed holds."""
        failed, numbers = [], []
        for statement in (*self.claimed, *self.beside):
            rows = self.rows(tables, statement)
            held = sum(map(_holds, rows))
            text = self.wording.get(statement, rows[0].text("statement"))
            computed = rows[0].text("computed")
            numbers.append((text, f"holds on {held} of {count(len(rows), 'processes')}; on the first: {computed}"))
            if statement in self.claimed and held < len(rows):
                failed.append(text)
        if failed:
            return Judgement("false as stated", "this fails: " + "; ".join(f"“{text}”" for text in failed), numbers)
        cases = count(len(self.rows(tables, self.claimed[0])), "cases")
        return Judgement("reproduced", f"holds in all {cases} tried", numbers)

    def rows(self, tables: Tables, statement: str) -> list[Row]:
        """The rows of one statement, one for each process."""
        pattern = re.compile(".*".join(map(re.escape, statement.split("…"))))
        rows = [row for row in tables.rows(self.table) if pattern.fullmatch(row.text("statement"))]
        found = {row.text("statement") for row in rows}
        if not rows:
            raise MissingRowsError(f"the table '{tables.folder / self.table}' has no statement '{statement}'")
        if len(found) > 1:
            raise UserError(f"'{statement}' fits {len(found)} statements of the table '{rows[0].path}'")
        return rows


def _holds(row: Row) -> bool:
    verdict = row.text("verdict")
    if verdict not in HOLDS:
        known = " or ".join(f"'{known}'" for known in HOLDS)
        raise MissingNumberError(f"the table '{row.path}' has '{verdict}' in column verdict; it must be {known}")
    return HOLDS[verdict]


@dataclass(frozen=True)
class Rule:
    """A number of which something is claimed, and where it needs one, the arm minus the control.

    Where the number stands as claimed, the verdict is *reproduced* if ``beyond`` is on the claimed side of
    ``beyond_null`` too, or if there is no control, and *confounded* otherwise. Elsewhere the number alone decides.
    """

    label: str
    value: Quantity
    claim: str
    """How a reason ends that the number gives alone."""
    standing: Callable[[Number], tuple[Verdict, str]]
    """The verdict of the number alone, and what its reason adds."""
    direction: Direction = "rises"
    """Where the control must be left behind."""
    null: float | None = None
    """The contrary of the claim; None where the number is exact."""
    beyond: tuple[str, Quantity] | None = None
    """What the number minus that of the control is called, and that difference."""
    beyond_null: float = 0.0

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of both numbers."""
        return self.value.tables + (self.beyond[1].tables if self.beyond else ())

    def judge(self, tables: Tables) -> Judgement:
        """Compare the intervals with the claim."""
        value = _known(self.label, self.value, tables)
        verdict, addition = self.standing(value)
        found = f"{self.label}: {value}"
        if verdict != "reproduced" or self.beyond is None:
            return Judgement(verdict, f"{found}{self.claim}{addition}", self.preliminary(tables))
        label, quantity = self.beyond
        beyond = _known(label, quantity, tables)
        numbers = [(self.label, str(value)), (label, str(beyond))]
        if _beyond(beyond, self.beyond_null, self.direction):
            return Judgement("reproduced", f"{found}; {label}: {beyond}", numbers)
        null = shown(self.beyond_null)
        where = f", on the other side of {null}: the control shows more of it"
        if beyond.low <= self.beyond_null <= beyond.high:
            where = f", an interval that contains {null}: no difference from the control detected"
        return Judgement("confounded", f"{found}; but {label}: {beyond}{where}", numbers)

    def preliminary(self, tables: Tables) -> Numbers:
        """The numbers where they give no verdict: that of the control only where it was run."""
        numbers = [(self.label, str(self.value.number(tables)))]
        if self.beyond is None:
            return numbers
        label, quantity = self.beyond
        return [*numbers, (label, _shown_or(quantity, tables, "not run", (MissingRowsError, MissingNumberError)))]


def _shown_or(quantity: Quantity, tables: Tables, instead: str, missing: tuple[type[UserError], ...]) -> str:
    """A number, or other words where it is missing in one of these ways."""
    try:
        return str(quantity.number(tables))
    except missing:
        return instead


def effect(
    label: str,
    value: Quantity,
    direction: Direction,
    *,
    null: float = 0.0,
    beyond: tuple[str, Quantity] | None = None,
) -> Rule:
    """The whole interval must lie on the paper's side of ``null``; ``beyond`` on that side of 0.

    It is *undecided* where the interval reaches to that side, and otherwise *not reproduced*.
    """

    def standing(number: Number) -> tuple[Verdict, str]:
        if _beyond(number, null, direction):
            return "reproduced", ""
        if number.low < null if direction == "falls" else number.high > null:
            return "undecided", ", and the interval contains both outcomes"
        return "not reproduced", ""

    claim = f"; the claim is that it is {'below' if direction == 'falls' else 'above'} {shown(null)}"
    return Rule(label, value, claim, standing, direction=direction, null=null, beyond=beyond)


def within(
    label: str,
    value: Quantity,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    null: float | None = None,
    beyond: tuple[str, Quantity] | None = None,
    beyond_null: float = 0.0,
) -> Rule:
    """The interval must reach into ``least`` to ``most``, and not to ``null``, the contrary of the claim.

    Where it reaches to both, the verdict is *undecided*. An exact number needs no ``null``. ``beyond`` must be above
    ``beyond_null``.
    """
    if null is not None and least <= null <= most:
        raise ValueError(f"the contrary {null} of '{label}' lies within the claim, {least} to {most}")

    def standing(number: Number) -> tuple[Verdict, str]:
        if not _reaches_into(number, least, most):
            return "not reproduced", ""
        if null is not None and number.low <= null <= number.high:
            return "undecided", f", and the interval reaches to {shown(null)} too"
        return "reproduced", ""

    bounds = [f"at least {shown(least)}"] * math.isfinite(least) + [f"at most {shown(most)}"] * math.isfinite(most)
    claim = f", where the claim is {' and '.join(bounds)}"
    return Rule(label, value, claim, standing, null=null, beyond=beyond, beyond_null=beyond_null)


def equivalent(label: str, value: Quantity, *, margin: float, null: float = 0.0) -> Rule:
    """The whole interval must lie within ``margin`` of ``null``; *undecided* where it reaches in and out."""
    least, most = null - margin, null + margin

    def standing(number: Number) -> tuple[Verdict, str]:
        if least <= number.low and number.high <= most:
            return "reproduced", ""
        if _reaches_into(number, least, most):
            return "undecided", ", and the interval reaches out of that"
        return "not reproduced", ""

    claim = f"; the claim is that it lies within {shown(least)} to {shown(most)}"
    return Rule(label, value, claim, standing, null=null)


def _known(label: str, quantity: Quantity, tables: Tables) -> Number:
    """A number with both ends of its interval: a verdict takes nothing less."""
    number = quantity.number(tables)
    if not all(map(math.isfinite, (number.value, number.low, number.high))):
        raise MissingNumberError(f"{label}: {number}; a verdict takes a number with its interval")
    return number


def _beyond(number: Number, null: float, direction: Direction) -> bool:
    """Whether the whole interval lies on one side of ``null``."""
    return number.high < null if direction == "falls" else number.low > null


def _reaches_into(number: Number, least: float, most: float) -> bool:
    """Whether any of the interval lies within the range."""
    return number.high >= least and number.low <= most


# ---- claims and their parts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One setting of a claim, with the rule that judges it."""

    rule: Rule | Statements
    setting: str = ""
    needs: Mapping[str, int] = field(default_factory=dict)
    """The fewest games, seeds, frames (agent steps for measures), and of what it counts, that a verdict takes.

    Runs of fewer games or frames are of another setting: none of their numbers is shown. Where only seeds or what it
    counts are too few, the numbers are shown, and there is no verdict.
    """
    counted: Mapping[str, Quantity] = field(default_factory=dict)
    """Where a table has the number of its processes, runs, cases or sizes."""
    command: str = ""
    """What makes its tables, a command a line."""
    note: str = ""
    """What is to be said of its numbers, whatever they are."""
    also: Mapping[str, Quantity] = field(default_factory=dict)
    """Numbers that are shown beside, and decide nothing."""
    awaited: bool = False
    """Whether tables, rows or numbers may be missing; otherwise what is missing is refused."""
    elsewhere: bool = False
    """A setting that the paper does not speak of: it has a verdict of its own and does not count for the claim's."""

    @property
    def tables(self) -> tuple[str, ...]:
        """All that it reads, each once."""
        quantities = (*self.counted.values(), self.rule, *self.also.values())
        return tuple(dict.fromkeys(name for one in quantities for name in one.tables))


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how it is put to the test."""

    id: str
    title: str
    source: str
    says: str
    ran: str
    """May name the numbers of ``ran_values`` in braces."""
    control: str
    parts: tuple[Part, ...]
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What is to be said of it, by verdict."""
    ran_values: Mapping[str, Quantity] = field(default_factory=dict)
    beside: Mapping[str, Quantity] = field(default_factory=dict)
    """Numbers that need no run of ours."""

    @property
    def tables(self) -> tuple[str, ...]:
        """All that its parts read, each once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.tables))


@dataclass(frozen=True)
class Entry:
    """A claim with its verdict."""

    claim: Claim
    verdict: Verdict
    decisive_part: Part
    decisive: Judgement
    """Of the part that gives the claim its verdict."""
    ran: str
    judgements: list[Judgement]
    """Of each part."""
    beside: Numbers
    absent: tuple[str, ...]
    """Its tables that do not exist."""

    @property
    def elsewhere(self) -> list[tuple[Part, Judgement]]:
        """The settings that do not count for its verdict and have runs enough for one of their own."""
        parts = zip(self.claim.parts, self.judgements, strict=True)
        return [(part, found) for part, found in parts if part.elsewhere and found.verdict not in AWAITING_RUNS]


def judge(claim: Claim, tables: Tables) -> Entry:
    """Look up a claim's numbers and apply its rules.

    Raises
    ------
    UserError
        If a table that is not awaited is missing or lacks a row or a number, or any table is empty or lacks a column.
    """
    judgements = [_judge(part, tables) for part in claim.parts]
    counting = [(part, found) for part, found in zip(claim.parts, judgements, strict=True) if not part.elsewhere]
    part, decisive = min(counting, key=lambda one: HARDEST_FIRST.index(one[1].verdict))
    verdict = decisive.verdict
    if verdict == "not yet run" and any(found.verdict != "not yet run" for found in judgements):
        verdict = "not run in full"
    values = {name: shown(quantity.number(tables).value) for name, quantity in claim.ran_values.items()}
    return Entry(
        claim=claim,
        verdict=verdict,
        decisive_part=part,
        decisive=decisive,
        ran=claim.ran.format(**values),
        judgements=judgements,
        beside=[(label, str(quantity.number(tables))) for label, quantity in claim.beside.items()],
        absent=tuple(name for name in claim.tables if not tables.has(name)),
    )


def _judge(part: Part, tables: Tables) -> Judgement:
    """The judgement of a part; of one that is awaited, that something is missing."""
    try:
        return _judge_if_enough(part, tables)
    except MissingTableError:
        if not part.awaited:
            raise
        missing = [f"`results/{name}`" for name in part.tables if not tables.has(name)]
        return Judgement("not yet run", f"awaits {', '.join(missing)}", [])
    except (MissingRowsError, MissingNumberError) as lacking:
        if not part.awaited:
            raise
        return Judgement("not run in full", str(lacking), [])


def _judge_if_enough(part: Part, tables: Tables) -> Judgement:
    """The judgement of a part that misses nothing; of too small a sample or count, that it is too small."""
    sample = part.rule.value.sample(tables) if isinstance(part.rule, Rule) and part.rule.value.sample else None
    size: dict[str, float] = {} if sample is None else {name: getattr(sample, name) for name in SAMPLED}
    behind = [] if sample is None else [("runs behind it", str(sample))]
    lacking = _lacking(part, size, "" if sample is None else sample.unit)
    if any(size[name] < NEARLY * part.needs[name] for name in lacking.keys() - {"seeds"}):
        return Judgement("not run in full", _where(lacking), [])  # of fewer games or frames: another setting's
    missing = (MissingTableError, MissingRowsError, MissingNumberError) if part.awaited else (MissingNumberError,)
    if lacking and isinstance(part.rule, Rule):
        found = Judgement("not run in full", _where(lacking), part.rule.preliminary(tables))
    else:
        found = part.rule.judge(tables)
        counted = {name: quantity.number(tables).value for name, quantity in part.counted.items()}
        if lacking := _lacking(part, counted):
            found = replace(found, verdict="not run in full", reason=_where(lacking))
    also = [(label, _shown_or(quantity, tables, "–", missing)) for label, quantity in part.also.items()]
    return replace(found, numbers=[*found.numbers, *also, *behind])


def _lacking(part: Part, found: Mapping[str, float], unit: str = "") -> dict[str, tuple[str, str]]:
    """What there is too little of, by its name in ``needs``: how much there is, and how much a verdict takes."""
    return {
        name: (count(number, unit if name == "frames" else name), f"{part.needs[name]:,}")
        for name, number in found.items()
        if number < part.needs.get(name, 0)
    }


def _where(lacking: Mapping[str, tuple[str, str]]) -> str:
    """All that is lacking, in one line."""
    (few, least), *others = lacking.values()
    return "; ".join(
        [f"{few}, where a verdict takes {least}", *(f"{few}, where it takes {least}" for few, least in others)]
    )
