"""What a penalty adds to an update, as a command."""

import csv

import pytest
import torch

from benchmarks import update
from benchmarks.update import Timing

pytestmark = pytest.mark.slow

QUICK = ["--device", "cpu", "--runs", "1", "2", "--repeats", "2", "--count", "1"]


def test_every_arm_is_timed_in_every_repeat_in_turn(tmp_path, capsys):
    assert update.main([*QUICK, "--csv", str(tmp_path / "update.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "update.csv").open()))
    assert [(row["runs"], row["repeat"], row["arm"]) for row in rows] == [
        (runs, repeat, arm) for runs in "12" for repeat in "01" for arm in ("dqn", "gram")
    ]
    assert all(float(row["microseconds"]) > 0 for row in rows)
    assert "| 2 | no | gram | " in capsys.readouterr().out


def test_a_ratio_is_taken_within_a_repeat():
    times = {"dqn": (100.0, 200.0, 400.0), "gram": (110.0, 202.0, 420.0)}
    timings = [Timing(1, True, at, arm, own[at]) for at in range(3) for arm, own in times.items()]
    assert update.table(timings, ["dqn", "gram"]).splitlines()[-1] == "| 1 | yes | gram | 202 | 1.050 (1.010–1.100) |"


def test_the_kernels_of_both_arms_are_listed(tmp_path):
    file = tmp_path / "kernels.csv"
    assert update.main([*QUICK[:3], "1", "--repeats", "1", "--count", "1", "--kernels", str(file)]) == 0
    rows = list(csv.DictReader(file.open()))
    assert {row["arm"] for row in rows} == {"dqn", "gram"}
    assert any("convolution" in row["kernel"] and float(row["us"]) > 0 for row in rows)


def test_bad_input_is_one_line(capsys):
    for asked, line in (
        (["--runs", "0"], "benchmarks.update: --runs, --repeats and --count begin at 1, not 0\n"),
        (["--arms", "gramm"], "benchmarks.update: unknown arm 'gramm'; did you mean 'gram'?\n"),
        (
            ["--csv", "x.csv", "--kernels", "x.csv"],
            "benchmarks.update: --csv and --kernels are both 'x.csv'; name two files\n",
        ),
    ):
        assert update.main(["--device", "cpu", *asked]) == 2
        assert capsys.readouterr().err == line


@pytest.fixture
def unmeasured(monkeypatch):
    """Whoever begins to measure fails."""
    monkeypatch.delattr(update, "make_update")


@pytest.mark.usefixtures("unmeasured")
def test_learners_that_do_not_fit_are_not_built(capsys):
    assert update.main(["--device", "cpu", "--runs", "1", "1000000"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmarks.update: not enough memory on cpu: ")
    assert line.endswith("lower --runs")


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("option", ["--csv", "--kernels"])
def test_places_are_checked_before_anything_is_measured(tmp_path, option):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "x.csv"):
        with pytest.raises(SystemExit) as stopped:
            update.main([*QUICK, option, str(place)])
        assert stopped.value.code == 2


def test_a_folder_that_is_not_there_is_made_for_the_table(tmp_path):
    assert update.main([*QUICK[:3], "1", "--repeats", "1", "--count", "1", "--csv", str(tmp_path / "a" / "x.csv")]) == 0
    assert (tmp_path / "a" / "x.csv").is_file()


def test_the_bill_is_not_below_what_is_allocated():
    bill = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update, "memory_bill", lambda items, *_: bill.update(items))
        update.check_memory(1, 2, torch.device("cpu"))
    batch = update.random_batch(update.SPEC, 2, torch.device("cpu"), number=0)
    pictures = (batch.observations, batch.next_observations)
    assert bill["batches"] == sum(tensor.numel() * tensor.element_size() for tensor in pictures)
    assert batch.actions.shape[1] == update.BATCH_SIZE
