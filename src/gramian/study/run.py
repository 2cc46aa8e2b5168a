"""Doing what is left of a study."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from gramian.progress import Progress
from gramian.study.attempts import attempts
from gramian.study.plan import Plan
from gramian.study.work import Outcome, record_failure

BUSY_S = 2.0
"""Pause before a population that another process is working on is looked at again."""


class Executor(Protocol):
    """Whatever brings populations to processes, and takes up again those that failed."""

    def call(self, function: str, **arguments: Any) -> Any:
        """Let one process do one of `gramian.study.work.FUNCTIONS`."""

    def run(self, study: Path, populations: Sequence[str]) -> Iterator[Outcome]:
        """Do the populations; gives what came of each as it becomes known."""

    def close(self) -> None:
        """Stop all processes, after they have saved."""


def unfinished(study: Path, plan: Plan) -> list[str]:
    """Names of the populations that nobody has finished yet, in the plan's order."""
    return [
        population.id
        for population in plan.populations
        if all(attempt.event != "finished" for attempt in attempts(study, population.id))
    ]


def run_study(study: Path, plan: Plan, executor: Executor) -> list[Outcome]:
    """Do what is not done.

    A population that another process is working on is waited for, and taken over if that process dies.

    Returns
    -------
    list of Outcome
        The populations that failed.
    """
    pending = unfinished(study, plan)
    left = sum(len(plan.population(identifier).runs) for identifier in pending)
    failures: list[Outcome] = []
    with Progress(plan.cells, plan.title, unit="cell", done=plan.cells - left) as progress:
        while pending:
            busy: list[str] = []
            for outcome in executor.run(study, pending):
                population = plan.population(outcome.population)
                if outcome.state == "busy":
                    busy.append(population.id)
                elif outcome.state == "failed":
                    record_failure(study, population, outcome.reason)
                    failures.append(outcome)
                else:
                    note = f"{len(failures)} populations failed" if failures else ""
                    progress.advance(len(population.runs), note=note)
            pending = [identifier for identifier in unfinished(study, plan) if identifier in busy]
            for identifier in set(busy) - set(pending):
                progress.advance(len(plan.population(identifier).runs))
            if pending:
                time.sleep(BUSY_S)
    return failures
