"""What training costs as the work grows: more runs, more cores, more time; and the bill for the paper's study."""

import argparse
import csv
import io
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.command_line import check_file
from benchmarks.contestants import Workload
from benchmarks.side_by_side import Row, emulator_note, heading, spread, workload
from benchmarks.workers import Measurement, Worker, say
from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.core.files import output_folder, replace_text, replacing
from gramian.core.games import find_game
from gramian.core.progress import counted, duration
from gramian.deep.envs import make_games
from gramian.deep.replay.device import bytes_needed
from gramian.deep.training.config import load_preset
from gramian.deep.training.memory import available_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARMS = ("dqn", "decor", "gram")
"""Of the paper's study; the runs of a population take them in turn."""
STUDY_RUNS, STUDY_AGENT_STEPS = 441, 5_000_000
"""49 games, 3 arms, 3 seeds; 20M frames each."""
MANY_RUNS, SMALL_CAPACITY = 16, 100_000
"""Beyond so many runs their replays have this size."""
STEADY_S = 300.0
"""A bill from less than this is marked."""
INTERVAL_S = 10.0
"""Of the rows of a steady measurement."""
SCALING_COLUMNS = ("sweep", "contestant", "runs", "cores", "capacity", "torch_threads", "emulator_threads", "repeat")
STEADY_COLUMNS = ("runs", "capacity", "torch_threads", "elapsed_s")
SWEEP_NEEDS = {"sweep", "contestant", "runs", "cores", "agent_steps", "seconds"}
STEADY_NEEDS = {"elapsed_s", "agent_steps", "seconds", "rss_bytes", "device_bytes"}
WATCHED_NEEDS = {"elapsed_s", "processes", "agent_steps", "rss_bytes", "device_bytes"}
"""Columns that a plot of either kind, or of a table of `benchmarks.watch`, is made from."""
WATCHED_S = 60
"""Over which a rate is taken from what runs log, every 10,000 agent steps of each."""


def grown(options: argparse.Namespace, runs: int) -> Workload:
    """The workload of gramian with so many runs."""
    preset_capacity = load_preset(options.preset).replay_capacity
    usual = preset_capacity if runs <= MANY_RUNS else min(SMALL_CAPACITY, preset_capacity)
    sized = argparse.Namespace(**{**vars(options), "capacity": usual if options.capacity is None else options.capacity})
    return workload(sized, "gramian", runs, ARMS)


def lacking(work: Workload, core_count: int) -> str:
    """What the machine does not have for this workload; empty where it has all."""
    if core_count > cores():
        return f"there {'is' if cores() == 1 else 'are'} {counted(cores(), 'core')}"
    engine = make_games(find_game(work.game), 1, work.settings.environment)
    try:
        needed = bytes_needed(engine.observation, work.runs, work.envs_per_run, work.capacity)
    finally:
        engine.close()
    free = available_bytes(work.device)
    if needed > free:
        return f"its replays take {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free on {work.device}"
    return ""


def points(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """(sweep, runs, cores) to be measured: first the runs grow, then the cores."""
    yield from (("runs", runs, cores()) for runs in options.populations)
    yield from (("cores", options.cores_at, count) for count in options.cores)


class Table:
    """A CSV of measurements. With a folder it is there after every row: who stops long work loses none of it."""

    numbers = tuple(name for name in Measurement._fields if name != "parts_s")

    def __init__(self, options: argparse.Namespace, name: str, columns: Sequence[str]) -> None:
        self._path = options.out / f"{name}.csv" if options.out else None
        self._text = io.StringIO()
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow([*columns, *self.numbers])

    def add(self, cells: Sequence[object], found: Measurement) -> None:
        """Add a row: the cells, and what was measured."""
        self._writer.writerow([*cells, *(getattr(found, name) for name in self.numbers)])
        if self._path is not None:
            replace_text(self._path, self.text)

    @property
    def text(self) -> str:
        """All rows so far."""
        return self._text.getvalue()


def scaling(options: argparse.Namespace) -> tuple[str, str]:
    """Agent steps per second of gramian and of the emulator alone; the page and the CSV."""
    table = Table(options, "scaling", SCALING_COLUMNS)
    lines = [
        "| runs | cores | replay of a run | torch threads | agent steps/s | a run | share of the emulator | memory |",
        "|" + " ---: |" * 8,
    ]
    skipped = []
    for sweep, runs, count in points(options):
        work = grown(options, runs)
        if reason := lacking(work, count):
            skipped.append(f"not run: {counted(runs, 'run')} on {counted(count, 'core')}: {reason}")
            say(skipped[-1])
            continue
        ours, bare = measured([work, replace(work, contestant="emulator")], count, options)
        rates = [found.rate for found in ours.repeats]
        share = statistics.median(mine / alone.rate for mine, alone in zip(rates, bare.repeats, strict=True))
        last = ours.repeats[-1]
        memory = f"{last.peak_rss_bytes / 1e9:.2f} GB" + (
            f", GPU {last.device_bytes / 1e9:.2f} GB" if last.device_bytes else ""
        )
        lines.append(
            f"| {runs} | {count} | {work.capacity:,} | {ours.threads} | {spread(rates, 0)} | "
            f"{statistics.median(rates) / runs:,.0f} | {share:.1%} | {memory} |"
        )
        say(lines[-1])
        for row in (ours, bare):
            for repeat, found in enumerate(row.repeats):
                cells = [sweep, row.contestant, runs, count, work.capacity, row.threads, row.emulator_threads, repeat]
                table.add(cells, found)
    sized = argparse.Namespace(**{**vars(options), "capacity": grown(options, options.populations[0]).capacity})
    notes = [emulator_note(options.emulator_threads)] if find_game(options.game).kind == "atari" else []
    page = [*heading(sized), "", *lines, "", *notes, *skipped]
    return "\n".join(page).rstrip() + "\n", table.text


def measured(works: Sequence[Workload], core_count: int, options: argparse.Namespace) -> list[Row]:
    """Contestants that take turns on so many cores, with the repeats that the options ask for."""
    with ExitStack() as processes:
        rows = [Row(one.contestant, one.runs, [processes.enter_context(Worker(one, core_count))]) for one in works]
        for row in rows:
            row.default_threads = row.workers[0].wait().default_threads
            row.calibrate(options.threads or sorted({1, min(2, core_count), row.default_threads}), options.calibration)
        for _ in range(options.repeats):
            for row in rows:
                row.repeats.append(row.measure(options.seconds, row.threads))
    return rows


def steady(options: argparse.Namespace) -> tuple[str, str]:
    """Rate and memory of gramian over time, and the bill for the paper's study; the page and the CSV."""
    work = grown(options, options.populations[0])
    if reason := lacking(work, cores()):
        raise UserError(f"{counted(work.runs, 'run')} cannot be measured: {reason}; lower --capacity or --populations")
    table = Table(options, "steady", STEADY_COLUMNS)
    with ExitStack() as processes:
        row = Row("gramian", work.runs, [processes.enter_context(Worker(work))])
        row.default_threads = row.workers[0].wait().default_threads
        row.calibrate(options.threads or sorted({1, 2, row.default_threads}), options.calibration)
        elapsed_s = 0.0
        while elapsed_s < options.steady:
            found = row.measure(min(INTERVAL_S, options.steady), row.threads)
            elapsed_s += found.seconds
            row.repeats.append(found)
            table.add([work.runs, work.capacity, row.threads, f"{elapsed_s:.3f}"], found)
            say(
                f"{elapsed_s:7.0f} s {found.rate:10,.0f} agent steps/s {found.rss_bytes / 1e9:7.2f} GB "
                f"{found.device_bytes / 1e9:7.2f} GB on the GPU"
            )
    sized = argparse.Namespace(**{**vars(options), "capacity": work.capacity})
    return "\n".join([*heading(sized)[:1], "", *bill(row, elapsed_s)]) + "\n", table.text


def bill(row: Row, elapsed_s: float) -> list[str]:
    """What the paper's study takes at the rate that was measured."""
    rate = sum(found.agent_steps for found in row.repeats) / elapsed_s
    study_s = STUDY_RUNS * STUDY_AGENT_STEPS / rate
    half = len(row.repeats) // 2 or 1
    halves = [statistics.median(found.rate for found in part) for part in (row.repeats[:half], row.repeats[-half:])]
    first, last = row.repeats[0], row.repeats[-1]
    lines = [
        f"- {counted(row.runs, 'run')}, {duration(elapsed_s)}: {rate:,.0f} agent steps/s, all runs together "
        f"({spread([found.rate for found in row.repeats], 0)} in {counted(len(row.repeats), 'interval')}); second half "
        f"against first {halves[1] / halves[0]:.3f}",
        f"- memory {first.rss_bytes / 1e9:.3f} GB after the first interval, {last.rss_bytes / 1e9:.3f} GB after the "
        f"last; on the GPU {first.device_bytes / 1e9:.3f} and {last.device_bytes / 1e9:.3f} GB",
        f"- the paper's study, {STUDY_RUNS} runs of {STUDY_AGENT_STEPS:,} agent steps, in populations like this one "
        f"after the other: {study_s / 86_400:.2f} days",
    ]
    if elapsed_s < STEADY_S:
        lines.append(f"- this bill is provisional: it comes from less than {STEADY_S:.0f} s")
    return lines


def plot(table: Path, picture: Path) -> None:
    """Draw what `scaling`, `steady` or `benchmarks.watch` measured.

    Raises
    ------
    UserError
        If the table cannot be read, or is none of theirs, or if the picture cannot be written.
    """
    try:
        rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    except OSError as error:
        raise UserError(f"cannot read '{table}': {(error.strerror or str(error)).lower()}") from error
    except (UnicodeDecodeError, csv.Error):
        rows = []
    known = (SWEEP_NEEDS, STEADY_NEEDS, WATCHED_NEEDS)
    if not rows or not any(columns <= rows[0].keys() for columns in known):
        raise UserError(
            f"'{table}' is no table of --scaling, --steady or benchmarks.watch; give the CSV that one of them wrote"
        )
    if None in rows[-1].values():
        raise UserError(f"'{table}' ends in the middle of a row; take that row away")
    if not {"sweep", "seconds"} & rows[0].keys():
        rows = _by_minute(rows)
        if not rows:
            raise UserError(f"'{table}' has less than {WATCHED_S} s of work; watch for longer")
    check_file(picture, ".png")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("a plot needs matplotlib; install gramian[lab], or draw it on another machine") from error
    figure = Figure(layout="constrained")
    if "sweep" in rows[0]:
        _draw_sweeps(figure, rows)
    else:
        _draw_steady(figure, rows)
    output_folder(picture.parent)
    with replacing(picture) as temporary:
        figure.savefig(temporary, dpi=150)


def _by_minute(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Rows of watched processes as those of `steady`: the agent steps of the last minute, while somebody was at work.

    Examples
    --------
    >>> rows = [{"elapsed_s": str(t), "processes": "1", "agent_steps": str(5 * t)} for t in range(0, 90, 30)]
    >>> [(row["seconds"], row["agent_steps"]) for row in _by_minute(rows)]
    [('60', '300')]
    """
    found = []
    for row in rows:
        end = int(row["elapsed_s"])
        before = [one for one in rows if int(one["elapsed_s"]) <= end - WATCHED_S]
        if before and row["processes"] != "0":
            seconds, steps = (int(row[name]) - int(before[-1][name]) for name in ("elapsed_s", "agent_steps"))
            found.append(row | {"seconds": str(seconds), "agent_steps": str(steps)})
    return found


def _panels(figure: "Figure", count: int) -> "list[Axes]":
    """So many panels beside each other, each with its usual size."""
    figure.set_size_inches(max(6.0, 4.5 * count), 4.0)
    return list(figure.subplots(1, count, squeeze=False)[0])


def _numbers(rows: Sequence[dict[str, str]], column: str) -> str:
    """What a column holds, in words: one number, or the least and the most."""
    values = [int(row[column]) for row in rows]
    return " to ".join(f"{value:,}" for value in sorted({min(values), max(values)}))


def _draw_sweeps(figure: "Figure", rows: Sequence[dict[str, str]]) -> None:
    """A panel for each sweep that was measured."""
    from matplotlib.ticker import LogLocator, NullLocator

    measured = {sweep: [row for row in rows if row["sweep"] == sweep] for sweep in ("runs", "cores")}
    present = {sweep: own for sweep, own in measured.items() if own}
    for axes, (sweep, own) in zip(_panels(figure, len(present)), present.items(), strict=True):
        # before the points: a change of scale takes the ticks away
        axes.set(xlabel=sweep, ylabel="agent steps/s, all runs together", xscale="log", yscale="log")
        other = "cores" if sweep == "runs" else "runs"
        axes.set_title(f"As the {sweep} grow; {other}: {_numbers(own, other)}", fontsize="medium")
        for contestant, title in (("gramian", "gramian"), ("emulator", "emulator alone")):
            _draw_sweep(axes, [row for row in own if row["contestant"] == contestant], sweep, title)
        at = sorted({int(row[sweep]) for row in own})
        axes.set_xticks(at, [str(x) for x in at])
        axes.xaxis.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.legend()


def _draw_steady(figure: "Figure", rows: Sequence[dict[str, str]]) -> None:
    """Rate and memory over time, the host's and, where there is one, the GPU's in a panel each."""
    memories = [("rss_bytes", "host"), ("device_bytes", "GPU")]
    present = [(column, owner) for column, owner in memories if any(int(row[column]) for row in rows)]
    left, *others = _panels(figure, 1 + len(present))
    minutes = [float(row["elapsed_s"]) / 60 for row in rows]
    left.plot(minutes, [int(row["agent_steps"]) / float(row["seconds"]) for row in rows])
    left.set(xlabel="minutes", ylabel="agent steps/s, all runs together", ylim=(0, None))
    left.set_title(f"Rate; runs: {_numbers(rows, 'runs')}" if "runs" in rows[0] else "Rate", fontsize="medium")
    left.yaxis.set_major_formatter("{x:,.0f}")
    for axes, (column, owner) in zip(others, present, strict=True):
        amounts = [int(row[column]) / 1e9 for row in rows]
        axes.plot(minutes, amounts)
        low, high = _ends(amounts)
        axes.set(xlabel="minutes", ylabel=f"GB; the axis begins at {low:g}", ylim=(low, high))
        axes.set_title(f"Memory of the {owner}", fontsize="medium")
        axes.ticklabel_format(axis="y", useOffset=False)


def _ends(amounts: Sequence[float]) -> tuple[float, float]:
    """Round ends of an axis on which changes can be seen, from a hundredth of the most on."""
    from matplotlib.ticker import MaxNLocator

    low, high = min(amounts), max(amounts)
    room = 0.1 * (high - low) + max(0.0, 0.01 * high - (high - low)) / 2
    ticks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(max(0.0, low - room), high + room)
    return max(0.0, float(ticks[0])), float(ticks[-1])


def _draw_sweep(axes: "Axes", rows: Sequence[dict[str, str]], sweep: str, title: str) -> None:
    """Median and range of each point of a sweep."""
    rates: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        rates[int(row[sweep])].append(int(row["agent_steps"]) / float(row["seconds"]))
    if rates:
        at = sorted(rates)
        middle = [statistics.median(rates[x]) for x in at]
        below = [m - min(rates[x]) for x, m in zip(at, middle, strict=True)]
        above = [max(rates[x]) - m for x, m in zip(at, middle, strict=True)]
        axes.errorbar(at, middle, yerr=[below, above], marker="o", capsize=3, label=title)
