"""``gramian study plan``, ``run``, ``status``, ``match`` and ``choose``, and ``gramian runs``."""

import math
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from gramian.cli.options import (
    ChooseOptions,
    MatchOptions,
    Placement,
    PlanOptions,
    RunOptions,
    RunsOptions,
    StatusOptions,
)
from gramian.cli.train import check_torch_threads
from gramian.core.errors import UserError
from gramian.core.files import EXPORT, files_below, output_folder, plan_paths, replace_text
from gramian.core.games import find_game
from gramian.deep.runs.listing import RunSummary, list_runs, table
from gramian.deep.training.config import settings_from
from gramian.deep.training.logs import LAST_EPISODES
from gramian.study.cost import Hardware, Measured, Share, cost_of, divide, kind_of, run_size, stated
from gramian.study.local import LocalExecutor, local_hardware, worker_environments
from gramian.study.manifest import PART, PLAN, cells_text, check_exports, in_no_part, read_manifest
from gramian.study.plan import Plan, Population, check_same, make_plan, read_plan, to_mapping, write_plan
from gramian.study.run import Executor, run_study
from gramian.study.spec import StudySpec, parse_study, part_options, read_study_text
from gramian.study.status import reasons, survey, watch


def plan_command(options: PlanOptions) -> int:
    """See `PlanOptions`."""
    text, spec = _read(options)
    made = options.out is not None and (options.out / PLAN).exists()
    plan, hardware, share = _plan(options, spec, options.out if made else None)
    executor = _executor(options, hardware, share, plan, retries=0)
    try:
        _print_cost(options, plan, hardware, share, executor)
    finally:
        executor.close()
    if spec.evaluation is not None:
        kept = spec.evaluation
        print(f"evaluation  kept apart: {len(kept.games)} games, seeds {', '.join(map(str, kept.seeds))}")
    print()
    for population in plan.populations:
        print(f"{population.id}  {len(population.runs)} runs: {', '.join(run.name for run in population.runs)}")
    if options.out is not None and not made:
        write_plan(options.out, plan, text)
        print(f"plan in {options.out}", file=sys.stderr)
    return 0


def run_command(options: RunOptions) -> int:
    """See `RunOptions`."""
    ends = time.monotonic() + 60 * options.within_min if options.within_min else math.inf
    text, spec = _read(options)
    if (options.out / EXPORT).exists():
        raise UserError(
            f"'{options.out}' is an export of a study, which has no weights to go on with; name another folder"
        )
    made = (options.out / PLAN).exists()
    plan, hardware, share = _plan(options, spec, options.out if made else None)
    executor = _executor(options, hardware, share, plan, options.retries)
    folder = options.out.resolve()
    before = signal.signal(signal.SIGTERM, _interrupt)  # as a job's time limit sends it: wait for what is being saved
    try:
        if not made:
            _print_cost(options, plan, hardware, share, executor)
            plan = _settle(folder, plan, text, spec)
        undone = run_study(folder, plan, executor, ends)
    except KeyboardInterrupt:
        print("stopping; what is being trained is saved, and the same command goes on from there", file=sys.stderr)
        raise
    finally:
        executor.close()
        signal.signal(signal.SIGTERM, before)
    statuses = survey(folder, plan)
    for line in reasons(statuses):
        print(line, file=sys.stderr)
    endings = {
        "failed": "failed; the same command tries them again",
        "stopped": f"would not have ended within {options.within_min:g} min and are stopped; "
        "the same command goes on with them",
        "busy": "are not done: another process is at work on them",
    }
    for state, ending in endings.items():
        if cells := sum(len(plan.population(one.population).runs) for one in undone if one.state == state):
            print(f"{cells} of {plan.cells} cells {ending}", file=sys.stderr)
    if undone:
        return 1
    diverged = sum(cell.state == "diverged" for status in statuses for cell in status.cells)
    ended = (
        f"{plan.cells - diverged} cells done, {diverged} diverged" if diverged else f"all {plan.cells} cells are done"
    )
    print(f"study in {options.out}: {ended}", file=sys.stderr)
    return 0


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"stopped by {signal.Signals(number).name}")


def status_command(options: StatusOptions) -> int:
    """See `StatusOptions`."""
    check_exports(options.folder)
    folders = [path.parent for path in plan_paths(options.folder)] or [options.folder]
    watch({folder: read_plan(folder) for folder in folders}, once=options.once, left=in_no_part(options.folder))
    return 0


def match_command(options: MatchOptions) -> int:
    """See `MatchOptions`."""
    from gramian.report.choose import PlannedStudy, games_of, match

    study = PlannedStudy(options.folder)
    if left := in_no_part(options.folder):
        print(f"in no part of the study: {cells_text(left)}", file=sys.stderr)
    print("mean feature norm: mean over the last quarter of training, geometric mean over runs")
    games = games_of(study, options.arm)
    for where, own in [("all games", None), *((game, [game]) for game in games if len(games) > 1)]:
        norm, matches = match(study, options.arm, own)
        print(f"{where}: {options.arm} {norm:.4g}")
        for found in matches:
            kappa = f"kappa {found.kappa:.4g}" if found.kappa is not None else "the grid does not reach it"
            nearest = f"nearest {found.norms[found.nearest]:.4g} at kappa {found.nearest:g}"
            reach = "its norms are {:.4g} to {:.4g}".format(*found.reach)
            print(f"  {found.penalty:<23} {kappa:<28} {reach}, {nearest}")
    return 0


def choose_command(options: ChooseOptions) -> int:
    """See `ChooseOptions`."""
    from gramian.report.choose import evaluation_study

    made = evaluation_study(
        options.folders,
        title=options.title,
        frames=options.frames,
        matched=options.matched,
        decor=options.decor,
        also=options.also,
    )
    cells = len(parse_study(made.text, "what was chosen").cells)
    output_folder(options.out.absolute().parent)
    replace_text(options.out, made.text)
    print("\n".join(made.remarks))
    print(f"{cells} cells in {options.out}", file=sys.stderr)
    return 0


def runs_command(options: RunsOptions) -> int:
    """See `RunsOptions`."""
    runs = sorted([*list_runs(options.folder), *exported_runs(options.folder)], key=lambda run: run.folder)
    if not runs:
        raise UserError(f"there is no run below '{options.folder}'; name the folder that was given as --out")
    print(table(runs, options.folder))
    print("\nsteps: agent steps; return: mean raw return of the last 100 games")
    return 0


def exported_runs(folder: Path) -> list[RunSummary]:
    """The runs of all exports below a folder as they stood then; other people's, which are imported, are left out.

    What cannot be read is there too, an export as one run.
    """
    found: list[RunSummary] = []
    for path in files_below(folder, EXPORT):
        try:
            found += _exported(path)
        except UserError as error:
            found.append(_unreadable(path.parent, str(error)))
        except ModuleNotFoundError as error:  # where a study was trained there may be no polars
            found.append(_unreadable(path.parent, f"an export is read by the package {error.name!r}; install it"))
    return found


def _exported(path: Path) -> list[RunSummary]:
    from gramian.study.store import read_export

    study = read_export(path, read_manifest(path))
    returns = {run: own["return"].to_list() for (run,), own in study.episodes.group_by("run", maintain_order=True)}
    found = []
    for run in study.runs.iter_rows(named=True):
        if run["run"] not in study.settings:
            continue
        steps, own = run["agent_steps"] or 0, returns.get(run["run"], [])
        last = own[-LAST_EPISODES:]
        try:
            frames = steps * _frames_per_agent_step(run["game"], study.settings[run["run"]], path)
        except UserError as error:
            found.append(_unreadable(Path(run["folder"]), str(error)))
            continue
        mean = sum(last) / len(last) if last else math.nan
        found.append(
            RunSummary(Path(run["folder"]), run["state"], steps, frames, len(own), mean, run["reason"], exported=True)
        )
    return found


def _frames_per_agent_step(game: str, settings: Mapping[str, Any], path: Path) -> int:
    atari = settings_from(settings, f"'{path}'").environment.atari
    return atari.frame_skip if find_game(game).kind == "atari" else 1


def _unreadable(folder: Path, reason: str) -> RunSummary:
    return RunSummary(folder, "unreadable", 0, 0, 0, math.nan, reason, exported=True)


def _read(options: Placement) -> tuple[str, StudySpec]:
    text, base = read_study_text(options.study)
    whole = parse_study(text, f"study '{options.study}'", base)
    spec = whole.part(options.games or (), options.seeds or ())
    if which := part_options(spec, whole):
        text = f"{PART}{which}\n{text}"
    return text, spec


def _plan(options: Placement, spec: StudySpec, folder: Path | None) -> tuple[Plan, Hardware, Share]:
    """The plan in ``folder``, or a new one, with the hardware and its division."""
    if folder is not None:
        plan = read_plan(folder)
        check_same(folder, plan, spec)
        _check_decided(options, plan, folder)
        largest = max(len(population.runs) * _run_bytes(plan, population) for population in _kinds(plan))
        hardware = _hardware(options, plan.device)
        return plan, hardware, divide(hardware, largest, options.workers, 1)
    choices = {"torch_threads": options.torch_threads or 1, "checkpoint_replay": options.checkpoint_replay}
    # one run each: what a run of every game needs, before it is known how many fit together
    single = make_plan(spec, largest=1, device="cpu", **choices)  # type: ignore[arg-type]
    hardware = _hardware(options, options.device)
    if options.executor == "local":  # Ray looks for a node with so many cores
        check_torch_threads(options.torch_threads or 1, hardware.cores)
    needed = max(_run_bytes(single, population) for population in _kinds(single))
    share = divide(hardware, needed, options.workers, options.population)
    plan = make_plan(spec, largest=share.largest, device=hardware.device, at_once=share.at_once, **choices)  # type: ignore[arg-type]
    return plan, hardware, share


def _settle(folder: Path, plan: Plan, text: str, spec: StudySpec) -> Plan:
    """Write the plan, or take the one that another process has written meanwhile."""
    try:
        write_plan(folder, plan, text)
    except UserError:
        if not (folder / PLAN).exists():
            raise
        plan = read_plan(folder)
        check_same(folder, plan, spec)
    return plan


def _check_decided(options: Placement, plan: Plan, folder: Path) -> None:
    """Options that decide the numbers cannot change once there is a plan."""
    largest = max(len(population.runs) for population in plan.populations)
    changed = {
        f"--device {options.device}": options.device not in ("auto", plan.device),
        f"--population {options.population}": 0 < options.population < largest,
        f"--torch-threads {options.torch_threads}": options.torch_threads not in (0, plan.torch_threads),
        "--no-checkpoint-replay": plan.checkpoint_replay and not options.checkpoint_replay,
    }
    for option, differs in changed.items():
        if differs:
            raise UserError(f"the plan in '{folder}' was made without {option}; omit it, or name another folder")


def _kinds(plan: Plan) -> list[Population]:
    """The largest population of each kind."""
    kinds: dict[str, Population] = {}
    for population in sorted(plan.populations, key=lambda population: -len(population.runs)):
        kinds.setdefault(kind_of(population), population)
    return list(kinds.values())


def _run_bytes(plan: Plan, population: Population) -> int:
    return run_size(plan.config(population)).memory_bytes


def _hardware(options: Placement, device: str) -> Hardware:
    if options.executor == "local":
        return local_hardware(device)
    from gramian.study.ray_cluster import connect, ray_hardware

    connect(options.ray_address)
    return ray_hardware(device)


def _executor(options: Placement, hardware: Hardware, share: Share, plan: Plan, retries: int) -> Executor:
    at_once = min(share.at_once, len(plan.populations))
    if options.executor == "local":
        environments = worker_environments(hardware, at_once, plan.torch_threads)
        threads = max(1, hardware.cores // at_once)
        return LocalExecutor(environments, retries, emulator_threads=threads, stall_s=60 * options.stall_min)
    from gramian.study.ray_cluster import RayExecutor

    cuda = hardware.device == "cuda"
    largest = max(len(population.runs) * _run_bytes(plan, population) for population in _kinds(plan))
    return RayExecutor(
        retries,
        emulator_threads=max(plan.torch_threads, hardware.cores // at_once),
        stall_s=60 * options.stall_min,
        num_cpus=plan.torch_threads,
        num_gpus=min(1.0, hardware.places / share.at_once) if cuda else 0.0,
        memory_bytes=0 if cuda else largest,
        at_once=options.workers,
    )


def _print_cost(options: Placement, plan: Plan, hardware: Hardware, share: Share, executor: Executor) -> None:
    if options.rate:
        known, source = stated(options.rate), "at the rate that was given"
    else:

        def known(population: Population) -> Measured:
            print(f"measuring {len(population.runs)} × {population.games[0]} ...", file=sys.stderr, flush=True)
            found = executor.call(
                "measure",
                plan=mapping,
                population=population.id,
                seconds=options.measure_s,
                emulator_threads=executor.emulator_threads,
                stall_s=60 * options.stall_min,
            )
            return Measured(**found)

        mapping, source = to_mapping(plan), f"measured for {options.measure_s:g} s, logs and checkpoints not counted"
    print(cost_of(plan, share.at_once, hardware.name, known, source), flush=True)
