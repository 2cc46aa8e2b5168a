import numpy as np
import pytest

from gramian.core import statistics
from gramian.report.cautions import MOST_OF_A_RANGE, about_ranges


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
