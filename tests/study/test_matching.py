import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.cli import main
from gramian.errors import UserError
from gramian.study.matching import feature_norms, match, matched_kappa
from gramian.study.plan import POPULATIONS
from gramian.study.work import perform
from tests.study.studies import planned, tiny

GRID = '[[arms]]\nkind = "gram"\nkappa = 1\n[[arms]]\nkind = "l2"\nkappas = [0.01, 0.1, 1]\n'


@given(kappa=st.floats(0.02, 29), power=st.floats(0.1, 2), scale=st.floats(0.1, 100))
def test_a_power_law_is_matched_exactly(kappa, power, scale):
    norms = {grid: scale * grid**-power for grid in (0.01, 0.1, 1.0, 10.0, 30.0)}
    assert math.isclose(matched_kappa(norms, scale * kappa**-power), kappa, rel_tol=1e-9)


def test_a_norm_outside_of_the_grid_is_not_extrapolated():
    assert matched_kappa({0.1: 8.0, 10.0: 2.0}, 1.0) is None


def invented(study, plan, norm):
    """Give every run of a study the feature norm ``norm(run)``, and say that it is done."""
    for population in plan.populations:
        for run in population.runs:
            folder = study / POPULATIONS / population.id / run.name
            folder.mkdir(parents=True)
            (folder / "status.json").write_text('{"state": "done", "agent_steps": 300, "reason": ""}')
            rows = ["100.0"] * 3 + [repr(norm(run))]  # only the last quarter counts
            (folder / "metrics.csv").write_text("frames,feature_norm\n" + "".join(f"1,{row}\n" for row in rows))


def test_arms_are_matched_by_the_geometric_mean_over_runs_of_their_last_norms(tmp_path):
    study = tmp_path / "study"
    plan = planned(study, tiny(arms=GRID))
    at = {("gram", 1.0): 4.0, ("l2", 0.01): 16.0, ("l2", 0.1): 8.0, ("l2", 1.0): 2.0}
    invented(study, plan, lambda run: at[run.arm.kind, run.arm.kappa] * (2.0 if run.seed else 0.5))
    norm, (found,) = match(study, plan, "gram:1")
    assert norm == pytest.approx(4.0)
    assert (found.penalty, found.kappa) == ("l2", pytest.approx(10**-0.5))


def test_an_arm_with_runs_that_are_not_done_does_not_count(tmp_path):
    plan = planned(tmp_path / "study", tiny(arms=GRID))
    perform(str(tmp_path / "study"), "p000", 1)
    assert [str(arm) for arm in feature_norms(tmp_path / "study", plan)] == ["gram:1.0"]
    with pytest.raises(UserError, match=r"has runs in .* that are not done; finish them first"):
        match(tmp_path / "study", plan, "l2:1")
    with pytest.raises(UserError, match=r"unknown arm of this study 'gram:2.0'; did you mean 'gram:1.0'"):
        match(tmp_path / "study", plan, "gram:2")


def test_the_command_says_which_mean_it_takes_and_prints_a_line_for_each_penalty(tmp_path, capsys):
    study = tmp_path / "study"
    plan = planned(study, tiny(arms=GRID))
    invented(study, plan, lambda run: 1.0 if run.arm.kind == "gram" else 5.0 - run.arm.kappa)
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
    plan = planned(study, tiny(arms=GRID).replace('["cartpole"]', games).replace("tiny", "minatar"))
    at = {"cartpole": 0.1, "minatar/breakout": 1.0}  # where l2 has the norm of gram
    invented(study, plan, lambda run: 1.0 if run.arm.kind == "gram" else at[run.game.name] / run.arm.kappa)
    assert main(["study", "match", str(study), "--arm", "gram:1"]) == 0
    found = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
    assert found[::2] == ["all games: gram:1 1", "cartpole: gram:1 1", "minatar/breakout: gram:1 1"]
    assert [line.split()[1:3] for line in found[1::2]] == [["kappa", "0.3162"], ["kappa", "0.1"], ["kappa", "1"]]


def test_the_folder_of_several_parts_names_them(tmp_path, capsys):
    for part in ("s0", "s1"):
        planned(tmp_path / part, tiny(arms=GRID))
        (tmp_path / part / POPULATIONS).mkdir(exist_ok=True)
    assert main(["study", "match", str(tmp_path), "--arm", "gram:1"]) == 2
    parts = f"{tmp_path / 's0'}, {tmp_path / 's1'}"
    assert capsys.readouterr().err == f"gramian: '{tmp_path}' holds parts of a study; name one of them: {parts}\n"
