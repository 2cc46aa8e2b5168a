"""The choice of κ where a study was trained, and the study that judges it."""

from functools import partial

import pytest

from gramian.cli import main
from gramian.core.errors import UserError
from gramian.report.analysis import Options, analyse
from gramian.report.choose import Tuning, evaluation_study
from gramian.study.export import write_export
from gramian.study.spec import parse_study
from gramian.study.store import read_study
from tests.report.studies import FOLDS, invent, norms, peaked, tuning
from tests.study.studies import plan_of, planned_part


@pytest.fixture
def folds(tmp_path):
    for name, games, kept in (("a", *FOLDS), ("b", *FOLDS[::-1])):
        invent(tmp_path / name, tuning(games, kept), peaked, norms)
    return [tmp_path / "a", tmp_path / "b"]


def test_the_choice_is_that_of_the_report(folds):
    sweep = analyse(read_study(folds[0]), Options(replicates=100)).sweep
    of_report = {penalty.name: (penalty.chosen.kappa, penalty.at_edge) for penalty in sweep.penalties}
    assert of_report == {"gram": (1.0, False), "norm": (10.0, True)}
    assert {own.name: (own.chosen.kappa, own.at_edge) for own in Tuning(folds[0]).choices} == of_report


def test_parts_choose_as_the_whole_does(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    text = tuning(*FOLDS)
    invent(whole, text, peaked, norms)
    for game in FOLDS[0]:
        invent(parts / game, text, peaked, norms, plan=partial(planned_part, games=[f"minatar/{game}"]))
    assert evaluation_study([parts]) == evaluation_study([whole])


def test_nothing_is_chosen_while_cells_are_in_no_part(tmp_path, capsys):
    text = tuning(("breakout", "freeway", "asterix"), ("seaquest",))
    for game in ("breakout", "freeway"):
        invent(tmp_path / game, text, peaked, norms, plan=partial(planned_part, games=[f"minatar/{game}"]))
    assert main(["study", "choose", str(tmp_path), "--out", str(tmp_path / "out.toml")]) == 2
    left = f"in no part of the study in '{tmp_path}': minatar/asterix (seeds 100, 101)"
    assert capsys.readouterr().err == f"gramian: {left}; finish the study first\n"
    assert not (tmp_path / "out.toml").exists()


def test_every_game_is_judged_at_the_kappa_of_the_fold_without_it(tmp_path):
    def other(run):
        return peaked(run) if run.arm.kind != "gram" else 5.0 - run.arm.kappa  # 0.1 is best

    invent(tmp_path / "a", tuning(*FOLDS), peaked, norms)
    invent(tmp_path / "b", tuning(*FOLDS[::-1]), other, norms)
    spec = parse_study(evaluation_study([tmp_path / "a", tmp_path / "b"]).text, "a test")
    kappas = {cell.game.name: cell.arm.kappa for cell in spec.cells if cell.label == "gram"}
    assert kappas == {
        "minatar/asterix": 1.0, "minatar/seaquest": 1.0, "minatar/breakout": 0.1, "minatar/freeway": 0.1,
    }  # fmt: skip
    assert spec.seeds == (0, 1)
    own = {cell.label or str(cell.arm) for cell in spec.cells if cell.game.name == "minatar/breakout"}
    assert own == {"dqn", "decor", "gram", "norm", "norm (matched)"}


def test_the_norm_is_matched_in_the_game_that_is_judged(tmp_path):
    def of_gram(norm):
        return lambda run: norm if run.arm.kind == "gram" else norms(run)

    invent(tmp_path / "a", tuning(*FOLDS), peaked, of_gram(2.5))
    invent(tmp_path / "b", tuning(*FOLDS[::-1]), peaked, of_gram(3.0))
    spec = parse_study(evaluation_study([tmp_path / "a", tmp_path / "b"]).text, "a test")
    found = {cell.game.name: cell.arm.kappa for cell in spec.cells if cell.label == "norm (matched)"}
    near = {"breakout": (4 / 2.5) ** 4, "freeway": (4 / 2.5) ** 4, "asterix": (4 / 3) ** 4, "seaquest": (4 / 3) ** 4}
    assert found == pytest.approx({f"minatar/{game}": kappa for game, kappa in near.items()}, rel=1e-3)


def test_where_no_study_trained_on_a_game_the_norm_is_matched_in_the_others(tmp_path):
    invent(tmp_path / "a", tuning(*FOLDS), peaked, lambda run: 3.0 if run.arm.kind == "gram" else norms(run))
    made = evaluation_study([tmp_path / "a"])
    cells = parse_study(made.text, "a test").cells
    (kappa,) = {cell.arm.kappa for cell in cells if cell.label == "norm (matched)"}
    assert kappa == pytest.approx((4 / 3) ** 4, rel=1e-3)
    assert "has the norm of gram 1 in minatar/breakout, minatar/freeway, for minatar/asterix" in "\n".join(made.remarks)


def test_a_norm_that_the_grid_does_not_reach_is_said_and_left_out(folds):
    made = evaluation_study(folds)  # gram:1.0 is at 2, norm:10.0 at 2.25
    assert "norm at the norm of gram 1 in minatar/asterix is not reached by its grid" in "\n".join(made.remarks)
    assert all(cell.label != "norm (matched)" for cell in parse_study(made.text, "a test").cells)


def test_arms_that_are_asked_for_are_added_and_decor_may_be_left_out(folds):
    made = evaluation_study(folds[:1], decor=False, also=("gram:10.24", "gram:1"), frames=77)
    spec = parse_study(made.text, "a test")
    assert spec.settings.frames == 77
    assert spec.settings.n_step == 2
    labels = {cell.label: cell.arm.kappa for cell in spec.cells if cell.arm.kind in ("gram", "decor")}
    assert labels == {"gram": 1.0, "gram (10.24)": 10.24}


def test_a_study_that_is_not_done_is_refused(folds):
    (status,) = folds[0].rglob("minatar-breakout-gram-k1.0-s100/status.json")
    status.write_text('{"state": "running", "agent_steps": 5, "reason": ""}')
    with pytest.raises(UserError, match=r"minatar/breakout with gram:1.0, seed 100 in .* is running; finish the study"):
        evaluation_study(folds)


def refused(folders, tmp_path, capsys):
    """The line in which ``choose`` refuses; nothing is written."""
    assert main(["study", "choose", *map(str, folders), "--out", str(tmp_path / "out.toml")]) == 2
    assert not (tmp_path / "out.toml").exists()
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("name", ["episodes.csv", "metrics.csv"])
def test_a_damaged_log_is_refused_by_choose_as_by_report_and_export(folds, name, tmp_path, capsys):
    (log,) = folds[0].rglob(f"minatar-breakout-gram-k1.0-s100/{name}")
    log.write_text(log.read_text()[:-2])
    line = refused(folds, tmp_path, capsys)
    complaint = f"of the table '{log}' does not end with a newline, as if it were cut off"
    assert complaint in line
    for command in ("report", "export"):
        assert main(["study", command, str(folds[0]), "--out", str(tmp_path / command)]) == 2
        assert capsys.readouterr().err == f"{line}\n"
        assert not (tmp_path / command).exists()


@pytest.mark.parametrize("exported", [False, True])
def test_a_run_without_feature_norms_is_refused_and_its_kappa_not_left_out(folds, exported, tmp_path, capsys):
    (log,) = folds[1].rglob("minatar-asterix-norm-k1.0-s100/metrics.csv")
    log.write_text("frames,feature_norm\n")
    if exported:
        write_export(folds[1], tmp_path / "exported")
        folds[1] = tmp_path / "exported"
    line = refused(folds, tmp_path, capsys)
    said = f"gramian: run 'minatar-asterix-norm-k1.0-s100' in '{folds[1]}' has logged no feature norms: "
    assert line.startswith(said)
    assert main(["study", "match", str(folds[1]), "--arm", "gram:1"]) == 2
    assert capsys.readouterr().err == f"{line}\n"


def test_a_run_that_is_done_without_episodes_is_refused(folds, tmp_path, capsys):
    (log,) = folds[0].rglob("minatar-breakout-gram-k1.0-s100/episodes.csv")
    log.write_text("frames,raw_return\n")
    said = f"run 'minatar-breakout-gram-k1.0-s100' in '{folds[0]}' is done and has no episodes to be scored by"
    assert refused(folds, tmp_path, capsys) == f"gramian: {said}"


@pytest.mark.parametrize("exported", [False, True])
def test_a_run_may_diverge_before_its_first_episode_ends(exported, tmp_path):
    bad = "minatar-breakout-gram-k1.0-s100"
    invent(tmp_path / "a", tuning(*FOLDS), peaked, norms, diverged=(bad,))
    (log,) = (tmp_path / "a").rglob(f"{bad}/episodes.csv")
    log.write_text("frames,raw_return\n")
    if exported:
        write_export(tmp_path / "a", tmp_path / "exported")
    assert Tuning(tmp_path / ("exported" if exported else "a")).choices[0].name == "gram"


def test_studies_that_judge_the_same_game_are_refused(folds):
    with pytest.raises(UserError, match="game 'minatar/asterix' is kept for evaluation by two studies"):
        evaluation_study([folds[0], folds[0]])


def test_the_command_writes_the_study_and_says_what_it_chose(folds, tmp_path, capsys):
    out = tmp_path / "new" / "judge.toml"
    assert main(["study", "choose", *map(str, folds), "--out", str(out), "--title", "Mine"]) == 0
    said = capsys.readouterr().out
    assert "gram 1 of 0.1: " in said
    assert "norm 10 (an end of the grid) of" in said
    spec = parse_study(out.read_text(), "a test")
    assert spec.title == "Mine"
    plan_of(spec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x.txt"], "--out is 'x.txt'; it must be the name of a .toml file"),
        (["--out", "x.toml", "--frames", "-1"], "--frames is -1; it must be 0 or more"),
        (["--out", "x.toml"], "holds no study; name the folder that was given as --out"),
    ],
)
def test_bad_input_gets_one_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "choose", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x.toml").exists()
