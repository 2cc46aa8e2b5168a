import re

import pytest
import torch

from gramian.cli import main
from gramian.deep import bench
from gramian.deep.graphs import pick_execution
from gramian.deep.session import place_replay
from gramian.errors import UserError


def test_bench_says_how_fast_the_loop_is_and_where_its_time_goes(capsys):
    assert main(["bench", "cartpole", "--runs", "2", "--seconds", "0.3", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^whole loop +[\d,]+ agent steps/s$", out, re.MULTILINE)
    assert re.search(r"^environments alone +[\d,]+ agent steps/s; the loop reaches \d+%$", out, re.MULTILINE)
    shares = [int(share) for share in re.findall(r"^(?:draw|act|send|learn|recv|observe|other) .* (\d+)%$", out, re.M)]
    assert len(shares) == 7
    assert sum(shares) == pytest.approx(100, abs=4)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--runs", "0"], "--runs 0 is too small; give 1 or more"),
        (["--torch-threads", "0"], "--torch-threads 0 is too small; give 1 or more"),
        (["--device", "cpu", "--runs", "100000"], "lower --runs or --replay-capacity"),
        (["--device", "cpu", "--replay-capacity", "1000000000000"], "lower --runs or --replay-capacity"),
        (["--seconds", "0"], "--seconds 0.0 is no time to measure; give more than 0 and less than 3600"),
        (["--device", "cpu", "--check"], "--check compares CUDA graphs with eager updates, and there is no CUDA here"),
        (["pongg"], "did you mean"),
    ],
)
def test_what_cannot_be_measured_is_one_line(arguments, complaint, capsys):
    assert main(["bench", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert complaint in line


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
    assert bench._first_update(trainer, prefill_agent_steps=4) == 2.0  # the second and the third step
    assert trainer.now == 113.0


def test_a_cpu_executes_eagerly_and_in_no_other_way():
    with pytest.raises(UserError, match="graphed"):
        pick_execution("graphed", torch.device("cpu"))


def test_a_replay_that_does_not_fit_on_the_gpu_goes_to_the_host(monkeypatch):
    monkeypatch.setattr("gramian.deep.session.available_bytes", lambda _: 100)
    gpu = torch.device("cuda")
    assert place_replay("auto", gpu, 90) == gpu
    assert place_replay("auto", gpu, 91) == torch.device("cpu")
