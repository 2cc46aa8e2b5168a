import pytest

from gramian.core.errors import UserError
from gramian.deep.training.session import train
from gramian.study.cost import (
    PROCESS_BYTES,
    USED_SHARE,
    Hardware,
    Measured,
    Share,
    cost_of,
    divide,
    makespan,
    run_size,
    stated,
)
from gramian.study.plan import to_mapping
from gramian.study.spec import load_study, parse_study
from gramian.study.worker import measure
from tests.study.studies import plan_of, tiny

RUN_BYTES = 7_100_000_000
H200 = Hardware("cuda", "H200", places=1, units=1, free_bytes=149 * 10**9, cores=16)


def billed(spec, at_once=1, rate=1000.0, **choices):
    return cost_of(plan_of(spec, at_once=at_once, **choices), at_once, "CPU", stated(rate), "given")


def test_the_papers_bill_is_its_agent_steps_over_the_rate():
    bill = billed(load_study("paper"), rate=5_000.0)
    assert bill.agent_steps == 441 * 5_000_000
    assert bill.device_seconds == pytest.approx(441 * 5_000_000 / 5_000)
    assert bill.seconds == pytest.approx(bill.device_seconds)


def test_populations_that_are_trained_at_once_share_the_time_and_not_the_bill():
    one, seven = billed(load_study("paper")), billed(load_study("paper"), at_once=7)
    assert seven.seconds == pytest.approx(one.seconds / 7)
    assert seven.device_seconds == pytest.approx(one.device_seconds)


def test_memory_is_that_of_the_replay_and_the_learner_of_all_runs():
    plan = plan_of(load_study("paper"))
    size = run_size(plan.config(plan.populations[0]))
    assert size.replay_bytes == pytest.approx(7.07e9, rel=0.02)
    assert billed(load_study("paper")).memory_bytes == 9 * size.memory_bytes


def test_the_disk_holds_replays_while_it_runs_and_weights_at_the_end():
    paper = load_study("paper")
    kept, dropped = billed(paper, at_once=2), billed(paper, at_once=2, checkpoint_replay=False)
    assert kept.final_disk_bytes == dropped.final_disk_bytes < dropped.peak_disk_bytes
    transition_bytes = stated(1.0)(plan_of(paper).populations[0]).bytes_per_transition
    assert kept.peak_disk_bytes - dropped.peak_disk_bytes == pytest.approx(2 * 9 * 1_500_000 * transition_bytes)


def test_the_disk_at_the_end_is_what_a_population_really_leaves(tmp_path):
    spec = parse_study(tiny(seeds=1), "x")
    plan = plan_of(spec)
    train(plan.config(plan.populations[0]), tmp_path / "run", device="cpu")
    saved = sum(path.stat().st_size for path in tmp_path.glob("run/*/checkpoints/*.safetensors"))
    assert billed(spec).final_disk_bytes < saved < 1.6 * billed(spec).final_disk_bytes  # names and counters on top


def test_the_bill_is_five_lines_with_gpu_days_on_a_gpu():
    text = str(billed(load_study("paper"), device="cuda", rate=5_000.0))
    assert [line.split()[0] for line in text.splitlines()] == ["cells", "memory", "disk", "time", "GPU-days"]
    assert text.splitlines()[-1].split()[1] == "5.1"
    assert "core-days" in str(billed(load_study("smoke")))


def test_a_rate_is_measured_for_each_kind_and_size_of_population_once():
    asked = []

    def known(population):
        asked.append((population.games[0], len(population.runs)))
        return Measured(1.0, 1.0)

    cost_of(plan_of(load_study("paper"), largest=19), 1, "CPU", known, "")
    assert asked == [("alien", 18), ("zaxxon", 9)]


def test_the_real_engine_is_measured():
    found = measure(to_mapping(plan_of(parse_study(tiny(), "x"))), "p000", seconds=0.05, emulator_threads=1)
    assert found["agent_steps_per_second"] > 0
    assert 1 < found["bytes_per_transition"] < 100


def test_makespan_is_no_shorter_than_the_longest_population():
    assert makespan([5.0, 1.0], at_once=4) == 5.0


def test_a_gpu_takes_as_many_runs_as_fit_into_its_memory():
    largest = divide(H200, RUN_BYTES).largest
    assert largest * RUN_BYTES <= USED_SHARE * H200.free_bytes < (largest + 1) * RUN_BYTES


def test_populations_that_share_a_gpu_share_its_memory():
    assert divide(H200, RUN_BYTES, workers=2).largest == divide(H200, RUN_BYTES).largest // 2


def test_processes_that_share_a_gpu_need_memory_of_their_own():
    most = 16
    assert divide(H200, RUN_BYTES, workers=most, largest=1) == Share(most, 1)
    assert most * (RUN_BYTES + PROCESS_BYTES["cuda"]) <= H200.free_bytes
    # without their own they would fit
    assert (most + 1) * RUN_BYTES <= USED_SHARE * H200.free_bytes
    with pytest.raises(UserError, match="not enough memory on H200: 1 run"):
        divide(H200, RUN_BYTES, workers=most + 1, largest=1)


def test_cores_stay_idle_where_the_memory_does_not_suffice_for_more():
    host = Hardware("cpu", "CPU", places=64, units=1, free_bytes=24 * 10**9, cores=64)
    share = divide(host, RUN_BYTES)
    assert share.at_once * (RUN_BYTES + PROCESS_BYTES["cpu"]) <= USED_SHARE * host.free_bytes
    assert (share.at_once, share.largest) == (2, 1)


@pytest.mark.parametrize("asked", [{}, {"workers": 4}, {"largest": 3}])
def test_what_does_not_fit_is_refused_with_what_would_help(asked):
    small = Hardware("cpu", "CPU", places=4, units=1, free_bytes=9 * 10**9, cores=4)
    with pytest.raises(UserError, match=r"not enough memory on CPU: .* lower replay_capacity in \[settings\]"):
        divide(small, run_bytes=8_000_000_000, **asked)
