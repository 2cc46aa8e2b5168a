"""What the command lines of the benchmarks share."""

import importlib
import os
from pathlib import Path

import pytest

from benchmarks.command_line import Parser, check_file, check_folder, new_file, new_folder, new_picture
from gramian.core.errors import UserError

PROGRAMS = {
    "dopamine": (),
    "emulators": ("ale_py", "cv2"),
    "environments": ("ale_py",),
    "equality": (),
    "held_out": (),
    "linear": (),
    "minatar": ("minatar",),
    "penalties": (),
    "precision": (),
    "report": (),
    "rounding": ("ale_py",),
    "starts": ("ale_py",),
    "training": (),
    "update": (),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_option_that_does_not_exist_is_one_line(name, monkeypatch, capsys):
    for module in PROGRAMS[name]:
        pytest.importorskip(module)
    program = importlib.import_module(f"benchmarks.{name}")
    monkeypatch.setattr("sys.argv", [name, "folder", "--nosuch", "3"])
    with pytest.raises(SystemExit) as stopped:
        program.main()
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"benchmarks.{name}: ")
    assert "--nosuch" in line


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (new_file, "folder", "it is a folder; name a file"),
        (new_file, "file/x.csv", "it is a file; name a folder"),
        (new_folder, "file", "it is a file; name a folder"),
        (new_picture, "folder", "it is a folder; name a file"),
        (new_picture, "x.pdf", "let its name end in .png"),
        (new_picture, "file/x.png", "it is a file; name a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_with_the_option_that_named_it(tmp_path, capsys, kind, name, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    parser = Parser("nothing", None)
    parser.add_argument("--place", type=kind)
    with pytest.raises(SystemExit) as stopped:
        parser.parse_args(["--place", str(tmp_path / name)])
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmarks.nothing: argument --place: cannot write ")
    assert words in line
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("environments", ["--count", "0"]),
        ("environments", ["--count", "-1"]),
        ("environments", ["--count", "1000000"]),
        ("environments", ["--count", "many"]),
        ("environments", ["--steps", "0"]),
        ("environments", ["--steps", "-5"]),
        ("environments", ["--rounds", "0"]),
        ("environments", ["--patience-us", "-1"]),
        ("minatar", ["--counts", "1", "0"]),
        ("minatar", ["--steps", "0"]),
        ("minatar", ["--rounds", "0"]),
    ],
)
def test_numbers_that_make_no_measurement_are_one_line(name, asked, monkeypatch, capsys):
    for module in PROGRAMS[name]:
        pytest.importorskip(module)
    monkeypatch.setattr("sys.argv", [name, *asked])
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module(f"benchmarks.{name}").main()
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith(f"benchmarks.{name}: argument {asked[0]}: it is ")
    assert "; give a whole number from " in line
    assert captured.out == ""


def test_a_device_is_no_place_for_a_file():
    with pytest.raises(UserError, match="it is no ordinary file"):
        check_file(Path(os.devnull))


def test_a_check_leaves_nothing_behind_and_changes_no_file(tmp_path):
    (tmp_path / "old.csv").write_text("kept")
    check_folder(tmp_path / "a" / "b")
    check_file(tmp_path / "c" / "new.csv")
    check_file(tmp_path / "old.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "kept"
