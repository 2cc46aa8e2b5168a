"""The tables that verdicts stand on, and numbers taken from them."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.stats

from gramian.core import statistics
from gramian.core.csv_tables import Row, read_rows
from gramian.core.errors import UserError
from gramian.report import reference

NORMAL_95 = 1.959964
MOST_PLACES = 6
"""After the point; an end that is nearer to 0 is shown as 0."""
Where = Mapping[str, str | float]
"""Values of columns; numbers are compared as numbers."""


class MissingTableError(UserError):
    """A table does not exist."""


class MissingRowsError(UserError):
    """A table lacks the rows of an arm or a game."""


class MissingNumberError(UserError):
    """A field that a verdict takes holds no number, or a number lacks its interval."""


class Tables:
    r"""The CSV files below a folder, read when they are asked for.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "scores.csv").write_text("arm,seed,score\ndqn,0,1.5\ngram,0,2.5\n")
    >>> tables = Tables(folder)
    >>> (row,) = tables.select("scores.csv", {"arm": "gram", "seed": 0})
    >>> tables.known("scores.csv", row, "score"), tables.text("scores.csv", row, "arm")
    (2.5, 'gram')
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, list[Row]] = {}

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / name).is_file()

    def rows(self, name: str) -> list[Row]:
        """All rows of a table; refuses a missing, a damaged and an empty table."""
        if name not in self._read:
            path = self.folder / name
            if not self.has(name):
                raise MissingTableError(f"there is no table '{path}'; no verdict without a table: run what makes it")
            rows = read_rows(path)
            if not rows:
                raise UserError(f"the table '{path}' has no rows; no verdict without a table: run what makes it")
            self._read[name] = rows
        return self._read[name]

    def select(self, name: str, where: Where) -> list[Row]:
        """The rows whose columns have the values in ``where``; there must be one."""
        chosen = [row for row in self.rows(name) if all(self._equal(name, row, *pair) for pair in where.items())]
        if not chosen:
            wanted = ", ".join(f"{column} = {value}" for column, value in where.items())
            raise MissingRowsError(f"the table '{self.folder / name}' has no row with {wanted}")
        return chosen

    def text(self, name: str, row: Row, column: str) -> str:
        """The text in a column of a row."""
        text = row.get(column)
        if text is None:
            columns = ", ".join(column for column in row if column)
            raise UserError(f"the table '{self.folder / name}' has no column {column}; it has {columns}")
        return text

    def number(self, name: str, row: Row, column: str) -> float:
        """The number in a column of a row; NaN where the field is empty."""
        text = self.text(name, row, column)
        try:
            return float(text) if text else math.nan
        except ValueError:
            raise UserError(f"'{text}' in column {column} of the table '{self.folder / name}' is no number") from None

    def known(self, name: str, row: Row, column: str) -> float:
        """The number in a column of a row, which must be finite."""
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


@dataclass(frozen=True)
class Number:
    """A measured value and the ends of its 95 % interval; both ends are the value itself where it is exact.

    It is shown with as many digits as its interval allows, and more where an end would look like the 0 that it is not.

    Examples
    --------
    >>> print(Number(-4513.2916, -4524.4, -4502.96), Number(0.5, 0.5, 0.5), Number(0.647, -12.63, 14.94))
    −4,513 [−4,524, −4,503] 0.5 1 [−13, 15]
    >>> print(Number(0.12, 0.004, 0.24), Number(0.5, 0.4, 0.6, note="unpaired"))
    0.120 [0.004, 0.240] 0.50 [0.40, 0.60] (unpaired)
    """

    value: float
    low: float
    high: float
    note: str = ""
    """How it was made, where that is not the usual way."""

    def minus(self, other: "Number") -> "Number":
        """Difference of two independent numbers, its interval from both (MOVER, Zou & Donner 2008).

        The distances from each value to the ends of its interval add up in squares, each end on its own. For numbers of
        paired runs the interval is too wide.

        Examples
        --------
        >>> print(Number(5.0, 2.0, 8.0).minus(Number(1.0, -3.0, 5.0)))
        4 [−1, 9]
        """
        value = self.value - other.value
        down = math.hypot(self.value - self.low, other.high - other.value)
        up = math.hypot(self.high - self.value, other.value - other.low)
        return Number(value, value - down, value + up)

    def __str__(self) -> str:
        return f"{self._shown()} ({self.note})" if self.note else self._shown()

    def _shown(self) -> str:
        if not math.isfinite(self.value):
            return "–"
        if self.low == self.high == self.value:
            return shown(self.value)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{shown(self.value)} (no interval)"
        if self.low == self.high:
            return f"{shown(self.value)} [{shown(self.low)}, {shown(self.high)}]"
        ends = [abs(end) for end in (self.low, self.high) if end]
        places = max(0, 1 - math.floor(math.log10(self.high - self.low)))
        while places < MOST_PLACES and any(not float(f"{end:.{places}f}") for end in ends):
            places += 1
        value, low, high = (_signed(f"{number:,.{places}f}") for number in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def exact(value: float) -> Number:
    """A number without an interval."""
    return Number(value, value, value)


def shown(value: float) -> str:
    """Three significant digits, whole from a thousand on.

    Examples
    --------
    >>> shown(-4513.29), shown(0.0011608), shown(99.96), shown(1e-15), shown(0.0)
    ('−4,513', '0.00116', '100', '1e-15', '0')
    """
    return _signed(f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}")


def count(number: float, plural: str) -> str:
    """A count of things that are named by their plural.

    Examples
    --------
    >>> count(1, "processes"), count(1, "games"), count(1200, "agent steps")
    ('1 process', '1 game', '1,200 agent steps')
    """
    singular = plural.removesuffix("es") if plural.endswith("sses") else plural.removesuffix("s")
    return f"{number:,.0f} {singular if number == 1 else plural}"


def _signed(text: str) -> str:
    """With a true minus sign, and none before zero."""
    return text.lstrip("-") if not text.strip("-0.,") else re.sub("^-", "−", text)


@dataclass(frozen=True)
class Sample:
    """How much a number over seeds stands on."""

    seeds: int
    """The fewest of any arm and game."""
    frames: int
    """The fewest of any run; agent steps where the table counts those."""
    games: int
    unit: str
    """Of ``frames``."""
    most_seeds: int
    """Of any arm and game."""

    def __str__(self) -> str:
        games = "one game" if self.games == 1 else f"{self.games} games"
        seeds = count(self.most_seeds, "seeds")
        if self.seeds < self.most_seeds:
            seeds = f"{self.seeds} to {seeds}"
        return f"{games}, {seeds}, {count(self.frames, self.unit)}"


@dataclass(frozen=True)
class Quantity:
    """A number that can be looked up in tables."""

    tables: tuple[str, ...]
    number: Callable[[Tables], Number]
    sample: Callable[[Tables], Sample] | None = None
    """What a number over seeds stands on."""


def column(
    table: str,
    value: str,
    *,
    low: str = "",
    high: str = "",
    error: str = "",
    least: str = "",
    times: float = 1.0,
    where: Where | None = None,
) -> Quantity:
    """One row's value ``times`` a factor, with its interval from two columns or from a standard error.

    The row is the one that fits ``where``; of several, that with the lowest number in the column ``least``.
    """

    def row(tables: Tables) -> Row:
        rows = tables.select(table, where or {})
        if least:
            return min(rows, key=lambda row: tables.known(table, row, least))
        if len(rows) > 1:
            raise UserError(f"{len(rows)} rows of the table '{table}' fit {dict(where or {})}; one was meant")
        return rows[0]

    def number(tables: Tables) -> Number:
        own = row(tables)
        middle, bottom, top, deviation = (
            times * tables.known(table, own, name) if name else math.nan for name in (value, low, high, error)
        )
        if error:
            bottom, top = middle - NORMAL_95 * deviation, middle + NORMAL_95 * deviation
        elif not low:
            bottom = top = middle
        if bottom > top:
            found = f"a standard error of {deviation:g}" if error else f"an interval from {bottom:g} to {top:g}"
            raise UserError(
                f"the table '{tables.folder / table}' has {found} for {value}; its low end must not be above its high "
                "end"
            )
        return Number(middle, bottom, top)

    return Quantity((table,), number)


def difference(first: Quantity, second: Quantity) -> Quantity:
    """One quantity minus another, of independent runs (`Number.minus`)."""
    return Quantity(first.tables + second.tables, lambda tables: first.number(tables).minus(second.number(tables)))


def ratio(first: Quantity, second: Quantity) -> Quantity:
    """One exact value over another."""
    return Quantity(
        first.tables + second.tables, lambda tables: exact(first.number(tables).value / second.number(tables).value)
    )


def largest(table: str, value: str, where: Where | None = None) -> Quantity:
    """The largest number of a column over all rows that fit."""
    return Quantity(
        (table,),
        lambda tables: exact(max(tables.known(table, row, value) for row in tables.select(table, where or {}))),
    )


def distinct(table: str, value: str, where: Where | None = None) -> Quantity:
    """The number of different values of a column in the rows that fit."""
    return Quantity(
        (table,),
        lambda tables: exact(len({tables.text(table, row, value) for row in tables.select(table, where or {})})),
    )


def rows(table: str, where: Where | None = None) -> Quantity:
    """The number of rows that fit."""
    return Quantity((table,), lambda tables: exact(len(tables.select(table, where or {}))))


def paper(arm: str, statistic: str) -> Quantity:
    """A number of the paper's own final scores: games ``won`` or ``lost`` against DQN, or the ``median`` score.

    The median is of human-normalised scores, with the Atari-57 human scores.
    """

    def number(_tables: Tables) -> Number:
        table = reference.paper_table()
        scores, base = (table[reference.PAPER_ARMS[name]].to_numpy() for name in (arm, "dqn"))
        if statistic == "median":
            normalised = statistics.human_normalised(scores, table["random"].to_numpy(), table["human"].to_numpy())
            return exact(float(statistics.median_score(normalised[None])))
        games = statistics.count_games(scores, base)
        return exact(float({"won": games.wins, "lost": games.losses}[statistic]))

    return Quantity((), number)


def exponent(table: str, value: str, over: str, where: Where) -> Quantity:
    """Slope of log ``value`` over log ``over`` with Student's interval of the least-squares line."""

    def number(tables: Tables) -> Number:
        own = tables.select(table, where)
        found = np.array([[tables.known(table, row, name) for name in (over, value)] for row in own])
        if not (found > 0).all():
            raise UserError(f"{value} and {over} of the table '{table}' must be above 0 for a slope")
        if len(own) < 3:
            raise UserError(f"{len(own)} rows of the table '{table}' fit {dict(where)}; a slope needs three")
        line = scipy.stats.linregress(*np.log(found).T)
        half = statistics.student_quantile(len(own) - 2) * float(line.stderr)
        return Number(float(line.slope), float(line.slope) - half, float(line.slope) + half)

    return Quantity((table,), number)
