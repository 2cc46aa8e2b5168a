"""A planned study with all its runs, in its own folder or in those of its parts."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramian.core.errors import UserError
from gramian.core.files import plan_paths
from gramian.deep.training.config import RunSpec
from gramian.study.heads import check_exports
from gramian.study.logs import ExportLogs, FolderLogs, State, open_logs
from gramian.study.parts import in_no_part
from gramian.study.plan import STUDY, Plan, Population, read_plan
from gramian.study.states import SETTLED


@dataclass(frozen=True)
class LoggedRun:
    """A run of a study, and where to read of it."""

    spec: RunSpec
    folder: Path
    """Of the study, or of the part of it that the run is in."""
    population: Population
    logs: FolderLogs | ExportLogs

    @property
    def state(self) -> State:
        """How it stands."""
        return self.logs.state(self.population, self.spec.name)

    def feature_norms(self) -> list[float]:
        """The mean feature norms that it has logged.

        Raises
        ------
        UserError
            If there are none.
        """
        norms = self.logs.feature_norms(self.population, self.spec.name)
        if not norms:
            raise UserError(
                f"run '{self.spec.name}' in '{self.folder}' has logged no feature norms: its metrics.csv is damaged, "
                "or it is shorter than metrics_period_agent_steps; train it again"
            )
        return norms

    def episodes(self) -> list[tuple[float, float]]:
        """Frames and return of each of its episodes."""
        return self.logs.episodes(self.population, self.spec.name)


class WholeStudy:
    """A planned study, or the parts of one.

    Parameters
    ----------
    folder
        The one that was given as ``--out``, or the one that the parts are in; an export of either.

    Attributes
    ----------
    plan
        Of the study, or of its first part: all have the same preset and settings.
    text
        What ``study.toml`` holds.
    runs
        All of them. One that did not come to its end in a part, and did so in another, is that of the other.
    left
        Cells of the study that are in none of its parts.

    Raises
    ------
    UserError
        If there is no study, if the folder holds several, or if a run came to its end in two parts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        check_exports(folder)
        folders = [path.parent for path in plan_paths(folder)] or [folder]
        plans = {own: read_plan(own) for own in folders}
        self.plan = plans[folders[0]]
        self.text = _read_text(folders[0])
        for own, plan in plans.items():
            if plan.settings != self.plan.settings or _alike(_read_text(own)) != _alike(self.text):
                raise UserError(f"'{folders[0]}' and '{own}' hold different studies; name one of them")
        self.runs = _each_once([run for own, plan in plans.items() for run in _logged(own, plan)])
        self.left = in_no_part(folder)

    @property
    def games(self) -> list[str]:
        """The games that are played, each once, in the order of the study."""
        return list(dict.fromkeys(run.spec.game.name for run in self.runs))


def _read_text(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / STUDY).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{folder / STUDY}': {error}") from error


def _alike(text: Mapping[str, Any]) -> dict[str, Any]:
    """What the parts of a study have in common, also where each was written as a study of its own games and seeds."""
    return {key: value for key, value in text.items() if key not in {"title", "games", "seeds"}}


def _logged(folder: Path, plan: Plan) -> list[LoggedRun]:
    logs = open_logs(folder)
    return [LoggedRun(run, folder, population, logs) for population in plan.populations for run in population.runs]


def _each_once(runs: list[LoggedRun]) -> list[LoggedRun]:
    found: dict[str, LoggedRun] = {}
    for run in runs:
        before = found.setdefault(run.spec.name, run)
        if before is run or run.state[0] not in SETTLED:
            continue
        if before.state[0] in SETTLED:
            raise UserError(f"run '{run.spec.name}' is in '{before.folder}' and in '{run.folder}'; name one of them")
        found[run.spec.name] = run
    return list(found.values())
