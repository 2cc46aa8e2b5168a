"""Runs beside each other, each in a process of its own, and who plays their games.

    python -m benchmarks.apart --game seaquest --runs 9 --cores 1 2 --device cuda --out FOLDER

With ``--cores 1`` a run has one core, and beside a GPU the process that learns plays its game too; with 2 the game has
a process of its own, which waits awake. Every run of every such set is filled and warm before anything is measured;
then the sets take turns, and all runs of a set train at the same time, so that they share the GPU and the cores as
those of a study do. On a GPU let them be clients of NVIDIA's multi-process service (``nvidia-cuda-mps-control -d``).
"""

import argparse
import csv
import io
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch

from benchmarks.command_line import Parser, complain, new_folder, whole
from benchmarks.contestants import Workload
from benchmarks.growth import ARMS
from benchmarks.side_by_side import spread
from benchmarks.workers import Worker, say
from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import output_folder, replace_text
from gramian.core.games import find_game
from gramian.deep.training.config import check_preset, load_preset

PREFILL = 2_000
"""Random agent steps before a run learns."""
MOST_RUNS = 64
COLUMNS = ("runs", "cores", "repeat", "run", "arm", "agent_steps", "seconds")


@dataclass
class Set:
    """Runs that train at the same time."""

    runs: int
    cores: int
    """Of each."""
    workers: list[Worker]
    rates: list[list[float]] = field(default_factory=list)
    """Agent steps a second of each run, in each repeat."""


def workload(options: argparse.Namespace, number: int, cores: int) -> Workload:
    """Of one run; the arms are taken in turn."""
    return Workload(
        contestant="gramian",
        game=options.game,
        preset=options.preset,
        runs=1,
        arms=(ARMS[number % len(ARMS)],),
        envs_per_run=1,
        capacity=options.capacity,
        prefill_agent_steps=min(PREFILL, options.capacity),
        device=options.device,
        warm_up_s=options.warm_up,
        cores=cores,
    )


def started(options: argparse.Namespace, processes: ExitStack) -> Iterator[Set]:
    """Every set, its processes filled and warm. The first of each arm goes ahead and compiles for the others."""
    for runs in options.runs:
        for cores in options.cores:
            found = Set(runs, cores, [])
            for numbers in (range(min(runs, len(ARMS))), range(len(ARMS), runs)):
                own = [processes.enter_context(Worker(workload(options, number, cores))) for number in numbers]
                for worker in own:
                    worker.wait()
                found.workers += own
            say(f"runs: {runs}, cores of each: {cores}: warm")
            yield found


def compare(options: argparse.Namespace) -> tuple[str, str]:
    """Measure; the table as Markdown, and every reading as CSV."""
    readings: list[tuple[object, ...]] = []
    with ExitStack() as processes:
        sets = list(started(options, processes))
        for repeat in range(options.repeats):
            for one in sets:
                for worker in one.workers:
                    worker.send(options.seconds, threads=1)
                found = [worker.receive() for worker in one.workers]
                one.rates.append([each.rate for each in found])
                readings += [
                    (one.runs, one.cores, repeat, run, ARMS[run % len(ARMS)], each.agent_steps, f"{each.seconds:.3f}")
                    for run, each in enumerate(found)
                ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(readings)
    return table(sets), text.getvalue()


def table(sets: Sequence[Set]) -> str:
    """Agent steps a second of every set, medians of the repeats, least and most in brackets; and of each of its runs.

    Examples
    --------
    >>> print(table([Set(2, 1, [], [[1000.0, 1200.0], [900.0, 1500.0]])]), end="")
    | runs | cores of each | agent steps/s, together | of each run |
    | ---: | ---: | ---: | ---: |
    | 2 | 1 | 2,300 (2,200–2,400) | 1,100 (900–1,500) |
    """
    lines = ["| runs | cores of each | agent steps/s, together | of each run |", "| ---: | ---: | ---: | ---: |"]
    for one in sets:
        each = [rate for rates in one.rates for rate in rates]
        cells = [str(one.runs), str(one.cores), spread([sum(rates) for rates in one.rates], 0), spread(each, 0)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options.

    Raises
    ------
    UserError
        If a number is out of its range, the game is not of Atari, or there is no GPU where one is wanted.
    """
    parser = Parser("apart", __doc__)
    parser.add_argument("--game", default="seaquest", help="of Atari")
    parser.add_argument("--preset", default="author")
    parser.add_argument("--runs", nargs="+", type=whole(1, MOST_RUNS), default=[9], help="at the same time")
    parser.add_argument("--cores", nargs="+", type=whole(1, 1024), default=[1, 2], help="of each run")
    parser.add_argument("--capacity", type=whole(2, 10**9), default=100_000, help="transitions in a replay")
    parser.add_argument("--seconds", type=float, default=20.0, help="of one measurement")
    parser.add_argument("--repeats", type=whole(1, 1000), default=3)
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds of training before all measurements")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="write the table and a CSV into it")
    options = parser.parse_args(arguments)
    game = find_game(options.game)
    if game.kind != "atari":
        raise UserError(f"'{game.name}' has no emulators; choose a game of Atari")
    check_preset(options.preset, game.kind)
    if options.capacity <= (least := load_preset(options.preset).n_step):
        raise UserError(f"--capacity is {options.capacity}; it must be more than {least}, the preset's n_step")
    if not 0 < options.seconds < math.inf:
        raise UserError(f"--seconds is {options.seconds}; it must be more than 0, and finite")
    if not 0 <= options.warm_up < math.inf:
        raise UserError(f"--warm-up is {options.warm_up}; it must be 0 or more, and finite")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device is cuda and no GPU is there; give cpu")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    try:
        options = parsed(arguments)
        if options.out:
            output_folder(options.out)
        page, readings = compare(options)
        print(page, end="")
        if options.out:
            replace_text(options.out / "apart.md", page)
            replace_text(options.out / "apart.csv", readings)
    except UserError as error:
        complain("apart", error)
        return 2
    except WorkFailed as error:
        complain("apart", error)
        return 1
    except KeyboardInterrupt:
        say("benchmarks.apart: interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
