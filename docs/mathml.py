"""Formulas of the pages: blocks of ``math`` become MathML when the site is built, so that it needs no script."""

from typing import Any

from latex2mathml.converter import convert


def formula(source: str, *_: Any, **__: Any) -> str:
    """A block of LaTeX as MathML."""
    return f'<p style="overflow-x: auto">{convert(source, display="block")}</p>'
