"""Runs beside each other, each in a process of its own."""

import csv
import io

import pytest

pytest.importorskip("ale_py")

from benchmarks import apart
from benchmarks.contestants import Ours
from benchmarks.growth import ARMS
from tests.benchmarks.refusals import refusal
from tests.benchmarks.workloads import tiny

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runs", "0"], "argument --runs: it is 0; give a whole number from 1 to 64"),
        (["--cores", "0"], "argument --cores: it is 0; give a whole number from 1 to 1,024"),
        (["--game", "seaqest"], "did you mean 'seaquest'?"),
        (["--game", "minatar/breakout"], "'minatar/breakout' has no emulators; choose a game of Atari"),
        (["--preset", "minatar"], "preset 'minatar' is for games of minatar, not of atari"),
        (["--seconds", "0"], "--seconds is 0.0; it must be more than 0, and finite"),
        (["--warm-up", "-1"], "--warm-up is -1.0; it must be 0 or more, and finite"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, capsys):
    assert words in refusal(apart, ["--device", "cpu", *arguments], capsys)


def test_every_run_of_every_set_is_read_in_every_repeat(tmp_path, capsys):
    sizes = ["--runs", "2", "--cores", "1", "2", "--capacity", "60", "--repeats", "2"]
    times = ["--seconds", "0.2", "--warm-up", "0.1", "--device", "cpu"]
    assert apart.main(["--game", "pong", *sizes, *times, "--out", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert (tmp_path / "apart.md").read_text(encoding="utf-8") == page
    assert [line.split("|")[1:3] for line in page.splitlines()[2:]] == [[" 2 ", " 1 "], [" 2 ", " 2 "]]
    readings = list(csv.DictReader(io.StringIO((tmp_path / "apart.csv").read_text(encoding="utf-8"))))
    found = [tuple(reading[name] for name in ("repeat", "cores", "run", "arm")) for reading in readings]
    expected = [(repeat, cores, run, ARMS[int(run)]) for repeat in "01" for cores in "12" for run in "01"]
    assert found == expected
    assert all(int(reading["agent_steps"]) > 0 and float(reading["seconds"]) >= 0.2 for reading in readings)


def test_the_cores_of_a_run_are_those_of_its_emulators(monkeypatch):
    given = []

    def stop(_config, threads, _device):
        given.append(threads)
        raise InterruptedError

    monkeypatch.setattr("gramian.deep.training.trainer.make_environments", stop)
    with pytest.raises(InterruptedError):
        Ours(tiny(game="pong", preset="author", cores=3))
    assert given == [3]
