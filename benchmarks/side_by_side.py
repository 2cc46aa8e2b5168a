"""Contestants side by side: they take turns on one workload, and a table says how they compare."""

import argparse
import csv
import io
import platform
import statistics
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import torch

from benchmarks.contestants import CONTESTANTS, OURS, PEERS, Workload, beyond_peers, missing
from benchmarks.peer_games import has_preprocessing
from benchmarks.workers import Clock, Measurement, Worker, say
from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.core.games import Kind, find_game
from gramian.core.progress import counted
from gramian.deep.training.config import load_preset
from gramian.deep.training.memory import available_bytes

PROCESS_BYTES = 600 << 20
"""What a process with torch takes, apart from its replay."""
NOT_THE_SAME = {
    "gramian's actors have weights of their own, one or two updates old, so that it acts and emulates while it learns; "
    "the others do one thing after the other, and act with the newest weights. The batch of an update is drawn from "
    "the same transitions.": ("gramian gramian-bf16", "atari minatar"),
    "Stable-Baselines3 clips the norm of the gradient (at 10), wraps the game in its Monitor, and reads the loss back "
    "at each update; the others do none of these.": ("sb3 sb3-lean", "atari minatar"),
    "With optimize_memory_usage Stable-Baselines3 stores each observation once, and takes time limits for ends of the "
    "game.": ("sb3-lean", "atari minatar"),
    "Stable-Baselines3 and the plain loop store every observation whole, and twice; gramian stores one frame a step "
    "and builds the observations again.": ("sb3 plain", "atari minatar"),
    "gramian's random numbers are functions of seed and step, and it marks runs that are no longer finite.": (
        "gramian gramian-bf16", "atari minatar",
    ),
    "gramian begins each game from a saved state of the console and a seed of its own; the others reset the console "
    "that they have. Where a preset has no-op starts, gramian's begin at 0 no-ops and Gymnasium's at 1.": (
        "gramian gramian-bf16", "atari",
    ),
    "gramian, bf16, rounds the factors of products to bfloat16: in updates those of convolutions and hidden layer, in "
    "actors those of convolutions; "
    "the others multiply in float32.": ("gramian-bf16", "atari"),
    "gramian plays MinAtar in kernels of its own, the same games bit for bit; the others play the package's games, in "
    "Python.": ("gramian", "minatar"),
    "The emulator and gramian's environments alone take random actions, so that their games are shorter.": (
        "emulator environments", "atari minatar",
    ),
    "MinAtar's own environment, which all but gramian use, imports matplotlib and seaborn: their memory is counted.": (
        "sb3 sb3-lean plain emulator", "minatar",
    ),
}  # fmt: skip
"""What is different, about which contestants, with which kinds of games: said where one of them takes part."""


@dataclass
class Row:
    """A contestant with its processes, and what was measured."""

    contestant: str
    runs: int
    workers: list[Worker]
    threads: int = 1
    default_threads: int = 1
    repeats: list[Measurement] = field(default_factory=list)

    @property
    def title(self) -> str:
        """For the table."""
        title = CONTESTANTS[self.contestant].title
        return f"{title}, {len(self.workers)} processes" if len(self.workers) > 1 else title

    @property
    def emulator_threads(self) -> str:
        """As asked for, 0 for the emulator's own choice; empty where it is not alone."""
        return str(self.workers[0].work.emulator_threads) if self.contestant == "emulator" else ""

    def measure(self, seconds: float, threads: int, profile: Clock | None = None) -> Measurement:
        """Let all processes of the row run at once."""
        for worker in self.workers:
            worker.send(seconds, threads, profile)
        found = [worker.receive() for worker in self.workers]
        longest = max(one.seconds for one in found)
        return Measurement(
            # a process that stopped earlier would have gone on at its rate
            agent_steps=round(sum(one.agent_steps / one.seconds for one in found) * longest),
            updates=round(sum(one.updates / one.seconds for one in found) * longest),
            seconds=longest,
            cpu_seconds=sum(one.cpu_seconds / one.seconds for one in found) * longest,
            rss_bytes=sum(one.rss_bytes for one in found),
            peak_rss_bytes=sum(one.peak_rss_bytes for one in found),
            device_bytes=sum(one.device_bytes for one in found),
            parts_s={name: sum(one.parts_s.get(name, 0.0) for one in found) for name in found[0].parts_s},
        )

    def calibrate(self, choices: Sequence[int], seconds: float) -> None:
        """Choose the number of torch's threads that gives the most steps."""
        if not CONTESTANTS[self.contestant].learns or len(choices) == 1:
            self.threads = choices[0]
            return
        rates = dict.fromkeys(choices, 0.0)
        for _ in range(2):
            for threads in choices:
                rates[threads] += self.measure(seconds, threads).rate
        self.threads = max(rates, key=lambda threads: rates[threads])


def spread(values: Sequence[float], digits: int) -> str:
    """Median and range.

    Examples
    --------
    >>> spread([1234.5, 1000.0, 1500.0], 0)
    '1,234 (1,000–1,500)'
    """
    low, high = min(values), max(values)
    return f"{statistics.median(values):,.{digits}f} ({low:,.{digits}f}–{high:,.{digits}f})"


def workload(options: argparse.Namespace, contestant: str, runs: int, arms: Sequence[str]) -> Workload:
    """What the options ask of a contestant."""
    return Workload(
        contestant=contestant,
        game=options.game,
        preset=options.preset,
        runs=runs,
        arms=tuple(arms),
        envs_per_run=options.envs_per_run,
        capacity=options.capacity,
        prefill_agent_steps=options.capacity if options.prefill is None else options.prefill,
        device=options.device,
        warm_up_s=options.warm_up,
        emulator_threads=options.emulator_threads,
    )


def replay_bytes(contestant: str, runs: int, kind: str, capacity: int) -> int:
    """About what the replays of a row take: enough to refuse what cannot fit."""
    frame, stack = (84 * 84, 4) if kind == "atari" else (1000, 1)
    whole = {"sb3": 2 * stack, "plain": 2 * stack, "sb3-lean": stack} | dict.fromkeys(OURS, 1)
    return runs * capacity * frame * whole.get(contestant, 0)


def planned(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Contestants and numbers of runs that can take part here; says why the others cannot."""
    kind = find_game(options.game).kind
    plan = []
    for runs in options.populations:
        for contestant in options.contestants:
            if reason := missing(contestant, kind):
                if runs == options.populations[0]:
                    say(f"skipped: {CONTESTANTS[contestant].title}: {reason}")
            elif runs == 1 or contestant != "sb3-lean":  # the lean buffer is here for its memory
                plan.append((contestant, runs))
    peers = [name for name in PEERS if name in dict(plan)]
    if peers and (odd := beyond_peers(load_preset(options.preset), kind)):
        raise UserError(
            f"preset '{options.preset}' has {', '.join(odd)}, which {' and '.join(peers)} "
            f"{'do' if len(peers) > 1 else 'does'} not implement; choose "
            f"another preset, or --contestants {' '.join(name for name in CONTESTANTS if name not in PEERS)}"
        )
    if not plan:
        raise UserError(f"no contestant can play '{options.game}' here; install gramian[lab,sb3]")
    needed = sum(
        replay_bytes(name, runs, kind, options.capacity)
        + PROCESS_BYTES * (1 if CONTESTANTS[name].populations else runs)
        for name, runs in plan
    )
    if needed > (free := available_bytes()):
        raise UserError(
            f"all contestants together take about {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; "
            "lower --capacity or name fewer --contestants"
        )
    return plan


def compare(options: argparse.Namespace) -> tuple[str, str]:
    """Measure all contestants; the page and the CSV."""
    plan = planned(options)
    with ExitStack() as processes:
        rows = []
        for contestant, runs in plan:
            together = CONTESTANTS[contestant].populations
            work = workload(options, contestant, runs if together else 1, ["dqn"])
            row = Row(contestant, runs, [processes.enter_context(Worker(work)) for _ in range(1 if together else runs)])
            for worker in row.workers:
                ready = worker.wait()
                row.default_threads = ready.default_threads
            say(f"{row.title}, runs: {runs}: filled in {ready.fill_s:.1f} s, warm after {ready.warm_up_s:.1f} s more")
            rows.append(row)
        for row in rows:
            row.calibrate(options.threads or sorted({1, 2, row.default_threads}), options.calibration)
        for repeat in range(options.repeats):
            first = repeat % len(rows)  # nobody always follows the same one
            for row in rows[first:] + rows[:first]:
                row.repeats.append(row.measure(options.seconds, row.threads))
                say(f"repeat {repeat + 1} of {options.repeats}: {row.title}, runs: {row.runs}: "
                    f"{row.repeats[-1].rate:,.0f} agent steps/s")  # fmt: skip
        unlike = differences(
            {row.contestant for row in rows},
            find_game(options.game).kind,
            opencv=has_preprocessing(),
            processes=any(len(row.workers) > 1 for row in rows),
            device=options.device,
            envs_per_run=options.envs_per_run,
            emulator_threads=options.emulator_threads,
        )
        page = [*heading(options), "", *table(rows), "", *unlike]
        if options.profile:
            profiles = [(row, row.measure(options.seconds, row.threads, options.profile)) for row in rows]
            page += ["", *profile_table(profiles, options.profile)]
    return "\n".join(page) + "\n", as_csv(rows)


def heading(options: argparse.Namespace) -> list[str]:
    """What was measured, where."""
    packages = ("torch", "stable-baselines3", "gymnasium", "ale-py", "minatar")
    prefill = options.capacity if options.prefill is None else options.prefill
    where = f"{platform.machine()}, {counted(cores(), 'core')}"
    if options.device != "cpu":
        where += f", {torch.cuda.get_device_name()}"
    return [
        f"## DQN on {find_game(options.game).title}, preset `{options.preset}`",
        "",
        f"Replay of {options.capacity:,} transitions a run, {prefill:,} of them random and taken before; device "
        f"{options.device}; {counted(options.repeats, 'repeat')} of {options.seconds:g} s each in turn; median "
        "(least–most).",
        f"{where}; Python {platform.python_version()}, "
        + ", ".join(f"{name} {found}" for name in packages if (found := installed(name))),
    ]


def installed(package: str) -> str:
    """Version of a package, empty where it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def table(rows: Sequence[Row]) -> list[str]:
    """Rates, ratios and memory."""
    reference = next((row for row in rows if row.contestant == "sb3" and row.runs == 1), None)
    against = "SB3" if reference else ""
    on_device = any(row.repeats[0].device_bytes for row in rows)
    lines = [
        f"| contestant | runs | torch threads | agent steps/s | {'× SB3, one process | ' if against else ''}"
        "share of the emulator | CPU µs a step | steps an update | peak memory |"
        + (" on the GPU |" if on_device else ""),
        "| --- |" + " ---: |" * (7 + bool(against) + on_device),
    ]
    for row in rows:
        rates = [found.rate for found in row.repeats]
        cells = [row.title, str(row.runs), str(row.threads) if CONTESTANTS[row.contestant].learns else "–"]
        cells.append(spread(rates, 0))
        if reference:
            cells.append(spread([mine / theirs.rate for mine, theirs in zip(rates, reference.repeats, strict=True)], 2))
        bare = next((other for other in rows if (other.contestant, other.runs) == ("emulator", row.runs)), None)
        cells.append(
            f"{statistics.median(mine / alone.rate for mine, alone in zip(rates, bare.repeats, strict=True)):.1%}"
            if bare
            else "–"
        )
        cells.append(f"{statistics.median(1e6 * one.cpu_seconds / one.agent_steps for one in row.repeats):,.0f}")
        steps, updates = (sum(getattr(one, name) for one in row.repeats) for name in ("agent_steps", "updates"))
        cells.append(f"{steps / updates:.2f}" if updates else "–")
        cells.append(f"{row.repeats[-1].peak_rss_bytes / 1e9:.2f} GB")
        if on_device:
            cells.append(f"{row.repeats[-1].device_bytes / 1e9:.2f} GB")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def differences(
    contestants: Collection[str],
    kind: Kind,
    *,
    opencv: bool,
    processes: bool,
    device: str = "cpu",
    envs_per_run: int = 1,
    emulator_threads: int = 0,
) -> list[str]:
    """What is not the same for all, as a list in Markdown.

    Parameters
    ----------
    contestants
        That take part.
    kind
        Of the game.
    opencv
        Whether it is there.
    processes
        Whether a contestant has more than one.
    device, envs_per_run, emulator_threads
        See `Workload`.

    Examples
    --------
    >>> differences(["emulator"], "atari", opencv=False, processes=False)[2][:44]
    "- The emulator and gramian's environments al"
    """
    notes = [
        note
        for note, (names, kinds) in NOT_THE_SAME.items()
        if kind in kinds.split() and any(name in contestants for name in names.split())
    ]
    if kind == "atari" and "emulator" in contestants:
        notes.append(emulator_note(emulator_threads))
    ours, peers = (any(name in contestants for name in names) for names in (OURS, PEERS))
    if ours and device == "cpu":
        notes.append(
            "gramian learns in threads of its own, up to one for each core, whatever the number of torch's threads; "
            "the others have torch's alone."
        )
    elif ours:
        notes.append("gramian compiles its updates and launches them as CUDA graphs; the others launch each operation.")
    if peers and envs_per_run > 1:
        notes.append(f"gramian and the emulators have {envs_per_run} environments a run; the others have one.")
    if kind == "atari" and ours and peers and opencv:
        notes.append(
            "gramian's consoles play in processes of their own and shrink their pictures with numpy; Stable-Baselines3 "
            "and the plain loop play in theirs, with Gymnasium's wrappers and OpenCV. They are the same pictures."
        )
    elif kind == "atari" and "plain" in contestants and not opencv:
        notes.append("Without OpenCV the plain loop takes its pictures from ale-py's vector environment.")
    if processes:
        notes.append(
            "Contestants that know no populations run in one process for each run, all at the same time and with the "
            "same seed."
        )
    return ["Not the same for all:", "", *(f"- {note}" for note in notes)]


def emulator_note(threads: int) -> str:
    """How ale-py's vector environment is set up where it is alone.

    Examples
    --------
    >>> emulator_note(1)
    "The emulator alone is ale-py's vector environment with 1 thread, bound to no core."
    """
    own = "its own choice of threads, one for each environment and no more than the machine has cores"
    had = counted(threads, "thread") if threads else own
    return f"The emulator alone is ale-py's vector environment with {had}, bound to no core."


def profile_table(profiles: Sequence[tuple[Row, Measurement]], clock: Clock) -> list[str]:
    """Where the time of an agent step goes."""
    names = list(dict.fromkeys(name for _, found in profiles for name in found.parts_s))
    meaning = "time that passes" if clock == "wall" else "processor time of the threads that do it"
    lines = [
        f"µs an agent step of one run, {meaning}, in one more turn with clocks in it; an update's share is a "
        "part of what it takes once in a few steps.",
        "",
        f"| contestant | runs | {' | '.join(names)} | other | all |",
        "| --- |" + " ---: |" * (len(names) + 3),
    ]
    for row, found in profiles:
        if found.parts_s:
            whole = found.cpu_seconds if clock == "cpu" else found.seconds * len(row.workers)
            micros = [1e6 * found.parts_s.get(name, 0.0) / found.agent_steps for name in names]
            every = 1e6 * whole / found.agent_steps
            cells = [row.title, str(row.runs), *(f"{one:,.0f}" for one in (*micros, every - sum(micros), every))]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def as_csv(rows: Sequence[Row]) -> str:
    """Every repeat of every contestant."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [name for name in Measurement._fields if name != "parts_s"]
    writer.writerow(["contestant", "runs", "processes", "torch_threads", "emulator_threads", "repeat", *columns])
    for row in rows:
        for repeat, found in enumerate(row.repeats):
            values = [getattr(found, name) for name in columns]
            processes = len(row.workers)
            writer.writerow([row.contestant, row.runs, processes, row.threads, row.emulator_threads, repeat, *values])
    return text.getvalue()
