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

In an exported study a table may be a Parquet file in place of a CSV file, and a matrix the Parquet file of its upper
triangle, row by row.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramian.core.errors import UserError
from gramian.core.files import replace_text, replacing


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


Rows = Sequence[Measure | Point | Moment]
R = TypeVar("R", Measure, Point, Moment)
FILES: dict[str, type[Measure | Point | Moment]] = {
    "measures.csv": Measure,
    "curves.csv": Point,
    "dynamics.csv": Moment,
}
CURVES = ("sparsity", "active_per_state", "active_per_feature", "spectrum")
CORRELATION = "correlation"
"""Folder of the matrices."""
PACKED = ".parquet"
"""Suffix in place of ``.csv`` or ``.npy``."""
NUMBERS: dict[str, tuple[type[int | float], str]] = {
    **dict.fromkeys(("seed", "agent_steps", "frames"), (int, "a whole number")),
    **dict.fromkeys(("x", "value"), (float, "a number")),
}
"""Columns that are no texts, and what is right in them."""


def write(path: Path, rows: Rows) -> None:
    """Write a table whole; the rows are all of the kind that `FILES` names for the file."""
    replace_text(path, csv_text([FILES[path.name]._fields, *rows]))


def append(path: Path, rows: Rows) -> None:
    """Add rows to a table that `write` has begun."""
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(csv_text(rows))


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Rows as the text of a CSV table."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_measures(path: Path) -> list[Measure]:
    """Read a ``measures.csv``."""
    return _read(path, Measure)


def read_curves(path: Path) -> list[Point]:
    """Read a ``curves.csv``."""
    return _read(path, Point)


def read_dynamics(path: Path) -> list[Moment]:
    """Read a ``dynamics.csv``."""
    return _read(path, Moment)


def _read(path: Path, kind: type[R]) -> list[R]:
    """The rows of a CSV table or its packed form; a last line that was being written is left out."""
    place, columns = path, kind._fields
    rows: Sequence[Sequence[Any]]
    if not path.exists() and path.with_suffix(PACKED).exists():
        from gramian.core.parquet import read_table

        place = path.with_suffix(PACKED)
        table = read_table(place)
        heading, rows = table.columns, table.rows()
    else:
        try:
            whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
            heading, *rows = list(csv.reader(whole.splitlines())) or [[]]
        except (OSError, ValueError, csv.Error) as error:
            raise UserError(
                f"cannot read '{path}': {error}; name a folder that 'gramian analyze' has written"
            ) from error
    if heading != list(columns):
        has = f"columns {', '.join(heading)}" if heading else "no columns"
        raise UserError(f"'{place}' has {has}; it must have {', '.join(columns)}")
    return [_row(kind, row, number, place) for number, row in enumerate(rows, 1)]


def _row(kind: type[R], row: Sequence[Any], number: int, place: Path) -> R:
    columns = kind._fields
    if len(row) != len(columns):
        raise UserError(
            f"row {number} of '{place}' has {len(row)} cells; it must have {len(columns)}: {', '.join(columns)}"
        )
    cells = []
    for column, cell in zip(columns, row, strict=True):
        convert, right = NUMBERS.get(column, (str, "a text"))
        try:
            cells.append(convert(cell))
        except (ValueError, TypeError):
            said = f"row {number} of '{place}': {column} is {cell!r}; it must be {right}; analyze the runs again"
            raise UserError(said) from None
    return kind._make(cells)


def check_curves(folder: Path, measures: Iterable[Measure], curves: Iterable[Point]) -> None:
    """Raise `UserError` unless every run that was measured has the curves that a figure shows."""
    there = {(row.run, row.curve) for row in curves}
    for run in dict.fromkeys(row.run for row in measures):
        for curve in CURVES:
            if (run, curve) not in there:
                raise not_whole(folder, run, f"curve '{curve}'")


def not_whole(folder: Path, run: str, lacks: str) -> UserError:
    """The error of an analysis that was not brought to its end, or lost something since."""
    return UserError(f"the analysis '{folder}' is not whole: run '{run}' has no {lacks}; analyze its runs again")


def is_analysis(folder: Path) -> bool:
    """Whether a folder holds an analysis; raises `UserError` where it holds a part of one."""
    parts = (*FILES, CORRELATION)
    missing = [name for name in parts if not has_table(folder / name)]
    if 0 < len(missing) < len(parts):
        raise UserError(
            f"the analysis '{folder}' is not whole, missing: {', '.join(missing)}; analyze the runs again, "
            "or remove what is left of it"
        )
    return not missing


def has_table(path: Path) -> bool:
    """Whether a table is there, as a CSV file or packed."""
    return path.exists() or path.with_suffix(PACKED).exists()


def has_correlation(folder: Path, run: str) -> bool:
    """Whether `read_correlation` finds a matrix of the run."""
    return any((folder / f"{run}{suffix}").exists() for suffix in (".npy", PACKED))


def read_correlation(folder: Path, run: str) -> NDArray[np.float32]:
    """The correlations ``[d, d]`` of a run's features, from the folder of the matrices."""
    path = folder / f"{run}.npy"
    try:
        if not path.exists() and path.with_suffix(PACKED).exists():
            return _unpacked(path.with_suffix(PACKED))
        with path.open("rb") as file:
            matrix = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}; analyze the runs again") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UserError(f"'{path}' has shape {list(matrix.shape)}; it must be [d, d]; analyze the runs again")
    if matrix.dtype.kind != "f":
        raise UserError(f"'{path}' holds {matrix.dtype}; it must hold floating-point numbers; analyze the runs again")
    return np.asarray(matrix)


def save_correlation(folder: Path, run: str, matrix: NDArray[np.float32]) -> None:
    """Write a matrix to be read by `read_correlation`."""
    with replacing(folder / f"{run}.npy") as temporary:
        np.save(temporary, matrix)


def pack(path: Path, rows: Rows) -> None:
    """Write a table as the Parquet file that is read in the place of the CSV file ``path``."""
    import polars as pl

    from gramian.core.parquet import write_table

    columns = list(FILES[path.name]._fields)
    write_table(path.with_suffix(PACKED), pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None))


def pack_correlation(folder: Path, run: str, matrix: NDArray[np.float32]) -> None:
    """Write a matrix to be read by `read_correlation`: its upper triangle where it is symmetric float32."""
    import polars as pl

    from gramian.core.parquet import write_table

    if matrix.dtype == np.float32 and np.array_equal(matrix, matrix.T, equal_nan=True):
        triangle = matrix[np.triu_indices(len(matrix))]
        write_table(folder / f"{run}{PACKED}", pl.DataFrame({"correlation": triangle}))
    else:
        save_correlation(folder, run, matrix)


def _unpacked(path: Path) -> NDArray[np.float32]:
    """The symmetric matrix whose upper triangle is in a Parquet file."""
    from gramian.core.parquet import read_table

    table = read_table(path)
    triangle = table.to_series(0).to_numpy() if table.width else np.zeros(0)
    size = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    if size * (size + 1) // 2 != len(triangle) or triangle.dtype != np.float32:
        raise UserError(f"'{path}' is not the upper triangle of a matrix; export the study again")
    matrix = np.zeros((size, size), np.float32)
    rows, columns = np.triu_indices(size)
    matrix[rows, columns] = matrix[columns, rows] = triangle
    return matrix
