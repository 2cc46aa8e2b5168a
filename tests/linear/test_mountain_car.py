import csv
import json

import numpy as np
import pytest

from gramian.cli import main
from gramian.cli.linear import mountain_car_command as mountain_car
from gramian.linear.learner import Arm
from gramian.linear.mountain_car import (
    Case,
    MountainCar,
    compute,
    costly_cases,
    initial_weights,
    needed_bytes,
    simulate,
    swept_arms,
)

SMALL = {
    "runs": 3,
    "episodes": 3,
    "most_steps": 300,
    "step_sizes": (0.3, 0.9),
    "lambdas": (0.01, 0.1),
    "control_lambdas": (0.1,),
    "full_lambdas": (0.01,),
    "tiles": 3,
    "costly_runs": 2,
}


def small(out, **options):
    return MountainCar(**({"out": out, "threads": 1} | SMALL | options))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("mountain-car")
    assert mountain_car(small(out)) == 0
    return out


def rows_of(path):
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_command_writes_tables_and_figures(done):
    written = {p.name for p in done.iterdir()}
    assert {
        "mountain_car.csv",
        "mountain_car_runs.csv",
        "mountain_car_summary.csv",
        "mountain_car_contrasts.csv",
        "mountain_car_features.csv",
        "mountain_car_distances.csv",
        "mountain_car.png",
        "mountain_car_controls.png",
        "mountain_car_sensitivity.png",
    } <= written


def test_reduced_with_lambda_0_lies_on_plain_learning_in_every_cell(done):
    rows = rows_of(done / "mountain_car.csv")

    def steps(label):
        return [(r["copies"], r["alpha_k_d"], r["steps_mean"]) for r in rows if r["arm"] == label]

    assert len(steps("A, λ = 0")) == 4
    assert steps("A, λ = 0") == steps("plain, α·d")


def test_costly_arms_run_where_the_papers_arm_does_best_in_the_other_half_of_the_runs(done):
    rows, runs = rows_of(done / "mountain_car.csv"), rows_of(done / "mountain_car_runs.csv")
    for copies in ("0", "1"):
        mine = [r for r in runs if (r["copies"], r["arm"], r["span"]) == (copies, "A, single-sample", "all")]
        best = min(mine, key=lambda r: int(r["1"]) + int(r["2"]))  # of 3 runs, the second half
        costly = [r for r in rows if r["copies"] == copies and (r["projected"] == "yes" or r["estimator"] == "running")]
        assert {(r["form"], r["estimator"], r["projected"], r["lambda"]) for r in costly} == {
            ("reduced", "running", "no", best["lambda"]),
            ("reduced", "none", "yes", "0"),
            ("reduced", "single", "yes", best["lambda"]),
            ("full", "none", "yes", "0"),
            ("full", "single", "yes", best["lambda"]),
        }
        assert {(r["alpha_k_d"], r["runs"]) for r in costly} == {(best["alpha_k_d"], "2")}


def test_costly_arms_are_compared_with_their_counterparts_on_the_same_runs(done):
    runs = {
        (r["copies"], r["arm"], r["lambda"], r["alpha_k_d"]): r
        for r in rows_of(done / "mountain_car_runs.csv")
        if r["arm"] != "plain, same α as A" and r["span"] == "all"
    }
    found = [r for r in rows_of(done / "mountain_car_contrasts.csv") if r["first"] == "A projected, λ = 0"]
    assert [(r["second"], r["runs"]) for r in found] == [("A, λ = 0", "2")] * 2
    for row in found:
        (one,) = [r for key, r in runs.items() if key[:2] == (row["copies"], row["first"])]
        other = runs[row["copies"], row["second"], "0", one["alpha_k_d"]]
        difference = np.mean([int(one[n]) - int(other[n]) for n in ("0", "1")]) / SMALL["episodes"]
        assert float(row["difference"]) == pytest.approx(difference)


def test_the_distance_from_orthogonal_is_that_of_the_last_transform_at_the_best_step_size(done, tmp_path):
    rows = rows_of(done / "mountain_car_distances.csv")
    assert {row["form"] for row in rows} == {"reduced", "full"}
    row = next(r for r in rows if (r["copies"], r["arm"], r["lambda"]) == ("1", "A, single-sample", "0.1"))
    summary = rows_of(done / "mountain_car_summary.csv")
    assert row["alpha_k_d"] in {r["best_alpha_k_d"] for r in summary if r["arm"] == "A, single-sample"}
    case, found = Case(1, Arm("reduced", "single", 0.1), float(row["alpha_k_d"])), []
    for run in range(SMALL["runs"]):
        initial = initial_weights(small(tmp_path), case, run)
        simulate(small(tmp_path), case, run, np.zeros(1, dtype=bool), np.zeros((0, 3)), initial)
        singular = np.linalg.svd(initial[0].A, compute_uv=False)
        found.append(np.sqrt(((singular**2 - 1) ** 2).mean()))  # the same in terms of singular values
    assert float(row["distance_mean"]) == pytest.approx(np.mean(found))
    assert float(row["distance_se"]) == pytest.approx(np.std(found, ddof=1) / np.sqrt(len(found)))


def test_copies_raise_the_reported_correlation(done):
    none, all_copied = rows_of(done / "mountain_car_features.csv")
    assert int(all_copied["d"]) == 2 * int(none["d"])
    for column in ("mean_abs_correlation_uniform", "mean_abs_correlation_visited"):
        assert float(all_copied[column]) > float(none[column])


def test_tables_are_the_same_bytes_for_any_number_of_threads_and_after_an_interrupt(done, tmp_path):
    compute(small(tmp_path, costly=False, threads=2))  # as if interrupted before the costly arms
    next((tmp_path / "cells").glob("copies-1_reduced-two-sample*")).unlink()
    mountain_car(small(tmp_path, threads=2))
    for path in done.glob("*.csv"):
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_another_configuration_is_refused_in_the_same_folder(done, capsys):
    before = (done / "mountain_car.csv").read_bytes()
    assert main(["mountain-car", "--out", str(done), "--seed", "7"]) == 2
    assert "holds results with" in capsys.readouterr().err
    assert (done / "mountain_car.csv").read_bytes() == before


def test_a_diverged_run_is_counted_and_counts_as_the_longest_episode(tmp_path):
    options = small(tmp_path)
    lengths, diverged = simulate(options, Case(0, Arm("reduced"), 60.0), 0, np.zeros(1, dtype=bool), np.zeros((0, 3)))
    assert diverged
    assert lengths[-1] == options.most_steps


def test_runs_of_different_arms_share_their_starts(tmp_path):
    trace = np.zeros((2, 1, 3))
    for n, arm in enumerate((Arm("plain"), Arm("full", "single", 0.1))):
        simulate(small(tmp_path), Case(0, arm, 0.5), 4, np.zeros(1, dtype=bool), trace[n])
    assert trace[0, 0, 0] == trace[1, 0, 0]


def test_the_default_sweep_is_at_least_the_papers():
    options = MountainCar()
    assert len(options.step_sizes) >= 8
    assert len(options.lambdas) >= 6
    assert (options.runs, options.episodes, options.most_steps) == (100, 50, 5000)
    assert [options.coding(c).d for c in options.copies] == [486, 972]
    assert {(a.form, a.estimator) for a in swept_arms(options)} == {
        ("plain", "none"),
        ("plain", "single"),
        ("reduced", "none"),
        ("reduced", "single"),
        ("reduced", "two-sample"),
        ("reduced", "norm"),
        ("reduced", "two-sample-norm"),
        ("full", "none"),
        ("full", "single"),
    }


def test_every_thread_needs_its_own_matrices():
    wide = {"tiles": 100, "episodes": 1, "most_steps": 1, "copies": (0,)}
    one, many = (needed_bytes(MountainCar(threads=threads, **wide), 0) for threads in (10, 20))
    assert many == 2 * one == 2 * 10 * 2 * 8 * (3 * 2 * 101**2) ** 2
    assert needed_bytes(MountainCar(threads=10, costly=False, **wide), 0) == one / 2


def test_starting_from_zero_leaves_out_the_projected_arms():
    cases = costly_cases(MountainCar(init="zero"), {0: (0.5, 0.1)})
    assert [case.arm.name for case in cases] == ["reduced running"]


def test_one_copied_feature_adds_one_dimension_and_is_active_where_its_original_is(tmp_path):
    coding = MountainCar().coding("one")
    assert (coding.d, coding.k) == (487, 2)
    active = coding.active((-0.5, 0.0), action=2)
    assert active.tolist() == [coding.copied, int(active[1]), 486]
    assert coding.active((-0.5, 0.0), action=1).size == 2
    small_out = small(tmp_path, copies=("one", "all"), costly=False, estimators=("single",))
    assert mountain_car(small_out) == 0
    rows = rows_of(tmp_path / "mountain_car_features.csv")
    assert [(row["copies"], int(row["d"])) for row in rows] == [("one", 97), ("1", 192)]
    assert (tmp_path / "mountain_car.png").exists()


def test_discount_and_exploration_change_the_runs_and_their_defaults_are_no_part_of_the_configuration(tmp_path):
    stop, trace, case = np.zeros(1, dtype=bool), np.zeros((0, 3)), Case(0, Arm("reduced"), 0.5)
    runs = [small(tmp_path, most_steps=3000, **changed) for changed in ({}, {"gamma": 0.9}, {"epsilon": 0.2})]
    lengths = [simulate(options, case, 0, stop, trace)[0].tolist() for options in runs]
    assert len(set(map(tuple, lengths))) == 3
    compute(small(tmp_path, costly=False, estimators=("single",), copies=(0,), runs=1))
    stored = json.loads((tmp_path / "configuration.json").read_text())
    assert "gamma" not in stored
    assert "epsilon" not in stored


def test_no_two_settings_share_a_cell():
    near = (0.1, np.nextafter(0.1, 1), 0.1000001)
    names = {Case(0, Arm("reduced", "single", lam), x).name for lam in near for x in near}
    assert len(names) == 9


def test_options_in_another_order_are_the_same_options(tmp_path):
    one, other = small(tmp_path, step_sizes=(0.9, 0.3), lambdas=(0.1, 0.01)), small(tmp_path)
    assert one == other


def test_one_step_size_has_no_sensitivity_and_says_no_nan(tmp_path, capsys):
    assert mountain_car(small(tmp_path, step_sizes=(0.5,), costly=False, estimators=("single",), copies=(0,))) == 0
    assert "nan" not in capsys.readouterr().out
    assert not (tmp_path / "mountain_car_sensitivity.png").exists()


def test_one_run_is_enough(tmp_path, capsys):
    options = {"runs": 1, "costly": False, "estimators": ("single",), "copies": (0,)}
    assert mountain_car(small(tmp_path, **options)) == 0
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize("init", ["identity", "orthogonal"])
def test_projected_runs_take_any_orthogonal_start(tmp_path, init):
    options = small(tmp_path, init=init)
    case = Case(1, Arm("full", "single", 0.01, projected=True), 0.5)
    lengths, diverged = simulate(options, case, 0, np.zeros(1, dtype=bool), np.zeros((0, 3)))
    assert not diverged
    assert (lengths > 0).all()
