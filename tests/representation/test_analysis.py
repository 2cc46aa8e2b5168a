"""`gramian analyze`: what it plays, what it writes, and what it does with runs that are broken."""

import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from gramian.cli import main
from gramian.core.errors import UserError
from gramian.deep.runs.evaluation import make_player
from gramian.deep.runs.load import load_run
from gramian.deep.training.session import train
from gramian.representation import analysis, measures, series
from gramian.representation.analysis import analyze, run_folders
from gramian.representation.dynamics import GROWTH
from gramian.representation.gather import gather
from gramian.representation.measures import MEASURES
from gramian.representation.seeds import mean
from gramian.representation.tables import read_curves, read_dynamics, read_measures
from gramian.study.export import write_export
from tests.deep.sessions import small

STATES = 700
RESULTS = Path(__file__).parents[2] / "results"
FIGURES = ("sparsity", "dynamics", "growth", "held-out", "correlation", "spectrum")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = train(small(frames=600, metrics_period_agent_steps=50), tmp_path_factory.mktemp("runs"), device="cpu")
    return sorted(out.glob("cartpole-*"))


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    return analyze(runs, tmp_path_factory.mktemp("report"), states=STATES)


def with_weights(run, folder, change):
    """A copy of a run whose weights ``change`` has changed."""
    copy = folder / run.name
    shutil.copytree(run, copy)
    (path,) = (copy / "checkpoints").glob("*.safetensors")
    saved = safetensors.torch.load(path.read_bytes())
    change(saved)
    path.write_bytes(safetensors.torch.save(saved))
    return copy


def value(rows, run, name):
    (found,) = (row.value for row in rows if row.run == run.name and row.measure == name)
    return found


def test_every_measure_of_every_run_is_in_the_table(runs, report):
    rows = read_measures(report / "measures.csv")
    assert [(row.run, row.measure) for row in rows] == [
        (run.name, name) for run in runs for name in (*MEASURES, *GROWTH)
    ]
    assert {(row.game, row.arm, row.seed) for row in rows} == {
        ("cartpole", arm, seed) for arm in ("dqn", "gram:0.1") for seed in (0, 1)
    }
    assert all(row.value == STATES for row in rows if row.measure == "states")


def test_the_curves_are_whole(runs, report):
    rows = [row for row in read_curves(report / "curves.csv") if row.run == runs[0].name]
    assert sum(row.value for row in rows if row.curve == "active_per_state") == STATES
    assert [row.x for row in rows if row.curve == "active_per_feature"] == list(range(64))
    assert [row.x for row in rows if row.curve == "sparsity"] == list(measures.THRESHOLDS)
    assert [row.x for row in rows if row.curve == "spectrum"] == list(range(1, 65))


def test_the_dynamics_come_from_the_logs(runs, report):
    rows = read_dynamics(report / "dynamics.csv")
    text = (runs[0] / "metrics.csv").read_text(encoding="utf-8").splitlines()
    column = text[0].split(",").index("td_error")
    found = [row.value for row in rows if row.run == runs[0].name and row.metric == "td_error"]
    assert found == [float(line.split(",")[column]) for line in text[1:]]
    assert any(row.metric == "held_out.srank" for row in rows)


def test_figures_matrices_and_the_summary_are_there(runs, report):
    for name in FIGURES:
        assert (report / f"{name}-cartpole.png").read_bytes().startswith(b"\x89PNG")
    matrix = np.load(report / "correlation" / f"{runs[0].name}.npy", allow_pickle=False)
    assert matrix.shape == (64, 64)
    varies = ~np.isnan(matrix.diagonal())
    np.testing.assert_allclose(matrix.diagonal()[varies], 1)
    text = (report / "summary.md").read_text(encoding="utf-8")
    assert "| measure | dqn (2 seeds) | gram:0.1 (2 seeds) |" in text
    assert "±" in text


def test_an_analysis_is_the_same_when_it_is_made_again(runs, report, tmp_path):
    again = analyze(runs, tmp_path, states=STATES)
    for name in ("measures.csv", "curves.csv", "dynamics.csv", "summary.md"):
        assert (again / name).read_bytes() == (report / name).read_bytes()


def test_the_states_are_those_of_the_games_that_the_run_plays(runs, monkeypatch):
    run = load_run(runs[0])
    seen, starts = [], []
    forward = run.forward
    run.forward = lambda observations: seen.append(observations.clone()) or forward(observations)

    def player(*arguments):
        engine = make_player(*arguments)
        start = engine.start
        engine.start = lambda *which: starts.append(len(seen)) or start(*which)
        return engine

    monkeypatch.setattr("gramian.representation.gather.make_player", player)
    statistics = gather(run, 300, epsilon=0.2, at_once=1)
    features = forward(torch.cat(seen)).features[0]
    assert len(starts) > 2
    assert statistics.summary()["effective_rank"] == pytest.approx(measures.effective_rank(features), rel=1e-5)
    # a game's first state is no successor of the state before it
    follows = [number for number in range(1, 300) if number not in starts]
    before = [number - 1 for number in follows]
    assert statistics.pairs == len(follows)
    assert statistics.summary()["dr3_dot"] == pytest.approx(measures.dr3_dot(features[before], features[follows]))


def diverged(run, folder):
    """A copy of a run that diverged with weights that are finite, as training leaves it."""
    copy = folder / run.name
    shutil.copytree(run, copy)
    (copy / "status.json").write_text('{"state": "diverged", "agent_steps": 600, "reason": "not finite at update 9"}')
    return copy


def test_a_run_that_diverged_is_not_measured_though_its_weights_are_finite(runs, report, tmp_path, capsys):
    broken, other = diverged(runs[0], tmp_path), runs[1]
    out = analyze([broken, *runs[1:]], tmp_path / "report", states=STATES)
    assert [line for line in capsys.readouterr().err.splitlines() if "not measured" in line] == [
        f"'{broken.name}' is not measured: it diverged; its measures are NaN, no mean has it"
    ]
    rows = read_measures(out / "measures.csv")
    assert all(math.isnan(row.value) for row in rows if row.run == broken.name and row.measure != "states")
    assert all(math.isnan(row.value) for row in read_curves(out / "curves.csv") if row.run == broken.name)
    summary = (out / "summary.md").read_text()
    assert f"Diverged, and in no mean: {broken.name}." in summary
    assert "| measure | dqn (1 seeds) | gram:0.1 (2 seeds) |" in summary
    alone = read_measures(report / "measures.csv")
    assert f"| `effective_rank` | {mean([value(alone, other, 'effective_rank')])} |" in summary
    for found in (series.active_of_states, series.activity_of_features, series.sparsity, series.held_variance):
        points = [point for point in read_curves(report / "curves.csv") if point.run == other.name]
        np.testing.assert_array_equal(found(read_curves(out / "curves.csv"), "dqn").mean, found(points, "dqn").mean)
    assert series.first_correlation(rows, "dqn", out / "correlation").run == other.name


def test_the_tables_are_not_written_anew_after_each_run(runs, tmp_path, monkeypatch):
    written = {}

    def counted(function):
        def put(path, rows):
            written[path.name] = written.get(path.name, 0) + len(rows)
            function(path, rows)

        return put

    for name in ("write", "append"):
        monkeypatch.setattr(analysis, name, counted(getattr(analysis, name)))
    out = analyze(runs, tmp_path / "report", states=64)
    lengths = {name: len((out / name).read_text().splitlines()) - 1 for name in written}
    assert written == lengths
    assert set(written) == {"measures.csv", "curves.csv", "dynamics.csv"}


def test_a_row_that_was_being_written_is_left_out(report, tmp_path):
    text = (report / "measures.csv").read_text()
    (tmp_path / "measures.csv").write_text(text + "cartpole-dqn-s0,cart")
    assert len(read_measures(tmp_path / "measures.csv")) == len(text.splitlines()) - 1


def test_a_run_whose_weights_are_not_finite_is_reported_and_the_others_are_measured(runs, tmp_path, capsys):
    broken = with_weights(runs[0], tmp_path, lambda saved: saved["online.body.fc1.weight"].fill_(torch.nan))
    rows = read_measures(analyze([broken, *runs[1:]], tmp_path / "report", states=100) / "measures.csv")
    assert "not finite" in capsys.readouterr().err
    assert value(rows, broken, "nonfinite_share") == 1
    assert math.isnan(value(rows, broken, "srank"))
    assert value(rows, runs[1], "srank") > 0
    for name in FIGURES:
        assert (tmp_path / "report" / f"{name}-cartpole.png").exists()


@pytest.mark.parametrize(("weight", "bias"), [(0.0, 0.0), (0.0, 0.7)], ids=["zero", "constant"])
def test_features_without_variance_are_analyzed_to_the_end(runs, tmp_path, weight, bias):
    def flat(saved):
        saved["online.body.fc2.weight"].fill_(weight)
        saved["online.body.fc2.bias"].fill_(bias)

    broken = with_weights(runs[0], tmp_path, flat)
    rows = read_measures(analyze([broken], tmp_path / "report", states=100) / "measures.csv")
    assert value(rows, broken, "constant_share") == 1
    assert value(rows, broken, "srank") == (1 if bias else 0)
    assert (tmp_path / "report" / "correlation-cartpole.png").exists()


def test_the_command_prints_the_summary(runs, tmp_path, capsys):
    assert main(["analyze", *map(str, runs[:1]), "--states", "64", "--out", str(tmp_path / "report")]) == 0
    assert "| `effective_rank` |" in capsys.readouterr().out


def test_without_figures_the_tables_are_the_same_and_matplotlib_is_not_needed(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it fails
    short = ["--states", "64", "--no-figures"]
    assert main(["analyze", str(runs[0]), *short, "--out", str(tmp_path / "bare")]) == 0
    assert not list(tmp_path.rglob("*.png"))
    monkeypatch.undo()
    assert main(["analyze", str(runs[0]), "--states", "64", "--out", str(tmp_path / "full")]) == 0
    for table in ("measures.csv", "curves.csv", "dynamics.csv", "summary.md"):
        assert (tmp_path / "bare" / table).read_bytes() == (tmp_path / "full" / table).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{run}", "{run}"], "is given twice"),
        (["{run}", "--states", "0"], "states is 0; it must be at least 1"),
        (["{run}", "--epsilon", "2"], "epsilon is 2; it must be between 0 and 1"),
        (["{run}/nowhere"], "is not the folder of a run"),
    ],
)
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(runs, tmp_path, capsys, arguments, message):
    out = tmp_path / "report"
    arguments = [argument.format(run=runs[0]) for argument in arguments]
    assert main(["analyze", *arguments, "--out", str(out)]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not out.exists()


def test_a_folder_stands_for_the_runs_below_it_that_have_come_to_their_end(tmp_path, capsys):
    for name, state in (("b", "done"), ("a", "diverged"), ("c", "running")):
        folder = tmp_path / "populations" / "p000" / name
        folder.mkdir(parents=True)
        (folder / "config.toml").touch()
        (folder / "status.json").write_text(f'{{"state": "{state}"}}')
    assert [path.name for path in run_folders(tmp_path)] == ["a", "b"]
    assert capsys.readouterr().err == "1 runs have not come to their end and are left out: c\n"
    assert run_folders(folder) == [folder]


def test_a_folder_without_runs_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing to analyze in .*: it holds no run"):
        run_folders(tmp_path)


def test_what_was_measured_before_is_taken_along(runs, report, tmp_path):
    first = analyze(runs[:2], tmp_path / "first", states=STATES)
    joined = analyze([first, *runs[2:]], tmp_path / "joined", states=STATES)
    for name in sorted(path.name for path in report.iterdir() if path.is_file()):
        if name != "curves.csv":
            assert (joined / name).read_bytes() == (report / name).read_bytes(), name
    assert read_curves(joined / "curves.csv") == read_curves(report / "curves.csv")  # 3 and 3.0 are the same
    for path in (report / "correlation").iterdir():
        assert (joined / "correlation" / path.name).read_bytes() == path.read_bytes()
    second = analyze(runs[2:], tmp_path / "second", states=STATES, figures=False)
    again = analyze([first, second], tmp_path / "again", states=STATES, figures=False)  # without any run
    assert (again / "summary.md").read_bytes() == (report / "summary.md").read_bytes()


def test_an_export_of_an_analysis_is_taken_along_without_the_matrices_that_it_lacks(runs, report, tmp_path):
    first = analyze(runs[:2], tmp_path / "study" / "analysis", states=STATES)
    shutil.copytree(runs[0].parent, tmp_path / "study" / "runs")
    write_export(tmp_path / "study", tmp_path / "export")
    shutil.rmtree(first)
    joined = analyze([tmp_path / "export" / "analysis", *runs[2:]], tmp_path / "joined", states=STATES)
    assert read_measures(joined / "measures.csv") == read_measures(report / "measures.csv")
    assert {path.name for path in joined.glob("*.png")} == {path.name for path in report.glob("*.png")}
    kept = {path.stem for path in (joined / "correlation").iterdir()}
    assert kept == {runs[0].name, *(run.name for run in runs[2:])}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["{report}", "{run}"], "is given twice"),
        (["{report}", "--states", "800"], f"has {STATES} states of each run, ε = 0.01, this one 800 states of each"),
        (["{report}", "--states", str(STATES), "--epsilon", "0.1"], "this one 700 states of each run, ε = 0.1;"),
        (["{report}", "--seed", "5"], "ε = 0.01, this one 700 states of each run, ε = 0.01, seed 5;"),
        (["{report}", "--at-once", "4"], "this one 700 states of each run, ε = 0.01, 4 games side by side; numbers"),
        (["{bare}"], "holds measures.csv but no curves.csv, dynamics.csv, summary.md: it is no analysis that"),
    ],
)
def test_an_analysis_that_cannot_be_taken_along_is_refused(runs, report, tmp_path, capsys, options, message):
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(report / "measures.csv", bare)
    places = {"report": report, "run": runs[0], "bare": bare}
    arguments = [option.format(**places) for option in options]
    if "--states" not in arguments:
        arguments += ["--states", str(STATES)]
    assert main(["analyze", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_was_measured_in_other_games_is_taken_along_by_the_same_command(runs, tmp_path):
    first = analyze(runs[:1], tmp_path / "first", states=64, seed=5, at_once=4, figures=False)
    joined = analyze([first, runs[1]], tmp_path / "joined", states=64, seed=5, at_once=4, figures=False)
    said = "64 states of each run, ε = 0.01, seed 5, 4 games side by side; mean ± standard error over seeds."
    for folder in (first, joined):
        assert said in (folder / "summary.md").read_text().splitlines()


def test_there_is_no_summary_before_the_analysis_is_whole(runs, tmp_path, monkeypatch):
    out = analyze(runs[:1], tmp_path / "out", states=64, figures=False)

    def stopped(*_arguments, **_options):
        assert not (out / "summary.md").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(analysis, "gather", stopped)
    with pytest.raises(KeyboardInterrupt):
        analyze(runs[:2], out, states=32, figures=False)
    with pytest.raises(UserError, match=r"out' holds measures.csv but no summary.md: it is no analysis"):
        analyze([out], tmp_path / "joined", states=64)


def test_runs_without_states_are_taken_along(runs, tmp_path):
    broken = with_weights(runs[0], tmp_path / "weights", lambda saved: saved["online.body.fc1.weight"].fill_(torch.nan))
    early = diverged(runs[1], tmp_path)
    (early / "metrics.csv").write_text((early / "metrics.csv").read_text().splitlines()[0] + "\n")
    (early / "representation.csv").unlink()
    first = analyze([broken, early], tmp_path / "first", states=64, figures=False)
    joined = analyze([first, *runs[2:]], tmp_path / "joined", states=64, figures=False)
    assert f"Diverged, and in no mean: {broken.name}, {early.name}." in (joined / "summary.md").read_text()


def without(name, which):
    """Take away the rows of a table that hold a text, all but the heading where it is empty."""

    def spoil(folder):
        heading, *rows = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text(heading + "".join(row for row in rows if which not in row))

    return spoil


def replaced(name, row, column, cell):
    """Write something else into a cell of a table; None takes it away."""

    def spoil(folder):
        lines = (folder / name).read_text().splitlines()
        cells = lines[row].split(",")
        cells[column : column + 1] = [] if cell is None else [cell]
        (folder / name).write_text("\n".join([*lines[:row], ",".join(cells), *lines[row + 1 :]]) + "\n")

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("measures.csv", "s0,cartpole,dqn,0,600,srank"), "run 'cartpole-dqn-s0' has no measure 'srank'"),
        (without("measures.csv", "cartpole-dqn-s0,"), "run 'cartpole-dqn-s0' has no measures;"),
        (without("measures.csv", ""), "has no run; analyze its runs again"),
        (without("curves.csv", "cartpole-dqn-s1,"), "run 'cartpole-dqn-s1' has no curve 'sparsity'"),
        (without("curves.csv", "s1,cartpole,dqn,1,spectrum"), "run 'cartpole-dqn-s1' has no curve 'spectrum'"),
        (without("curves.csv", ""), "run 'cartpole-dqn-s0' has no curve 'sparsity'"),
        (without("dynamics.csv", "cartpole-dqn-s1,"), "run 'cartpole-dqn-s1' has no dynamics;"),
        (
            lambda folder: (folder / "dynamics.csv").unlink(),
            "holds measures.csv but no dynamics.csv: it is no analysis",
        ),
        (lambda folder: (folder / "correlation/cartpole-dqn-s0.npy").unlink(), "has no matrix in 'correlation/'"),
        (replaced("measures.csv", 1, 6, "400.0"), "has 400 states, and its summary.md says 700;"),
        (replaced("measures.csv", 3, 0, "../x"), "has the run '../x', which is no name"),
        (replaced("measures.csv", 3, 6, "abc"), "row 3 of '{table}': value is 'abc'; it must be a number"),
        (replaced("curves.csv", 3, 3, "1.5"), "row 3 of '{table}': seed is '1.5'; it must be a whole number"),
        (replaced("dynamics.csv", 3, 4, None), "row 3 of '{table}' has 6 cells; it must have 7: run, game, arm"),
        (lambda folder: (folder / "curves.csv").write_text(""), "'{table}' has no columns; it must have run, game"),
        (
            lambda folder: (folder / "correlation/cartpole-dqn-s0.npy").write_bytes(b""),
            "cannot read '{folder}/correlation/cartpole-dqn-s0.npy'",
        ),
    ],
)
def test_an_analysis_that_is_damaged_or_not_whole_is_refused_in_one_line(report, tmp_path, capsys, spoil, message):
    folder = tmp_path / "damaged"
    shutil.copytree(report, folder)
    spoil(folder)
    assert main(["analyze", str(folder), "--states", str(STATES), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.strip()
    tables = [folder / name for name in ("measures.csv", "curves.csv", "dynamics.csv")]
    assert any(message.format(folder=folder, table=table) in error for table in tables)
    assert str(folder) in error
    assert "\n" not in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("folder", sorted(RESULTS.glob("*/study/analysis")), ids=lambda folder: folder.parts[-3])
def test_the_committed_analyses_are_taken_along(folder, tmp_path):
    joined = analyze([folder], tmp_path / "joined", states=100_000, figures=False)
    assert (joined / "summary.md").read_bytes() == (folder / "summary.md").read_bytes()
    assert read_measures(joined / "measures.csv") == read_measures(folder / "measures.csv")
