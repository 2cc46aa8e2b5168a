"""The notebook of the monitor runs from its first cell to its last."""

import json
from pathlib import Path

import matplotlib as mpl
import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "monitor.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_it_runs_and_the_penalty_shrinks_the_features(monkeypatch):
    monkeypatch.setenv("NOTEBOOK_STEPS", "2_000")
    mpl.use("Agg")
    names = {}
    for number, cell in enumerate(CELLS):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    plain, gram = (measured for _, measured in names["arms"].values())
    assert plain
    assert gram
    assert gram[-1][1]["feature_norm"] < plain[-1][1]["feature_norm"]
    assert len(names["figure"].axes) == 5


def test_it_is_stored_without_outputs():
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS)
