"""A real Ray cluster of two nodes, on which workers and nodes are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from gramian.study.plan import read_plan
from gramian.study.status import attempts
from tests.study.studies import (
    assert_every_cell_done_exactly_once,
    environment,
    events,
    fingerprints,
    hang_once,
    is_over,
    save_slowly,
    start,
    tiny,
)

pytestmark = pytest.mark.slow

pytest.importorskip("ray")

OPTIONS = ("--rate", "1000", "--device", "cpu", "--population", "2", "--retries", "5")
NODE = {
    "num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False, "node_ip_address": "127.0.0.1",
}  # fmt: skip


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes that work and a head that does not, all on this machine."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])  # nodes import what this process imports
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Ray turns 127.0.0.1 into the machine's own address where this is on, as it is on Linux: then nobody answers there.
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    made = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
    try:
        yield made, [made.add_node(**NODE) for _ in range(2)]
    finally:
        made.shutdown()


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(tiny(seeds=3, frames=3_000))
    return path, tmp_path / "study"


def finish(process):
    output, said = process.communicate(timeout=300)
    assert process.returncode == 0, output + said


def wait_for_checkpoint(study, process, *, after=()):
    """A population that is in the middle of its training and not among ``after``, with the process that trains it."""
    while process.poll() is None:
        for path in study.glob("populations/*/checkpoints/*.json"):
            population = path.parts[-3]
            past = attempts(study, population)
            if past[-1].event == "started" and (population, past[-1].pid) not in after:
                return population, past[-1].pid
        time.sleep(0.02)
    raise AssertionError(f"the study was over too soon: {process.communicate()}")


def start_impatient(folder, change, *arguments):
    """Begin ``gramian study`` with a limit that is shorter than it may be."""
    script = folder / "impatient.py"
    script.write_text(
        "import sys; from gramian.cli import main; from gramian.cli import options as commands\n"
        f"from gramian.study import ray_cluster\n{change}\n"
        "sys.exit(main(['study', *sys.argv[1:]]))\n"
    )
    command = [sys.executable, script, *arguments]
    return subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_killed_worker_and_a_killed_node_leave_no_trace(cluster, study, tmp_path):
    made, nodes = cluster
    path, folder = study
    finish(start("run", path, "--out", tmp_path / "undisturbed", *OPTIONS))

    process = start("run", path, "--out", folder, *OPTIONS, "--executor", "ray", "--ray-address", made.address)
    population, pid = wait_for_checkpoint(folder, process)
    os.kill(pid, signal.SIGKILL)
    lost = wait_for_checkpoint(folder, process, after=[(population, pid)])
    made.remove_node(nodes[1], allow_graceful=False)
    made.remove_node(nodes[0], allow_graceful=False)  # whichever it was on: then there is none left
    made.add_node(**NODE)
    finish(process)

    plan = assert_every_cell_done_exactly_once(folder)
    begun = {entry.id: events(folder, entry.id).count("started") for entry in plan.populations}
    assert begun[population] >= 2
    assert begun[lost[0]] >= 2
    assert fingerprints(folder) == fingerprints(tmp_path / "undisturbed")


def test_what_hangs_is_killed_and_taken_up_again_by_ray(study, tmp_path, monkeypatch, request):
    path, folder = study
    path.write_text(tiny(seeds=1))
    hung = hang_once(tmp_path, monkeypatch, agent_steps=155)
    made, _ = request.getfixturevalue("cluster")
    options = (*OPTIONS, "--workers", "1", "--stall-min", "0.1", "--executor", "ray", "--ray-address", made.address)
    finish(start_impatient(tmp_path, "commands.SHORTEST_STALL_MIN = 0.1", "run", path, "--out", folder, *options))
    plan = assert_every_cell_done_exactly_once(folder)
    past = [attempt for entry in plan.populations for attempt in attempts(folder, entry.id)]
    assert [attempt.reason for attempt in past if attempt.event == "failed"] == ["made no step for 0.1 minutes"]
    assert is_over(int(hung.read_text()))


def test_a_task_that_hangs_does_not_keep_a_study_from_stopping(study, tmp_path, monkeypatch, request):
    path, folder = study
    hung = hang_once(tmp_path, monkeypatch, agent_steps=155)
    made, _ = request.getfixturevalue("cluster")
    options = (*OPTIONS, "--workers", "1", "--executor", "ray", "--ray-address", made.address)
    process = start_impatient(tmp_path, "ray_cluster.SAVING_S = 0.6", "run", path, "--out", folder, *options)
    while not hung.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert "gramian: killing 1 worker that did not stop within 0.01 minutes" in said
    (pid,) = (attempt.pid for entry in read_plan(folder).populations for attempt in attempts(folder, entry.id))
    while not is_over(pid):
        time.sleep(0.05)


def test_no_more_populations_than_workers_are_trained_at_once(cluster, study):
    path, folder = study
    path.write_text(tiny(seeds=3))
    options = (*OPTIONS, "--workers", "1", "--executor", "ray", "--ray-address", cluster[0].address)
    finish(start("run", path, "--out", folder, *options))
    times = [[entry.time for entry in attempts(folder, p.id)] for p in read_plan(folder).populations]
    spans = sorted((min(own), max(own)) for own in times)
    assert len(spans) > 1
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_what_no_node_can_take_is_refused_at_once(cluster, study):
    path, folder = study
    options = (*OPTIONS, "--torch-threads", "2", "--executor", "ray", "--ray-address", cluster[0].address)
    process = start("run", path, "--out", folder, *options)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert "no node of the Ray cluster has what a population needs (CPU 2" in said
    assert not folder.exists()


def test_ctrl_c_saves_what_the_cluster_is_training_and_failures_are_reported(cluster, study):
    made, _ = cluster
    path, folder = study
    arguments = ("run", path, "--out", folder, *OPTIONS, "--executor", "ray", "--ray-address", made.address)
    process = start(*arguments)
    population, _ = wait_for_checkpoint(folder, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert events(folder, population)[-1] == "interrupted"
    broken = read_plan(folder).populations[-1].id
    (folder / "populations" / broken).write_text("a file where a folder should be")
    process = start(*arguments, "--retries", "1")
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 1
    assert f"{broken}/" in said
    assert "it is a file" in said
    assert events(folder, broken) == ["started", "failed"] * 2


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_a_study_whose_time_is_over_goes_on_later_to_the_same_numbers(study, tmp_path, monkeypatch, request, executor):
    path, folder = study
    path.write_text(tiny(seeds=3))
    finish(start("run", path, "--out", tmp_path / "undisturbed", *OPTIONS))
    slow = save_slowly(tmp_path, monkeypatch, seconds=7)  # meanwhile it is told again to stop
    where = ()
    if executor == "ray":
        where = ("--executor", "ray", "--ray-address", request.getfixturevalue("cluster")[0].address)
    arguments = ("run", path, "--out", folder, *OPTIONS, "--workers", "2", *where)
    process = start(*arguments, "--within-min", "0.1")
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 1, said
    assert "of 9 cells would not have ended within 0.1 min and are stopped; the same command goes on with them" in said
    past = {entry.id: events(folder, entry.id) for entry in read_plan(folder).populations}
    assert ["started", "interrupted"] in past.values()
    assert all("failed" not in own for own in past.values())
    states = [json.loads(file.read_text())["state"] for file in folder.glob("populations/*/*/status.json")]
    assert set(states) == {"interrupted"}  # it was saved
    slow.unlink()
    finish(start(*arguments))
    assert fingerprints(folder) == fingerprints(tmp_path / "undisturbed")


def test_a_cluster_is_started_where_there_is_none(study, monkeypatch):
    path, folder = study
    path.write_text(tiny(seeds=1))
    monkeypatch.setenv("RAY_ADDRESS", "local")
    finish(start("run", path, "--out", folder, *OPTIONS, "--executor", "ray"))
    assert_every_cell_done_exactly_once(folder)


def test_an_address_where_there_is_no_cluster_is_one_line(study):
    path, folder = study
    process = start("run", path, "--out", folder, *OPTIONS, "--executor", "ray", "--ray-address", "nowhere")
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert said.splitlines()[-1].startswith("gramian: cannot join a Ray cluster at 'nowhere'")
