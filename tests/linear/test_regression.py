import numpy as np
import pytest

from gramian.cli import main
from gramian.linear.regression import (
    BLOCK_RUNS,
    MATCHED,
    Regression,
    _combine,
    _moments,
    block,
    cases,
    compute,
    control_of,
    record_points,
    write_tables,
)


def test_one_diverged_run_leaves_the_mean_distance_to_the_others(tmp_path):
    """At this step size some runs diverge and others do not: over one whole block and ten runs of another."""
    options = Regression(
        out=tmp_path, runs=BLOCK_RUNS + 10, steps=300, alpha=0.5, rhos=(0.0,), lambdas=(0.1,), threads=1
    )
    results = compute(options)
    c = next(i for i, case in enumerate(results.cases) if case.label == "A, λ = 0")
    diverged = results.diverged[0, c]
    assert 0 < diverged.sum() < options.runs
    parts = range(BLOCK_RUNS), range(BLOCK_RUNS, options.runs)
    blocks = [block(options, runs, np.zeros(1, dtype=bool)) for runs in parts]
    counts, means = (np.array([part[f"distances_{name}"][0, c, -1] for part in blocks]) for name in ("count", "mean"))
    assert counts.tolist() == [BLOCK_RUNS - diverged[:BLOCK_RUNS].sum(), 10 - diverged[BLOCK_RUNS:].sum()]
    assert results.distances[0, 0, c, -1] == pytest.approx((counts * means).sum() / counts.sum())


def test_the_moments_of_blocks_are_those_of_all_runs_that_have_a_number():
    values = np.random.default_rng(0).standard_normal((1, 1, 3, 12))
    values[0, 0, 1, [2, 7, 11]] = np.nan
    values[0, 0, 2] = np.nan
    parts = [_moments("x", part) for part in np.split(values, [5, 9], axis=-1)]
    mean, error = _combine(parts, "x")[:, 0, 0]
    known = values[0, 0, 1][np.isfinite(values[0, 0, 1])]
    assert mean[:2] == pytest.approx([values[0, 0, 0].mean(), known.mean()])
    assert error[:2] == pytest.approx([values[0, 0, 0].std(ddof=1) / 12**0.5, known.std(ddof=1) / 3])
    assert np.isnan([mean[2], error[2]]).all()


@pytest.mark.filterwarnings("error")
def test_divergence_warns_of_nothing_and_says_no_nan(tmp_path, capsys):
    assert main(["regression", "--runs", "3", "--steps", "300", "--alpha", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "nan" not in printed
    assert "inf" not in printed
    assert "–" in printed


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return compute(Regression(out=tmp_path_factory.mktemp("regression"), runs=60, steps=4000, threads=2))


def error_of(results, rho, label, lam=0.0, what="plateau"):
    c = next(i for i, case in enumerate(results.cases) if case.label == label and case.arm.lam == lam)
    return getattr(results, what)[results.options.rhos.index(rho), c].mean()


def test_the_projected_reduced_form_floors_where_its_weights_cannot_reach(results):
    # ‖A·1‖ = √2 but ‖(1, 2)‖ = √5: with Σ = I the floor is (√5 − √2)²
    assert error_of(results, 0.0, "A projected, λ = 0", what="final") == pytest.approx((5**0.5 - 2**0.5) ** 2, rel=0.02)
    assert error_of(results, 0.99, "A projected, λ = 0", what="final") == pytest.approx(1.0, rel=0.01)


def test_the_single_sample_term_sits_on_a_plateau_far_above_lambda_0(results):
    assert error_of(results, 0.99, "A, single-sample (the paper)", 0.01) == pytest.approx(0.012, rel=0.15)
    assert error_of(results, 0.99, "A, λ = 0") < 0.004


def test_every_case_has_its_control():
    listed = cases(0.01, (0.1,))
    for c, case in enumerate(listed):
        control = listed[control_of(listed, c)]
        assert control.arm.lam == 0
        assert control_of(listed, c) == MATCHED or control.arm.form == case.arm.form
    assert listed[MATCHED].alpha == 0.02


def test_starting_from_zero_leaves_out_the_projected_cases():
    assert not any(case.arm.projected for case in cases(0.01, (0.1,), "zero"))


def test_record_points_begin_at_0_and_end_at_the_last_step():
    points = record_points(20_000)
    assert (points[0], points[-1]) == (0, 20_000)
    assert (np.diff(points) > 0).all()


def regression(out, **options):
    write_tables(
        compute(Regression(**({"out": out, "runs": BLOCK_RUNS + 10, "steps": 50, "lambdas": (0.01,)} | options)))
    )


@pytest.mark.slow
def test_the_tables_are_the_same_bytes_for_any_number_of_threads_and_after_an_interrupt(tmp_path):
    regression(tmp_path / "one", threads=1)
    regression(tmp_path / "two", threads=2)
    (
        tmp_path / "two" / "cells" / f"runs-{BLOCK_RUNS:06d}-{BLOCK_RUNS + 10:06d}.npz"
    ).unlink()  # as if interrupted before the last block
    regression(tmp_path / "two", threads=1)
    for name in ("regression.csv", "regression_summary.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_another_seed_gives_another_table(tmp_path):
    for seed in (0, 1):
        regression(tmp_path / str(seed), seed=seed)
    assert (tmp_path / "0" / "regression.csv").read_bytes() != (tmp_path / "1" / "regression.csv").read_bytes()


def test_the_command_prints_a_table_and_writes_tables_and_figures(tmp_path, capsys):
    options = ["--runs", "3", "--steps", "30", "--out", str(tmp_path)]
    assert main(["regression", *options]) == 0
    printed = capsys.readouterr().out
    assert "A, single-sample (the paper)" in printed
    table = [line for line in printed.splitlines() if str(tmp_path) not in line]
    assert max(map(len, table)) <= 80
    written = {p.name for p in tmp_path.iterdir()}
    assert {"regression.csv", "regression_summary.csv", "regression.png", "regression_controls.png"} <= written


def test_an_unwritable_folder_gets_one_line_and_exit_code_2(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["regression", "--quick", "--out", str(tmp_path / "file" / "out")]) == 2
    assert capsys.readouterr().err.startswith("gramian: cannot write to folder")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
