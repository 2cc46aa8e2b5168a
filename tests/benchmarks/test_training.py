"""The benchmark as a command."""

import csv

import pytest
import torch

pytest.importorskip("minatar")

from benchmarks import contestants, growth, side_by_side, training
from benchmarks.contestants import Part, missing
from benchmarks.workers import Worker, profiled
from gramian.errors import WorkFailed
from tests.benchmarks.workloads import tiny

QUICK = ["--capacity", "64", "--seconds", "0.1", "--repeats", "2", "--warm-up", "0", "--calibration", "0.05"]


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_the_package_beside_its_environments_end_to_end(tmp_path, capsys):
    asked = ["--contestants", "gramian", "environments", "--threads", "1", "--profile", "wall", "--out", str(tmp_path)]
    assert training.main([*QUICK, *asked]) == 0
    page = (tmp_path / "training.md").read_text()
    assert page == capsys.readouterr().out
    assert "| gramian | 1 | 1 | " in page
    assert "Not the same for all:" in page
    rows = read(tmp_path / "training.csv")
    assert [(row["contestant"], row["repeat"]) for row in rows] == [
        ("gramian", "0"), ("gramian", "1"), ("environments", "0"), ("environments", "1"),
    ]  # fmt: skip
    assert all(int(row["agent_steps"]) > 0 and int(row["peak_rss_bytes"]) > 1e8 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("game", ["minatar/breakout", "breakout"])
def test_all_contestants_end_to_end(tmp_path, game):
    pytest.importorskip("stable_baselines3")
    populations = ["--populations", "1", "2"] if game.startswith("minatar") else []
    assert training.main([*QUICK, *populations, "--game", game, "--out", str(tmp_path)]) == 0
    rows = read(tmp_path / "training.csv")
    assert {row["contestant"] for row in rows} == set(contestants.CONTESTANTS)
    assert {row["processes"] for row in rows if row["contestant"] == "sb3"} == ({"1", "2"} if populations else {"1"})


def test_a_steady_measurement_ends_in_a_bill_and_a_picture(tmp_path, capsys):
    asked = ["--steady", "0.2", "--threads", "1", "--populations", "2", "--prefill", "64", "--out", str(tmp_path)]
    assert training.main([*QUICK, *asked]) == 0
    page = capsys.readouterr().out
    assert "441 runs of 5,000,000 agent steps" in page
    assert "provisional" in page
    assert float(read(tmp_path / "steady.csv")[-1]["elapsed_s"]) >= 0.2
    pytest.importorskip("matplotlib")
    assert training.main(["--plot", str(tmp_path / "steady.csv"), str(tmp_path / "steady.png")]) == 0
    assert (tmp_path / "steady.png").stat().st_size > 1000


def test_a_steady_measurement_that_is_stopped_leaves_what_it_has_measured(tmp_path, monkeypatch):
    class Stopped(growth.Row):
        def measure(self, seconds, threads):
            if len(self.repeats) == 2:
                raise KeyboardInterrupt
            return super().measure(seconds, threads)

    monkeypatch.setattr(growth, "Row", Stopped)
    monkeypatch.setattr(growth, "INTERVAL_S", 0.05)
    asked = ["--steady", "60", "--threads", "1", "--prefill", "64", "--out", str(tmp_path)]
    assert training.main([*QUICK, *asked]) == 130
    assert len(read(tmp_path / "steady.csv")) == 2


@pytest.mark.slow
def test_scaling_measures_what_fits_and_says_what_does_not(tmp_path, capsys):
    asked = ["--scaling", "--populations", "1", "2", "--cores", "1", "4096", "--cores-at", "2", "--prefill", "64"]
    assert training.main([*QUICK, *asked, "--out", str(tmp_path)]) == 0
    assert "not run: 2 runs on 4096 cores" in capsys.readouterr().out
    rows = read(tmp_path / "scaling.csv")
    assert {(row["sweep"], row["runs"]) for row in rows} == {("runs", "1"), ("runs", "2"), ("cores", "2")}
    assert {row["cores"] for row in rows if row["sweep"] == "cores"} == {"1"}
    assert training.main(["--plot", str(tmp_path / "scaling.csv"), str(tmp_path / "scaling.png")]) == 0
    assert (tmp_path / "scaling.png").stat().st_size > 1000


def test_replays_that_do_not_fit_are_not_tried():
    work = tiny(capacity=10**15)
    assert "GB are free on cpu" in growth.lacking(work, 1)


def test_many_runs_get_smaller_replays():
    options = training.parsed(["--scaling", "--game", "pong"])
    assert [growth.grown(options, runs).capacity for runs in (1, 16, 27)] == [1_000_000, 1_000_000, 100_000]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--game", "brekout"], "did you mean 'breakout'?"),
        (["--game", "cartpole"], "choose a game of Atari or MinAtar"),
        (["--repeats", "0"], "--repeats is 0"),
        (["--populations", "0"], "--populations holds 0"),
        (["--seconds", "-1"], "--seconds is -1.0"),
        (["--seconds", "inf"], "--seconds is inf"),
        (["--warm-up", "-3"], "--warm-up is -3.0"),
        (["--preset", "nosuch"], "unknown preset 'nosuch'"),
        (["--capacity", "0"], "must be"),
        (["--steady", "1", "--capacity", "0"], "replay_capacity is 0"),
        (["--prefill", "-5"], "prefill_agent_steps is -5"),
        (["--capacity", "100000000000"], "lower --capacity"),
        (["--plot", "nowhere.csv", "x.png"], "cannot read 'nowhere.csv'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, capsys):
    assert training.main(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


def test_a_gpu_that_is_not_there_is_bad_input(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training.main(["--device", "cuda"]) == 2
    assert "no GPU is there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "picture", "words"),
    [
        (b"a,b\n1,2\n", "x.png", "no table of --scaling or --steady"),
        (b"sweep,runs,agent_steps_per_s\nruns,1,1143\n", "x.png", "no table of --scaling or --steady"),
        (b"\xff\xfe", "x.png", "no table of --scaling or --steady"),
        (b"elapsed_s,agent_steps,seconds,rss_bytes,device_bytes\n10,5", "x.png", "ends in the middle of a row"),
        (b"elapsed_s,agent_steps,seconds,rss_bytes,device_bytes\n10,5,10,1,0\n", "x.bogus", "end in .png"),
        (b"elapsed_s,agent_steps,seconds,rss_bytes,device_bytes\n10,5,10,1,0\n", "t.csv/x.png", "it is a file"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(tmp_path, capsys, table, picture, words):
    (tmp_path / "t.csv").write_bytes(table)
    assert training.main(["--plot", str(tmp_path / "t.csv"), str(tmp_path / picture)]) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_what_cannot_be_imported_is_named(monkeypatch):
    monkeypatch.setattr(contestants, "find_spec", lambda name: None if name in ("stable_baselines3", "cv2") else name)
    assert missing("sb3", "atari") == "stable_baselines3 and cv2 cannot be imported here"
    assert missing("plain", "atari") == ""


def test_skipped_contestants_are_named(monkeypatch, capsys):
    monkeypatch.setattr(contestants, "find_spec", lambda name: None if name == "stable_baselines3" else name)
    options = training.parsed(["--populations", "1", "4"])
    assert ("plain", 4) in side_by_side.planned(options)
    assert capsys.readouterr().err.count("skipped: Stable-Baselines3:") == 1


def test_a_process_that_dies_is_reported_with_its_last_words():
    with Worker(tiny("emulator", preset="nosuchpreset")) as worker, pytest.raises(WorkFailed, match="nosuchpreset"):
        worker.wait()


def test_a_profile_counts_a_part_inside_another_once():
    now = 0.0

    class Agent:
        def outer(self):
            nonlocal now
            now += 1
            self.inner()
            now += 2

        def inner(self):
            nonlocal now
            now += 10

    agent = Agent()
    parts = [Part("a", agent, "outer"), Part("b", agent, "inner"), Part("c", agent, "absent")]
    with profiled(parts, lambda: now, lambda: None) as spent:
        agent.outer()
        agent.inner()
    agent.outer()
    assert spent == {"a": 3.0, "b": 20.0}
