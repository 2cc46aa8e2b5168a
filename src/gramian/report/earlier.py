"""The files of an earlier report in the same folder: what the next one does not write is removed, and nothing else."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from gramian.core.files import replace_text

LIST = "report-files.json"
"""Names and SHA-256 of what a report has written beside its page."""
FORMAT = 1


def replace_earlier(folder: Path, written: Iterable[Path]) -> list[Path]:
    """Remove what the report before this one wrote and this one did not, and note what this one wrote.

    A file is known by its name and its content in the list that the earlier report has left: one that somebody has
    changed since, or put there, stays.

    Parameters
    ----------
    folder
        Of the report.
    written
        Its files.

    Returns
    -------
    list
        What was removed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("pong.png", "qbert.png", "mine.png"):
    ...     _ = (folder / name).write_text(name)
    >>> replace_earlier(folder, [folder / "pong.png", folder / "qbert.png"])
    []
    >>> [path.name for path in replace_earlier(folder, [folder / "qbert.png"])]
    ['pong.png']
    >>> sorted(path.name for path in folder.iterdir())
    ['mine.png', 'qbert.png', 'report-files.json']
    """
    now = {path.relative_to(folder).as_posix(): _digest(path) for path in written}
    earlier = [
        folder / name for name, digest in _noted(folder).items() if name not in now and _is(folder, name, digest)
    ]
    for path in earlier:
        path.unlink()
        with suppress(OSError):  # others have files in it, or it is the report's own
            path.parent.rmdir()
    noted = {"format": FORMAT, "files": dict(sorted(now.items()))}
    replace_text(folder / LIST, json.dumps(noted, indent=1) + "\n")
    return earlier


def _noted(folder: Path) -> dict[str, str]:
    """The list of an earlier report; empty where there is none that can be read."""
    try:
        noted = json.loads((folder / LIST).read_text(encoding="utf-8"))
        return {str(name): str(digest) for name, digest in noted["files"].items()} if noted["format"] == FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _is(folder: Path, name: str, digest: str) -> bool:
    """Whether the file of a list is in the folder, and still what was written."""
    place = PurePosixPath(name)
    inside = not place.is_absolute() and ".." not in place.parts
    path = folder / place
    return inside and path.is_file() and not path.is_symlink() and _digest(path) == digest


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
