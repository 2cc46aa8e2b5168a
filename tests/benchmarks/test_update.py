"""What a penalty adds to an update, as a command."""

import csv

from benchmarks import update
from benchmarks.update import Timing

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
    ):
        assert update.main(["--device", "cpu", *asked]) == 2
        assert capsys.readouterr().err == line
