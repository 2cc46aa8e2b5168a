"""Sections of the page: the control, and what was run."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.synthetic_study import write_study
from gramian.cli import main
from gramian.cli.report import ReportOptions, report_command
from gramian.core.errors import UserError
from gramian.report import Options, build
from gramian.report.analysis import analyse
from gramian.report.differences import differences
from gramian.report.page import Page
from gramian.report.page.sections import commands, control_section, provenance_table
from gramian.report.tables import score_table
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


@pytest.mark.parametrize(
    ("arms", "options", "control"),
    [
        (list(SCORES), {}, CONTROL),
        (["dqn", "gram"], {}, ""),
        (list(SCORES), {"baseline": CONTROL}, ""),
        (list(SCORES), {"control": "gram"}, "gram"),
    ],
)
def test_the_control_is_the_norm_penalty_at_equal_norm_or_the_arm_that_is_named(arms, options, control):
    found = analyse(scored({arm: SCORES[arm] for arm in arms}), Options(replicates=FAST, **options))
    assert found.control == control


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
    assert f"minus that of {CONTROL}" in section


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


COMMANDS = [["__main__.py", "study", "run", "mine.toml", "--seeds", str(seed)] for seed in range(9)]


@pytest.fixture(scope="module")
def noted():
    """Nine runs, each of a command of its own; the first was resumed by another one."""
    found = study({("pong", "dqn", seed): [1.0, 2.0] for seed in range(9)})
    names = found.runs["run"].to_list()
    records = {
        run: [{"command": command, "git": {"commit": f"{at:040x}"}}]
        for at, (run, command) in enumerate(zip(names, COMMANDS, strict=True))
    }
    records[names[0]].append({"command": ["gramian", "study", "run", "my study.toml"]})
    return replace(found, provenance=records)


def test_the_page_has_every_command_as_it_can_be_typed(noted):
    analysis = analyse(noted, Options(replicates=100))
    page = Page("nine", noted, analysis, {}, score_table(analysis)).html()
    section = page[page.index('<section id="run"') :].split("</section>")[0]
    assert "<summary>10 commands</summary>" in section
    for seed in range(9):
        assert f'<td>gramian study run mine.toml --seeds {seed}</td><td class="number">1</td>' in section
    assert "__main__" not in section
    assert not re.search(r"and \d+ more", section)


def test_a_command_with_blanks_is_quoted(noted):
    texts = [text for text, _ in commands(noted)]
    assert ["gramian", "study", "run", "my study.toml"] in map(shlex.split, texts)


def test_a_command_counts_a_run_once_however_often_it_was_resumed(noted):
    resumed = {run: records * 3 for run, records in noted.provenance.items()}
    assert commands(replace(noted, provenance=resumed)) == commands(noted)


def test_every_commit_is_named(noted):
    (commits,) = (text for name, text in provenance_table(noted) if name == "commit")
    assert commits.count("(1 run)") == 9


@pytest.mark.parametrize("records", [[], None, {}, 3, ["?"], [{"command": "gramian"}], [{"command": []}]])
def test_a_note_without_a_command_has_none(records):
    empty = pl.DataFrame()
    assert commands(replace(study({("pong", "dqn", 0): [1.0]}), metrics=empty, provenance={"a": records})) == []
