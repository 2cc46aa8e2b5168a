"""Training side by side: Stable-Baselines3's DQN, a plain loop, this package, and the emulator alone.

    python -m benchmarks.training --game minatar/breakout --populations 1 4 --profile wall --out FOLDER
    python -m benchmarks.training --game breakout --capacity 100000
    python -m benchmarks.training --game seaquest --scaling --device cuda --out FOLDER
    python -m benchmarks.training --game seaquest --steady 300 --populations 12 --device cuda --out FOLDER
    python -m benchmarks.training --plot FOLDER/scaling.csv FOLDER/scaling.png

Each contestant runs in its own process, with as many of torch's threads as serve it best, and they take turns: in
each repeat every one trains for some seconds, so that the noise of the machine hits all alike. A ratio is taken within
a repeat. Replays are full, the first updates are over, ε is at its final value and nothing is logged.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.command_line import Parser, complain, new_folder
from benchmarks.contestants import CONTESTANTS, ON_REQUEST
from benchmarks.growth import grown, plot, scaling, steady
from benchmarks.side_by_side import compare
from benchmarks.workers import CLOCKS, say
from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import output_folder, replace_text
from gramian.core.games import Kind, find_game
from gramian.deep.training.config import check_preset, load_preset

PRESETS = {"atari": "author", "minatar": "minatar"}


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with those that depend on others filled in."""
    parser = Parser("training", __doc__)
    parser.add_argument("--game", default="minatar/breakout", help="of Atari or MinAtar")
    parser.add_argument("--preset", help="default: author for Atari, minatar for MinAtar")
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, help="default: all but gramian-bf16",
                        default=[name for name in CONTESTANTS if name not in ON_REQUEST])  # fmt: skip
    parser.add_argument("--populations", nargs="+", type=int, help="runs; default 1, with --scaling 1 3 9 27 54")
    parser.add_argument("--envs-per-run", type=int, default=1, help="of gramian and of the emulator alone")
    parser.add_argument("--capacity", type=int, help="transitions a run; default 20,000, with --scaling and --steady "
                        "the preset's up to 16 runs and 100,000 beyond")  # fmt: skip
    parser.add_argument("--prefill", type=int, help="random agent steps before; default: the capacity, so that the "
                        "whole replay lies in memory; with --scaling and --steady 2,000")  # fmt: skip
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="of the networks")
    parser.add_argument("--threads", type=int, nargs="+", help="torch's, to choose from; default: 1, 2 and its own")
    parser.add_argument("--emulator-threads", type=int, default=0, metavar="THREADS", help="of ale-py's vector "
                        "environment alone; default 0: its own choice")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=10.0, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds of training before all measurements")
    parser.add_argument("--calibration", type=float, default=2.0, help="seconds for each number of threads, twice")
    parser.add_argument("--profile", choices=CLOCKS, help="also say where the time of a step goes")
    parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="write the page and a CSV into it")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--scaling", action="store_true", help="rates of gramian as runs and cores grow")
    mode.add_argument("--steady", type=float, metavar="SECONDS", help="rate and memory of gramian over time, and the "
                      "bill for the paper's study")  # fmt: skip
    mode.add_argument(
        "--plot",
        nargs=2,
        type=Path,
        metavar=("CSV", "PNG"),
        help="draw a CSV of --scaling, --steady or benchmarks.watch",
    )
    parser.add_argument("--cores", nargs="+", type=int, default=[1, 2, 4, 8, 16], help="for --scaling")
    parser.add_argument("--cores-at", type=int, default=9, metavar="RUNS", help="runs while the cores grow")
    options = parser.parse_args(arguments)
    game = find_game(options.game)
    if game.kind not in PRESETS:
        raise UserError(f"'{game.name}' cannot be measured here; choose a game of Atari or MinAtar")
    options.preset = options.preset or PRESETS[game.kind]
    check_preset(options.preset, game.kind)
    for name in ("repeats", "envs_per_run", "cores_at"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} is {getattr(options, name)}; it must be at least 1")
    for name in ("populations", "threads", "cores"):
        for value in getattr(options, name) or ():
            if value < 1:
                raise UserError(f"--{name} holds {value}; each must be at least 1")
    if max(options.threads or [1]) > (most := os.cpu_count() or 1):
        raise UserError(f"--threads holds {max(options.threads)}; each must be at most {most}, the machine's cores")
    check_emulator_threads(options, game.kind)
    for name in ("seconds", "calibration", "steady"):
        if getattr(options, name) is not None and not 0 < getattr(options, name) < math.inf:
            raise UserError(f"--{name} is {getattr(options, name)}; it must be more than 0, and finite")
    if not 0 <= options.warm_up < math.inf:
        raise UserError(f"--warm-up is {options.warm_up}; it must be 0 or more, and finite")
    if options.device != "cpu" and not torch.cuda.is_available():
        raise UserError(f"--device is {options.device} and no GPU is there; give cpu")
    if options.device != "cpu" and "gramian-bf16" in options.contestants:
        raise UserError(f"--device is {options.device} and gramian-bf16 rounds on a CPU; leave it away, or give cpu")
    growing = options.scaling or options.steady is not None
    options.populations = options.populations or ([1, 3, 9, 27, 54] if options.scaling else [1])
    if not growing:
        options.capacity = 20_000 if options.capacity is None else options.capacity
    elif options.prefill is None:
        options.prefill = 2_000
    work = grown(options, options.populations[0])
    least = load_preset(options.preset).n_step * options.envs_per_run
    if work.capacity <= least:
        raise UserError(f"--capacity is {work.capacity}; it must be more than {least}, n_step for each environment")
    if work.prefill_agent_steps < least:
        raise UserError(
            f"--prefill is {work.prefill_agent_steps}; it must be at least {least}, n_step for each environment"
        )
    _ = work.settings  # refuses what no process could work with
    return options


def check_emulator_threads(options: argparse.Namespace, kind: Kind) -> None:
    """Refuse threads that ale-py would not start, or that nobody would have.

    Raises
    ------
    UserError
        If there are less than none or more than cores, or if ale-py's vector environment is not measured alone.
    """
    threads, most = options.emulator_threads, os.cpu_count() or 1
    if not 0 <= threads <= most:
        raise UserError(
            f"--emulator-threads is {threads}; ale-py has no more of them than the machine has cores: give 1 to "
            f"{most}, or 0 for its own choice"
        )
    alone = options.scaling or (options.steady is None and "emulator" in options.contestants)
    if threads and (kind != "atari" or not alone):
        raise UserError(
            f"--emulator-threads is {threads} and no emulator of Atari is measured alone; leave it away, or name a "
            "game of Atari and the contestant emulator"
        )


def write(options: argparse.Namespace, name: str, page: str, table_csv: str) -> None:
    """Print the page, and write it and the CSV where a folder was named."""
    print(page, end="")
    if options.out:
        folder = output_folder(options.out)
        replace_text(folder / f"{name}.md", page)
        replace_text(folder / f"{name}.csv", table_csv)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    try:
        options = parsed(arguments)
        if options.plot:
            plot(*options.plot)
            return 0
        if options.out:
            output_folder(options.out)
        if options.scaling:
            write(options, "scaling", *scaling(options))
        elif options.steady is not None:
            write(options, "steady", *steady(options))
        else:
            write(options, "training", *compare(options))
    except UserError as error:
        complain("training", error)
        return 2
    except WorkFailed as error:
        complain("training", error)
        return 1
    except KeyboardInterrupt:
        say("benchmarks.training: interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
