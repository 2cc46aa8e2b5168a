"""Numbers taken from tables. Each kind is a frozen dataclass whose fields are its keys in ``ledger.toml``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.stats

from gramian.claims.number import Number
from gramian.claims.tables import Tables
from gramian.core import statistics
from gramian.core.csv_tables import Row
from gramian.core.errors import UserError, unknown
from gramian.report import reference

NORMAL_95 = 1.959964


class Quantity(Protocol):
    """Anything that can be looked up in the tables."""

    def number(self, tables: Tables) -> Number:
        """The value with its interval."""


@dataclass(frozen=True)
class Column:
    r"""One row's value, with its interval from two columns (``low``, ``high``) or from a standard error (``error``).

    The row is the one that fits ``where``; of several, that with the lowest number in the column ``least``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "t.csv").write_text("arm,steps,low,high\na,5,4,6\nb,9,7,11\n")
    >>> print(Column("t.csv", "steps", low="low", high="high", where={"arm": "b"}).number(Tables(folder)))
    9.0 [7.0, 11.0]
    """

    table: str
    value: str
    low: str = ""
    high: str = ""
    error: str = ""
    least: str = ""
    times: float = 1.0
    """What the numbers are multiplied by."""
    where: Mapping[str, str | float] = field(default_factory=dict)

    def number(self, tables: Tables) -> Number:
        """The value of the row."""
        row = self._row(tables)
        value, low, high, error = (
            self.times * tables.known(self.table, row, column) if column else math.nan
            for column in (self.value, self.low, self.high, self.error)
        )
        if self.error:
            low, high = value - NORMAL_95 * error, value + NORMAL_95 * error
        elif not self.low:
            low = high = value
        if low > high:
            found = f"a standard error of {error:g}" if self.error else f"an interval from {low:g} to {high:g}"
            raise UserError(
                f"the table '{tables.folder / self.table}' has {found} for {self.value}; its low end must not be above "
                "its high end"
            )
        return Number(value, low, high)

    def _row(self, tables: Tables) -> Row:
        rows = tables.select(self.table, self.where)
        if self.least:
            return min(rows, key=lambda row: tables.known(self.table, row, self.least))
        if len(rows) > 1:
            raise UserError(f"{len(rows)} rows of the table '{self.table}' fit {dict(self.where)}; one was meant")
        return rows[0]


@dataclass(frozen=True)
class Difference:
    """One quantity less another, of independent runs (`Number.minus`)."""

    first: Quantity
    second: Quantity

    def number(self, tables: Tables) -> Number:
        """The difference."""
        return self.first.number(tables).minus(self.second.number(tables))


@dataclass(frozen=True)
class Ratio:
    """One exact value over another."""

    first: Quantity
    second: Quantity

    def number(self, tables: Tables) -> Number:
        """The ratio, without an interval."""
        ratio = self.first.number(tables).value / self.second.number(tables).value
        return Number(ratio, ratio, ratio)


@dataclass(frozen=True)
class Largest:
    """The largest number of a column over all rows that fit."""

    table: str
    value: str
    where: Mapping[str, str | float] = field(default_factory=dict)

    def number(self, tables: Tables) -> Number:
        """The largest, which is exact."""
        largest = max(tables.known(self.table, row, self.value) for row in tables.select(self.table, self.where))
        return Number(largest, largest, largest)


@dataclass(frozen=True)
class Distinct:
    """How many different values a column has in the rows that fit."""

    table: str
    value: str
    where: Mapping[str, str | float] = field(default_factory=dict)

    def number(self, tables: Tables) -> Number:
        """The count."""
        rows = tables.select(self.table, self.where)
        count = float(len({tables.text(self.table, row, self.value) for row in rows}))
        return Number(count, count, count)


@dataclass(frozen=True)
class Rows:
    """How many rows fit."""

    table: str
    where: Mapping[str, str | float] = field(default_factory=dict)

    def number(self, tables: Tables) -> Number:
        """The count."""
        count = float(len(tables.select(self.table, self.where)))
        return Number(count, count, count)


@dataclass(frozen=True)
class PaperTable:
    """A number of the paper's own table of final scores, which is shipped with the package.

    ``statistic`` is ``won`` (games in which ``arm`` is ahead of DQN), ``lost`` or ``median`` (of the human-normalised
    scores, with the Atari-57 human scores).
    """

    arm: str
    statistic: str

    def number(self, tables: Tables) -> Number:  # noqa: ARG002 - the table is not among the results
        """The number, which is exact."""
        table = reference.paper_table()
        scores, base = (table[reference.PAPER_ARMS[arm]].to_numpy() for arm in (self.arm, "dqn"))
        count = statistics.count_games(scores, base)
        normalised = statistics.human_normalised(scores, table["random"].to_numpy(), table["human"].to_numpy())
        found = {"won": count.wins, "lost": count.losses, "median": float(statistics.median_score(normalised[None]))}
        if self.statistic not in found:
            raise unknown("statistic", self.statistic, found)
        value = float(found[self.statistic])
        return Number(value, value, value)


@dataclass(frozen=True)
class Exponent:
    """Slope of log ``value`` over log ``over``: the value grows as over^slope.

    The interval is that of the least-squares line, by Student's t.
    """

    table: str
    value: str
    over: str
    where: Mapping[str, str | float] = field(default_factory=dict)

    def number(self, tables: Tables) -> Number:
        """The exponent."""
        rows = tables.select(self.table, self.where)
        found = np.array([[tables.known(self.table, row, name) for name in (self.over, self.value)] for row in rows])
        if not (found > 0).all():
            raise UserError(f"{self.value} and {self.over} of the table '{self.table}' must be above 0 for a slope")
        sizes, values = np.log(found).T
        if len(rows) < 3:
            raise UserError(f"{len(rows)} rows of the table '{self.table}' fit {dict(self.where)}; a slope needs three")
        line = scipy.stats.linregress(sizes, values)
        half = float(scipy.stats.t.ppf(0.975, len(rows) - 2) * line.stderr)
        return Number(float(line.slope), float(line.slope) - half, float(line.slope) + half)
