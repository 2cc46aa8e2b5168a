import pytest

from gramian.cli import main
from gramian.cli import train as commands
from gramian.core.cores import cores
from gramian.deep.training.session import train
from tests.deep.sessions import small


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--game", "seaqest"], "unknown game 'seaqest'; did you mean 'seaquest'?"),
        (["--game", "pong", "--arm", "gran"], "unknown arm 'gran'; did you mean 'gram'?"),
        (["--game", "pong", "--arm", "gram:x"], "kappa 'x' in arm 'gram:x' is not a number"),
        (["--preset", "autor"], "unknown preset 'autor'; did you mean 'author'?"),
        (["--game", "pong"], "--arms is missing"),
        (["--arm", "gram"], "--games is missing"),
        (["--game", "pong", "--arm", "gram", "--learning-rat", "1"], "did you mean --learning-rate?"),
        (["--game", "pong", "--arm", "gram", "--batch-size", "many"], "expected --batch-size INT"),
        (["--game", "pong", "--arm", "gram", "--gamma", "2"], "gamma is 2; it must be between 0 and 1"),
        (["--game", "cartpole", "--arm", "gram", "--adam-epsilon", "0"], "adam_epsilon is 0;"),
        (["--game", "cartpole", "--arm", "gram", "--torch-threads", "0"], "--torch-threads 0 is too small; give 1"),
        (
            ["--game", "cartpole", "--arm", "gram", "--torch-threads", "100000"],
            f"--torch-threads 100000 is too large; give at most {cores()}, the cores that this process may use",
        ),
        (["--game", "cartpole", "--arm", "gram", "--device", "gpu"], "unknown device 'gpu'"),
        (["--game", "cartpole", "--game", "pong", "--arm", "gram"], "cannot share a population"),
        (["--game", "cartpole", "--arm", "gram", "--arm", "gram"], "stands twice"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(arguments, complaint, tmp_path, capsys):
    assert main(["train", *arguments, "--out", str(tmp_path / "run")]) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err.splitlines()[-1]
    assert captured.out == ""
    assert not (tmp_path / "run").exists()


def test_the_default_preset_goes_with_the_game_and_the_last_one_given_counts(tmp_path):
    short = ["--arm", "dqn", "--frames", "1500"]
    assert main(["train", "--game", "cartpole", *short, "--out", str(tmp_path / "a")]) == 0
    assert 'preset = "cartpole"' in (tmp_path / "a" / "cartpole-dqn-s0" / "config.toml").read_text()
    twice = ["--preset", "cartpole", "--preset", "smoke"]
    assert main(["train", "--game", "cartpole", *short, *twice, "--out", str(tmp_path / "b b")]) == 0
    config = (tmp_path / "b b" / "cartpole-dqn-s0" / "config.toml").read_text()
    assert 'preset = "smoke"' in config
    assert "features_dim = 0" in config


@pytest.mark.parametrize(
    "other", [["--frames", "9"], ["--seeds", "3"], ["--preset=nature"], ["--no-checkpoint-replay"]]
)
def test_resume_takes_no_settings(other, tmp_path, capsys):
    train(small(frames=150, seeds=[0]), tmp_path / "run")
    assert main(["train", "--resume", str(tmp_path / "run"), *other]) == 2
    option = other[0].partition("=")[0]
    assert capsys.readouterr().err.endswith(f"--resume goes on with what was begun; omit {option}\n")
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0


@pytest.mark.slow
def test_on_fewer_cores_a_population_goes_on_with_the_threads_that_it_had(tmp_path, capsys, monkeypatch):
    out = str(tmp_path / "run")
    begin = ["train", "--game", "cartpole", "--arm", "dqn", "--frames", "1500", "--out", out]
    monkeypatch.setattr(commands, "cores", lambda: 2)
    assert main([*begin, "--torch-threads", "2"]) == 0
    monkeypatch.setattr(commands, "cores", lambda: 1)
    assert main(["train", "--resume", out, "--torch-threads", "2"]) == 0
    assert main(["train", "--resume", out]) == 0
    capsys.readouterr()
    assert main(["train", "--resume", out, "--torch-threads", "3"]) == 2
    assert "--torch-threads 3 is too large; give at most 2" in capsys.readouterr().err
    for text in (b"[]", b"[1]", b"{", b'[{"damaged": "x"}]', b"\xff\xfe"):
        (tmp_path / "run" / "cartpole-dqn-s0" / "provenance.json").write_bytes(text)
        assert main(["train", "--resume", out, "--torch-threads", "2"]) == 2
        assert "--torch-threads 2 is too large; give at most 1" in capsys.readouterr().err


def test_a_population_that_has_diverged_whole_exits_1(tmp_path, capsys):
    short = ["--game", "cartpole", "--preset", "smoke", "--arm", "dqn", "--frames", "1000", "--max-grad-norm", "0"]
    assert main(["train", *short, "--learning-rate", "1e30", "--out", str(tmp_path / "run")]) == 1
    assert "diverged; lower the learning rate" in capsys.readouterr().err.splitlines()[-1]
