"""The claims as data, and their verdicts."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from typing import Any

from gramian.claims import quantities, rules, seeds
from gramian.claims.number import count, shown
from gramian.claims.quantities import Quantity
from gramian.claims.rules import AWAITING_RUNS, HARDEST_FIRST, VERDICTS, Judgement, Rule, Verdict
from gramian.claims.tables import MissingNumberError, MissingRowsError, MissingTableError, Tables
from gramian.core.errors import UserError, unknown

QUANTITIES: dict[str, type[Any]] = {
    "column": quantities.Column,
    "difference": quantities.Difference,
    "ratio": quantities.Ratio,
    "largest": quantities.Largest,
    "paper": quantities.PaperTable,
    "distinct": quantities.Distinct,
    "rows": quantities.Rows,
    "exponent": quantities.Exponent,
    "measure": seeds.Measure,
    "feature": seeds.Feature,
    "scores": seeds.Scores,
}
RULES: dict[str, type[Any]] = {
    "statements": rules.Statements,
    "effect": rules.Effect,
    "within": rules.Within,
    "equivalent": rules.Equivalent,
}
SAMPLED = ("games", "seeds", "frames")
"""What is known of every number over seeds; what else a part needs, it counts itself."""
NEARLY = 0.9
"""The share of a setting's games and frames from which on its numbers are shown, as preliminary ones."""


@dataclass(frozen=True)
class Part:
    """One setting of a claim, with the rule that judges it."""

    setting: str
    rule: Rule
    tables: tuple[str, ...]
    also: tuple[tuple[str, Quantity], ...]
    """Numbers that are shown beside, and decide nothing."""
    awaited: bool
    """Whether tables, rows or numbers may be missing; otherwise what is missing is refused.

    Without a table it is not yet run, without rows or numbers of one it is not run in full.
    """
    elsewhere: bool
    """A setting that the paper does not speak of: it has a verdict of its own and does not count for the claim's."""
    needs: Mapping[str, int]
    """The fewest games, seeds, frames (agent steps for measures), and of what it counts, that a verdict takes.

    Runs of fewer games or frames are of another setting: none of their numbers is shown. Where only seeds or what it
    counts are too few, the numbers are shown, and there is no verdict.
    """
    counted: Mapping[str, Quantity]
    """Where a table has the number of its processes, runs, cases or sizes."""
    command: str
    """What makes its tables, a command a line."""
    note: str
    """What is to be said of its numbers, whatever they are."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how it is put to the test."""

    id: str
    title: str
    source: str
    says: str
    ran: str
    """May name numbers of the tables in braces."""
    ran_values: Mapping[str, Quantity]
    control: str
    remarks: Mapping[str, str]
    """What is to be said of it, by verdict: a remark stands only beside the verdict that it explains."""
    beside: tuple[tuple[str, Quantity], ...]
    """Numbers that need no run of ours."""
    parts: tuple[Part, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """All that its parts read, each once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.tables))


@dataclass(frozen=True)
class Entry:
    """A claim with its verdict."""

    claim: Claim
    verdict: Verdict
    because: str
    """The reason of the part that gives it its verdict."""
    ran: str
    judgements: list[Judgement]
    """Of each part."""
    beside: list[tuple[str, str]]
    absent: tuple[str, ...]
    """Its tables that are not there."""

    @property
    def elsewhere(self) -> list[tuple[Part, Judgement]]:
        """The settings that do not count for its verdict and have runs enough for one of their own."""
        parts = zip(self.claim.parts, self.judgements, strict=True)
        return [(part, found) for part, found in parts if part.elsewhere and found.verdict not in AWAITING_RUNS]


def load_ledger(text: str | None = None) -> list[Claim]:
    """The claims of ``text``, or of the ledger that is shipped.

    Examples
    --------
    >>> [claim.id for claim in load_ledger()][:3]
    ['proposition-1', 'proposition-2', 'proposition-3']
    """
    if text is None:
        text = (files("gramian") / "claims" / "ledger.toml").read_text(encoding="utf-8")
    return [_claim(dict(raw)) for raw in tomllib.loads(text)["claims"]]


def judge(claim: Claim, tables: Tables) -> Entry:
    """Look up a claim's numbers and apply its rules.

    Raises
    ------
    UserError
        If a table that is not awaited is missing or lacks a row or a number, or any table is empty or lacks a column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> (claim,) = [claim for claim in load_ledger() if claim.id == "median-score"]
    >>> entry = judge(claim, Tables(Path(tempfile.mkdtemp())))
    >>> entry.verdict, entry.judgements[0].reason
    ('not yet run', 'awaits `results/atari/scores.csv`')
    """
    judgements = [_judge(part, tables) for part in claim.parts]
    counting = [found for part, found in zip(claim.parts, judgements, strict=True) if not part.elsewhere]
    decisive = min(counting, key=lambda found: HARDEST_FIRST.index(found.verdict))
    verdict = decisive.verdict
    if verdict == "not yet run" and any(found.verdict != "not yet run" for found in judgements):
        verdict = "not run in full"
    values = {name: shown(quantity.number(tables).value) for name, quantity in claim.ran_values.items()}
    beside = [(label, str(quantity.number(tables))) for label, quantity in claim.beside]
    absent = tuple(name for name in claim.tables if not (tables.folder / name).is_file())
    return Entry(claim, verdict, decisive.reason, claim.ran.format(**values), judgements, beside, absent)


def _judge(part: Part, tables: Tables) -> Judgement:
    if part.awaited:
        try:
            return _judge_if_enough(part, tables)
        except MissingTableError:
            missing = [f"`results/{name}`" for name in part.tables if not (tables.folder / name).is_file()]
            return Judgement("not yet run", f"awaits {', '.join(missing)}", [])
        except (MissingRowsError, MissingNumberError) as lacking:
            return Judgement("not run in full", str(lacking), [])
    return _judge_if_enough(part, tables)


def _judge_if_enough(part: Part, tables: Tables) -> Judgement:
    over_seeds = seeds.Measure | seeds.Feature | seeds.Scores
    sampled = [quantity for quantity in part.rule.quantities() if isinstance(quantity, over_seeds)]
    behind: list[tuple[str, str]] = []
    if sampled:
        sample = sampled[0].sample(tables)
        behind = [("runs behind it", str(sample))]
        size = {name: getattr(sample, name) for name in SAMPLED}
        lacking = _lacking(part, size, sample.unit)
        if any(size[name] < NEARLY * part.needs[name] for name in lacking.keys() - {"seeds"}):
            return Judgement("not run in full", _where(lacking), [])  # of fewer games or frames: another setting's
        if lacking:
            numbers = [*part.rule.preliminary(tables), *_also(part, tables), *behind]
            return Judgement("not run in full", _where(lacking), numbers)
    found = part.rule.judge(tables)
    numbers = [*found.numbers, *_also(part, tables), *behind]
    lacking = _lacking(part, {name: quantity.number(tables).value for name, quantity in part.counted.items()})
    if lacking:
        return Judgement("not run in full", _where(lacking), numbers)
    return replace(found, numbers=numbers)


def _lacking(part: Part, found: Mapping[str, float], unit: str = "") -> dict[str, tuple[str, str]]:
    """What there is too little of, by its name in ``needs``: how much there is, and how much a verdict takes."""
    return {
        name: (count(number, unit if name == "frames" else name), f"{part.needs[name]:,}")
        for name, number in found.items()
        if number < part.needs.get(name, 0)
    }


def _where(lacking: Mapping[str, tuple[str, str]]) -> str:
    """All that is lacking, in one line.

    Examples
    --------
    >>> _where({"games": ("4 games", "49"), "seeds": ("1 seed", "3")})
    '4 games, where a verdict takes 49; 1 seed, where it takes 3'
    """
    (few, least), *others = lacking.values()
    return "; ".join(
        [f"{few}, where a verdict takes {least}", *(f"{few}, where it takes {least}" for few, least in others)]
    )


def _also(part: Part, tables: Tables) -> list[tuple[str, str]]:
    """What decides nothing, with a dash where there is no number, or no row or table in a part that may lack them."""
    missing = (MissingTableError, MissingRowsError, MissingNumberError) if part.awaited else MissingNumberError
    found = []
    for label, quantity in part.also:
        try:
            found.append((label, str(quantity.number(tables))))
        except missing:
            found.append((label, "–"))
    return found


def _claim(raw: dict[str, Any]) -> Claim:
    parts = tuple(_part(dict(part)) for part in raw.pop("parts"))
    values = {name: _quantity(spec) for name, spec in raw.pop("ran_values", {}).items()}
    beside = tuple((text, _quantity(spec)) for text, spec in raw.pop("beside", {}).items())
    remarks = raw.pop("remarks", {})
    for verdict in remarks:
        if verdict not in VERDICTS:
            raise unknown("verdict", verdict, VERDICTS)
    ours = {"ran_values": values, "remarks": remarks, "beside": beside, "parts": parts}
    claim: Claim = _make(Claim, {**ours, **raw}, f"claim '{raw.get('id')}'")
    return claim


def _part(raw: dict[str, Any]) -> Part:
    rule = raw.pop("rule")
    if rule not in RULES:
        raise unknown("rule", rule, RULES)
    tables = tuple(dict.fromkeys(_tables(raw)))
    also = tuple((text, _quantity(spec)) for text, spec in raw.pop("also", {}).items())
    ours = {
        "setting": raw.pop("setting", ""),
        "awaited": raw.pop("awaited", False),
        "elsewhere": raw.pop("elsewhere", False),
        "needs": raw.pop("needs", {}),
        "counted": {name: _quantity(spec) for name, spec in raw.pop("counted", {}).items()},
        "command": raw.pop("command", ""),
        "note": raw.pop("note", ""),
    }
    for name in ours["needs"]:
        if name not in (*SAMPLED, *ours["counted"]):
            raise unknown("need", name, (*SAMPLED, *ours["counted"]))
    for name in ours["counted"]:
        if name not in ours["needs"]:
            raise UserError(f"'{name}' is counted and not needed; say how many a verdict takes: needs.{name}")
    is_quantity = {key for key, value in raw.items() if isinstance(value, dict) and "kind" in value}
    arguments = {key: _quantity(value) if key in is_quantity else value for key, value in raw.items()}
    return Part(rule=_make(RULES[rule], arguments, f"rule '{rule}'"), also=also, tables=tables, **ours)


def _tables(raw: Mapping[str, Any]) -> list[str]:
    """Names of all tables in a specification, however deep."""
    found = []
    for key, value in raw.items():
        if key == "table":
            found.append(str(value))
        elif isinstance(value, dict):
            found += _tables(value)
    return found


def _quantity(spec: Mapping[str, Any]) -> Quantity:
    arguments = dict(spec)
    kind = arguments.pop("kind")
    if kind not in QUANTITIES:
        raise unknown("kind of quantity", kind, QUANTITIES)
    for name in ("first", "second"):
        if name in arguments:
            arguments[name] = _quantity(arguments[name])
    quantity: Quantity = _make(QUANTITIES[kind], arguments, f"quantity '{kind}'")
    return quantity


def _make(kind: type[Any], arguments: Mapping[str, Any], what: str) -> Any:
    known: Sequence[str] = [field.name for field in fields(kind)]
    for name in arguments:
        if name not in known:
            raise unknown(f"key of {what}", name, known)
    try:
        return kind(**arguments)
    except TypeError as error:
        raise UserError(f"{what} is not complete: {error}") from error
