import json
import os
import shutil
import signal

import pytest

from gramian.deep.training.trainer import Trainer
from gramian.study import worker
from gramian.study.manifest import POPULATIONS
from gramian.study.plan import read_plan
from gramian.study.status import (
    UNREADABLE,
    attempts,
    is_finished,
    is_locked,
    lock,
    reasons,
    record,
    run_state,
    survey,
    unfinished,
)
from gramian.study.worker import perform, record_failure
from tests.deep.sessions import fingerprint
from tests.deep.training.test_session import stop_at
from tests.study.studies import assert_every_cell_done_exactly_once, events, fingerprints, planned


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    study = tmp_path_factory.mktemp("undisturbed") / "study"
    for population in planned(study).populations:
        assert perform(str(study), population.id, 1)["state"] == "done"
    return study


def interrupt(study, monkeypatch):
    """Begin the first population and stop it in the middle."""
    with monkeypatch.context() as patched:
        stop_at(patched, 155, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(KeyboardInterrupt):
            perform(str(study), "p000", 1)


def test_a_population_is_done_in_its_folder_of_the_study(undisturbed):
    plan = assert_every_cell_done_exactly_once(undisturbed)
    for population in plan.populations:
        assert is_finished(undisturbed, population)
        assert events(undisturbed, population.id) == ["started", "finished"]


def test_what_is_done_is_not_done_again(undisturbed):
    path = undisturbed / POPULATIONS / "p000" / "cartpole-dqn-s0" / "provenance.json"
    before = path.read_bytes()
    assert perform(str(undisturbed), "p000", 1)["state"] == "done"
    assert path.read_bytes() == before
    assert events(undisturbed, "p000") == ["started", "finished"]


def test_a_population_that_another_process_holds_is_left_alone(tmp_path):
    study = tmp_path / "study"
    planned(study)
    with lock(study, "p000") as held:
        assert held
        assert is_locked(study, "p000")
        assert perform(str(study), "p000", 1)["state"] == "busy"
    assert not is_locked(study, "p000")
    assert events(study, "p000") == []


def test_the_lock_goes_back_when_its_holder_is_killed(tmp_path):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with lock(tmp_path, "p000"):
            os.write(writing, b"x")
            signal.pause()
        os._exit(0)
    os.read(reading, 1)
    assert is_locked(tmp_path, "p000")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with lock(tmp_path, "p000") as held:
        assert held


def test_an_interrupted_population_goes_on_from_its_checkpoint_to_the_same_numbers(undisturbed, tmp_path, monkeypatch):
    study = tmp_path / "study"
    plan = planned(study)
    interrupt(study, monkeypatch)
    for population in plan.populations:
        perform(str(study), population.id, 1)
    assert events(study, "p000") == ["started", "interrupted", "started", "finished"]
    assert_every_cell_done_exactly_once(study)
    assert fingerprints(study) == fingerprints(undisturbed)


def test_a_process_that_dies_between_its_last_step_and_its_record_leaves_nothing_to_do_again(tmp_path, monkeypatch):
    study = tmp_path / "study"
    planned(study)

    class Died(BaseException):
        pass

    def dying(folder, population, event, reason=""):
        if event == "finished":
            raise Died
        record(folder, population, event, reason)

    with monkeypatch.context() as patched:
        patched.setattr(worker, "record", dying)
        with pytest.raises(Died):
            perform(str(study), "p000", 1)
    assert perform(str(study), "p000", 1)["state"] == "done"
    assert events(study, "p000") == ["started", "finished"]


def test_a_failure_is_an_outcome_with_its_reason_in_one_line_and_stands_in_the_status_of_its_runs(
    tmp_path, monkeypatch
):
    study = tmp_path / "study"
    plan = planned(study)

    def broken(_):
        raise RuntimeError("the GPU\nfell off the bus")

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "step", broken)
        outcome = perform(str(study), "p000", 1)
    reason = "RuntimeError: the GPU fell off the bus"
    assert outcome == {"population": "p000", "state": "failed", "reason": reason}
    status = json.loads((study / POPULATIONS / "p000" / plan.populations[0].runs[0].name / "status.json").read_text())
    assert (status["state"], status["reason"]) == ("failed", reason)
    assert "Traceback" in (study / POPULATIONS / "p000.log").read_text()
    assert perform(str(study), "p000", 1)["state"] == "done"
    assert events(study, "p000") == ["started", "failed", "started", "finished"]


def test_a_study_that_this_machine_does_not_see_is_a_failure_that_says_so(tmp_path):
    outcome = perform(str(tmp_path / "elsewhere"), "p000", 1)
    assert outcome["state"] == "failed"
    assert "all nodes must see a study's folder under the same path" in outcome["reason"]


def test_what_a_killed_process_could_not_write_down_is_written_for_it_once(tmp_path):
    study = tmp_path / "study"
    plan = planned(study)
    with lock(study, "p000"):
        record(study, "p000", "started")
    for _ in range(2):
        record_failure(study, plan.populations[0], "its process was killed by SIGKILL")
    assert [(entry.event, entry.reason) for entry in attempts(study, "p000")] == [
        ("started", ""),
        ("failed", "its process was killed by SIGKILL"),
    ]


def test_a_finished_population_is_never_called_failed(undisturbed):
    record_failure(undisturbed, read_plan(undisturbed).populations[0], "late")
    assert events(undisturbed, "p000") == ["started", "finished"]


def test_a_line_that_was_cut_short_costs_that_line_alone(tmp_path):
    with lock(tmp_path, "p000"):
        record(tmp_path, "p000", "started")
        path = tmp_path / POPULATIONS / "p000.attempts.jsonl"
        path.write_bytes(path.read_bytes() + b'{"event": "fini')
        record(tmp_path, "p000", "started")
    assert events(tmp_path, "p000") == ["started", "started"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", '{"state": "do', "[]", '{"state": "done"}', "null"])
@pytest.mark.parametrize("ended", [False, True])
def test_a_damaged_status_is_unknown_and_the_population_goes_on_from_its_checkpoint(
    undisturbed, tmp_path, monkeypatch, text, ended
):
    study = tmp_path / "study"
    plan = planned(study)
    if ended:
        perform(str(study), "p000", 1)
    else:
        interrupt(study, monkeypatch)
    damaged = study / POPULATIONS / "p000" / plan.populations[0].runs[1].name / "status.json"
    damaged.write_text(text)
    assert run_state(study, plan.populations[0], damaged.parent.name) == ("unknown", 0, UNREADABLE)
    (line,) = reasons(survey(study, plan))
    assert line == f"p000/{damaged.parent.name} stopped: {UNREADABLE}"
    assert unfinished(study, plan) == ["p000", "p001"]
    for population in plan.populations:
        assert perform(str(study), population.id, 1)["state"] == "done"
    assert unfinished(study, plan) == []
    assert events(study, "p000").count("finished") == 1
    assert fingerprints(study) == fingerprints(undisturbed)


def test_the_runs_remember_the_command_of_the_study(tmp_path):
    study = tmp_path / "study"
    planned(study)
    command = ["gramian", "study", "run", "tiny.toml"]
    assert perform(str(study), "p000", 1, command)["state"] == "done"
    (path, *_) = sorted((study / POPULATIONS / "p000").glob("*/provenance.json"))
    assert [record["command"] for record in json.loads(path.read_text())] == [command]


def test_a_population_without_a_whole_checkpoint_is_trained_anew_when_its_folder_is_removed(
    undisturbed, tmp_path, monkeypatch
):
    study = tmp_path / "study"
    planned(study)
    interrupt(study, monkeypatch)
    folder = study / POPULATIONS / "p000"
    for manifest in (folder / "checkpoints").glob("*.json"):
        manifest.write_text("{")
    assert f"is whole; remove '{folder}' to train it anew" in perform(str(study), "p000", 1)["reason"]
    shutil.rmtree(folder)
    assert perform(str(study), "p000", 1)["state"] == "done"
    assert fingerprint(folder) == fingerprint(undisturbed / POPULATIONS / "p000")
