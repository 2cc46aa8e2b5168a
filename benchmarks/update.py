"""What a penalty adds to an update, as training does it: the arms in turn, on CUDA as compiled graphs.

    python -m benchmarks.update [--arms dqn gram] [--runs 1 12] [--no-tf32] [--csv FILE]

The network is that of Atari, a batch 32 random frames. A ratio is taken within a repeat, so that the noise of the
machine affects both arms. The value of the penalty is not computed: in training nothing reads it between two rows of
the log.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from benchmarks.command_line import Parser, exit_code, new_file, spread, table, whole, write_csv
from gramian.core.arms import parse_arm
from gramian.core.errors import UserError
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.engines.graphs import random_batch, record
from gramian.deep.training.memory import learner_bytes, memory_bill

KAPPA = 0.1
SPEC = NetworkSpec("nature", (4, 84, 84), actions=6, features_dim=512)
BATCH_SIZE = 32
"""Of `random_batch`."""


class Timing(NamedTuple):
    """Mean time of one update in one repeat."""

    runs: int
    tf32: bool
    repeat: int
    arm: str
    microseconds: float


def make_update(arm: str, runs: int, device: torch.device) -> Callable[[], object]:
    """One update of ``runs`` runs of an arm, always of the same batch; on CUDA it is only launched."""
    learner = Learner(SPEC, LearnerConfig(), list(range(runs)), [parse_arm(arm, KAPPA)] * runs, device=device)
    batch = random_batch(SPEC, runs, device, number=0)

    def learn() -> None:
        update(learner.objective, learner.adam, learner.layout, learner.state, batch)

    if device.type == "cpu":
        return learn
    return record(learn, learner.state, torch.cuda.Stream(device), compiled=True)


def check_memory(arms: int, runs: int, device: torch.device) -> None:
    """Refuse learners that do not fit, before they are made."""
    pixels = 2 * runs * BATCH_SIZE * math.prod(SPEC.observation_shape)
    drawn = pixels * torch.int64.itemsize  # pixels as they are drawn, on the host
    items = {"learners": arms * learner_bytes(SPEC, runs, torch.float32), "batches": arms * pixels}
    memory_bill(items | ({"drawn pixels": drawn} if device.type == "cpu" else {}), device, "lower --runs")


def microseconds(one: Callable[[], object], count: int, device: torch.device) -> float:
    """Mean time of ``count`` updates in a row."""
    synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        one()
    synchronize()
    return 1e6 * (time.perf_counter() - start) / count


def measure(arms: Sequence[str], runs: int, device: torch.device, repeats: int, count: int) -> list[Timing]:
    """Every arm in every repeat, in turn."""
    updates = {arm: make_update(arm, runs, device) for arm in arms}
    for one in updates.values():  # libraries set up their workspaces
        microseconds(one, 2, device)
    tf32 = device.type == "cuda" and torch.backends.cuda.matmul.allow_tf32
    return [
        Timing(runs, tf32, repeat, arm, round(microseconds(one, count, device), 2))
        for repeat in range(repeats)
        for arm, one in updates.items()
    ]


def page_table(timings: Sequence[Timing], arms: Sequence[str]) -> str:
    """The arms beside the first of them; median, least and most of the repeats."""
    lines = []
    for runs in sorted({timing.runs for timing in timings}):
        times = {arm: [one.microseconds for one in timings if (one.runs, one.arm) == (runs, arm)] for arm in arms}
        for arm, own in times.items():
            ratios = [mine / first for mine, first in zip(own, times[arms[0]], strict=True)]
            lines.append([arm, str(runs), "yes" if timings[0].tf32 else "no", spread(own, 0), spread(ratios, 3)])
    return table(["arm", "runs", "TF32", "µs", f"of {arms[0]}"], lines)


def measured(arguments: Sequence[str] | None) -> None:
    """Measure, print the table, and write every reading where a file is named."""
    parser = Parser("update", __doc__)
    add = parser.add_argument
    add("--arms", nargs="+", default=["dqn", "gram"], metavar="ARM", help="ratios are of the first")
    add("--runs", nargs="+", type=whole(1, 10**7), default=[1, 12], metavar="P")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    add("--no-tf32", action="store_true", help="products of float32, on CUDA")
    add("--repeats", type=whole(1, 10**6), default=21)
    add("--count", type=whole(1, 10**6), default=30, help="updates in a repeat")
    add("--csv", type=new_file, help="write the times of all repeats to this file")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"torch {torch.__version__} sees no CUDA; choose --device cpu")
    device, arms = torch.device(options.device), list(dict.fromkeys(options.arms))
    for arm in arms:
        parse_arm(arm, KAPPA)
    check_memory(len(arms), max(options.runs), device)
    torch.backends.cuda.matmul.allow_tf32 = not options.no_tf32
    timings: list[Timing] = []
    for runs in options.runs:
        timings += measure(arms, runs, device, options.repeats, options.count)
        if options.csv:  # after every size, so that nothing is lost with the machine
            write_csv(options.csv, Timing._fields, timings)
    print(page_table(timings, arms), end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("update", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
