"""What all benchmarks share: options, errors of one line, medians and tables."""

import argparse
import csv
import io
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import output_folder, replace_text


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line; exit code 2.

    Parameters
    ----------
    name
        Of the benchmark's module.
    description
        Shown by ``--help`` as it stands.
    """

    def __init__(self, name: str, description: str | None) -> None:
        super().__init__(
            prog=f"python -m benchmarks.{name}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser.error`."""
        self.exit(2, f"{self.prog.removeprefix('python -m ')}: {message}\n")


def exit_code(name: str, work: Callable[[], object]) -> int:
    """Do the work of a benchmark; an error becomes one line on standard error and the exit code."""
    try:
        work()
    except UserError as error:
        code, line = 2, str(error)
    except WorkFailed as error:
        code, line = 1, str(error)
    except KeyboardInterrupt:
        code, line = 130, "interrupted"
    else:
        return 0
    print(f"benchmarks.{name}: {line}", file=sys.stderr)
    return code


def whole(least: int, most: int) -> Callable[[str], int]:
    """The type of an option: an integer in a range.

    Examples
    --------
    >>> whole(1, 1000)("12")
    12
    >>> whole(1, 1000)("0")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: it is '0'; give a whole number from 1 to 1,000
    """

    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"it is {text!r}; give a whole number from {least:,} to {most:,}")
        return int(text)

    return number


def seconds(text: str) -> float:
    """The type of an option: a time of more than 0 and at most a day.

    Examples
    --------
    >>> seconds("0.5")
    0.5
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"it is {text!r}; give seconds, more than 0 and at most 86,400")
    return value


def new_folder(text: str) -> Path:
    """The type of an option: a folder to write into, made where it is missing."""
    try:
        return output_folder(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def new_file(text: str) -> Path:
    """The type of an option: a file to write, whose folder is made where it is missing.

    Examples
    --------
    >>> new_file("times.csv")
    PosixPath('times.csv')
    """
    file = Path(text)
    if file.exists() and not file.is_file():
        what = "a folder" if file.is_dir() else "no ordinary file"
        raise argparse.ArgumentTypeError(f"cannot write '{file}': it is {what}; name a file")
    new_folder(str(file.parent))
    return file


def new_picture(text: str) -> Path:
    """The type of an option: a PNG to write."""
    if not text.endswith(".png"):
        raise argparse.ArgumentTypeError(f"cannot write '{text}': it is to be a picture; let its name end in .png")
    return new_file(text)


def spread(values: Sequence[float], digits: int) -> str:
    """Median and range; of a single value, that value.

    Examples
    --------
    >>> spread([1234.5, 1000.0, 1500.0], 0)
    '1,234 (1,000–1,500)'
    """
    ends = f" ({min(values):,.{digits}f}–{max(values):,.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.median(values):,.{digits}f}{ends}"


def table(header: Sequence[str], lines: Iterable[Sequence[str]], words: int = 1) -> str:
    """Markdown; so many columns to the left and the others to the right.

    Examples
    --------
    >>> print(table(["piece", "µs"], [["act", "277"]]), end="")
    | piece | µs |
    | --- | ---: |
    | act | 277 |
    """
    marks = ["---" if at < words else "---:" for at in range(len(header))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, marks, *lines))


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    replace_text(path, text.getvalue())
