"""The tables that verdicts stand on, and rows chosen from them."""

import math
from collections.abc import Mapping
from pathlib import Path

from gramian.core.csv_tables import Row, read_rows
from gramian.core.errors import UserError


class MissingTableError(UserError):
    """A table that is not there."""


class MissingRowsError(UserError):
    """A table that lacks the rows of an arm or a game."""


class MissingNumberError(UserError):
    """A field that a verdict takes and that holds no number, or a number without the interval that it takes."""


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
