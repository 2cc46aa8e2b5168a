"""The benchmark as a command."""

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("minatar")

from benchmarks import contestants, growth, side_by_side, training, workers
from benchmarks.contestants import Part, missing
from benchmarks.workers import Worker, profiled
from gramian.core.errors import WorkFailed
from gramian.deep.envs.options import AtariOptions, EnvironmentOptions
from gramian.deep.training.config import load_preset
from tests.benchmarks.workloads import tiny

pytestmark = pytest.mark.slow

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


def test_the_package_with_rounded_products_takes_part_where_it_is_named():
    assert "gramian-bf16" not in training.parsed([]).contestants
    work = replace(tiny("gramian-bf16"), game="breakout", preset="author", capacity=64, prefill_agent_steps=64)
    rounds = contestants.CONTESTANTS["gramian-bf16"].make(work)
    try:
        assert rounds.trainer.config.settings.bf16
    finally:
        rounds.trainer.close()
    assert missing("gramian-bf16", "minatar") == "it plays atari games only"


@pytest.mark.parametrize("game", ["minatar/breakout", "breakout"])
def test_all_contestants_end_to_end(tmp_path, game):
    pytest.importorskip("stable_baselines3")
    populations = ["--populations", "1", "2"] if game.startswith("minatar") else []
    assert training.main([*QUICK, *populations, "--game", game, "--out", str(tmp_path)]) == 0
    rows = read(tmp_path / "training.csv")
    assert {row["contestant"] for row in rows} == set(contestants.CONTESTANTS) - set(contestants.ON_REQUEST)
    assert {row["processes"] for row in rows if row["contestant"] == "sb3"} == ({"1", "2"} if populations else {"1"})


def test_a_steady_measurement_ends_in_a_bill_and_a_picture(tmp_path, capsys):
    asked = ["--steady", "0.2", "--threads", "1", "--populations", "2", "--prefill", "64", "--out", str(tmp_path)]
    assert training.main([*QUICK, *asked]) == 0
    page = capsys.readouterr().out
    assert " in 1 interval);" in page
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


def test_scaling_measures_what_fits_and_says_what_does_not(tmp_path, capsys):
    asked = ["--scaling", "--populations", "1", "2", "--cores", "1", "4096", "--cores-at", "2", "--prefill", "64"]
    assert training.main([*QUICK, *asked, "--out", str(tmp_path)]) == 0
    assert "not run: 2 runs on 4,096 cores" in capsys.readouterr().out
    rows = read(tmp_path / "scaling.csv")
    assert {(row["sweep"], row["runs"]) for row in rows} == {("runs", "1"), ("runs", "2"), ("cores", "2")}
    assert {row["cores"] for row in rows if row["sweep"] == "cores"} == {"1"}
    assert training.main(["--plot", str(tmp_path / "scaling.csv"), str(tmp_path / "scaling.png")]) == 0
    assert (tmp_path / "scaling.png").stat().st_size > 1000


@pytest.mark.parametrize("threads", [0, 1])
def test_the_emulator_has_the_threads_that_the_table_says(tmp_path, capsys, threads):
    asked = ["--game", "pong", "--contestants", "emulator", "--emulator-threads", str(threads), "--out", str(tmp_path)]
    assert training.main([*QUICK, *asked]) == 0
    assert {row["emulator_threads"] for row in read(tmp_path / "training.csv")} == {str(threads)}
    assert ("with 1 thread, bound to no core" in capsys.readouterr().out) == (threads == 1)


def test_the_emulator_starts_the_threads_that_were_asked_for():
    work = tiny("emulator", game="pong", preset="author", emulator_threads=1, runs=4)
    before = set(Path("/proc/self/task").iterdir())
    alone = contestants.emulator(work)
    assert len(set(Path("/proc/self/task").iterdir()) - before) == 1
    assert alone.run(0.0) == 4


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
        (["--threads", "1", "100000"], f"--threads holds 100000; each must be at most {os.cpu_count()}, the machine's"),
        (["--seconds", "-1"], "--seconds is -1.0"),
        (["--seconds", "inf"], "--seconds is inf"),
        (["--warm-up", "-3"], "--warm-up is -3.0"),
        (["--preset", "nosuch"], "unknown preset 'nosuch'"),
        (["--preset", "author"], "preset 'author' is for games of atari, not of minatar; choose minatar or smoke"),
        (["--game", "breakout", "--preset", "cartpole"], "preset 'cartpole' is for games of cartpole, not of atari"),
        (["--scaling", "--game", "breakout", "--preset", "minatar"], "is for games of minatar, not of atari"),
        (["--capacity", "0"], "--capacity is 0; it must be more than 1"),
        (["--capacity", "8", "--envs-per-run", "8"], "--capacity is 8; it must be more than 8"),
        (["--steady", "1", "--capacity", "0"], "--capacity is 0; it must be more than 1"),
        (["--prefill", "-5"], "--prefill is -5; it must be at least 1"),
        (["--prefill", "0"], "--prefill is 0; it must be at least 1"),
        (["--capacity", "100000000000"], "lower --capacity"),
        (["--plot", "nowhere.csv", "x.png"], "cannot read 'nowhere.csv'"),
        (["--game", "pong", "--emulator-threads", "-1"], "--emulator-threads is -1; ale-py has no more of them"),
        (["--game", "pong", "--emulator-threads", "99999"], f"give 1 to {os.cpu_count()}, or 0 for its own choice"),
        (["--emulator-threads", "1"], "no emulator of Atari is measured alone; leave it away"),
        (["--game", "pong", "--emulator-threads", "1", "--contestants", "gramian"], "no emulator of Atari is measured"),
        (["--game", "pong", "--emulator-threads", "1", "--steady", "1"], "no emulator of Atari is measured alone"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, capsys):
    assert training.main(arguments) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("benchmarks.training: ")
    assert words in line
    assert captured.out == ""


def test_rounding_on_a_cpu_is_no_contestant_on_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    asked = ["--game", "breakout", "--contestants", "gramian", "gramian-bf16", "--device", "cuda"]
    assert training.main(asked) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--device is cuda and gramian-bf16 rounds on a CPU; leave it away, or give cpu" in line


@pytest.mark.parametrize("peers", [["plain"], ["plain", "gramian"]])
def test_a_preset_that_the_peers_do_not_implement_is_refused_where_one_takes_part(peers, capsys):
    asked = ["--game", "breakout", "--preset", "dopamine", "--contestants", *peers]
    assert training.main(asked) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "benchmarks.training: preset 'dopamine' has network dopamine, loss squared, which plain does not implement; "
        "choose another preset, or --contestants gramian gramian-bf16 emulator environments"
    )


def test_a_preset_that_the_peers_do_not_implement_may_be_measured_without_them():
    options = training.parsed(["--game", "breakout", "--preset", "dopamine", "--contestants", "gramian", "emulator"])
    assert side_by_side.planned(options) == [("gramian", 1), ("emulator", 1)]


@pytest.mark.parametrize(
    ("preset", "kind", "changes", "odd"),
    [
        ("author", "atari", {}, []),
        ("nature", "atari", {}, []),
        ("minatar", "minatar", {}, []),
        ("author", "atari", {"network": "nature"}, []),
        ("author", "atari", {"network": "mlp"}, ["network mlp"]),
        ("author", "atari", {"n_step": 3, "double_q": True}, ["n_step 3", "double_q true"]),
        ("author", "atari", {"max_grad_norm": 10.0}, ["max_grad_norm 10.0"]),
        ("author", "atari", {"weight_decay": 0.1, "layer_norm": True}, ["layer_norm true", "weight_decay 0.1"]),
        (
            "author",
            "atari",
            {"environment": EnvironmentOptions(atari=AtariOptions(fire_reset=True))},
            ["fire_reset true"],
        ),
        ("smoke", "minatar", {}, ["clip_rewards true"]),
        ("smoke", "atari", {}, []),
    ],
)
def test_what_the_peers_do_not_implement_is_named(preset, kind, changes, odd):
    assert contestants.beyond_peers(replace(load_preset(preset), **changes), kind) == odd


def test_who_takes_part_decides_what_is_said_to_differ():
    def said(names, kind="atari", **how):
        return "\n".join(side_by_side.differences(names, kind, **({"opencv": True, "processes": False} | how)))

    assert "weights of their own, one or two updates old" in said(["gramian", "plain"])
    assert "updates old" not in said(["sb3", "plain"])
    assert "updates old" in said(["gramian-bf16"])
    assert "bfloat16" in said(["gramian", "gramian-bf16"])
    assert "bfloat16" not in said(["gramian", "sb3"])
    assert "learns in threads of its own" in said(["gramian-bf16", "sb3"])
    assert "store every observation whole" in said(["sb3", "gramian"])
    assert "clips the norm" not in said(["plain", "gramian"])
    assert "OpenCV" not in said(["gramian"])
    assert "OpenCV" not in said(["plain", "gramian"], "minatar")
    assert "Without OpenCV" in said(["plain", "gramian"], opencv=False)
    assert "CUDA graphs" not in said(["gramian", "plain"])
    assert "CUDA graphs" in said(["gramian", "plain"], device="cuda")
    assert "8 environments a run" in said(["gramian", "plain"], envs_per_run=8)
    assert "same seed" in said(["gramian", "plain"], processes=True)


def test_a_gpu_that_is_not_there_is_bad_input(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training.main(["--device", "cuda"]) == 2
    assert "no GPU is there" in capsys.readouterr().err


WATCHED = b"elapsed_s,processes,agent_steps,rss_bytes,device_bytes\n"


def test_a_table_of_watched_processes_is_drawn_by_the_steps_of_the_last_minute(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    steps = [(0, 0), (10, 0), (20, 300), (80, 600), (90, 1500), (100, 1500), (110, 1500)]
    lines = [f"{t},{int(t < 110)},{steps},{t}000000,0\n" for t, steps in steps]
    (tmp_path / "t.csv").write_bytes(WATCHED + "".join(lines).encode())
    drawn, draw = [], growth._draw_steady
    monkeypatch.setattr(growth, "_draw_steady", lambda figure, rows: (drawn.extend(rows), draw(figure, rows)))
    assert training.main(["--plot", str(tmp_path / "t.csv"), str(tmp_path / "x.png")]) == 0
    rates = [(row["elapsed_s"], int(row["agent_steps"]) / int(row["seconds"])) for row in drawn]
    assert rates == [("80", 5.0), ("90", pytest.approx(1200 / 70)), ("100", 15.0)]
    assert (tmp_path / "x.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("table", "picture", "words"),
    [
        (b"a,b\n1,2\n", "x.png", "no table of --scaling, --steady or benchmarks.watch"),
        (b"sweep,runs,agent_steps_per_s\nruns,1,1143\n", "x.png", "no table of --scaling"),
        (b"\xff\xfe", "x.png", "no table of --scaling"),
        (WATCHED + b"10,1,5,1,0\n60,1,9,1,0\n", "x.png", "has less than 60 s of work; watch for longer"),
        (WATCHED + b"10,1,5,1,0\n70,0,9,1,0\n", "x.png", "has less than 60 s of work; watch for longer"),
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


def sweep_rows(sweep, runs=1, cores=16):
    numbers = {"runs": str(runs), "cores": str(cores), "seconds": "3.0"}
    return [
        {"sweep": sweep, "contestant": contestant, "agent_steps": steps, **numbers}
        for contestant, steps in (("gramian", "300"), ("emulator", "900"))
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rows", "titles"),
    [
        (sweep_rows("runs", 1) + sweep_rows("runs", 3), ["As the runs grow; cores: 16"]),
        (sweep_rows("cores", 9, 1) + sweep_rows("cores", 9, 2), ["As the cores grow; runs: 9"]),
        (sweep_rows("runs") + sweep_rows("cores", 9), ["As the runs grow; cores: 16", "As the cores grow; runs: 9"]),
    ],
)
def test_only_the_sweeps_that_were_measured_are_drawn(rows, titles):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    growth._draw_sweeps(figure, rows)
    figure.draw_without_rendering()
    assert [axes.get_title() for axes in figure.axes] == titles
    assert all(axes.lines and axes.get_legend().get_texts() for axes in figure.axes)


def steady_row(minute, host, device):
    numbers = {"agent_steps": 30, "seconds": 3.0, "rss_bytes": int(host * 1e9), "device_bytes": int(device * 1e9)}
    return {"elapsed_s": str(60 * minute), **{name: str(value) for name, value in numbers.items()}}


@pytest.mark.parametrize(
    ("host", "device", "titles"),
    [
        ([6.2, 6.28], [59.5, 59.5], ["Rate", "Memory of the host", "Memory of the GPU"]),
        ([0.5, 0.5], [0, 0], ["Rate", "Memory of the host"]),
    ],
)
def test_every_memory_has_a_panel_whose_axis_says_where_it_begins(host, device, titles):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    growth._draw_steady(figure, [steady_row(*row) for row in zip((1, 2), host, device, strict=True)])
    assert [axes.get_title() for axes in figure.axes] == titles
    for axes, amounts in zip(figure.axes[1:], (host, device), strict=False):
        low, high = axes.get_ylim()
        assert axes.get_ylabel() == f"GB; the axis begins at {low:g}"
        assert 0 <= low < min(amounts) <= max(amounts) < high


def test_growth_fills_a_good_part_of_the_axis_and_noise_does_not():
    low, high = growth._ends([6.2, 6.28])
    assert high - low < 3 * 0.08
    low, high = growth._ends([6.2, 6.2001])
    assert high - low > 100 * 0.0001
    assert growth._ends([0.1, 8.0])[0] == 0


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


class Idle:
    """A contestant that takes ten steps in as many seconds."""

    def __init__(self, clock):
        self.clock = clock

    def run(self, seconds):
        self.clock.now += seconds
        return 10

    def updates(self):
        return 0

    def parts(self):
        return []


class Clock:
    """A clock, and a GPU that takes five seconds to start at its first use."""

    now, started = 0.0, False

    def synchronise(self):
        self.now += 0.0 if self.started else 5.0
        self.started = True


def test_the_start_of_cuda_is_no_part_of_a_measurement(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(workers.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(torch.cuda, "synchronize", clock.synchronise)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 0)
    assert [workers.measure(Idle(clock), 10.0, None, cuda=True).seconds for _ in range(2)] == [10.0, 10.0]


def test_who_does_not_use_the_gpu_does_not_wait_for_it(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(torch.cuda, "synchronize", clock.synchronise)
    assert workers.measure(Idle(clock), 10.0, None, cuda=False).device_bytes == 0
    assert not clock.started


def test_a_process_of_an_emulator_never_touches_the_gpu():
    with Worker(tiny("emulator", device="cuda")) as worker:
        worker.wait()
        worker.send(0.01, 1)
        assert worker.receive().agent_steps > 0


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
