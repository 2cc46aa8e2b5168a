"""Means, lines and texts of an analysis, by hand examples."""

import math

import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.representation.analysis import protocol
from gramian.representation.generalisation import parse_modes
from gramian.representation.seeds import Mean, interval, mean, means, text
from gramian.representation.series import growth_shares, line
from gramian.representation.tables import is_analysis, write

GROWTHS = ("growth_log_head_gradient", "growth_log_feature_norm", "growth_log_td_error")
SAID = "100,000 states of each run, ε = 0.01{}; mean ± standard error over seeds."


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (mean([1.0, 3.0, math.nan]), Mean(2.0, 1.0, 2, 1.0, 3.0)),
        ([str(mean(own)) for own in ([1.5], [1.0, 3.0], [1e6], [])], ["1.5", "2 ± 1", "1,000,000", "–"]),
        (text([1.0, 3.0]), "2 ± 1"),
        (text([1.0, math.inf]), "∞"),
        (means([("a", 1.0), ("b", 5.0), ("a", 3.0)])["a"].value, 2.0),
        (line([("a", 2.0, 5.0), ("a", 1.0, 1.0), ("b", 1.0, 3.0)]).mean.tolist(), [2.0, 5.0]),
        (growth_shares({name: Mean(value, 0.1, 2) for name, value in zip(GROWTHS, (2.0, 1.0, 0.5), strict=True)}),
         (0.5, 0.25)),
        (protocol(100_000, 0.01), SAID.format("")),
        (protocol(100_000, 0.01, 5, 4), SAID.format(", seed 5, 4 games side by side")),
        (list(map(str, parse_modes("1:1,2:0", find_game("freeway")))), ["0:0", "1:1", "2:0"]),
    ],
)  # fmt: skip
def test_by_hand(found, expected):
    assert found == expected


def test_an_interval_needs_two_seeds():
    low, high = interval(np.array([[1.0, 5.0], [3.0, np.nan]]))
    np.testing.assert_array_equal([low, high], [[1.0, np.nan], [3.0, np.nan]])


def test_a_part_of_an_analysis_is_refused(tmp_path):
    assert not is_analysis(tmp_path)
    write(tmp_path / "curves.csv", [])
    with pytest.raises(UserError, match=r"is not whole, missing: measures.csv, dynamics.csv, correlation; "):
        is_analysis(tmp_path)
