"""What the benchmarks have in common, and a tiny run of each."""

import csv
import importlib
import os

import pytest
import torch

from benchmarks import linear, update
from benchmarks.command_line import Parser, new_file, new_folder, new_picture

PROGRAMS = (
    "dopamine",
    "equality",
    "kills",
    "linear",
    "penalties",
    "precision",
    "training",
    "update",
)
UPDATE = ["--device", "cpu", "--runs", "1", "2", "--repeats", "2", "--count", "1"]


def refused(name, arguments, capsys):
    """The one line that a benchmark prints, with exit code 2, of arguments that it refuses."""
    try:
        code = importlib.import_module(f"benchmarks.{name}").main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith(f"benchmarks.{name}: ")
    assert captured.out == ""
    return line


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_option_that_does_not_exist_is_one_line(name, capsys):
    pytest.importorskip("ale_py")
    assert "--nosuch" in refused(name, [*(["folder"] if name == "dopamine" else []), "--nosuch"], capsys)


REFUSED = [
    ("update", ["--count", "many"], "argument --count: it is 'many'; give a whole number from 1"),
    ("update", ["--runs", "0"], "argument --runs: it is '0'; give a whole number from 1"),
    ("update", ["--arms", "gramm"], "unknown arm 'gramm'; did you mean 'gram'?"),
    ("update", ["--runs", "1", "1000000"], "not enough memory on cpu: "),
    ("update", ["--csv", "."], "it is a folder; name a file"),
    ("dopamine", ["x", "--figure", "x.png"], "name their folder by --out"),
    ("dopamine", ["nowhere"], "there is no folder 'nowhere'"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), REFUSED)
def test_what_cannot_be_done_is_one_line(name, arguments, words, capsys, tmp_path, monkeypatch):
    pytest.importorskip("ale_py")
    monkeypatch.chdir(tmp_path)
    device = ["--device", "cpu"] if name == "update" else []
    assert words in refused(name, [*arguments, *device], capsys)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (new_file, "folder", "it is a folder; name a file"),
        (new_file, "file/x.csv", "it is a file; name a folder"),
        (new_file, os.devnull, "it is no ordinary file"),
        (new_folder, "file", "it is a file; name a folder"),
        (new_picture, "x.pdf", "let its name end in .png"),
        (new_picture, "file/x.png", "it is a file; name a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_with_the_option_that_named_it(tmp_path, capsys, kind, name, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    parser = Parser("nothing", None)
    parser.add_argument("--place", type=kind)
    with pytest.raises(SystemExit):
        parser.parse_args(["--place", str(tmp_path / name)])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmarks.nothing: argument --place: cannot write ")
    assert words in line
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.slow
def test_the_linear_half_is_timed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(linear, "WIDTHS", (256, 512))
    monkeypatch.setattr(linear, "ROUNDS", 1)
    monkeypatch.setattr(linear, "COMPARED", 512)
    assert linear.main(["--out", str(tmp_path / "x.md")]) == 0
    page = (tmp_path / "x.md").read_text()
    assert page.strip() == capsys.readouterr().out.strip()
    assert "| dense NumPy against the compiled step | " in page


@pytest.mark.slow
def test_every_arm_is_timed_in_every_repeat_in_turn(tmp_path):
    assert update.main([*UPDATE, "--csv", str(tmp_path / "a" / "x.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "a" / "x.csv").open()))
    assert [(row["runs"], row["repeat"], row["arm"]) for row in rows] == [
        (runs, repeat, arm) for runs in "12" for repeat in "01" for arm in ("dqn", "gram")
    ]


@pytest.mark.slow
def test_agents_are_timed_beside_the_first_and_prioritised_ones_with_their_priorities(capsys):
    sizes = ["--runs", "1", "--repeats", "1", "--count", "1", "--device", "cpu"]
    assert update.main(["--agents", "dqn", "rainbow", "--arms", "none", *sizes]) == 0
    assert [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines()[2:]] == [
        "| dqn none",
        "| rainbow none",
    ]


def test_the_ratio_of_two_updates_is_taken_within_a_repeat():
    times = {"dqn": (100.0, 200.0, 400.0), "gram": (110.0, 202.0, 420.0)}
    timings = [update.Timing(1, True, at, arm, own[at]) for at in range(3) for arm, own in times.items()]
    last = update.page_table(timings, ["dqn", "gram"]).splitlines()[-1]
    assert last == "| gram | 1 | yes | 202 (110–420) | 1.050 (1.010–1.100) |"


def test_the_memory_that_is_asked_for_is_that_of_the_batches(monkeypatch):
    bill = {}
    monkeypatch.setattr(update, "memory_bill", lambda items, *_: bill.update(items))
    update.check_memory(["dqn"], 1, 2, torch.device("cpu"))
    batch = update.random_batch(update.spec_of("dqn"), 2, torch.device("cpu"), number=0)
    pictures = (batch.observations, batch.next_observations)
    assert bill["batches"] == sum(tensor.numel() * tensor.element_size() for tensor in pictures)
    assert batch.actions.shape[1] == update.BATCH_SIZE
