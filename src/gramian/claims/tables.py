"""The tables that verdicts stand on, and rows chosen from them."""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from gramian.claims.number import count
from gramian.errors import UserError

Row = dict[str, str]


class MissingTableError(UserError):
    """A table that is not there."""


class MissingRowsError(UserError):
    """A table that lacks the rows of an arm or a game."""


class MissingNumberError(UserError):
    """A field that a verdict takes and that holds no number, or a number without the interval that it takes."""


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
    gramian.errors.UserError: line 2 of the table '...scores.csv' does not end with a newline, ...
    """
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
            raise _damaged(path, line, f"has {count(len(fields), 'fields')}, where the heading has {len(heading)}")
    return [dict(zip(heading, fields, strict=True)) for _, fields in lines[1:]]


def _damaged(path: Path, line: int, how: str) -> UserError:
    return UserError(f"line {line} of the table '{path}' {how}; the table is damaged: make it again")


class Tables:
    r"""The CSV files below a folder, read when they are asked for.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "scores.csv").write_text("arm,seed,score\ndqn,0,1.5\ngram,0,2.5\n")
    >>> tables = Tables(folder)
    >>> len(tables.rows("scores.csv"))
    2
    >>> (row,) = tables.select("scores.csv", {"arm": "gram", "seed": 0})
    >>> tables.number("scores.csv", row, "score"), tables.text("scores.csv", row, "arm")
    (2.5, 'gram')
    >>> tables.known("scores.csv", row, "score")
    2.5
    >>> tables.rows("curves.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gramian.claims.tables.MissingTableError: there is no table '...curves.csv'; no verdict without a table: ...
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, list[Row]] = {}

    def rows(self, name: str) -> list[Row]:
        """All rows of a table.

        Raises
        ------
        MissingTableError
            If there is no such file.
        UserError
            If it cannot be read, is damaged or has no rows.
        """
        if name not in self._read:
            path = self.folder / name
            if not path.is_file():
                raise MissingTableError(f"there is no table '{path}'; no verdict without a table: run what makes it")
            rows = read_rows(path)
            if not rows:
                raise UserError(f"the table '{path}' has no rows; no verdict without a table: run what makes it")
            self._read[name] = rows
        return self._read[name]

    def select(self, name: str, where: Mapping[str, str | float]) -> list[Row]:
        """Rows of a table whose columns have the values in ``where``; numbers are compared as numbers.

        Raises
        ------
        MissingRowsError
            If there are none.
        """
        chosen = [row for row in self.rows(name) if all(self._equal(name, row, *pair) for pair in where.items())]
        if not chosen:
            wanted = ", ".join(f"{column} = {value}" for column, value in where.items())
            raise MissingRowsError(f"the table '{self.folder / name}' has no row with {wanted}")
        return chosen

    def text(self, name: str, row: Row, column: str) -> str:
        """The text in a column of a row.

        Raises
        ------
        UserError
            If the table has no such column.
        """
        text = row.get(column)
        if text is None:
            columns = ", ".join(column for column in row if column)
            raise UserError(f"the table '{self.folder / name}' has no column {column}; it has {columns}")
        return text

    def number(self, name: str, row: Row, column: str) -> float:
        """The number in a column of a row; NaN where the field is empty.

        Raises
        ------
        UserError
            If the table has no such column, or the field is no number.
        """
        text = self.text(name, row, column)
        try:
            return float(text) if text else float("nan")
        except ValueError:
            raise UserError(f"'{text}' in column {column} of the table '{self.folder / name}' is no number") from None

    def known(self, name: str, row: Row, column: str) -> float:
        """The number in a column of a row.

        Raises
        ------
        MissingNumberError
            If the field is empty, or not finite.
        """
        number = self.number(name, row, column)
        if not math.isfinite(number):
            found = row[column] or "nothing"
            raise MissingNumberError(
                f"the table '{self.folder / name}' has {found} in column {column}, where a verdict takes a number"
            )
        return number

    def _equal(self, name: str, row: Row, column: str, value: str | float) -> bool:
        text = self.text(name, row, column)
        return text == value if isinstance(value, str) else self.number(name, row, column) == value
