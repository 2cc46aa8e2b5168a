"""The games' generator is NumPy's ``RandomState``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.deep.envs.minatar_games.mersenne import (
    ROW_SIZE,
    draw_below,
    draw_uniform,
    draw_word,
    seed_generator,
)


def generator(seed):
    random = np.zeros(ROW_SIZE, np.uint32)
    seed_generator(random, seed)
    return random


@pytest.mark.parametrize("seed", [0, 1, 5489, 2**31 - 1, 2**31, 2**32 - 1])
def test_words_are_those_of_random_state(seed):
    random, theirs = generator(seed), np.random.RandomState(seed)
    words = [draw_word(random) for _ in range(2000)]  # three times round its 624 words
    np.testing.assert_array_equal(words, theirs.randint(0, 2**32, 2000, np.uint64))


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 2**31), min_size=1, max_size=40))
def test_uniform_numbers_and_integers_below_any_end_come_in_the_same_order(seed, ends):
    random, theirs = generator(seed), np.random.RandomState(seed)
    for end in ends:
        assert draw_below(random, end) == theirs.randint(end)
        assert draw_uniform(random) == theirs.rand()


@pytest.mark.parametrize("end", range(1, 70))
def test_integers_below_small_ends(end):
    random, theirs = generator(end), np.random.RandomState(end)
    assert [draw_below(random, end) for _ in range(200)] == theirs.randint(0, end, 200).tolist()
    assert draw_word(random) == theirs.randint(0, 2**32, dtype=np.uint64)
