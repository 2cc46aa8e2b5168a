"""Pieces of a page: lists, tables, pictures and sections. Words are escaped, blocks are filled in as they are."""

import base64
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from PIL import Image

_LETTER = re.compile(r"[^\W\d_]")
COLORS = 256
"""Of a picture: enough to keep the arms' own, where bands lie over each other."""


@dataclass(frozen=True)
class Section:
    """A section that is added to the page of a study."""

    name: str
    """Anchor: letters, digits and hyphens."""
    heading: str
    html: str
    """Escaped already."""


@cache
def _blocks() -> dict[str, str]:
    """The blocks of ``page.html`` by name; each begins with a new line."""
    _, *parts = re.split(
        r"^<!-- (.+) -->$", (files("gramian.report.page") / "page.html").read_text("utf-8"), flags=re.M
    )
    return dict(zip(parts[::2], (part.removesuffix("\n") for part in parts[1::2]), strict=True))


def block(name: str, **values: str) -> str:
    """A block of ``page.html``, with HTML for the names in it."""
    return _blocks()[name].format(**values)


def definitions(facts: Iterable[tuple[str, str]]) -> str:
    """A list of names and what they mean."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts) + "</dl>"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], caption: str, style: str = "", frame: str = ""
) -> str:
    """A table in a frame that scrolls."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll {frame}" tabindex="0" role="region" aria-label="{escape(caption or headings[0])}">'
        f"<table{class_of(style)}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    """A cell; one without letters is a number, which does not break."""
    return f"<td{'' if _LETTER.search(text) else class_of('number')}>{escape(text)}</td>"


def class_of(name: str) -> str:
    """The attribute, or nothing."""
    return f' class="{name}"' if name else ""


def picture(path: Path, caption: str, colors: int = 0) -> str:
    """A PNG file inside the page, with its caption; of so many colours, if that is given."""
    content = path.read_bytes()
    if colors:
        stream = io.BytesIO()
        Image.open(path).convert("RGB").quantize(colors, dither=Image.Dither.NONE).save(stream, "png", optimize=True)
        content = stream.getvalue()
    data = base64.b64encode(content).decode("ascii")
    shown = escape(caption)
    return f'<figure><img src="data:image/png;base64,{data}" alt="{shown}"><figcaption>{shown}</figcaption></figure>'


def pictures(folder: Path, captions: dict[str, str]) -> str:
    """The figures that exist of those named, each with its caption."""
    there = {folder / f"{name}.png": caption for name, caption in captions.items()}
    return "".join(picture(path, caption, COLORS) for path, caption in there.items() if path.is_file())
