import csv
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from ale_py import ALEInterface, LoggerMode, roms
from PIL import Image
from safetensors.torch import load_file, save_file

from gramian.cli import main
from gramian.core.errors import UserError, WorkFailed
from gramian.core.games import PAPER_TITLES, find_game
from gramian.deep.agent.streams import Stream, bits
from gramian.deep.envs import AtariOptions, EnvironmentOptions, MinAtarOptions, make_games
from gramian.deep.envs.atari import AtariGames
from gramian.deep.runs.evaluation import evaluate
from gramian.deep.runs.load import load_run
from gramian.deep.runs.video import CHANNEL_COLOURS, MINATAR_CELL, record
from tests.deep.trained import train_small


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    games = {
        "cartpole": {"cartpole": {"max_episode_steps": 60}},
        "minatar/breakout": {"minatar": {"max_episode_steps": 100}},
        "pong": {"atari": {"max_episode_frames": 400, "noop_max": 30, "sticky_probability": 0.25}},
    }
    return {
        name: train_small(root / name, [name], frames=800 if name == "pong" else 200, **environment)[0]
        for name, environment in games.items()
    }


@pytest.fixture
def copied(folders, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(folders["cartpole"].parent, out)
    return out / folders["cartpole"].name


def facts(games):
    return [(game.episode, game.raw_return, game.length_agent_steps, game.truncated, game.seed) for game in games]


def played_alone(run, number, epsilon, seed):
    """Game ``number`` of an evaluation by the shortest way: one emulator, one observation at a time."""
    engine = make_games(run.spec.game, 1, run.config.settings.environment)
    start = int(bits(run.spec.seed, Stream.EVALUATE, seed, number) >> np.uint64(33))
    frames = list(engine.start(np.arange(1), np.array([start])))
    total, length, over = 0.0, 0, False
    while not over and length < engine.max_episode_steps:
        last = frames[-engine.observation.stack :]
        missing = [np.zeros_like(last[0])] * (engine.observation.stack - len(last))
        observation = np.stack([*missing, *last]).reshape(run.observation.shape)
        draw = bits(run.spec.seed, Stream.EVALUATE, seed, number, length)
        random = float(draw >> np.uint64(11)) * 2.0**-53 < epsilon
        action = int(draw >> np.uint64(1)) % run.actions if random else run.act(observation)
        engine.send(np.array([action]))
        outcome = engine.recv()
        frames.append(outcome.frames[0].copy())
        total, length, over = total + float(outcome.rewards[0]), length + 1, bool(outcome.terminated[0])
    return number, total, length, not over, start


@pytest.mark.parametrize("name", ["cartpole", "minatar/breakout", "pong"])
def test_every_game_is_played_whole_as_if_it_were_the_only_one(folders, name, monkeypatch):
    run = load_run(folders[name])

    def whimsical(observations):  # a policy that every number of an observation sways
        numbers = (torch.as_tensor(observations).double() * 100).long().flatten(1)
        chosen = (numbers * torch.arange(1, numbers.shape[1] + 1)).sum(1) % 1009 % run.actions
        return torch.nn.functional.one_hot(chosen, run.actions)

    monkeypatch.setattr(run, "q_values", whimsical)
    games = evaluate(run, 5, epsilon=0.2, seed=3, at_once=3)
    assert facts(games) == [played_alone(run, number, 0.2, 3) for number in range(5)]


def test_the_games_do_not_depend_on_how_many_are_played_at_once(folders):
    run = load_run(folders["cartpole"])
    together = facts(evaluate(run, 12, epsilon=0.5, at_once=12))
    assert (
        together == facts(evaluate(run, 12, epsilon=0.5, at_once=1)) == facts(evaluate(run, 12, epsilon=0.5, at_once=5))
    )
    assert together[:7] == facts(evaluate(run, 7, epsilon=0.5))


def test_the_set_of_games_is_fixed_by_the_seed_and_none_is_one_of_the_training(folders):
    # With several games at once the first ones to end are the short ones; the set of games is fixed all the same.
    run = load_run(folders["minatar/breakout"])
    several = evaluate(run, 40, epsilon=1.0, at_once=20)
    assert [game.episode for game in several] == list(range(40))
    seeds = [{game.seed for game in games} for games in (several, evaluate(run, 40, seed=1))]
    training = (bits(run.spec.seed, Stream.EPISODE, 0, np.arange(1000)) >> np.uint64(33)).tolist()
    assert len(seeds[0] | seeds[1]) == 80
    assert not (seeds[0] | seeds[1]) & set(training)


def test_returns_are_raw_whatever_the_learner_saw(tmp_path):
    (folder,) = train_small(tmp_path / "out", ["seaquest"], frames=800, atari={"max_episode_frames": 2000})
    run = load_run(folder)
    assert run.config.settings.clip_rewards
    games = evaluate(run, 3, epsilon=1.0)
    assert max(game.raw_return for game in games) >= 20  # a hit counts 20
    assert all(game.raw_return % 20 == 0 for game in games)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pong", EnvironmentOptions(atari=AtariOptions(stack=2))),
        ("pong", EnvironmentOptions(atari=AtariOptions(full_actions=True))),
        ("minatar/breakout", EnvironmentOptions(minatar=MinAtarOptions(full_actions=False))),
    ],
)
def test_settings_that_change_what_the_run_sees_or_does_are_refused(folders, name, options):
    with pytest.raises(UserError, match="leave the stack and the set of actions as they were"):
        evaluate(load_run(folders[name]), 1, options=options)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"episodes": 0}, "episodes is 0; it must be at least 1"),
        ({"at_once": 0}, "at_once is 0; it must be at least 1"),
        ({"epsilon": float("nan")}, "epsilon is nan; it must be between 0 and 1"),
        ({"seed": -1}, "seed is -1; it must be a whole number from 0"),
    ],
)
def test_bad_numbers_are_refused(folders, values, complaint):
    with pytest.raises(UserError, match=complaint):
        evaluate(load_run(folders["cartpole"]), **values)


def test_weights_that_are_not_finite_do_not_play(copied):
    copied = copied.rename(copied.parent.parent / "run")
    (path,) = (copied / "checkpoints").iterdir()
    tensors = load_file(path)
    save_file(tensors | {"online.head.bias": torch.full((1, 2), torch.nan)}, path)
    with pytest.raises(UserError, match="are not finite: it diverged"):
        evaluate(load_run(copied))


def test_the_command_shows_and_writes_every_return(copied, capsys):
    assert main(["evaluate", str(copied), "--episodes", "4", "--epsilon", "0.1", "--seed", "2"]) == 0
    captured = capsys.readouterr()
    rows = list(csv.DictReader((copied / "evaluation.csv").open()))
    returns = [float(row["raw_return"]) for row in rows]
    assert [fact[:4] for fact in facts(evaluate(load_run(copied), 4, epsilon=0.1, seed=2))] == [
        (int(row["episode"]), value, int(row["length_agent_steps"]), row["truncated"] == "1")
        for row, value in zip(rows, returns, strict=True)
    ]
    assert {(row["agent_steps"], row["epsilon"], row["seed"]) for row in rows} == {("200", "0.1", "2")}
    error = np.std(returns, ddof=1) / 2
    assert f"mean {np.mean(returns):.2f} ± {error:.2f}, median {np.median(returns):.2f}" in captured.out
    assert f"min {min(returns):.2f}, max {max(returns):.2f}" in captured.out
    assert "4 of 4 games (100%)" in captured.err


def test_the_command_plays_with_the_settings_of_the_run_unless_they_are_overridden(copied):
    def played(*options):
        assert main(["evaluate", str(copied), "--episodes", "5", "--epsilon", "0", *options]) == 0
        rows = csv.DictReader((copied / "evaluation.csv").open())
        return {(int(row["length_agent_steps"]), row["truncated"]) for row in rows}

    assert max(length for length, _ in played()) <= 60
    assert played("--cartpole.max-episode-steps", "4") == {(4, "1")}


def test_the_table_and_a_video_of_the_first_game_go_where_they_are_asked_for(copied, tmp_path, capsys):
    out, video = tmp_path / "new" / "place", tmp_path / "videos" / "first.gif"
    assert main(["evaluate", "--out", str(out), str(copied), "--episodes", "2", "--record", str(video)]) == 0
    assert Image.open(video).format == "GIF"
    assert "video of game 0" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["evaluation.csv"]
    assert not (copied / "evaluation.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--record", "game.avi"], "unknown kind of video '.avi'; choose from .gif, .mp4"),
        (["--record", "game"], "unknown kind of video 'game'; choose from .gif, .mp4"),
        (["--episodes", "0", "--out", "new"], "episodes is 0; it must be at least 1"),
        (["--epsilon", "2", "--out", "new", "--record", "new/a.gif"], "epsilon is 2.0; it must be between 0 and 1"),
        (["--out", "config.toml"], "cannot write to folder 'config.toml': it is a file"),
        (["--device", "tpu"], "device"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing_behind(copied, monkeypatch, capsys, arguments, complaint):
    monkeypatch.chdir(copied)
    before = sorted(Path().rglob("*"))
    assert main(["evaluate", ".", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert complaint in line
    assert sorted(Path().rglob("*")) == before


def test_a_missing_writer_of_videos_is_named_with_its_extra(copied, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main(["evaluate", str(copied), "--record", "a.mp4"]) == 2
    assert "'.mp4' videos need the package 'imageio_ffmpeg'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "size"), [("cartpole", (480, 240)), ("minatar/breakout", (320, 320)), ("pong", (480, 630))]
)
def test_a_video_shows_the_whole_game(folders, tmp_path, name, size):
    run = load_run(folders[name])
    game = evaluate(run, 1, epsilon=0.5)[0]
    pictures = game.length_agent_steps + 1
    assert record(run, game, tmp_path / "game.gif") == pictures
    with Image.open(tmp_path / "game.gif") as video:
        assert video.size == size
        assert 1 < video.n_frames <= pictures  # pictures that do not change are joined
        shown_ms = 0
        for number in range(video.n_frames):
            video.seek(number)
            shown_ms += video.info["duration"]
    assert shown_ms == {"cartpole": 20, "minatar/breakout": 100, "pong": 70}[name] * pictures
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    record(run, game, tmp_path / "game.mp4")
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "game.mp4"))[0] == pictures
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "game.mp4"))
    assert next(reader)["size"] == size
    reader.close()


def test_the_pictures_of_minatar_colour_the_cells_that_the_agent_sees(folders, tmp_path):
    run = load_run(folders["minatar/breakout"])
    game = evaluate(run, 1)[0]
    record(run, game, tmp_path / "game.gif")
    engine = make_games(run.spec.game, 1, run.config.settings.environment)
    first = engine.start(np.arange(1), np.array([game.seed]))[0]
    picture = np.asarray(Image.open(tmp_path / "game.gif").convert("RGB"))
    middles = picture[MINATAR_CELL // 2 :: MINATAR_CELL, MINATAR_CELL // 2 :: MINATAR_CELL]
    wanted = np.zeros((10, 10, 3), np.uint8)
    for channel, colour in zip(first, CHANNEL_COLOURS, strict=False):
        wanted[channel == 1] = colour
    np.testing.assert_allclose(middles, wanted, atol=3)


def test_atari_in_colour_is_the_same_game(folders):
    options = load_run(folders["pong"]).config.settings.environment.atari
    grey, colour = AtariGames("pong", 1, options, 1), AtariGames("pong", 1, options, 1, colour=True)
    seed = np.array([11])
    assert colour.start(np.arange(1), seed).shape == (1, 210, 160, 3)
    grey.start(np.arange(1), seed)
    actions = np.random.default_rng(0).integers(0, 6, 120)
    seen = []
    for action in actions:
        outcomes = []
        for engine in (grey, colour):
            engine.send(np.array([action]))
            outcomes.append(engine.recv())
        assert outcomes[0].rewards == outcomes[1].rewards
        seen.append([outcome.frames[0].astype(float) for outcome in outcomes])
    # what moves in one moves in the other
    moved = [[bool((a[i] != b[i]).any()) for a, b in pairwise(seen)] for i in range(2)]
    assert np.mean(np.equal(*moved)) > 0.95


def test_a_game_that_comes_out_differently_is_not_recorded(folders, tmp_path):
    run = load_run(folders["cartpole"])
    game = evaluate(run, 1)[0]
    other = type(game)(game.episode, game.raw_return + 1, game.truncated, game.seed, game.taken)
    with pytest.raises(WorkFailed, match="the emulator has changed"):
        record(run, other, tmp_path / "game.gif")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_line_and_exit_code_1(copied, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gramian.cli.evaluate.replace_text", full)
    assert main(["evaluate", str(copied), "--episodes", "1"]) == 1
    captured = capsys.readouterr()
    assert "raw return: mean" in captured.out
    assert captured.err.splitlines()[-1] == "gramian: cannot write what was played: no space left on device"


@pytest.mark.slow
def test_every_game_of_the_paper_has_the_screen_that_is_recorded():
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    sizes = set()
    for title in PAPER_TITLES:
        ale.loadROM(roms.get_rom_path(find_game(title).id))
        sizes.add(ale.getScreenDims())
    assert sizes == {(210, 160)}
