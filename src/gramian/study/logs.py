"""States and logs of the runs of a planned study, from its run folders or from an export of it.

Run folders are read without polars, as on the machine where a study was trained; an export needs it.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramian.core.csv_tables import read_numbers
from gramian.core.errors import UserError
from gramian.core.files import EXPORT
from gramian.study.plan import POPULATIONS, Population
from gramian.study.work import UNREADABLE, run_state

if TYPE_CHECKING:
    import polars as pl

    from gramian.study.packed import Packed

State = tuple[str, int, str]
"""State, agent steps and reason of a run; see `gramian.study.work.run_state`."""


class FolderLogs:
    """Of the run folders of a study. What is read of a log is of runs that have come to their end, so all of it."""

    def __init__(self, study: Path) -> None:
        self._study = study

    def state(self, population: Population, run: str) -> State:
        """How a run stands."""
        return run_state(self._study, population, run)

    def feature_norms(self, population: Population, run: str) -> list[float]:
        """The mean feature norms that a run has logged."""
        return [norm for (norm,) in self._numbers(population, run, "metrics.csv", ["feature_norm"])]

    def episodes(self, population: Population, run: str) -> list[tuple[float, float]]:
        """Frames and return of each episode of a run."""
        rows = self._numbers(population, run, "episodes.csv", ["frames", "raw_return"])
        return [(frames, value) for frames, value in rows]

    def _numbers(self, population: Population, run: str, name: str, columns: Sequence[str]) -> list[list[float]]:
        return read_numbers(self._study / POPULATIONS / population.id / run / name, columns)


class ExportLogs:
    """Of an export, in which no two runs have the same name; each table is read when it is asked for."""

    def __init__(self, packed: "Packed") -> None:
        self._packed = packed

    def state(self, population: Population, run: str) -> State:
        """How the run stood when it was exported."""
        if (found := self._states.get(f"{POPULATIONS}/{population.id}/{run}")) is None:
            return "waiting", 0, ""
        state, agent_steps, reason = found
        return ("unknown", 0, UNREADABLE) if agent_steps is None else (state, agent_steps, reason)

    def feature_norms(self, _population: Population, run: str) -> list[float]:
        """The mean feature norms that a run has logged."""
        if (own := self._metrics.get(run)) is None:
            return []
        if "feature_norm" not in own.columns:
            raise UserError(f"run '{run}' in '{self._packed.folder}' has no log of its feature norms")
        return [float(norm) for norm in own["feature_norm"].drop_nulls()]

    def episodes(self, _population: Population, run: str) -> list[tuple[float, float]]:
        """Frames and return of each episode of a run."""
        if (own := self._episodes.get(run)) is None:
            return []
        rows = own.select("frames", "return").drop_nulls()
        return [(float(frames), float(value)) for frames, value in rows.iter_rows()]

    @cached_property
    def _states(self) -> dict[str, list[Any]]:
        runs = self._packed.runs().select("folder", "state", "agent_steps", "reason")
        # one that has no status yet is planned in the tables of a study, and waiting in its plan
        return {folder: status for folder, *status in runs.iter_rows() if status[0] != "planned"}

    @cached_property
    def _metrics(self) -> "dict[str, pl.DataFrame]":
        return _by_run(self._packed.log("metrics"))

    @cached_property
    def _episodes(self) -> "dict[str, pl.DataFrame]":
        return _by_run(self._packed.log("episodes"))


def _by_run(log: "pl.DataFrame") -> "dict[str, pl.DataFrame]":
    return {str(run): rows for (run,), rows in log.group_by("run", maintain_order=True)}


def open_logs(study: Path) -> FolderLogs | ExportLogs:
    """The logs of the study in ``study``, which is its folder or that of its export.

    Examples
    --------
    >>> import tempfile
    >>> open_logs(Path(tempfile.mkdtemp())).state(Population("p000", ()), "pong-dqn-s0")
    ('waiting', 0, '')
    """
    if not (study / EXPORT).exists():
        return FolderLogs(study)
    from gramian.study.packed import Packed

    return ExportLogs(Packed(study / EXPORT))
