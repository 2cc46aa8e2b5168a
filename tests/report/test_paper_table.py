"""The paper's own table through the code that makes ours."""

import numpy as np
import pytest

from gramian.core import statistics
from gramian.report.reference import paper_table, random_and_human


def column(name: str) -> np.ndarray:
    return paper_table()[name].to_numpy()


def normalised(name: str, table: str) -> np.ndarray:
    random, human = np.array([random_and_human(game, table) for game in paper_table()["game"]]).T
    return statistics.human_normalised(column(name), random, human)[None]


def test_gram_beats_dqn_in_39_games_and_loses_10():
    assert statistics.count_games(column("paper_gram"), column("paper_dqn")) == (39, 0, 10)


def test_decor_beats_dqn_in_39_games_with_one_tie():
    assert statistics.count_games(column("paper_decor"), column("paper_dqn")) == (39, 1, 9)


def test_gram_against_decor_is_23_to_26():
    assert statistics.count_games(column("paper_gram"), column("paper_decor")) == (23, 0, 26)


@pytest.mark.parametrize(("name", "median"), [("paper_dqn", 0.443), ("paper_decor", 0.643), ("paper_gram", 0.636)])
def test_median_human_normalised_scores_with_the_atari_57_humans(name, median):
    assert statistics.median_score(normalised(name, "atari-57")) == pytest.approx(median, abs=5e-4)


def test_the_nature_table_gives_other_medians():
    assert statistics.median_score(normalised("paper_dqn", "nature")) != pytest.approx(0.443, abs=5e-3)
