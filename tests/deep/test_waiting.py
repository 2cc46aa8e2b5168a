"""How the processes of an Atari engine wait for each other: awake, asleep, and in turn where cores are few."""

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from gramian.cli import main
from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.deep.agent.arms import Arm
from gramian.deep.envs import AtariOptions, EnvironmentOptions, Environments, emulator
from gramian.deep.envs.atari import AtariEngine
from gramian.deep.training import trainer
from gramian.deep.training.config import Config, load_preset, population
from tests.deep.environment_checks import check_restore, play, random_actions

ASLEEP, AWAKE = 1e-9, 60.0
"""Patience that is lost at once, and patience that is never lost."""


@pytest.fixture
def pipe():
    out, into = os.pipe()
    yield out, into
    os.close(out)
    os.close(into)


class Scene:
    """A waiter for one pipe. A byte comes at its second look, unless its core is lost there, or when it sleeps."""

    def __init__(self, pipe, monkeypatch, patience_s=AWAKE):
        monkeypatch.setattr(emulator.select, "poll", lambda: self)  # it is the waiter's alarm
        self.out, self.into = pipe
        self.lost = 0
        self.waiter = emulator.Waiter([self.out], patience_s, self.count)

    def register(self, *_):
        pass

    def poll(self):
        os.write(self.into, b"a")

    def count(self):
        self.counted += 1
        if self.counted == 2:
            self.lost += self.wanted
            if not self.wanted:
                os.write(self.into, b"a")
        return self.lost

    def wait(self, wanted=False):
        """Whether the waiter tried to stay awake, while others want its core or not."""
        self.counted, self.wanted = 0, wanted
        assert self.waiter.wait(self.out) == b"a"
        return self.counted > 0

    def rest(self):
        """The waits until it tries again."""
        waits = 0
        while not self.wait():
            waits += 1
        return waits


def test_without_patience_a_pipe_is_read_as_it_is(pipe):
    out, into = pipe
    waiter = emulator.Waiter([out], 0.0, cores_lost=lambda: pytest.fail("there is nothing to count"))
    assert os.get_blocking(out)
    os.write(into, b"ab")
    assert [waiter.wait(out), waiter.wait(out)] == [b"a", b"b"]


def test_a_byte_that_is_there_is_taken_without_a_wait(pipe):
    out, into = pipe
    waiter = emulator.Waiter([out], AWAKE, cores_lost=lambda: pytest.fail("there is nothing to wait for"))
    os.write(into, b"ab")
    assert [waiter.wait(out), waiter.wait(out)] == [b"a", b"b"]


def test_the_cores_that_a_thread_has_lost_are_counted(monkeypatch):
    assert 0 <= emulator.cores_lost() <= emulator.cores_lost()
    lost = {emulator.resource.RUSAGE_THREAD: 7}
    monkeypatch.setattr(emulator.resource, "getrusage", lambda who: SimpleNamespace(ru_nivcsw=lost[who]))
    assert emulator.cores_lost() == 7


def test_who_is_not_disturbed_stays_awake(pipe, monkeypatch):
    scene = Scene(pipe, monkeypatch)
    assert all(scene.wait() for _ in range(100))


def test_who_is_always_disturbed_rests_for_twice_as_long_each_time_and_never_longer_than_the_longest_rest(
    pipe, monkeypatch
):
    scene = Scene(pipe, monkeypatch)
    tries = [number for number in range(20_000) if scene.wait(wanted=True)]
    rests = (np.diff(tries) - 1).tolist()
    assert rests[:13] == [2**doublings for doublings in range(13)]
    assert set(rests[12:]) == {emulator.LONGEST_REST}


def test_who_is_disturbed_no_more_soon_stays_awake_and_its_rests_are_short_again(pipe, monkeypatch):
    scene = Scene(pipe, monkeypatch)
    for _ in range(6):
        scene.rest()
        scene.wait(wanted=True)
    assert scene.rest() > 8
    assert all(scene.wait() for _ in range(100))
    assert scene.wait(wanted=True)
    assert scene.rest() == 1


@pytest.mark.parametrize(("period", "least", "most"), [(40, 0.9, 1.0), (3, 0.0, 0.1), (2, 0.0, 0.1)])
def test_who_is_rarely_disturbed_hardly_rests_and_who_often_is_hardly_tries(pipe, monkeypatch, period, least, most):
    scene, tries = Scene(pipe, monkeypatch), 0
    for _ in range(10_000):
        tries += scene.wait(wanted=tries % period == 0)
    assert least <= tries / 10_000 <= most


def test_the_core_is_offered_before_every_look(pipe, monkeypatch):
    scene, offers = Scene(pipe, monkeypatch), []
    monkeypatch.setattr(emulator.os, "sched_yield", lambda: offers.append(scene.counted))
    assert scene.wait()
    assert offers == [1, 2]  # the byte comes after the first look


def test_a_core_that_is_lost_counts_though_the_byte_came(pipe, monkeypatch):
    scene = Scene(pipe, monkeypatch)
    monkeypatch.setattr(emulator.os, "sched_yield", lambda: os.write(scene.into, b"a"))
    assert scene.wait(wanted=True)
    assert scene.rest() == 1


def test_who_waits_in_vain_sleeps_through_a_few_waits_and_never_more(pipe, monkeypatch):
    scene = Scene(pipe, monkeypatch, patience_s=ASLEEP)
    tries = [number for number in range(70) if scene.wait()]
    assert tries == list(range(0, 70, emulator.SHORT_REST + 1))


@pytest.mark.parametrize("waits", [1, 5, 12])
def test_each_wait_that_is_not_disturbed_makes_the_next_rest_an_eighth_shorter(pipe, monkeypatch, waits):
    scene = Scene(pipe, monkeypatch)
    while scene.waiter._rest < emulator.LONGEST_REST:
        scene.wait(wanted=True)
    scene.rest()  # which ends with the first of them
    assert all(scene.wait() for _ in range(waits - 1))
    assert scene.wait(wanted=True)
    assert scene.rest() == int(emulator.LONGEST_REST * (7 / 8) ** waits)


def test_waits_in_vain_make_the_rest_after_a_disturbance_neither_longer_nor_shorter(pipe, monkeypatch):
    scene, rests = Scene(pipe, monkeypatch), []
    for in_vain in (0, 5):
        scene.waiter._waits_asleep, scene.waiter._rest = 0, 64.0
        scene.waiter._patience_s = ASLEEP
        for _ in range(in_vain * (emulator.SHORT_REST + 1)):
            scene.wait()
        scene.waiter._patience_s = AWAKE
        assert scene.wait(wanted=True)
        rests.append(scene.rest())
    assert rests == [64, 64]


@pytest.mark.parametrize("patience_s", [0.0, ASLEEP, AWAKE])
def test_a_byte_that_comes_late_is_received_awake_and_asleep(pipe, patience_s):
    out, into = pipe
    waiter = emulator.Waiter([out], patience_s, cores_lost=lambda: 0)
    later = threading.Timer(0.05, os.write, (into, b"a"))
    later.start()
    assert waiter.wait(out) == b"a"
    later.join()


@pytest.mark.parametrize("patience_s", [0.0, ASLEEP, AWAKE])
def test_the_end_of_a_pipe_is_noticed_awake_and_asleep(patience_s):
    out, into = os.pipe()
    waiter = emulator.Waiter([out], patience_s, cores_lost=lambda: 0)
    later = threading.Timer(0.05, os.close, (into,))
    later.start()
    assert waiter.wait(out) == b""
    later.join()
    assert waiter.wait(out) == b""
    os.close(out)


@pytest.mark.parametrize("patience_s", [0.0, ASLEEP, AWAKE])
def test_ctrl_c_ends_a_wait_awake_and_asleep(patience_s):
    program = f"""
import os
from gramian.deep.envs.emulator import Waiter
out, into = os.pipe()
waiter = Waiter([out], {patience_s}, cores_lost=lambda: 0)
print("waiting", flush=True)
waiter.wait(out)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]


def test_neither_patience_nor_who_plays_changes_what_happens_in_the_games():
    options = EnvironmentOptions(atari=AtariOptions(sticky_probability=0.25, noop_max=30))
    games, histories = [find_game("breakout"), find_game("pong")], []
    for patience_s, here in ((0.0, False), (0.002, False), (0.0, True)):
        environments = Environments(games, [3, 4], 2, options, threads=2, patience_s=patience_s, here=here)
        try:
            first = environments.reset().frames.copy()
            histories.append([{"frames": first}, *play(environments, random_actions(environments, 250))])
        finally:
            environments.close()
    assert any(step["started"].any() for step in histories[0][1:])
    for mine, *others in zip(*histories, strict=True):
        for name, array in mine.items():
            for theirs in others:
                np.testing.assert_array_equal(array, theirs[name])


@pytest.mark.parametrize("patience_s", [0.0, ASLEEP, AWAKE])
def test_a_process_that_dies_while_it_is_waited_for_is_the_same_error_awake_and_asleep(patience_s):
    engine = AtariEngine("pong", 1, AtariOptions(), 1, patience_s=patience_s)
    try:
        engine.start(np.arange(1), np.arange(1))
        (player,) = engine._players.players
        player.process.send_signal(signal.SIGSTOP)
        engine.send(np.zeros(1, np.int64))
        later = threading.Timer(0.05, player.process.kill)
        later.start()
        with pytest.raises(RuntimeError, match=r"an emulator's process has ended by itself \(exit code -9\)"):
            engine.recv()
        later.join()
    finally:
        engine.close()


@pytest.mark.parametrize("patience_s", [-0.001, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(patience_s):
    complaint = f"patience_s = {patience_s} is no time to stay awake; give a finite number of seconds, 0 or more"
    with pytest.raises(UserError, match=complaint):
        AtariEngine("pong", 1, AtariOptions(), 1, patience_s=patience_s)
    with pytest.raises(UserError, match=complaint):
        Environments([find_game("cartpole")], [0], patience_s=patience_s)


@pytest.mark.parametrize(
    ("device", "runs", "threads", "cores", "patience_s"),
    [
        ("cuda", 3, 0, 4, trainer.PATIENCE_S),
        ("cuda", 3, 4, 16, trainer.PATIENCE_S),
        ("cuda", 3, 0, 3, 0.0),
        ("cuda", 4, 4, 16, 0.0),
        ("cuda", 12, 72, 8, 0.0),
        ("cpu", 3, 4, 16, 0.0),
    ],
)
def test_training_waits_awake_beside_a_gpu_where_everybody_has_a_core(
    monkeypatch, device, runs, threads, cores, patience_s
):
    given = []
    monkeypatch.delenv(trainer.PATIENCE, raising=False)
    monkeypatch.setattr(trainer, "cores", lambda: cores)
    monkeypatch.setattr(trainer, "Environments", lambda *_, **named: given.append(named["patience_s"]))
    config = Config("author", load_preset("author"), population(["pong"], [Arm("dqn")], list(range(runs))))
    trainer.make_environments(config, threads, device)
    trainer.make_environments(config, threads, device, patience_s=0.001)
    assert given == [patience_s, 0.001]
    assert trainer.PATIENCE_S > 0


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
    monkeypatch.setenv(trainer.PATIENCE, asked)
    monkeypatch.setattr(trainer, "cores", lambda: cores)
    monkeypatch.setattr(trainer, "Environments", lambda *_, **named: given.append(named["here"]))
    config = Config("author", load_preset("author"), population(["pong"], [Arm("dqn")], list(range(runs))))
    trainer.make_environments(config, threads, device)
    trainer.make_environments(config, threads, device, patience_s=0.002)
    assert given == [here, False]


@pytest.mark.parametrize(("device", "compiled"), [("cpu", False), ("cuda", True)])
def test_frames_are_compiled_beside_a_gpu(monkeypatch, device, compiled):
    given = []
    monkeypatch.setattr(trainer, "Environments", lambda *_, **named: given.append(named["compiled"]))
    config = Config("author", load_preset("author"), population(["pong"], [Arm("dqn")], [0]))
    trainer.make_environments(config, 0, device)
    assert given == [compiled]


def test_what_is_played_here_starts_no_process(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    environments = Environments([find_game("pong")], [0], 3, here=True)
    environments.reset()
    environments.send(np.zeros((1, 3), np.int64))
    assert environments.recv().frames.any()
    environments.close()


def test_consoles_that_are_played_here_do_nothing_twice():
    engine = AtariEngine("pong", 1, AtariOptions(), 1, here=True)
    engine.start(np.arange(1), np.arange(1))
    with pytest.raises(RuntimeError, match="nobody has told the consoles what to do"):
        engine.recv()
    engine.close()


def test_games_that_are_played_here_go_on_where_they_were_saved():
    def make():
        return Environments([find_game("pong"), find_game("breakout")], [1, 2], 2, parts=2, here=True)

    check_restore(make, before=40, after=30)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("asked", "patience_s"), [("0", 0.0), ("500", 0.0005)])
def test_an_environment_variable_says_otherwise(monkeypatch, device, asked, patience_s):
    monkeypatch.setenv(trainer.PATIENCE, asked)
    config = Config("author", load_preset("author"), population(["pong"], [Arm("dqn")], [0]))
    assert trainer.patience(config, device=device) == patience_s


def test_an_environment_variable_that_is_no_time_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv(trainer.PATIENCE, "2ms")
    out = tmp_path / "run"
    arguments = ["--game", "pong", "--arm", "dqn", "--device", "cpu", "--frames", "400", "--out", str(out)]
    assert main(["train", *arguments]) == 2
    assert "GRAMIAN_PATIENCE_US is '2ms'; give a whole number of microseconds" in capsys.readouterr().err
    assert not out.exists()


def test_games_of_other_kinds_wait_for_nobody():
    config = Config("minatar", load_preset("minatar"), population(["minatar/breakout"], [Arm("dqn")], [0]))
    assert trainer.patience(config, threads=16, device="cuda") == 0
