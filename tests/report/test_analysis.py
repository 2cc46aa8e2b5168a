from dataclasses import replace

import numpy as np
import pytest

from gramian.core import statistics
from gramian.core.arms import order_arms
from gramian.core.errors import UserError
from gramian.report.analysis import Options, analyse
from gramian.report.cautions import MOST_OF_A_RANGE, about_ranges
from gramian.report.reference import dopamine_curve, paper_table, random_and_human, title
from gramian.report.tables import markdown, score_table
from gramian.study.manifest import Planned
from gramian.study.store import import_csv
from tests.report.studies import paper_as_csv, study

FAST = Options(replicates=200)


def rising(level, episodes=20):
    return np.linspace(0, level, episodes).tolist()


def two_arms(seeds=3, games=("pong", "breakout"), gain=2.0):
    levels = {"dqn": 10.0, "gram": 10.0 + gain}
    return {(game, arm, s): rising(level + s) for game in games for arm, level in levels.items() for s in range(seeds)}


def test_the_papers_table_through_the_whole_report(tmp_path):
    analysis = analyse(import_csv(paper_as_csv(tmp_path), rows="points"), FAST)
    assert analysis.comparisons["gram"].final == (39, 0, 10)
    assert analysis.comparisons["decor"].final == (39, 1, 9)
    medians = [float(analysis.aggregates[arm].median.estimate) for arm in ("dqn", "decor", "gram")]
    assert medians == pytest.approx([0.443, 0.643, 0.636], abs=5e-4)
    assert any("one finished seed" in caution for caution in analysis.cautions)


def test_dopamines_public_curves_through_the_whole_report_give_their_last_points(tmp_path):
    games = ["Alien", "Pong", "Seaquest"]
    lines = ["arm,game,seed,frames,return"]
    for game in games:
        curve = dopamine_curve(game)
        lines += [
            f"dqn,{game},{run},{int(frames)},{value}"
            for run, values in enumerate(curve.returns)
            for frames, value in zip(curve.frames, values, strict=True)
        ]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    analysis = analyse(import_csv(tmp_path / "d.csv", rows="points"), FAST)
    for at, game in enumerate(analysis.games):
        assert analysis.final["dqn"][:, at] == pytest.approx(dopamine_curve(game).returns[:, -1])


def test_final_score_and_auc_of_a_run_are_those_of_its_episodes():
    returns = np.random.default_rng(0).normal(size=250)
    analysis = analyse(study({("pong", "dqn", 0): returns}), FAST)
    assert analysis.final["dqn"][0, 0] == pytest.approx(returns[-100:].mean())
    grid = analysis.grid(0)
    ends = 1000 * (np.arange(250) + 1) // 250
    curve = statistics.learning_curve(ends, returns, grid)
    assert analysis.auc["dqn"][0, 0] == pytest.approx(statistics.area_under_curve(curve, grid))


def test_scores_have_one_row_for_each_run_with_its_normalised_score():
    analysis = analyse(study({("pong", "dqn", 0): [14.6] * 5, ("cartpole", "dqn", 0): [9.0] * 5}), FAST)
    rows = {row["game"]: row for row in analysis.table.iter_rows(named=True)}
    assert rows["pong"]["human_normalised"] == pytest.approx(1.0)
    assert rows["cartpole"]["human_normalised"] is None
    assert rows["cartpole"]["final_score"] == 9.0


def test_the_human_table_is_the_one_that_was_named():
    one = study({("pong", "dqn", 0): [9.3] * 5})
    assert analyse(one, FAST).aggregates["dqn"].mean.estimate < 1
    assert analyse(one, replace(FAST, human="nature")).aggregates["dqn"].mean.estimate == pytest.approx(1.0)


def test_a_run_that_did_not_finish_is_in_the_curves_and_in_no_score():
    cells = two_arms()
    half = ("pong", "gram", 1)
    analysis = analyse(study(cells, state={half: "interrupted"}, frames_target=dict.fromkeys(cells, 2000)), FAST)
    pong = analysis.games.index("pong")
    assert np.isnan(analysis.final["gram"][1, pong])
    curve = analysis.curves["gram"][1, pong]
    assert np.isfinite(curve[:100]).all()
    assert np.isnan(curve[101:]).all()
    assert analysis.missing.select("game", "arm", "seed", "state").rows() == [("pong", "gram", 1, "interrupted")]
    assert any("1 cell did not finish and has no score" in caution for caution in analysis.cautions)


def test_a_diverged_run_counts_as_random_play_from_there_on():
    cells = {("pong", "dqn", 0): rising(10), ("pong", "gram", 0): rising(10)}
    lengths = dict.fromkeys(cells, 2000)
    analysis = analyse(study(cells, state={("pong", "gram", 0): "diverged"}, frames_target=lengths), FAST)
    assert analysis.final["gram"][0, 0] == -20.7
    assert analysis.auc["gram"][0, 0] < analysis.auc["dqn"][0, 0]
    assert any("1 run diverged and counts as random play" in caution for caution in analysis.cautions)


def test_a_diverged_run_of_a_game_without_a_random_score_is_said_not_to_be_scored():
    cells = {("mine", "dqn", 0): rising(10), ("mine", "gram", 0): rising(10)}
    analysis = analyse(study(cells, state={("mine", "gram", 0): "diverged"}), FAST)
    assert np.isnan(analysis.final["gram"]).all()
    assert any("1 finished run cannot be scored" in caution for caution in analysis.cautions)


def test_random_play_of_unknown_games_is_measured_from_the_prefill():
    cells = {("cartpole", arm, 0): [20.0] * 10 + [100.0] * 10 for arm in ("dqn", "gram")}
    one = study(cells)
    settings = {name: {"prefill_agent_steps": 500} for name in one.runs["run"]}
    analysis = analyse(replace(one, settings=settings), FAST)
    assert analysis.random.tolist() == [20.0]
    assert analysis.comparisons["gram"].gain.estimate.tolist() == [0.0]
    assert any("own random prefill" in caution for caution in analysis.cautions)


def test_without_a_random_score_there_is_no_gain_and_it_is_said():
    analysis = analyse(study({("mine", arm, 0): rising(10) for arm in ("dqn", "gram")}), FAST)
    assert np.isnan(analysis.comparisons["gram"].gain.estimate).all()
    assert any("No score of random play is known for mine" in caution for caution in analysis.cautions)


def test_planned_cells_that_never_began_are_missing_with_their_reason():
    plan = Planned("t", {("pong", "dqn", 7): "out of memory", ("pong", "dqn", 0): ""})
    analysis = analyse(study(two_arms()), FAST, plan)
    assert analysis.missing.rows() == [("", "pong", "dqn", 7, "planned", "out of memory")]


def test_aggregates_are_over_the_games_that_every_arm_has():
    cells = two_arms()
    del cells["breakout", "gram", 0], cells["breakout", "gram", 1], cells["breakout", "gram", 2]
    analysis = analyse(study(cells), FAST)
    assert [analysis.games[at] for at in analysis.common] == ["pong"]
    assert any("Aggregates leave out Breakout" in caution for caution in analysis.cautions)


def test_one_seed_is_said_and_gives_no_interval():
    analysis = analyse(study(two_arms(seeds=1)), FAST)
    assert np.isnan(analysis.aggregates["dqn"].iqm.low)
    assert np.isnan(analysis.comparisons["gram"].gain.low).all()
    assert any("4 cells (game and arm) with one finished seed" in caution for caution in analysis.cautions)


def test_few_seeds_and_few_games_are_said():
    cautions = analyse(study(two_arms()), FAST).cautions
    assert any(caution.startswith("At most 3 seeds a cell") for caution in cautions)
    assert any(caution.startswith("Aggregates are over 2 games") for caution in cautions)


def test_enough_seeds_and_games_of_the_papers_length_leave_nothing_to_say():
    games = paper_table()["game"].to_list()[:10]
    cells = {(game, arm, s): [1e6] * 100 for game in games for arm in ("dqn", "gram") for s in range(10)}
    analysis = analyse(study(cells, frames_target=dict.fromkeys(cells, 20_000_000)), FAST)
    assert analysis.cautions == []


def test_runs_of_other_lengths_and_presets_are_said():
    cells = two_arms(seeds=1)
    first = next(iter(cells))
    cautions = analyse(study(cells, frames_target={first: 5000}, preset={first: "nature"}), FAST).cautions
    assert any("different lengths" in caution for caution in cautions)
    assert any("different presets are mixed: author, nature" in caution for caution in cautions)
    assert any("the paper's columns" in caution for caution in cautions)


def test_a_study_without_its_baseline_is_reported_without_comparisons():
    analysis = analyse(study({("pong", "mine", 0): rising(3)}), FAST)
    assert analysis.comparisons == {}
    assert any("There is no arm 'dqn' to compare with" in caution for caution in analysis.cautions)


def test_a_baseline_of_ones_own_must_be_an_arm():
    with pytest.raises(UserError, match="unknown baseline arm 'gran'; did you mean 'gram'"):
        analyse(study(two_arms()), replace(FAST, baseline="gran"))


def test_two_runs_of_one_cell_are_refused():
    one = study({("pong", "dqn", 0): [1.0]})
    doubled = replace(one, runs=one.runs.vstack(one.runs))
    with pytest.raises(UserError, match="game 'pong', arm 'dqn', seed 0 is there twice"):
        analyse(doubled, FAST)


def test_pairs_are_of_the_same_seed():
    cells = {("pong", "dqn", s): [float(10 * s)] * 5 for s in range(4)}
    cells |= {("pong", "gram", s): [float(10 * s + 1)] * 5 for s in range(1, 4)}
    comparison = analyse(study(cells), FAST).comparisons["gram"]
    assert comparison.pairs == 3
    assert comparison.paired_improvement.estimate == 1.0
    assert comparison.improvement.estimate < 1.0
    assert [end.item() for end in comparison.difference] == [1.0, 1.0, 1.0]
    assert not comparison.paired  # for the gains: a run without a partner would be lost


def test_the_same_seed_of_the_bootstrap_gives_the_same_report_and_another_one_another():
    one = study(two_arms(seeds=5, gain=0.5))
    first, again, other = (analyse(one, replace(FAST, seed=s)).aggregates["gram"].mean for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_study_where_nothing_has_finished_says_so():
    cells = two_arms()
    analysis = analyse(study(cells, state=dict.fromkeys(cells, "running")), FAST)
    assert analysis.aggregates == {}
    assert analysis.cautions[0].startswith("No run has finished yet")


def test_arms_are_ordered_by_kind_and_then_by_kappa():
    assert order_arms(["gram:30.0", "gram:3.0", "decor:1.0", "zzz", "base"], "base") == [
        "base", "decor:1.0", "gram:3.0", "gram:30.0", "zzz",
    ]  # fmt: skip


def test_the_score_table_stands_beside_the_papers_columns():
    analysis = analyse(study({("pong", "dqn", 0): [1.0] * 5, ("cartpole", "dqn", 0): [9.0] * 5}), FAST)
    table = score_table(analysis)
    assert table.published == ["paper DQN", "paper DQN-decor", "paper DQN-Gram", "Dopamine DQN 20M"]
    assert {row.game: row.published[:3] for row in table.rows}["Pong"] == [19.9, 20.0, 6.2]
    assert np.isnan({row.game: row.published for row in table.rows}["CartPole"]).all()


def test_the_papers_columns_are_summarised_by_the_same_code(tmp_path):
    table = score_table(analyse(import_csv(paper_as_csv(tmp_path), rows="points"), FAST))
    summary = {name.split(",")[0]: theirs for name, _, theirs in table.summary}
    assert summary["median"][:3] == ["0.443", "0.643", "0.636"]
    by_final = next(theirs for name, _, theirs in table.summary if name.endswith("final score"))
    assert by_final[:3] == ["", "39-1-9", "39-0-10"]


def test_a_study_without_games_of_the_paper_has_no_such_columns():
    assert score_table(analyse(study({("cartpole", "dqn", 0): [9.0]}), FAST)).published == []


@pytest.mark.parametrize(("options", "message"), [({"replicates": 10}, "at least 100"), ({"seed": -1}, "at least 0")])
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        Options(**options)


def test_game_names_of_the_package_have_the_titles_of_the_package():
    games = pytest.importorskip("gramian.core.games")
    assert {game.name: title(game.name) for game in games.GAMES.values()} == {
        game.name: game.title for game in games.GAMES.values()
    }


def test_episodes_whose_return_is_no_number_are_left_out_and_counted():
    one = study({("pong", "dqn", 0): [1.0, float("nan"), 3.0]})
    analysis = analyse(one, FAST)
    assert analysis.final["dqn"].item() == 2.0
    assert "1 episode with a return that is not a number: left out." in analysis.cautions


def test_a_game_with_one_seed_takes_the_interval_from_its_aggregates_and_the_caution_says_so():
    cells = two_arms()
    del cells["breakout", "gram", 1], cells["breakout", "gram", 2]
    analysis = analyse(study(cells), FAST)
    assert np.isnan(analysis.aggregates["gram"].median.low)
    assert np.isnan(analysis.aggregates["gram"].median_curve.low).all()
    assert np.isfinite(analysis.aggregates["dqn"].median.low)
    assert np.isnan(analysis.comparisons["gram"].improvement.low)
    assert np.isfinite(analysis.comparisons["gram"].gain.low).tolist() == [False, True]  # Breakout, Pong
    assert any("nor for an aggregate or a share of pairs won that it is part of" in said for said in analysis.cautions)


def test_a_diverged_run_that_cannot_be_scored_is_not_said_to_count_as_random_play():
    cells = {(game, arm, 0): rising(10) for game in ("mine", "pong") for arm in ("dqn", "gram")}
    states = {("mine", "gram", 0): "diverged", ("pong", "gram", 0): "diverged"}
    cautions = analyse(study(cells, state=states), FAST).cautions
    assert [said for said in cautions if "as random play" in said] == [
        "1 run diverged and counts as random play from there on, in the final score and in the area under the curve."
    ]
    del states["pong", "gram", 0]
    cautions = analyse(study(cells, state=states), FAST).cautions
    assert not any("as random play" in said for said in cautions)
    assert any("cannot be scored" in said for said in cautions)


def test_games_whose_baseline_is_no_better_than_random_play_are_said():
    cells = two_arms() | {("pong", "dqn", s): [-21.0] * 20 for s in range(3)}
    (said,) = (said for said in analyse(study(cells), FAST).cautions if "no larger than random play's" in said)
    assert "of dqn is no larger than random play's in Pong:" in said
    assert not any("no larger than" in said for said in analyse(study(two_arms()), FAST).cautions)


@pytest.mark.parametrize(
    ("windows", "caption"),
    [
        ((100, 100), "Mean return of the last 100 training episodes, mean over 1 seed."),
        ((1, 1), "Last point of the learning curve, mean over 1 seed."),
        (
            (1, 100),
            "Mean return of the last 100 training episodes, or last point of the learning curve, mean over 1 seed.",
        ),
    ],
)
def test_the_caption_says_what_a_score_is(windows, caption):
    cells = two_arms(seeds=1, games=("cartpole",))
    found = analyse(study(cells, window=dict(zip(cells, windows, strict=True))), FAST)
    assert score_table(found).caption.startswith(caption)
    assert ("100" in found.axis_words) == (windows == (100, 100))


def test_a_score_of_the_table_has_the_interval_over_seeds_that_the_results_have():
    found = analyse(study(two_arms(seeds=5)), FAST)
    table = score_table(found)
    for arm, score in zip(found.arms, table.rows[0].scores, strict=True):
        own = statistics.bootstrap(
            statistics.mean_over_runs, found.final[arm], np.random.default_rng(0), by_game=True, replicates=200
        )
        assert score == (*(float(end[0]) for end in own), 5)
        assert found.final[arm][:, 0].min() <= score.low < score.mean < score.high <= found.final[arm][:, 0].max()


@pytest.mark.parametrize(("seeds", "texts"), [(3, ["5.50 [5.00, 6.00]", "6.50 [6.00, 7.00]"]), (1, ["5.00", "6.00"])])
def test_the_interval_of_three_seeds_is_their_range_and_one_seed_has_none(seeds, texts):
    table = score_table(analyse(study(two_arms(games=("pong",), seeds=seeds)), Options()))
    assert [table.cell(score) for score in table.rows[0].scores] == texts


def test_the_number_of_seeds_stands_in_every_cell_only_where_it_differs():
    cells = two_arms(games=("pong",))
    alike = score_table(analyse(study(cells), Options()))
    assert "mean over 3 seeds [95% bootstrap interval over seeds, which of 3 or fewer is their range]" in alike.caption
    assert "| 5.50 \\[5.00, 6.00\\] | 6.50" in markdown(alike, [])
    del cells["pong", "gram", 2]
    different = score_table(analyse(study(cells), Options()))
    assert "mean over seeds (their number) [95% bootstrap" in different.caption
    assert "| 5.50 \\[5.00, 6.00\\] (3) | 6.25" in markdown(different, [])


def test_the_caption_says_that_published_aggregates_are_over_means():
    assert "those of arms over single runs" in score_table(analyse(study(two_arms()), FAST)).caption
    assert "single runs" not in score_table(analyse(study(two_arms(games=("cartpole",))), FAST)).caption


def test_a_comparison_without_games_has_no_count():
    cells = two_arms(seeds=1)
    found = score_table(analyse(study(cells, state=dict.fromkeys(cells, "running")), FAST))
    assert {text for _, own, _ in found.summary for text in own} == {"", "–"}


@pytest.mark.parametrize("seeds", [2, 3, 4])
def test_the_interval_of_a_game_is_the_range_of_its_seeds_up_to_three(seeds):
    scores = np.arange(float(seeds))[:, None]
    found = statistics.bootstrap(statistics.mean_over_runs, scores, np.random.default_rng(0))
    is_range = (float(np.squeeze(found.low)), float(np.squeeze(found.high))) == (0, seeds - 1)
    assert is_range == (seeds <= MOST_OF_A_RANGE)


@pytest.mark.parametrize(("seeds", "said"), [(1, ""), (2, "Range of 2 seeds: "), (3, "Range of 3 seeds: "), (4, "")])
def test_ranges_are_marked_beside_the_tables(seeds, said):
    assert about_ranges({"dqn": np.ones((seeds, 2)), "gram": np.full((seeds, 2), np.nan)}).startswith(said)
    assert bool(about_ranges({"dqn": np.ones((seeds, 2))})) == bool(said)


def column(name: str) -> np.ndarray:
    return paper_table()[name].to_numpy()


def normalised(name: str, table: str) -> np.ndarray:
    random, human = np.array([random_and_human(game, table) for game in paper_table()["game"]]).T
    return statistics.human_normalised(column(name), random, human)[None]


def test_the_paper_counts_its_own_wins_ties_and_losses():
    dqn, decor, gram = (column(f"paper_{arm}") for arm in ("dqn", "decor", "gram"))
    counts = [statistics.count_games(*pair) for pair in ((gram, dqn), (decor, dqn), (gram, decor))]
    assert counts == [(39, 0, 10), (39, 1, 9), (23, 0, 26)]


@pytest.mark.parametrize(("name", "median"), [("paper_dqn", 0.443), ("paper_decor", 0.643), ("paper_gram", 0.636)])
def test_median_human_normalised_scores_with_the_atari_57_humans(name, median):
    assert statistics.median_score(normalised(name, "atari-57")) == pytest.approx(median, abs=5e-4)


def test_the_nature_table_gives_other_medians():
    assert statistics.median_score(normalised("paper_dqn", "nature")) != pytest.approx(0.443, abs=5e-3)
