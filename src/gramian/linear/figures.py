"""What the figures of the linear experiments share: lines that survive a print in black and white, and small files."""

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

from gramian.core.files import replacing

__all__ = ["MARKERS", "STYLES", "plt", "save_figure"]

STYLES: list[dict[str, Any]] = [
    {"color": "black", "linestyle": "-"},
    {"color": "tab:blue", "linestyle": "--"},
    {"color": "tab:orange", "linestyle": "-."},
    {"color": "tab:green", "linestyle": ":"},
    {"color": "tab:red", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "tab:purple", "linestyle": (0, (8, 3))},
    {"color": "tab:brown", "linestyle": (0, (1, 3))},
    {"color": "tab:gray", "linestyle": (0, (3, 1, 1, 1))},
]
"""Told apart by dashes and markers alone."""

MARKERS = "osD^vPX*"


def save_figure(figure: Any, path: Path, *, dpi: int = 110) -> None:
    """Write the figure as a PNG of 128 colours, whole or not at all, and forget it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)
    plt.close(figure)
    with replacing(path) as temporary:
        Image.open(stream).convert("RGB").quantize(128).save(temporary, optimize=True)
