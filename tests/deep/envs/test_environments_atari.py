import ast
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
import torch
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from gramian.core.errors import UserError, WorkFailed
from gramian.core.games import PAPER_TITLES, find_game
from gramian.deep.agent.streams import Stream, bits
from gramian.deep.envs import (
    AtariOptions,
    CartPoleOptions,
    EnvironmentOptions,
    Environments,
    MinAtarOptions,
    Players,
    emulator,
    make_games,
)
from gramian.deep.envs.atari import AtariGames
from gramian.deep.envs.observations import FrameStack
from gramian.deep.training.config import load_preset
from tests.deep.envs.environment_checks import (
    assert_same,
    check_independence,
    check_restore,
    play,
    random_actions,
    snapshot,
)

gymnasium.register_envs(ale_py)
OPEN: list[Environments] = []


def make(*names, seeds=None, each=1, threads=2, **options):
    games = [find_game(name) for name in names]
    seeds = list(range(len(games))) if seeds is None else seeds
    OPEN.append(Environments(games, seeds, each, EnvironmentOptions(atari=AtariOptions(**options)), threads))
    return OPEN[-1]


@pytest.fixture(autouse=True)
def _close_emulators():
    yield
    while OPEN:
        OPEN.pop().close()


def gymnasium_stack(title):
    env = gymnasium.make(
        f"ALE/{title}-v5", frameskip=1, repeat_action_probability=0.0, full_action_space=False, obs_type="rgb"
    )
    env = AtariPreprocessing(
        env, noop_max=0, frame_skip=4, screen_size=84, terminal_on_life_loss=False, grayscale_obs=True
    )
    return FrameStackObservation(env, 4, padding_type="zero")


@pytest.mark.parametrize("title", ["Breakout", "SpaceInvaders", "MsPacman"])
def test_it_plays_as_gymnasium_s_preprocessing_and_stacking_do(title):
    environments = make(title)
    reference = gymnasium_stack(title)
    stack = FrameStack(environments.observation, environments.shape)
    step = environments.reset()
    games, lives, raw_return, reference_return, lost = 0, 0, 0.0, 0.0, 0
    for action in random_actions(environments, 900):
        observation = stack.push(torch.from_numpy(step.frames), torch.from_numpy(step.started))[0, 0].numpy()
        if step.started:
            expected, info = reference.reset(seed=games)
            games, lives = games + 1, info["lives"]
        np.testing.assert_array_equal(observation, expected)
        step = environments.step(action)
        expected, reward, terminated, truncated, info = reference.step(action.item())
        life_lost = info["lives"] < lives and not terminated
        lives = info["lives"]
        assert (step.rewards.item(), step.terminated.item()) == (reward, terminated)
        assert (step.truncated.item(), step.life_lost.item()) == (truncated, life_lost)
        lost += life_lost
        raw_return += step.rewards.item()
        reference_return += reward
    assert games > 1
    assert lost > 1
    assert raw_return == reference_return > 0


class RawGame:
    """The emulator itself, with the preprocessing written out."""

    def __init__(self, id_, seed, sticky, noops=0):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.chance, self.sticky, self.before = random.Random(seed), sticky, ale_py.Action.NOOP
        self.ale.loadROM(roms.get_rom_path(id_))
        self.ale.reset_game()
        for _ in range(noops):
            self.ale.act(0)

    def frame(self, *screens):
        return cv2.resize(np.maximum.reduce(screens), (84, 84), interpolation=cv2.INTER_AREA)

    def first(self):
        return self.frame(self.ale.getScreenGrayscale())

    def step(self, action):
        meaning, reward, screens = self.ale.getMinimalActionSet()[action], 0, []
        for _ in range(4):
            if self.chance.random() >= self.sticky:
                self.before = meaning
            reward += self.ale.act(self.before)
            screens.append(self.ale.getScreenGrayscale())
            if self.ale.game_over():
                break
        return self.frame(*screens[-2:]), reward, self.ale.game_over()


def episode_seed(run_seed, environment, episode):
    return int(bits(run_seed, Stream.EPISODE, environment, episode)) >> 33


def test_with_sticky_actions_each_frame_repeats_the_action_before_with_the_chance_of_the_episode_s_seed():
    environments = make("breakout", seeds=[9], each=2, sticky_probability=0.25)
    step = environments.reset()
    episodes, games = [0, 0], [None, None]
    for actions in random_actions(environments, 500):
        for e in range(2):
            if step.started[0, e]:
                games[e] = RawGame("breakout", episode_seed(9, e, episodes[e]), 0.25)
                np.testing.assert_array_equal(step.frames[0, e], games[e].first())
                episodes[e] += 1
        step = environments.step(actions)
        for e in range(2):
            frame, reward, over = games[e].step(actions[0, e])
            assert (step.rewards[0, e], step.terminated[0, e]) == (reward, over)
            if not over:
                np.testing.assert_array_equal(step.frames[0, e], frame)
    assert min(episodes) > 1


def test_a_game_begins_with_0_to_noop_max_frames_of_no_op():
    starts = [RawGame("pong", 0, 0.0, noops=n).first().tobytes() for n in range(4)]
    assert len(set(starts)) > 1
    environments = make("pong", each=16, noop_max=3)
    seen = {frame.tobytes() for frame in environments.reset().frames[0]}
    assert seen == set(starts)


@pytest.mark.parametrize(("frames", "steps"), [(40, 10), (42, 11)])
def test_the_time_limit_truncates_with_the_frame_that_would_have_been_shown(frames, steps):
    limited, unlimited = make("seaquest", max_episode_frames=frames), make("seaquest")
    first = limited.reset().frames.copy()
    unlimited.reset()
    actions = random_actions(limited, 2 * steps)
    expected = play(unlimited, actions[:steps])
    history = play(limited, actions)
    assert [bool(step["truncated"]) for step in history] == ([False] * (steps - 1) + [True]) * 2
    assert [bool(step["started"]) for step in history] == ([False] * (steps - 1) + [True]) * 2
    assert not any(step["terminated"].any() for step in history)
    np.testing.assert_array_equal(history[steps - 1]["final_frames"][0], expected[-1]["frames"][0, 0])
    np.testing.assert_array_equal(history[steps - 1]["frames"], first)


def test_every_setting_of_the_emulator_that_bears_on_a_game_is_set_explicitly(monkeypatch):
    given = {}

    class Recorder(ale_py.ALEInterface):
        def setInt(self, name, value):  # noqa: N802
            given[name] = value

        setFloat = setBool = setInt  # noqa: N815

    monkeypatch.setattr(emulator.ale_py, "ALEInterface", Recorder)
    emulator.Console("pong", sticky_probability=0.25)
    assert given == {
        "random_seed": 0,
        "frame_skip": 1,
        "max_num_frames_per_episode": 0,
        "repeat_action_probability": 0.0,  # sticky actions are the console's own
        "color_averaging": False,
        "truncate_on_loss_of_life": False,
    }


def test_games_with_different_action_counts_share_a_population_and_play_as_if_alone():
    names, seeds = ["pong", "breakout", "seaquest", "pong"], [3, 4, 5, 6]
    together = make(*names, seeds=seeds, each=2, sticky_probability=0.25)
    assert together.actions.tolist() == [6, 4, 18, 6]
    assert make("pong", full_actions=True).actions.tolist() == [18]
    together.reset()
    actions = random_actions(together, 80)
    history = play(together, actions)
    for run, (name, seed) in enumerate(zip(names, seeds, strict=True)):
        alone = make(name, seeds=[seed], each=2, sticky_probability=0.25)
        alone.reset()
        for mine, whole in zip(play(alone, actions[:, run : run + 1]), history, strict=True):
            np.testing.assert_array_equal(mine["frames"][0], whole["frames"][run])
            np.testing.assert_array_equal(mine["rewards"][0], whole["rewards"][run])


OF_THE_CODE = {"fire_reset": True, "noop_after_life_loss": True, "clear_stack_after_life_loss": True}


class CitedGame(RawGame):
    """The rules of DQN-decor's code, written out: what is seen ``[4, 84, 84]``, rewards, lives and ends."""

    def __init__(self, id_, fire):
        super().__init__(id_, 0, 0.0)
        self.id = id_
        self.fire = fire and ale_py.Action.FIRE in self.ale.getMinimalActionSet()

    def begin(self):
        self.ale.loadROM(roms.get_rom_path(self.id))  # so that nothing of the game before is left
        self.ale.reset_game()
        frame = self.first()
        for action in (1, 2) if self.fire else ():
            frame, _, over = self.step(action)
            assert not over
        self.lives, self.stack = self.ale.lives(), [np.zeros((84, 84))] * 3 + [frame]
        return np.stack(self.stack)

    def act(self, action):
        frame, reward, over = self.step(action)
        lost = not over and 0 < self.ale.lives() < self.lives
        if lost:
            frame, _, _ = self.step(0)
            self.stack = [np.zeros((84, 84))] * 4
        self.lives, self.stack = self.ale.lives(), [*self.stack[1:], frame]
        return np.stack(self.stack), reward, lost, over


@pytest.mark.parametrize("title", ["breakout", "ms_pacman", "seaquest", "qbert"])
def test_the_options_of_preset_author_are_the_rules_of_the_cited_code(title):
    assert {name: getattr(load_preset("author").environment.atari, name) for name in OF_THE_CODE} == OF_THE_CODE
    environments, reference = make(title, **OF_THE_CODE), CitedGame(find_game(title).id, fire=True)
    stack = FrameStack(environments.observation, environments.shape)
    step, losses, games, expected = environments.reset(), 0, 0, None
    for action in random_actions(environments, 1200):
        if step.started:
            games, expected = games + 1, reference.begin()
        seen = stack.push(torch.from_numpy(step.frames), torch.from_numpy(step.cleared))[0, 0].numpy()
        np.testing.assert_array_equal(seen, expected)
        step = environments.step(action)
        expected, *outcome = reference.act(action.item())
        assert outcome == [step.rewards.item(), step.life_lost.item(), step.terminated.item()]
        losses += step.life_lost.item()
    assert min(games, losses) > 1


def test_each_option_of_the_cited_code_changes_what_it_says():
    still = np.zeros((12, 1, 1), np.int64)
    plain, fired, freeway = make("breakout"), make("breakout", fire_reset=True), make("freeway", fire_reset=True)
    frozen = make("freeway")
    for environments in (plain, fired, freeway, frozen):
        environments.reset()
    assert not np.array_equal(play(plain, still)[-1]["frames"], play(fired, still)[-1]["frames"])  # the ball is served
    assert_same(play(freeway, still), play(frozen, still))  # which has no FIRE
    cleared, kept = make("breakout", clear_stack_after_life_loss=True), make("breakout")
    cleared.reset(), kept.reset()
    for action in random_actions(kept, 300):
        first, second = cleared.step(action), kept.step(action)
        assert (second.cleared == second.started).all()
        assert (first.cleared == (second.started | second.life_lost)).all()
        np.testing.assert_array_equal(first.frames, second.frames)


def test_games_that_are_evaluated_clear_their_stacks_as_those_of_a_training():
    games = make_games(find_game("breakout"), 1, EnvironmentOptions(atari=AtariOptions(**OF_THE_CODE)))
    players, reference, lost = Players(games, 1, lambda which: which), CitedGame("breakout", fire=True), 0
    expected = None
    for action in np.random.default_rng(0).integers(0, 4, (200, 1)):
        seen, begun = players.observe()
        expected = reference.begin() if begun[0] else expected
        np.testing.assert_array_equal(seen[0].numpy(), expected)
        players.step(action)
        expected, _, life_lost, _ = reference.act(action.item())
        lost += life_lost
    games.close()
    assert lost


RANDOM = {"sticky_probability": 0.25, "noop_max": 30}


@pytest.mark.parametrize(("before", "options"), [(0, RANDOM), (1, {}), (260, {}), (260, RANDOM), (260, OF_THE_CODE)])
def test_restore_gives_the_same_continuation(before, options):
    history = check_restore(lambda: make("breakout", "pong", **options), before, 300)
    assert any(step["terminated"].any() for step in history)
    assert any(step["life_lost"].any() for step in history)


def test_restore_after_a_step_that_truncated_gives_that_step_again():
    check_restore(lambda: make("breakout", "breakout", max_episode_frames=80), 20, 50)


def test_a_run_s_episodes_do_not_depend_on_the_population():
    options = EnvironmentOptions(atari=AtariOptions(sticky_probability=0.25, noop_max=30))
    check_independence(find_game("breakout"), options, 220)


@pytest.mark.slow
@pytest.mark.parametrize("title", PAPER_TITLES)
def test_every_game_plays_as_in_ale_s_own_vector_environment_whatever_was_played_before(title):
    game = find_game(title).id
    console, frame = emulator.Console(game), np.zeros((84, 84), np.uint8)
    vector = AtariVectorEnv(
        game, 1, stack_num=1, noop_max=0, use_fire_reset=False, reward_clipping=False, repeat_action_probability=0.0
    )
    rng = np.random.default_rng(0)
    console.start(1, 0, frame)
    for action in rng.integers(0, console.actions, 60).tolist():  # leaves its traces in the console's memory
        if console.act(action, frame)[1]:
            break
    console.start(2, 0, frame)
    expected, info = vector.reset(seed=np.array([0]))
    lives = info["lives"][0]
    np.testing.assert_array_equal(frame, expected[0, 0])
    for action in rng.integers(0, console.actions, 120).tolist():
        reward, over, life_lost = console.act(action, frame)
        expected, rewards, terminated, _, info = vector.step(np.array([action]))
        assert (reward, over, life_lost) == (rewards[0], terminated[0], info["lives"][0] < lives)
        lives = info["lives"][0]
        if over:
            break
        np.testing.assert_array_equal(frame, expected[0, 0])


def test_the_greys_are_those_of_the_emulator_for_every_colour(tmp_path):
    # a cartridge that paints line after line in the next of the 128 colours
    program = "78d8a2ff9a a9028500850285028502 a90085008501 a200a000 85028609e8e888d0f7 4c05f0"
    cartridge = tmp_path / "seaquest.bin"  # any game whose beginning is played without a look at the memory
    cartridge.write_bytes(bytes.fromhex(program).ljust(4092, b"\0") + bytes.fromhex("00f000f0"))
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.loadROM(cartridge)
    ale.reset_game()
    ale.act(0)
    screen = ale.getScreen()
    assert set(screen.ravel().tolist()) == set(range(0, 256, 2))
    np.testing.assert_array_equal(emulator.GREYS[screen], ale.getScreenGrayscale())


def random_screens(count):
    """Pairs of screens, some of which share lines or parts of lines with each other and with the pair before."""
    generator = np.random.default_rng(0)
    pairs = generator.integers(0, 256, (count, 2, 210, 160), dtype=np.uint8)
    for pair, before in zip(pairs[1:], pairs, strict=False):
        kept = np.logical_or(generator.random((2, 210, 1)) < generator.random(), generator.random((2, 1, 160)) < 0.3)
        pair[kept] = before[kept]
    pairs[3] = pairs[2]
    pairs[5, 1] = pairs[4, 1]
    pairs[6, 0] = pairs[5, 0]
    pairs[8] = pairs[7]
    pairs[8, 1, 209, 159] ^= 2
    return pairs


def test_frames_shrink_as_opencv_shrinks_them():
    picture, frame = emulator.GreyPicture(), np.zeros((84, 84), np.uint8)
    for pair in random_screens(24):
        picture.screens[:] = pair
        picture.show(frame)
        grey = emulator.GREYS[pair].max(axis=0)
        np.testing.assert_array_equal(frame, cv2.resize(grey, (84, 84), interpolation=cv2.INTER_AREA))


@pytest.mark.parametrize(("frame_skip", "colour"), [(1, False), (2, False), (3, False), (5, False), (4, True)])
def test_a_frame_is_the_brighter_of_the_last_two_screens_of_its_skip_or_the_last_of_the_game(frame_skip, colour):
    console = emulator.Console("breakout", frame_skip=frame_skip, colour=colour)
    frame = np.zeros((210, 160, 3) if colour else (84, 84), np.uint8)
    raw = RawGame("breakout", 0, 0.0)
    look = raw.ale.getScreenRGB if colour else raw.ale.getScreenGrayscale
    show = (lambda *screens: np.maximum.reduce(screens)) if colour else raw.frame
    first, over, rng = show(look()), False, np.random.default_rng(0)
    console.start(0, 0, frame)
    np.testing.assert_array_equal(frame, first)
    while not over:
        action, screens = int(rng.integers(console.actions)), []
        while len(screens) < frame_skip and not raw.ale.game_over():
            raw.ale.act(raw.ale.getMinimalActionSet()[action])
            screens.append(look())
        _, over, _ = console.act(action, frame)
        np.testing.assert_array_equal(frame, show(*(screens[frame_skip - 2 :] or screens[-1:])))
    console.start(1, 0, frame)
    np.testing.assert_array_equal(frame, first)


def test_an_emulator_s_process_needs_neither_torch_nor_the_rest_of_the_package():
    program = f"import runpy, sys; runpy.run_path({emulator.__file__!r}); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "numba", "gramian"} & {name.split(".")[0] for name in ast.literal_eval(out)}


def two_games(**way):
    """A population of two games, as told."""
    options = EnvironmentOptions(atari=AtariOptions(sticky_probability=0.25, noop_max=30))
    games = [find_game("breakout"), find_game("pong")]
    OPEN.append(Environments(games, [3, 4], 2, options, **{"threads": 2, **way}))
    return OPEN[-1]


@pytest.mark.parametrize("way", [{"spin_s": 0.002}, {"here": True}, {"parts": 2, "threads": 3, "spin_s": 1e-9}])
def test_the_games_are_the_same_however_they_are_played(way):
    plain, other = two_games(), two_games(**way)
    histories = []
    for environments in (plain, other):
        first = snapshot(environments.reset())
        histories.append([first, *play(environments, random_actions(environments, 250))])
    assert any(step["started"].any() for step in histories[0][1:])
    assert_same(*histories)


def test_what_is_played_here_starts_no_process_and_goes_on_where_it_was_saved(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    check_restore(lambda: two_games(parts=2, here=True), before=40, after=30)


@pytest.mark.parametrize("processes", [0, 1])
def test_no_order_is_carried_out_twice(processes):
    games = AtariGames("pong", 1, AtariOptions(), processes)
    games.start(np.arange(1), np.arange(1))
    with pytest.raises(RuntimeError, match="have no order"):
        games.recv()
    games.close()


@pytest.mark.parametrize("spin_s", [-0.001, float("nan"), float("inf")])
def test_a_time_to_spin_that_is_none_is_refused(spin_s):
    with pytest.raises(UserError, match=f"spin_s is {spin_s:g}; it must be a finite number of seconds"):
        Environments([find_game("cartpole")], [0], spin_s=spin_s)


SPINS = [0.0, 1e-9, 60.0]
"""Never, over at once, and longer than any wait."""


@pytest.mark.parametrize("spin_s", SPINS)
def test_a_byte_that_comes_late_and_the_end_of_a_pipe_are_noticed(spin_s):
    out, into = os.pipe()
    for work, expected in ((lambda: os.write(into, b"ab"), b"a"), (lambda: None, b"b"), (lambda: os.close(into), b"")):
        later = threading.Timer(0.05, work)
        later.start()
        assert emulator.read_byte(out, spin_s) == expected
        later.join()
    assert emulator.read_byte(out, spin_s) == b""
    os.close(out)


@pytest.mark.parametrize("spin_s", SPINS)
def test_ctrl_c_ends_a_wait(spin_s):
    program = f"""
import os, runpy
read_byte = runpy.run_path({emulator.__file__!r})["read_byte"]
out, into = os.pipe()
print("waiting", flush=True)
read_byte(out, {spin_s})
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=-1, stderr=-1, text=True)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]


@pytest.mark.parametrize("spin_s", [0.0, 60.0])
def test_an_emulator_ends_in_silence_when_the_process_that_gives_the_orders_is_killed(tmp_path, spin_s):
    program = f"""
import os, signal
import numpy as np
from gramian.deep.envs import AtariOptions
from gramian.deep.envs.atari import AtariGames
games = AtariGames("pong", 2, AtariOptions(), 2, spin_s={spin_s})
open({str(tmp_path / "pids")!r}, "w").write(" ".join(str(player.process.pid) for player in games._players))
games.start(np.arange(2), np.arange(2))
games.send(np.arange(2))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], stderr=-1, check=False).stderr == b""
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    deadline = time.monotonic() + 30
    while any(running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(running(pid) for pid in pids)


def running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("spin_s", SPINS)
def test_an_emulator_that_is_killed_is_named_and_no_wait_for_ever(spin_s):
    games = AtariGames("pong", 2, AtariOptions(), 2, spin_s=spin_s)
    games.start(np.arange(2), np.arange(2))
    process = games._players[1].process
    process.send_signal(signal.SIGSTOP)
    games.send(np.zeros(2, np.int64))
    later = threading.Timer(0.05, process.kill)
    later.start()
    said = rf"emulator process {process.pid} \(pong\) ended by itself \(exit code -9\)"
    with pytest.raises(WorkFailed, match=said):
        games.recv()
    later.join()
    with pytest.raises(WorkFailed, match=said):  # and a second try does not wait for ever
        games.start(np.arange(2), np.arange(2))
    games.close()


def test_the_first_order_waits_for_processes_that_are_still_starting():
    environments = make("pong", "breakout", threads=2)
    players = [player for group in environments._groups for player in group.games._players]
    players[0].process.send_signal(signal.SIGSTOP)
    threading.Timer(0.2, players[0].process.send_signal, [signal.SIGCONT]).start()
    frames = environments.reset().frames.copy()
    np.testing.assert_array_equal(frames, make("pong", "breakout", threads=2).reset().frames)


@pytest.mark.parametrize(
    ("kind", "option", "value", "right"),
    [
        *((AtariOptions, name, 0, "at least 1") for name in ("frame_skip", "stack", "max_episode_frames")),
        (AtariOptions, "noop_max", -1, "at least 0"),
        (AtariOptions, "sticky_probability", -0.1, r"in \[0, 1\)"),
        (MinAtarOptions, "sticky_probability", 1.5, r"in \[0, 1\)"),
        (MinAtarOptions, "max_episode_steps", 0, "at least 1"),
        (CartPoleOptions, "max_episode_steps", 0, "at least 1"),
    ],
)
def test_options_outside_their_range_are_errors(kind, option, value, right):
    with pytest.raises(UserError, match=f"{option} is {value}; it must be {right}"):
        kind(**{option: value})
