import pytest

from gramian.cli import main
from gramian.study import status
from gramian.study.manifest import PART
from gramian.study.status import headline, lock, plain, reasons, record, survey, watch
from gramian.study.worker import perform, record_failure
from tests.study.studies import planned, tiny


@pytest.fixture
def study(tmp_path):
    """Four populations: one done, one at work, one failed, one waiting."""
    folder = tmp_path / "study"
    plan = planned(folder, tiny(seeds=4))
    perform(str(folder), "p000", 1)
    with lock(folder, "p002"):
        record(folder, "p002", "started")
    record_failure(folder, plan.populations[2], "its process was killed by SIGKILL")
    with lock(folder, "p001"):
        record(folder, "p001", "started")
        yield folder, plan


def test_every_population_has_the_state_that_its_folder_shows(study):
    assert [entry.state for entry in survey(*study)] == ["done", "running", "failed", "waiting"]


def test_a_population_that_nobody_works_on_any_more_is_stopped(tmp_path):
    plan = planned(tmp_path / "study")
    with lock(tmp_path / "study", "p000"):
        record(tmp_path / "study", "p000", "started")
    assert [entry.state for entry in survey(tmp_path / "study", plan)] == ["stopped", "waiting"]


def test_the_headline_counts_cells(study):
    folder, plan = study
    counted = "3 done, 3 waiting, 3 running, 3 failed"
    assert headline(plan.title, survey(folder, plan)) == f"Tiny: 12 cells, 25% of the steps; {counted}"


def test_every_cell_that_failed_is_listed_with_its_reason(study):
    lines = reasons(survey(*study))
    names = [run.name for run in study[1].populations[2].runs]
    assert lines == [f"p002/{name} failed: its process was killed by SIGKILL" for name in names]


def test_the_text_has_a_row_for_each_population(study):
    lines = plain(study[1].title, survey(*study)).splitlines()
    assert lines[2].split() == ["population", "games", "runs", "state", "done", "tries", "at", "work"]
    assert lines[3].split() == ["p000", "cartpole", "3", "done", "100%", "1"]
    assert lines[4].split()[:6] == ["p001", "cartpole", "3", "running", "0%", "1"]


def test_without_a_terminal_it_is_shown_once(study, capsys):
    watch(dict([study]), once=False)
    assert capsys.readouterr().out == plain(study[1].title, survey(*study)) + "\n"


def test_on_a_terminal_it_is_live_until_all_is_done(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "study"
    plan = planned(folder, largest=6)
    monkeypatch.setattr(status, "REFRESH_S", 0.0)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(status.time, "sleep", lambda _: perform(str(folder), "p000", 1))
    watch({folder: plan}, once=False)
    shown = capsys.readouterr().out
    assert "6 waiting" in shown
    assert "6 done" in shown


def test_a_diverged_cell_is_named_and_counts_as_finished(tmp_path):
    folder = tmp_path / "study"
    text = tiny(seeds=1, extra="[settings]\nlearning_rate = 1e30\nmax_grad_norm = 0\n")
    plan = planned(folder, text)
    assert perform(str(folder), "p000", 1)["state"] == "done"
    (found,) = survey(folder, plan)
    assert (found.state, found.share) == ("diverged", 1.0)
    assert all("diverged: not finite at update" in line for line in reasons([found]))


@pytest.mark.usefixtures("study")
def test_the_parts_of_a_study_are_shown_together(tmp_path, capsys):
    other = tmp_path / "more" / "seeds"
    planned(other, tiny(seeds=1))
    perform(str(other), "p000", 1)
    assert main(["study", "status", str(tmp_path), "--once"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Tiny: 15 cells, 40% of the steps; 6 done, 3 waiting, 3 running, 3 failed"
    names = [line.split()[0] for line in shown[3:8]]
    assert names == ["more/seeds/p000", *(f"study/p00{number}" for number in range(4))]
    assert shown[8].startswith("study/p002/cartpole-")


def test_what_another_part_has_done_is_not_waited_for(tmp_path, capsys):
    for part in ("first", "second"):
        planned(tmp_path / part, tiny(seeds=1))
        (tmp_path / part / "populations").mkdir(exist_ok=True)
    perform(str(tmp_path / "second"), "p000", 1)
    assert main(["study", "status", str(tmp_path), "--once"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Tiny: 3 cells, 100% of the steps; 3 done"
    assert [line.split()[0] for line in shown[3:]] == ["second/p000"]


def test_cells_that_are_in_no_part_are_counted(tmp_path, capsys):
    for seed in (0, 1):
        part = tmp_path / f"s{seed}"
        planned(part, tiny(seeds=1))
        perform(str(part), "p000", 1)
        text = (part / "study.toml").read_text().replace("seeds = [0]", "seeds = [0, 1, 2]")
        (part / "study.toml").write_text(f"{PART}--seeds 0\n{text}")
    assert main(["study", "status", str(tmp_path), "--once"]) == 0
    assert "6 in no part: cartpole (seeds 1, 2)" in capsys.readouterr().out.splitlines()[0]


def test_a_folder_without_any_study_is_refused(tmp_path, capsys):
    assert main(["study", "status", str(tmp_path)]) == 2
    assert "holds no study" in capsys.readouterr().err
