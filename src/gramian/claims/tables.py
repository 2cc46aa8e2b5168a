"""The tables that verdicts stand on, and numbers taken from them."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy  # its parts are loaded when they are used

from gramian.core import statistics
from gramian.core.csv_tables import read_rows
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


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    path: Path
    fields: Mapping[str, str]

    def text(self, column: str) -> str:
        """The text in a column."""
        if column not in self.fields:
            columns = ", ".join(column for column in self.fields if column)
            raise UserError(f"the table '{self.path}' has no column {column}; it has {columns}")
        return self.fields[column]

    def number(self, column: str) -> float:
        """The number in a column; NaN where the field is empty."""
        text = self.text(column)
        try:
            return float(text) if text else math.nan
        except ValueError:
            raise UserError(f"'{text}' in column {column} of the table '{self.path}' is not a number") from None

    def known(self, column: str) -> float:
        """The number in a column, which must be finite."""
        number = self.number(column)
        if not math.isfinite(number):
            found = self.fields[column] or "nothing"
            raise MissingNumberError(
                f"the table '{self.path}' has {found} in column {column}, where a verdict takes a number"
            )
        return number

    def fits(self, where: Where) -> bool:
        """Whether its columns have these values."""
        return all(
            self.text(column) == value if isinstance(value, str) else self.number(column) == value
            for column, value in where.items()
        )


class Tables:
    """The CSV files below a folder, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, list[Row]] = {}

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / name).is_file()

    def rows(self, name: str, where: Where | None = None) -> list[Row]:
        """The rows of a table that fit, of which there must be one; refuses a missing and a damaged table."""
        path = self.folder / name
        if name not in self._read:
            if not self.has(name):
                raise MissingTableError(f"there is no table '{path}'; no verdict without a table: run what makes it")
            self._read[name] = [Row(path, fields) for fields in read_rows(path)]
        if not self._read[name]:
            raise UserError(f"the table '{path}' has no rows; no verdict without a table: run what makes it")
        chosen = [row for row in self._read[name] if row.fits(where or {})]
        if not chosen:
            wanted = ", ".join(f"{column} = {value}" for column, value in (where or {}).items())
            raise MissingRowsError(f"the table '{path}' has no row with {wanted}")
        return chosen


@dataclass(frozen=True)
class Number:
    """A measured value and the ends of its 95 % interval; both ends are the value itself where it is exact.

    It is shown with as many digits as its interval allows, and more where an end would look like the 0 that it is not.
    """

    value: float
    low: float
    high: float
    note: str = ""
    """How it was made, where that is not the usual way."""

    def __sub__(self, other: "Number") -> "Number":
        """Difference of two independent numbers, its interval from both (MOVER, Zou & Donner 2008).

        The distances from each value to the ends of its interval add up in squares, each end on its own. For numbers of
        paired runs the interval is too wide.
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
    """Three significant digits, whole from a thousand on."""
    return _signed(f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}")


def count(number: float, plural: str) -> str:
    """A count of things that are named by their plural."""
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
        fewest = f"{self.seeds} to " if self.seeds < self.most_seeds else ""
        return f"{games}, {fewest}{count(self.most_seeds, 'seeds')}, {count(self.frames, self.unit)}"


@dataclass(frozen=True)
class Quantity:
    """A number that can be looked up in tables."""

    tables: tuple[str, ...]
    number: Callable[[Tables], Number]
    sample: Callable[[Tables], Sample] | None = None
    """What a number over seeds stands on."""

    def __sub__(self, other: "Quantity") -> "Quantity":
        """One quantity minus another, of independent runs."""
        return Quantity(self.tables + other.tables, lambda tables: self.number(tables) - other.number(tables))

    def __truediv__(self, other: "Quantity") -> "Quantity":
        """One exact value over another."""
        return Quantity(
            self.tables + other.tables, lambda tables: exact(self.number(tables).value / other.number(tables).value)
        )


def column(
    table: str,
    value: str,
    where: Where | None = None,
    *,
    low: str = "",
    high: str = "",
    error: str = "",
    least: str = "",
    times: float = 1.0,
) -> Quantity:
    """One row's value ``times`` a factor, with its interval from two columns or from a standard error.

    The row is the one that fits ``where``; of several, that with the lowest number in the column ``least``.
    """

    def number(tables: Tables) -> Number:
        found = tables.rows(table, where)
        if len(found) > 1 and not least:
            raise UserError(f"{len(found)} rows of the table '{table}' fit {dict(where or {})}; one was meant")
        row = min(found, key=lambda row: row.known(least)) if least else found[0]
        middle, bottom, top, deviation = (
            times * row.known(name) if name else math.nan for name in (value, low, high, error)
        )
        if error:
            bottom, top = middle - NORMAL_95 * deviation, middle + NORMAL_95 * deviation
        elif not low:
            bottom = top = middle
        if bottom > top:
            what = f"a standard error of {deviation:g}" if error else f"an interval from {bottom:g} to {top:g}"
            raise UserError(
                f"the table '{row.path}' has {what} for {value}; its low end must not be above its high end"
            )
        return Number(middle, bottom, top)

    return Quantity((table,), number)


def over_rows(table: str, statistic: Callable[[list[Row]], float], where: Where | None = None) -> Quantity:
    """An exact number of all rows that fit."""
    return Quantity((table,), lambda tables: exact(statistic(tables.rows(table, where))))


def largest(table: str, value: str, where: Where | None = None) -> Quantity:
    """The largest number of a column."""
    return over_rows(table, lambda rows: max(row.known(value) for row in rows), where)


def distinct(table: str, value: str, where: Where | None = None) -> Quantity:
    """The number of different values of a column."""
    return over_rows(table, lambda rows: len({row.text(value) for row in rows}), where)


def paper(arm: str, statistic: str) -> Quantity:
    """A number of the paper's own final scores: games ``wins`` or ``losses`` against DQN, or the ``median`` score.

    The median is of human-normalised scores, with the Atari-57 human scores.
    """

    def number(_tables: Tables) -> Number:
        table = reference.paper_table()
        scores, base = (table[reference.PAPER_ARMS[name]].to_numpy() for name in (arm, "dqn"))
        if statistic == "median":
            normalised = statistics.human_normalised(scores, table["random"].to_numpy(), table["human"].to_numpy())
            return exact(float(statistics.median_score(normalised[None])))
        return exact(float(getattr(statistics.count_games(scores, base), statistic)))

    return Quantity((), number)


def exponent(table: str, value: str, over: str, where: Where) -> Quantity:
    """Slope of log ``value`` over log ``over`` with Student's interval of the least-squares line."""

    def number(tables: Tables) -> Number:
        found = np.array([[row.known(name) for name in (over, value)] for row in tables.rows(table, where)])
        if not (found > 0).all():
            raise UserError(f"{value} and {over} of the table '{table}' must be above 0 for a slope")
        if len(found) < 3:
            raise UserError(f"{len(found)} rows of the table '{table}' fit {dict(where)}; a slope needs three")
        line = scipy.stats.linregress(*np.log(found).T)
        half = statistics.student_quantile(len(found) - 2) * float(line.stderr)
        return Number(float(line.slope), float(line.slope) - half, float(line.slope) + half)

    return Quantity((table,), number)
