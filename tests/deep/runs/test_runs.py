import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import gramian.deep
from gramian.cli import main
from gramian.core.errors import UserError
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.networks import forward
from gramian.deep.runs.listing import RunSummary, list_runs, table
from gramian.deep.runs.load import load_run
from gramian.deep.training.trainer import Trainer, make_environments
from tests.deep.trained import small_config, train_small


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cartpole")
    return train_small(folder / "out", ["cartpole"], [Arm("dqn"), Arm("gram", 0.01)])


@pytest.fixture
def copied(cartpole, tmp_path):
    """A run of its own that a test may damage, in a population's folder."""
    out = tmp_path / "out"
    subprocess.run(["cp", "-r", str(cartpole[0].parent), str(out)], check=True)
    return out / cartpole[0].name


def test_a_loaded_run_is_the_learner_that_was_trained(cartpole):
    config = small_config(["cartpole"], [Arm("dqn"), Arm("gram", 0.01)])
    trainer = Trainer(config, make_environments(config))
    while not trainer.done:
        trainer.step()
    observations = torch.randn(2, 7, 4)
    seen = forward(trainer.learner.spec, trainer.learner.layout.views(trainer.learner.state.online), observations)
    for number, folder in enumerate(cartpole):
        run = load_run(folder)
        assert run.agent_steps == 400
        torch.testing.assert_close(run.q_values(observations[number]), seen.values[number])
        torch.testing.assert_close(run.features(observations[number]), seen.features[number])


def test_the_best_action_is_the_one_with_the_largest_value_of_a_list_an_array_or_a_tensor(cartpole):
    run = load_run(cartpole[1])
    observations = np.random.default_rng(0).normal(size=(50, 4))
    for kind in (np.ndarray.tolist, np.array, torch.tensor):
        assert [run.act(kind(one)) for one in observations] == run.q_values(observations).argmax(1).tolist()


def test_epsilon_mixes_in_random_actions_that_a_fresh_load_repeats(cartpole):
    def actions(epsilon):
        run = load_run(cartpole[0])
        return [run.act(np.zeros(4), epsilon) for _ in range(200)]

    assert len(set(actions(0.0))) == 1
    assert 70 < sum(actions(1.0)) < 130
    assert actions(0.5) == actions(0.5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_run_acts_on_a_gpu_as_on_the_cpu(cartpole):
    observations = torch.randn(50, 4)
    values = [load_run(cartpole[0], device).q_values(observations).cpu() for device in ("cpu", "cuda")]
    torch.testing.assert_close(*values)


def test_a_run_that_shared_its_population_with_a_larger_game_keeps_to_its_own_actions(tmp_path):
    environment = {"minatar": {"full_actions": False}}
    breakout, asterix = train_small(
        tmp_path / "out", ["minatar/breakout", "minatar/asterix"], frames=120, **environment
    )
    small, large = load_run(breakout), load_run(asterix)
    assert small.actions < large.actions
    assert small.q_values(torch.zeros(2, 4, 10, 10)).shape == (2, small.actions)
    assert max(small.act(np.zeros((4, 10, 10)), epsilon=1.0) for _ in range(100)) == small.actions - 1


@pytest.mark.parametrize(
    ("observation", "complaint"),
    [
        (np.zeros(5), r"the observation has shape \[5\]; run 'cartpole-dqn-s0' sees \[4\]"),
        (np.zeros((1, 4)), r"shape \[1, 4\].*sees \[4\]"),
    ],
)
def test_an_observation_of_another_shape_is_refused(cartpole, observation, complaint):
    with pytest.raises(UserError, match=complaint):
        load_run(cartpole[0]).act(observation)
    with pytest.raises(UserError, match=r"sees \[n, 4\]"):
        load_run(cartpole[0]).q_values(np.zeros(4))
    with pytest.raises(UserError, match=r"epsilon is 1\.5; it must be between 0 and 1"):
        load_run(cartpole[0]).act(np.zeros(4), epsilon=1.5)


def test_a_folder_from_which_no_run_can_be_loaded_is_named(cartpole, copied, tmp_path):
    with pytest.raises(UserError) as error:
        load_run(cartpole[0].parent)
    assert "is not the folder of a run, but holds runs" in str(error.value)
    assert all(str(folder) in str(error.value) for folder in cartpole)
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match=r"is not the folder of a run(; name a folder|, but holds runs)"):
            load_run(path)
    shutil.rmtree(copied / "checkpoints")
    with pytest.raises(UserError, match="holds no checkpoint"):
        load_run(copied)


class Evil:
    """Runs code where it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("hacked",)


@pytest.mark.parametrize(
    ("damage", "alone"),  # taken out of its population, a run has no checksum
    [("truncated", False), ("truncated", True), ("altered", False), ("pickle", False), ("pickle", True)],
)
def test_damaged_weights_are_detected_and_no_code_is_run(copied, monkeypatch, damage, alone):
    monkeypatch.chdir(copied.parent)
    if alone:
        copied = copied.rename(copied.parent.parent / "run")
    (path,) = (copied / "checkpoints").iterdir()
    data = bytearray(path.read_bytes())
    if damage == "pickle":
        torch.save(Evil(), path)
    else:
        data[-7] ^= 1
        path.write_bytes(data[:-100] if damage == "truncated" else data)
    with pytest.raises(UserError, match="are damaged" if alone else r"are damaged \(it is not what was written\)"):
        load_run(copied)
    assert not Path("hacked").exists()


def test_weights_of_another_network_are_refused(copied):
    copied = copied.rename(copied.parent.parent / "run")
    (path,) = (copied / "checkpoints").iterdir()
    tensors = load_file(path)
    save_file(tensors | {"online.head.weight": torch.zeros(1, 2, 5)}, path)
    with pytest.raises(UserError, match=r"do not fit its config\.toml"):
        load_run(copied)
    save_file({name: tensor for name, tensor in tensors.items() if not name.startswith("online.head")}, path)
    with pytest.raises(UserError, match=r"do not fit its config\.toml"):
        load_run(copied)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('game = "cartpole"', 'game = "cartpol"', "unknown game 'cartpol'; did you mean 'cartpole'?"),
        ('game = "cartpole"\n', "", "it lacks 'game'"),
        ("seed = 0", 'seed = "zero"', "holds a value of the wrong type"),
        ("n_step = 1", "n_stepp = 1", "did you mean 'n_step'?"),
        ("seed = 0", "seed = ", "cannot read"),
    ],
)
def test_a_damaged_config_gets_one_line(copied, old, new, complaint):
    path = copied / "config.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as error:
        load_run(copied)
    assert complaint in str(error.value)


def test_the_public_names_are_there_and_cost_nothing_until_they_are_used():
    assert all(hasattr(gramian.deep, name) for name in gramian.deep.__all__)
    assert set(gramian.deep.__all__) <= set(dir(gramian.deep))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gramian.deep.nothing
    probe = "import sys, gramian.deep; print(sorted({'torch', 'tyro', 'numpy', 'gymnasium'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_run_below_a_folder_is_listed_with_its_state_and_score(cartpole, copied):
    root = copied.parent
    (root / "further" / "down").mkdir(parents=True)
    copied.rename(root / "further" / "down" / "run")
    runs = {run.folder.name: run for run in list_runs(root)}
    assert set(runs) == {"run", cartpole[1].name}
    run = runs["run"]
    rows = [line.split(",") for line in (run.folder / "episodes.csv").read_text().splitlines()[1:]]
    assert (run.state, run.agent_steps, run.frames, run.games, run.reason) == ("done", 400, 400, len(rows), "")
    assert run.mean_return == pytest.approx(np.mean([float(row[3]) for row in rows[-100:]]))


def test_runs_in_hidden_folders_are_not_listed_unless_they_are_asked_for(cartpole, copied):
    root = copied.parent
    hidden = root / ".venv" / "share" / "run"
    hidden.parent.mkdir(parents=True)
    copied.rename(hidden)
    assert [run.folder.name for run in list_runs(root)] == [cartpole[1].name]
    assert [run.folder for run in list_runs(root / ".venv")] == [hidden]


def test_only_the_last_hundred_games_count_and_a_half_written_line_does_not(copied):
    log = copied / "episodes.csv"
    heading = log.read_text().splitlines()[0]
    rows = [f"{i},0,{i},{1.0 if i < 50 else 3.0},0.0,1,0" for i in range(150)]
    log.write_text("\n".join([heading, *rows, "151,0,150,9"]))
    (run,) = [run for run in list_runs(copied.parent) if run.folder == copied]
    assert (run.games, run.mean_return) == (150, 3.0)


def test_atari_frames_are_agent_steps_times_the_frame_skip(copied):
    path = copied / "config.toml"
    path.write_text(path.read_text().replace('game = "cartpole"', 'game = "pong"'))
    (run,) = [run for run in list_runs(copied.parent) if run.folder == copied]
    assert (run.agent_steps, run.frames) == (400, 1600)


def test_the_command_shows_damaged_runs_and_reasons_beside_the_others(cartpole, copied, capsys):
    status = json.loads((copied / "status.json").read_text())
    (copied / "status.json").write_text(json.dumps(status | {"state": "diverged", "reason": "not finite at update 9"}))
    (copied.parent / cartpole[1].name / "status.json").write_text('{"state": ')
    assert main(["runs", str(copied.parent)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("  not finite at update 9") - 1].startswith("diverged")
    assert any(line.startswith("unreadable") for line in lines)
    assert any(line.startswith("  damaged: ") for line in lines)


def test_the_table_fits_into_80_columns():
    folder = Path("runs/long") / ("space_invaders-gram-unbiased-k10.24-uncentered-lr0.0003-s1")
    reason = "cannot write to 'runs/long': no space left on device; the checkpoint at agent step 4,750,000 is whole"
    run = RunSummary(folder, "interrupted", 50_000_000, 200_000_000, 123_456, -1234.5678, reason)
    short = RunSummary(Path("runs/long/pong-dqn-s0"), "running", 0, 0, 0, float("nan"), "")
    lines = table([run, short], Path("runs"), columns=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert f"  {folder.name}" in lines
    assert lines[-1].split() == ["running", "0", "0", "0", "–", "pong-dqn-s0"]


def test_a_folder_without_runs_gets_one_line_and_exit_code_2(tmp_path, capsys):
    assert main(["runs", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("gramian: there is no run below")
    assert main(["runs", str(tmp_path / "nothing")]) == 2
    assert "is not a folder" in capsys.readouterr().err
