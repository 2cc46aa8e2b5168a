"""Parts of a page: sections that others add to a study's report, tables, and pictures that lie in the page itself."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    name: str
    """Anchor: letters, digits and hyphens."""
    heading: str
    html: str
    """Whatever comes from outside must be escaped already."""


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], caption: str, style: str = "", frame: str = ""
) -> str:
    """A table that scrolls on a narrow screen. All cells are escaped.

    Examples
    --------
    >>> "<td>a &lt; b</td>" in table(["claim"], [["a < b"]], "Claims")
    True
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    kind = f' class="{style}"' if style else ""
    return (
        f'<div class="scroll {frame}" tabindex="0" role="region" aria-label="{escape(caption or headings[0])}">'
        f"<table{kind}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def picture(path: Path, caption: str) -> str:
    """A PNG file as a part of the page, with what it shows below it."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    shown = escape(caption)
    return f'<figure><img src="data:image/png;base64,{data}" alt="{shown}"><figcaption>{shown}</figcaption></figure>'
