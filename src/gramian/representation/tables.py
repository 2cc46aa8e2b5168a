"""The files of an analysis: tidy tables that figures and reports are made from.

| file | columns |
| --- | --- |
| ``measures.csv`` | run, game, arm, seed, agent_steps, measure, value |
| ``curves.csv`` | run, game, arm, seed, curve, x, value |
| ``dynamics.csv`` | run, game, arm, seed, frames, metric, value |
| ``correlation/<run>.npy`` | correlations ``[d, d]`` of a run's features, float32; NaN where a feature does not vary |

The curves are ``sparsity`` (x = ε), ``active_per_state`` (x = number of active features, value = number of states),
``active_per_feature`` (x = feature, value = number of states) and ``spectrum`` (x = 1…d). The metrics of
``dynamics.csv`` are those of ``metrics.csv``, and those of ``representation.csv`` with ``held_out.`` before the name.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from gramian.errors import UserError
from gramian.files import replace_text


class Measure(NamedTuple):
    """A row of ``measures.csv``."""

    run: str
    game: str
    arm: str
    seed: int
    agent_steps: int
    measure: str
    value: float


class Point(NamedTuple):
    """A row of ``curves.csv``."""

    run: str
    game: str
    arm: str
    seed: int
    curve: str
    x: float
    value: float


class Moment(NamedTuple):
    """A row of ``dynamics.csv``."""

    run: str
    game: str
    arm: str
    seed: int
    frames: int
    metric: str
    value: float


FILES: dict[str, type[Measure | Point | Moment]] = {
    "measures.csv": Measure,
    "curves.csv": Point,
    "dynamics.csv": Moment,
}
CORRELATION = "correlation"
"""Folder of the matrices."""


def write(path: Path, rows: Sequence[Measure | Point | Moment]) -> None:
    """Write a table whole; the rows are all of the kind that `FILES` names for the file."""
    replace_text(path, _text([FILES[path.name]._fields, *rows]))


def append(path: Path, rows: Sequence[Measure | Point | Moment]) -> None:
    """Add rows to a table that `write` has begun."""
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(_text(rows))


def _text(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_measures(path: Path) -> list[Measure]:
    """Read a ``measures.csv``."""
    return [Measure(r, g, a, int(s), int(t), m, float(v)) for r, g, a, s, t, m, v in _rows(path, Measure._fields)]


def read_curves(path: Path) -> list[Point]:
    """Read a ``curves.csv``."""
    return [Point(r, g, a, int(s), c, float(x), float(v)) for r, g, a, s, c, x, v in _rows(path, Point._fields)]


def read_dynamics(path: Path) -> list[Moment]:
    """Read a ``dynamics.csv``."""
    return [Moment(r, g, a, int(s), int(f), m, float(v)) for r, g, a, s, f, m, v in _rows(path, Moment._fields)]


def _rows(path: Path, columns: Iterable[str]) -> list[list[str]]:
    """The rows of a table; a last line that was being written is left out."""
    try:
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        heading, *rows = csv.reader(whole.splitlines())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}; name a folder that 'gramian analyze' has written") from error
    if heading != list(columns):
        raise UserError(f"'{path}' has columns {', '.join(heading)}; it must have {', '.join(columns)}")
    return rows
