"""Writes tables and a figure of ``docs/speed.md``, and a list beside its results, from the tables in ``results/speed``.

Run it as ``python -m docs.speed`` after a result has changed, or the list in `benchmarks.side_by_side` of what is not
the same for all contestants. In the page a table stands between two comments with its name; the text around them is
not touched.
"""

import itertools
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from benchmarks import dopamine
from benchmarks.contestants import CONTESTANTS
from benchmarks.side_by_side import differences, spread
from docs.results import Row, filled, read
from gramian.core.errors import UserError
from gramian.core.files import replace_text, replacing
from gramian.core.games import Kind, find_game

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results" / "speed"
DOPAMINE = DOCS.parent / "results" / "dopamine"

OLDER, NOW, AWAKE, COMPILED = "e32dc27", "4af771c", "dcbe528", "0f58a37"
"""Commits at which most of what the page shows was measured on the H200; from the third on all wait awake, and at the
last frames are compiled and who plays its games waits for its actors last."""
GROWTH_COMMITS = {"scaling-h200": "c738743", "cores-h200": OLDER, "growth-h200": NOW, "nine-h200": AWAKE}
UPDATE_COMMIT, SINGLE_COMMIT, SERVED_COMMIT = "c738743", "a8c2680", "6d69abb"
"""Commits of measurements of updates with the penalty in plain operations; of the second with one run alone, of the
third as clients of the service."""
BLOCKS_COMMIT, CENTRED_COMMIT, BLOCKS = "17d528a", "eb64f7f", "64 features, 4 warps"
"""Those from which on the penalty is two kernels, and the second of them no longer centres; and their form."""
STUDY_RUNS, RUN_AGENT_STEPS = 441, 5_000_000
"""Of the paper's Atari study: 49 games, 3 arms, 3 seeds; 20M frames each."""
FIGURE_RUNS = 9
"""Of the paper's figure of Seaquest."""
START_S, LEAST_S = 180, 100
"""Of the runs in several processes: their start does not count, nor do shorter stretches."""
OTHER_STARTS_S = {
    "three-h200": 500,
    "ten-h200": 300,
    "apart-compiled-h200": 60,
    "apart-fifteen-h200": 90,
    "apart-fifteen-again-h200": 90,
}
"""Of tables in whose first seconds tests ran beside the runs, which do not count either, and of short ones."""
RUNS_OF = {
    "parts-h200": {processes: 4 * processes for processes in range(1, 8)},
    "games-h200": {5: 23, 4: 18, 3: 13, 1: 5},
    "tuning-h200": {6: 42, 4: 28},
    "norm-h200": {4: 12, 2: 6},
    "fifteen-h200": {1: 15},
    "breakout-h200": {1: 5},
    "three-h200": {3: 15},
    "ten-h200": {2: 10},
    "sequential-h200": {1: 5},
    "apart-ten-h200": {10: 10},
    "apart-nine-h200": {9: 9},
    "apart-one-h200": {9: 9},
    "apart-compiled-h200": {9: 9},
    "apart-last-h200": {9: 9},
    "apart-fifteen-h200": {15: 15},
    "apart-fifteen-again-h200": {15: 15},
    "apart-orders-h200": {15: 15, 10: 10},
}
"""Runs of so many processes at work; `results/speed/README.md` says which. Other stretches do not count."""


def rows(name: str, /, **wanted: object) -> list[Row]:
    """Rows of a table of the results, with these cells.

    Raises
    ------
    UserError
        If there are none.
    """
    path = RESULTS / f"{name}.csv"
    found = [row for row in read(path) if all(row[key] == str(value) for key, value in wanted.items())]
    if not found:
        cells = ", ".join(f"{key} {value}" for key, value in wanted.items())
        raise UserError(f"'{path}' {f'has no row with {cells}' if path.exists() else 'is not there'}")
    return found


def row(name: str, /, **wanted: object) -> Row:
    """The one row of a table with these cells."""
    found = rows(name, **wanted)
    if len(found) > 1:
        raise UserError(f"'{RESULTS / name}.csv' has {len(found)} rows where one is needed: {wanted}")
    return found[0]


def table(header: Sequence[str], lines: Iterable[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """Markdown, columns of words to the left and the others to the right.

    Examples
    --------
    >>> print(table(["piece", "µs"], [["act", "277"]]), end="")
    | piece | µs |
    | --- | ---: |
    | act | 277 |
    """
    marks = ["---" if at in words else "---:" for at in range(len(header))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, marks, *lines))


def whole(value: float | str) -> str:
    """A number without places, thousands apart.

    Examples
    --------
    >>> whole("10611.4")
    '10,611'
    """
    return f"{float(value):,.0f}"


def percent(share: float) -> str:
    """A share.

    Examples
    --------
    >>> percent(0.971)
    '97 %'
    """
    return f"{100 * share:.0f} %"


def ranged(found: Row, name: str, unit: str = "") -> str:
    """A value with the least and the most in brackets, as they were printed."""
    cells = (found[f"{name}{end}{unit}"] for end in ("", "_least", "_most"))
    value, least, most = (f"{int(cell):,}" if cell.isdigit() else cell for cell in cells)
    return f"{value} ({least}–{most})"


def rate(found: Row) -> float:
    """Agent steps a second of one reading."""
    return float(found["agent_steps"]) / float(found["seconds"])


def mean_rate(name: str) -> float:
    """Agent steps a second over all intervals of a table."""
    found = rows(name)
    return sum(int(line["agent_steps"]) for line in found) / sum(float(line["seconds"]) for line in found)


def days(agent_steps_per_second: float) -> float:
    """What the paper's Atari study takes."""
    return STUDY_RUNS * RUN_AGENT_STEPS / agent_steps_per_second / 86_400


def on_cpu(kind: Kind, contestant: str, runs: int = 1) -> list[Row]:
    """Repeats of one contestant on two cores."""
    return rows(f"{kind}-cpu", contestant=contestant, runs=runs)


def times_sb3(kind: Kind, contestant: str, runs: int = 1) -> list[float]:
    """Rates in units of one process of Stable-Baselines3, taken within a repeat."""
    pairs = zip(on_cpu(kind, contestant, runs), on_cpu(kind, "sb3"), strict=True)
    return [rate(mine) / rate(theirs) for mine, theirs in pairs]


def peak(found: Sequence[Row]) -> float:
    """Bytes of all processes at the last repeat."""
    return float(found[-1]["peak_rss_bytes"])


def contestants(kind: Kind) -> str:
    """Contestants on two cores: rates, processor time and memory."""
    lines = []
    for name, runs in dict.fromkeys((found["contestant"], int(found["runs"])) for found in rows(f"{kind}-cpu")):
        found = on_cpu(kind, name, runs)
        entry, processes = CONTESTANTS[name], int(found[0]["processes"])
        cpu_us = statistics.median(1e6 * float(one["cpu_seconds"]) / int(one["agent_steps"]) for one in found)
        lines.append(
            [
                entry.title + (f", {processes} processes" if processes > 1 else ""),
                str(runs),
                " or ".join(sorted({one["torch_threads"] for one in found})) if entry.learns else "–",
                spread([rate(one) for one in found], 0),
                spread(times_sb3(kind, name, runs), 2),
                whole(cpu_us),
                f"{peak(found) / 1e9:.2f} GB",
            ]
        )
    columns = ["torch threads", "agent steps/s", "× SB3, one process", "CPU µs a step", "peak memory"]
    return table(["contestant", "runs", *columns], lines)


def not_the_same() -> str:
    """What is not the same for all contestants: what holds for both kinds of games, then the others."""
    notes: dict[Kind, list[str]] = {}
    for kind in ("minatar", "atari"):
        found = rows(f"{kind}-cpu")
        processes = any(int(one["processes"]) > 1 for one in found)
        names = {one["contestant"] for one in found}
        notes[kind] = [
            line.removeprefix("- ")
            for line in differences(names, kind, opencv=True, processes=processes)
            if line.startswith("- ")
        ]
    both = [note for note in notes["minatar"] if note in notes["atari"]]
    titles: dict[Kind, str] = {"minatar": "MinAtar", "atari": "Atari"}
    others = [
        note if titles[kind] in note else f"{titles[kind]}: {note}"
        for kind, found in notes.items()
        for note in found
        if note not in both
    ]
    return "".join(f"- {note}\n" for note in [*both, *others])


def in_turn(name: str, contestant: str, **wanted: object) -> dict[str, float]:
    """Rates of a contestant by repeat."""
    found = rows(name, contestant=contestant, **wanted)
    return {one["repeat"]: float(one["agent_steps_per_s"]) for one in found}


def shares_of(name: str, contestant: str, yardstick: str, **wanted: object) -> list[float]:
    """A contestant's rates over another one's, in the repeats that both have."""
    mine, other = (in_turn(name, one, **wanted) for one in (contestant, yardstick))
    return [value / other[repeat] for repeat, value in mine.items() if repeat in other]


LOOPS = {
    "one environment a run": {"commit": NOW, "envs_per_run": 1, "emulator_threads": 0},
    "the same, awake": {"commit": AWAKE, "envs_per_run": 1, "emulator_threads": 0},
    "awake, compiled frames": {"commit": COMPILED, "envs_per_run": 1, "emulator_threads": 0},
    "eight environments a run": {"commit": NOW, "envs_per_run": 8, "emulator_threads": 0},
    "eight, ale-py with 16 threads": {"commit": NOW, "envs_per_run": 8, "emulator_threads": 16},
}
"""Measurements of 12 runs, the contestants in turn."""


def loop_shares(which: str) -> list[float]:
    """The training loop's rates over those of ale-py's vector environment alone."""
    return shares_of("loop-h200", "gramian", "emulator", **LOOPS[which])


def on_one_gpu() -> str:
    """The training loop of 12 runs beside its environments and ale-py's."""
    lines = []
    for title, contestant in (
        ("whole training loop", "gramian"),
        ("its environments alone", "environments"),
        ("ale-py's `AtariVectorEnv` alone, as many environments", "emulator"),
    ):
        cells = [title]
        for wanted in LOOPS.values():
            took_part = any(one["contestant"] == contestant for one in rows("loop-h200", **wanted))
            rates = in_turn("loop-h200", contestant, **wanted) if took_part else {}
            cells.append(spread(list(rates.values()), 0) if rates else "–")
        lines.append(cells)
    shares = [spread([100 * one for one in loop_shares(which)], 0) for which in LOOPS]
    lines.append(["the loop's share of it", *(f"{share} %" for share in shares)])
    return table(["agent steps a second", *LOOPS], lines)


def bench(patience_us: int = 0, replay_device: str = "cuda") -> list[Row]:
    """Readings of ``gramian bench seaquest --runs 12``."""
    return rows("bench-h200", patience_us=patience_us, replay_device=replay_device)


def bench_mean(column: str, *which: object) -> float:
    """Mean of the readings."""
    return statistics.mean(float(one[column]) for one in bench(*which))


def step() -> str:
    """Where the host spends a step of 12 environments, asleep and awake."""
    asleep, awake = (
        {name: bench_mean(name, us) for name in bench()[0] if name.endswith("_us") and name != "patience_us"}
        for us in (0, 2000)
    )
    halves = awake["gpu_act_us"] / 2
    learner = f"{whole(awake['gpu_learn_us'])} + {whole(awake['gpu_draw_us'])} µs of GPU work"
    pieces = [
        ("`recv`", ("recv_us",), "the environments; nothing else is waited for here"),
        ("`act`", ("act_us",), f"two halves of the runs, {halves:.0f} µs of GPU work each"),
        ("`observe`", ("observe_us",), "for each half a copy to the GPU and a launch"),
        ("`send`", ("send_us",), "a byte to each process"),
        ("`learn`, `draw`", ("learn_us", "draw_us"), f"launches of {learner}, one step in four"),
        ("rest", ("other_us",), "Python"),
    ]
    found = [[sum(one[name] for name in names) for one in (awake, asleep)] for _, names, _ in pieces]
    lines = [[name, *(whole(us) for us in both), what] for (name, _, what), both in zip(pieces, found, strict=True)]
    lines.append(["**a step**", *(f"**{whole(sum(one))}**" for one in zip(*found, strict=True)), ""])
    return table(["piece", "µs, awake", "µs, asleep", "what it is"], lines, (0, 3))


def starts(bytecode: str, compiled_before: str, **wanted: object) -> list[Row]:
    """Readings of the time to the first update."""
    return rows("start-h200", bytecode=bytecode, compiled_before=compiled_before, **wanted)


def start() -> str:
    """What the time to the first update is made of."""
    lines = []
    for one in rows("start-h200"):
        replay = ", replay in host memory" if one["replay_device"] == "cpu" else ""
        preset = ", preset `dopamine`" if one["preset"] == "dopamine" else ""
        pieces = [one[f"{name}_s"] for name in ("before", "learner", "actors", "update")]
        words = [f"{one['runs']}{preset}{replay}", one["bytecode"], one["compiled_before"]]
        lines.append([*words, f"**{one['first_update_s']}**", *pieces])
    header = ["runs", "bytecode kept", "compiled before", "first update, s", "before", "learner", "actors", "update"]
    return table(header, lines, (0, 1, 2))


def peers() -> str:
    """One run on one H200 beside others."""
    names = dict.fromkeys(one["contestant"] for one in rows("peers-h200"))
    lines = [
        [
            CONTESTANTS[name].title,
            spread(list(in_turn("peers-h200", name).values()), 0),
            spread(shares_of("peers-h200", name, "sb3"), 2),
        ]
        for name in names
    ]
    return table(["contestant", "agent steps/s", "× SB3"], lines)


Pair = tuple[list[float], list[float]]
"""Microseconds of the updates with `dqn` and with `gram`, in turn."""


def pair(name: str, gram: str = "gram", **wanted: object) -> Pair:
    """Updates of a table that has a row for each of them."""
    found = rows(name, **wanted)
    dqn, other = ([float(one["microseconds"]) for one in found if one["arm"] == arm] for arm in ("dqn", gram))
    return dqn, other


def older_pair(**wanted: object) -> Pair:
    """Updates of the older table, which has a row for each pair."""
    found = rows("penalty-h200", **wanted)
    return [float(one["dqn_us"]) for one in found], [float(one["gram_us"]) for one in found]


def form(name: str) -> Pair:
    """Updates of one run in the table of forms that were measured in turn."""
    return _forms("forms-h200", name, runs=1)


def block(name: str, runs: int = 1, served: str = "no") -> Pair:
    """Updates in the table of forms that go through blocks of features, measured in turn."""
    return _forms("blocks-h200", name, runs=runs, served=served)


def _forms(table: str, name: str, **wanted: object) -> Pair:
    dqn, other = ([float(one["microseconds"]) for one in rows(table, form=which, **wanted)] for which in ("dqn", name))
    return dqn, other


def ratio(found: Pair) -> str:
    """Median, least and most of the ratios."""
    return spread([gram / dqn for dqn, gram in zip(*found, strict=True)], 3)


def centred(process: str, form: str = BLOCKS, runs: int = 1) -> Pair:
    """Updates with two kernels of which the first alone centres."""
    return _forms("centred-h200", form, process=process, runs=runs)


def now(runs: int) -> dict[str, Pair]:
    """Measurements of the penalty as it is, by what they are called."""
    found = {"one process": centred("first", runs=runs)}
    if runs == 1:
        found |= {
            "another, compiled from nothing too": centred("second"),
            "a third, with what the first had compiled": centred("first, again"),
            "a fourth, in turn with other forms": centred("in turn"),
        }
    return found


def penalty() -> str:
    """What an update costs with the penalty."""
    lines = []
    for runs in (12, 1):
        found = [(f"{CENTRED_COMMIT}, {name}", "two kernels", "yes", one) for name, one in now(runs).items()]
        before = {"in turn with plain operations": block(BLOCKS, runs)}
        if runs == 1:
            before["the same, served"] = block(BLOCKS, runs, served="yes")
            before["another process"] = pair("update-h200", commit=BLOCKS_COMMIT, runs=runs)
        found += [(f"{BLOCKS_COMMIT}, {name}", "two kernels, both centre", "yes", one) for name, one in before.items()]
        found.append((f"{BLOCKS_COMMIT}, in turn with two kernels", "plain", "yes", block("plain", runs)))
        if runs == 1:
            found.append((f"{BLOCKS_COMMIT}, the same, served", "plain", "yes", block("plain", runs, served="yes")))
        commits = {f"{SERVED_COMMIT}, served": SERVED_COMMIT} | ({SINGLE_COMMIT: SINGLE_COMMIT} if runs == 1 else {})
        found += [
            (name, "plain", "yes", pair("update-h200", commit=commit, runs=runs)) for name, commit in commits.items()
        ]
        lines += [_updates(runs, *one) for one in found]
        lines += [
            [str(runs), "plain", one["tf32"], one["commit"], whole(one["dqn_us"]), ranged(one, "ratio")]
            for one in reversed(rows("bias-h200", runs=runs))
        ]
        older = [
            *([(NOW, "plain", "yes", form("gram"))] if runs == 1 else []),
            (UPDATE_COMMIT, "plain", "yes", pair("update-h200", commit=UPDATE_COMMIT, runs=runs)),
            ("52be9f7", "plain", "yes", older_pair(runs=runs, tf32="yes")),
            ("52be9f7", "plain", "no", older_pair(runs=runs, tf32="no")),
        ]
        lines += [_updates(runs, *one) for one in older]
    return table(["runs", "penalty", "TF32", "commit", "`dqn`, µs", "`gram` / `dqn`"], lines, (1, 2, 3))


def _updates(runs: int, commit: str, penalty: str, tf32: str, found: Pair) -> list[str]:
    return [str(runs), penalty, tf32, commit, whole(statistics.median(found[0])), ratio(found)]


def dearer(runs: int) -> list[float]:
    """By how many percent an update with `gram` takes longer than one with `dqn`, in each measurement as it is now."""
    return [100 * (median_ratio(one) - 1) for one in now(runs).values()]


def by_kernels(runs: int) -> float:
    """The same by the sum of all kernels of an update."""
    dqn, gram = (
        sum(float(one["us"]) for one in rows("kernels-h200", commit=CENTRED_COMMIT, update=f"{arm} P={runs} tf32"))
        for arm in ("dqn", "gram")
    )
    return 100 * (gram / dqn - 1)


def signed(value: float) -> str:
    """A number with one place and a minus where it needs one.

    Examples
    --------
    >>> signed(-1.42)
    '−1.4'
    """
    return f"{value:.1f}".replace("-", "−")


def median_ratio(found: Pair) -> float:
    """Median of the ratios."""
    return statistics.median(gram / dqn for dqn, gram in zip(*found, strict=True))


def forms() -> str:
    """What was tried to make the penalty of one run cheaper."""
    beside = "beside the target network"
    found = {
        "plain operations, compiled with the rest": pair("update-h200", commit=UPDATE_COMMIT, runs=1),
        "the same, in the order in which they are written": pair(
            "arrangements-h200", arrangement="in their own order", runs=1
        ),
        "the same, before the target network's pass": pair(
            "arrangements-h200", "gram in line", arrangement=beside, runs=1
        ),
        "beside that pass, on a second stream": pair("arrangements-h200", arrangement=beside, runs=1),
        "one kernel (Triton), steps of 128 features, each centred by a sum over the samples": pair(
            "update-h200", commit="c9cda0e", runs=1
        ),
        "one kernel (Triton), centred by the first sample, the features split over four warps": pair(
            "update-h200", commit="75003f0", runs=1
        ),
        "plain operations, measured in turn with the next five": form("gram"),
        "the same, centred once": form("once"),
        "both products as sums of products in float32": form("sums"),
        "the first product so, centred once": form("sums first"),
        "the second product so, in float64, centred once": form("sums second"),
        "the first product in eight blocks of features, centred once": form("split"),
        "plain operations, measured in turn with the next eight": block("plain"),
        "two kernels (Triton) that both centre, products in float32, blocks of 64 features, four warps": block(
            "64 features, 4 warps, float32"
        ),
        "the same with products of TF32 parts": block(BLOCKS),
        "so, eight warps": block("64 features, 8 warps"),
        "so, two warps": block("64 features, 2 warps"),
        "so, blocks of 128 features": block("128 features, 4 warps"),
        "so, blocks of 32 features": block("32 features, 4 warps"),
        "so, blocks of 32 features, two warps": block("32 features, 2 warps"),
        "so, blocks of 32 features, one warp": block("32 features, 1 warps"),
        "two kernels that both centre, in float32, 64 features, four warps, in turn with all below": centred(
            "in turn", f"{BLOCKS}, centred by each kernel"
        ),
        "the first alone centres: what is used": centred("in turn"),
        "the same, eight warps": centred("in turn", "64 features, 8 warps"),
        "the same, blocks of 32 features": centred("in turn", "32 features, 4 warps"),
        "the same, blocks of 128 features, eight warps": centred("in turn", "128 features, 8 warps"),
        "`dqn`, compiled a second time": centred("in turn", "dqn again"),
    }
    lines = [[form, *(whole(statistics.median(us)) for us in one), ratio(one)] for form, one in found.items()]
    return table(["form", "`dqn`, µs", "`gram`, µs", "`gram` / `dqn`"], lines)


def shares(runs: int) -> list[float]:
    """The loop's rates over the emulator's, as the runs grow.

    The first reading of the emulator in a process had the start of CUDA in its clock: it counts with the seconds of
    the shortest one.
    """
    mine, alone = (rows("scaling-h200", contestant=name, runs=runs) for name in ("gramian", "emulator"))
    seconds = min(float(one["seconds"]) for one in alone)
    return [rate(one) / (int(other["agent_steps"]) / seconds) for one, other in zip(mine, alone, strict=True)]


def newer_shares(table: str, **wanted: object) -> list[float]:
    """The same of a table whose clock is right."""
    mine, alone = (rows(table, contestant=name, **wanted) for name in ("gramian", "emulator"))
    return [rate(one) / rate(other) for one, other in zip(mine, alone, strict=True)]


def growth() -> str:
    """Rates as runs and cores grow."""
    lines = []
    for runs in dict.fromkeys(int(one["runs"]) for one in rows("scaling-h200")):
        found = rows("scaling-h200", contestant="gramian", runs=runs)
        rates = spread([rate(one) for one in found], 0)
        share = percent(statistics.median(shares(runs)))
        sizes = [whole(found[0][column]) for column in ("runs", "cores", "capacity")]
        lines.append([*sizes, rates, share, GROWTH_COMMITS["scaling-h200"]])
    for name in ("growth-h200", "nine-h200"):
        for runs, cores in dict.fromkeys((one["runs"], one["cores"]) for one in rows(name)):
            found = rows(name, contestant="gramian", runs=runs, cores=cores)
            share = percent(statistics.median(newer_shares(name, runs=runs, cores=cores)))
            sizes = [whole(found[0][column]) for column in ("runs", "cores", "capacity")]
            # from then on all wait awake, where each has a core, the trainer among them
            awake = ", awake" if GROWTH_COMMITS[name] == AWAKE and int(runs) < int(cores) else ""
            lines.append([*sizes, spread([rate(one) for one in found], 0), share, GROWTH_COMMITS[name] + awake])
    for one in rows("cores-h200"):
        rates = f"{whole(one['agent_steps_per_s'])} ({whole(one['least'])}–{whole(one['most'])})"
        share = percent(float(one["share_of_emulator"]) / 100)
        sizes = [whole(one[column]) for column in ("runs", "cores", "capacity")]
        lines.append([*sizes, rates, share, GROWTH_COMMITS["cores-h200"]])
    header = ["runs", "cores", "replay of a run", "agent steps a second", "share of the emulator", "commit"]
    return table(header, lines, (5,))


Points = dict[int, list[float]]
"""Agent steps a second by the number of runs or cores: single readings, or the least, the middle and the most."""


LOOKS = {
    "gramian, asleep": ("#0072b2", "o-"),
    "gramian, awake": ("#b36b00", "D"),
    "ale-py's vector environment alone": ("#5f6670", "s--"),
}
"""Lines of the figure of growth: colour, and marker with line."""


def growth_points() -> dict[str, dict[str, Points]]:
    """What the figure of growth shows: as runs and as cores grow, the rates of each line."""
    ours, awake, theirs = LOOKS
    runs: dict[str, Points] = {ours: {}, awake: {}, theirs: {}}
    for one in rows("scaling-h200", contestant="gramian"):
        runs[ours].setdefault(int(one["runs"]), []).append(rate(one))
    for count, own in runs[ours].items():
        runs[theirs][count] = [mine / share for mine, share in zip(own, shares(count), strict=True)]
    for line, contestant in ((ours, "gramian"), (theirs, "emulator")):
        found = rows("growth-h200", sweep="runs", contestant=contestant)
        runs[line] |= {int(found[0]["runs"]): [rate(one) for one in found]}
    nine = [rate(one) for one in rows("nine-h200", sweep="runs", contestant="gramian")]
    runs[awake] = {FIGURE_RUNS: nine}

    cores: dict[str, Points] = {
        line: {16: points[FIGURE_RUNS]} for line, points in runs.items()
    }  # the same readings in both panels
    for one in rows("cores-h200"):
        if int(one["cores"]) < 16:  # there are newer readings of 16
            printed = [float(one[name]) for name in ("least", "agent_steps_per_s", "most")]
            cores[ours][int(one["cores"])] = printed
            cores[theirs][int(one["cores"])] = [100 * printed[1] / float(one["share_of_emulator"])]
    for line, contestant in ((ours, "gramian"), (theirs, "emulator")):
        for one in rows("nine-h200", sweep="cores", contestant=contestant):
            cores[line].setdefault(int(one["cores"]), []).append(rate(one))
    return {"runs, on 16 cores": runs, f"cores, with {FIGURE_RUNS} runs": cores}


def draw_growth(picture: Path) -> None:
    """Rates as runs and cores grow, medians with the least and the most."""
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (grows, lines) in zip(panels, growth_points().items(), strict=True):
        # before the points: a change of scale takes the ticks away
        axes.set(xlabel=grows, xscale="log", yscale="log")
        for line, points in lines.items():
            color, look = LOOKS[line]
            at = sorted(points)
            middle = [statistics.median(points[x]) for x in at]
            ends = [
                [m - min(points[x]) for x, m in zip(at, middle, strict=True)],
                [max(points[x]) - m for x, m in zip(at, middle, strict=True)],
            ]
            axes.errorbar(at, middle, yerr=ends, fmt=look, color=color, markersize=5, capsize=3, label=line)
        ticks = sorted({x for points in lines.values() for x in points})
        axes.set_xticks(ticks, [str(x) for x in ticks])
        axes.xaxis.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("agent steps a second, all runs together")
    panels[0].legend(frameon=False)
    with replacing(picture) as temporary:
        figure.savefig(temporary, dpi=110)


def million() -> float:
    """Agent steps a second of 15 runs with replays of a million, in a few seconds."""
    return float(row("h200", commit=OLDER, runs=15)["loop_agent_steps_per_s"])


def bill() -> str:
    """What the paper's Atari study takes."""
    found = [
        ("100,000", "54", mean_rate("steady-h200"), "five minutes, `steady-h200.csv`"),
        ("250,000", "20, in five processes", mean_rate("processes-h200"), "17 minutes, `processes-h200.csv`"),
        ("250,000", "12, in four processes, awake", at_work("norm-h200", 4), "12 minutes, `norm-h200.csv`"),
        ("1,000,000, the preset's", "15, preset `dopamine`, the network of `author`", million(),
         "four seconds, `h200.csv`"),
        ("1,000,000", "9, in one process each, of the study itself", at_work("apart-one-h200", 9),
         "six minutes, `apart-one-h200.csv`"),
        ("1,000,000", f"the same at {COMPILED}", at_work("apart-last-h200", 9), "six minutes, `apart-last-h200.csv`"),
        ("1,000,000", "15, in one process each, two games of the study", at_work("apart-fifteen-again-h200", 15),
         "five minutes, `apart-fifteen-again-h200.csv`"),
        ("1,000,000", "the same on another machine", at_work("apart-fifteen-h200", 15),
         "four minutes, `apart-fifteen-h200.csv`"),
        ("100,000", "15, in one process each", statistics.mean(turns(15, 1)), "24 seconds, `apart-turns-h200.csv`"),
        ("1,000,000", "15, preset `dopamine`", mean_rate("memory-h200"),
         "14 minutes beside other guests of the host, `memory-h200.csv`"),
        ("1,000,000", "15, preset `dopamine`, awake", at_work("fifteen-h200", 1),
         "four and a half minutes, `fifteen-h200.csv`"),
        ("1,000,000", "15, preset `dopamine`, in three processes, awake", at_work("three-h200", 3),
         "ten minutes, `three-h200.csv`"),
        ("1,000,000", "15, preset `dopamine`, in one process each, actors of ten that wait",
         at_work("apart-orders-h200", 15), "eight minutes, `apart-orders-h200.csv`"),
    ]  # fmt: skip
    lines = [[replay, runs, whole(value), source, f"{days(value):.2f}"] for replay, runs, value, source in found]
    return table(["replay of a run", "runs at once", "agent steps a second", "from", "days"], lines, (1, 3))


def apart() -> str:
    """Rates of runs each of which has a process of its own, beside those of as many in one process."""
    nine = [float(one["loop_agent_steps_per_s"]) for one in rows("nine-parts-h200", commit=SERVED_COMMIT, parts=2)]
    five = whole(at_work("sequential-h200", 1))
    lines = []
    for name, what, beside in (
        ("nine", "Seaquest, preset `author`, `gram`", f"{spread(nine, 0)}, `dqn`, some minutes before"),
        ("five", "Breakout, preset `dopamine`, actors that [wait](#what-overlaps)", f"{five}, another hour"),
    ):
        found = rows("apart-h200", round=name)
        rates = [float(one["loop_agent_steps_per_s"]) for one in found]
        lines.append([str(len(found)), what, found[0]["seconds"], spread(rates, 0), whole(sum(rates)), beside])
    return table(["runs", "of", "seconds", "of each", "together", "in one process"], lines, (1,))


TURNS = {"apart-turns-h200": CENTRED_COMMIT, "apart-turns-last-h200": COMPILED}
"""Tables of runs each by itself, in turn with one core or two, and their commits."""


def turns(runs: int, cores: int, name: str = "apart-turns-h200") -> list[float]:
    """Agent steps a second, in each turn, of so many runs at the same time, each with so many cores."""
    found = rows(name, runs=runs, cores=cores)
    return [
        sum(rate(one) for one in found if one["repeat"] == repeat)
        for repeat in dict.fromkeys(one["repeat"] for one in found)
    ]


def in_turns() -> str:
    """Runs each by itself, with one core or two."""
    lines = []
    for name, commit in TURNS.items():
        for runs, cores in dict.fromkeys((one["runs"], one["cores"]) for one in rows(name)):
            each = [rate(one) for one in rows(name, runs=runs, cores=cores)]
            who = "who learns" if cores == "1" else "another process"
            lines.append([runs, who, commit, spread(turns(int(runs), int(cores), name), 0), spread(each, 0)])
    return table(["runs", "who plays", "commit", "agent steps a second", "of each run"], lines, (1, 2))


def stretches(name: str) -> list[tuple[int, list[Row]]]:
    """Of a table of watched processes: how many were at work, and the rows of that time, the start left out."""
    start_s = OTHER_STARTS_S.get(name, START_S)
    late = [one for one in rows(name) if float(one["elapsed_s"]) >= start_s]
    return [(count, list(group)) for count, group in itertools.groupby(late, key=lambda one: int(one["processes"]))]


def passed(stretch: Sequence[Row]) -> float:
    """Agent steps a second over a stretch."""
    steps, seconds = (int(stretch[-1][name]) - int(stretch[0][name]) for name in ("agent_steps", "elapsed_s"))
    return steps / seconds


def at_work(name: str, count: int) -> float:
    """Agent steps a second while so many processes were at work."""
    return passed(next(stretch for found, stretch in stretches(name) if found == count))


def between(name: str, begin_s: int, end_s: int) -> float:
    """Agent steps a second from one second to another."""
    return passed([row(name, elapsed_s=begin_s), row(name, elapsed_s=end_s)])


def figure_minutes(agent_steps_per_second: float) -> float:
    """What the paper's figure of Seaquest takes."""
    return FIGURE_RUNS * RUN_AGENT_STEPS / agent_steps_per_second / 60


def processes() -> str:
    """Rates of runs that are spread over several processes."""
    intervals = rows("processes-h200")
    window = f"{intervals[0]['elapsed_s']}–{intervals[-1]['elapsed_s']}"
    lines = [["5", intervals[0]["runs"], window, whole(mean_rate("processes-h200")), "–", "–", "`processes`"]]
    for name, runs_of in RUNS_OF.items():
        for count, stretch in stretches(name):
            begin, end = (int(stretch[at]["elapsed_s"]) for at in (0, -1))
            if end - begin < LEAST_S or count not in runs_of:
                continue
            cores = [
                statistics.mean(float(one[column]) for one in stretch) for column in ("cores_busy", "cores_stolen")
            ]
            lines.append(
                [
                    str(count),
                    str(runs_of[count]),
                    f"{begin}–{end}",
                    whole(passed(stretch)),
                    percent(cores[0]),
                    f"{100 * cores[1]:.1f} %",
                    f"`{name.removesuffix('-h200')}`",
                ]
            )
    header = ["processes", "runs", "window, s", "agent steps a second", "cores busy", "stolen by the host", "table"]
    return table(header, lines, (6,))


def minatar() -> str:
    """MinAtar populations on one GPU, alone and five at once."""
    found = rows("minatar-h200")
    lines = []
    for game in dict.fromkeys(one["game"] for one in found):
        cells = [find_game(game).title.removeprefix("MinAtar ")]
        for at_once, mps in (("1", "no"), ("5", "no"), ("5", "yes")):
            rates = [
                one["agent_steps_per_s"]
                for one in found
                if (one["game"], one["at_once"], one["mps"]) == (game, at_once, mps)
            ]
            cells.append(whole(rates[0]) if rates else "–")
        lines.append(cells)
    return table(["66 runs of", "alone", "one of five", "one of five, with MPS"], lines)


def patience() -> str:
    """What it brings to wait awake."""
    lines = [
        [
            one["consoles"],
            one["processes"],
            ranged(one, "asleep", "_us"),
            ranged(one, "awake", "_us"),
            ranged(one, "ratio"),
        ]
        for one in rows("patience-cpu")
    ]
    return table(["consoles", "processes", "asleep", "awake", "awake / asleep"], lines, ())


def frames() -> str:
    """What compiled frames bring to one console."""
    lines = [
        [
            find_game(one["game"]).title,
            whole(one["asleep_steps_per_s"]),
            *(
                f"{whole(one[f'{name}_steps_per_s'])}, {ranged(one, f'{name}_ratio')}"
                for name in ("awake", "compiled", "here_compiled")
            ),
        ]
        for one in rows("frames-cpu")
    ]
    return table(["", "a process, asleep", "awake", "compiled, asleep", "compiled, in this process"], lines)


def update_on_cpu() -> str:
    """Where an update of an Atari run spends its time on a CPU."""
    lines = [[one["piece"], one["ms"], one["giga_operations_per_s"] or "–"] for one in rows("update-cpu")]
    return table(["piece", "ms", "10⁹ operations a second"], lines)


def learned() -> str:
    """In how many millions our DQN and Dopamine's two sets of runs differ."""
    runs, _ = dopamine.read_runs([DOPAMINE])
    sets = dopamine.between(runs, dopamine.read_later(DOPAMINE / "later-runs.csv"))
    first = sum(dopamine.differs(one) for one in dopamine.compare(runs))
    own, again = (sum(dopamine.differs(getattr(one, name)) for one in sets) for name in ("own", "again"))
    return (
        f"plain DQN differs significantly from Dopamine's first runs in {first} million of {len(sets)} and from its "
        f"later ones in {own}, as these do from each other in {again}"
    )


def aims() -> str:
    """Every aim, and what is reached."""
    single, many = (dearer(runs) for runs in (1, 12))
    within = sum(round(share, 1) <= 3 for share in single)
    eights = sorted(figure_minutes(float(one["loop_agent_steps_per_s"])) for one in rows("figure-h200"))
    single_minutes = sorted(
        figure_minutes(between("apart-last-h200", begin, begin + 60)) for begin in range(START_S, 540, 60)
    )
    memory = peak(on_cpu("atari", "gramian")) / peak(on_cpu("atari", "sb3"))
    ours = times_sb3("atari", "gramian")
    twice = [ratio for ratio in ours if ratio >= 2]
    small = times_sb3("minatar", "gramian")
    asleep, awake_share, compiled, eight, sixteen = (percent(statistics.median(loop_shares(which))) for which in LOOPS)
    awake = bench_mean("loop_agent_steps_per_s", 2000) / bench_mean("loop_agent_steps_per_s")
    kept, not_kept = (
        sorted((one["first_update_s"] for one in starts(bytecode, "yes", replay_device="cuda")), key=float)
        for bytecode in ("yes", "no")
    )
    before = sorted(float(one["first_update_s"]) for us in (2000, 0) for one in bench(us))
    found = [
        (
            "one H200, 12 runs of a game with eight environments each: the training loop at 90 % of ale-py's vector "
            "environment alone",
            f"[{eight}](#on-one-h200) in turn, {sixteen} where that has 16 threads",
        ),
        (
            "the same with one environment a run, 75 %",
            f"{awake_share} in turn, [awake](#waiting-awake), as it waits, and {asleep} asleep, at other hours; "
            f"{compiled} since frames are compiled, in minutes in which ale-py's was slow; side by side it is "
            f"{awake:.1f} times as fast awake",
        ),
        (
            "`gram` at most 3 % dearer than `dqn` an update",
            f"[12 runs: {signed(many[0])} %](#what-the-penalty-costs) in one process, kernel by kernel "
            f"{signed(by_kernels(12))}; one run: {', '.join(map(signed, sorted(single)))} %, in {within} of "
            f"{len(single)} processes within it, where such numbers are good to some 2",
        ),
        (
            "first update at most 20 s after the start, compiled before",
            f"[{kept[0]} to {kept[-1]} s](#start) where Python keeps its bytecode, as it does unless it is told not "
            f"to; {' and '.join(not_kept)} s, missed, where it is, and {before[0]:.1f} to {before[-1]:.1f} s at other "
            "hours",
        ),
        (
            "no growth of memory",
            "[none after the first checkpoint](#memory), 18 minutes on the GPU and an hour on a CPU",
        ),
        (
            f"the paper's Atari study, {STUDY_RUNS} runs of 20M frames, in two days",
            f"with the preset's million [{days(at_work('apart-fifteen-again-h200', 15)):.2f} days]"
            "(#the-bill-of-the-study) by five minutes of 15 runs, [each by itself](#each-run-by-itself), "
            f"{days(between('apart-fifteen-again-h200', START_S, 400)):.2f} by the last three and a half of them, "
            f"and {days(at_work('apart-fifteen-h200', 15)):.2f} by four on another machine; "
            f"{days(mean_rate('steady-h200')):.1f} with replays of 100,000, by five minutes of 54 runs in one process; "
            "with preset `dopamine`, whose network is larger, "
            f"{days(at_work('apart-orders-h200', 15)):.2f} by eight minutes of 15 runs of Breakout, each by itself; in "
            f"fewer processes it was {days(at_work('three-h200', 3)):.1f}, {days(mean_rate('memory-h200')):.1f} and "
            f"{days(at_work('fifteen-h200', 1)):.1f}",
        ),
        (
            f"its Seaquest figure, {FIGURE_RUNS} such runs, in an hour",
            f"[{figure_minutes(at_work('apart-last-h200', 9)):.0f} minutes](#the-bill-of-the-study) with a process "
            "for each run and one environment, as the preset has it, by six minutes of the study; single ones of "
            f"these would make {single_minutes[0]:.0f} to {single_minutes[-1]:.0f}; not run to its end; before, at "
            f"other hours, {figure_minutes(at_work('apart-one-h200', 9)):.0f} and "
            f"{figure_minutes(at_work('apart-compiled-h200', 9)):.0f}; {eights[0]:.0f} and {eights[1]:.0f} in one "
            "process with eight environments a run, by seconds",
        ),
        (
            "two CPU cores: Atari at twice the speed of Stable-Baselines3, with half its memory",
            f"[{statistics.median(ours):.2f} times](#on-two-cpu-cores), in {len(twice)} of {len(ours)} repeats at "
            f"least 2; {memory:.2f} of its memory",
        ),
        (
            "MinAtar at three times its speed",
            f"{statistics.median(small):.1f} times, in {sum(ratio >= 3 for ratio in small)} of {len(small)} repeats at "
            "least 3; four runs at once "
            f"{statistics.median(times_sb3('minatar', 'gramian', 4)):.1f} times one process of it",
        ),
        (
            "fast, and it still learns",
            f"over the first four million frames of [six games](results.md#does-the-engine-learn) {learned()}; "
            "against both together [Breakout's third million](results.md#breakouts-third-million) is lower, "
            "significantly",
        ),
    ]
    return table(["aim", "reached"], found, (0, 1))


TABLES: dict[str, Callable[[], str]] = {
    "aims": aims,
    "start": start,
    "minatar-cpu": lambda: contestants("minatar"),
    "atari-cpu": lambda: contestants("atari"),
    "loop": on_one_gpu,
    "peers": peers,
    "step": step,
    "penalty": penalty,
    "growth": growth,
    "bill": bill,
    "processes": processes,
    "apart": apart,
    "apart-turns": in_turns,
    "minatar": minatar,
    "forms": forms,
    "update-cpu": update_on_cpu,
    "patience": patience,
    "frames": frames,
    "rounding": lambda: (RESULTS.parent / "rounding" / "rounding.md").read_text(encoding="utf-8"),
}


NOTES: dict[str, Callable[[], str]] = {"not-the-same": not_the_same}
"""Lists beside the results."""


def main() -> None:
    """Write every table, and draw the figure of growth."""
    draw_growth(DOCS / "figures" / "speed" / "growth-h200.png")
    for page, made in ((DOCS / "speed.md", TABLES), (RESULTS / "README.md", NOTES)):
        (text,) = filled([page.read_text(encoding="utf-8")], made)
        replace_text(page, text)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        print(f"speed.py: {error}", file=sys.stderr)
        sys.exit(2)
