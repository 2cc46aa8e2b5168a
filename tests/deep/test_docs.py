"""The pages on training and its files say what the code does."""

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from gramian.cli import COMMANDS, parse
from gramian.cli.evaluate import EVALUATION_COLUMNS
from gramian.core.arms import KINDS
from gramian.deep.training.logs import EPISODE_COLUMNS, METRIC_COLUMNS, REPRESENTATION_COLUMNS, TIMING_COLUMNS, State

DOCS = Path(__file__).parents[2] / "docs"
TRAIN, FILES = ((DOCS / name).read_text(encoding="utf-8") for name in ("train.md", "run-files.md"))


def first_cells(page, heading):
    """Names in backticks in the first column of the first table after a line."""
    table = page.split(heading, 1)[1].split("| --- |", 1)[1].split("\n\n", 1)[0]
    return [name for row in table.splitlines()[1:] for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        ("## `episodes.csv`", EPISODE_COLUMNS),
        ("## `metrics.csv`", METRIC_COLUMNS),
        ("## `representation.csv`", REPRESENTATION_COLUMNS),
        ("## `timing.csv`", TIMING_COLUMNS),
        ("## `evaluation.csv`", EVALUATION_COLUMNS),
    ],
)
def test_every_column_of_a_file_is_explained(heading, columns):
    assert sorted(first_cells(FILES, heading)) == sorted(columns)


def test_every_arm_and_every_state_is_named():
    assert first_cells(TRAIN, "## Arms") == list(KINDS)
    assert first_cells(FILES, "## `status.json`") == list(get_args(State))


@pytest.mark.parametrize("line", re.findall(r"gramian (?:train|evaluate|runs) [^\n`]+", TRAIN + FILES))
def test_the_commands_on_the_page_can_be_parsed(line):
    _, name, *arguments = shlex.split(line)
    assert name in COMMANDS
    if "--help" not in arguments:
        parse(name, arguments)


def test_the_python_on_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TRAIN, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/train.md", "exec"), {})
