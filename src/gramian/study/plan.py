"""The plan of a study: its cells packed into populations, once and for all.

A population is the unit of placement, checkpoint, retry and resume. Its members and their order decide the numbers to
the last bit, so ``plan.json`` is written once, when the study's folder is made, and never again.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gramian.core.errors import UserError
from gramian.core.files import file_name, output_folder, replace_text
from gramian.deep.training.config import Config, RunSpec, Settings, settings_from
from gramian.study.manifest import PLAN, STUDY, check_exports, check_ids
from gramian.study.spec import StudySpec, part_options

FORMAT = 1


@dataclass(frozen=True)
class Population:
    """Cells that are trained together."""

    id: str
    runs: tuple[RunSpec, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it sets otherwise than the study, for arms with settings of their own."""

    @property
    def games(self) -> list[str]:
        """The games that it plays, each once."""
        return list(dict.fromkeys(run.game.name for run in self.runs))


@dataclass(frozen=True)
class Plan:
    """Everything that decides the numbers of a study."""

    title: str
    preset: str
    settings: Settings
    device: str
    """``cpu`` or ``cuda``."""
    torch_threads: int
    """Of each population, on the CPU."""
    checkpoint_replay: bool
    """Save the replay too, so that a resumed population is the one that was never interrupted."""
    populations: tuple[Population, ...]

    @property
    def cells(self) -> int:
        """The number of runs."""
        return sum(len(population.runs) for population in self.populations)

    @cached_property
    def _by_id(self) -> dict[str, Population]:
        return {population.id: population for population in self.populations}

    def population(self, identifier: str) -> Population:
        """The population of this name."""
        return self._by_id[identifier]

    def config(self, population: Population) -> Config:
        """What `gramian.deep.training.session.train` needs to know of a population."""
        where = f"the settings of population {population.id!r}"
        return Config(self.preset, settings_from(population.settings, where, self.settings), population.runs)


def make_plan(
    spec: StudySpec, *, largest: int, device: str, torch_threads: int, checkpoint_replay: bool, at_once: int = 1
) -> Plan:
    """Pack the cells of a study into populations of at most ``largest`` runs, at least ``at_once`` of them."""
    largest = max(1, min(largest, -(-len(spec.cells) // at_once)))
    groups: dict[tuple[str, str], list[RunSpec]] = {}
    for cell in spec.cells:  # those of a population have the same settings, and observations of the same shape
        own = "atari" if cell.game.kind == "atari" else cell.game.name  # as all Atari games have
        groups.setdefault((cell.variant, own), []).append(cell)
    packed = [runs for cells in groups.values() for runs in pack(cells, largest)]
    digits = max(3, len(str(len(packed) - 1)))
    populations = tuple(
        Population(f"p{number:0{digits}}", runs, spec.variants.get(runs[0].variant, {}))
        for number, runs in enumerate(packed)
    )
    plan = Plan(spec.title, spec.preset, spec.settings, device, torch_threads, checkpoint_replay, populations)
    for population in populations:
        plan.config(population)  # refuses what cannot be trained
    return plan


def pack(cells: Sequence[RunSpec], largest: int) -> list[tuple[RunSpec, ...]]:
    """Cells in populations of at most ``largest``, as even as can be; a game is split only where it must be."""
    games: dict[str, list[RunSpec]] = {}
    for cell in cells:
        games.setdefault(cell.game.name, []).append(cell)
    own = max(len(runs) for runs in games.values())
    if own > largest:
        return [tuple(part) for runs in games.values() for part in _evenly(runs, -(-len(runs) // largest))]
    parts = -(-len(games) // (largest // own))
    return [tuple(cell for runs in part for cell in runs) for part in _evenly(list(games.values()), parts)]


def _evenly(items: Sequence[Any], parts: int) -> Iterator[Sequence[Any]]:
    size, longer = divmod(len(items), parts)
    start = 0
    for part in range(parts):
        end = start + size + (part < longer)
        yield items[start:end]
        start = end


def to_mapping(plan: Plan) -> dict[str, Any]:
    """The content of ``plan.json``."""
    return {
        "format": FORMAT,
        "title": plan.title,
        "preset": plan.preset,
        "device": plan.device,
        "torch_threads": plan.torch_threads,
        "checkpoint_replay": plan.checkpoint_replay,
        "populations": [
            {
                "id": population.id,
                "runs": [run.to_mapping() for run in population.runs],
                **({"settings": dict(population.settings)} if population.settings else {}),
            }
            for population in plan.populations
        ],
        "settings": asdict(plan.settings),
    }


def from_mapping(saved: Any, where: str) -> Plan:
    """Undo `to_mapping`; ``where`` names the file in complaints."""
    if isinstance(saved, Mapping) and saved.get("format") != FORMAT:
        raise UserError(f"{where} has format {saved.get('format')}, not {FORMAT}; use the version that wrote it")
    try:
        settings = settings_from(saved["settings"], where)
        populations = tuple(
            Population(
                file_name(one["id"], where.strip("'")),
                tuple(RunSpec.from_mapping(run, settings) for run in one["runs"]),
                one.get("settings", {}),
            )
            for one in saved["populations"]
        )
        check_ids([population.id for population in populations], where)
        own = {name: saved[name] for name in ("title", "preset", "device", "torch_threads", "checkpoint_replay")}
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{where} is not the plan of a study: {error!r}") from error
    return Plan(settings=settings, populations=populations, **own)


def read_plan(folder: Path) -> Plan:
    """The plan of the study in ``folder``."""
    path = folder / PLAN
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        check_exports(folder)
        raise UserError(f"'{folder}' holds no study; name the folder that was given as --out") from error
    except ValueError as error:
        raise UserError(f"'{path}' is damaged ({error}); plan the study anew in another folder") from error
    return from_mapping(saved, f"'{path}'")


def write_plan(folder: Path, plan: Plan, study_text: str) -> None:
    """Make the folder of a study; of several processes at the same time one succeeds, the others are refused."""
    taken = UserError(f"'{folder}' holds a study already; name another folder")
    if (folder / PLAN).exists():
        raise taken
    output_folder(folder)
    with tempfile.TemporaryDirectory(prefix=".plan-", dir=folder) as own:
        whole = Path(own) / PLAN
        replace_text(whole, json.dumps(to_mapping(plan), indent=1) + "\n")
        replace_text(folder / STUDY, study_text)
        try:
            (folder / PLAN).hardlink_to(whole)  # unlike a rename, it fails where there is one already
        except FileExistsError:
            raise taken from None


def check_same(folder: Path, plan: Plan, spec: StudySpec) -> None:
    """Refuse another study than the one that was planned in ``folder``, or all of it where that holds a part."""
    difference = _difference(plan, spec)
    if not difference:
        return
    runs = [run for population in plan.populations for run in population.runs]
    games, seeds = {run.game.name for run in runs}, {run.seed for run in runs}
    if games <= set(spec.games) and seeds <= set(spec.seeds):
        part = spec.part(list(games), list(seeds))
        if not _difference(plan, part):
            options = part_options(part, spec)
            raise UserError(f"'{folder}' holds a part of this study; give {options}, or name another folder")
    raise UserError(f"'{folder}' holds another study: {difference}; name another folder")


def _difference(plan: Plan, spec: StudySpec) -> str:
    """The first difference of a study from a plan; empty where there is none."""
    planned = {run.name: run.label for population in plan.populations for run in population.runs}
    wanted = {run.name: run.label for run in spec.cells}
    if missing := sorted(wanted.keys() - planned.keys()):
        return f"it has no run {missing[0]!r}"
    if more := sorted(planned.keys() - wanted.keys()):
        return f"it also has the run {more[0]!r}"
    if other := sorted(name for name in wanted if wanted[name] != planned[name]):
        return f"its run {other[0]!r} has the label {planned[other[0]]!r}, not {wanted[other[0]]!r}"
    if plan.preset != spec.preset:
        return f"its preset is {plan.preset!r}, not {spec.preset!r}"
    if plan.settings != spec.settings:
        before, now = _flat(asdict(plan.settings)), _flat(asdict(spec.settings))
        name = next(name for name in now if now[name] != before.get(name))
        return f"its {name} is {before.get(name)!r}, not {now[name]!r}"
    return ""


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat
