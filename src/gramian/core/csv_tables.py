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
Record = dict[str, Value]
"""A row by its columns, before it is written."""


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV table by their columns; empty lines are none."""
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
    return [dict(zip(heading, fields, strict=True)) for _, fields in lines[1:]]


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


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write rows with the columns of the first."""
    write_csv(path, list(records[0]), (list(record.values()) for record in records))
