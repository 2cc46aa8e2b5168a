"""What a penalty or an agent adds to an update, as training does it: in turn, on CUDA as compiled graphs.

    python -m benchmarks.update [--arms dqn gram] [--agents dqn rainbow] [--runs 1 12] [--no-tf32] [--csv FILE]

The network is that of Atari with Seaquest's 18 actions, a batch 32 random frames. Every arm is combined with every
agent; ratios are to the first, taken within a repeat, so that the noise of the machine affects both. The update of an
agent with prioritised replay includes the priorities of 1M transitions: new priorities for the last batch, the draw of
the next one and its importance weights. The value of a penalty is not computed: in training nothing reads it between
two rows of the log.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.command_line import Parser, exit_code, new_file, spread, table, whole, write_csv
from gramian.core.arms import parse_arm
from gramian.core.errors import UserError
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.agent.streams import Stream, torch_bits
from gramian.deep.engines.graphs import random_batch, record
from gramian.deep.replay.priorities import ONE, Exponents, Priorities
from gramian.deep.training.agents import AGENTS, agent_parts, head_of
from gramian.deep.training.memory import learner_bytes, memory_bill

KAPPA = 0.1
BATCH_SIZE = 32
"""Of `random_batch`."""
TRANSITIONS = 1_000_000
"""That have a priority."""


class Timing(NamedTuple):
    """Mean time of one update in one repeat."""

    runs: int
    tf32: bool
    repeat: int
    arm: str
    """With its agent, where that is not the only one: ``rainbow gram``."""
    microseconds: float


def spec_of(agent: str) -> NetworkSpec:
    """The network of an agent."""
    return NetworkSpec("nature", (4, 84, 84), actions=18, features_dim=512, head=head_of(agent_parts(agent), "atari"))


def make_update(agent: str, arm: str, runs: int, device: torch.device) -> Callable[[], object]:
    """One update of ``runs`` runs, always of the same batch; on CUDA it is only launched."""
    parts, spec, arms = agent_parts(agent), spec_of(agent), [parse_arm(arm, KAPPA)] * runs
    learner = Learner(spec, LearnerConfig(double_q=parts["double_q"]), list(range(runs)), arms, device=device)
    batch = random_batch(spec, runs, device, number=0, weighted=parts["prioritized"])
    draw = make_draw(parts["n_step"], runs, device) if parts["prioritized"] else None

    def learn() -> None:
        if draw is not None:
            draw(learner.state.updates, batch)
        update(learner.objective, learner.adam, learner.layout, learner.state, batch)

    if device.type == "cpu":
        return learn
    return record(learn, learner.state, torch.cuda.Stream(device), compiled=True)


def make_draw(n_step: int, runs: int, device: torch.device) -> Callable[[Tensor, Batch], None]:
    """What prioritised replay adds to an update: a function of the number of the update and of its batch."""
    priorities = Priorities((runs, 1), TRANSITIONS, n_step, Exponents(), device)
    priorities.allocate(BATCH_SIZE)
    priorities.flat[:, :TRANSITIONS] = ONE
    first = torch.zeros(runs, 1, dtype=torch.int64, device=device)
    seeds, numbers = torch.arange(runs, device=device)[:, None], torch.arange(BATCH_SIZE, device=device)
    losses = torch.rand(runs, BATCH_SIZE, device=device)

    def draw(counter: Tensor, batch: Batch) -> None:
        priorities.record(losses, slice(None))
        priorities.settle(first)
        drawn = priorities.draw(torch_bits(seeds, Stream.REPLAY, counter[:, None], numbers), first)
        priorities.expect(*drawn)
        assert batch.weights is not None
        batch.weights.copy_(priorities.weights(*drawn))

    return draw


def check_memory(agents: Sequence[str], arms: int, runs: int, device: torch.device) -> None:
    """Refuse learners that do not fit, before they are made."""
    pixels = 2 * runs * BATCH_SIZE * math.prod(spec_of(agents[0]).observation_shape)
    drawn = pixels * torch.int64.itemsize  # pixels as they are drawn, on the host
    learners = sum(learner_bytes(spec_of(agent), runs, torch.float32) for agent in agents)
    items = {"learners": arms * learners, "batches": arms * len(agents) * pixels}
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


def measure(
    agents: Sequence[str], arms: Sequence[str], runs: int, device: torch.device, repeats: int, count: int
) -> list[Timing]:
    """Every agent and arm in every repeat, in turn."""
    updates = {name_of(agent, arm, agents): make_update(agent, arm, runs, device) for agent in agents for arm in arms}
    for one in updates.values():  # libraries set up their workspaces
        microseconds(one, 2, device)
    tf32 = device.type == "cuda" and torch.backends.cuda.matmul.allow_tf32
    return [
        Timing(runs, tf32, repeat, arm, round(microseconds(one, count, device), 2))
        for repeat in range(repeats)
        for arm, one in updates.items()
    ]


def name_of(agent: str, arm: str, agents: Sequence[str]) -> str:
    """What a table calls an arm of an agent."""
    return arm if len(agents) == 1 else f"{agent} {arm}"


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
    add("--arms", nargs="+", default=["dqn", "gram"], metavar="ARM")
    add("--agents", nargs="+", default=["dqn"], metavar="AGENT", choices=AGENTS)
    add("--runs", nargs="+", type=whole(1, 10**7), default=[1, 12], metavar="P")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    add("--no-tf32", action="store_true", help="products of float32, on CUDA")
    add("--repeats", type=whole(1, 10**6), default=21)
    add("--count", type=whole(1, 10**6), default=30, help="updates in a repeat")
    add("--csv", type=new_file, help="write the times of all repeats to this file")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"torch {torch.__version__} sees no CUDA; choose --device cpu")
    device = torch.device(options.device)
    agents, arms = (list(dict.fromkeys(names)) for names in (options.agents, options.arms))
    for arm in arms:
        parse_arm(arm, KAPPA)
    check_memory(agents, len(arms), max(options.runs), device)
    torch.backends.cuda.matmul.allow_tf32 = not options.no_tf32
    timings: list[Timing] = []
    for runs in options.runs:
        timings += measure(agents, arms, runs, device, options.repeats, options.count)
        if options.csv:  # after every size, so that nothing is lost with the machine
            write_csv(options.csv, Timing._fields, timings)
    print(page_table(timings, [name_of(agent, arm, agents) for agent in agents for arm in arms]), end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("update", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
