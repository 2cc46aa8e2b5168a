"""The heads of exported studies, and whether what they were written with is there. Reads files, without polars."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gramian.errors import UserError
from gramian.files import EXPORT, files_below

FORMAT = 1
TABLES = ("runs", "episodes", "metrics", "held_out")
SUFFIX = ".parquet"
BESIDE = "beside"
"""Key of the names of the files that were written beside the tables."""
PLANNED = ("plan.json", "study.toml")
"""What lies beside the tables of a planned study, in heads that do not say so themselves."""


def read_head(path: Path) -> dict[str, Any]:
    """What an ``export.json`` holds.

    Raises
    ------
    UserError
        If it is damaged or of another format, or if a file is missing that was written with it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / EXPORT
    >>> _ = path.write_text('{"format": 1, "files": {"runs.parquet": "0"}, "beside": []}')
    >>> read_head(path)
    Traceback (most recent call last):
    ...
    gramian.errors.UserError: the export '...' is not whole, missing: runs.parquet; export the study again
    """
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
        form, written = head["format"], list(head["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}); export the study again") from error
    if form != FORMAT:
        raise UserError(f"'{path}' has format {form!r}, not {FORMAT}; use the version that wrote it")
    beside = head.get(BESIDE, _planned(path.parent))
    missing = [name for name in (*written, *beside) if not (path.parent / str(name)).exists()]
    if missing:
        raise _not_whole(path.parent, missing)
    return dict(head)


def check_exports(folder: Path) -> None:
    """Make sure that the exports in a folder and those below it have every file that they were written with.

    Raises
    ------
    UserError
        Naming the files that are missing.
    """
    for path in files_below(folder, EXPORT):
        read_head(path)
    for path in files_below(folder, f"{TABLES[0]}{SUFFIX}"):
        others = ((path.parent / f"{name}{SUFFIX}").exists() for name in TABLES)
        if all(others) and not (path.parent / EXPORT).exists():
            raise _not_whole(path.parent, [EXPORT])


def _planned(folder: Path) -> Sequence[str]:
    """What was written beside the tables where the head does not say: all of `PLANNED` where there is a trace of it."""
    return PLANNED if any((folder / name).exists() for name in (*PLANNED, "populations")) else ()


def _not_whole(folder: Path, missing: Sequence[str]) -> UserError:
    return UserError(f"the export '{folder}' is not whole, missing: {', '.join(missing)}; export the study again")
