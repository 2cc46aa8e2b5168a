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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
PACKED = ".parquet"
"""Suffix in place of ``.csv`` or ``.npy``."""


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

    from gramian.parquet import write_table

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
        matrix = np.load(path, allow_pickle=False)
        square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}; analyze the runs again") from error
    if not square:
        raise UserError(f"'{path}' has shape {list(matrix.shape)}; it must be [d, d]; analyze the runs again")
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

    from gramian.files import replacing
    from gramian.parquet import write_table

    path = folder / f"{run}.npy"
    if matrix.dtype == np.float32 and np.array_equal(matrix, matrix.T, equal_nan=True):
        triangle = matrix[np.triu_indices(len(matrix))]
        write_table(path.with_suffix(PACKED), pl.DataFrame({"correlation": triangle}))
    else:
        with replacing(path) as temporary:
            np.save(temporary, matrix)


def _whole(path: Path) -> NDArray[np.float32]:
    """The symmetric matrix whose upper triangle is in a Parquet file."""
    from gramian.parquet import read_table

    triangle = read_table(path).to_series(0).to_numpy()
    size = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    if size * (size + 1) // 2 != len(triangle) or triangle.dtype != np.float32:
        raise UserError(f"'{path}' is not the upper triangle of a matrix; export the study again")
    matrix = np.zeros((size, size), np.float32)
    rows, columns = np.triu_indices(size)
    matrix[rows, columns] = matrix[columns, rows] = triangle
    return matrix


def _rows(path: Path, columns: Iterable[str]) -> Sequence[Sequence[Any]]:
    """The rows of a table, as text or as what they are; a last line that was being written is left out."""
    if not path.exists() and path.with_suffix(PACKED).exists():
        return _packed_rows(path.with_suffix(PACKED), list(columns))
    try:
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        heading, *rows = csv.reader(whole.splitlines())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}; name a folder that 'gramian analyze' has written") from error
    if heading != list(columns):
        raise UserError(f"'{path}' has columns {', '.join(heading)}; it must have {', '.join(columns)}")
    return rows


def _packed_rows(path: Path, columns: list[str]) -> list[tuple[Any, ...]]:
    from gramian.parquet import read_table

    table = read_table(path)
    if table.columns != columns:
        raise UserError(f"'{path}' has columns {', '.join(table.columns)}; it must have {', '.join(columns)}")
    return table.rows()
