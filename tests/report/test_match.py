import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.cli import main
from gramian.core.errors import UserError
from gramian.report.choose import PlannedStudy, match
from gramian.report.sweep import matched_kappa
from gramian.study.manifest import POPULATIONS
from gramian.study.worker import perform
from tests.report.studies import invent
from tests.study.studies import planned, planned_part, tiny

GRID = '[[arms]]\nkind = "gram"\nkappa = 1\n[[arms]]\nkind = "l2"\nkappas = [0.01, 0.1, 1]\n'


@given(kappa=st.floats(0.02, 29), power=st.floats(0.1, 2), scale=st.floats(0.1, 100))
def test_a_power_law_is_matched_exactly(kappa, power, scale):
    norms = {grid: scale * grid**-power for grid in (0.01, 0.1, 1.0, 10.0, 30.0)}
    assert math.isclose(matched_kappa(norms, scale * kappa**-power), kappa, rel_tol=1e-9)


def test_a_norm_outside_of_the_grid_is_not_extrapolated():
    assert matched_kappa({0.1: 8.0, 10.0: 2.0}, 1.0) is None


def test_arms_are_matched_by_the_geometric_mean_over_runs_of_their_last_norms(tmp_path):
    study = tmp_path / "study"
    at = {("gram", 1.0): 4.0, ("l2", 0.01): 16.0, ("l2", 0.1): 8.0, ("l2", 1.0): 2.0}
    invent(study, tiny(arms=GRID), norm=lambda run: at[run.arm.kind, run.arm.kappa] * (2.0 if run.seed else 0.5))
    norm, (found,) = match(PlannedStudy(study), "gram:1")
    assert norm == pytest.approx(4.0)
    assert (found.penalty, found.kappa) == ("l2", pytest.approx(10**-0.5))


def test_an_arm_with_runs_that_are_not_done_does_not_count(tmp_path):
    planned(tmp_path / "study", tiny(arms=GRID))
    perform(str(tmp_path / "study"), "p000", 1)
    assert list(PlannedStudy(tmp_path / "study").norms()) == ["gram:1.0"]
    with pytest.raises(UserError, match=r"has runs in .* that are not done; finish them first"):
        match(PlannedStudy(tmp_path / "study"), "l2:1")
    with pytest.raises(UserError, match=r"unknown arm of this study 'gram:2.0'; did you mean 'gram:1.0'"):
        match(PlannedStudy(tmp_path / "study"), "gram:2")


@pytest.mark.parametrize(
    ("arm", "advice"),
    [
        ("gram:0.2", "'gram:0.2'; did you mean 'gram:0.1'?"),
        ("gram:9", "'gram:9.0'; did you mean 'gram:10.24'?"),
        ("gram:0.2:uncentered", "'gram:0.2:uncentered'; did you mean 'gram:1.0:uncentered'?"),
        ("l2:10", "'l2:10.0'; did you mean 'l2:3.0'?"),
        ("norm:1", "'norm:1.0'; choose from dqn, gram:0.1, gram:1.0:uncentered, gram:10.24, l2:3.0"),
        ("gram:0", "'gram:0.0'; did you mean 'gram:0.1'?"),
    ],
)
def test_of_an_arm_that_the_study_lacks_that_of_the_nearest_kappa_is_named(arm, advice, tmp_path, capsys):
    grid = (
        '[[arms]]\nkind = "dqn"\n[[arms]]\nkind = "gram"\nkappas = [0.1, 10.24]\n'
        '[[arms]]\nkind = "gram"\nkappa = 1\ncentered = false\n[[arms]]\nkind = "l2"\nkappa = 3\n'
    )
    invent(tmp_path, tiny(arms=grid))
    assert main(["study", "match", str(tmp_path), "--arm", arm]) == 2
    assert capsys.readouterr().err == f"gramian: unknown arm of this study {advice}\n"


def test_the_command_says_which_mean_it_takes_and_prints_a_line_for_each_penalty(tmp_path, capsys):
    study = tmp_path / "study"
    invent(study, tiny(arms=GRID), norm=lambda run: 1.0 if run.arm.kind == "gram" else 5.0 - run.arm.kappa)
    assert main(["study", "match", str(study), "--arm", "gram:1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mean feature norm: mean over the last quarter of training, geometric mean over runs"
    assert lines[1] == "all games: gram:1 1"
    said = "l2 the grid does not reach it its norms are 4 to 4.99, nearest 4 at kappa 1"
    assert " ".join(lines[2].split()) == said
    assert len(lines) == 3  # of a single game there is no more to say


def test_arms_are_matched_in_every_game_too(tmp_path, capsys):
    study = tmp_path / "study"
    games = '["cartpole", "minatar/breakout"]'
    text = tiny(arms=GRID).replace('["cartpole"]', games).replace("tiny", "minatar")
    at = {"cartpole": 0.1, "minatar/breakout": 1.0}  # where l2 has the norm of gram
    invent(study, text, norm=lambda run: 1.0 if run.arm.kind == "gram" else at[run.game.name] / run.arm.kappa)
    assert main(["study", "match", str(study), "--arm", "gram:1"]) == 0
    found = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
    assert found[::2] == ["all games: gram:1 1", "cartpole: gram:1 1", "minatar/breakout: gram:1 1"]
    assert [line.split()[1:3] for line in found[1::2]] == [["kappa", "0.3162"], ["kappa", "0.1"], ["kappa", "1"]]


def norm_of(run):
    return 1.0 if run.arm.kind == "gram" else 0.1 * (1.0 + run.seed) / run.arm.kappa


def test_the_parts_of_a_study_are_matched_as_the_whole(tmp_path, capsys):
    text = tiny(arms=GRID)
    invent(tmp_path / "whole", text, norm=norm_of)
    for seed in (0, 1):
        invent(tmp_path / "parts" / f"s{seed}", text, norm=norm_of, plan=partial(planned_part, seeds=[seed]))
    said = []
    for folder in ("whole", "parts"):
        assert main(["study", "match", str(tmp_path / folder), "--arm", "gram:1"]) == 0
        said.append(capsys.readouterr())
    assert said[0] == said[1]
    assert "kappa 0.1414" in said[0].out


def test_what_is_in_no_part_is_said(tmp_path, capsys):
    text = tiny(arms=GRID, seeds=3)
    for seed in (0, 1):
        invent(tmp_path / f"s{seed}", text, norm=norm_of, plan=partial(planned_part, seeds=[seed]))
    assert main(["study", "match", str(tmp_path), "--arm", "gram:1"]) == 0
    assert capsys.readouterr().err == "in no part of the study: cartpole (seed 2)\n"


def test_a_run_that_was_made_again_in_another_part_is_that_of_the_other(tmp_path):
    text = tiny(arms=GRID)
    first, again = tmp_path / "a", tmp_path / "b"
    invent(first, text, norm=lambda _: 7.0)
    for status in first.glob(f"{POPULATIONS}/*/*-s1/status.json"):
        status.write_text('{"state": "interrupted", "agent_steps": 10, "reason": ""}')
    invent(again, text, norm=lambda _: 28.0, plan=partial(planned_part, seeds=[1]))
    assert list(PlannedStudy(tmp_path).norms().values()) == pytest.approx([14.0] * 4)


def test_a_run_that_is_done_in_two_parts_is_refused(tmp_path, capsys):
    for part in ("a", "b"):
        invent(tmp_path / part, tiny(arms=GRID), norm=norm_of)
    assert main(["study", "match", str(tmp_path), "--arm", "gram:1"]) == 2
    a, b = (tmp_path / part / POPULATIONS / "p000" / "cartpole-gram-k1.0-s0" for part in ("a", "b"))
    said = f"gramian: run '{a.name}' has ended in '{a}' and in '{b}'; name one of the two parts\n"
    assert capsys.readouterr().err == said


def test_different_studies_in_one_folder_are_refused(tmp_path, capsys):
    for part, frames in (("a", 300), ("b", 600)):
        invent(tmp_path / part, tiny(arms=GRID, frames=frames), norm=norm_of)
    assert main(["study", "match", str(tmp_path), "--arm", "gram:1"]) == 2
    said = f"gramian: '{tmp_path / 'a'}' and '{tmp_path / 'b'}' hold different studies; name one of them\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("frames,feature_norm\n1,2.0", "line 2 of the table '{}' does not end with a newline, as if it were cut off; "),
        ("frames,feature_norm\n1\n", "line 2 of the table '{}' has no number for feature_norm; "),
        ("frames\n1\n", "run '{run}' in '{study}' has logged no feature norms: "),
        ("", "run '{run}' in '{study}' has logged no feature norms: "),
        (None, "run '{run}' in '{study}' has logged no feature norms: "),
    ],
)
def test_a_damaged_log_of_a_run_that_is_done_is_refused_in_one_line(tmp_path, capsys, text, complaint):
    study = tmp_path / "study"
    plan = invent(study, tiny(arms=GRID), norm=norm_of)
    run = plan.populations[0].runs[0].name
    log = study / POPULATIONS / "p000" / run / "metrics.csv"
    log.unlink() if text is None else log.write_text(text)
    assert main(["study", "match", str(study), "--arm", "gram:1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gramian: " + complaint.format(log, run=run, study=study))
    assert said.count("\n") == 1


def test_a_folder_without_a_study_is_refused(tmp_path, capsys):
    assert main(["study", "match", str(tmp_path), "--arm", "gram:1"]) == 2
    assert capsys.readouterr().err == f"gramian: '{tmp_path}' holds no study; name the folder that was given as --out\n"
