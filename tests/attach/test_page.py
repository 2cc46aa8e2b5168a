"""The page on the drop-in: its programs run, what it shows of recipes is in them, its table names every host."""

import re

import pytest

from benchmarks.attach import HOSTS, RECIPES, lines_changed
from tests.docs.pages import ROOT, blocks

PAGE = (ROOT / "docs" / "drop-in.md").read_text(encoding="utf-8")
BLOCKS = blocks(PAGE, "python")
PROGRAMS = [block for block in BLOCKS if "import gramian" in block]
SHOWN = [block for block in BLOCKS if "import gramian" not in block]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.splitlines()[0])
def test_a_program_runs(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("stable_baselines3")
    exec(compile(program.replace("10_000", "300"), "drop-in.md", "exec"), {})
    if "layers" in program:
        marked = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "<-" in line]
        assert sorted(marked) == ["action_net", "value_net"]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.splitlines()[0][:40])
def test_what_is_shown_of_a_recipe_is_in_it(block: str) -> None:
    before = PAGE[: PAGE.index(block)]
    recipe = re.findall(r"\(recipes/(\w+\.py)\)", before)[-1]
    recipes = [recipe, "sb3_ppo_mlp.py"] if "ppo_atari" in recipe else [recipe]
    text = "".join((RECIPES / name).read_text(encoding="utf-8") for name in recipes)
    assert "\n".join(line.strip() for line in block.splitlines()) in "\n".join(map(str.strip, text.splitlines()))


def test_nothing_is_included_from_a_file() -> None:
    assert "--8<--" not in PAGE


def test_the_table_has_a_row_for_each_host() -> None:
    (table,) = re.findall(r"<!-- attach-hosts -->(.*?)<!-- /attach-hosts -->", PAGE, re.DOTALL)
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.strip().splitlines()[2:]]
    assert rows == [[title, str(lines_changed(recipe))] for recipe, (title, _) in HOSTS.items()]
