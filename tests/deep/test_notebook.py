import json
from pathlib import Path

import matplotlib as mpl
import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "deep.ipynb"


@pytest.fixture
def cells():
    return [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.slow
def test_the_notebook_runs_from_its_first_cell_to_its_last(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    names = {}
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert {summary.state for summary in names["summaries"]} == {"done"}
    assert set(names["penalties"]) == {"cartpole-dqn-s0", "cartpole-gram-k0.01-s0"}
    assert names["penalties"]["cartpole-gram-k0.01-s0"] < names["penalties"]["cartpole-dqn-s0"]
    assert len(list((tmp_path / "runs" / "notebook").glob("*.gif"))) == 2


def test_the_notebook_is_stored_without_outputs(cells):
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
