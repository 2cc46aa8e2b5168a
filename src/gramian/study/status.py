"""How a study stands: the process that works on each population, its outcome, and the progress of its runs.

``populations/<id>.lock`` is held with ``flock``: the kernel releases it when its holder dies. On a network file system
that needs NFS 4, or a mount with ``flock`` (Lustre). ``populations/<id>.attempts.jsonl`` gets a line when a process
takes the population up (``started``) and one for its outcome: ``finished`` (once at most), ``interrupted`` or
``failed``.
"""

import fcntl
import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from gramian.core.files import EXPORT
from gramian.study.manifest import POPULATIONS, SETTLED, Cell, cells_text, read_manifest
from gramian.study.plan import Plan, Population

Event = Literal["started", "finished", "interrupted", "failed"]
State = tuple[str, int, str]
"""State, agent steps and reason of a run."""

STATES = ("failed", "running", "stopped", "waiting", "diverged", "done")
"""``stopped``: begun, and no process is at work on it. ``diverged``: ended with numbers that are not finite."""
UNREADABLE = "its status.json cannot be read; the same command goes on from the checkpoint and writes it anew"
REFRESH_S = 2.0
HEADINGS = ("population", "games", "runs", "state", "done", "tries", "at work")


@dataclass(frozen=True)
class Attempt:
    """A line of the log of attempts."""

    event: Event
    host: str
    pid: int
    time: str
    reason: str = ""


@contextmanager
def lock(study: Path, population: str) -> Iterator[bool]:
    """Hold the lock of a population; gives False, at once, where another process holds it."""
    path = study / POPULATIONS / f"{population}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True  # closing the file releases the lock


def is_locked(study: Path, population: str) -> bool:
    """Whether a process is at work on a population."""
    try:
        with (study / POPULATIONS / f"{population}.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def record(study: Path, population: str, event: Event, reason: str = "") -> None:
    """Add a line to the log of attempts; only the holder of the lock does so."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"event": event, "host": socket.gethostname(), "pid": os.getpid(), "time": now, "reason": reason}
    with _attempts_path(study, population).open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # the writer before was killed in the middle of its line
                file.write(b"\n")
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def attempts(study: Path, population: str) -> list[Attempt]:
    """All lines of the log; one that is no attempt, for it was cut short, is left out."""
    try:
        lines = _attempts_path(study, population).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        with suppress(ValueError, TypeError):
            found.append(Attempt(**json.loads(line)))
    return found


def _attempts_path(study: Path, population: str) -> Path:
    return study / POPULATIONS / f"{population}.attempts.jsonl"


def run_state(study: Path, population: Population, run: str) -> State:
    """State, agent steps and reason of a run: ``waiting`` before it begins, ``unknown`` if its status is damaged."""
    try:
        status = json.loads((study / POPULATIONS / population.id / run / "status.json").read_text(encoding="utf-8"))
        return str(status["state"]), int(status["agent_steps"]), str(status["reason"])
    except (FileNotFoundError, NotADirectoryError):
        return "waiting", 0, ""
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown", 0, UNREADABLE


def is_finished(study: Path, population: Population) -> bool:
    """Whether all runs of a population have come to their end."""
    return all(run_state(study, population, run.name)[0] in SETTLED for run in population.runs)


def unfinished(study: Path, plan: Plan) -> list[str]:
    """Populations that are not recorded as finished, or whose folders do not say so, in the plan's order."""
    return [
        population.id
        for population in plan.populations
        if all(attempt.event != "finished" for attempt in attempts(study, population.id))
        or not is_finished(study, population)
    ]


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
    """The folder of its part, of a study in several."""

    @property
    def id(self) -> str:
        """Its name in the study."""
        return f"{self.part}/{self.population.id}" if self.part else self.population.id

    @property
    def state(self) -> str:
        """The state of its cells that asks for most attention."""
        return min((cell.state for cell in self.cells), key=STATES.index)


def survey(study: Path, plan: Plan) -> list[PopulationStatus]:
    """How each population of a study stands, in its folder or in that of its export."""
    exported = _exported_states(study) if (study / EXPORT).exists() else None
    return [_survey(study, plan, population, exported) for population in plan.populations]


def _exported_states(study: Path) -> dict[str, State]:
    """States of the runs of an export, by their folders; one without a status is planned, so waiting."""
    from gramian.study.store import read_export

    runs = read_export(study / EXPORT, read_manifest(study / EXPORT)).runs
    return {
        folder: ("unknown", 0, UNREADABLE) if steps is None else (state, steps, reason)
        for folder, state, steps, reason in runs.select("folder", "state", "agent_steps", "reason").iter_rows()
        if state != "planned"
    }


def _survey(study: Path, plan: Plan, population: Population, exported: Mapping[str, State] | None) -> PopulationStatus:
    def state_of(run: str) -> State:
        if exported is None:
            return run_state(study, population, run)
        return exported.get(f"{study}/{POPULATIONS}/{population.id}/{run}", ("waiting", 0, ""))

    past = attempts(study, population.id)
    found = [(run.name, *state_of(run.name)) for run in population.runs]
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
    """How each population of a study in parts stands, except those that are not settled here and are elsewhere."""
    root = Path(os.path.commonpath(plans))
    statuses = [
        replace(status, part=folder.relative_to(root).as_posix() if len(plans) > 1 else "")
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
        states.append(f"{len(left):,} in no part: {cells_text(left)}")
    return f"{title}: {cells:,} cells, {share:.0%} of the steps; " + ", ".join(states)


def reasons(statuses: list[PopulationStatus]) -> list[str]:
    """Give one line for each cell that failed or diverged, or whose status is damaged, with the reason."""
    return [
        f"{status.id}/{cell.run} {cell.state}: {cell.reason}"
        for status in statuses
        for cell in status.cells
        if cell.state in ("failed", "diverged") or cell.reason == UNREADABLE
    ]


def plain(title: str, statuses: list[PopulationStatus], left: Sequence[Cell] = (), most: int = 0) -> str:
    """The whole as text; of more than ``most`` populations those that ask for attention, where it is not 0."""
    shown = statuses
    if 0 < most < len(statuses):
        shown = sorted(statuses, key=lambda status: STATES.index(status.state))[:most]
    rows = [HEADINGS]
    for status in shown:
        games = status.population.games
        playing = games[0] if len(games) == 1 else f"{games[0]} and {len(games) - 1} more"
        share, tries = f"{status.share:.0%}", str(status.tries)
        rows.append((status.id, playing, str(len(status.cells)), status.state, share, tries, status.holder))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    more = [f"{len(statuses) - len(shown)} populations more"] if len(shown) < len(statuses) else reasons(statuses)
    return "\n".join([headline(title, statuses, left), "", *lines, *more])


def watch(plans: Mapping[Path, Plan], *, once: bool, left: Sequence[Cell] = ()) -> None:
    """Show how a study or its parts stand: live on a terminal until it is over or Ctrl-C is pressed, else once."""
    title = ", ".join(dict.fromkeys(plan.title for plan in plans.values()))
    statuses = survey_parts(plans)
    if not once and sys.stdout.isatty():
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console()
        # Ctrl-C ends the display and nothing else.
        with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False, transient=True) as live:
            while any(status.state not in SETTLED for status in statuses):
                live.update(Text(plain(title, statuses, left, max(1, console.height - 4))), refresh=True)
                time.sleep(REFRESH_S)
                statuses = survey_parts(plans)
    print(plain(title, statuses, left))
