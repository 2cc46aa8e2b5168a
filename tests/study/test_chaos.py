"""Real worker processes, really killed, in a study of the paper's size."""

import os
import random
import signal
import time

import pytest

from gramian.study.attempts import attempts
from tests.study.studies import assert_every_cell_done_exactly_once, fingerprints, start, tiny

CELLS = 441
KILL_EVERY_S = (1.0, 3.0)


def at_work(study):
    """Processes that have taken up a population and have not said what came of it."""
    last = [attempts(study, path.stem.partition(".")[0])[-1] for path in study.glob("populations/*.attempts.jsonl")]
    return sorted(attempt.pid for attempt in last if attempt.event == "started")


def run(path, study, *, kills):
    """Run a study to its end while its workers are killed; gives how many were."""
    arguments = ("run", path, "--out", study, "--rate", "1000", "--device", "cpu", "--workers", "2")
    process = start(*arguments, "--population", "9", "--retries", "100")
    moments, killed = random.Random(0), 0
    while process.poll() is None:
        time.sleep(moments.uniform(*KILL_EVERY_S) if kills else 0.2)
        if kills and (pids := at_work(study)):
            try:
                os.kill(moments.choice(pids), signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass  # it was killed before and has not been taken up again
    assert process.returncode == 0, process.stderr.read()
    return killed


@pytest.mark.slow
def test_441_cells_survive_random_kills_of_their_workers(tmp_path):
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
