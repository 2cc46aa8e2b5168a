"""Our console beside another emulator: the same one, and one that has been tampered with."""

import csv
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

import ale_py

from benchmarks import emulators
from gramian.deep.envs.emulator import PIXELS, rom
from tests.benchmarks.refusals import refusal

pytestmark = pytest.mark.slow

NAMES = {
    "ALE_new": "new",
    "setLoggerMode": "set_logger_mode",
    "setInt": "set_int",
    "setFloat": "set_float",
    "loadROM": "load_rom",
    "getMinimalActionSize": "count",
    "getMinimalActionSet": "get_actions",
    "getRAM": "get_ram",
    "getScreenGrayscale": "get_screen",
} | {name: name for name in ("reset_game", "act", "game_over", "lives")}


class Library:
    """What ALE's C interface offers, over the emulator that is installed."""

    def __init__(self, wrong=""):
        self.wrong, self.frames = wrong, 0

    def new(self):
        self.ale = ale_py.ALEInterface()
        return 1

    def set_logger_mode(self, _):
        pass

    def set_int(self, _, name, value):
        self.ale.setInt(name.decode(), value)

    def set_float(self, _, name, value):
        self.ale.setFloat(name.decode(), value)

    def load_rom(self, _, path):
        self.ale.setInt("frame_skip", 1)
        self.ale.loadROM(path.decode())

    def reset_game(self, _):
        self.ale.reset_game()

    def act(self, _, button):
        self.frames += 1
        reward = self.ale.act(ale_py.Action(0 if self.wrong == "deaf" else button))
        return reward + (self.wrong == "rewards")

    def game_over(self, _):
        return self.ale.game_over() or (self.wrong == "ends" and self.frames % 50 == 0)

    def lives(self, _):
        return self.ale.lives() + (self.wrong == "lives")

    def count(self, _):
        return len(self.ale.getMinimalActionSet())

    def get_actions(self, _, address):
        place(address, np.array([action.value for action in self.ale.getMinimalActionSet()], np.intc))

    def get_ram(self, _, address):
        memory = np.array(self.ale.getRAM())
        memory[5] += self.wrong == "starts"
        place(address, memory)

    def get_screen(self, _, address):
        screen = self.ale.getScreenGrayscale()
        if self.wrong == "pictures" and self.frames:
            screen[100, 80] ^= 128
        place(address, screen)


def place(address, array):
    emulators.ctypes.memmove(address, np.ascontiguousarray(array).ctypes.data, array.nbytes)


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Lets a folder seem to have the library, with what is wrong about it in its name."""

    def load(path):
        library = Library(path.split("/")[-2])
        # a function of C has attributes for its types, as a partial has
        return SimpleNamespace(**{name: partial(getattr(library, own)) for name, own in NAMES.items()})

    monkeypatch.setattr(emulators.ctypes, "CDLL", load)

    def folder(name):
        (tmp_path / name).mkdir()
        (tmp_path / name / "libale_c.so").touch()
        return tmp_path / name

    return folder


def beside(folder, game, agent_steps):
    (row,) = emulators.compare_all(folder.name, folder, folder / "libale_c.so", game, agent_steps)
    return row


@pytest.mark.parametrize("game", ["breakout", "pong"])
def test_an_emulator_plays_as_itself(installed, game):
    row = beside(installed("same"), game, 400)
    assert (row.alike, row.games) == (row.games, row.games)
    assert row.agent_steps == 400
    assert (row.pictures, row.rewards, row.lives, row.ends, row.memories) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("wrong", ["pictures", "rewards", "lives", "ends"])
def test_what_differs_is_counted(installed, wrong):
    row = beside(installed(wrong), "breakout", 200)
    counts = {name: getattr(row, name) for name in ("pictures", "rewards", "lives", "ends", "memories")}
    assert counts[wrong] > 2
    if wrong != "ends":  # a game that is taken for over misses frames
        assert {name for name, count in counts.items() if count} == {wrong}


def test_an_emulator_that_does_not_hear_the_buttons_plays_another_game(installed):
    row = beside(installed("deaf"), "breakout", 200)
    assert row.memories > 150
    assert row.pictures > 150


def test_another_cartridge_is_laid_beside_ours_in_the_older_emulator(installed):
    folder = installed("same")
    (folder / "roms").mkdir()
    own, library = folder / "roms" / "pong.bin", folder / "libale_c.so"
    own.write_bytes(rom("pong").read_bytes())
    assert len(emulators.compare_all("same", folder, library, "pong", 20)) == 1
    own.write_bytes(rom("breakout").read_bytes())
    one, other = emulators.compare_all("same", folder, library, "pong", 200)
    assert (one.older, one.alike) == ("same", 1)
    assert (other.older, other.games, other.alike) == ("same, with either cartridge", 3, 0)
    played, older = (kind(library, rom("breakout")) for kind in (emulators.Played, emulators.Older))
    row = emulators.compare("either", "breakout", played, older, 300)
    assert (row.alike, row.agent_steps) == (row.games, 300)
    assert (row.pictures, row.rewards, row.lives, row.ends, row.memories) == (0, 0, 0, 0, 0)


def test_an_older_emulator_sticks_to_actions_as_the_console_does(installed):
    folder = installed("same")
    console, played = emulators.Recorded("breakout"), emulators.Played(folder / "libale_c.so", rom("breakout"))
    frame, other = np.zeros((2, PIXELS, PIXELS), np.uint8)
    console.begin(5, frame)
    played.begin(5, other)
    pressed = [], []
    for action in np.random.default_rng(0).integers(0, 4, 60).tolist():
        assert console.play(action, frame) == played.play(action, other)
        for own, player in zip(pressed, (console, played), strict=True):
            own.extend(player.pressed)
        assert np.array_equal(frame, other)
    assert pressed[0] == pressed[1]
    assert any(one != two for one, two in zip(pressed[0][::4], pressed[0][3::4], strict=True))  # some were sticky


def test_games_that_begin_otherwise_are_counted_and_not_compared(installed, capsys, tmp_path):
    asked = [str(installed("starts")), "--games", "pong", "--steps", "300", "--out", str(tmp_path / "out")]
    assert emulators.main(asked) == 0
    page = capsys.readouterr().out
    assert "| starts | Pong | 4 | 0 | 0 | – | – |" in page
    assert page == (tmp_path / "out" / "emulators.md").read_text()
    (row,) = csv.DictReader((tmp_path / "out" / "emulators.csv").read_text().splitlines())
    assert (row["older"], row["game"], row["alike"]) == ("starts", "pong", "0")


def test_the_older_one_presses_what_stuck_and_sees_as_dopamine_does(installed):
    older = emulators.Older(installed("same") / "libale_c.so", rom("breakout"))
    first = older.start()
    assert first.shape == (PIXELS, PIXELS)
    reward, over, picture = older.act([1, 3, 3, 1])
    assert (reward, over) == (0.0, False)
    assert not np.array_equal(picture, first)


def test_the_player_follows_the_ball():
    generator = np.random.default_rng(0)
    memory = np.zeros(128, np.uint8)

    def usual():
        chosen = [emulators.choose("breakout", memory, 4, generator) for _ in range(200)]
        return max(set(chosen), key=chosen.count), len(set(chosen))

    assert usual() == (emulators.FIRE, 4)
    memory[emulators.BALL_Y], memory[emulators.PADDLE_X] = 50, 60
    for ball, action in ((100, emulators.RIGHT), (10, emulators.LEFT), (66, emulators.NOOP)):
        memory[emulators.BALL_X] = ball
        assert usual() == (action, 4)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["."], "no libale_c.so in '.'"),
        ([".", "--steps", "0"], "give a whole number from 1"),
        (["FOLDER", "--games", "minatar/breakout"], "no Atari game"),
        (["FOLDER", "--games", "braekout"], "breakout"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(installed, monkeypatch, tmp_path, capsys, asked, words):
    folder = installed("same")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert words in refusal(emulators, [str(folder) if word == "FOLDER" else word for word in asked], capsys)


def test_libraries_that_are_none_and_folders_of_one_name_are_refused(tmp_path, capsys, monkeypatch):
    for place in (tmp_path / "older", tmp_path / "other" / "older"):
        place.mkdir(parents=True)
        (place / "libale_c.so").write_text("nothing")
    assert "cannot load" in refusal(emulators, [str(tmp_path / "older")], capsys)
    both = [str(tmp_path / "older"), str(tmp_path / "other" / "older")]
    assert "two folders are called 'older'" in refusal(emulators, both, capsys)
    monkeypatch.setattr(emulators.ctypes, "CDLL", lambda _: SimpleNamespace(ALE_new=partial(int)))
    assert "it has no setLoggerMode" in refusal(emulators, [str(tmp_path / "older")], capsys)
