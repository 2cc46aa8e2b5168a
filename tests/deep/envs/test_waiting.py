"""Who plays Atari in a training, and whether processes spin when they wait for each other."""

import pytest

from gramian.cli import main
from gramian.deep.agent.arms import Arm
from gramian.deep.training import trainer
from gramian.deep.training.config import Config, load_preset, population


@pytest.mark.parametrize(
    ("device", "runs", "threads", "cores", "spin_s"),
    [
        ("cuda", 3, 0, 4, trainer.SPIN_S),
        ("cuda", 3, 4, 16, trainer.SPIN_S),
        ("cuda", 3, 0, 3, 0.0),
        ("cuda", 4, 4, 16, 0.0),
        ("cuda", 12, 72, 8, 0.0),
        ("cpu", 3, 4, 16, 0.0),
    ],
)
def test_processes_spin_beside_a_gpu_where_each_has_a_core(monkeypatch, device, runs, threads, cores, spin_s):
    given = []
    monkeypatch.delenv(trainer.SPIN, raising=False)
    monkeypatch.setattr(trainer, "cores", lambda: cores)
    monkeypatch.setattr(trainer, "Environments", lambda *_, **named: given.append(named["spin_s"]))
    config = Config("author", load_preset("author"), population(["pong"], [Arm("dqn")], list(range(runs))))
    trainer.make_environments(config, threads, device)
    trainer.make_environments(config, threads, device, spin_s=0.001)
    assert given == [spin_s, 0.001]
    assert trainer.SPIN_S > 0


@pytest.mark.parametrize(
    ("device", "runs", "threads", "cores", "asked", "here"),
    [
        ("cuda", 1, 1, 16, "", True),
        ("cuda", 1, 0, 1, "", True),
        ("cuda", 1, 2, 16, "", False),
        ("cuda", 1, 0, 16, "", False),
        ("cuda", 2, 1, 16, "", False),
        ("cuda", 1, 1, 16, "2000", False),
        ("cpu", 1, 1, 1, "", False),
    ],
)
def test_who_learns_plays_too_where_a_gpu_has_one_game_and_one_core(
    monkeypatch, device, runs, threads, cores, asked, here
):
    given = []
    monkeypatch.setenv(trainer.SPIN, asked)
    monkeypatch.setattr(trainer, "cores", lambda: cores)
    monkeypatch.setattr(trainer, "Environments", lambda *_, **named: given.append(named["here"]))
    config = Config("author", load_preset("author"), population(["pong"], [Arm("dqn")], list(range(runs))))
    trainer.make_environments(config, threads, device)
    trainer.make_environments(config, threads, device, spin_s=0.002)
    assert given == [here, False]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("asked", "spin_s"), [("0", 0.0), ("500", 0.0005)])
def test_an_environment_variable_says_otherwise(monkeypatch, device, asked, spin_s):
    monkeypatch.setenv(trainer.SPIN, asked)
    config = Config("author", load_preset("author"), population(["pong"], [Arm("dqn")], [0]))
    assert trainer.spin_time(config, device=device) == spin_s


def test_an_environment_variable_that_is_no_time_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv(trainer.SPIN, "2ms")
    out = tmp_path / "run"
    arguments = ["--game", "pong", "--arm", "dqn", "--device", "cpu", "--frames", "400", "--out", str(out)]
    assert main(["train", *arguments]) == 2
    assert "GRAMIAN_PATIENCE_US is '2ms'; give a whole number of microseconds" in capsys.readouterr().err
    assert not out.exists()


def test_games_of_other_kinds_wait_for_nobody():
    config = Config("minatar", load_preset("minatar"), population(["minatar/breakout"], [Arm("dqn")], [0]))
    assert trainer.spin_time(config, threads=16, device="cuda") == 0
