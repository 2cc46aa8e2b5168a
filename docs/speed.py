"""The tables of ``docs/speed.md``, from those in ``results/speed``; ``python -m docs.results`` writes them."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command_line import spread, table
from benchmarks.contestants import CONTESTANTS
from gramian.core.csv_tables import Row, read_rows
from gramian.core.games import find_game

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results" / "speed"
STUDY_AGENT_STEPS = 441 * 5_000_000
"""Of the paper's Atari study: 49 games, 3 arms, 3 seeds; 20M frames each."""


def rows(name: str) -> list[Row]:
    """The readings of a table."""
    return read_rows(RESULTS / f"{name}.csv")


def grouped(found: Sequence[Row], *columns: str) -> dict[tuple[str, ...], list[Row]]:
    """Readings by the cells of some columns, in their order."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in found:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def rates(found: Sequence[Row]) -> list[float]:
    """Agent steps a second of each reading."""
    return [float(row["agent_steps"]) / float(row["seconds"]) for row in found]


def speed_cpu() -> str:
    """Contestants on two cores with MinAtar Breakout: rates, ratios and memory."""
    lines = []
    groups = grouped(rows("minatar-cpu"), "contestant", "runs", "processes")
    yardstick = rates(groups["sb3", "1", "1"])
    for (contestant, runs, processes), found in groups.items():
        title = CONTESTANTS[contestant].title + (f", {processes} processes" if processes != "1" else "")
        ratios = [own / other for own, other in zip(rates(found), yardstick, strict=True)]
        memory = f"{float(found[-1]['peak_rss_bytes']) / 1e9:.2f} GB"
        lines.append([title, runs, spread(rates(found), 0), spread(ratios, 2), memory])
    return table(["program", "runs", "agent steps/s", "× SB3, one process", "peak memory"], lines)


def speed_h200() -> str:
    """Populations on one H200; beside them, where they were measured in turn, other programs."""
    groups = grouped(rows("h200"), "game", "runs", "envs_per_run", "processes", "capacity")
    lines = []
    for (game, runs, envs, processes, capacity), found in groups.items():
        of = {
            name: [float(row["agent_steps_per_s"]) for row in own]
            for (name,), own in grouped(found, "contestant").items()
        }
        others = [spread(of[name], 0) if name in of else "–" for name in ("emulator", "sb3")]
        days = STUDY_AGENT_STEPS / statistics.median(of["gramian"]) / 86_400
        atari = find_game(game).kind == "atari"
        lines.append(
            [
                find_game(game).title,
                *(runs, envs, processes, f"{int(capacity):,}"),
                spread(of["gramian"], 0),
                *others,
                f"{days:.2g}" if atari and int(runs) > 1 else "–",
            ]
        )
    columns = ["runs", "environments a run", "processes", "replay of a run", "agent steps/s"]
    return table(["game", *columns, "ale-py alone", "SB3", "days for the paper's Atari study"], lines)


def speed_penalty() -> str:
    """Time of an update with the penalty in units of one without, for each size of a population."""
    said = []
    for (runs,), found in grouped(rows("update-h200"), "runs").items():
        arms = grouped(found, "arm")
        dqn, gram = ([float(row["microseconds"]) for row in arms[arm,]] for arm in ("dqn", "gram"))
        said.append(f"{statistics.median(two / one for one, two in zip(dqn, gram, strict=True)):.2f} for {runs}")
    return " and ".join(said)


def speed_start() -> str:
    """Seconds to the first update, with and without code that was compiled before."""
    seconds = {
        before: [float(row["first_update_s"]) for row in found]
        for (before,), found in grouped(rows("start-h200"), "compiled_before").items()
    }
    return f"{min(seconds['yes']):.0f}–{max(seconds['yes']):.0f} s, or {seconds['no'][0]:.0f} s"
