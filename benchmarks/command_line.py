"""What the command lines of all benchmarks share: errors of one line, and places that are checked before the work."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from gramian.core.errors import UserError
from gramian.core.files import output_folder


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, without the usage before it; the exit code is 2.

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


def complain(name: str, error: Exception) -> None:
    """Say on standard error what is wrong, as a `Parser` does.

    Parameters
    ----------
    name
        Of the benchmark's module.
    error
        A person is to read it.
    """
    print(f"benchmarks.{name}: {error}", file=sys.stderr)


def whole(least: int, most: int) -> Callable[[str], int]:
    """An option's value that is a whole number in a range.

    Examples
    --------
    >>> whole(1, 1000)("12")
    12
    >>> whole(1, 1000)("0")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: it is 0; give a whole number from 1 to 1,000
    """

    def number(text: str) -> int:
        right = f"give a whole number from {least:,} to {most:,}"
        try:
            value = int(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"it is {text!r}; {right}") from error
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"it is {value}; {right}")
        return value

    return number


def check_folder(folder: Path) -> None:
    """Make sure that files can be written into a folder; one that is not there is not left behind.

    Raises
    ------
    UserError
        If it is a file, or cannot be created or written.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    output_folder(folder)
    for place in missing:
        place.rmdir()


def check_file(file: Path, suffix: str = "") -> None:
    """Make sure that a file can be written, so that nobody learns of it after the work.

    Parameters
    ----------
    file
        May exist, and is not touched.
    suffix
        Of its name, where what is written has one format.

    Raises
    ------
    UserError
        If the name ends otherwise, if something else than a file has it, or if its folder cannot be written.

    Examples
    --------
    >>> check_file(Path("curves.pdf"), ".png")
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: cannot write 'curves.pdf': it is to be a picture; let its name end in .png
    """
    if file.exists() and not file.is_file():
        reason = "it is a folder" if file.is_dir() else "it is no ordinary file"
        raise UserError(f"cannot write '{file}': {reason}; name a file")
    if suffix and file.suffix != suffix:
        raise UserError(f"cannot write '{file}': it is to be a picture; let its name end in {suffix}")
    check_folder(file.parent)


def _place(text: str, check: Callable[[Path], None]) -> Path:
    place = Path(text)
    try:
        check(place)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return place


def new_folder(text: str) -> Path:
    """An option's value that names a folder to be written into.

    Examples
    --------
    >>> new_folder(".")
    PosixPath('.')
    """
    return _place(text, check_folder)


def new_file(text: str) -> Path:
    """An option's value that names a file to be written.

    Examples
    --------
    >>> new_file("times.csv")
    PosixPath('times.csv')
    """
    return _place(text, check_file)


def new_picture(text: str) -> Path:
    """An option's value that names a PNG to be written.

    Examples
    --------
    >>> new_picture("curves.png")
    PosixPath('curves.png')
    """
    return _place(text, lambda file: check_file(file, ".png"))
