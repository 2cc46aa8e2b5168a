import io
import json
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gramian.cli import main
from gramian.core.errors import UserError
from gramian.core.files import EXPORT, find_export, locked
from gramian.report import Options, build
from gramian.report.choose import evaluation_study
from gramian.representation.analysis import analyze, run_folders
from gramian.representation.tables import read_correlation, read_curves, read_dynamics, read_measures
from gramian.study.export import LOCK, STAGED, merge_exports, without_folders, write_export
from gramian.study.manifest import PLAN, POPULATIONS, REST, STUDY, read_manifest, read_planned
from gramian.study.store import WINDOW_EPISODES, first_frames, read_study, write_import
from gramian.study.worker import perform
from tests.report.studies import FOLDS, invent, norms, peaked, tuning
from tests.study.studies import make_run, planned, planned_part, tiny

LOGGED = "[settings]\nmetrics_period_agent_steps = 50\nrepresentation_period_agent_steps = 100\n"
GRID = "".join(
    f'[[arms]]\nkind = "{kind}"\n{kappas}\n'
    for kind, kappas in (("norm", "kappas = [0.01, 1]"), ("dqn", ""), ("gram", "kappas = [0.01, 1]"))
)
RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = [RESULTS / name for name in ("minatar/study", "atari/study", "atari/kappa")]
TABLES = {EXPORT, "runs.parquet", "episodes.parquet", "metrics.parquet", "held_out.parquet"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study of real runs with its analysis; one population has not begun."""
    folder = tmp_path_factory.mktemp("trained") / "study"
    plan = planned(folder, tiny(arms=GRID, extra=LOGGED), largest=4)
    for population in plan.populations[:-1]:
        perform(str(folder), population.id, 1, ["gramian", "study", "run", "/home/me/tiny.toml", "--out=/home/me/runs"])
    analyze([folder], folder / "analysis", states=64, at_once=2, figures=False)
    return folder


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    out, said = tmp_path_factory.mktemp("exported") / "export", io.StringIO()
    with redirect_stderr(said):
        assert main(["study", "export", str(trained), "--out", str(out)]) == 0
    assert re.fullmatch(r"7 runs, [\d,]+ episodes in \S+: 0\.\d MB\n", said.getvalue())
    return out


def assert_same(export, study):
    """Two folders are read as the same study."""
    one, other = read_study(export), read_study(study)
    if one.runs["run"].to_list() != other.runs["run"].to_list():  # runs outside of the parts come first
        one, other = (replace(study, runs=study.runs.sort("run")) for study in (one, other))
    for name in ("episodes", "metrics", "held_out"):
        one_log, other_log = (getattr(study, name).sort("run", maintain_order=True) for study in (one, other))
        assert one_log.equals(other_log), name
        assert getattr(one, name).schema == getattr(other, name).schema
    assert one.runs.drop("folder").equals(other.runs.drop("folder"))
    assert one.runs["folder"].str.replace(str(export), "", literal=True).to_list() == (
        other.runs["folder"].str.replace(str(study), "", literal=True).to_list()
    )
    assert one.settings == other.settings
    assert one.provenance.keys() == other.provenance.keys()
    assert read_planned(export) == read_planned(study)


def test_an_export_is_read_as_the_study_is(trained, exported):
    assert_same(exported, trained)


def test_an_export_has_tables_plan_and_analysis_and_no_weights(trained, exported):
    assert {path.name for path in exported.iterdir()} == TABLES | {PLAN, STUDY, POPULATIONS, "analysis"}
    assert {path.suffix for path in exported.rglob("*") if path.is_file()} <= {
        ".json", ".jsonl", ".toml", ".parquet", ".csv", ".md",
    }  # fmt: skip
    assert (exported / STUDY).read_bytes() == (trained / STUDY).read_bytes()
    assert (exported / PLAN).read_bytes() == (trained / PLAN).read_bytes()
    assert pl.read_parquet(exported / "episodes.parquet").columns == ["at", "length", "return"]


def without_ids(data):
    """An SVG without matplotlib's names of its parts, which are random unless they are given a salt."""
    return re.sub(rb'(?<=["#])(m|p|h|image|C\d+_\d+_)[0-9a-f]{10}\b', rb"\1", data)


@pytest.mark.slow
def test_the_report_of_an_export_is_that_of_the_study(trained, exported, tmp_path):
    for name, folder in (("study", trained), ("export", exported)):
        build(folder, tmp_path / name, Options(replicates=100))
    paths = {path.relative_to(tmp_path / "study") for path in (tmp_path / "study").rglob("*") if path.is_file()}
    assert paths == {
        path.relative_to(tmp_path / "export") for path in (tmp_path / "export").rglob("*") if path.is_file()
    }
    assert any(path.parts[1:2] == ("representation",) for path in paths)
    for path in paths:
        one, other = ((tmp_path / name / path).read_bytes() for name in ("study", "export"))
        if path.name == "index.html":
            one = one.replace(b"/home/me/", b"")
        assert without_ids(one) == without_ids(other), path


def test_the_analysis_of_an_export_is_that_of_the_study(trained, exported):
    for read, name in ((read_measures, "measures.csv"), (read_curves, "curves.csv"), (read_dynamics, "dynamics.csv")):
        one, other = (read(folder / "analysis" / name) for folder in (trained, exported))
        assert repr(one) == repr(other)  # NaN is NaN
    matrices = exported / "analysis" / "correlation"
    assert len(list(matrices.iterdir())) == len(
        {row.arm for row in read_measures(exported / "analysis" / "measures.csv")}
    )
    for path in matrices.iterdir():
        own = np.load(trained / "analysis" / "correlation" / f"{path.stem}.npy")
        assert read_correlation(matrices, path.stem).tobytes() == own.tobytes()


def test_an_analysis_whose_matrix_is_not_symmetric_is_kept_as_it_is(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "study")
    path = tmp_path / "study" / "analysis" / "correlation" / "cartpole-dqn-s0.npy"
    matrix = np.nan_to_num(np.load(path))
    matrix[0, 1] = matrix[1, 0] + 0.5
    np.save(path, matrix)
    write_export(tmp_path / "study", tmp_path / "out")
    assert (tmp_path / "out" / "analysis" / "correlation" / path.name).read_bytes() == path.read_bytes()


def test_an_export_names_no_folder_of_the_machine(exported, trained):
    records = [record for own in read_study(exported).provenance.values() for record in own]
    assert {" ".join(record["command"]) for record in records} == {"gramian study run tiny.toml --out=runs"}
    for path in exported.rglob("*"):
        if path.is_file():
            assert b"/home/me" not in path.read_bytes(), path
            assert bytes(trained.parent) not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("OSError: '/a/b/c.csv': no space", "OSError: 'c.csv': no space"),
        ("--out=/scratch/me/runs", "--out=runs"),
        ("runs/p000 and 3/4 of a/b", "runs/p000 and 3/4 of a/b"),
        ("/tmp", "/tmp"),
    ],
)
def test_paths_of_a_text_are_cut_to_their_last_names(text, left):
    assert without_folders(text) == left


def test_match_and_status_of_an_export_say_what_they_say_of_the_study(trained, exported, capsys):
    said = []
    for folder in (trained, exported):
        assert main(["study", "match", str(folder), "--arm", "dqn"]) == 0
        assert main(["study", "status", str(folder), "--once"]) == 0
        said.append(capsys.readouterr().out.splitlines())
    assert said[0] == said[1]
    assert "7 done" in "\n".join(said[1])
    assert any(line.startswith("  norm ") for line in said[1])


def test_choose_of_exports_writes_the_study_that_it_writes_of_the_studies(tmp_path):
    for name, folds in (("a", FOLDS), ("b", FOLDS[::-1])):
        invent(tmp_path / name, tuning(*folds), peaked, norms, diverged=("minatar-breakout-gram-k1.0-s100",))
        write_export(tmp_path / name, tmp_path / "exported" / name)
    chosen = [evaluation_study([root / "a", root / "b"]) for root in (tmp_path, tmp_path / "exported")]
    assert chosen[0] == chosen[1]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A study in two parts, one population of which has failed."""
    folder = tmp_path_factory.mktemp("parts")
    for name, seeds in (("s0", "[0]"), ("s1", "[1]")):
        planned(folder / name, tiny().replace("[0, 1]", seeds))
        perform(str(folder / name), "p000", 1)
    (run,) = (folder / "s1").rglob("cartpole-gram-*/status.json")
    run.write_text('{"state": "failed", "agent_steps": 100, "reason": ""}')
    with (folder / "s1" / POPULATIONS / "p000.attempts.jsonl").open("a") as file:
        file.write(json.dumps({"event": "failed", "host": "node7", "pid": 4, "time": "", "reason": "no disk"}) + "\n")
    return folder


def test_the_parts_of_a_study_are_exported_each_to_its_place(parts, tmp_path):
    write_export(parts, tmp_path / "out")
    assert_same(tmp_path / "out", parts)
    for part in ("s0", "s1"):
        assert_same(tmp_path / "out" / part, parts / part)
    assert set(read_planned(tmp_path / "out").cells.values()) == {"", "no disk"}
    assert b"node7" not in (tmp_path / "out" / "s1" / POPULATIONS / "p000.attempts.jsonl").read_bytes()


@pytest.mark.parametrize("part", ["s0", "s1"])
def test_a_part_may_be_an_export_beside_one_that_is_not(parts, part, tmp_path):
    shutil.copytree(parts, tmp_path / "mixed")
    shutil.rmtree(tmp_path / "mixed" / part)
    write_export(parts / part, tmp_path / "mixed" / part)
    assert_same(tmp_path / "mixed", parts)


def test_runs_outside_of_the_parts_are_exported_too(parts, tmp_path):
    shutil.copytree(parts, tmp_path / "study")
    for name, seed in (("a", 7), ("z", 8)):
        make_run(tmp_path / "study" / name, game="cartpole", arm="dqn", seed=seed)
    write_export(tmp_path / "study", tmp_path / "out")
    assert_same(tmp_path / "out", tmp_path / "study")


def test_an_export_beside_its_study_is_the_same_run_twice(trained, exported, tmp_path, capsys):
    shutil.copytree(exported, tmp_path / "export")
    shutil.copytree(trained / POPULATIONS, tmp_path / "study")
    assert main(["study", "report", str(tmp_path), "--out", str(tmp_path / "report")]) == 2
    assert re.search(r"gramian: game 'cartpole', .* is there twice: .*; report them apart\n$", capsys.readouterr().err)


def test_an_import_and_an_export_are_exported_as_well(parts, tmp_path):
    (tmp_path / "theirs.csv").write_text("arm,game,seed,frames,return\nours,Pong,0,4000,-20\nours,Pong,1,9,-0.5\n")
    write_import(tmp_path / "theirs.csv", tmp_path / "study" / "theirs", rows="points")
    write_export(parts, tmp_path / "study" / "ours")
    write_export(tmp_path / "study", tmp_path / "out")
    assert_same(tmp_path / "out", tmp_path / "study")
    assert read_study(tmp_path / "out").runs["window"].unique().sort().to_list() == [1, 100]


def test_a_single_run_without_logs_is_exported(tmp_path):
    make_run(tmp_path / "run", episodes=None)
    write_export(tmp_path / "run", tmp_path / "out")
    assert_same(tmp_path / "out", tmp_path / "run")


def test_numbers_that_are_none_are_kept(tmp_path):
    run = make_run(tmp_path / "study" / "run", episodes="frames,raw_return\n10,nan\n30,-inf\n31,-0.0\n31,0.1\n40,\n")
    (run / "metrics.csv").write_text("frames,loss\n10,inf\n20,\n30,nan\n")
    write_export(tmp_path / "study", tmp_path / "out")
    assert_same(tmp_path / "out", tmp_path / "study")
    returns = read_study(tmp_path / "out").episodes["return"]
    assert str(returns[2]) == "-0.0"
    assert returns[4] is None


def damage(name, change):
    def apply(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return apply


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damage(EXPORT, lambda data: data.replace(b'"format": 1', b'"format": 2')),
         r"'.*export\.json' has format 2, not 1; use the version that wrote it"),
        (damage(EXPORT, lambda data: data[:-9]), r"'.*export\.json' is damaged \(.*\); export the study again"),
        (damage(EXPORT, lambda _: b"[]"), r"'.*export\.json' is damaged \(.*\); export the study again"),
        (damage("episodes.parquet", lambda data: data[:-9]),
         r"'.*episodes\.parquet' is damaged \(it is not what was written\); export the study again"),
        (damage(EXPORT, lambda data: data.replace(b'"n_step": 1', b'"n_step": 2')),
         r"'.*export\.json' is damaged \(it is not what was written\); export the study again"),
        *((damage(name, lambda data: data + b"?"), rf"'.*{name}' is damaged \(it is not what was written\); .*")
          for name in (PLAN, STUDY, "populations/p000.attempts.jsonl", "analysis/measures.csv", "analysis/summary.md",
                       "analysis/curves.parquet", "analysis/correlation/cartpole-dqn-s0.parquet")),
        (damage(STUDY, lambda _: b""), r"'.*study\.toml' is damaged \(it is not what was written\); .*"),
    ],
)  # fmt: skip
def test_an_export_that_is_damaged_or_newer_is_refused_in_one_line(exported, spoil, message, tmp_path, capsys):
    shutil.copytree(exported, tmp_path / "export")
    spoil(tmp_path / "export")
    assert main(["study", "report", str(tmp_path / "export"), "--out", str(tmp_path / "report")]) == 2
    assert re.fullmatch(f"gramian: {message}\n", capsys.readouterr().err)
    assert not (tmp_path / "report").exists()


def test_every_file_of_an_export_has_its_hash(trained, exported, parts, tmp_path):
    shutil.copytree(parts, tmp_path / "study")
    shutil.copytree(trained / "analysis", tmp_path / "study" / "analysis")
    planned(tmp_path / "study" / "s2", tiny().replace("[0, 1]", "[2]"))
    (tmp_path / "study" / "s2" / POPULATIONS).mkdir()  # a part none of whose runs has begun
    write_export(tmp_path / "study", tmp_path / "out")
    for folder in (exported, tmp_path / "out", *COMMITTED):
        heads = [path for name in (EXPORT, REST) for path in folder.rglob(name)]
        covered = {
            path.parent / name for path in heads for key in ("files", "beside") for name in read_manifest(path)[key]
        }
        assert covered | set(heads) == {path for path in folder.rglob("*") if path.is_file()}


def test_what_lies_in_no_part_of_an_export_is_checked_too(trained, parts, tmp_path, capsys):
    shutil.copytree(parts, tmp_path / "study")
    shutil.copytree(trained / "analysis", tmp_path / "study" / "analysis")
    write_export(tmp_path / "study", tmp_path / "out")
    damaged = tmp_path / "out" / "analysis" / "measures.csv"
    damaged.write_text(damaged.read_text().replace("0", "1"))
    assert main(["study", "report", str(tmp_path / "out"), "--out", str(tmp_path / "report")]) == 2
    said = f"'{damaged}' is damaged (it is not what was written); export the study again"
    assert capsys.readouterr().err == f"gramian: {said}\n"


def missing(folder, name):
    return f"gramian: the export '{folder}' is not whole, missing: {name}; export the study again\n"


@pytest.mark.parametrize("name", [*sorted(TABLES), PLAN, STUDY, "populations/p000.attempts.jsonl"])
def test_a_file_that_an_export_lacks_is_named_by_report_status_and_match(exported, name, tmp_path, capsys):
    folder = tmp_path / "export"
    shutil.copytree(exported, folder)
    (folder / name).unlink()
    for words in (["report", "--out", str(tmp_path / "report")], ["status"], ["match", "--arm", "dqn"]):
        assert main(["study", *words, str(folder)]) == 2
        assert capsys.readouterr().err == missing(folder, name)
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("name", [EXPORT, PLAN, "runs.parquet"])
def test_a_file_that_one_of_several_parts_lacks_is_named(parts, name, tmp_path, capsys):
    write_export(parts, tmp_path / "export")
    (tmp_path / "export" / "s1" / name).unlink()
    for words in (["report", "--out", str(tmp_path / "report")], ["status"]):
        assert main(["study", *words, str(tmp_path / "export")]) == 2
        assert capsys.readouterr().err == missing(tmp_path / "export" / "s1", name)


def test_the_tables_of_others_are_no_export(tmp_path):
    make_run(tmp_path / "study" / "run")
    pl.DataFrame({"run": ["mine"]}).write_parquet(tmp_path / "study" / "runs.parquet")
    assert read_study(tmp_path / "study").runs.height == 1


def test_what_cannot_be_exported_is_refused_and_leaves_nothing(trained, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    (tmp_path / "nothing").mkdir()
    for name in ("a", "b"):
        make_run(tmp_path / "twice" / name / "run", seed=ord(name))
    shutil.copytree(trained, tmp_path / "broken")
    (tmp_path / "broken" / "analysis" / "correlation" / "cartpole-dqn-s0.npy").unlink()
    out = tmp_path / "new" / "out"
    for folder, where, message in (
        (tmp_path / "none", out, "there is no folder .*; name the folder of a study, .*"),
        (tmp_path / "nothing", out, "there is no run below .*; a run is a folder with a config.toml"),
        (trained, tmp_path / "full", "folder '.*full' is not empty; name another one"),
        (trained, trained / "export", "'.*export' lies in the study, .*; name another folder"),
        (tmp_path / "twice", out, "two runs are called 'run': '.*a/run' and '.*b/run'; export them apart"),
        (tmp_path / "broken", out, "cannot read '.*cartpole-dqn-s0.npy': .*; analyze the runs again"),
    ):
        assert main(["study", "export", str(folder), "--out", str(where)]) == 2
        assert re.fullmatch(f"gramian: {message}\n", capsys.readouterr().err)
        assert not out.parent.exists()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    assert not (trained / "export").exists()


def test_a_run_that_is_done_without_episodes_is_not_exported(tmp_path, capsys):
    run = make_run(tmp_path / "study" / "run", status={"state": "done", "agent_steps": 9, "reason": ""})
    assert main(["study", "export", str(tmp_path / "study"), "--out", str(tmp_path / "out")]) == 2
    said = f"'{run}' is done and has no episodes; train the run again, or leave it out"
    assert capsys.readouterr().err == f"gramian: {said}\n"
    assert not (tmp_path / "out").exists()
    (run / "status.json").write_text('{"state": "diverged", "agent_steps": 9, "reason": "not finite at update 3"}')
    assert main(["study", "export", str(tmp_path / "study"), "--out", str(tmp_path / "out")]) == 0


def test_what_an_export_that_was_stopped_has_left_is_not_read_and_gives_way(trained, exported, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(exported, out / f"{STAGED}1" / "study")
    shutil.copytree(exported, out / f"{STAGED}2")
    with pytest.raises(UserError, match="there is no run below"):
        read_study(out)
    assert find_export(out) is None
    assert read_planned(out).cells == {}
    with pytest.raises(UserError, match="it holds no run"):
        run_folders(out)
    with locked(out / f"{STAGED}2" / LOCK):
        assert main(["study", "export", str(trained), "--out", str(out)]) == 2
    assert "another process is at work in" in capsys.readouterr().err
    write_export(trained, out)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in exported.iterdir())
    assert_same(out, trained)


def test_an_export_that_is_killed_can_be_made_again(trained, tmp_path):
    out = tmp_path / "out"
    # killed where everything is written and nothing has been moved
    code = (
        "import os, signal, sys; from gramian.study import export\n"
        "export.write_manifest = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)\n"
        "export.write_export(*sys.argv[1:])"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(trained), str(out)], check=False)
    assert killed.returncode == -signal.SIGTERM
    (left,) = out.iterdir()
    assert left.name.startswith(STAGED)
    assert main(["study", "export", str(trained), "--out", str(out)]) == 0
    assert not left.exists()
    assert_same(out, trained)


def test_what_needs_weights_says_that_an_export_has_none(exported, tmp_path, capsys):
    run = exported / POPULATIONS / "p000" / "cartpole-dqn-s0"
    (tmp_path / "tiny.toml").write_text(tiny(arms=GRID, extra=LOGGED))
    for words in (
        ["analyze", str(exported), "--out", str(tmp_path / "out")],
        ["analyze", str(run), "--out", str(tmp_path / "out")],
        ["evaluate", str(exported)],
        ["evaluate", str(run)],
        ["study", "run", str(tmp_path / "tiny.toml"), "--rate", "1000", "--out", str(exported)],
    ):
        assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "is an export of a study" in line
        assert "weights" in line
    assert not (tmp_path / "out").exists()


def test_analyze_leaves_an_export_beside_run_folders_out(parts, tmp_path, capsys):
    shutil.copytree(parts / "s0", tmp_path / "mixed" / "s0")
    write_export(parts / "s1", tmp_path / "mixed" / "s1")
    analyze([tmp_path / "mixed"], tmp_path / "out", states=64, at_once=2, figures=False)
    assert "s1' is an export, without weights: its runs are left out" in capsys.readouterr().err
    assert {row.seed for row in read_measures(tmp_path / "out" / "measures.csv")} == {0}


def test_the_same_study_gives_the_same_bytes(trained, exported, tmp_path):
    write_export(trained, tmp_path / "out")
    for path in exported.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "out" / path.relative_to(exported)).read_bytes(), path


@pytest.mark.parametrize(("name", "frames"), [("minatar", 1_000_000), ("atari", 4_000_000)])
def test_the_committed_studies_hold_the_runs_of_the_committed_tables(name, frames):
    scores = pl.read_csv(RESULTS / name / "scores.csv").sort("run")
    last = pl.col("return").tail(WINDOW_EPISODES).mean()
    ends = first_frames(read_study(RESULTS / name / "study"), frames).episodes.group_by("run").agg(
        pl.col("frames").last(), episodes=pl.len().cast(pl.Int64), final_score=last
    )  # fmt: skip
    assert ends.sort("run").drop("final_score").equals(scores.select("run", "frames", "episodes"))
    assert ends.sort("run")["final_score"].to_list() == pytest.approx(scores["final_score"].to_list())


def made(folder, text, seeds, states=()):
    """A part of a study, whose runs are done but for those in ``states``."""
    for population in planned_part(folder, text, seeds).populations:
        for run in population.runs:
            status = {"state": dict(states).get(run.name, "done"), "agent_steps": 300, "reason": ""}
            own, episodes = folder / POPULATIONS / population.id / run.name, "frames,raw_return\n9,1\n"
            make_run(own, game="cartpole", arm=run.arm, seed=run.seed, episodes=episodes, status=status)
    return folder


def test_parts_are_merged_and_of_a_run_in_two_the_one_that_is_done_is_kept(tmp_path, capsys):
    text, again = tiny(seeds=3), "cartpole-dqn-s1"
    left = dict.fromkeys(("cartpole-decor-k0.01-s1", "cartpole-gram-k0.01-s1"), "interrupted")
    parts = [made(tmp_path / "a", text, [0, 1], {again: "interrupted"}), made(tmp_path / "b", text, [1], left)]
    write_export(parts[0], tmp_path / "small" / "a")
    parts[0] = tmp_path / "small" / "a"
    out = tmp_path / "out"
    assert main(["study", "merge", *map(str, parts), "--out", str(out)]) == 0
    assert capsys.readouterr().err == f"6 runs in {out}\n"
    runs = read_study(out).runs
    assert set(runs["state"]) == {"done"}
    assert runs.filter(run=again)["folder"].item().startswith(str(out / "b"))
    assert main(["study", "status", str(out)]) == 0
    assert "3 in no part: cartpole (seed 2)" in capsys.readouterr().out
    merge_exports([out / "b", out / "a"], tmp_path / "again")  # what is merged is merged again
    assert read_study(tmp_path / "again").runs.height == 6


def test_parts_that_cannot_be_merged_are_refused_and_leave_nothing(tmp_path, capsys):
    text = tiny(seeds=2)
    first, double = made(tmp_path / "a", text, [0]), made(tmp_path / "b", text, [0])
    other = made(tmp_path / "c", tiny(seeds=2, frames=77), [1])
    run = "cartpole-decor-k0.01-s0"
    twice = " and in ".join(f"'{part / POPULATIONS / 'p000' / run}'" for part in (first, double))
    for parts, message in (
        ([first, double], f"run '{run}' has ended in {twice}; name one of the two parts"),
        ([first, other], f"'{other}' holds no part of the study in '{first}'; name the parts of one study"),
        ([first, first], "two parts are called 'a'; rename one of their folders"),
        ([], "no part to merge; name at least one folder"),
    ):
        assert main(["study", "merge", *map(str, parts), "--out", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err == f"gramian: {message}\n"
        assert not (tmp_path / "out").exists()


def test_files_that_only_inform_do_not_stop_an_export(tmp_path, capsys):
    run = made(tmp_path / "study", tiny(seeds=1), []) / POPULATIONS / "p000" / "cartpole-dqn-s0"
    (run / "provenance.json").write_bytes(b"\xff")
    (tmp_path / "study" / POPULATIONS / "p000.attempts.jsonl").write_bytes(b"\xff\n")
    write_export(tmp_path / "study", tmp_path / "out")
    assert "the run is read without it" in capsys.readouterr().err
    assert read_study(tmp_path / "out").runs.height == 3
    assert main(["study", "status", str(tmp_path / "study")]) == 0


def test_the_preset_of_an_export_names_no_folder(tmp_path):
    (tmp_path / "mine.toml").write_text("frames = 300\n")
    text = tiny(seeds=1).replace('"tiny"', f'"{tmp_path / "mine.toml"}"')
    made(tmp_path / "study", text, [])
    write_export(tmp_path / "study", tmp_path / "out")
    for name in (PLAN, STUDY):
        assert "mine.toml" in (tmp_path / "out" / name).read_text()
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text()
