"""A number with its 95 % interval."""

import math
import re
from dataclasses import dataclass

MOST_PLACES = 6
"""After the point; an end that is nearer to 0 is shown as 0."""


@dataclass(frozen=True)
class Number:
    """A measured value and the ends of its 95 % interval; both ends are the value itself where it is exact.

    It is shown with as many digits as its interval allows, and more where an end would look like the 0 that it is not.

    Examples
    --------
    >>> print(Number(-4513.2916, -4524.4, -4502.96), Number(0.5, 0.5, 0.5), Number(0.647, -12.63, 14.94))
    −4,513 [−4,524, −4,503] 0.5 1 [−13, 15]
    >>> print(Number(0.12, 0.004, 0.24))
    0.120 [0.004, 0.240]
    >>> print(Number(0.5, 0.4, 0.6, note="unpaired"))
    0.50 [0.40, 0.60] (unpaired)
    """

    value: float
    low: float
    high: float
    note: str = ""
    """How it was made, where that is not the usual way."""

    def minus(self, other: "Number") -> "Number":
        """Difference of two independent numbers, its interval from both (MOVER, Zou & Donner 2008).

        The distances from each value to the ends of its interval add up in squares, each end on its own, so that a
        skewed interval stays skewed. For numbers of paired runs the interval is wider than it need be.

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


def shown(value: float) -> str:
    """A number for a reader: three significant digits, whole from a thousand on.

    Examples
    --------
    >>> shown(-4513.29), shown(0.0011608), shown(99.96), shown(1e-15), shown(0.0)
    ('−4,513', '0.00116', '100', '1e-15', '0')
    """
    return _signed(f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}")


def count(number: float, plural: str) -> str:
    """So many of something that has its plural for a name, as in the ledger's ``needs``.

    `gramian.core.progress.counted` takes the singular, of which "processes" could not be made.

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
