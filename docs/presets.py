"""Writes ``docs/tables/presets.md``: every setting of every preset with its source, as the preset files have them.

Run it as ``python docs/presets.py`` after a preset has changed.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from gramian.core.files import replace_text
from gramian.deep.training.config import preset_names

TARGET = Path(__file__).parent / "tables" / "presets.md"
LINE = re.compile(r"(?P<name>\w+) = (?P<value>\S+)\s+# (?P<source>.+)")


def tables() -> str:
    """A heading, an introduction and a table for each preset."""
    return "\n".join(line for name in preset_names() for line in _preset(name)) + "\n"


def _preset(name: str) -> Iterator[str]:
    lines = (files("gramian") / "presets" / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    introduction = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    yield from (f"### `{name}`", "", *introduction, "", "| setting | value | source |", "| --- | --- | --- |")
    table = ""
    for line in lines:
        if line.startswith("["):
            table = line.strip("[]") + "."
        elif match := LINE.fullmatch(line):
            source = match["source"].replace("|", "\\|")
            yield f"| `{table}{match['name']}` | `{match['value']}` | {source} |"
        elif line and not line.startswith("#"):
            raise ValueError(f"cannot read {line!r} in preset '{name}'; write: name = value # source")
    yield ""


if __name__ == "__main__":
    replace_text(TARGET, tables())
