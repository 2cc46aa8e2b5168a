"""Doing what is left of a study."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from gramian.core.progress import Progress, counted
from gramian.study.manifest import SETTLED
from gramian.study.plan import Plan, Population
from gramian.study.status import run_state, unfinished
from gramian.study.worker import Outcome, record_failure

BUSY_S = 2.0
"""Pause before a population that another process is working on is looked at again."""
FOLLOW_S = 5.0
"""Pause between two looks at how far the runs have come; they say it about as often."""
STRETCH_S = 30.0
"""Time over which a rate is measured."""
STALL_S = 20.0
"""A longer pause without a step is a start or a compilation: it counts for no rate."""


class Executor(Protocol):
    """Brings populations to processes, and takes up again those that failed."""

    emulator_threads: int
    """Processes that play the Atari games of a population."""

    def call(self, function: str, **arguments: Any) -> Any:
        """Let one process do one of `gramian.study.worker.FUNCTIONS`."""

    def run(self, study: Path, populations: Sequence[str]) -> Iterator[Outcome]:
        """Do the populations; gives what came of each as it becomes known."""

    def stop(self, population: str) -> None:
        """Save what has been trained of a population and stop it; from any thread, any number of times."""

    def close(self) -> None:
        """Stop all processes, after they have saved."""


class Deadline:
    """Stops early what would not be finished when the ``clock`` says ``ends``, so that the rest is.

    Where some populations can be finished at the current rate, and not all, the one with the most to do is stopped; the
    others get its share of the machine. Where none can, all go on to the end. ``wanted`` are the agent steps of each
    population in the plan's order.
    """

    def __init__(
        self,
        wanted: Mapping[str, int],
        ends: float,
        stop: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wanted, self._ends, self._stop, self._clock = wanted, ends, stop, clock
        self._given_up: set[str] = set()
        self._seen = self._begun = (-math.inf, -1)
        self._rates: list[float] = []

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self._clock() >= self._ends

    def leave_out(self, population: str) -> None:
        """Take a population that has failed out of the reckoning."""
        self._given_up.add(population)

    def look(self, done: Mapping[str, int]) -> None:
        """Stop what is not to go on; to be called every few seconds with the agent steps of every population."""
        missing = {name: wanted - done[name] for name, wanted in self._wanted.items() if done[name] < wanted}
        left = {name: steps for name, steps in missing.items() if name not in self._given_up}
        reached = self._rate(sum(done.values())) * (self._ends - self._clock())
        if self.is_over:
            self._given_up.update(left)
        elif left and min(left.values()) <= reached < sum(left.values()):
            self._given_up.add(max(reversed(left), key=left.__getitem__))  # of equals the last in the plan
            self._rates.clear()
        for name in missing.keys() & self._given_up:  # again and again: one that has just begun may not have heard it
            self._stop(name)

    def _rate(self, done: int) -> float:
        """Agent steps a second: the best of the last four stretches without a pause; NaN while they are fewer."""
        now = self._clock()
        if done > self._seen[1]:
            if now - self._seen[0] > STALL_S:
                self._begun = (now, done)
            self._seen = (now, done)
            if now - self._begun[0] >= STRETCH_S:
                self._rates.append((done - self._begun[1]) / (now - self._begun[0]))
                self._begun = self._seen
        return max(self._rates[-4:]) if len(self._rates) >= 4 else math.nan


def run_study(study: Path, plan: Plan, executor: Executor, ends: float = math.inf) -> list[Outcome]:
    """Do what is not done, until ``ends`` by `time.monotonic`; `Deadline` stops what would not be finished by then.

    A population of another process is waited for, and taken over if that process dies. Gives the populations that
    failed or were stopped, and those that others were still at work on when time was over.
    """
    pending = unfinished(study, plan)
    failures: list[Outcome] = []
    stopped: list[Outcome] = []
    deadline = Deadline(_wanted(plan), ends, executor.stop)
    with _followed(study, plan, deadline.look) as following:
        while pending:
            busy: list[str] = []
            for outcome in executor.run(study, pending):
                if outcome.state == "busy":
                    busy.append(outcome.population)
                elif outcome.state == "failed":
                    record_failure(study, plan.population(outcome.population), outcome.reason)
                    failures.append(outcome)
                    deadline.leave_out(outcome.population)
                elif outcome.state == "stopped":
                    stopped.append(outcome)
                counts = {"failed": len(failures), "stopped": len(stopped)}
                following.note = ", ".join(f"{counted(n, 'population')} {what}" for what, n in counts.items() if n)
            left = unfinished(study, plan)
            pending = [identifier for identifier in left if identifier in busy]
            stopped = [outcome for outcome in stopped if outcome.population in left]  # or done by others since
            if deadline.is_over:
                return [*failures, *stopped, *(Outcome(identifier, "busy") for identifier in pending)]
            if pending:
                time.sleep(BUSY_S)
    return [*failures, *stopped]


def _wanted(plan: Plan) -> dict[str, int]:
    """Agent steps of all runs of each population."""
    return {one.id: plan.config(one).agent_steps * len(one.runs) for one in plan.populations}


def agent_steps(study: Path, plan: Plan, population: Population) -> int:
    """Agent steps that the runs of a population have done; all of them where none is left to train."""
    found = [run_state(study, population, run.name) for run in population.runs]
    if all(state in SETTLED for state, *_ in found):
        return plan.config(population).agent_steps * len(population.runs)
    return sum(steps for _, steps, _ in found)


@contextmanager
def _followed(study: Path, plan: Plan, look: Callable[[Mapping[str, int]], object]) -> Iterator[Progress]:
    """Show the agent steps of all runs while the block runs, whatever process does them; ``look`` gets them too."""

    def steps() -> dict[str, int]:
        return {population.id: agent_steps(study, plan, population) for population in plan.populations}

    ended = threading.Event()
    begun = sum(steps().values())
    with Progress(sum(_wanted(plan).values()), plan.title, unit="agent step", done=begun) as progress:

        def follow() -> None:
            while not ended.wait(FOLLOW_S):
                found = steps()
                progress.advance(sum(found.values()) - progress.done)
                look(found)

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield progress
        finally:
            ended.set()
            follower.join()
            progress.advance(sum(steps().values()) - progress.done)
