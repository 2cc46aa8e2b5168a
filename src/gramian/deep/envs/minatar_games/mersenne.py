"""NumPy's ``RandomState`` as kernels: the Mersenne twister MT19937 [1]_, and what NumPy makes of its words.

A generator is a row of ``ROW_SIZE`` unsigned 32-bit integers: its 624 words, and how many of them have been drawn.
A word is renewed when it is drawn, not all 624 at once, which gives the same words and no slow steps.

References
----------
.. [1] M. Matsumoto, T. Nishimura, *Mersenne twister: a 623-dimensionally equidistributed uniform pseudo-random number
   generator*, ACM TOMACS 8(1), 1998.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import exact_kernel

Random: TypeAlias = NDArray[np.uint32]

WORDS, SHIFT = 624, 397
ROW_SIZE = WORDS + 1
# Python's and numba's signed 64-bit integers hold every value on the way: the largest product is below 2^63.
LOW_32, LOW_31, TOP_BIT = 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000


@exact_kernel
def seed_generator(random: Random, seed: int) -> None:
    """Become ``RandomState(seed)``, for a seed of at most 32 bits."""
    word = seed & LOW_32
    random[0] = word
    for i in range(1, WORDS):
        word = (1812433253 * (word ^ (word >> 30)) + i) & LOW_32
        random[i] = word
    random[WORDS] = 0


@exact_kernel
def draw_word(random: Random) -> int:
    """The next 32 random bits."""
    i = np.int64(random[WORDS])
    after = i + 1 if i + 1 < WORDS else 0
    far = i + SHIFT if i + SHIFT < WORDS else i + SHIFT - WORDS
    joined = (np.int64(random[i]) & TOP_BIT) | (np.int64(random[after]) & LOW_31)
    word = np.int64(random[far]) ^ (joined >> 1)
    if joined & 1:
        word ^= 0x9908B0DF
    random[i] = word
    random[WORDS] = after
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    return int(word ^ (word >> 18))


@exact_kernel
def draw_uniform(random: Random) -> float:
    """A number in [0, 1) with 53 random bits: ``RandomState.rand()``."""
    high = draw_word(random) >> 5
    low = draw_word(random) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0


@exact_kernel
def draw_below(random: Random, end: int | np.int64) -> int:
    """An integer in 0, …, end − 1: ``RandomState.randint(end)``, which draws nothing where there is one choice."""
    largest = end - 1
    mask = 0
    while mask < largest:
        mask = 2 * mask + 1
    if mask == 0:
        return 0
    value = draw_word(random) & mask
    while value > largest:
        value = draw_word(random) & mask
    return value
