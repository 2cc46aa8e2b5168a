"""Runs whose actors' weights are some updates old."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import delay
from gramian.core import statistics
from gramian.core.arms import Arm
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.trainer import Trainer, make_environments
from tests.benchmarks.refusals import refusal

pytestmark = pytest.mark.slow

FEW = ["cartpole", "--seeds", "2", "--frames", "1000"]


@pytest.mark.parametrize("lag", [0, 1, 2, 5])
def test_the_actors_lack_as_many_updates_as_the_lag_says(lag):
    settings = replace(load_preset("tiny"), sequential=lag == 0)
    config = Config("tiny", settings, population(["cartpole"], [Arm("dqn")], [0, 1]))
    trainer = Trainer(config, make_environments(config))
    if lag > delay.OWN_LAG:
        trainer.pipeline.hand_over = delay.lagging(trainer.pipeline, lag)
    after = [trainer.learner.state.online.clone()]
    checked = 0
    while not trainer.done:
        updates = trainer.updates
        trainer.step()
        if trainer.updates > updates:  # an update has begun in this step, and `learner` waits for it
            after.append(trainer.learner.state.online.clone())
            expected = after[max(0, trainer.updates - lag)]
            assert torch.equal(trainer.pipeline.acting, expected)
            checked += not torch.equal(expected, after[0])
    trainer.close()
    assert checked > 50


def test_the_engine_s_own_lag_is_the_engine_s_own_order():
    own, lagging = (train(lag) for lag in (None, 1))
    assert torch.equal(own, lagging)
    assert not torch.equal(own, train(50))


def train(lag):
    config = Config("tiny", load_preset("tiny"), population(["cartpole"], [Arm("dqn")], [0]))
    trainer = Trainer(config, make_environments(config))
    if lag is not None:
        trainer.pipeline.hand_over = delay.lagging(trainer.pipeline, lag)
    while not trainer.done:
        trainer.step()
    trainer.close()
    return trainer.learner.state.online


def test_a_run_is_divided_into_fifths(tmp_path, capsys):
    assert delay.main([*FEW, "--lags", "3", "--out", str(tmp_path)]) == 0
    rows = read(tmp_path / "delay-runs.csv")
    assert [(row["game"], row["lag"], row["seed"]) for row in rows] == [
        ("cartpole", lag, seed) for lag in "13" for seed in "01"
    ]
    run = delay.read(tmp_path / "delay-runs.csv")[-1]
    settings = replace(load_preset("cartpole"), frames=1000)
    config = Config("cartpole", settings, population(["cartpole"], [Arm("dqn")], [0, 1]))
    trainer = Trainer(config, make_environments(config))
    trainer.pipeline.hand_over = delay.lagging(trainer.pipeline, 3)
    fifths = [[] for _ in range(5)]
    episodes = 0
    for step in range(1000):
        for episode in trainer.step():
            if episode.run == 1:
                fifths[step // 200].append(episode.raw_return)
                episodes += 1
    trainer.close()
    assert run.episodes == episodes
    assert run.final == pytest.approx(np.mean(fifths[-1]))
    assert run.area == pytest.approx(np.mean([np.mean(fifth) for fifth in fifths]))
    assert capsys.readouterr().out == (tmp_path / "delay.md").read_text()


def test_what_is_there_is_not_trained_again_and_what_is_missing_is(tmp_path, capsys, monkeypatch):
    assert delay.main([*FEW, "--lags", "1", "--out", str(tmp_path)]) == 0
    trained = []
    train = delay.train

    def watched(game, lag, seeds, frames, report):
        trained.append((lag, seeds, frames))
        return train(game, lag, seeds, frames, report)

    monkeypatch.setattr(delay, "train", watched)
    before = read(tmp_path / "delay-runs.csv")
    assert delay.main([*FEW, "--lags", "0", "--out", str(tmp_path)]) == 0
    assert trained == [(0, 2, 1000)]
    assert read(tmp_path / "delay-runs.csv")[:2] == before
    assert delay.main([*FEW, "--lags", "0", "--out", str(tmp_path)]) == 0
    assert trained == [(0, 2, 1000)]
    more = ["cartpole", "--seeds", "3", "--frames", "1000", "--lags", "1", "--out", str(tmp_path)]
    assert delay.main(more) == 0
    assert trained[1:] == [(1, 3, 1000)]
    rows = read(tmp_path / "delay-runs.csv")
    assert len({(row["lag"], row["seed"]) for row in rows}) == len(rows) == 5
    assert "| CartPole | 1 | 3 |" in capsys.readouterr().out


def runs(game, lag, finals):
    return [delay.Run(game, lag, seed, 1000, 9, 2 * final, final) for seed, final in enumerate(finals)]


def test_differences_are_shares_of_the_engine_s_own_lag_and_seeds_of_all_games_count_once():
    own, late = {"breakout": [4.0, 6.0], "asterix": [10.0, 30.0]}, {"breakout": [3.0, 5.0], "asterix": [30.0, 40.0]}
    given = [run for lag, of in ((1, own), (9, late)) for game, finals in of.items() for run in runs(game, lag, finals)]
    rows = {(row.game, row.lag): row for row in delay.compare(given[::-1], [1, 9], ["breakout", "asterix"])}
    one = rows["breakout", 9]
    assert (one.final, one.final_low, one.final_high) == pytest.approx(statistics.mean_interval(np.array([3.0, 5.0])))
    changes = [20 * x for x in statistics.welch(np.array([3.0, 5.0]), np.array([4.0, 6.0]))]
    assert [one.final_change, one.final_change_low, one.final_change_high] == pytest.approx(changes)
    assert [one.area_change, one.area_change_low, one.area_change_high] == pytest.approx(changes)
    shares, base = (
        np.array([(a / 5 + b / 20) / 2 for a, b in zip(of["breakout"], of["asterix"], strict=True)])
        for of in (late, own)
    )
    together = rows["together", 9]
    expected = [100 * x for x in statistics.welch(shares, base)]
    assert [together.final_change, together.final_change_low, together.final_change_high] == pytest.approx(expected)
    assert together.final == pytest.approx(shares.mean())
    assert np.isnan(rows["together", 1].final_change)
    page = delay.markdown(list(rows.values()))
    assert page.splitlines()[2].endswith("| – | – |")
    assert "| together | 9 | 2 |" in page


def test_one_game_is_not_taken_together():
    rows = delay.compare(runs("pong", 1, [1.0, 2.0]) + runs("pong", 4, [1.0, 3.0]), [1, 4], ["pong"])
    assert [(row.game, row.lag) for row in rows] == [("pong", 1), ("pong", 4)]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["breakuot", "--out", "FOLDER"], "breakout"),
        (["cartpole", "--lags", "-1", "--out", "FOLDER"], "give a whole number from 0"),
        (["cartpole", "--seeds", "1", "--out", "FOLDER"], "give a whole number from 2"),
        (["cartpole"], "--out"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(tmp_path, capsys, asked, words):
    arguments = [str(tmp_path / "out") if word == "FOLDER" else word for word in asked]
    assert words in refusal(delay, arguments, capsys)
    assert not (tmp_path / "out").exists()


def test_games_that_do_not_end_and_tables_that_are_none_are_refused(tmp_path, capsys):
    short = ["minatar/freeway", "--seeds", "2", "--frames", "1000", "--lags", "1", "--out", str(tmp_path)]
    assert delay.main(short) == 2
    assert "give more --frames" in capsys.readouterr().err
    header, line = "game,lag,seed,frames,episodes,area,final\n", "cartpole,1,0,1000,9,20.0,30.0\n"
    for text, words in (
        ("game,lag\ncartpole,one\n", "no table of runs"),
        (header + 2 * line, "cartpole, lag 1, seed 0, 1,000 frames twice"),
        (header + line.replace("30.0", "nan"), "no number"),
    ):
        (tmp_path / "delay-runs.csv").write_text(text)
        assert delay.main([*FEW, "--out", str(tmp_path)]) == 2
        assert words in capsys.readouterr().err
        assert (tmp_path / "delay-runs.csv").read_text() == text


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))
