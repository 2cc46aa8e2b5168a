import os
import signal
import threading
import time

import pytest

from gramian.core.errors import UserError
from gramian.study.cost import Hardware
from gramian.study.local import LocalExecutor, Worker, WorkerDied, worker_environments
from gramian.study.run import agent_steps, run_study
from gramian.study.status import attempts, lock, unfinished
from gramian.study.worker import Outcome, perform
from tests.study.studies import assert_every_cell_done_exactly_once, environment, events, planned, tiny

pytestmark = pytest.mark.slow


class Scripted:
    """An executor that does populations in this process, or says what it is told to."""

    def __init__(self, said=None):
        self.said = said or {}
        self.asked, self.told = [], []

    def run(self, study, populations):
        for population in populations:
            self.asked.append(population)
            script = self.said.get(population)
            yield script.pop(0) if script else Outcome(**perform(str(study), population, 1))

    def stop(self, population):
        self.told.append(population)


@pytest.fixture
def executor():
    made = LocalExecutor([environment()], retries=1, emulator_threads=1)
    yield made
    made.close()


def endless(folder):
    """A study of one population that is never done in the time of a test."""
    return planned(folder, tiny(seeds=1, frames=10_000_000), largest=3)


def wait_for(condition):
    while not condition():
        time.sleep(0.05)


def test_what_is_done_is_not_asked_for_again(tmp_path):
    study = tmp_path / "study"
    plan = planned(study)
    assert unfinished(study, plan) == ["p000", "p001"]
    perform(str(study), "p000", 1)
    scripted = Scripted()
    assert run_study(study, plan, scripted) == []
    assert scripted.asked == ["p001"]
    assert_every_cell_done_exactly_once(study)


def test_progress_counts_the_agent_steps_of_all_runs_and_goes_on_where_it_stood(tmp_path, capsys):
    study = tmp_path / "study"
    plan = planned(study)
    perform(str(study), "p000", 1)
    assert agent_steps(study, plan, plan.population("p000")) == 900
    assert agent_steps(study, plan, plan.population("p001")) == 0
    capsys.readouterr()
    run_study(study, plan, Scripted())
    assert capsys.readouterr().err.splitlines()[-1].startswith("Tiny: 1,800 of 1,800 agent steps (100%)")


def test_a_population_that_another_process_works_on_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.study.run.BUSY_S", 0.01)
    plan = planned(tmp_path / "study")
    scripted = Scripted({"p000": [Outcome("p000", "busy"), Outcome("p000", "busy")]})
    assert run_study(tmp_path / "study", plan, scripted) == []
    assert scripted.asked == ["p000", "p001", "p000", "p000"]


def test_a_failure_is_reported_and_the_others_are_done(tmp_path):
    study = tmp_path / "study"
    plan = planned(study)
    lost = Outcome("p000", "failed", "its process was killed by SIGKILL")
    assert run_study(study, plan, Scripted({"p000": [lost]})) == [lost]
    assert unfinished(study, plan) == ["p000"]
    assert attempts(study, "p000")[-1].reason == lost.reason


def test_what_is_stopped_for_want_of_time_is_no_failure(tmp_path):
    study = tmp_path / "study"
    plan = planned(study)
    stopped = Outcome("p001", "stopped")
    assert run_study(study, plan, Scripted({"p001": [stopped]}), time.monotonic() + 60) == [stopped]
    assert unfinished(study, plan) == ["p001"]
    assert events(study, "p001") == []


def test_nobody_waits_for_another_process_when_time_is_over(tmp_path):
    plan = planned(tmp_path / "study")
    busy = Outcome("p000", "busy")
    assert run_study(tmp_path / "study", plan, Scripted({"p000": [busy]}), time.monotonic()) == [busy]


def test_a_population_that_is_to_stop_is_saved_and_its_worker_goes_on_with_the_next(tmp_path, executor):
    study = tmp_path / "study"
    planned(study, tiny(seeds=2, frames=10_000_000), largest=3)
    found = executor.run(study, ["p000", "p001"])
    for population in ("p000", "p001"):
        threading.Thread(
            target=lambda name: (
                wait_for(lambda: list(study.glob(f"populations/{name}/checkpoints/*.json"))),
                executor.stop(name),
            ),
            args=(population,),
        ).start()
    assert list(found) == [Outcome("p000", "stopped"), Outcome("p001", "stopped")]
    assert events(study, "p000") == events(study, "p001") == ["started", "interrupted"]


def test_a_population_that_is_to_stop_before_it_has_begun_is_not_begun(tmp_path, executor):
    study = tmp_path / "study"
    planned(study)
    executor.stop("p000")
    assert sorted(executor.run(study, ["p000", "p001"]), key=lambda one: one.population) == [
        Outcome("p000", "stopped"),
        Outcome("p001", "done"),
    ]
    assert events(study, "p000") == []


def test_each_worker_gets_one_of_the_visible_gpus(monkeypatch):
    two = Hardware("cuda", "GPU", places=2, units=2, free_bytes=1, cores=8)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [entry["CUDA_VISIBLE_DEVICES"] for entry in worker_environments(two, 3, 1)] == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert [entry["CUDA_VISIBLE_DEVICES"] for entry in worker_environments(two, 2, 1)] == ["5", "7"]


def test_a_worker_does_one_thing_after_another_and_passes_complaints_on():
    worker = Worker(environment())
    assert worker.call("probe", device="cpu")["device"] == "cpu"
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        worker.call("probe", device="gpu")
    assert worker.call("probe", device="cpu")["cores"] >= 1
    worker.stop()
    worker.wait()


def test_a_worker_that_is_killed_is_noticed_and_started_again(tmp_path):
    study = tmp_path / "study"
    endless(study)
    worker = Worker(environment())

    def kill():
        wait_for(lambda: attempts(study, "p000"))
        os.kill(attempts(study, "p000")[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(WorkerDied, match="was killed by SIGKILL"):
        worker.call("perform", study=str(study), population="p000", emulator_threads=1)
    killer.join()
    assert worker.call("probe", device="cpu")["device"] == "cpu"
    worker.stop()
    worker.wait()


def test_a_population_that_is_killed_is_taken_up_again_and_given_up_after_the_retries(tmp_path, executor):
    study = tmp_path / "study"
    plan = endless(study)

    def kill_two():
        for number in (1, 2):
            wait_for(lambda: len(attempts(study, "p000")) == number)  # noqa: B023 - it is called at once
            os.kill(attempts(study, "p000")[-1].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_two)
    killer.start()
    (failure,) = run_study(study, plan, executor)
    killer.join()
    assert failure == Outcome("p000", "failed", "its process was killed by SIGKILL")
    assert events(study, "p000") == ["started", "started", "failed"]


def test_closing_saves_what_is_being_trained_and_gives_the_lock_back(tmp_path, executor):
    study = tmp_path / "study"
    endless(study)
    threading.Thread(target=lambda: list(executor.run(study, ["p000"])), daemon=True).start()
    wait_for(lambda: list(study.glob("populations/p000/checkpoints/*.json")))
    executor.close()
    assert events(study, "p000") == ["started", "interrupted"]
    with lock(study, "p000") as free:
        assert free
