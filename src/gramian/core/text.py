"""Tables and numbers as plain text for the terminal."""

import math
from collections.abc import Callable, Sequence
from typing import Any

WIDTH = 80
"""Columns of a terminal."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], keys: int = 1) -> str:
    """Columns aligned for a terminal of 80: the first to the left, the others to the right.

    Columns that do not fit go into further tables below, each with the first ``keys`` columns again.

    Examples
    --------
    >>> print(text_table(["arm", "error"], [["plain", "0.01"], ["A", "10"]]))
    arm    error
    plain   0.01
    A         10
    >>> print(text_table(["arm", "error" * 7, "area" * 10], [["plain", "0.01", "7"]]))
    arm    errorerrorerrorerrorerrorerrorerror
    plain                                 0.01
    <BLANKLINE>
    arm    areaareaareaareaareaareaareaareaareaarea
    plain                                         7
    """
    table = [list(header), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    parts: list[list[int]] = []
    for i in range(keys, len(header)):
        if parts and sum(widths[j] + 2 for j in (*range(keys), *parts[-1])) + widths[i] <= WIDTH:
            parts[-1].append(i)
        else:
            parts.append([i])

    def line(row: Sequence[str], columns: list[int]) -> str:
        others = (row[i].rjust(widths[i]) for i in (*range(1, keys), *columns))
        return "  ".join([row[0].ljust(widths[0]), *others]).rstrip()

    return "\n\n".join("\n".join(line(row, columns) for row in table) for columns in parts)


def plus_minus(mean: float, error: float) -> str:
    """Write a mean with three significant digits and its standard error with two.

    Examples
    --------
    >>> plus_minus(0.0123456, 0.000456), plus_minus(512.3, 4.2)
    ('0.0123 ± 0.00046', '512 ± 4.2')
    >>> plus_minus(512.3, float("nan")), plus_minus(float("nan"), float("nan"))  # one run, none
    ('512', '–')
    """
    shown = three_digits(mean)
    return shown if math.isnan(error) else f"{shown} ± {error:.2g}"


def number(value: float, *, sign: bool = False, digits: int = 3) -> str:
    """Significant digits, thousands apart, a true minus; with its sign where it is a difference.

    Examples
    --------
    >>> number(-4136.2), number(0.01234, digits=2), number(3.5, sign=True), number(math.nan)
    ('−4,136', '0.012', '+3.50', '–')
    """
    if not math.isfinite(value):
        return "–"
    rounded = abs(float(f"{value:.{digits}g}"))  # 0.9999 has as many places as 1
    places = max(0, digits - 1 - math.floor(math.log10(rounded))) if rounded else 0
    text = f"{value:,.{min(places, 3)}f}"
    return (f"+{text}" if sign and value > 0 else text).replace("-", "−")


def three_digits(value: float) -> str:
    """Write a number with three significant digits, a large one with all before the point, and none as a dash."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def score_text(value: float) -> str:
    """Write a score: one decimal below 1,000, two below 10, none above; a dash where it is missing.

    Examples
    --------
    >>> score_text(12345.6), score_text(234.56), score_text(-20.7), score_text(0.443), score_text(float("nan"))
    ('12,346', '234.6', '-20.7', '0.44', '–')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 or value == 0 else f"{value:.2f}"


def bracketed(interval: Sequence[Any], show: Callable[[float], str] = score_text, unit: str = "") -> str:
    """Write an estimate with the ends of its interval, alone where they are NaN, as a dash where it is.

    Examples
    --------
    >>> bracketed((12.0, 9.5, 14.0)), bracketed((12.0, math.nan, math.nan)), bracketed((0.5, 0.4, 0.6), unit=" %")
    ('12.0 [9.50, 14.0]', '12.0', '0.50 % [0.40, 0.60]')
    """
    estimate, low, high = map(float, interval)
    if not math.isfinite(estimate):
        return "–"
    return show(estimate) + unit + (f" [{show(low)}, {show(high)}]" if math.isfinite(low) else "")
