"""The ledger as a page in Markdown."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files

from gramian.claims.rules import AWAITING_RUNS, VERDICTS, Entry, Judgement, Part, Verdict


def page(entries: Sequence[Entry]) -> str:
    """The whole page: what the verdicts mean, an overview, a section for each claim, and the tables that are read."""
    body = "\n".join([*_meanings(entries), *_overview(entries), *_sections(entries), *_tables(entries)])
    return f"{_text('introduction.md')}\n{body}\n{_text('tables.md')}"


def _text(name: str) -> str:
    return (files("gramian") / "claims" / name).read_text(encoding="utf-8")


def _meanings(entries: Sequence[Entry]) -> Iterator[str]:
    yield from ("| verdict | claims | meaning |", "| --- | ---: | --- |")
    for verdict, meaning in VERDICTS.items():
        yield f"| **{verdict}** | {sum(entry.verdict == verdict for entry in entries)} | {meaning} |"
    yield ""


def _overview(entries: Sequence[Entry]) -> Iterator[str]:
    aside = (
        "A claim is judged in the paper's own setting alone. What smaller settings say stands below it, in rows that "
        "begin with ↳, and does not count for its verdict."
    )
    yield from ("## Overview", "", aside, "")
    yield from ("| claim | verdict | because |", "| --- | --- | --- |")
    for entry in entries:
        yield f"| [{entry.claim.title}](#{entry.claim.id}) | **{entry.verdict}** | {_cell(entry.because)} |"
        for part, found in entry.elsewhere:
            yield f"| ↳ {_cell(part.setting)} | *{found.verdict}* | {_cell(found.reason)} |"
    yield ""


def _elsewhere(entry: Entry) -> Iterator[str]:
    """The verdicts of the settings that do not count for the claim's, one a line, the milder ones first."""
    groups: dict[Verdict, dict[str, list[str]]] = {verdict: {} for verdict in VERDICTS}
    for part, found in entry.elsewhere:
        setting, _, aspect = part.setting.partition(": ")
        groups[found.verdict].setdefault(setting, []).append(aspect)
    often = Counter(setting for settings in groups.values() for setting in settings)
    for verdict, settings in groups.items():
        named = [name if often[name] == 1 else _with(name, aspects) for name, aspects in settings.items()]
        if named:
            yield f"- **{verdict}**: {'; '.join(named)}"


def _with(setting: str, aspects: Sequence[str]) -> str:
    """A setting of which not everything has the same verdict, and what of it is meant."""
    return f"{setting} ({', '.join(f'“{aspect}”' for aspect in aspects)})"


def _sections(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        claim = entry.claim
        yield from (f"## {claim.title} {{ #{claim.id} }}", "")
        remark = claim.remarks.get(entry.verdict, "")
        beside = "In smaller settings, which do not count for that verdict:" if entry.elsewhere else ""
        yield from (" ".join(filter(None, (f"**{_capital(entry.verdict)}.**", remark, beside))), "")
        if entry.elsewhere:
            yield from (*_elsewhere(entry), "")
        yield from (f"*The paper* ({claim.source}): {claim.says}", "")
        was_run = any(judgement.numbers for judgement in entry.judgements)
        yield from (f"*What {'we ran' if was_run else 'is to be run'}*: {entry.ran}", "")
        commands = dict.fromkeys(line for part in claim.parts for line in part.command.splitlines())
        yield from ("```bash", *commands, "```", "")
        yield from (f"*The control*: {claim.control}", "")
        for part, judgement in zip(claim.parts, entry.judgements, strict=True):
            yield from _part(part, judgement)
        if entry.beside:
            yield from ("The paper's own table of final scores, for comparison:", "", *_numbers(entry.beside), "")


def _part(part: Part, judgement: Judgement) -> Iterator[str]:
    aside = " This setting is not the paper's and does not count for the verdict above." if part.elsewhere else ""
    where = f"**{_capital(part.setting)}: {judgement.verdict}.** " if part.setting else ""
    early = " The numbers are preliminary." if judgement.verdict == "not run in full" and judgement.numbers else ""
    note = f" {part.note}" if part.note and judgement.numbers else ""
    yield from (f"{where}{_sentence(judgement.reason)}{early}{note}{aside}", "")
    if judgement.numbers:
        tables = ", ".join(f"`results/{name}`" for name in part.tables)
        yield from (*_numbers(judgement.numbers), "", f"From {tables}.", "")


def _tables(entries: Sequence[Entry]) -> Iterator[str]:
    """Every table that is read, by which claims, and the settings that it has too few runs for, or none."""
    readers: dict[str, list[str]] = {}
    awaited: dict[str, list[str]] = {}
    for entry in entries:
        for name in entry.claim.tables:
            readers.setdefault(name, []).append(f"[{entry.claim.id}](#{entry.claim.id})")
        for part, judgement in zip(entry.claim.parts, entry.judgements, strict=True):
            if judgement.verdict in AWAITING_RUNS:
                for name in part.tables:
                    awaited.setdefault(name, []).append(part.setting.partition(":")[0] or entry.claim.title)
    absent = {name for entry in entries for name in entry.absent}
    yield from ("## Tables", "")
    yield from ("| table | is | read for | runs still awaited |", "| --- | --- | --- | --- |")
    for name, claims in readers.items():
        lacking = "; ".join(dict.fromkeys(awaited.get(name, ["–"])))
        yield f"| `results/{name}` | {'awaited' if name in absent else 'there'} | {', '.join(claims)} | {lacking} |"
    yield ""


def _numbers(numbers: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield from ("| number | value |", "| --- | --- |")
    yield from (f"| {_cell(label)} | {_cell(value)} |" for label, value in numbers)


def _cell(text: str) -> str:
    """Text inside a cell of a table: a bar would end it."""
    return re.sub(r"([|*])", r"\\\1", text)


def _capital(text: str) -> str:
    """With a capital letter at the beginning, unless it is a symbol."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def _sentence(text: str) -> str:
    return _capital(text) if text.endswith(".") else f"{_capital(text)}."
