import runpy
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from gramian.deep.training.config import preset_names

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(DOCS / "presets.py"))


def test_the_page_shows_the_presets_as_they_are(script):
    stored = (DOCS / "tables" / "presets.md").read_text(encoding="utf-8")
    assert stored == script["tables"](), "a preset has changed; run: python docs/presets.py"


@pytest.mark.parametrize("name", preset_names())
def test_every_setting_of_a_preset_is_in_its_table_with_its_value(script, name):
    (section,) = [part for part in script["tables"]().split("### ") if part.startswith(f"`{name}`")]
    rows = dict(line.split(" | ")[:2] for line in section.splitlines() if line.startswith("| `"))
    shown = {key.strip("| `"): tomllib.loads(f"x = {value.strip('`')}")["x"] for key, value in rows.items()}
    assert shown == dict(flat(tomllib.loads((files("gramian") / "presets" / f"{name}.toml").read_text())))


def test_a_line_without_source_is_not_passed_over(script, monkeypatch, tmp_path):
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "mine.toml").write_text("frames = 5\n")
    monkeypatch.setitem(script["_preset"].__globals__, "files", lambda _: tmp_path)
    with pytest.raises(ValueError, match="cannot read 'frames = 5' in preset 'mine'"):
        list(script["_preset"]("mine"))


def flat(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
