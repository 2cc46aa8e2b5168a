"""Sections that others add to the page of a study, and pictures that lie in the page itself."""

import base64
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


def picture(path: Path, caption: str) -> str:
    """A PNG file as a part of the page, with what it shows below it."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    shown = escape(caption)
    return f'<figure><img src="data:image/png;base64,{data}" alt="{shown}"><figcaption>{shown}</figcaption></figure>'
