"""Files that are either whole or absent: everything the package writes goes through here."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gramian.core.errors import UserError

EXPORT = "export.json"
"""Head of an exported study: tables without weights, see `gramian.study.export`."""


def output_folder(path: str | Path) -> Path:
    """Create ``path`` where it is missing and make sure that files can be written into it."""
    folder = Path(path)
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        for parent in made:  # leave nothing behind that was not there before
            if parent.is_dir():
                parent.rmdir()
        reason = "it is a file" if folder.is_file() else (error.strerror or str(error)).lower()
        raise UserError(f"cannot write to folder '{folder}': {reason}; name a folder that you can write to") from error
    return folder


def durable_folder(path: Path) -> None:
    """Create ``path`` in its folder, so that it is there after a crash as soon as anything in it is."""
    if not path.is_dir():
        path.mkdir(exist_ok=True)
        _sync(path.parent)


def files_below(root: Path, name: str) -> list[Path]:
    """The files of a name in a folder and those below it, by path; folders that begin with a dot are left out."""
    found = []
    for folder, below, files in os.walk(root):
        below[:] = [own for own in below if not own.startswith(".")]
        if name in files:
            found.append(Path(folder) / name)
    return sorted(found)


def plan_paths(root: Path) -> list[Path]:
    """The plan in a study's folder, or those of its parts in the folders below."""
    if (root / "plan.json").exists():
        return [root / "plan.json"]
    return [path for path in files_below(root, "plan.json") if (path.parent / "populations").is_dir()]


def find_export(folder: Path) -> Path | None:
    """The folder of an exported study that ``folder`` is, lies in or holds; None where there is none."""
    above = (path for path in (folder, *folder.parents) if (path / EXPORT).exists())
    below = (path.parent for path in files_below(folder, EXPORT))
    return next(above, None) or next(below, None)


def file_name(name: object, where: Path | str) -> str:
    """A name that was read from the file ``where`` and is to name a file: nothing is written elsewhere."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise UserError(f"'{where}' has the name {name!r}, which no file can have; it is damaged")
    return name


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    r"""Give a temporary path to write to; when the block ends well, it takes the place of ``path`` at once.

    The temporary file lies beside ``path`` with the same suffix. It is flushed to the disk before the rename, and so
    is the folder after it: a crash leaves either the old file or the new one.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "table.csv") as temporary:
    ...     _ = temporary.write_text("a,b\n")
    >>> [p.name for p in folder.iterdir()]
    ['table.csv']
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a crash leaves either the old content or the new one."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def replace_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a crash leaves either the old content or the new one."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` while the block runs. It is free again when the process ends, however it ends."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"another process is at work in '{path.parent}'; wait for it, or stop it first") from error
        yield


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
