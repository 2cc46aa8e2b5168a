import shutil
import sys
from dataclasses import replace

import pytest

from gramian.cli import main
from gramian.cli.study import exported_runs
from gramian.deep.runs.listing import list_runs
from gramian.study.export import write_export
from gramian.study.store import write_import
from gramian.study.worker import perform
from tests.study.studies import make_run, planned, tiny

MARK = " (export, without weights)"


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A study of real runs, one of which has diverged, and its export beside it."""
    folder = tmp_path_factory.mktemp("studies")
    (population,) = planned(folder / "study", tiny(seeds=1)).populations
    perform(str(folder / "study"), population.id, 1)
    run = folder / "study" / "populations" / population.id / population.runs[0].name
    (run / "status.json").write_text('{"state": "diverged", "agent_steps": 200, "reason": "not finite at update 3"}')
    write_export(folder / "study", folder / "export")
    return folder


@pytest.fixture
def exported(studies, tmp_path):
    """An export that a test may damage."""
    return shutil.copytree(studies / "export", tmp_path / "export")


def test_the_runs_of_an_export_are_those_of_its_study(studies):
    runs = list_runs(studies / "study")
    assert {run.state for run in runs} == {"done", "diverged"}
    place = studies / "export"
    moved = [replace(run, folder=place / run.folder.relative_to(studies / "study"), exported=True) for run in runs]
    assert sorted(exported_runs(studies), key=lambda run: run.folder) == moved


def test_exports_are_marked_in_the_table_and_runs_with_weights_are_not(studies, capsys):
    assert main(["runs", str(studies)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "populations" in line] == [
        f"export/populations/p000{MARK}",
        "study/populations/p000",
    ]
    assert sum("cartpole-gram-k0.01-s0" in line for line in lines) == 2
    assert lines.count("  not finite at update 3") == 2


def test_an_export_is_marked_where_its_runs_lie_in_the_folder_itself(studies, tmp_path, capsys):
    write_export(studies / "study" / "populations" / "p000", tmp_path / "export")
    assert main(["runs", str(tmp_path / "export")]) == 0
    assert f".{MARK}" in capsys.readouterr().out.splitlines()


def test_atari_frames_are_agent_steps_times_the_frame_skip(studies, tmp_path):
    shutil.copytree(studies / "study", tmp_path / "study")
    for path in (tmp_path / "study").glob("populations/*/*/config.toml"):
        path.write_text(path.read_text().replace('game = "cartpole"', 'game = "pong"'))
    write_export(tmp_path / "study", tmp_path / "export")
    assert {run.frames / run.agent_steps for run in exported_runs(tmp_path / "export")} == {4}


def test_a_damaged_export_is_listed_and_the_others_too(studies, exported, capsys):
    shutil.copytree(studies / "study", exported.parent / "study")
    (exported / "runs.parquet").write_bytes(b"no table")
    assert main(["runs", str(exported.parent)]) == 0
    said = capsys.readouterr().out
    assert "unreadable" in said
    assert "is damaged (it is not what was written); export the study again" in " ".join(said.split())
    assert "cartpole-gram-k0.01-s0" in said


def test_a_run_of_unknown_settings_is_unreadable_alone(studies, tmp_path):
    shutil.copytree(studies / "study", tmp_path / "study")
    make_run(tmp_path / "study" / "populations" / "p000" / "later", episodes=None, extra='note = "x"\n')
    path = tmp_path / "study" / "populations" / "p000" / "later" / "config.toml"
    path.write_text(path.read_text() + "not_yet_known = 1\n")
    write_export(tmp_path / "study", tmp_path / "export")
    runs = {run.folder.name: run for run in exported_runs(tmp_path / "export")}
    assert len(runs) == 4
    assert [name for name, run in runs.items() if run.state == "unreadable"] == ["later"]
    assert "not_yet_known" in runs["later"].reason


def test_what_was_imported_from_others_is_left_out(studies, tmp_path):
    shutil.copytree(studies / "study", tmp_path / "study")
    (tmp_path / "theirs.csv").write_text("arm,game,seed,frames,return\nours,Pong,0,4000,-20\n")
    write_import(tmp_path / "theirs.csv", tmp_path / "study" / "theirs")
    write_export(tmp_path / "study", tmp_path / "export")
    assert len(exported_runs(tmp_path / "export")) == 3


def test_where_there_is_no_polars_the_runs_with_weights_are_listed(studies, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.delitem(sys.modules, "gramian.study.store")
    assert main(["runs", str(studies)]) == 0
    said = capsys.readouterr().out
    assert "an export is read by the package 'polars'; install it" in " ".join(said.split())
    assert "cartpole-gram-k0.01-s0" in said
