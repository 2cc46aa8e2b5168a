"""The benchmark of training, and what its contestants share: games, network, update ratio."""

import csv
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("ale_py")
pytest.importorskip("minatar")

from benchmarks import contestants, training, workers
from benchmarks.contestants import CONTESTANTS, Workload, beyond_sb3, missing
from benchmarks.peer_games import MinAtarRules, make_game
from benchmarks.workers import Measurement, Worker
from gramian.core.arms import Arm
from gramian.core.errors import WorkFailed
from gramian.core.games import find_game
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec, forward
from gramian.deep.envs import Environments, make_games
from gramian.deep.envs.options import EnvironmentOptions
from gramian.deep.training.config import load_preset

QUICK = [
    *("--capacity", "64", "--seconds", "0.1", "--repeats", "2", "--warm-up", "0.01"),
    *("--calibration", "0.05", "--threads", "1"),
]
OF_THE_CODE = ("fire_reset", "noop_after_life_loss", "clear_stack_after_life_loss")
ATARI = {"game": "breakout", "preset": "nature"}


def tiny(contestant="gramian", **changes):
    """A workload that takes a moment."""
    values = {"game": "minatar/breakout", "preset": "minatar", "runs": 1, "envs_per_run": 1, "capacity": 64}
    values |= {"prefill_agent_steps": 64, "device": "cpu", "warm_up_s": 0.0}
    return Workload(contestant, **(values | changes))


@pytest.mark.slow
@pytest.mark.parametrize(("game", "most"), [("minatar/breakout", "2"), ("breakout", "1")])
def test_all_contestants_end_to_end(tmp_path, capsys, game, most):
    pytest.importorskip("stable_baselines3")
    populations = list(dict.fromkeys(["1", most]))
    assert training.main([*QUICK, "--populations", *populations, "--game", game, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "training.md").read_text()
    assert page == capsys.readouterr().out
    assert f"| gramian | {most} | 1 | " in page
    rows = list(csv.DictReader((tmp_path / "training.csv").read_text().splitlines()))
    assert {row["contestant"] for row in rows} == set(CONTESTANTS)
    assert {row["processes"] for row in rows if row["contestant"] == "sb3"} == set(populations)
    assert all(int(row["agent_steps"]) > 0 and int(row["peak_rss_bytes"]) > 1e8 for row in rows)


def row(contestant, rates, runs=1):
    repeats = [Measurement(rate, rate // 4, 1.0, 0.5, 1, 2_000_000_000, 0) for rate in rates]
    return training.Row(contestant, runs, [None], repeats=repeats)


def test_a_ratio_is_taken_within_a_repeat():
    page = training.page_table([row("sb3", [100, 200, 400]), row("gramian", [200, 500, 400])])
    assert "| gramian | 1 | 1 | 400 (200–500) | 2.00 (1.00–2.50) | 1,250 | 4.00 | 2.00 GB |" in page


REFUSED = [
    (["--game", "brekout"], "did you mean 'breakout'?"),
    (["--game", "cartpole"], "choose a game of Atari or MinAtar"),
    (["--repeats", "0"], "give a whole number from 1"),
    (["--populations", "0"], "argument --populations: it is '0'"),
    (["--threads", "100000"], "give a whole number from 1 to "),
    (["--seconds", "-1"], "argument --seconds: it is '-1'; give seconds"),
    (["--seconds", "inf"], "it is 'inf'; give seconds"),
    (["--preset", "nosuch"], "unknown preset 'nosuch'"),
    (["--preset", "author"], "preset 'author' is for games of atari, not of minatar"),
    (["--capacity", "1"], "--capacity must be more than 1"),
    (["--capacity", "8", "--envs-per-run", "8"], "--capacity must be more than 8"),
    (["--prefill", "1", "--envs-per-run", "2"], "--prefill must be at least 2"),
    (["--capacity", "100000000000"], "lower --capacity"),
    (["--device", "cuda"], "no GPU is there"),
    (
        ["--game", "breakout", "--preset", "dopamine", "--contestants", "sb3", "gramian"],
        "preset 'dopamine' has network dopamine, loss squared, which sb3 does not implement",
    ),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(asked[:2]) for asked, _ in REFUSED])
def test_what_cannot_be_measured_is_one_line_and_exit_code_2(arguments, words, capsys, monkeypatch):
    pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    try:
        code = training.main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("benchmarks.training: ")
    assert words in line
    assert captured.out == ""


@pytest.mark.parametrize(
    ("preset", "kind", "changes", "odd"),
    [
        ("author", "atari", {}, [f"{name} true" for name in OF_THE_CODE]),
        ("nature", "atari", {}, []),
        ("minatar", "minatar", {}, []),
        ("nature", "atari", {"network": "nature"}, []),
        ("nature", "atari", {"n_step": 3, "double_q": True}, ["n_step 3", "double_q true"]),
        ("nature", "atari", {"weight_decay": 0.1, "max_grad_norm": 9.0}, ["weight_decay 0.1", "max_grad_norm 9.0"]),
        ("smoke", "minatar", {}, ["clip_rewards true"]),
        ("smoke", "atari", {}, []),
    ],
)
def test_what_stable_baselines_does_not_implement_is_named(preset, kind, changes, odd):
    assert beyond_sb3(replace(load_preset(preset), **changes), kind) == odd


def test_contestants_that_cannot_be_imported_are_skipped_and_named(monkeypatch, capsys):
    absent = ("stable_baselines3", "cv2")
    monkeypatch.setattr(contestants, "find_spec", lambda name: None if name in absent else name)
    assert missing("sb3", "atari") == "stable_baselines3 and cv2 cannot be imported here"
    options = training.parsed(["--populations", "1", "4"])
    assert ("gramian", 4) in training.planned(options)
    assert capsys.readouterr().err.count("skipped: Stable-Baselines3:") == 1


def test_a_process_that_dies_is_reported_with_its_last_words():
    with Worker(tiny("emulator", preset="nosuchpreset")) as worker, pytest.raises(WorkFailed, match="nosuchpreset"):
        worker.wait()


def test_a_process_of_an_emulator_never_touches_the_gpu():
    with Worker(tiny("emulator", device="cuda")) as worker:
        worker.wait()
        worker.send(0.01, 1)
        assert worker.receive().agent_steps > 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_memory_and_time_of_the_processes_that_a_process_starts_are_counted():
    code = (
        "import sys; x = bytearray(b'x' * (64 << 20)); print(len(x), flush=True); sum(range(10**7)); sys.stdin.read()"
    )
    before, cpu = workers.rss_bytes()[0], workers.cpu_seconds()
    with workers.subprocess.Popen([workers.sys.executable, "-c", code], stdin=-1, stdout=-1) as process:
        process.stdout.readline()
        assert workers.rss_bytes()[0] > before + (64 << 20)
        deadline = time.monotonic() + 20
        while workers.cpu_seconds() - cpu < 0.1:
            assert time.monotonic() < deadline
        assert Path(f"/proc/{process.pid}") in list(workers.family(os.getpid()))
        process.communicate()
    assert workers.rss_bytes()[0] < before + (60 << 20)


def play(env, actions):
    """Observation, reward, end of each step; a new episode where one ends."""
    env.reset()
    for action in actions:
        seen, reward, terminated, truncated, _ = env.step(action)
        yield seen, reward, terminated
        if terminated or truncated:
            env.reset()


def test_peers_see_the_same_atari_as_the_package():
    pytest.importorskip("cv2")
    settings = replace(tiny(**ATARI).settings, environment=EnvironmentOptions())
    actions = np.random.default_rng(0).integers(0, 4, 400)
    ours = Environments([find_game("breakout")], [0], 1, settings.environment)
    ours.reset()
    lives_lost = 0
    try:
        for action, peer in zip(actions, play(make_game("breakout", settings, seed=0), actions), strict=True):
            step = ours.step(np.array([[action]]))
            lives_lost += step.life_lost.item()
            if step.terminated.item():  # games start anew in their own ways
                break
            np.testing.assert_array_equal(peer[0][-1], step.frames[0, 0])
            assert peer[1] == np.sign(step.rewards).item()
            assert peer[2] == step.life_lost.item()
    finally:
        ours.close()
    assert lives_lost > 2


def test_a_lost_life_does_not_end_the_game():
    pytest.importorskip("cv2")
    settings = replace(tiny(**ATARI).settings, environment=EnvironmentOptions())
    env = make_game("breakout", settings, seed=0)
    env.reset()
    terminated = False
    random = np.random.default_rng(0)
    while not terminated:
        before, _, terminated, _, info = env.step(random.integers(4))
    after, _ = env.reset()
    assert info["lives"] == 4
    np.testing.assert_array_equal(before, after)
    assert env.step(np.int64(0))[4]["lives"] == 4


@pytest.mark.parametrize("game", ["minatar/breakout", "minatar/seaquest"])
def test_peers_play_the_same_minatar_as_the_package(game):
    options = tiny(game=game).settings.environment
    ours = make_games(find_game(game), 1, options)
    peer = MinAtarRules(find_game(game), options.minatar, seed=5)
    np.testing.assert_array_equal(peer.reset()[0], ours.start(np.array([0]), np.array([5]))[0])
    over = False
    random = np.random.default_rng(0)
    while not over:
        action = random.integers(6)
        ours.send(np.array([action]))
        outcome = ours.recv()
        seen, reward, over, _, _ = peer.step(action)
        np.testing.assert_array_equal(seen, outcome.frames[0])
        assert (reward, over) == (outcome.rewards[0], outcome.terminated[0])


@pytest.mark.slow
@pytest.mark.parametrize(("where", "kind"), [(ATARI, "nature"), ({}, "minatar")], ids=["atari", "minatar"])
def test_stable_baselines_has_the_packages_network(where, kind):
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("cv2")
    work = tiny("sb3", **where)
    model = CONTESTANTS["sb3"].make(work).model
    space, actions = model.env.observation_space, int(model.env.action_space.n)
    spec = NetworkSpec(kind, space.shape, actions, work.settings.features_dim)
    learner = Learner(spec, LearnerConfig(), [0], [Arm("dqn")])
    parameters = learner.layout.views(learner.state.online)
    own = list(model.q_net.parameters())
    assert [tuple(p.shape) for p in own] == [tuple(p.shape[1:]) for p in parameters.values()]
    pictures = np.random.default_rng(0).integers(0, int(space.high.max()) + 1, (4, *space.shape), np.uint8)
    with torch.no_grad():
        for mine, theirs in zip(own, parameters.values(), strict=True):
            mine.copy_(theirs[0])
        seen = torch.from_numpy(pictures)
        expected = forward(learner.spec, parameters, seen[None]).values[0]
        torch.testing.assert_close(model.q_net(seen), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sb3", "gramian"])
def test_every_learner_updates_once_in_four_steps_and_not_in_the_prefill(name):
    if name == "sb3":
        pytest.importorskip("stable_baselines3")
    contestant = CONTESTANTS[name].make(tiny(name))
    contestant.fill()
    assert contestant.updates() == 0
    steps = sum(contestant.run(0.0) for _ in range(12))
    # the last steps of each stretch may be left without their update
    assert steps // 5 <= contestant.updates() <= steps // 4
