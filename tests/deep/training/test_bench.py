import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gramian.cli import bench as bench_command
from gramian.cli import main
from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.deep.agent.arms import Arm
from gramian.deep.engines import pick_execution
from gramian.deep.training import bench, memory
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.memory import place_replay

pytestmark = pytest.mark.slow


def test_bench_says_how_fast_the_loop_is_and_where_its_time_goes(capsys):
    assert main(["bench", "cartpole", "--runs", "2", "--seconds", "0.3", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^whole loop +[\d,]+ agent steps/s$", out, re.MULTILINE)
    assert re.search(r"^environments alone +[\d,]+ agent steps/s; the loop reaches \d+%$", out, re.MULTILINE)
    shares = [
        int(share)
        for share in re.findall(r"^(?:draw|synchronize|act|send|learn|recv|observe|store|other) .* (\d+)%$", out, re.M)
    ]
    assert len(shares) == 9
    assert sum(shares) == pytest.approx(100, abs=4)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--runs", "0"], "--runs 0 is too small; give 1 or more"),
        (["--patience-us", "-1"], "--patience-us -1 is too small; give 0 or more"),
        (["--cores", "-1"], "--cores -1 is too small; give 0 or more"),
        (["--torch-threads", "0"], "--torch-threads 0 is too small; give 1 or more"),
        (["--torch-threads", "100000"], f"is too large; give at most {cores()}, the cores that this"),
        (["cartpole", "--replay-capacity", "0"], "--replay-capacity 0 is too small; give more than 1, n_step for each"),
        (["cartpole", "--replay-capacity", "8", "--envs-per-run", "8"], "--replay-capacity 8 is too small; give more"),
        (["--device", "cpu", "--runs", "100000"], "lower --runs or --replay-capacity"),
        (["--device", "cpu", "--replay-capacity", "1000000000000"], "lower --runs or --replay-capacity"),
        (["--seconds", "0"], "--seconds 0.0 is no time to measure; give more than 0 and less than 3600"),
        (["--device", "nosuch", "--check"], "unknown device 'nosuch'"),
        (["--preset", "minatar"], "preset 'minatar' is for games of minatar, not of atari; choose author, dopamine"),
        (["minatar/breakout", "--preset", "author"], "'author' is for games of atari, not of minatar; choose minatar"),
        (["--device", "cpu", "--replay-device", "nosuch"], "unknown device 'nosuch'"),
        (["pongg"], "did you mean"),
    ],
)
def test_what_cannot_be_measured_is_one_line(arguments, complaint, capsys):
    assert main(["bench", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert complaint in line


@pytest.mark.parametrize(
    ("cuda", "complaint"), [(False, "and there is no CUDA here"), (True, "and a CPU has none; choose --device cuda")]
)
def test_a_check_on_a_cpu_says_what_is_missing(monkeypatch, capsys, cuda, complaint):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    assert main(["bench", "--device", "cpu", "--check"]) == 2
    assert capsys.readouterr().err.endswith(f"--check compares CUDA graphs with eager updates, {complaint}\n")


def test_a_replay_on_a_gpu_is_refused_to_a_learner_on_the_cpu_before_anything_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delattr(bench_command, "measure")
    assert main(["bench", "cartpole", "--device", "cpu", "--replay-device", "cuda"]) == 2
    assert "a learner on the CPU has its replay there too; omit --replay-device" in capsys.readouterr().err


def test_bench_puts_a_replay_that_does_not_fit_on_the_gpu_where_train_does(monkeypatch):
    free = {"cuda": 10**8, "cpu": 10**10}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(memory, "available_bytes", lambda where: free[torch.device(where).type])
    gpu, host = torch.device("cuda"), torch.device("cpu")
    small, large = (
        Config(
            "author",
            replace(load_preset("author"), replay_capacity=capacity, representation_period_agent_steps=0),
            population(["pong"], [Arm("dqn")], [0]),
        )
        for capacity in (1_000, 100_000)
    )
    assert bench_command._placed(small, gpu, "auto") == gpu
    assert bench_command._placed(large, gpu, "auto") == host
    assert bench_command._placed(small, gpu, "cpu") == host
    with pytest.raises(UserError, match="not enough memory on cuda"):
        bench_command._placed(large, gpu, "cuda")


@pytest.mark.parametrize(
    ("arguments", "said", "spin_s"),
    [([], ", replay on cpu, ", 0.0), (["--patience-us", "2000"], "2,000 µs", 0.002)],
)
def test_bench_measures_with_the_spin_wait_that_it_says(monkeypatch, capsys, arguments, said, spin_s):
    given = []

    def make(*everything):
        given.append(everything[-1])
        return make_environments(*everything)

    make_environments = bench.make_environments
    monkeypatch.setattr(bench, "make_environments", make)
    assert main(["bench", "pong", "--seconds", "0.1", "--device", "cpu", *arguments]) == 0
    assert said in capsys.readouterr().out.splitlines()[0]
    assert given == [spin_s] * 2


def test_bench_says_when_the_process_that_learns_plays_too(monkeypatch, capsys):
    monkeypatch.setattr(bench_command, "spin_time", lambda _config, threads, _device: None if threads == 1 else 0.0)
    for number, said in (("1", True), ("2", False)):
        assert main(["bench", "pong", "--seconds", "0.1", "--device", "cpu", "--cores", number]) == 0
        assert (", emulator in the learner's process, " in capsys.readouterr().out) is said


def test_more_environments_than_the_usual_prefill_has_steps_are_measured(capsys):
    asked = ["cartpole", "--seconds", "0.1", "--device", "cpu", "--preset", "smoke", "--envs-per-run", "1100"]
    assert load_preset("smoke").prefill_agent_steps < 1100
    assert main(["bench", *asked]) == 0
    said = capsys.readouterr()
    assert "1,100 environments a run" in said.out
    assert "gramian: first updates\n" in said.err  # nothing is compiled


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


@needs_proc
def test_the_first_update_is_counted_from_the_start_of_the_process():
    waits = (
        "import sys, time; time.sleep(2); sys.argv[1:] = ['bench', 'cartpole', '--seconds', '0.1', '--device', 'cpu']"
    )
    begins = "from gramian.cli import main; raise SystemExit(main())"
    out = subprocess.run(
        [sys.executable, "-c", f"{waits}; {begins}"], check=True, capture_output=True, text=True
    ).stdout
    line = r"^first update after +([\d.]+) s from the process's start, the prefill apart: before ([\d.]+), (.*)$"
    ((found, before, others),) = re.findall(line, out, re.M)
    assert float(found) >= float(before) > 2.0
    names, seconds = zip(*(piece.split() for piece in others.split(", ")), strict=True)
    assert names == ("environments", "learner", "actors", "update")
    assert float(found) == pytest.approx(float(before) + sum(map(float, seconds)), abs=0.3)  # each is rounded


@needs_proc
def test_the_age_of_a_process_is_that_of_its_process_and_not_of_its_clock():
    code = (
        "import time; time.sleep(0.5); from gramian.deep.training.bench import _process_age_s as age; "
        "print(age(), age())"
    )
    began = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    first, second = map(float, out.split())
    assert 0.5 <= first <= second <= time.perf_counter() - began + 0.02  # ticks of a hundredth


def test_where_a_process_cannot_tell_its_start_nothing_is_said_of_it(monkeypatch, capsys):
    monkeypatch.setattr(bench, "_process_age_s", lambda: None)
    assert main(["bench", "cartpole", "--seconds", "0.1", "--device", "cpu"]) == 0
    assert "first update after" not in capsys.readouterr().out


def test_a_wait_for_the_learner_is_no_part_of_the_draw_in_which_it_happens(monkeypatch):
    now = 0.0

    class Works:
        def synchronize(self):
            nonlocal now
            now += 100.0

        def draw(self):
            nonlocal now
            now += 1.0
            self.synchronize()
            now += 2.0

        act = chosen = send = learn = recv = observe = store = None

    works = Works()
    monkeypatch.setattr(bench.time, "perf_counter", lambda: now)
    spent = dict.fromkeys(bench.PIECES, 0.0)
    with bench._timed(SimpleNamespace(engine=works, environments=works), spent):
        works.draw()
        works.synchronize()
    works.draw()
    assert {name: value for name, value in spent.items() if value} == {"draw": 3.0, "synchronize": 200.0}


@pytest.mark.parametrize(("arguments", "words"), [
    (["pong"], "(eager), replay"),
    (["pong", "--sequential", "True"], "(eager, sequential), replay"),
    (["cartpole", "--replay-device", "cpu"], "on cpu (eager), replay on cpu, "),
    (["cartpole", "--envs-per-run", "1"], "1 environment a run"),
    (["cartpole", "--envs-per-run", "2"], "2 environments a run"),
])  # fmt: skip
def test_what_is_asked_for_is_measured_and_named(monkeypatch, capsys, arguments, words):
    measured = []

    def measure(config, *_arguments, **_named):
        measured.append(config.settings)
        return bench.Speed(1.0, 1.0, {}, {"act": 1.0}, {})

    monkeypatch.setattr(bench_command, "measure", measure)
    assert main(["bench", *arguments, "--device", "cpu"]) == 0
    assert words in capsys.readouterr().out
    assert measured[0].sequential == ("--sequential" in arguments)


def test_what_the_actors_take_to_be_compiled_is_no_part_of_the_prefill(monkeypatch):
    class Clocked:
        """Compiles its actors for 100 s in its first step, and its update for 10 s in the fifth."""

        agent_steps = updates = 0
        now = 0.0

        def step(self):
            self.agent_steps += 1
            self.updates = int(self.agent_steps == 5)
            self.now += {1: 100.0, 5: 10.0}.get(self.agent_steps, 1.0)

    trainer = Clocked()
    monkeypatch.setattr(bench.time, "perf_counter", lambda: trainer.now)
    assert bench._first_update(trainer, prefill_agent_steps=4) == (100.0, 2.0)  # of the second and the third step
    assert trainer.now == 113.0


def test_the_pieces_of_a_start_are_apart_from_each_other_and_from_the_prefill(monkeypatch):
    now = 0.0

    def taking(seconds, result):
        def work(*_arguments, **_named):
            nonlocal now
            now += seconds
            return result

        return work

    engine = SimpleNamespace(synchronize=taking(2.0, None))
    trainer = SimpleNamespace(engine=engine, updates=bench.WARM_UP_UPDATES, close=taking(9.0, None))
    monkeypatch.setattr(bench.time, "perf_counter", lambda: now)
    for name, stand_in in {
        "_process_age_s": taking(0.0, 5.0),
        "make_environments": taking(1.0, None),
        "Trainer": taking(10.0, trainer),
        "_first_update": taking(100.0 + 1_000.0 + 10_000.0, (100.0, 1_000.0)),  # first step, prefill, update
        "_loop_rate": taking(9.0, (3.0, {})),
        "_device_times": taking(9.0, {}),
        "_emulator_rate": taking(9.0, 4.0),
    }.items():
        monkeypatch.setattr(bench, name, stand_in)
    config = Config("cartpole", load_preset("cartpole"), population(["cartpole"], [Arm("dqn")], [0]))
    assert bench.measure(config, 1.0, device=torch.device("cpu")).start_seconds == {
        "before": 5.0, "environments": 1.0, "learner": 10.0, "actors": 100.0, "update": 10_002.0,
    }  # fmt: skip


def test_a_cpu_executes_eagerly_and_in_no_other_way():
    with pytest.raises(UserError, match="graphed"):
        pick_execution("graphed", torch.device("cpu"))


def test_a_replay_that_does_not_fit_on_the_gpu_goes_to_the_host(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda _: 100)
    gpu = torch.device("cuda")
    assert place_replay("auto", gpu, 90) == gpu
    assert place_replay("auto", gpu, 91) == torch.device("cpu")
