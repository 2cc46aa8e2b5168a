"""Comparisons of two arms over the games of a ``scores.csv``."""

import numpy as np
import pytest
import scipy.stats

from gramian.claims.seeds import scores as compare
from gramian.claims.tables import MissingRowsError
from gramian.core.errors import UserError
from tests.claims.made import Made, score_rows

PAIRED = {
    ("asterix", "dqn"): [1.0, 5.0, 9.0, 30.0], ("asterix", "gram"): [2.0, 6.0, 8.0, 33.0],
    ("pong", "dqn"): [-3.0, 0.0, 4.0, 2.0], ("pong", "gram"): [-2.0, 0.0, 3.0, 1.0],
}  # fmt: skip
"""Scores by seed: DQN-Gram wins three pairs of four in one game; in the other one of four, and ties in one."""
AHEAD = {(game, arm): [v + (arm == "gram") for v in PAIRED[game, "dqn"]] for game, arm in PAIRED}


def compared(values, statistic, other="dqn", areas=None):
    tables = Made().put("scores.csv", score_rows(values, areas))
    return compare("scores.csv", "gram", other, statistic).number(tables)


@pytest.mark.parametrize("statistic", ["improvement", "area_improvement"])
@pytest.mark.parametrize("seeds", [3, 4])  # a seed that both arms lack leaves pairs
def test_scores_of_the_same_seeds_are_compared_by_pairs(statistic, seeds):
    short = {key: [*values[:seeds], None] if key[0] == "pong" else values for key, values in PAIRED.items()}
    found = compared(short, statistic)
    assert (found.value, found.note) == ((3 / 4 + 1.5 / seeds) / 2, "")


@pytest.mark.parametrize("statistic", ["improvement", "median"])
def test_seeds_are_drawn_for_both_arms_together(statistic):
    found = compared(AHEAD, statistic)
    assert (found.value, found.low, found.high) == pytest.approx((1, 1, 1))


@pytest.mark.parametrize("seeds", [1, 4])
def test_the_games_that_an_arm_wins_have_an_exact_interval_whatever_the_seeds(seeds):
    won = {key: values[:seeds] for key, values in (PAIRED | {("pong", "gram"): [-4.0, -1.0, 3.0, 1.0]}).items()}
    ends = scipy.stats.binomtest(1, 2).proportion_ci()
    found = compared(won, "games_won")
    assert (found.value, found.low, found.high) == pytest.approx((0.5, ends.low, ends.high))


def test_a_share_that_no_draw_changes_says_why_it_has_no_interval():
    assert str(compared(AHEAD, "improvement")) == "1 (the same in every resample)"
    unpaired = AHEAD | {("pong", "gram"): [99.0, None, 99.0, 99.0], ("asterix", "gram"): [99.0] * 4}
    assert str(compared(unpaired, "improvement")) == "1 (unpaired; the same in every resample)"
    assert str(compared(PAIRED, "improvement")).endswith("]")


def test_the_interval_of_pairs_is_that_of_a_bootstrap_written_out():
    generator, shares = np.random.default_rng(1), []
    for _ in range(2000):
        drawn = [(game, generator.integers(0, 4, 4)) for game in ("asterix", "pong")]
        pairs = [[np.array(PAIRED[game, arm])[seeds] for arm in ("gram", "dqn")] for game, seeds in drawn]
        shares.append(np.mean([((ours > theirs) + 0.5 * (ours == theirs)).mean() for ours, theirs in pairs]))
    found = compared(PAIRED, "improvement")
    assert (found.low, found.high) == pytest.approx(np.percentile(shares, [2.5, 97.5]), abs=0.0626)  # one step: 1/16


def test_scores_of_other_seeds_are_compared_without_pairs_and_say_so():
    found = compared(PAIRED | {("pong", "gram"): [-2.0, None, 3.0, 1.0]}, "improvement")
    asterix = np.mean([a > b for a in PAIRED["asterix", "gram"] for b in PAIRED["asterix", "dqn"]])
    pong = np.mean([a > b for a in (-2.0, 3.0, 1.0) for b in PAIRED["pong", "dqn"]])
    assert found.value == pytest.approx((asterix + pong) / 2)
    assert str(found).endswith("] (unpaired)")


@pytest.mark.parametrize("statistic", ["improvement", "median"])
def test_a_game_of_a_single_seed_leaves_no_interval(statistic):
    single = {key: values[:1] if key[0] == "pong" else values for key, values in PAIRED.items()}
    assert str(compared(single, statistic)).endswith(" (no interval)")


def by_size(values, other):
    """Mean difference of pairs in percent of what DQN learns in a game, by the delta method, written out."""
    means, squares, freedoms = [], [], []
    for game in dict.fromkeys(game for game, _ in values):
        runs = zip(values[game, "gram"], values[game, other], values[game, "dqn"], strict=True)
        known = [(ours - theirs, dqn + 10) for ours, theirs, dqn in runs if None not in (ours, theirs, dqn)]
        seeds, (difference, learned) = len(known), np.mean(known, axis=0)
        of_both = np.cov(np.array(known).T)
        slope = np.array([1 / learned, -difference / learned**2])
        means.append(100 * difference / learned)
        squares.append(100**2 * slope @ of_both @ slope / seeds)
        freedoms.append(seeds - 1)
    mean, error = sum(means) / len(means), sum(squares) ** 0.5 / len(means)
    freedom = sum(squares) ** 2 / sum(square**2 / own for square, own in zip(squares, freedoms, strict=True))
    half = scipy.stats.t.ppf(0.975, freedom) * error
    return mean, mean - half, mean + half


def three_arms(seed):
    """Areas by game and arm; random play has -10."""
    generator = np.random.default_rng(seed)
    keys = [(game, arm) for game in ("asterix", "pong", "qbert") for arm in ("dqn", "gram", "norm")]
    return {key: list(generator.uniform(-9, 50, 4)) for key in keys}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("other", ["norm", "dqn"])
def test_differences_are_in_percent_of_what_dqn_learns_with_students_interval(seed, other):
    area = three_arms(seed)
    found = compared(area, "area_difference", other)
    assert (found.value, found.low, found.high) == pytest.approx(by_size(area, other))
    assert not found.note


def test_a_difference_is_of_the_seeds_that_both_arms_have_and_says_so():
    area = three_arms(0)
    area["pong", "gram"][1] = area["qbert", "norm"][0] = area["pong", "dqn"][2] = None
    found = compared(area, "area_difference", "norm")
    assert (found.value, found.low, found.high) == pytest.approx(by_size(area, "norm"))
    assert str(found).endswith("] (of the seeds that both have)")


def test_a_game_of_one_pair_leaves_a_difference_without_an_interval():
    area = three_arms(0)
    area["pong", "gram"][1:] = [None] * 3
    assert str(compared(area, "area_difference", "norm")).endswith(" (no interval) (of the seeds that both have)")


def test_there_is_no_difference_in_percent_of_what_is_not_learned():
    area = three_arms(0)
    area["pong", "dqn"] = [-10.0] * 4
    assert str(compared(area, "area_difference", "norm")) == "–"
    with pytest.raises(MissingRowsError, match="has no runs of dqn"):
        compared({key: found for key, found in area.items() if key[1] != "dqn"}, "area_difference", "norm")


def test_an_unknown_statistic_is_named():
    with pytest.raises(UserError, match="unknown statistic 'area_diference'; did you mean 'area_difference'"):
        compared(PAIRED, "area_diference")
