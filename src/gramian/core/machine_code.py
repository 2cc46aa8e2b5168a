"""Machine code of compiled kernels, kept on the disk from one process to the next.

numba can keep it, but notices a change in a kernel's own file only: not in the kernels that it calls, nor in the
constants that it takes from elsewhere. So a folder holds the code of one state of all kernels: its name is a hash
of the modules that have kernels, of numba's version and of Python's. It lies below the user's cache folder, or below
NUMBA_CACHE_DIR where that is set, and belongs to the user alone: what lies in it is run. The folders that were used
last are kept, older ones are removed.

Keeping is never in the way: without a folder to write to, with a full disk or a damaged file, kernels are compiled.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

_config: Any = numba.config  # its names are made when numba starts

PACKAGE = Path(__file__).parents[1]

FOLDERS_KEPT = 4
"""Folders of different sources or versions that may stand side by side: of two checkouts, or of two Pythons, say."""


def sources_key(package: Path) -> str:
    """Hash of the modules of ``package`` that have kernels, and of the versions that compile them.

    A module has kernels if it imports `gramian.core.compiled`, which counts too. A kernel takes nothing from others.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "kernels.py").write_text("import gramian.core.compiled; ONE = 1")
    >>> before = sources_key(folder)
    >>> _ = (folder / "kernels.py").write_text("import gramian.core.compiled; ONE = 2")
    >>> len(before), sources_key(folder) == before
    (16, False)
    """
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {numba.__version__}".encode())
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        if path.name != "compiled.py" and b"gramian.core.compiled" not in content:
            continue
        digest.update(f"\n{path.relative_to(package)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def cache_home() -> Path | None:
    """Folder in which programs keep what they can make again, or None if there is none."""
    if _config.CACHE_DIR:
        return Path(_config.CACHE_DIR)
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def folder_in(home: Path, key: str) -> Path | None:
    """Return the folder for the code of ``key`` below ``home``, made where it is missing; None if it cannot be used.

    Another user could put code into a folder that is not this user's alone: such a one is not used.

    Examples
    --------
    >>> folder_in(Path(tempfile.mkdtemp()), "0123456789abcdef").name
    'kernels-0123456789abcdef'
    """
    folder = home / "gramian" / f"kernels-{key}"
    try:
        new = not folder.is_dir()
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            return None
        os.utime(folder)  # used just now
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return None
    if new:
        _remove_old(folder.parent)
    return folder


def _remove_old(parent: Path) -> None:
    """Remove all folders of code but those that were used last."""
    with contextlib.suppress(OSError):
        folders = [path for path in parent.iterdir() if re.fullmatch(r"kernels-[0-9a-f]{16}", path.name)]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for folder in folders[FOLDERS_KEPT:]:
            # Renamed, it is gone at once for a process that works in it: no file of it is found without its lock.
            doomed = folder.rename(parent / f"removed-{uuid.uuid4().hex}")
            shutil.rmtree(doomed, ignore_errors=True)


@cache
def _folder() -> Path | None:
    """Return the folder of this process."""
    home = cache_home()
    try:
        return None if home is None else folder_in(home, sources_key(PACKAGE))
    except OSError:  # the sources cannot be read
        return None


class Kept:
    """What numba asks for code and gives code to: its own cache of one kernel, under a lock and without its errors.

    A process that saves changes two files, an index and the code itself. Each is replaced at once, but two processes
    could name their code alike; so they take turns.
    """

    def __init__(self, function: Any, files: Any, lock: Path) -> None:
        self._function, self._files, self._lock = function, files, lock

    @property
    def cache_path(self) -> str:
        """Where the files are."""
        return str(self._files.cache_path)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled for ``signature``, or None if there is nothing that can be used.

        The kernels that this one calls are loaded first. Its code holds copies of them, optimised anew among its own
        and so rounded in another order; but where there is a kernel itself, it is called and not the copy. So it is
        when everything is compiled, and results must not depend on whether it was.
        """
        try:
            for called in self._called():
                for known in called._cache.signatures(target):
                    called.compile(known)
            with self._locked(fcntl.LOCK_SH):
                return self._files.load_overload(signature, target)
        except Exception:  # a damaged file can raise anything: then the kernel is compiled
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for ``signature``, if that is possible."""
        with contextlib.suppress(OSError), self._locked(fcntl.LOCK_EX):
            try:
                self._files.save_overload(signature, compiled)
            except OSError:
                raise
            except Exception:  # a damaged index can raise anything: then there is a new one
                self._files.flush()
                self._files.save_overload(signature, compiled)

    def signatures(self, target: Any) -> list[Any]:
        """List the signatures for which code is kept that runs on this processor."""
        with self._locked(fcntl.LOCK_SH):
            index = self._files._cache_file._load_index()
        return [signature for signature, machine, _ in index if machine == target.codegen().magic_tuple()]

    def _called(self) -> list[Any]:
        names = self._function.__code__.co_names
        found = [self._function.__globals__.get(name) for name in names]
        return [value for value in found if isinstance(getattr(value, "_cache", None), Kept)]

    def flush(self) -> None:
        """Forget all that is kept of this kernel."""
        with contextlib.suppress(OSError), self._locked(fcntl.LOCK_EX):
            self._files.flush()

    @contextlib.contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        with self._lock.open("ab") as file:
            fcntl.flock(file, kind)
            yield


def keep(compiled: Any) -> Any:
    """Let ``compiled``, a function that numba compiles, use code that is kept, and keep what it compiles.

    Nothing is kept of functions outside the package: the folder's name says nothing of their sources.
    """
    if not isinstance(compiled, Dispatcher):  # numba is told to compile nothing
        return compiled
    dispatcher: Any = compiled
    path = Path(dispatcher.py_func.__code__.co_filename)
    folder = _folder() if path.is_relative_to(PACKAGE) else None
    if folder is not None:
        before = _config.CACHE_DIR
        try:
            _config.CACHE_DIR = str(folder)
            files = FunctionCache(dispatcher.py_func)
        finally:
            _config.CACHE_DIR = before
        if Path(files.cache_path).is_relative_to(folder):  # numba can be told to look elsewhere
            dispatcher._cache = Kept(dispatcher.py_func, files, folder / "lock")
    return dispatcher
