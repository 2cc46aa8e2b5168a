"""Pieces of HTML. Every word that is given to them is escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def definitions(facts: Iterable[tuple[str, str]]) -> str:
    """A list of names and what they mean."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts) + "</dl>"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], caption: str, style: str = "", frame: str = ""
) -> str:
    """A table in a frame that scrolls."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll {frame}" tabindex="0" role="region" aria-label="{escape(caption or headings[0])}">'
        f"<table{class_of(style)}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def class_of(name: str) -> str:
    """The attribute, or nothing."""
    return f' class="{name}"' if name else ""
