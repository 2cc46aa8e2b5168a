"""What was run, as the page tells it."""

import re
import shlex
from dataclasses import replace

import polars as pl
import pytest

from gramian.report import Options
from gramian.report.analysis import analyse
from gramian.report.page import Page
from gramian.report.sections import commands, provenance_table
from gramian.report.tables import score_table
from tests.report.studies import study

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
        assert f"<td>gramian study run mine.toml --seeds {seed}</td><td>1</td>" in section
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
