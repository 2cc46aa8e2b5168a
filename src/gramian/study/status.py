"""How a study stands, from its folder alone."""

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gramian.study.attempts import attempts, is_locked
from gramian.study.logs import ExportLogs, FolderLogs, open_logs
from gramian.study.parts import Cell, cells_text
from gramian.study.plan import Plan, Population
from gramian.study.states import SETTLED
from gramian.study.work import UNREADABLE

if TYPE_CHECKING:
    from rich.table import Table

STATES = ("failed", "running", "stopped", "waiting", "diverged", "done")
"""``stopped``: begun, and nobody is at work on it. ``diverged``: came to its end with numbers that are not finite."""
REFRESH_S = 2.0
HEADINGS = ("population", "games", "runs", "state", "done", "tries", "at work")


@dataclass(frozen=True)
class CellStatus:
    """How one run stands."""

    run: str
    state: str
    agent_steps: int
    reason: str


@dataclass(frozen=True)
class PopulationStatus:
    """How a population stands."""

    population: Population
    cells: tuple[CellStatus, ...]
    share: float
    """Of its agent steps that are in its last checkpoint."""
    tries: int
    """How many processes have taken it up."""
    holder: str
    """Host and process that is at work on it."""
    part: str = ""
    """The folder of its part, where a study is run in several."""

    @property
    def id(self) -> str:
        """Its name in the study."""
        return f"{self.part}/{self.population.id}" if self.part else self.population.id

    @property
    def state(self) -> str:
        """The state of its cells that asks for most attention."""
        return min((cell.state for cell in self.cells), key=STATES.index)


def survey(study: Path, plan: Plan) -> list[PopulationStatus]:
    """How each population of a study stands."""
    logs = open_logs(study)
    return [_survey(study, plan, population, logs) for population in plan.populations]


def _survey(study: Path, plan: Plan, population: Population, logs: FolderLogs | ExportLogs) -> PopulationStatus:
    past = attempts(study, population.id)
    found = [(run.name, *logs.state(population, run.name)) for run in population.runs]
    finished = all(state in SETTLED for _, state, _, _ in found)
    at_work = bool(past) and not finished and is_locked(study, population.id)
    failed = past[-1].reason if past and past[-1].event == "failed" and not at_work else None

    def cell(run: str, state: str, agent_steps: int, reason: str) -> CellStatus:
        if state in SETTLED:
            return CellStatus(run, state if finished else "running" if at_work else "stopped", agent_steps, reason)
        if at_work:
            return CellStatus(run, "running", agent_steps, "")
        if failed is not None:
            return CellStatus(run, "failed", agent_steps, failed)
        return CellStatus(run, "stopped" if past else "waiting", agent_steps, reason if state == "unknown" else "")

    steps = plan.config(population).agent_steps
    return PopulationStatus(
        population=population,
        cells=tuple(cell(*entry) for entry in found),
        share=1.0 if finished else sum(agent_steps for *_, agent_steps, _ in found) / (steps * len(found)),
        tries=sum(attempt.event == "started" for attempt in past),
        holder=f"{past[-1].host} {past[-1].pid}" if at_work else "",
    )


def survey_parts(plans: Mapping[Path, Plan]) -> list[PopulationStatus]:
    """How each population of a study stands that is run in parts; ``plans`` are by their folders.

    A population that has not come to its end is left out where all of its runs have, in other parts.
    """
    if len(plans) == 1:
        return [status for folder, plan in plans.items() for status in survey(folder, plan)]
    root = Path(os.path.commonpath(plans))
    statuses = [
        replace(status, part=folder.relative_to(root).as_posix())
        for folder, plan in plans.items()
        for status in survey(folder, plan)
    ]
    settled = {cell.run for status in statuses for cell in status.cells if cell.state in SETTLED}
    return [
        status
        for status in statuses
        if status.state in SETTLED or not all(cell.run in settled for cell in status.cells)
    ]


def headline(title: str, statuses: list[PopulationStatus], left: Sequence[Cell] = ()) -> str:
    """Give one line that counts the cells in each state, those in no part of the study (``left``) too."""
    counts = Counter(cell.state for status in statuses for cell in status.cells)
    cells = counts.total() + len(left)
    share = sum(status.share * len(status.cells) for status in statuses) / cells
    states = [f"{counts[state]:,} {state}" for state in reversed(STATES) if counts[state]]
    if left:
        states.append(f"{len(left):,} in no part: {cells_text(list(left))}")
    return f"{title}: {cells:,} cells, {share:.0%} of the steps; " + ", ".join(states)


def reasons(statuses: list[PopulationStatus]) -> list[str]:
    """Give one line for each cell that failed or diverged, or whose status is damaged, with the reason."""
    return [
        f"{status.id}/{cell.run} {cell.state}: {cell.reason}"
        for status in statuses
        for cell in status.cells
        if cell.state in ("failed", "diverged") or cell.reason == UNREADABLE
    ]


def plain(title: str, statuses: list[PopulationStatus], left: Sequence[Cell] = ()) -> str:
    """The whole as text."""
    rows = [HEADINGS, *(_row(status) for status in statuses)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([headline(title, statuses, left), "", *lines, *reasons(statuses)])


def watch(plans: Mapping[Path, Plan], *, once: bool, left: Sequence[Cell] = ()) -> None:
    """Show how a study stands: live on a terminal until it is over or Ctrl-C is pressed, else once.

    Parameters
    ----------
    plans
        Of the study or of its parts, by their folders.
    once
        Show it once in any case.
    left
        Cells that are in none of the parts.
    """
    title = ", ".join(dict.fromkeys(plan.title for plan in plans.values()))
    statuses = survey_parts(plans)
    if once or not sys.stdout.isatty():
        print(plain(title, statuses, left))
        return
    from rich.console import Console
    from rich.live import Live

    console = Console()
    # Ctrl-C ends the looking and nothing else.
    with (
        suppress(KeyboardInterrupt),
        Live(_table(title, statuses, console.height, left), console=console, auto_refresh=False) as live,
    ):
        while any(status.state not in SETTLED for status in statuses):
            time.sleep(REFRESH_S)
            statuses = survey_parts(plans)
            live.update(_table(title, statuses, console.height, left), refresh=True)
    for line in reasons(statuses):
        console.print(line, markup=False, highlight=False)


def _table(title: str, statuses: list[PopulationStatus], height: int, left: Sequence[Cell]) -> "Table":
    """As many populations as the terminal has room for; those that ask for attention come first."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(headline(title, statuses, left)), title_justify="left", box=None)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("runs", "done", "tries") else "left", no_wrap=True)
    room = max(1, height - 4)
    ordered = sorted(statuses, key=lambda status: STATES.index(status.state))
    for status in ordered[:room]:
        table.add_row(*map(Text, _row(status)))
    if len(ordered) > room:
        table.caption = f"{len(ordered) - room} populations more"
    return table


def _row(status: PopulationStatus) -> tuple[str, ...]:
    games = status.population.games
    shown = games[0] if len(games) == 1 else f"{games[0]} and {len(games) - 1} more"
    return (
        status.id,
        shown,
        str(len(status.cells)),
        status.state,
        f"{status.share:.0%}",
        str(status.tries),
        status.holder,
    )
