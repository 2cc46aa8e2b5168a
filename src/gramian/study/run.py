"""Doing what is left of a study."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from gramian.core.progress import Progress, counted
from gramian.study.allotment import Allotment
from gramian.study.attempts import attempts
from gramian.study.plan import Plan, Population
from gramian.study.states import SETTLED
from gramian.study.work import Outcome, is_finished, record_failure, run_state

BUSY_S = 2.0
"""Pause before a population that another process is working on is looked at again."""
FOLLOW_S = 5.0
"""Pause between two looks at how far the runs have come; they say it about as often."""


class Executor(Protocol):
    """Whatever brings populations to processes, and takes up again those that failed."""

    emulator_threads: int
    """Processes that play the Atari games of a population."""

    def call(self, function: str, **arguments: Any) -> Any:
        """Let one process do one of `gramian.study.work.FUNCTIONS`."""

    def run(self, study: Path, populations: Sequence[str]) -> Iterator[Outcome]:
        """Do the populations; gives what came of each as it becomes known."""

    def stop(self, population: str) -> None:
        """Save what has been trained of a population and do no more of it; `run` then says that it is stopped.

        May be called from any thread, and again and again. Of one that is done already, nothing is stopped.
        """

    def close(self) -> None:
        """Stop all processes, after they have saved."""


def unfinished(study: Path, plan: Plan) -> list[str]:
    """Names of the populations that nobody has finished yet, or whose folders do not say so, in the plan's order."""
    return [
        population.id
        for population in plan.populations
        if all(attempt.event != "finished" for attempt in attempts(study, population.id))
        or not is_finished(study, population)
    ]


def run_study(study: Path, plan: Plan, executor: Executor, ends: float = math.inf) -> list[Outcome]:
    """Do what is not done.

    A population that another process is working on is waited for, and taken over if that process dies.

    Parameters
    ----------
    ends
        When the time is over, by `time.monotonic`; what would not be finished by then is stopped (`Allotment`).

    Returns
    -------
    list of Outcome
        The populations that failed or were stopped, and those that others were still at work on when time was over.
    """
    pending = unfinished(study, plan)
    failures: list[Outcome] = []
    stopped: list[Outcome] = []
    allotment = Allotment(_wanted(plan), ends, executor.stop)
    with _followed(study, plan, allotment.look) as following:
        while pending:
            busy: list[str] = []
            for outcome in executor.run(study, pending):
                population = plan.population(outcome.population)
                if outcome.state == "busy":
                    busy.append(population.id)
                elif outcome.state == "failed":
                    record_failure(study, population, outcome.reason)
                    failures.append(outcome)
                    allotment.leave_out(population.id)
                elif outcome.state == "stopped":
                    stopped.append(outcome)
                counts = {"failed": len(failures), "stopped": len(stopped)}
                following.note = ", ".join(f"{counted(n, 'population')} {what}" for what, n in counts.items() if n)
            left = unfinished(study, plan)
            pending = [identifier for identifier in left if identifier in busy]
            stopped = [outcome for outcome in stopped if outcome.population in left]  # or done by others since
            if allotment.is_over:
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
