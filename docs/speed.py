"""Puts below the tables of contestants, ``docs/tables/training-*-cpu.md``, what is not the same for all of them.

A table is that of the page which ``python -m benchmarks.training --out FOLDER`` writes; the page itself may be put in
its place. The list is that of `benchmarks.side_by_side`. Run ``python -m docs.speed`` after either has changed.
"""

import re
from pathlib import Path

from benchmarks.contestants import CONTESTANTS
from benchmarks.side_by_side import differences
from gramian.deep.games import Kind
from gramian.files import replace_text

TABLES: dict[Kind, Path] = {
    kind: Path(__file__).parent / "tables" / f"training-{kind}-cpu.md" for kind in ("atari", "minatar")
}


def with_differences(text: str, kind: Kind) -> str:
    """The first table of a text, and below it the list for the contestants that stand in it."""
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("| contestant |"))
    rows = lines[first : next((at for at in range(first, len(lines)) if not lines[at].startswith("|")), len(lines))]
    titles = [row.split("|")[1].strip() for row in rows[2:]]
    contestants = [
        name
        for name, entry in CONTESTANTS.items()
        if entry.title in (re.sub(r", \d+ processes$", "", t) for t in titles)
    ]
    processes = any(title.endswith(" processes") for title in titles)
    return "\n".join([*rows, "", *differences(contestants, kind, opencv=True, processes=processes)]) + "\n"


if __name__ == "__main__":
    for kind, path in TABLES.items():
        replace_text(path, with_differences(path.read_text(encoding="utf-8"), kind))
