import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import gramian.__main__
from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import locked
from gramian.deep.agent.arms import Arm
from gramian.deep.training import session
from gramian.deep.training.logs import read_status, write_status
from gramian.deep.training.memory import pick_device
from gramian.deep.training.provenance import own_command
from gramian.deep.training.session import resume, train
from gramian.deep.training.trainer import Trainer
from tests.deep.sessions import fingerprint, small


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def stop_at(monkeypatch, agent_steps, action):
    """Do ``action`` when a trainer has taken so many steps."""
    step = Trainer.step

    def stepping(self):
        episodes = step(self)
        if self.agent_steps == agent_steps:
            action()
        return episodes

    monkeypatch.setattr(Trainer, "step", stepping)


def interrupted_at(agent_steps, folder, monkeypatch, config=None, sent=signal.SIGINT, **options):
    """A population that was stopped by a signal after so many agent steps."""
    with monkeypatch.context() as patched:
        stop_at(patched, agent_steps, lambda: os.kill(os.getpid(), sent))
        with pytest.raises(KeyboardInterrupt, match="go on with --resume"):
            train(config or small(), folder, **options)
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return train(small(), tmp_path_factory.mktemp("undisturbed"))


def test_each_run_has_a_folder_with_all_its_files(undisturbed):
    runs = sorted(path.name for path in undisturbed.iterdir() if path.is_dir() and path.name != "checkpoints")
    assert runs == ["cartpole-dqn-s0", "cartpole-dqn-s1", "cartpole-gram-k0.1-s0", "cartpole-gram-k0.1-s1"]
    for run in runs:
        files = {path.name for path in (undisturbed / run).iterdir()}
        logs = {"episodes.csv", "metrics.csv", "representation.csv", "timing.csv"}
        assert files == logs | {"config.toml", "provenance.json", "status.json", "checkpoints"}
        status = read_status(undisturbed / run)
        assert status == {"state": "done", "agent_steps": 1200, "reason": ""}


def test_a_finished_population_keeps_its_weights_and_not_its_replay(undisturbed):
    assert sorted(path.name for path in (undisturbed / "checkpoints").iterdir()) == ["1200.json", "1200.safetensors"]
    assert (undisturbed / "cartpole-dqn-s0" / "checkpoints" / "1200.safetensors").exists()


def test_episodes_add_up_to_the_steps_taken(undisturbed):
    for path in undisturbed.glob("*/episodes.csv"):
        episodes = rows(path)
        assert episodes
        assert [int(row["episode"]) for row in episodes] == list(range(len(episodes)))
        length = 0
        for row in episodes:
            length += int(row["length_agent_steps"])
            assert int(row["frames"]) == length
            assert float(row["raw_return"]) == float(row["length_agent_steps"])  # CartPole pays 1 a step


def test_metrics_have_the_same_columns_for_every_arm_at_the_set_interval(undisturbed):
    tables = {path.parent.name: rows(path) for path in undisturbed.glob("*/metrics.csv")}
    assert len({tuple(table[0]) for table in tables.values()}) == 1
    for name, table in tables.items():
        assert [int(row["agent_steps"]) for row in table] == list(range(200, 1201, 100))
        assert all((float(row["penalty_loss"]) > 0) == ("gram" in name) for row in table)
        assert all(float(row["grad_norm_head_penalty"]) == 0 for row in table)
        # the update that falls due by a step is done in the next one
        assert [int(row["updates"]) for row in table] == [(int(row["agent_steps"]) - 101) // 8 for row in table]


def test_the_logs_hold_no_wall_clock_times_so_that_a_second_making_gives_the_same_bytes(undisturbed, tmp_path):
    assert fingerprint(train(small(), tmp_path / "again")) == fingerprint(undisturbed)


def test_provenance_names_versions_and_hardware_and_no_environment_variable(undisturbed):
    text = (undisturbed / "cartpole-dqn-s0" / "provenance.json").read_text()
    (record,) = json.loads(text)
    assert record["versions"]["torch"] == torch.__version__
    assert record["hardware"]["device"] == "cpu"
    assert set(record) == {"started", "command", "git", "versions", "hardware"}
    assert os.environ["PATH"] not in text


@pytest.mark.parametrize(
    ("program", "noted"),
    [
        (gramian.__main__.__file__, "gramian"),
        ("/usr/local/bin/gramian", "gramian"),
        ("/home/me/mine/__main__.py", "__main__.py"),
        ("train_all.py", "train_all.py"),
    ],
)
def test_the_command_of_a_run_is_noted_as_it_is_typed(monkeypatch, program, noted):
    monkeypatch.setattr("sys.argv", [program, "train", "pong"])
    assert own_command() == [noted, "train", "pong"]


def test_a_folder_that_holds_a_population_is_left_alone(undisturbed):
    before = fingerprint(undisturbed)
    with pytest.raises(UserError, match="holds a population already; go on with --resume"):
        train(small(), undisturbed)
    assert fingerprint(undisturbed) == before


def test_resuming_what_is_done_changes_nothing(undisturbed):
    before = fingerprint(undisturbed)
    resume(undisturbed)
    assert fingerprint(undisturbed) == before


def test_two_processes_never_work_on_the_same_population(undisturbed):
    with locked(undisturbed / "lock"), pytest.raises(UserError, match="another process is at work in"):
        resume(undisturbed)
    resume(undisturbed)


def test_there_is_a_sign_of_life_after_every_step(tmp_path, monkeypatch):
    seen = []
    stop_at(monkeypatch, 700, lambda: seen.append("step") or os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        train(small(checkpoint_period_agent_steps=10_000), tmp_path / "out", alive=lambda: seen.append("alive"))
    before = seen[: seen.index("step")]
    assert before == ["alive"] * (700 // small().settings.envs_per_run - 1)
    seen.clear()
    resume(tmp_path / "out", alive=lambda: seen.append("alive"))
    assert len(seen) > (small().agent_steps - 700) // small().settings.envs_per_run


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_saves_and_the_resumed_run_is_the_undisturbed_one(undisturbed, tmp_path, monkeypatch, sent):
    interrupted_at(777, tmp_path, monkeypatch, sent=sent)
    status = read_status(tmp_path / "cartpole-dqn-s0")
    assert (status["state"], status["agent_steps"]) == ("interrupted", 777)
    assert fingerprint(resume(tmp_path)) == fingerprint(undisturbed)


@pytest.mark.parametrize(
    "changes",
    [
        {"game": "minatar/space_invaders", "frames": 700, "checkpoint_period_agent_steps": 200},
        {"game": "gym:Acrobot-v1", "frames": 700, "checkpoint_period_agent_steps": 200},
        {"game": "gym:tests.deep.envs.made:Pixels-v0", "frames": 500, "update_period_agent_steps": 50},
        {"envs_per_run": 3, "n_step": 3, "double_q": True},
        {"layer_norm": True, "weight_decay": 0.01, "loss": "squared"},
        {"prioritized": True, "n_step": 3},
        {"prioritized": True, "envs_per_run": 3},
    ],
)
def test_every_kind_of_population_resumes_exactly(tmp_path, monkeypatch, changes):
    expected = fingerprint(train(small(**changes), tmp_path / "undisturbed"))
    interrupted_at(453 if "envs_per_run" in changes else 455, tmp_path / "run", monkeypatch, small(**changes))
    assert fingerprint(resume(tmp_path / "run")) == expected


def test_a_damaged_checkpoint_costs_time_and_is_made_anew(undisturbed, tmp_path, monkeypatch, capsys):
    victim = interrupted_at(777, tmp_path, monkeypatch) / "cartpole-dqn-s0" / "checkpoints" / "777.safetensors"
    victim.write_bytes(victim.read_bytes()[:-1])
    with monkeypatch.context() as patched:
        stop_at(patched, 770, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            resume(tmp_path)
    assert "gramian: the checkpoint at agent step 777 is damaged" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "checkpoints").glob("*.json")) == ["750.json", "770.json"]
    assert sorted(path.name for path in victim.parent.iterdir()) == ["750.safetensors", "770.safetensors"]
    assert fingerprint(resume(tmp_path)) == fingerprint(undisturbed)


@pytest.mark.parametrize(("stopped_at", "prioritized"), [(600, False), (699, False), (600, True)])
def test_without_the_replay_a_resumed_run_refills_it_and_goes_on(tmp_path, monkeypatch, stopped_at, prioritized):
    interrupted_at(stopped_at, tmp_path, monkeypatch, small(prioritized=prioritized), checkpoint_replay=False)
    assert not list(tmp_path.rglob("replay-*"))
    resume(tmp_path)
    table = rows(tmp_path / "cartpole-dqn-s0" / "metrics.csv")
    updates = {int(row["agent_steps"]): int(row["updates"]) for row in table}
    assert max(updates) == 1200
    if stopped_at == 600:  # the prefill's hundred steps pass first
        assert (updates[600], updates[700], updates[1200]) == (62, 62, 63 + 500 // 8)


def wild(calm, number):
    """The same population, in which one run diverges."""
    runs = list(calm.runs)
    runs[number] = replace(runs[number], learning_rate=1e30)
    return replace(calm, runs=tuple(runs))


def test_a_run_that_diverges_is_marked_and_the_others_are_those_of_a_calm_population(tmp_path, monkeypatch):
    calm = small(arms=[Arm("dqn")], seeds=[0, 1, 2], max_grad_norm=0.0)
    mad = wild(calm, 1)
    folder, seen = tmp_path / "wild" / mad.runs[1].name, []

    def logged():
        return [(folder / name).read_bytes() for name in ("episodes.csv", "metrics.csv", "representation.csv")]

    def writing(where, state, *arguments):
        if state == "diverged":
            seen.append(logged())
        write_status(where, state, *arguments)

    monkeypatch.setattr(session, "write_status", writing)
    train(calm, tmp_path / "calm")
    train(mad, tmp_path / "wild")
    assert len(seen) > 1  # the population went on without it
    assert all(one == logged() for one in seen)  # its logs are whole when its status says so
    status = read_status(folder)
    assert (status["state"], status["reason"][:21]) == ("diverged", "not finite at update ")
    assert rows(folder / "metrics.csv")  # its numbers stay
    for run in (calm.runs[0], calm.runs[2]):
        for name in ("episodes.csv", "metrics.csv", "checkpoints/1200.safetensors"):
            ours, theirs = (tmp_path / where / run.name / name for where in ("wild", "calm"))
            assert ours.read_bytes() == theirs.read_bytes()


def test_a_population_that_has_diverged_whole_ends(tmp_path):
    mad = wild(small(arms=[Arm("dqn")], seeds=[0], max_grad_norm=0.0), 0)
    for go in (lambda: train(mad, tmp_path), lambda: resume(tmp_path)):
        go()
        status = read_status(tmp_path / mad.runs[0].name)
        assert (status["state"], status["agent_steps"] < 1200) == ("diverged", True)


def test_a_run_that_diverges_after_the_last_metrics_is_marked_too(tmp_path):
    calm = small(arms=[Arm("dqn")], seeds=[0, 1], frames=400, metrics_period_agent_steps=10_000, max_grad_norm=0.0)
    train(wild(calm, 1), tmp_path)
    assert [read_status(tmp_path / run.name)["state"] for run in wild(calm, 1).runs] == ["done", "diverged"]


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "holds no population; --resume takes"), ('{"format": 99}', "has format 99")]
    + [(text, "is damaged") for text in ("", "{", "{}")],
)
def test_a_population_file_that_cannot_be_read_is_one_clear_line(tmp_path, text, said):
    if text is not None:
        (tmp_path / "population.json").write_text(text)
    with pytest.raises(UserError, match=said):
        resume(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("agent_steps", [40, 251, 749, 1199])
def test_a_process_that_dies_resumes_from_its_last_checkpoint_as_if_nothing_had_been(
    undisturbed, tmp_path, monkeypatch, agent_steps
):
    class Died(BaseException):
        pass

    def die():
        raise Died

    with monkeypatch.context() as patched:
        stop_at(patched, agent_steps, die)
        with pytest.raises(Died):
            train(small(), tmp_path / "run")
    assert fingerprint(resume(tmp_path / "run")) == fingerprint(undisturbed)


def test_a_full_disk_stops_the_run_with_a_clear_line_and_keeps_the_last_checkpoint(undisturbed, tmp_path, monkeypatch):
    from gramian.deep.training import checkpoint

    write = checkpoint.replace_bytes

    def full(path, data):
        if path.name == "750.safetensors":
            raise OSError(28, "No space left on device")
        write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "replace_bytes", full)
        with pytest.raises(WorkFailed, match="no space left on device; the checkpoint at agent step 500 is whole"):
            train(small(), tmp_path / "run")
    status = read_status(tmp_path / "run" / "cartpole-dqn-s0")
    assert status["state"] == "failed"
    assert fingerprint(resume(tmp_path / "run")) == fingerprint(undisturbed)


@pytest.mark.parametrize("victim", ["", "episodes.csv", "timing.csv", "config.toml"])
def test_a_folder_or_a_file_that_vanishes_stops_the_run_with_one_line(tmp_path, monkeypatch, victim):
    folder = tmp_path / "run" / "cartpole-dqn-s0"
    stop_at(monkeypatch, 600, lambda: (folder / victim).unlink() if victim else shutil.rmtree(folder))
    with pytest.raises(WorkFailed, match=r"cartpole-dqn-s0.*(was removed or replaced|has vanished).*--resume"):
        train(small(), tmp_path / "run")
    assert not (folder / victim).exists()
    status = read_status(tmp_path / "run" / "cartpole-dqn-s1")
    assert status["state"] == "failed"


def test_a_killed_emulator_stops_the_run_with_one_line_and_it_can_be_resumed(tmp_path, monkeypatch):
    config = small("pong", frames=2_400, representation_period_agent_steps=0)
    step = Trainer.step

    def stepping(self):
        if self.agent_steps == 300:
            self.environments._groups[0].games._players[0].process.kill()
        return step(self)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "step", stepping)
        said = (
            r"emulator process \d+ \(pong\) ended by itself \(exit code -9\); .* step 250 is whole; go on with --resume"
        )
        with pytest.raises(WorkFailed, match=said):
            train(config, tmp_path / "run", threads=1)
    assert read_status(tmp_path / "run" / "pong-dqn-s0")["state"] == "failed"
    resume(tmp_path / "run", threads=1)
    assert read_status(tmp_path / "run" / "pong-dqn-s0")["state"] == "done"


def test_a_population_that_another_process_begins_meanwhile_is_left_alone(tmp_path, monkeypatch):
    def locked_late(path):
        (path.parent / "population.json").write_text("theirs")
        return locked(path)

    monkeypatch.setattr(session, "locked", locked_late)
    with pytest.raises(UserError, match="holds a population already"):
        train(small(), tmp_path / "run")
    assert (tmp_path / "run" / "population.json").read_text() == "theirs"


def test_altered_settings_are_refused_and_those_of_an_older_version_used_with_a_warning(tmp_path, capsys):
    train(small(frames=150, seeds=[0]), tmp_path)
    path = tmp_path / "population.json"
    path.write_text(path.read_text().replace('"gamma": 0.99', '"gamma": 0.91'))
    with pytest.raises(UserError, match=r"population.json' is damaged \(.*it is not what was written"):
        resume(tmp_path)
    saved = {name: value for name, value in json.loads(path.read_text()).items() if name != "sha256"}
    path.write_text(json.dumps(saved))
    capsys.readouterr()
    resume(tmp_path)
    assert capsys.readouterr().err.count("has no checksums of its settings and logs") == 1


def test_a_bug_leaves_its_reason_in_the_status(tmp_path, monkeypatch):
    def bug():
        raise ZeroDivisionError("oh")

    stop_at(monkeypatch, 300, bug)
    with pytest.raises(ZeroDivisionError):
        train(small(), tmp_path / "run")
    status = read_status(tmp_path / "run" / "cartpole-dqn-s0")
    assert (status["state"], status["reason"]) == ("failed", "ZeroDivisionError: oh")


def test_a_file_that_the_system_refuses_is_one_clear_line(tmp_path):
    """A real limit on the size of files stands in for a full disk; the logs reach it between two checkpoints."""
    command = [
        *("bash", "-c", 'ulimit -f 20; exec "$@"', "bash", sys.executable, "-m", "gramian", "train"),
        *("--game", "cartpole", "--preset", "smoke", "--arm", "dqn", "--frames", "3_000", "--features-dim", "8"),
        *("--metrics-period-agent-steps", "1", "--no-checkpoint-replay", "--out", str(tmp_path / "run")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "file too large" in done.stderr.splitlines()[-1]
    status = read_status(tmp_path / "run" / "cartpole-dqn-s0")
    assert status["state"] == "failed"


def test_memory_that_does_not_suffice_stops_before_anything_is_written(tmp_path):
    with pytest.raises(UserError, match=r"not enough memory on cpu: .* lower --replay-capacity"):
        train(small(game="pong", replay_capacity=10**9), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_devices_are_checked():
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        pick_device("gpu")
    if not torch.cuda.is_available():
        assert pick_device("auto") == torch.device("cpu")
        with pytest.raises(UserError, match="sees no CUDA"):
            pick_device("cuda")
