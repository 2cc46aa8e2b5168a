"""Training beside Stable-Baselines3's DQN and the emulator alone, on the same workload.

    python -m benchmarks.training --game minatar/breakout --populations 1 4 --out FOLDER
    python -m benchmarks.training --game breakout --contestants sb3 gramian

Each contestant runs in a process of its own, with the number of torch's threads that serves it best, and they take
turns: in each repeat every one trains for some seconds, so that the noise of the machine affects all of them. Ratios
are taken within a repeat. Replays are full, the first updates are over, ε is at its final value and nothing is logged.
``--repeats 360 --contestants gramian`` measures an hour: the CSV has the memory at each repeat.
"""

import argparse
import platform
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import torch

from benchmarks.command_line import Parser, exit_code, new_folder, seconds, spread, table, whole, write_csv
from benchmarks.contestants import CONTESTANTS, Workload, beyond_sb3, missing
from benchmarks.workers import Measurement, Worker
from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.core.files import replace_text
from gramian.core.games import find_game
from gramian.core.progress import counted
from gramian.deep.training.config import check_preset, load_preset
from gramian.deep.training.memory import memory_bill

PRESETS = {"atari": "nature", "minatar": "minatar"}
PROCESS_BYTES = 600 << 20
"""What a process with torch takes, apart from its replay."""


@dataclass
class Row:
    """A contestant with its processes, and what was measured."""

    contestant: str
    runs: int
    workers: list[Worker]
    threads: int = 1
    repeats: list[Measurement] = field(default_factory=list)

    @property
    def title(self) -> str:
        """For the table."""
        title = CONTESTANTS[self.contestant].title
        return f"{title}, {len(self.workers)} processes" if len(self.workers) > 1 else title

    def measure(self, seconds: float, threads: int) -> Measurement:
        """Let all processes of the row run at the same time."""
        for worker in self.workers:
            worker.send(seconds, threads)
        found = [worker.receive() for worker in self.workers]
        longest = max(one.seconds for one in found)
        # a process that stopped earlier would have gone on at its rate
        steps, updates, cpu = (
            sum(getattr(one, name) / one.seconds for one in found) * longest
            for name in ("agent_steps", "updates", "cpu_seconds")
        )
        memory = (sum(getattr(one, name) for one in found) for name in ("rss_bytes", "peak_rss_bytes", "device_bytes"))
        return Measurement(round(steps), round(updates), longest, cpu, *memory)

    def calibrate(self, choices: Sequence[int], seconds: float) -> None:
        """Choose the number of torch's threads that gives the most steps."""
        self.threads = choices[0]
        if CONTESTANTS[self.contestant].learns and len(choices) > 1:
            rates = dict.fromkeys(choices, 0.0)
            for threads in (*choices, *choices):
                rates[threads] += self.measure(seconds, threads).rate
            self.threads = max(rates, key=lambda threads: rates[threads])


def say(line: str) -> None:
    """Report progress on standard error."""
    print(line, file=sys.stderr, flush=True)


def workload(options: argparse.Namespace, contestant: str, runs: int) -> Workload:
    """What the options ask of a contestant."""
    return Workload(
        contestant=contestant,
        game=options.game,
        preset=options.preset,
        runs=runs if CONTESTANTS[contestant].populations else 1,
        envs_per_run=options.envs_per_run,
        capacity=options.capacity,
        prefill_agent_steps=options.prefill,
        device=options.device,
        warm_up_s=options.warm_up,
    )


def planned(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Contestants and numbers of runs that can be measured here; the others are named on standard error.

    Raises
    ------
    UserError
        If there is none, if Stable-Baselines3 does not implement the preset, or if the replays do not fit.
    """
    kind = find_game(options.game).kind
    absent = {name: reason for name in options.contestants if (reason := missing(name, kind))}
    for name, reason in absent.items():
        say(f"skipped: {CONTESTANTS[name].title}: {reason}")
    present = [name for name in options.contestants if name not in absent]
    if not present:
        raise UserError(f"no contestant can play '{options.game}' here; install gramian[lab,sb3]")
    if "sb3" in present and (odd := beyond_sb3(load_preset(options.preset), kind)):
        raise UserError(
            f"preset '{options.preset}' has {', '.join(odd)}, which sb3 does not implement; choose another preset, or "
            "--contestants gramian emulator"
        )
    plan = [(name, runs) for runs in options.populations for name in present]
    frame, stack = (84 * 84, 4) if kind == "atari" else (1000, 1)
    pictures = {"sb3": 2 * stack, "gramian": 1}  # stored a transition
    replays = sum(runs * options.capacity * frame * pictures.get(name, 0) for name, runs in plan)
    processes = sum(1 if CONTESTANTS[name].populations else runs for name, runs in plan)
    items = {"replays": replays, "processes": processes * PROCESS_BYTES}
    memory_bill(items, "cpu", "lower --capacity or name fewer --contestants")
    return plan


def compare(options: argparse.Namespace) -> list[Row]:
    """Measure all contestants."""
    plan = planned(options)
    with ExitStack() as processes:
        rows, default_threads = [], set()
        for contestant, runs in plan:
            work, count = workload(options, contestant, runs), 1 if CONTESTANTS[contestant].populations else runs
            row = Row(contestant, runs, [processes.enter_context(Worker(work)) for _ in range(count)])
            default_threads |= {worker.wait() for worker in row.workers}
            say(f"{row.title}, runs: {runs}: warm")
            rows.append(row)
        for row in rows:
            row.calibrate(options.threads or sorted({1, 2, *default_threads}), options.calibration)
        for repeat in range(options.repeats):
            first = repeat % len(rows)  # the order changes, so that none always follows the same one
            for row in rows[first:] + rows[:first]:
                row.repeats.append(row.measure(options.seconds, row.threads))
                rate = f"{row.repeats[-1].rate:,.0f} agent steps/s"
                say(f"repeat {repeat + 1} of {options.repeats}: {row.title}, runs: {row.runs}: {rate}")
    return rows


def heading(options: argparse.Namespace) -> str:
    """What was measured, where."""
    where = f"{platform.machine()}, {counted(cores(), 'core')}"
    if options.device != "cpu":
        where += f", {torch.cuda.get_device_name()}"
    versions = [f"Python {platform.python_version()}"]
    for package in ("torch", "stable-baselines3", "gymnasium", "ale-py", "minatar"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"no {package}")
    return (
        f"## DQN on {find_game(options.game).title}, preset `{options.preset}`\n\n"
        f"Replay of {options.capacity:,} transitions a run, {options.prefill:,} of them random; device "
        f"{options.device}; {counted(options.repeats, 'repeat')} of {options.seconds:g} s in turn; median "
        f"(least–most).\n{where}; {', '.join(versions)}\n\n"
    )


def times(row: Row, other: Row) -> list[float]:
    """Rates in units of another row's, repeat by repeat."""
    return [one.rate / two.rate for one, two in zip(row.repeats, other.repeats, strict=True)]


def page_table(rows: Sequence[Row]) -> str:
    """Rates, ratios, processor time and memory."""
    sb3 = next((row for row in rows if (row.contestant, row.runs) == ("sb3", 1)), None)
    lines = []
    for row in rows:
        steps, updates = (sum(getattr(one, name) for one in row.repeats) for name in ("agent_steps", "updates"))
        lines.append(
            [
                row.title,
                str(row.runs),
                str(row.threads) if CONTESTANTS[row.contestant].learns else "–",
                spread([one.rate for one in row.repeats], 0),
                *([spread(times(row, sb3), 2)] if sb3 else []),
                f"{statistics.median(1e6 * one.cpu_seconds / one.agent_steps for one in row.repeats):,.0f}",
                f"{steps / updates:.2f}" if updates else "–",
                f"{row.repeats[-1].peak_rss_bytes / 1e9:.2f} GB",
            ]
        )
    ratio = ["× SB3, one process"] if sb3 else []
    columns = ["torch threads", "agent steps/s", *ratio, "CPU µs a step", "steps an update", "peak memory"]
    return table(["contestant", "runs", *columns], lines)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with those that depend on others filled in.

    Raises
    ------
    UserError
        If they cannot be measured together, or here.
    """
    cores_here = whole(1, cores())
    parser = Parser("training", __doc__)
    add = parser.add_argument
    add("--game", default="minatar/breakout", help="of Atari or MinAtar")
    add("--preset", help="default: nature for Atari, minatar for MinAtar")
    add("--contestants", nargs="+", choices=CONTESTANTS, default=[*CONTESTANTS])
    add("--populations", nargs="+", type=whole(1, 1000), default=[1], help="runs at the same time")
    add("--envs-per-run", type=whole(1, 1000), default=1, help="of gramian and of the emulator alone")
    add("--capacity", type=whole(1, 10**12), default=20_000, help="transitions of each run")
    add("--prefill", type=whole(1, 10**12), help="random agent steps before; default: the capacity")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="of the networks")
    add("--threads", type=cores_here, nargs="+", help="torch's, to choose from; default: 1, 2 and its own")
    add("--seconds", type=seconds, default=10.0, help="of one measurement")
    add("--repeats", type=whole(1, 10**6), default=5)
    add("--warm-up", type=seconds, default=3.0, help="seconds of training before all measurements")
    add("--calibration", type=seconds, default=2.0, help="seconds for each number of threads, twice")
    add("--out", type=new_folder, metavar="FOLDER", help="write the table and a CSV into it")
    options = parser.parse_args(arguments)
    game = find_game(options.game)
    if game.kind not in PRESETS:
        raise UserError(f"'{game.name}' cannot be measured here; choose a game of Atari or MinAtar")
    options.preset = options.preset or PRESETS[game.kind]
    options.prefill = options.prefill or options.capacity
    check_preset(options.preset, game.kind)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device is cuda and no GPU is there; give cpu")
    least = load_preset(options.preset).n_step * options.envs_per_run
    for name, value in (("--capacity", options.capacity - 1), ("--prefill", options.prefill)):
        if value < least:
            more = "more than" if name == "--capacity" else "at least"
            raise UserError(f"{name} must be {more} {least}, n_step for each environment")
    _ = workload(options, "gramian", 1).settings  # refuses what no process could work with
    return options


def measured(arguments: Sequence[str] | None) -> None:
    """Measure, print the table, and write it and every reading where a folder is named."""
    options = parsed(arguments)
    rows = compare(options)
    page = heading(options) + page_table(rows)
    print(page, end="")
    if options.out:
        replace_text(options.out / "training.md", page)
        columns = ["contestant", "runs", "processes", "torch_threads", "repeat", *Measurement._fields]
        readings = [
            (row.contestant, row.runs, len(row.workers), row.threads, repeat, *one)
            for row in rows
            for repeat, one in enumerate(row.repeats)
        ]
        write_csv(options.out / "training.csv", columns, readings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("training", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
