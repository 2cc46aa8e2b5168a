"""The arm that the others are compared with besides the baseline."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.synthetic_study import write_study
from gramian.cli import main
from gramian.cli.report import ReportOptions, report_command
from gramian.core.errors import UserError
from gramian.report import Options, build
from gramian.report.analysis import analyse
from gramian.report.differences import differences
from gramian.report.sections import control_section
from tests.report.studies import study

FAST = 100
CONTROL = "norm (matched)"
SCORES = {"dqn": [1.0, 2.0, 3.0], "gram": [4.0, 6.0, 5.0], CONTROL: [4.0, 4.0, 4.0]}


def scored(scores, games=("minatar/breakout",)):
    """Runs whose only episode has the given return, by arm and seed."""
    return study(
        {(game, arm, seed): [score] for game in games for arm in scores for seed, score in enumerate(scores[arm])}
    )


@pytest.fixture(scope="module")
def controlled(tmp_path_factory):
    """A study with a control, and its report."""
    folder = tmp_path_factory.mktemp("controlled")
    arms = ["dqn", "gram", CONTROL]
    generator = np.random.default_rng(0)
    write_study(folder / "study", games=["Asterix", "Pong"], arms=arms, seeds=4, episodes=60, metric_rows=0,
                generator=generator)  # fmt: skip
    build(folder / "study", folder / "report", Options(replicates=FAST))
    return folder


def section_of(page):
    return re.search(r'<section id="control".*?</section>', page, re.DOTALL)


def test_the_norm_penalty_at_equal_norm_is_the_control_where_a_study_has_it():
    assert analyse(scored(SCORES), Options(replicates=FAST)).control == CONTROL


def test_a_study_without_one_has_no_control():
    scores = {"dqn": SCORES["dqn"], "gram": SCORES["gram"]}
    assert analyse(scored(scores), Options(replicates=FAST)).control == ""


def test_the_baseline_is_no_control_of_its_own():
    assert analyse(scored(SCORES), Options(replicates=FAST, baseline=CONTROL)).control == ""


def test_another_arm_can_be_the_control():
    assert analyse(scored(SCORES), Options(replicates=FAST, control="gram")).control == "gram"


def test_the_baseline_cannot_be_named_as_the_control():
    with pytest.raises(UserError, match="the control arm is 'dqn', the baseline"):
        analyse(scored(SCORES), Options(replicates=FAST, control="dqn"))


def test_an_unknown_control_is_one_line_and_leaves_nothing(controlled, tmp_path, capsys):
    arguments = ["study", "report", str(controlled / "study"), "--control", "gran", "--out", str(tmp_path / "report")]
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip()
    assert "unknown control arm 'gran'; did you mean 'gram'?" in error
    assert "\n" not in error
    assert not (tmp_path / "report").exists()


def test_differences_to_the_control_are_of_pairs_of_the_same_seed():
    found = differences(analyse(scored(SCORES), Options(replicates=FAST)), CONTROL)
    assert found.pairs["gram"][:, 0].tolist() == [0.0, 2.0, 1.0]
    assert list(found.pairs) == ["dqn", "gram"]


def test_games_are_put_together_in_percent_of_what_the_baseline_learns():
    high = {arm: [score + 9_000 for score in scores] for arm, scores in SCORES.items()}
    one = analyse(scored(high, ["pong", "seaquest"]), Options(replicates=FAST))
    found = differences(one, CONTROL)
    assert found.common == [0, 1]
    expected = np.mean([100 * 1.0 / (9_002.0 - random) for random in one.random])
    assert float(found.together("gram").estimate) == pytest.approx(expected)


def test_a_game_in_which_the_baseline_learns_nothing_is_not_put_together_with_others():
    one = analyse(scored(SCORES, ["pong", "seaquest", "qbert"]), Options(replicates=FAST))
    assert (2.0 - one.random > 0).tolist() == [True, False, False]  # of Pong's -20.7
    assert differences(one, CONTROL).common == []


def test_the_report_has_a_figure_and_a_section_of_it(controlled):
    assert (controlled / "report" / "figures" / "differences-control.png").is_file()
    section = section_of((controlled / "report" / "index.html").read_text()).group()
    assert "data:image/png;base64," in section
    assert "beyond shrinking the features" in section
    assert f"less that of {CONTROL}" in section


def test_the_small_form_has_the_section_too(controlled, tmp_path):
    report_command(ReportOptions(folder=controlled / "study", out=tmp_path, replicates=FAST, small=True))
    assert section_of((tmp_path / "index.html").read_text())


def test_a_control_that_is_no_norm_penalty_is_not_said_to_shrink(controlled, tmp_path):
    options = ReportOptions(folder=controlled / "study", out=tmp_path, replicates=FAST, control="gram")
    report_command(options)
    section = section_of((tmp_path / "index.html").read_text()).group()
    assert "shrinking" not in section
    assert "beyond gram" in section


def test_without_a_control_there_is_no_section(small_report):
    assert not section_of((small_report / "index.html").read_text())
    assert not (small_report / "figures" / "differences-control.png").exists()


def test_a_study_whose_runs_have_not_finished_says_so():
    running = {("minatar/breakout", arm, 0): "running" for arm in ("dqn", CONTROL)}
    one = study({cell: [1.0] for cell in running}, state=running)
    analysis = analyse(one, Options(replicates=FAST))
    assert "No game yet with finished runs" in control_section(analysis, Path("nowhere"))
