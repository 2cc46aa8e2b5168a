"""Sweeps made of cells: computed over the cores, written as they finish, taken up again where they stopped."""

import json
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import __version__
from gramian.core.cores import cores
from gramian.core.errors import UserError, require, require_least, unknown
from gramian.core.files import output_folder, replace_text, replacing
from gramian.core.host_memory import available_host_bytes
from gramian.core.progress import Progress
from gramian.linear.learner import BETA, INITIALISATIONS, check_beta

Arrays = dict[str, NDArray[Any]]
Job = Callable[[NDArray[np.bool_]], Arrays]
"""Computes one cell. Its argument becomes true when the sweep is interrupted: the job may then return at once."""

MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class SweepOptions:
    """Options of every experiment that is made of runs."""

    out: Path
    """Folder for the tables, the figures and the finished cells."""
    runs: int
    """Independent runs."""
    beta: float = BETA
    """Rate of the running second-moment matrix."""
    init: str = "identity"
    """First A: identity, orthogonal or zero (zero leaves out the projected arms)."""
    seed: int = 0
    """Of all randomness."""
    threads: int = 0
    """Threads; 0 takes one per core. The results do not depend on it."""

    def __post_init__(self) -> None:
        require_least(self, 1, "runs")
        require(self.runs <= MOST_RUNS, "runs", f"{self.runs:,}", f"at most {MOST_RUNS:,}")
        check_beta(self.beta)
        if self.init not in INITIALISATIONS:
            raise unknown("initialisation", self.init, INITIALISATIONS)
        require_least(self, 0, "seed", "threads")

    def check_different(self, *names: str) -> None:
        """Raise `UserError` unless each of these options lists something, and nothing twice."""
        for name in names:
            values: tuple[object, ...] = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise UserError(f"{name} is {values}; give at least one, each once")

    @property
    def threads_used(self) -> int:
        """As many as ``threads`` says, or one per core."""
        return self.threads or cores()

    def sort(self, *names: str) -> None:
        """Sort the values of each of these options."""
        for name in names:
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))


def check_memory(needed: float, what: str, options: str) -> None:
    """Raise `UserError` where ``needed`` bytes do not fit into memory; ``options`` are those to lower."""
    if needed > (free := available_host_bytes()):
        raise UserError(
            f"not enough memory for {what}: {needed / 1e9:,.1f} GB are needed and {free / 1e9:,.1f} GB are free; "
            f"lower {options}"
        )


class Cells:
    """The finished cells in a folder; one whose ``configuration.json`` is another is refused."""

    def __init__(self, folder: Path, configuration: Mapping[str, Any]) -> None:
        wanted = json.loads(json.dumps({"version": __version__, **configuration}))
        self._check(folder, wanted)
        self.folder = output_folder(folder)
        self._cells = output_folder(folder / "cells")
        replace_text(folder / "configuration.json", json.dumps(wanted, indent=2, ensure_ascii=False) + "\n")

    @staticmethod
    def _check(folder: Path, wanted: Mapping[str, Any]) -> None:
        path = folder / "configuration.json"
        if not path.is_file():
            if (folder / "cells").is_dir():
                raise UserError(f"folder '{folder}' holds cells but no configuration.json; name another --out")
            return
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"cannot read '{path}': {error}; name another --out, or remove the folder") from error
        for key in sorted({*wanted, *found}):
            if wanted.get(key) != found.get(key):
                raise UserError(
                    f"folder '{folder}' holds results with {key} {found.get(key)}, not {wanted.get(key)}; "
                    "name another --out, or remove the folder"
                )

    def has(self, name: str) -> bool:
        """Whether the cell is finished."""
        return self._path(name).is_file()

    def save(self, name: str, arrays: Arrays) -> None:
        """Write a finished cell, whole or not at all."""
        with replacing(self._path(name)) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)

    def load(self, name: str) -> Arrays:
        """Arrays of a finished cell."""
        path = self._path(name)
        try:
            with np.load(path, allow_pickle=False) as archive:
                return dict(archive)
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise UserError(f"cannot read the cell '{path}', it is damaged; remove it and run again") from error

    def _path(self, name: str) -> Path:
        return self._cells / f"{name}.npz"


def run_cells(
    cells: Cells,
    jobs: Mapping[str, Job],
    *,
    threads: int,
    description: str,
    unit: str = "cell",
    prepare: Callable[[], object] = lambda: None,
) -> None:
    """Compute the missing cells of ``jobs``, ``threads`` at a time, and save each as it finishes.

    ``prepare`` compiles, before the pace is counted. An interrupt lets running jobs see ``stop``, drops the others and
    is passed on; what has finished stays.
    """
    missing = {name: job for name, job in jobs.items() if not cells.has(name)}
    if missing:
        prepare()
    stop = np.zeros(1, dtype=bool)
    waiting = iter(missing.items())
    with (
        Progress(len(jobs), description, unit=unit, done=len(jobs) - len(missing)) as progress,
        ThreadPoolExecutor(threads) as pool,
    ):
        running: dict[Future[Arrays], str] = {}
        try:
            while True:
                while len(running) < threads and (item := next(waiting, None)) is not None:
                    running[pool.submit(item[1], stop)] = item[0]
                if not running:
                    return
                # an endless wait would not see Ctrl-C where a library (polars) has taken the signal
                finished, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    name = running.pop(future)
                    cells.save(name, future.result())
                    progress.advance()
        except BaseException:
            stop[0] = True  # the kernels look at it between episodes
            raise


def run_blocks(
    options: SweepOptions, command: str, size: int, block: Callable[[range, NDArray[np.bool_]], Arrays]
) -> list[Arrays]:
    """The arrays of every ``block`` of ``size`` runs; those that are missing in the folder are computed."""
    configuration = {key: value for key, value in asdict(options).items() if key not in ("out", "threads", "quick")}
    cells = Cells(options.out, {"command": command, **configuration})
    blocks = [range(start, min(start + size, options.runs)) for start in range(0, options.runs, size)]
    jobs = {f"runs-{runs.start:06d}-{runs.stop:06d}": partial(block, runs) for runs in blocks}
    run_cells(cells, jobs, threads=options.threads_used, description=command, unit="block")
    return [cells.load(name) for name in jobs]
