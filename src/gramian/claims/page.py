"""The claims as pages in Markdown: one table with every verdict, and the details behind it."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

from gramian.claims.rules import AWAITING_RUNS, VERDICTS, Entry, Judgement, Numbers, Part, Rule


def page(entries: Sequence[Entry], details: str) -> str:
    """The page for readers: a row a claim, linked to its section in the page ``details``, and what verdicts mean."""
    return "\n".join([_text("introduction.md"), *_overview(entries, details), *_meanings(entries)])


def details(entries: Sequence[Entry]) -> str:
    """A section for each claim with its commands and all its numbers, and the tables that are read."""
    body = "\n".join([*_sections(entries), *_tables(entries)])
    return f"{_text('details.md')}\n{body}\n{_text('tables.md')}"


def _text(name: str) -> str:
    return (files("gramian") / "claims" / name).read_text(encoding="utf-8")


def _overview(entries: Sequence[Entry], details: str) -> Iterator[str]:
    yield from ("| claim | verdict | number | beyond the control |", "| --- | --- | --- | --- |")
    for entry in entries:
        title = f"[{entry.claim.title}]({details}#{entry.claim.id})"
        yield _row(title, f"**{entry.verdict}**", *_decisive(entry.decisive_part, entry.decisive))
        for part, found in entry.elsewhere:
            yield _row(f"↳ {_cell(part.setting)}", f"*{found.verdict}*", *_decisive(part, found))
    yield ""


def _decisive(part: Part, found: Judgement) -> tuple[str, str]:
    """The number that a verdict was made from, or why there is none, and what it is beyond the control."""
    if found.verdict in AWAITING_RUNS or not isinstance(part.rule, Rule):
        return _cell(found.reason), ""
    (label, value), *others = found.numbers
    return _cell(f"{label}: {value}"), _cell(others[0][1]) if part.rule.beyond else "–"


def _meanings(entries: Sequence[Entry]) -> Iterator[str]:
    yield from ("## Verdicts", "", "| verdict | claims | meaning |", "| --- | ---: | --- |")
    for verdict, meaning in VERDICTS.items():
        yield _row(f"**{verdict}**", str(sum(entry.verdict == verdict for entry in entries)), meaning)
    yield ""


def _sections(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        claim = entry.claim
        yield from (f"## {claim.title} {{ #{claim.id} }}", "")
        remark = claim.remarks.get(entry.verdict, "")
        yield from (f"**{_capital(entry.verdict)}.** {remark}".rstrip(), "")
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
        yield _row(f"`results/{name}`", "awaited" if name in absent else "there", ", ".join(claims), lacking)
    yield ""


def _numbers(numbers: Numbers) -> Iterator[str]:
    yield from ("| number | value |", "| --- | --- |")
    yield from (_row(_cell(label), _cell(value)) for label, value in numbers)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Text inside a cell of a table: a bar would end it."""
    return re.sub(r"([|*])", r"\\\1", text)


def _capital(text: str) -> str:
    """With a capital letter at the beginning, unless it is a symbol."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def _sentence(text: str) -> str:
    return _capital(text) if text.endswith(".") else f"{_capital(text)}."
