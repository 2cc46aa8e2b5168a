"""The tables of the page about speed are those of the committed results."""

import pytest
import torch

pytest.importorskip("gymnasium")

from docs import speed
from gramian.core.arms import parse_arm
from gramian.core.errors import UserError
from gramian.deep.envs import make_games
from gramian.deep.replay import bytes_needed
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.memory import learner_bytes
from gramian.deep.training.trainer import network_spec
from gramian.study.cost import Hardware, divide
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")


def test_every_file_of_the_results_is_named_beside_them():
    text = (speed.RESULTS / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in speed.RESULTS.iterdir() if f"`{path.name}`" not in text] == ["README.md"]


def test_the_differences_of_the_check_are_on_the_page():
    for line in (speed.RESULTS / "check-h200.txt").read_text().splitlines():
        difference = line.partition("parameter ")[2].partition(",")[0]
        assert difference == "0.0e+00" or difference in PAGE


def test_a_ratio_is_taken_within_a_repeat(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "RESULTS", tmp_path)
    readings = [("sb3", 100, 1, 1e9), ("sb3", 200, 1, 1e9), ("gramian", 100, 1, 1e9), ("gramian", 600, 2, 2e9)]
    lines = [f"{name},1,1,{steps},{seconds},{memory}" for name, steps, seconds, memory in readings]
    header = "contestant,runs,processes,agent_steps,seconds,peak_rss_bytes"
    (tmp_path / "minatar-cpu.csv").write_text("\n".join([header, *lines]) + "\n")
    *_, last = speed.speed_cpu().splitlines()
    assert last == "| gramian | 1 | 200 (100–300) | 1.25 (1.00–1.50) | 2.00 GB |"


def test_a_missing_table_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "RESULTS", tmp_path)
    with pytest.raises(UserError, match=r"cannot read the table '.*h200.csv'"):
        speed.speed_h200()


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
