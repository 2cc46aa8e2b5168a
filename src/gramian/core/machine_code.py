"""Machine code of compiled kernels, kept on the disk from one process to the next.

numba's own cache notices a change in a kernel's file alone, not in the kernels that it calls. So a folder holds the
code of one state of all kernels: its name is a hash of the modules that have kernels, of numba's version and of
Python's. It lies below the user's cache folder, or below NUMBA_CACHE_DIR where that is set, and belongs to the user
alone, because what lies in it is run. The folders that were used last are kept.

Without a folder to write to, with a full disk or a damaged file, kernels are compiled.
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

_config: Any = numba.config  # its names are made when numba starts

PACKAGE = Path(__file__).parents[1]

FOLDERS_KEPT = 4
"""Folders of different sources or versions that may stand side by side: of two checkouts, or of two Pythons, say."""


def sources_key(package: Path) -> str:
    """Hash of the modules of ``package`` that import `gramian.core.compiled`, and of the versions that compile them."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {numba.__version__}".encode())
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        if path.name == "compiled.py" or b"gramian.core.compiled" in content:
            digest.update(f"\n{path.relative_to(package)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def cache_home() -> Path:
    """Folder in which programs keep what they can make again."""
    if _config.CACHE_DIR:
        return Path(_config.CACHE_DIR)
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def folder_in(home: Path, key: str) -> Path | None:
    """Folder for the code of ``key`` below ``home``, made where it is missing; None where others could write to it."""
    folder = home / "gramian" / f"kernels-{key}"
    new = not folder.is_dir()
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        return None
    os.utime(folder)  # used just now
    with tempfile.TemporaryFile(dir=folder):
        pass
    if new:
        _remove_old(folder.parent)
    return folder


def _remove_old(parent: Path) -> None:
    """Remove all folders of code except those that were used last."""
    with contextlib.suppress(OSError):
        folders = [path for path in parent.iterdir() if re.fullmatch(r"kernels-[0-9a-f]{16}", path.name)]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for folder in folders[FOLDERS_KEPT:]:
            # Renamed, it is gone at once for a process that works in it: no file of it is found without its lock.
            doomed = folder.rename(parent / f"removed-{uuid.uuid4().hex}")
            shutil.rmtree(doomed, ignore_errors=True)


@cache
def _folder() -> Path | None:
    """Folder of this process; None where there is none that can be used."""
    try:
        return folder_in(cache_home(), sources_key(PACKAGE))
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return None


class Kept(FunctionCache):
    """numba's cache of one kernel, with what it lacks: a lock, and the same code every time.

    Saving replaces two files, and two processes at once could give one name to different code. A kernel's code holds
    copies of the kernels that it calls, rounded in another order, which are called where the kernel itself is not
    loaded; so those are loaded first.
    """

    _impl_class: Any = FunctionCache._impl_class

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was compiled for ``signature``, or None where there is nothing that can be used."""
        try:
            for called in self._called():
                for known in called._cache.signatures(target):
                    called.compile(known)
            with self._locked(fcntl.LOCK_SH):
                return super().load_overload(signature, target)
        except Exception:  # a damaged file can raise anything: then the kernel is compiled
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for ``signature``, if that is possible."""
        with contextlib.suppress(OSError), self._locked(fcntl.LOCK_EX):
            try:
                super().save_overload(signature, compiled)
            except OSError:
                raise
            except Exception:  # a damaged index can raise anything: then there is a new one
                self.flush()
                super().save_overload(signature, compiled)

    def signatures(self, target: Any) -> list[Any]:
        """Signatures for which code is kept that runs on this processor."""
        with self._locked(fcntl.LOCK_SH):
            index = self._cache_file._load_index()
        return [signature for signature, machine, _ in index if machine == target.codegen().magic_tuple()]

    def _called(self) -> list[Any]:
        found = [self._py_func.__globals__.get(name) for name in self._py_func.__code__.co_names]
        return [value for value in found if isinstance(getattr(value, "_cache", None), Kept)]

    @contextlib.contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        with Path(self.cache_path).parent.joinpath("lock").open("ab") as file:
            fcntl.flock(file, kind)
            yield


def keep(dispatcher: Any) -> Any:
    """Let ``dispatcher``, a function of the package that numba compiles, use and fill the cache."""
    function = getattr(dispatcher, "py_func", None)  # there is none where numba is told to compile nothing
    if function is None or not Path(function.__code__.co_filename).is_relative_to(PACKAGE):
        return dispatcher
    folder, before = _folder(), _config.CACHE_DIR
    if folder is not None:
        try:
            _config.CACHE_DIR = str(folder)
            dispatcher._cache = Kept(function)
        finally:
            _config.CACHE_DIR = before
    return dispatcher
