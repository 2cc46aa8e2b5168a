"""Real worker processes that really hang."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gramian.core.errors import UserError
from gramian.study.local import LocalExecutor
from gramian.study.manifest import POPULATIONS
from gramian.study.plan import to_mapping
from gramian.study.run import run_study
from gramian.study.status import attempts, reasons, survey
from gramian.study.worker import perform
from tests.study.studies import (
    assert_every_cell_done_exactly_once,
    environment,
    events,
    fingerprints,
    hang_once,
    is_over,
    planned,
    tiny,
)

pytestmark = pytest.mark.slow

STALL_S = 1.5
REASON = "made no step for 0.025 minutes"


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "study"
    return folder, planned(folder, tiny(seeds=1))


def run(study, plan, retries):
    executor = LocalExecutor([environment()], retries, emulator_threads=1, stall_s=STALL_S)
    try:
        return run_study(study, plan, executor)
    finally:
        executor.close()


def test_what_hangs_is_killed_with_its_children_and_goes_on_from_its_checkpoint(study, tmp_path, monkeypatch):
    folder, plan = study
    undisturbed = tmp_path / "undisturbed"
    planned(undisturbed, tiny(seeds=1))
    perform(str(undisturbed), "p000", 1)
    hung = hang_once(tmp_path, monkeypatch, agent_steps=155)
    assert run(folder, plan, retries=1) == []
    assert_every_cell_done_exactly_once(folder)
    assert events(folder, "p000") == ["started", "failed", "started", "finished"]
    assert attempts(folder, "p000")[1].reason == REASON
    assert is_over(int(hung.read_text()))
    assert fingerprints(folder) == fingerprints(undisturbed)


def test_the_log_tells_where_it_hung(study, tmp_path, monkeypatch):
    folder, plan = study
    hang_once(tmp_path, monkeypatch, agent_steps=155)
    (failure,) = run(folder, plan, retries=0)
    assert failure.population == "p000"
    assert events(folder, "p000") == ["started", "failed"]
    assert f"p000/cartpole-dqn-s0 failed: {REASON}" in reasons(survey(folder, plan))
    log = (folder / POPULATIONS / "p000.log").read_text()
    assert f"gramian: {REASON}; the process is killed" in log
    assert "sitecustomize.py" in log


def test_a_hang_in_the_start_is_in_the_log_too(study, tmp_path, monkeypatch):
    folder, plan = study
    hang_once(tmp_path, monkeypatch, agent_steps=None)
    run(folder, plan, retries=0)
    assert attempts(folder, "p000")[-1].reason == REASON
    log = (folder / POPULATIONS / "p000.log").read_text()
    assert f"gramian: {REASON}; the process is killed" in log
    assert "sitecustomize.py" in log


def test_a_hang_that_stops_every_thread_of_python_is_ended_too(study, tmp_path, monkeypatch):
    folder, plan = study
    hung = hang_once(tmp_path, monkeypatch, agent_steps=155, wait="without letting go of the lock")
    assert run(folder, plan, retries=1) == []
    assert is_over(int(hung.read_text()))
    assert events(folder, "p000") == ["started", "started", "finished"]
    assert "sitecustomize.py" in (folder / POPULATIONS / "p000.log").read_text()


def test_whoever_gives_signs_of_life_is_left_alone():
    work = (
        "import time; from gramian.study.worker import watched\n"
        "with watched(3.0, print) as alive:\n"
        "    for _ in range(8): time.sleep(0.5); alive()\n"
        "time.sleep(3.5)\n"
    )
    ended = subprocess.run([sys.executable, "-c", work], env=environment(), start_new_session=True, check=False)
    assert ended.returncode == 0


def test_a_hang_while_the_rate_is_measured_is_an_error_in_one_line(study, tmp_path, monkeypatch):
    _, plan = study
    hang_once(tmp_path, monkeypatch, agent_steps=0)
    executor = LocalExecutor([environment()], retries=0, emulator_threads=1)
    asked = {"plan": to_mapping(plan), "population": "p000", "seconds": 0.1, "emulator_threads": 1}
    with pytest.raises(UserError, match=rf"^the rate was not measured: its process {REASON} \(--stall-min\)$"):
        executor.call("measure", **asked, stall_s=STALL_S)
    executor.close()


def test_a_worker_that_hangs_does_not_keep_a_study_from_stopping(study, tmp_path, monkeypatch, capsys):
    folder, _ = study
    monkeypatch.setattr("gramian.study.local.SAVING_S", 0.6)
    hung = hang_once(tmp_path, monkeypatch, agent_steps=155)
    executor = LocalExecutor([environment()], retries=1, emulator_threads=1)
    threading.Thread(target=lambda: list(executor.run(folder, ["p000"])), daemon=True).start()
    while not hung.exists():
        time.sleep(0.05)
    executor.close()
    assert capsys.readouterr().err == (
        "gramian: killing 1 worker that did not stop within 0.01 minutes; "
        "its population goes on from its last checkpoint\n"
    )
    (begun,) = attempts(folder, "p000")
    assert not Path(f"/proc/{begun.pid}").exists()  # it was waited for, too
    while not is_over(int(hung.read_text())):
        time.sleep(0.05)
