import numpy as np
import polars as pl
import pytest
import scipy.stats

from gramian.report.features import dynamics, feature_table, growths
from gramian.study.store import Study


def metrics_study(rows: dict[str, list[tuple[float, float]]], column: str = "feature_norm") -> Study:
    table = [
        {"run": run, "game": "pong", "arm": "dqn", "seed": at, "frames": frames, column: value}
        for at, (run, points) in enumerate(rows.items())
        for frames, value in points
    ]
    return Study(pl.DataFrame(), pl.DataFrame(), pl.DataFrame(table))


def test_a_point_is_the_mean_over_seeds_of_the_means_of_its_bin():
    one = metrics_study({"a": [(590, 1.0), (600, 3.0)], "b": [(600, 10.0)]})
    series = dynamics(one, {"pong": 600.0})["pong"]["feature_norm"]["dqn"]
    assert series.x.tolist() == [590.0, 600.0]
    assert series.mean.tolist() == [1.0, 6.5]
    np.testing.assert_allclose([series.low, series.high], [[np.nan, 3.0], [np.nan, 10.0]])
    np.testing.assert_allclose(series.runs, [[1.0, 3.0], [np.nan, 10.0]])


def test_a_band_is_the_interval_of_the_bootstrap_over_seeds():
    values = np.random.default_rng(0).normal(size=12)
    one = metrics_study({str(seed): [(600, value)] for seed, value in enumerate(values)})
    series = dynamics(one, {"pong": 600.0})["pong"]["feature_norm"]["dqn"]
    theirs = scipy.stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(1))
    ends = theirs.confidence_interval
    np.testing.assert_allclose([series.low[0], series.high[0]], [ends.low, ends.high], atol=0.08)


def test_values_that_are_not_finite_are_left_out():
    one = metrics_study({"a": [(300, float("nan")), (600, 2.0)], "b": [(600, float("inf"))]})
    series = dynamics(one, {"pong": 600.0})["pong"]["feature_norm"]["dqn"]
    assert (series.x.tolist(), series.mean.tolist()) == ([600.0], [2.0])


def test_sparsity_is_the_share_of_features_that_are_not_active():
    one = metrics_study({"a": [(600, 0.25)]}, "active_features")
    assert dynamics(one, {"pong": 600.0})["pong"]["sparsity"]["dqn"].mean == pytest.approx([0.75])


def test_no_more_than_sixty_points_are_kept():
    one = metrics_study({"a": [(float(frame), 1.0) for frame in range(1, 1001)]})
    assert len(dynamics(one, {"pong": 1000.0})["pong"]["feature_norm"]["dqn"].x) == 60


def test_a_run_that_went_on_beyond_the_horizon_falls_into_the_last_bin_and_one_without_metrics_into_none():
    one = metrics_study({"a": [(700, 1.0)]})
    assert np.array_equal(dynamics(one, {"pong": 600.0})["pong"]["feature_norm"]["dqn"].x, [600.0])
    assert dynamics(Study(pl.DataFrame(), pl.DataFrame(), pl.DataFrame()), {}) == {}


def test_held_out_measures_stand_behind_those_of_the_batches():
    metrics = metrics_study({"a": [(600, 1.0)]}).metrics
    held = metrics_study({"a": [(600, 7.0)]}, "effective_rank").metrics
    found = dynamics(Study(pl.DataFrame(), pl.DataFrame(), metrics, held_out=held), {"pong": 600.0})["pong"]
    assert list(found) == ["feature_norm", "held_out.effective_rank"]
    assert found["held_out.effective_rank"]["dqn"].mean.tolist() == [7.0]


def grown(rows, states=("done", "done")):
    """Growths of Pong's DQN from the rows of the runs a and b: run, frames, gradient, norm and TD error."""
    columns = ["run", "frames", "grad_norm_head", "feature_norm", "td_error"]
    cells = {"run": ["a", "b"], "game": "pong", "arm": "dqn", "seed": [0, 1], "kappa": 0.0, "state": list(states)}
    metrics = pl.DataFrame(rows, columns, orient="row")
    return growths(feature_table(Study(pl.DataFrame(cells), pl.DataFrame(), metrics)))["pong"]["dqn"]


def test_growth_is_a_mean_over_the_runs_of_an_arm():
    runs = (("a", 1.0), ("b", 3.0))
    found = grown([(run, at, np.e ** (at * factor), np.e**at, 1.0) for run, factor in runs for at in (0, 1)])
    assert found["growth_log_head_gradient"].value == pytest.approx(2.0)
    assert found["growth_log_feature_norm"].value == pytest.approx(1.0)
    assert found["growth_log_td_error"].value == 0.0


def test_growth_leaves_runs_out_that_diverged():
    rows = [(run, 0, at, at, 1.0) for run, last in (("a", 2.0), ("b", 1e9)) for at in (1.0, last)]
    found = grown(rows, ("done", "diverged"))
    assert found["growth_log_head_gradient"].seeds == 1
    assert found["growth_log_head_gradient"].value == pytest.approx(np.log(2))
