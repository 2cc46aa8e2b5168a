import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.linear.car import HIGH, LOW
from gramian.linear.features import TileCoding, mean_absolute_correlation


def test_a_hand_computed_example():
    # A 4 × 4 box with 2 tiles per dimension (2 wide) and 4 tilings of 3 × 3 stored tiles. Offsets in tiles, from
    # displacements 1 and 3: (0, 0), (¼, ¾), (½, ½), (¾, ¼). At (1, 3): 0.5 and 1.5 tiles from the corner.
    coding = TileCoding(low=(0.0, 0.0), high=(4.0, 4.0), tilings=4, tiles=2)
    assert coding.arrays.offsets.tolist() == [[0, 0], [0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]
    # tiling 0: (0, 1) → 1; 1: (0.75, 2.25) → (0, 2) → 9 + 2; 2: (1.0, 2.0) → (1, 2) → 18 + 5; 3: (1.25, 1.75) → 27 + 4
    assert coding.active((1.0, 3.0)).tolist() == [1, 11, 23, 31]


def test_two_tilings_of_8_by_8_have_486_features_for_three_actions():
    coding = TileCoding(low=LOW, high=HIGH, tilings=2, tiles=8, actions=3)
    assert (coding.d, coding.k) == (486, 2)
    assert (coding.per_action, TileCoding(LOW, HIGH, tilings=8, tiles=2, actions=3).d) == (162, 216)


@pytest.mark.parametrize(("tilings", "tiles", "copies"), [(2, 8, 0), (2, 8, 1), (8, 2, 0), (3, 5, 2)])
def test_every_state_of_the_box_has_k_different_features_within_d(tilings, tiles, copies):
    coding = TileCoding(LOW, HIGH, tilings, tiles, actions=3, copies=copies)
    for position in np.linspace(LOW[0], HIGH[0], 25):
        for velocity in np.linspace(LOW[1], HIGH[1], 25):
            active = coding.active((position, velocity), action=2)
            assert len(set(active)) == coding.k
            assert active.min() >= 0
            assert active.max() < coding.d


def test_states_outside_the_box_count_as_on_its_border_and_actions_share_no_feature():
    coding = TileCoding(LOW, HIGH, actions=3)
    assert coding.active((9.0, -9.0)).tolist() == coding.active((HIGH[0], LOW[1])).tolist()
    blocks = [set(coding.active((0.1, 0.01), action)) for action in range(3)]
    assert len(set.union(*blocks)) == 6


def some_features(copies, n=400, copied=-1):
    rng = np.random.default_rng(0)
    states = np.stack([rng.uniform(*bounds, n) for bounds in zip(LOW, HIGH, strict=True)], axis=1)
    return TileCoding(LOW, HIGH, tiles=3, actions=3, copies=copies, copied=copied).matrix(
        states, rng.integers(3, size=n)
    )


def test_copies_double_d_leave_the_rank_unchanged_and_raise_the_correlation():
    once, twice = some_features(0), some_features(1)
    np.testing.assert_array_equal(twice, np.hstack([once, once]))
    assert np.linalg.matrix_rank(twice) == np.linalg.matrix_rank(once)
    assert mean_absolute_correlation(twice) > mean_absolute_correlation(once)


def test_one_copied_feature_is_one_more_column():
    once = some_features(0)
    one = some_features(1, copied=5)
    np.testing.assert_array_equal(one, np.hstack([once, once[:, 5:6]]))


def test_mean_absolute_correlation_of_a_hand_example():
    x = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    assert mean_absolute_correlation(x) == pytest.approx(0.0, abs=1e-15)
    assert mean_absolute_correlation(x[:, [0, 1, 0]]) == pytest.approx(1 / 3)  # of 3 pairs, one has correlation 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tilings": 0}, "tilings is 0; it must be at least 1"),
        ({"tiles": 0}, "tiles is 0; it must be at least 1"),
        ({"actions": 0}, "actions is 0"),
        ({"copies": -1}, "copies is -1; it must be at least 0"),
        ({"copies": 1, "copied": 9999}, "copied is 9999 with 1 copies; one feature of φ has one copy"),
        ({"high": (-2.0, 1.0)}, "are not a box"),
    ],
)
def test_bad_codings_are_named(options, message):
    with pytest.raises(UserError, match=message):
        TileCoding(**({"low": LOW, "high": HIGH} | options))
