"""Regression and TD(0): their curves, tables and commands."""

import csv

import numpy as np
import pytest

from gramian.cli import main
from gramian.linear import regression, td
from gramian.linear.curves import MATCHED, cases, control_of, record_points, write_tables
from gramian.linear.mdp import boyan_chain
from gramian.linear.regression import BLOCK_RUNS, Regression
from gramian.linear.td import TD


def rows_of(path):
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_one_diverged_run_leaves_the_mean_distance_to_the_others(tmp_path):
    """At this step size some runs diverge and others do not: over one whole block and ten runs of another."""
    options = Regression(
        out=tmp_path, runs=BLOCK_RUNS + 10, steps=300, alpha=0.5, rhos=(0.0,), lambdas=(0.1,), threads=1
    )
    results = regression.compute(options)
    write_tables(results)
    (row,) = [r for r in rows_of(tmp_path / "regression_summary.csv") if r["arm"] == "A, λ = 0"]
    c = next(i for i, case in enumerate(results.cases) if case.label == "A, λ = 0")
    diverged, distances = results.diverged[0, c], results.distances[0, c, -1]
    assert 0 < int(row["diverged"]) == diverged.sum() < options.runs == int(row["runs"])
    assert np.isnan(distances[diverged]).all()
    known = distances[~diverged]
    assert float(row["distance_mean"]) == pytest.approx(known.mean())
    assert float(row["distance_se"]) == pytest.approx(known.std(ddof=1) / known.size**0.5)


@pytest.mark.filterwarnings("error")
def test_divergence_warns_of_nothing_and_says_no_nan(tmp_path, capsys):
    assert main(["regression", "--runs", "3", "--steps", "300", "--alpha", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "nan" not in printed
    assert "inf" not in printed
    assert "–" in printed


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return regression.compute(Regression(out=tmp_path_factory.mktemp("regression"), runs=60, steps=4000, threads=2))


@pytest.mark.parametrize(
    ("measure", "rho", "arm", "lam", "expected", "within"),
    [
        # ‖A·1‖ = √2 but ‖(1, 2)‖ = √5: with Σ = I the floor is (√5 − √2)²
        ("final", 0.0, "A projected, λ = 0", 0.0, (5**0.5 - 2**0.5) ** 2, 0.02),
        ("final", 0.99, "A projected, λ = 0", 0.0, 1.0, 0.01),
        ("plateau", 0.99, "A, single-sample (the paper)", 0.01, 0.012, 0.15),
        ("plateau", 0.99, "A, λ = 0", 0.0, 0.003, 0.33),
    ],
)
def test_floors_and_plateaus(results, measure, rho, arm, lam, expected, within):
    c = next(i for i, case in enumerate(results.cases) if (case.label, case.arm.lam) == (arm, lam))
    group = results.experiment.options.rhos.index(rho)
    assert results.measures(group, c)[measure].mean() == pytest.approx(expected, rel=within)


def test_every_case_has_its_control_and_zero_leaves_out_the_projected_ones():
    listed = cases(0.01, (0.1,), "identity", 2)
    for c, case in enumerate(listed):
        control = listed[control_of(listed, c)]
        assert control.arm.lam == 0
        assert control_of(listed, c) == MATCHED or control.arm.form == case.arm.form
    assert listed[MATCHED].alpha == 0.02
    assert not any(case.arm.projected for case in cases(0.01, (0.1,), "zero", 2))


def test_record_points_begin_at_0_and_end_at_the_last_step():
    points = record_points(20_000)
    assert (points[0], points[-1]) == (0, 20_000)
    assert (np.diff(points) > 0).all()


def written(out, **options):
    options = {"out": out, "runs": BLOCK_RUNS + 10, "steps": 50, "lambdas": (0.01,)} | options
    write_tables(regression.compute(Regression(**options)))
    return [(out / name).read_bytes() for name in ("regression.csv", "regression_summary.csv")]


@pytest.mark.slow
def test_the_tables_are_the_same_bytes_for_any_number_of_threads_and_after_an_interrupt(tmp_path):
    one = written(tmp_path / "one", threads=1)
    written(tmp_path / "two", threads=2)
    last = f"runs-{BLOCK_RUNS:06d}-{BLOCK_RUNS + 10:06d}.npz"
    (tmp_path / "two" / "cells" / last).unlink()  # as if interrupted before the last block
    assert one == written(tmp_path / "two", threads=1)


def test_another_seed_gives_another_table(tmp_path):
    assert written(tmp_path / "0", runs=5, seed=0)[0] != written(tmp_path / "1", runs=5, seed=1)[0]


def test_the_command_prints_a_table_and_writes_tables_and_figures(tmp_path, capsys):
    assert main(["regression", "--runs", "3", "--steps", "30", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "A, single-sample (the paper)" in printed
    assert max(len(line) for line in printed.splitlines() if str(tmp_path) not in line) <= 80
    names = {p.name for p in tmp_path.iterdir()}
    assert {"regression.csv", "regression_summary.csv", "regression.png", "regression_controls.png"} <= names


def test_an_unwritable_folder_gets_one_line_and_exit_code_2(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["regression", "--quick", "--out", str(tmp_path / "file" / "out")]) == 2
    assert capsys.readouterr().err.startswith("gramian: cannot write to folder")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("process", ["random", "boyan"])
def test_td_approaches_the_solution_and_lambda_0_is_plain_learning_at_alpha_d(tmp_path, process):
    options = {"runs": 12, "steps": 3000, "process": process}
    results = td.compute(TD(out=tmp_path, threads=2, **options))
    by_label = {case.label: results.errors[0, c] for c, case in enumerate(results.cases) if case.arm.lam == 0}
    assert (results.errors[:, :, 0] == 1).all()
    np.testing.assert_allclose(by_label["A, λ = 0"], by_label["plain, α·d"], rtol=1e-6)
    assert by_label["plain, α·d"][-1].mean() < 0.3
    again = td.compute(TD(out=tmp_path / "one", threads=1, **options))
    np.testing.assert_allclose(results.errors, again.errors, rtol=1e-9)


def test_boyans_chain_has_the_values_minus_2_s_and_its_steps_are_sampled_as_they_are():
    chain = boyan_chain(1.0)
    np.testing.assert_allclose(chain.phi @ chain.td_fixed_point(), -2.0 * np.arange(13), atol=1e-9)
    assert (chain.mu[:, None] * chain.phi**2).sum() / 4 == pytest.approx(1)
    rng = np.random.default_rng(0)
    episode, visits = 0, np.zeros(13)
    while episode < 4000:  # by hand: the share of the visits of each state
        state = 12
        while state > 0:
            visits[state] += 1
            state -= 1 if state == 1 else int(rng.integers(1, 3))
        episode += 1
    np.testing.assert_allclose(chain.mu, visits / visits.sum(), atol=0.005)


def test_td_writes_tables_and_a_figure(tmp_path, capsys):
    assert main(["td", "--runs", "2", "--steps", "100", "--process", "boyan", "--out", str(tmp_path)]) == 0
    assert "(θ, A), two-sample" in capsys.readouterr().out
    rows = {(row["arm"], row["lambda"]): row for row in rows_of(tmp_path / "td_summary.csv")}
    assert float(rows["plain, α·d", "0"]["area_minus_control_mean"]) == 0
    assert rows["plain, α·d", "0"]["process"] == "boyan"
    assert (tmp_path / "td.png").read_bytes().startswith(b"\x89PNG")
