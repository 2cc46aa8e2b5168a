"""Texts and numbers that people read."""

import math

import pytest

from gramian.core.errors import UserError
from gramian.core.files import file_name, find_export, locked
from gramian.core.games import key, title
from gramian.core.progress import counted, duration
from gramian.core.text import three_digits


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(1, "game"), "1 game"),
        (counted(1200, "run"), "1,200 runs"),
        (duration(5.2), "5 s"),
        (duration(125), "2 min 5 s"),
        (duration(7320), "2 h 2 min"),
        (three_digits(0.0123456), "0.0123"),
        (three_digits(4588.3), "4,588"),
        (three_digits(math.nan), "–"),
        (title("space_invaders"), "SpaceInvaders"),
        (title("minatar/space_invaders"), "MinAtar SpaceInvaders"),
        (title("their game"), "their game"),
        (file_name("p000", "plan.json"), "p000"),
    ],
)
def test_words(said, expected):
    assert said == expected


def test_spellings_of_a_game_have_one_key():
    assert {key(name) for name in ("UpNDown", "up_n_down", "ALE/UpNDown-v5", "UpNDownNoFrameskip-v4")} == {"upndown"}


@pytest.mark.parametrize("name", ["../p000", "", "..", "a\0b", 7])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(UserError, match="which no file can have; it is damaged"):
        file_name(name, "plan.json")


def test_a_lock_is_held_by_one_process_at_a_time(tmp_path):
    lock = tmp_path / "lock"
    with locked(lock), pytest.raises(UserError, match="another process is at work"), locked(lock):
        pass
    with locked(lock):
        pass


def test_an_export_is_found_from_within_and_from_above(tmp_path):
    (tmp_path / "a").mkdir()
    assert find_export(tmp_path) is None
    (tmp_path / "a" / "export.json").write_text("{}")
    assert find_export(tmp_path / "a" / "populations" / "p000") == find_export(tmp_path) == tmp_path / "a"
