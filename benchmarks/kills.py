"""Populations that are killed again and again, beside the same ones undisturbed: the bytes that differ.

    python -m benchmarks.kills [--cases breakout ...] [--kills 20] [--seed 0] [--csv kills.csv]

Each case trains once undisturbed. Then it trains again by processes that SIGKILL ends at random moments, each resuming
what the one before left, until so many kills have hit. The last process may finish. Logs, configuration, weights and
shared state of both must have the same bytes.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.command_line import Parser, exit_code, new_file, table, whole, write_csv
from gramian.core.errors import WorkFailed

COMMON = [
    *("--arm", "dqn", "--arm", "gram", "--seeds", "0", "--preset", "smoke", "--device", "cpu"),
    *("--atari.sticky-probability", "0.25", "--atari.max-episode-frames", "1_000"),
    *("--metrics-period-agent-steps", "100", "--replay-capacity", "1_000", "--update-period-agent-steps", "16"),
    *("--target-period-agent-steps", "160"),
]
"""Games end and are truncated on the way, and the replay overflows."""
LONG = ["--frames", "6_000", "--checkpoint-period-agent-steps", "500"]
CASES = {
    "minatar": ["--game", "minatar/seaquest", *LONG],
    "breakout": [
        *("--game", "breakout", "--frames", "6_400", "--checkpoint-period-agent-steps", "200"),
        *("--prefill-agent-steps", "200"),
    ],
    "cartpole": ["--game", "cartpole", *LONG, "--prioritized", "--n-step", "3"],
    "rainbow": ["--game", "minatar/breakout", "--agent", "rainbow", *LONG],
    "iqn": ["--game", "cartpole", "--agent", "iqn", "--tau-samples", "8", "--target-tau-samples", "8", *LONG],
}
REPRODUCIBLE = ("episodes.csv", "metrics.csv", "representation.csv", "config.toml")


class Outcome(NamedTuple):
    """What came of one case."""

    case: str
    kills: int
    files: int
    """That were compared."""
    bytes: int
    differing_bytes: int


def reproducible(folder: Path) -> dict[str, bytes]:
    """Everything of a population that must be the same bytes, by its path: logs, settings, final weights and state."""
    last = max(int(path.stem) for path in folder.glob("checkpoints/*.json"))
    names = [*REPRODUCIBLE, f"checkpoints/{last}.safetensors"]
    found = [folder / names[-1], *(path for name in names for path in folder.glob(f"*/{name}"))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(found)}


def attempt(case: str, kills: int, folder: Path, moments: random.Random, *options: str) -> Outcome:
    """Train a case undisturbed and killed, below ``folder``, and compare; ``options`` go before its own.

    Raises
    ------
    WorkFailed
        If a process ends by itself with an error.
    """
    train, whole_run, killed = [sys.executable, "-m", "gramian", "train"], folder / "whole", folder / "killed"
    begin = [*train, *CASES[case], *COMMON, *options, "--out"]
    started = time.monotonic()
    subprocess.run([*begin, str(whole_run)], check=True, capture_output=True)
    whole_s = time.monotonic() - started
    command = [*begin, str(killed)]
    hits = 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if hits < kills:
            try:
                process.wait(timeout=moments.uniform(0.0, whole_s / 4))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                hits += 1
        complaint = process.communicate()[1]
        if process.returncode == 0:
            break
        if process.returncode != -signal.SIGKILL:
            raise WorkFailed(f"{case}: a process ended with code {process.returncode}: {complaint.strip()}")
        if (killed / "population.json").exists():
            command = [*train, "--resume", str(killed), "--device", "cpu"]
    one, other = reproducible(whole_run), reproducible(killed)
    sizes = [max(len(one.get(name, b"")), len(other.get(name, b""))) for name in one | other]
    differing = [
        sum(a != b for a, b in zip(one.get(name, b"").ljust(size), other.get(name, b"").ljust(size), strict=True))
        for name, size in zip(one | other, sizes, strict=True)
    ]
    return Outcome(case, hits, len(sizes), sum(sizes), sum(differing))


def killed(arguments: Sequence[str] | None) -> None:
    """Print the table."""
    parser = Parser("kills", __doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--kills", type=whole(1, 1000), default=20, help="of each case")
    parser.add_argument("--seed", type=whole(0, 2**31), default=0, help="of the moments")
    parser.add_argument("--csv", type=new_file)
    options = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    for case in options.cases:
        moments, hits = random.Random(f"{options.seed} {case}"), 0
        while hits < options.kills:  # a population may be done before all have hit
            with tempfile.TemporaryDirectory() as folder:
                outcomes.append(attempt(case, options.kills - hits, Path(folder), moments))
            hits += outcomes[-1].kills
            print(outcomes[-1], file=sys.stderr, flush=True)
    rows = [[str(value) for value in outcome] for outcome in outcomes]
    print(table(Outcome._fields, rows), end="")
    if options.csv:
        write_csv(options.csv, Outcome._fields, outcomes)
    if any(outcome.differing_bytes for outcome in outcomes):
        raise WorkFailed("a killed population differs from the undisturbed one")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("kills", lambda: killed(arguments))


if __name__ == "__main__":
    sys.exit(main())
