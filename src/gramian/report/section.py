"""Sections that others add to the page of a study, and pictures that lie in the page itself."""

import base64
import io
from dataclasses import dataclass
from html import escape
from pathlib import Path

from PIL import Image


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    name: str
    """Anchor: letters, digits and hyphens."""
    heading: str
    html: str
    """Whatever comes from outside must be escaped already."""


def picture(path: Path, caption: str, colors: int = 0) -> str:
    """A PNG file as a part of the page, with what it shows below it; of so many colours, if that is given."""
    content = path.read_bytes()
    if colors:
        stream = io.BytesIO()
        Image.open(path).convert("RGB").quantize(colors, dither=Image.Dither.NONE).save(stream, "png", optimize=True)
        content = stream.getvalue()
    data = base64.b64encode(content).decode("ascii")
    shown = escape(caption)
    return f'<figure><img src="data:image/png;base64,{data}" alt="{shown}"><figcaption>{shown}</figcaption></figure>'
