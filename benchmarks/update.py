"""What a penalty adds to an update, as training does it: the arms in turn, on CUDA as compiled graphs.

    python -m benchmarks.update [--arms dqn gram] [--runs 1 12] [--no-tf32] [--csv FILE] [--kernels FILE]

The network is that of Atari, a batch 32 frames at random. A ratio is taken within a repeat, so that what the machine
does meanwhile falls on both arms. The losses are not asked for: in training nobody reads them between two rows of the
log, and a compiler leaves the value of a penalty out.
"""

import argparse
import csv
import io
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.command_line import Parser, complain, new_file
from gramian.core.arms import parse_arm
from gramian.core.errors import UserError
from gramian.core.files import output_folder, replace_text
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.engines.graphs import random_batch, record
from gramian.deep.training.memory import learner_bytes, memory_bill

KAPPA = 0.1
SPEC = NetworkSpec("nature", (4, 84, 84), actions=6, features_dim=512)
BATCH_SIZE = 32
"""Of `random_batch`."""
PROFILED = 10
"""Updates that a profile is a mean of."""


class Timing(NamedTuple):
    """Mean time of one update in one repeat."""

    runs: int
    tf32: bool
    repeat: int
    arm: str
    microseconds: float


def make_update(arm: str, runs: int, device: torch.device) -> Callable[[], object]:
    """One update of ``runs`` runs of an arm, always of the same batch; on CUDA it only launches it."""
    learner = Learner(SPEC, LearnerConfig(), list(range(runs)), [parse_arm(arm, KAPPA)] * runs, device=device)
    batch = random_batch(SPEC, runs, device, number=0)

    def learn() -> None:
        update(learner.objective, learner.adam, learner.layout, learner.state, batch)

    if device.type == "cpu":
        return learn
    return record(learn, learner.state, torch.cuda.Stream(device), compiled=True)


def check_memory(arms: int, runs: int, device: torch.device) -> None:
    """Refuse learners that do not fit, before anything of them is made.

    Raises
    ------
    UserError
        If the memory does not suffice.
    """
    pixels = 2 * runs * BATCH_SIZE * math.prod(SPEC.observation_shape)
    items = {"learners": arms * learner_bytes(SPEC, runs, torch.float32), "batches": arms * pixels}
    drawn = {"pixels as they are drawn": pixels * torch.int64.itemsize}
    if device.type == "cpu":
        items |= drawn
    else:
        memory_bill(drawn, "cpu", "lower --runs")
    memory_bill(items, device, "lower --runs")


def microseconds(one: Callable[[], object], count: int, device: torch.device) -> float:
    """Mean time of ``count`` updates in a row."""
    synchronise = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    synchronise()
    start = time.perf_counter()
    for _ in range(count):
        one()
    synchronise()
    return 1e6 * (time.perf_counter() - start) / count


def measure(arms: Sequence[str], runs: int, device: torch.device, repeats: int, count: int) -> list[Timing]:
    """Every arm in every repeat, in turn."""
    updates = {arm: make_update(arm, runs, device) for arm in arms}
    for one in updates.values():  # libraries set up their workspaces
        microseconds(one, 2, device)
    tf32 = device.type == "cuda" and torch.backends.cuda.matmul.allow_tf32
    return [
        Timing(runs, tf32, repeat, arm, microseconds(one, count, device))
        for repeat in range(repeats)
        for arm, one in updates.items()
    ]


def table(timings: Sequence[Timing], arms: Sequence[str]) -> str:
    """The arms beside the first of them, as Markdown; median, least and most of the repeats."""
    lines = [f"| runs | TF32 | arm | µs | of {arms[0]} |", "| ---: | --- | --- | ---: | ---: |"]
    for runs in sorted({timing.runs for timing in timings}):
        those = [timing for timing in timings if timing.runs == runs]
        times = {arm: [timing.microseconds for timing in those if timing.arm == arm] for arm in arms}
        for arm in arms:
            ratios = [own / first for own, first in zip(times[arm], times[arms[0]], strict=True)]
            spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f}–{max(ratios):.3f})"
            tf32 = "yes" if those[0].tf32 else "no"
            lines.append(f"| {runs} | {tf32} | {arm} | {statistics.median(times[arm]):,.0f} | {spread} |")
    return "\n".join(lines)


def kernels(arms: Sequence[str], runs: int, device: torch.device) -> list[tuple[str, int, str, float, float]]:
    """What the device does in an update of each arm: arm, runs, kernel, calls and µs, the longest first."""
    activity = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
    rows = []
    for arm in arms:
        one = make_update(arm, runs, device)
        one()
        with profile(activities=[activity]) as found:
            microseconds(one, PROFILED, device)
        own = [
            (event.key, event.device_time_total if device.type == "cuda" else event.self_cpu_time_total, event.count)
            for event in found.key_averages()
        ]
        rows += [
            (arm, runs, key, count / PROFILED, round(spent / PROFILED, 2))
            for key, spent, count in sorted(own, key=lambda row: -row[1])
        ]
    return rows


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    output_folder(path.parent)
    replace_text(path, text.getvalue())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write the numbers where files are named."""
    parser = Parser("update", __doc__)
    parser.add_argument("--arms", nargs="+", default=["dqn", "gram"], metavar="ARM", help="the first is the yardstick")
    parser.add_argument("--runs", nargs="+", type=int, default=[1, 12], metavar="P")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--no-tf32", action="store_true", help="products of whole float32, on CUDA")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--count", type=int, default=30, help="updates in a repeat")
    parser.add_argument("--csv", type=new_file, help="write the times of all repeats to this file")
    parser.add_argument("--kernels", type=new_file, help="write the kernels of an update to this file")
    options = parser.parse_args(arguments)
    try:
        return run(options)
    except UserError as error:
        complain("update", error)
        return 2


def run(options: argparse.Namespace) -> int:
    """See `main`.

    Raises
    ------
    UserError
        If a number is below 1, if there is no CUDA, no such arm, or not the memory for it, or if both tables are to be
        one file.
    """
    least = min([*options.runs, options.repeats, options.count])
    if least < 1:
        raise UserError(f"--runs, --repeats and --count begin at 1, not {least}")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"torch {torch.__version__} sees no CUDA; choose --device cpu")
    device = torch.device(options.device)
    arms = list(dict.fromkeys(options.arms))
    for arm in arms:
        parse_arm(arm, KAPPA)
    if options.csv and options.csv == options.kernels:
        raise UserError(f"--csv and --kernels are both '{options.csv}'; name two files")
    check_memory(len(arms), max(options.runs), device)
    torch.backends.cuda.matmul.allow_tf32 = not options.no_tf32
    timings: list[Timing] = []
    found = []
    for runs in options.runs:
        timings += measure(arms, runs, device, options.repeats, options.count)
        if options.csv:  # after every size, so that nothing is lost with the machine
            rounded = [(*timing[:-1], round(timing.microseconds, 2)) for timing in timings]
            write(options.csv, Timing._fields, rounded)
        if options.kernels:
            found += kernels(arms, runs, device)
            write(options.kernels, ("arm", "runs", "kernel", "calls", "us"), found)
    print(table(timings, arms))
    return 0


if __name__ == "__main__":
    sys.exit(main())
