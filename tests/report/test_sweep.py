"""The choice of κ."""

import math

import numpy as np
import polars as pl
import pytest

from gramian.report.analysis import MOST_SHOWN, Options, analyse
from gramian.report.scores import last_mean
from gramian.report.sweep import counting_games, grids_of, matched_kappa, penalty_of, sweep_table, within_range
from gramian.study.store import CELL_SCHEMA, Study
from tests.report.studies import study

FAST = Options(replicates=200)
SCORES = {"dqn": 10.0, "gram:0.1": 20.0, "gram:1.0": 40.0, "gram:10.0": 0.0,
          "l2:0.1": 10.0, "l2:1.0": 15.0, "l2:10.0": 20.0}  # fmt: skip


def kappas(arm):
    return float(arm.split(":")[1]) if ":" in arm else 0.0


def swept(scores=SCORES, games=("pong", "qbert"), scale=100.0, noise=1.0) -> Study:
    """Two seeds of each arm; the second game has ``scale`` times the points of the first."""
    cells = {
        (game, arm, seed): [score * scale**at + noise * scale**at * seed]
        for at, game in enumerate(games)
        for arm, score in scores.items()
        for seed in (0, 1)
    }
    return study(cells, kappa={cell: kappas(cell[1]) for cell in cells})


def with_norms(one: Study, norm) -> Study:
    rows = [(*run, 1.0, norm(run[2])) for run in one.runs.select(*CELL_SCHEMA).iter_rows()]
    schema = CELL_SCHEMA | {"frames": pl.Float64, "feature_norm": pl.Float64}
    return Study(one.runs, one.episodes, pl.DataFrame(rows, schema=schema, orient="row"))


def penalties(one, options=FAST):
    return {penalty.name: penalty for penalty in analyse(one, options).sweep.penalties}


def test_the_kappa_of_the_highest_score_is_chosen_for_each_penalty():
    found = penalties(swept())
    assert {name: penalty.chosen.kappa for name, penalty in found.items()} == {"gram": 1.0, "l2": 10.0}


def test_a_score_is_0_for_the_worst_arm_and_1_for_the_best_in_every_game_alike():
    settings = {s.arm: float(s.score.estimate) for p in penalties(swept()).values() for s in p.settings}
    assert settings["gram:1.0"] == 1.0
    assert settings["gram:10.0"] == 0.0
    assert settings["gram:0.1"] == pytest.approx(0.5)


def test_centred_and_uncentred_are_penalties_of_their_own():
    scores = SCORES | {f"gram:{kappa}:uncentered": 5.0 for kappa in (0.1, 1.0, 10.0)}
    found = penalties(swept(scores))
    assert {name: penalty.centered for name, penalty in found.items()} == {
        "gram": True, "gram:uncentered": False, "l2": True,
    }  # fmt: skip


def test_a_choice_at_the_end_of_the_grid_is_said():
    assert "The best κ of l2 is at an end of the grid: a better one may lie outside." in analyse(swept(), FAST).cautions


def test_grids_that_differ_are_said():
    without = {arm: score for arm, score in SCORES.items() if arm != "l2:10.0"} | {"l2:30.0": 3.0}
    analysis = analyse(swept(without), FAST)
    assert not analysis.sweep.grids_agree
    assert any("not at equal effort" in caution for caution in analysis.cautions)


def test_a_game_that_lacks_an_arm_is_left_out_and_named():
    one = swept()
    gone = (pl.col("game") == "qbert") & (pl.col("arm") == "l2:1.0")
    one = Study(one.runs.filter(~gone), one.episodes.filter(~gone), one.metrics)
    analysis = analyse(one, FAST)
    assert [analysis.games[at] for at in analysis.sweep.games] == ["pong"]
    assert any(caution.startswith("The choice of κ leaves out Qbert") for caution in analysis.cautions)


def test_kappas_within_the_interval_of_the_chosen_one_are_listed():
    close = SCORES | {"gram:0.1": 39.9}
    assert penalties(swept(close))["gram"].indistinct == [0.1, 1.0]
    assert penalties(swept(noise=0.0))["gram"].indistinct == [1.0]


def test_one_seed_gives_no_interval_and_no_neighbours():
    one = swept()
    one = Study(one.runs.filter(pl.col("seed") == 0), one.episodes.filter(pl.col("seed") == 0), one.metrics)
    chosen = penalties(one)["gram"].chosen
    assert math.isnan(float(chosen.score.low))
    assert penalties(one)["gram"].indistinct == []


def test_penalties_are_matched_at_the_norm_of_the_chosen_gram():
    norms = {"gram:1.0": 4.0, "l2:0.1": 8.0, "l2:1.0": 6.0, "l2:10.0": 2.0}
    sweep = analyse(with_norms(swept(), lambda arm: norms.get(arm, 9.0)), FAST).sweep
    (matched,) = sweep.matched
    assert sweep.reference.arm == "gram:1.0"
    assert 1.0 < matched.kappa < 10.0
    assert matched.reach == pytest.approx((2.0, 8.0))
    scores = {s.arm: float(s.score.estimate) for p in sweep.penalties for s in p.settings}
    assert scores["l2:1.0"] < matched.score < scores["l2:10.0"]


def test_a_norm_outside_of_a_grid_has_no_match():
    sweep = analyse(with_norms(swept(), lambda arm: 1.0 if arm == "gram:1.0" else 9.0), FAST).sweep
    assert sweep.matched[0].kappa is None
    assert math.isnan(sweep.matched[0].score)


def test_the_arm_without_a_penalty_has_its_norm_in_the_table():
    one = with_norms(swept(), lambda arm: 7.0 if arm == "dqn" else 1.0)
    rows = sweep_table(analyse(one, FAST).sweep, "dqn").select("arm", "feature_norm").rows()
    assert dict(rows)["dqn"] == pytest.approx(7.0)


def test_two_kappas_are_no_grid():
    assert analyse(swept({"dqn": 1.0, "gram:1.0": 2.0, "gram:2.0": 3.0}), FAST).sweep is None


def test_figures_begin_with_the_baseline_and_the_chosen_kappas():
    scores = SCORES | {f"cross:{kappa}": 1.0 for kappa in (0.1, 1.0, 10.0)}
    analysis = analyse(swept(scores), FAST)
    assert len(analysis.arms) > MOST_SHOWN
    assert analysis.shown() == ["dqn", "gram:1.0", "cross:0.1", "l2:10.0"]


def test_the_report_has_a_table_a_figure_and_a_section(kappa_report):
    table = pl.read_csv(kappa_report / "kappa.csv")
    assert table.height == 12 + 1
    assert table.filter("chosen").height == 3
    assert ((table["score_low"] <= table["score"]) & (table["score"] <= table["score_high"])).all()
    without = table.row(by_predicate=pl.col("penalty") == "dqn", named=True)
    assert (without["kappa"], without["chosen"]) == (None, False)
    assert (kappa_report / "figures" / "kappa.svg").exists()
    assert 'id="kappa"' in (kappa_report / "index.html").read_text()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (penalty_of("gram:10.24"), "gram"),
        (penalty_of("gram:1.0:uncentered"), "gram:uncentered"),
        (penalty_of("l2:3.0 lr 0.001"), "l2 lr 0.001"),
        (last_mean([9.0, 9.0, 9.0, 4.0]), 4.0),
        (matched_kappa({0.1: 8.0, 10.0: 2.0}, target=4.0), 1.0),
        (matched_kappa({0.1: 8.0, 10.0: 2.0}, target=9.0), None),
        (
            grids_of({"dqn": 0, "gram:1": 1, "gram:0.1": 0.1, "gram:9": 9, "l2:1": 1}),
            {"gram": ["gram:0.1", "gram:1", "gram:9"]},
        ),
    ],
)
def test_by_hand(found, expected):
    assert found == expected


def test_games_count_where_all_arms_have_a_score_and_differ():
    means = {"dqn": np.array([1.0, 5.0, 2.0]), "gram": np.array([2.0, 5.0, np.nan])}
    assert counting_games(means, ["dqn", "gram"]) == [0]


def test_scores_are_shares_of_the_range_of_their_game():
    scores = {"dqn": np.array([[1.0], [3.0]]), "gram": np.array([[4.0], [4.0]])}
    shares = within_range(scores, {arm: own.mean(0) for arm, own in scores.items()}, ["dqn", "gram"], [0])
    assert shares["dqn"].tolist() == [[-0.5], [0.5]]
