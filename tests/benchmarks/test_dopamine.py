"""Our DQN beside Dopamine's curves, from made-up logs."""

import csv

import numpy as np
import pytest

from benchmarks import dopamine
from gramian.report import reference
from tests.report.studies import study

FRAMES = 2_000_000


def laid_beside(shift=0.0, games=("pong",), seeds=5):
    """Runs whose episodes return what Dopamine's runs did in that million frames, and ``shift`` more."""
    cells = {}
    for game in games:
        published = reference.dopamine_curve(game).returns
        for seed in range(seeds):
            cells[game, "dqn", seed] = [published[seed, at // 10] + shift for at in range(20)]
    one = study(cells, frames_target=dict.fromkeys(cells, FRAMES), kind=dict.fromkeys(cells, "dqn"))
    spread = one.episodes.with_columns(frames=one.episodes["frames"] * (FRAMES // 1000))
    return type(one)(one.runs, spread, one.metrics)


def test_an_episode_counts_in_the_million_in_which_it_ends():
    frames, returns = np.array([1, 1_000_000, 1_000_001, 2_500_000]), np.array([1.0, 3.0, 7.0, 9.0])
    assert dopamine.by_million(frames, returns, 3).tolist() == [2.0, 7.0, 9.0]
    assert np.isnan(dopamine.by_million(frames[:1], returns[:1], 2)).tolist() == [False, True]


def test_runs_like_dopamines_do_not_differ():
    rows = dopamine.compare(laid_beside(games=("asterix", "pong")))
    assert [(row.game, row.million_frames) for row in rows] == [
        ("asterix", 1), ("asterix", 2), ("pong", 1), ("pong", 2),
    ]  # fmt: skip
    for row in rows:
        assert row.difference == pytest.approx(0.0)
        assert row.difference_low < 0 < row.difference_high
        assert row.improvement == pytest.approx(0.5, abs=0.1)  # rounding makes some ties wins


def test_better_runs_are_seen_to_be_better():
    row = dopamine.compare(laid_beside(shift=30.0))[-1]
    assert row.difference == pytest.approx(30.0)
    assert row.difference_low > 0
    assert row.improvement == 1.0


def test_a_single_run_has_no_interval():
    row = dopamine.compare(laid_beside(seeds=1))[0]
    assert "[–, –]" in dopamine.markdown([row])


def test_table_and_figure_are_written(tmp_path):
    rows = dopamine.compare(laid_beside())
    dopamine.write(rows, tmp_path / "out")
    with (tmp_path / "out" / "dopamine.csv").open() as file:
        assert [float(row["mean"]) for row in csv.DictReader(file)] == pytest.approx([row.mean for row in rows])
    assert "| Pong | 2 |" in (tmp_path / "out" / "dopamine.md").read_text()
    assert (tmp_path / "out" / "dopamine.png").stat().st_size > 1_000
