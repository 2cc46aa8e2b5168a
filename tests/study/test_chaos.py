"""Real worker processes, really killed, in a study of many populations."""

import contextlib
import os
import random
import signal
import time

import pytest

from gramian.study.status import attempts
from tests.study.studies import assert_every_cell_done_exactly_once, fingerprints, start, tiny

pytestmark = pytest.mark.slow

CELLS = 90
KILLED = 0.5
"""Share of the attempts at a population that are killed: of attempts, not of seconds, so a fast machine has as many."""


def at_work(study):
    """Attempts at a population that have not said what came of them: (population, events so far, process)."""
    for path in sorted(study.glob("populations/*.attempts.jsonl")):
        population = path.stem.partition(".")[0]
        begun = attempts(study, population)
        if begun and begun[-1].event == "started":
            yield population, len(begun), begun[-1].pid


def run(path, study, *, kills):
    """Run a study to its end while its workers are killed; gives how many were."""
    arguments = ("run", path, "--out", study, "--rate", "1000", "--device", "cpu", "--workers", "2")
    process = start(*arguments, "--population", "9", "--retries", "100")
    chance, seen, killed = random.Random(0), set(), 0
    while process.poll() is None:
        time.sleep(0.05)
        for population, count, pid in list(at_work(study)) if kills else []:
            if (population, count) in seen:
                continue
            seen.add((population, count))
            if chance.random() < KILLED:
                time.sleep(chance.uniform(0, 0.3))
                with contextlib.suppress(ProcessLookupError):  # it had ended by itself
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
    assert process.returncode == 0, process.stderr.read()
    return killed


def test_a_study_survives_random_kills_of_their_workers(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(tiny(seeds=CELLS // 3))
    run(path, tmp_path / "undisturbed", kills=False)
    killed = run(path, tmp_path / "killed", kills=True)
    assert killed >= 5
    plan = assert_every_cell_done_exactly_once(tmp_path / "killed")
    assert plan.cells == CELLS
    begun = sum(
        attempt.event == "started"
        for population in plan.populations
        for attempt in attempts(tmp_path / "killed", population.id)
    )
    assert begun > len(plan.populations)  # some were really taken up again
    assert fingerprints(tmp_path / "killed") == fingerprints(tmp_path / "undisturbed")
