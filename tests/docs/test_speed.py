"""The tables of the page about speed, from the committed results and from made-up ones."""

import csv
import shutil
import statistics

import numpy as np
import pytest
import torch
from PIL import Image

pytest.importorskip("gymnasium")

from docs import speed
from gramian.core.arms import parse_arm
from gramian.core.errors import UserError
from gramian.deep.envs import make_games
from gramian.deep.replay.device import bytes_needed
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.memory import learner_bytes
from gramian.deep.training.trainer import network_spec
from gramian.study.hardware import Hardware, divide
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "speed.md"
NOTES = ROOT / "results" / "speed" / "README.md"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder of results of their own, at first those that are committed."""
    shutil.copytree(speed.RESULTS, tmp_path / "speed")
    monkeypatch.setattr(speed, "RESULTS", tmp_path / "speed")
    return tmp_path / "speed"


def columns(text):
    """A table by its columns: the cells under each heading."""
    lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines()]
    return {heading: [line[at] for line in lines[2:]] for at, heading in enumerate(lines[0])}


@pytest.mark.parametrize(("page", "made"), [(PAGE, speed.TABLES), (NOTES, speed.NOTES)], ids=["page", "notes"])
def test_the_committed_tables_are_those_of_the_committed_results(page, made):
    text = page.read_text(encoding="utf-8")
    assert speed.filled([text], made) == [text], "a result or a list has changed; run: python -m docs.speed"


def test_every_file_of_the_results_is_named_beside_them():
    text = NOTES.read_text(encoding="utf-8")
    assert [path.name for path in speed.RESULTS.iterdir() if f"`{path.name}`" not in text] == ["README.md"]


def test_every_value_of_which_only_the_print_is_kept_is_spoken_of():
    text = PAGE.read_text(encoding="utf-8") + NOTES.read_text(encoding="utf-8")
    for found in speed.rows("printed"):
        value = f"{int(found['value']):,}" if found["value"].isdigit() else found["value"]
        assert value in text, found["name"]


def test_a_missing_table_is_named(results):
    (results / "minatar-h200.csv").unlink()
    with pytest.raises(UserError, match=r"minatar-h200.csv' is not there"):
        speed.minatar()


def test_a_row_that_is_not_there_is_named():
    with pytest.raises(UserError, match=r"h200.csv' has no row with commit e32dc27, runs 7"):
        speed.row("h200", commit="e32dc27", runs=7)


def test_more_than_one_row_where_one_is_needed_is_refused():
    with pytest.raises(UserError, match="has 2 rows where one is needed"):
        speed.row("h200", commit="e32dc27", runs=12)


def test_a_reading_of_the_emulator_with_the_start_of_cuda_counts_with_the_seconds_of_the_other(results):
    header = "sweep,contestant,runs,cores,capacity,torch_threads,repeat,agent_steps,seconds\n"
    readings = [("gramian", 0, 90, 1), ("gramian", 1, 90, 1), ("emulator", 0, 100, 1.25), ("emulator", 1, 100, 1)]
    lines = [f"runs,{name},2,16,1000,1,{repeat},{steps},{seconds}\n" for name, repeat, steps, seconds in readings]
    (results / "scaling-h200.csv").write_text(header + "".join(lines))
    assert speed.shares(2) == [0.9, 0.9]
    found = columns(speed.growth())
    assert (found["agent steps a second"][0], found["share of the emulator"][0]) == ("90 (90–90)", "90 %")


def test_processes_are_counted_in_long_stretches_after_the_start(results):
    names = ["elapsed_s", "processes", "agent_steps", "cores_busy", "cores_stolen"]
    stretches = [(0, 200, 2), (200, 500, 2), (500, 550, 1)]
    with (results / "parts-h200.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(names)
        for begin, end, count in stretches:
            table.writerows([t, count, 100 * max(0, t - 180), 0.5, 0.01] for t in range(begin, end, 10))
    found = columns(speed.processes())
    (at,) = [at for at, name in enumerate(found["table"]) if name == "`parts`"]
    cells = {heading: cells[at] for heading, cells in found.items() if heading != "table"}
    assert list(cells.values()) == ["2", "8", "180–490", "100", "50 %", "1.0 %"]


def test_a_list_that_both_kinds_of_games_share_stands_once():
    lines = speed.not_the_same().splitlines()
    assert len(lines) == len(set(lines))
    assert "one or two updates old" in lines[0]
    assert any(line.startswith("- Atari: ") for line in lines)
    assert "one process for each run" in "\n".join(lines)
    assert "- MinAtar: MinAtar" not in "\n".join(lines)


@pytest.mark.parametrize("page", ["speed.md", "studies.md"])
def test_as_many_runs_with_replays_of_a_million_fit_as_the_pages_say(page):
    settings = load_preset("author")
    config = Config("author", settings, population(["seaquest"], [parse_arm("dqn", settings.kappa)], [0]))
    engine = make_games(config.runs[0].game, 1, settings.environment)
    try:
        network = network_spec(config, engine.observation, engine.actions)
        replay = bytes_needed(engine.observation, 1, settings.envs_per_run, 1_000_000)
    finally:
        engine.close()
    run_bytes = replay + learner_bytes(network, 1, torch.float32)
    most = divide(Hardware("cuda", "H200", 1, 1, 139 << 30, 16), run_bytes).largest
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert f"at most {most} runs" in text
    assert f"{most * run_bytes / 1e9:.0f} GB" in text


def test_the_figure_of_growth_shows_the_rates_of_its_table(tmp_path):
    found = columns(speed.growth())
    listed = {
        (int(runs), int(cores), "awake" in commit): rates.split()[0]
        for runs, cores, rates, commit in zip(
            *(found[name] for name in ("runs", "cores", "agent steps a second", "commit")), strict=True
        )
        if (cores, commit) != ("16", speed.OLDER)  # an older reading of the same
        and (cores, commit) != ("4", speed.NOW)  # likewise
    }
    by_runs, by_cores = speed.growth_points().values()
    drawn = {
        at: f"{statistics.median(rates):,.0f}"
        for line, awake in (("gramian, asleep", False), ("gramian, awake", True))
        for at, rates in [
            *(((x, 16, awake), rates) for x, rates in by_runs[line].items()),
            *(((9, x, awake), rates) for x, rates in by_cores[line].items()),
        ]
    }
    assert drawn == listed
    speed.draw_growth(tmp_path / "growth.png")
    drawn, committed = (
        np.asarray(Image.open(path).convert("L"), float)
        for path in (tmp_path / "growth.png", ROOT / "docs" / "figures" / "speed" / "growth-h200.png")
    )
    assert drawn.shape == committed.shape, "the figure has changed; run: python -m docs.speed"
    assert np.abs(drawn - committed).mean() < 1.0, "the figure has changed; run: python -m docs.speed"
