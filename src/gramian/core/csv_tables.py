"""CSV tables: read whole or not at all, and written as the same bytes for the same numbers."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from gramian.core.errors import UserError
from gramian.core.files import replace_text
from gramian.core.progress import counted

Row = dict[str, str]
Value = str | int | float | bool


def read_rows(path: Path) -> list[Row]:
    r"""The rows of a CSV table by their columns; empty lines are none.

    Raises
    ------
    UserError
        If it cannot be read, or is damaged: its last line has no end, so that it may be cut off in the middle of a
        number, or a row has not as many fields as the heading.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("arm,score\ndqn,1.5\n")
    >>> read_rows(path)
    [{'arm': 'dqn', 'score': '1.5'}]
    >>> _ = path.write_text("arm,score\ndqn,1.")
    >>> read_rows(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: line 2 of the table '...scores.csv' does not end with a newline, ...
    """
    heading, lines = _read(path)
    return [dict(zip(heading, fields, strict=True)) for _, fields in lines]


def read_numbers(path: Path, columns: Sequence[str] = ()) -> list[list[float]]:
    r"""The numbers in some columns of a CSV table, or in all of them, row by row.

    Raises
    ------
    UserError
        As `read_rows`; or if there is no such column, or a field of it is no number.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "metrics.csv"
    >>> _ = path.write_text("frames,loss\n10,0.5\n20,nan\n")
    >>> read_numbers(path, ["loss"])
    [[0.5], [nan]]
    >>> _ = path.write_text("frames,loss\n10,0.5\n20,\n")
    >>> read_numbers(path, ["frames"])
    [[10.0], [20.0]]
    >>> read_numbers(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: line 3 of the table '...metrics.csv' has '' for loss, which is no number; ...
    """
    heading, lines = _read(path)
    columns = columns or heading
    if missing := [column for column in columns if column not in heading]:
        raise UserError(f"the table '{path}' has no column {missing[0]}; it has {', '.join(heading) or 'none'}")
    places = [heading.index(column) for column in columns]
    return [[_number(path, line, fields[place], heading[place]) for place in places] for line, fields in lines]


def _number(path: Path, line: int, field: str, column: str) -> float:
    try:
        return float(field)
    except ValueError:
        raise _damaged(path, line, f"has {field!r} for {column}, which is no number") from None


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The heading of a table, and the fields of each row with the number of its line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the table '{path}': {(error.strerror or str(error)).lower()}") from error
    if data and not data.endswith(b"\n"):
        raise _damaged(path, data.count(b"\n") + 1, "does not end with a newline, as if it were cut off")
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True)
        lines = [(reader.line_num, fields) for fields in reader if fields]
    except UnicodeDecodeError as error:
        raise _damaged(path, data[: error.start].count(b"\n") + 1, "is no text in UTF-8") from error
    except csv.Error as error:
        raise _damaged(path, reader.line_num, f"is no row of a CSV table ({error})") from error
    heading = lines[0][1] if lines else []
    for line, fields in lines:
        if len(fields) != len(heading):
            raise _damaged(path, line, f"has {counted(len(fields), 'field')}, where the heading has {len(heading)}")
    return heading, lines[1:]


def _damaged(path: Path, line: int, how: str) -> UserError:
    return UserError(f"line {line} of the table '{path}' {how}; the table is damaged: make it again")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    r"""CSV with ``header``; numbers to 10 significant digits, NaN as an empty field.

    Examples
    --------
    >>> csv_text(["arm", "mean"], [["plain", 1 / 3], ["A, λ = 0", float("nan")]])
    'arm,mean\nplain,0.3333333333\n"A, λ = 0",\n'
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_field(value) for value in row] for row in rows)
    return stream.getvalue()


def _field(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.10g}"
    return str(value)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
    """Write ``csv_text`` to ``path``, whole or not at all."""
    replace_text(path, csv_text(header, rows))
