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

In an exported study they are smaller: a table may be a Parquet file in place of a CSV file, and a matrix the Parquet
file of its upper triangle, row by row (`pack`).
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
from gramian.core.files import replace_text


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
    return _read(path, Measure)


def read_curves(path: Path) -> list[Point]:
    """Read a ``curves.csv``."""
    return _read(path, Point)


def read_dynamics(path: Path) -> list[Moment]:
    """Read a ``dynamics.csv``."""
    return _read(path, Moment)


def check_curves(folder: Path, measures: Iterable[Measure], curves: Iterable[Point]) -> None:
    """Make sure that every run that was measured has the curves that a figure shows.

    Raises
    ------
    UserError
        Naming the folder, the run and the curve that is missing.

    Examples
    --------
    >>> check_curves(Path("report"), [Measure("pong-dqn-s0", "pong", "dqn", 0, 100, "srank", 3.0)], [])
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: the analysis 'report' is not whole: run 'pong-dqn-s0' has no curve 'sparsity'; ...
    """
    there = {(row.run, row.curve) for row in curves}
    for run in dict.fromkeys(row.run for row in measures):
        for curve in CURVES:
            if (run, curve) not in there:
                raise not_whole(folder, run, f"curve '{curve}'")


def not_whole(folder: Path, run: str, lacks: str) -> UserError:
    """The error of an analysis that was not brought to its end, or lost something since."""
    return UserError(f"the analysis '{folder}' is not whole: run '{run}' has no {lacks}; analyze its runs again")


def is_analysis(folder: Path) -> bool:
    """Whether a folder holds an analysis.

    Raises
    ------
    UserError
        If it holds a part of one.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> is_analysis(folder)
    False
    >>> write(folder / "curves.csv", [])
    >>> is_analysis(folder)
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: the analysis '...' is not whole, missing: measures.csv, dynamics.csv, correlation; ...
    """  # noqa: E501
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


def pack(path: Path, rows: Sequence[Measure | Point | Moment]) -> None:
    """Write a table as the Parquet file that is read in the place of the CSV file ``path``.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "curves.csv"
    >>> pack(path, [Point("pong-dqn-s0", "pong", "dqn", 0, "sparsity", 0.0, 0.5)])
    >>> path.exists(), read_curves(path)[0].value
    (False, 0.5)
    """
    import polars as pl

    from gramian.core.parquet import write_table

    columns = list(FILES[path.name]._fields)
    write_table(path.with_suffix(PACKED), pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None))


def has_correlation(folder: Path, run: str) -> bool:
    """Whether `read_correlation` finds a matrix of the run."""
    return any((folder / f"{run}{suffix}").exists() for suffix in (".npy", PACKED))


def read_correlation(folder: Path, run: str) -> NDArray[np.float32]:
    """The correlations ``[d, d]`` of a run's features.

    Parameters
    ----------
    folder
        That of the matrices: ``correlation`` of an analysis.
    run
        Name of the run.

    Raises
    ------
    UserError
        If there is none, or if it is no square matrix.
    """
    path = folder / f"{run}.npy"
    try:
        if not path.exists() and path.with_suffix(PACKED).exists():
            return _whole(path.with_suffix(PACKED))
        with path.open("rb") as file:
            matrix = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}; analyze the runs again") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UserError(f"'{path}' has shape {list(matrix.shape)}; it must be [d, d]; analyze the runs again")
    if matrix.dtype.kind != "f":
        raise UserError(f"'{path}' holds {matrix.dtype}; it must hold floating-point numbers; analyze the runs again")
    return np.asarray(matrix)


def pack_correlation(folder: Path, run: str, matrix: NDArray[np.float32]) -> None:
    """Write a matrix to be read by `read_correlation`: its upper triangle, where the lower one is the same.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> pack_correlation(folder, "pong-dqn-s0", np.array([[1.0, 0.5], [0.5, 1.0]], np.float32))
    >>> read_correlation(folder, "pong-dqn-s0").tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    import polars as pl

    from gramian.core.files import replacing
    from gramian.core.parquet import write_table

    path = folder / f"{run}.npy"
    if matrix.dtype == np.float32 and np.array_equal(matrix, matrix.T, equal_nan=True):
        triangle = matrix[np.triu_indices(len(matrix))]
        write_table(path.with_suffix(PACKED), pl.DataFrame({"correlation": triangle}))
    else:
        with replacing(path) as temporary:
            np.save(temporary, matrix)


def _whole(path: Path) -> NDArray[np.float32]:
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


def _read(path: Path, kind: type[R]) -> list[R]:
    """The rows of a table, each column as what it is."""
    columns = kind._fields
    rows = _rows(path, columns)
    convert = [NUMBERS[column][0] if column in NUMBERS else str for column in columns]
    try:
        return [kind._make(function(cell) for function, cell in zip(convert, row, strict=True)) for row in rows]
    except (ValueError, TypeError) as error:
        raise _damaged(path, columns, rows) from error


def _rows(path: Path, columns: Sequence[str]) -> Sequence[Sequence[Any]]:
    """The rows of a table, as text or as what they are; a last line that was being written is left out."""
    if not path.exists() and path.with_suffix(PACKED).exists():
        return _packed_rows(path.with_suffix(PACKED), columns)
    try:
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        heading, *rows = list(csv.reader(whole.splitlines())) or [[]]
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"cannot read '{path}': {error}; name a folder that 'gramian analyze' has written") from error
    if heading != list(columns):
        raise _other_columns(path, heading, columns)
    return rows


def _packed_rows(path: Path, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    from gramian.core.parquet import read_table

    table = read_table(path)
    if table.columns != list(columns):
        raise _other_columns(path, table.columns, columns)
    return table.rows()


def _other_columns(path: Path, found: Sequence[str], columns: Sequence[str]) -> UserError:
    has = f"columns {', '.join(found)}" if found else "no columns"
    return UserError(f"'{path}' has {has}; it must have {', '.join(columns)}")


def _damaged(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> UserError:
    """What is wrong with the first row that is; the row below the heading is row 1."""
    place = path if path.exists() else path.with_suffix(PACKED)
    for number, row in enumerate(rows, 1):
        where = f"row {number} of '{place}'"
        if len(row) != len(columns):
            return UserError(f"{where} has {len(row)} cells; it must have {len(columns)}: {', '.join(columns)}")
        for column, cell in zip(columns, row, strict=True):
            kind, right = NUMBERS.get(column, (str, "a text"))
            try:
                kind(cell)
            except (ValueError, TypeError):
                return UserError(f"{where}: {column} is {cell!r}; it must be {right}; analyze the runs again")
    return UserError(f"'{place}' is damaged; analyze the runs again")
