import json
import signal
import sys
import time

import pytest

from gramian.cli import main
from gramian.cli import study as commands
from gramian.core.cores import cores
from gramian.study.manifest import PLAN, STUDY
from gramian.study.plan import read_plan
from gramian.study.status import attempts, is_locked
from tests.study.studies import (
    assert_every_cell_done_exactly_once,
    environment,
    events,
    fingerprints,
    planned,
    start,
    tiny,
)

pytestmark = pytest.mark.slow

QUICK = ("--rate", "1000", "--device", "cpu")


@pytest.fixture(autouse=True)
def workers_import_what_we_import(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(tiny())
    return str(path)


def test_a_group_of_commands_shows_its_commands(capsys):
    assert main(["study"]) == 0
    shown = capsys.readouterr().out
    assert "study plan" in shown
    assert "train" not in shown
    for word, said in (
        ("pln", "unknown command 'study pln'; did you mean 'study plan'?"),
        ("smoke", "unknown command 'study smoke'; did you mean 'study run smoke'?"),
        ("foo", "there is no command and no study 'foo'; 'gramian study' shows the commands"),
    ):
        assert main(["study", word]) == 2
        assert capsys.readouterr().err == f"gramian: {said}\n"


def test_plan_gives_the_bill_and_then_the_cells_and_writes_nothing_unasked(spec, tmp_path, capsys):
    assert main(["study", "plan", spec, *QUICK, "--population", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["cells", "memory", "disk", "time", "core-days"]
    assert lines[6] == "p000  3 runs: cartpole-dqn-s0, cartpole-dqn-s1, cartpole-decor-k0.01-s0"
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_study_is_run_in_parts_that_are_folders_of_their_own(spec, tmp_path, capsys):
    for seed in ("0", "1"):
        assert main(["study", "run", spec, *QUICK, "--seeds", seed, "--out", str(tmp_path / "parts" / seed)]) == 0
    assert {run.seed for population in read_plan(tmp_path / "parts" / "1").populations for run in population.runs} == {
        1
    }
    assert (tmp_path / "parts" / "1" / STUDY).read_text() == f"# This folder holds a part of it: --seeds 1\n{tiny()}"
    capsys.readouterr()
    assert main(["study", "run", spec, *QUICK, "--out", str(tmp_path / "parts" / "1")]) == 2
    said = f"gramian: '{tmp_path}/parts/1' holds a part of this study; give --seeds 1, or name another folder\n"
    assert capsys.readouterr().err == said


def test_plan_measures_where_no_rate_is_given(spec, capsys):
    assert main(["study", "plan", spec, "--device", "cpu", "--measure-s", "0.1"]) == 0
    assert "measured for 0.1 s" in capsys.readouterr().out


def test_run_plans_once_runs_and_has_nothing_left_to_do(spec, tmp_path, capsys):
    study = tmp_path / "study"
    assert main(["study", "run", spec, "--out", str(study), *QUICK, "--population", "3"]) == 0
    assert "all 6 cells are done" in capsys.readouterr().err
    assert_every_cell_done_exactly_once(study)
    assert (study / STUDY).read_text() == tiny()
    before = (study / PLAN).read_bytes(), fingerprints(study), attempts(study, "p000")
    assert main(["study", "run", spec, "--out", str(study)]) == 0
    assert ((study / PLAN).read_bytes(), fingerprints(study), attempts(study, "p000")) == before
    assert main(["study", "status", str(study)]) == 0
    assert "6 cells, 100% of the steps; 6 done" in capsys.readouterr().out


def test_the_runs_of_a_study_remember_its_command_and_diverged_ones_are_counted_apart(tmp_path, capsys, monkeypatch):
    command = ["gramian", "study", "run", "diverging.toml"]
    monkeypatch.setattr("sys.argv", command)
    spec, study = tmp_path / "diverging.toml", tmp_path / "study"
    spec.write_text(tiny(seeds=1, extra="[settings]\nlearning_rate = 1e30\nmax_grad_norm = 0\n"))
    assert main(["study", "run", str(spec), "--out", str(study), *QUICK]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"study in {study}: 0 cells done, 3 diverged"
    for path in study.rglob("provenance.json"):
        assert [record["command"] for record in json.loads(path.read_text())] == [command]


def test_a_planned_study_is_run_as_it_was_planned(spec, tmp_path):
    study = tmp_path / "study"
    assert main(["study", "plan", spec, "--out", str(study), *QUICK, "--population", "2"]) == 0
    before = (study / PLAN).read_bytes()
    assert main(["study", "run", spec, "--out", str(study), *QUICK]) == 0
    assert (study / PLAN).read_bytes() == before
    assert len(assert_every_cell_done_exactly_once(study).populations) == 3


def test_a_failed_cell_is_named_with_its_reason_and_the_exit_code_is_1(tmp_path, capsys):
    (tmp_path / "broken.toml").write_text(tiny(seeds=1))
    study = tmp_path / "study"
    assert main(["study", "plan", str(tmp_path / "broken.toml"), "--out", str(study), *QUICK]) == 0
    for population in read_plan(study).populations:
        (study / "populations").mkdir(exist_ok=True)
        (study / "populations" / population.id).write_text("a file where a folder should be")
    arguments = ["study", "run", str(tmp_path / "broken.toml"), "--out", str(study), "--retries", "1"]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert "p000/cartpole-dqn-s0 failed: " in said
    assert "it is a file" in said
    assert "3 of 3 cells failed" in said
    assert events(study, "p000") == ["started", "failed", "started", "failed"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--workers", "-1"], "--workers is -1; it must be 0 or more"),
        (["--stall-min", "-1"], "--stall-min is -1.0; it must be 0 or more"),
        (["--within-min", "-1"], "--within-min is -1.0; it must be 0 or more"),
        (["--stall-min", "0.5"], "--stall-min is 0.5; it must be 1 or more, or 0 for never"),
        (["--games"], "--games is empty; name some of the study's games, or omit it for all"),
        (["--seeds"], "--seeds is empty; name some of the study's seeds, or omit it for all"),
        (["--measure-s", "0"], "--measure-s is 0.0; it must be more than 0"),
        (["--measure-s", "inf"], "--measure-s is inf; it must be more than 0, and finite"),
        (["--rate", "nan"], "--rate is nan; it must be 0 or more, and finite"),
        (["--ray-address", "auto"], "--ray-address is for --executor ray; add it, or omit the address"),
        (["--torch-threads", "100000"], f"--torch-threads 100000 is too large; give at most {cores()}, the cores"),
        (["--population", "100000000"], "not enough memory on CPU"),
    ],
)
def test_bad_options_get_one_line_and_leave_nothing(spec, tmp_path, capsys, arguments, complaint):
    assert main(["study", "run", spec, "--out", str(tmp_path / "study"), *QUICK, *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"gramian: {complaint}")
    assert said.count("\n") == 1
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("option", [["--population", "1"], ["--torch-threads", "2"], ["--no-checkpoint-replay"]])
def test_what_the_plan_has_decided_cannot_be_changed_later(spec, tmp_path, capsys, option):
    assert main(["study", "plan", spec, "--out", str(tmp_path / "study"), *QUICK, "--population", "3"]) == 0
    capsys.readouterr()
    assert main(["study", "run", spec, "--out", str(tmp_path / "study"), *option]) == 2
    assert f"was made without {' '.join(option)}; omit it" in capsys.readouterr().err


def test_a_plan_for_more_cores_than_there_are_here_goes_on(spec, tmp_path):
    folder = tmp_path / "study"
    assert main(["study", "plan", spec, "--out", str(folder), *QUICK]) == 0
    plan = json.loads((folder / PLAN).read_text())
    threads = cores() + 1
    (folder / PLAN).write_text(json.dumps(plan | {"torch_threads": threads}))
    assert main(["study", "run", spec, "--out", str(folder), *QUICK, "--torch-threads", str(threads)]) == 0


def test_without_ray_the_extra_is_named(spec, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["study", "run", spec, "--out", str(tmp_path / "study"), "--executor", "ray"]) == 2
    assert capsys.readouterr().err == ("gramian: --executor ray needs Ray; it comes with: pip install 'gramian[ray]'\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_save_and_the_same_command_goes_on(tmp_path, number):
    path, study = tmp_path / "long.toml", tmp_path / "study"
    path.write_text(tiny(seeds=1, frames=8_000))
    arguments = ("run", path, "--out", study, *QUICK, "--population", "3")
    process = start(*arguments)
    while not list(study.glob("populations/p000/checkpoints/*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "the same command goes on from there" in said
    assert events(study, "p000") == ["started", "interrupted"]
    again = start(*arguments)
    said = again.communicate()[1]
    assert again.returncode == 0, said
    assert events(study, "p000") == ["started", "interrupted", "started", "finished"]


def test_two_processes_on_one_study_never_do_the_same_population(spec, tmp_path):
    study = tmp_path / "study"
    assert main(["study", "plan", spec, "--out", str(study), *QUICK, "--population", "2"]) == 0
    both = [start("run", spec, "--out", study, "--workers", "1") for _ in range(2)]
    for process in both:
        said = process.communicate()[1]
        assert process.returncode == 0, said
    for population in assert_every_cell_done_exactly_once(study).populations:
        assert events(study, population.id) == ["started", "finished"]


def test_a_process_that_was_just_beaten_to_the_plan_takes_the_one_that_is_there(spec, tmp_path, monkeypatch):
    study = tmp_path / "study"
    bill = commands._print_cost

    def meanwhile(*arguments):
        bill(*arguments)
        planned(study, largest=2)

    monkeypatch.setattr(commands, "_print_cost", meanwhile)
    assert main(["study", "run", spec, "--out", str(study), *QUICK, "--population", "3"]) == 0
    assert len(assert_every_cell_done_exactly_once(study).populations) == 3
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "populations", "study.toml"]


def test_workers_whose_owner_is_killed_save_and_end(tmp_path):
    path, study = tmp_path / "long.toml", tmp_path / "study"
    path.write_text(tiny(seeds=1, frames=10_000_000))
    process = start("run", path, "--out", study, *QUICK, "--population", "3", "--workers", "1")
    while not list(study.glob("populations/p000/checkpoints/*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.communicate()
    while is_locked(study, "p000"):
        time.sleep(0.05)
    assert events(study, "p000") == ["started", "interrupted"]
