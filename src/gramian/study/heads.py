"""The heads of exported studies, and whether what they were written with is there, and as it was. Needs no polars."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gramian.core.errors import UserError
from gramian.core.files import EXPORT, files_below, replace_text

FORMAT = 1
TABLES = ("runs", "episodes", "metrics", "held_out")
SUFFIX = ".parquet"
REST = "beside.json"
"""Head, without tables, of what lies in no part of an exported study in parts, as its analysis does."""
BESIDE = "beside"
"""Key of the files that were written beside the tables, with the SHA-256 of each; names alone in older heads."""
OWN = "sha256"
"""Key of the SHA-256 of the head without it; older heads have none."""
PLANNED = ("plan.json", "study.toml")
"""What lies beside the tables of a planned study, in heads that do not say so themselves."""


def write_head(path: Path, *, tables: Sequence[str], beside: Sequence[str], **more: Any) -> None:
    """Write a head; ``tables`` and ``beside`` name files in its folder or below.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "plan.json").write_text("{}")
    >>> write_head(folder / REST, tables=[], beside=["plan.json"])
    >>> list(read_head(folder / REST)[BESIDE])
    ['plan.json']
    """

    def hashes(names: Sequence[str]) -> dict[str, str]:
        return {name: _sha256((path.parent / name).read_bytes()) for name in names}

    head = {"format": FORMAT, "files": hashes(tables), BESIDE: hashes(beside), **more}
    replace_text(path, json.dumps(head | {OWN: _sha256(_text(head))}, indent=1) + "\n")


def read_head(path: Path) -> dict[str, Any]:
    """What a head holds.

    Raises
    ------
    UserError
        If it is damaged or of another format, if a file is missing that was written with it, or if one beside the
        tables is not what was written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / EXPORT
    >>> _ = path.write_text('{"format": 1, "files": {"runs.parquet": "0"}, "beside": []}')
    >>> read_head(path)
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: the export '...' is not whole, missing: runs.parquet; export the study again
    """
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
        form, written = head["format"], list(head["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, repr(error)) from error
    if form != FORMAT:
        raise UserError(f"'{path}' has format {form!r}, not {FORMAT}; use the version that wrote it")
    own = head.pop(OWN, None)
    if own is not None and own != _sha256(_text(head)):
        raise damaged(path)
    beside = head.get(BESIDE, _planned(path.parent))
    missing = [name for name in (*written, *beside) if not (path.parent / str(name)).exists()]
    if missing:
        raise _not_whole(path.parent, missing)
    if isinstance(beside, Mapping):
        for name, sha256 in beside.items():
            check_file(path.parent / name, sha256)
    return dict(head)


def check_file(path: Path, sha256: str) -> None:
    """Make sure that a file is the one that was written.

    Raises
    ------
    UserError
        If it is not, or cannot be read.
    """
    try:
        same = _sha256(path.read_bytes()) == sha256
    except OSError as error:
        raise damaged(path, error) from error
    if not same:
        raise damaged(path)


def damaged(path: Path, why: object = "it is not what was written") -> UserError:
    """The error of a file of an export that is not as it was."""
    said = str(why).splitlines()[0] if str(why) else repr(why)
    return UserError(f"'{path}' is damaged ({said}); export the study again")


def check_exports(folder: Path) -> None:
    """Make sure that the exports in a folder and those below it have every file that they were written with.

    The tables themselves are compared with what was written when they are read.

    Raises
    ------
    UserError
        Naming the files that are missing, or the one that is not as it was.
    """
    for name in (EXPORT, REST):
        for path in files_below(folder, name):
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


def _text(head: Mapping[str, Any]) -> bytes:
    return json.dumps(head).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
