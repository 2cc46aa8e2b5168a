"""The page of monitor and measures says what the code does."""

import re
import shlex
from pathlib import Path

import pytest

from gramian.cli import COMMANDS, parse
from gramian.representation.dynamics import GROWTH
from gramian.representation.measures import MEASURES
from gramian.representation.tables import FILES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "monitor.md").read_text(encoding="utf-8")


def test_every_measure_is_defined():
    named = set(re.findall(r"`([a-z][\w.]*)`", PAGE))
    shortened = {"states", "dormant_share_0.025", "dormant_share_0.1", *GROWTH[:3]}
    assert set(MEASURES) | set(GROWTH) <= named | shortened


def test_every_table_is_named_with_its_columns():
    for file, row in FILES.items():
        assert f"| `{file}` |" in PAGE
        assert ", ".join(row._fields) in PAGE


@pytest.mark.parametrize("line", re.findall(r"^gramian (?:analyze|evaluate) .+", PAGE, flags=re.MULTILINE))
def test_the_commands_on_the_page_can_be_parsed(line):
    _, name, *arguments = shlex.split(line)
    assert name in COMMANDS
    parse(name, arguments)


def test_every_figure_on_the_page_is_there():
    figures = re.findall(r"\]\((figures/[^)]+)\)", PAGE)
    assert figures
    assert all((DOCS / figure).is_file() for figure in figures)
