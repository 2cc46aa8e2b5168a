"""Random numbers that are a function of (run seed, stream, counters) and of nothing else.

There is no generator whose state could depend on who else drew from it: a run makes the same random choices alone, in
any population, inside a CUDA graph and after a resume. The function chains splitmix64 [1]_: the w-th output of the
generator that is seeded with ``h`` is ``mix(h + γ(w + 1))``, and that output seeds the generator of the next word,

    h ← 0;   h ← mix(h + γ(w + 1))   for w = seed, stream, counters…   (modulo 2^64).

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014; the constants
   of ``mix`` are D. Stafford's "Mix13".
"""

from enum import IntEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_MODULUS = 2**64

Words = int | NDArray[np.integer]
"""A word of the key on the host: a number, or an array of them."""


class Stream(IntEnum):
    """What the numbers are for. The values are part of a run's identity: a number once given is never reused."""

    INIT = 0
    EPISODE = 1
    EXPLORE = 2
    REPLAY = 3
    DIAGNOSE = 4
    EVALUATE = 6
    HELD_OUT = 7
    ANALYZE = 8
    TAUS = 9
    NOISE = 10
    PENALTY = 11


def bits(seed: Words, stream: Stream, *counters: Words) -> NDArray[np.uint64]:
    """64 random bits for each element of the broadcast key, on the host.

    Parameters
    ----------
    seed, stream, counters
        The words of the key, each in ``[-2^63, 2^64)`` (taken modulo 2^64); arrays broadcast against one another.
    """
    return further(np.zeros((), np.uint64), seed, int(stream), *counters)


def further(state: NDArray[np.uint64], *words: Words) -> NDArray[np.uint64]:
    """:func:`bits` of a key whose first words gave ``state``: what is common to many keys is computed once."""
    with np.errstate(over="ignore"):  # wrapping around is the point
        for word in words:
            state = _mix(state + np.uint64(_GAMMA) * (_as_uint64(word) + np.uint64(1)))
    return state


def uniform(random_bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers in [0, 1), multiples of 2^-53, from the top 53 bits."""
    return np.asarray((random_bits >> np.uint64(11)) * 2.0**-53)


def integers(random_bits: NDArray[np.uint64], high: Words) -> NDArray[np.int64]:
    """Integers in ``[0, high)``: the top 63 bits modulo ``high``, uniform up to ``high``/2^63."""
    return np.asarray((random_bits >> np.uint64(1)).astype(np.int64) % np.asarray(high, np.int64))


def game_seeds(random_bits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Seeds of games from the top 31 bits: those of emulators are non-negative 32-bit integers."""
    return (random_bits >> np.uint64(33)).astype(np.int64)


def torch_bits(seed: Tensor, stream: Stream, *counters: int | Tensor) -> Tensor:
    """:func:`bits` on the device of ``seed``: the same 64 bits, held in an int64 tensor.

    Parameters
    ----------
    seed
        int64, for instance ``[P, 1]``; counters that are tensors are int64 and broadcast against it.
    """
    state = torch.zeros((), dtype=torch.int64, device=seed.device)
    for word in (seed, int(stream), *counters):
        # int64 arithmetic wraps around, so that it is arithmetic modulo 2^64 in two's complement
        if isinstance(word, Tensor):
            step: int | Tensor = (word + 1) * _signed(_GAMMA)
        else:
            step = _signed(_GAMMA * (word + 1))
        state = _torch_mix(state + step)
    return state


def torch_uniform(random_bits: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers in [0, 1) from the top 53 bits (float64, the same numbers as :func:`uniform`) or 24 bits (float32)."""
    digits = {torch.float64: 53, torch.float32: 24}[dtype]
    return _shift(random_bits, 64 - digits).to(dtype) * 2.0**-digits


def torch_normal(random_bits: Tensor) -> Tensor:
    """Standard normal numbers in float64: √2 · erf⁻¹(2u - 1) of a uniform u inside (0, 1)."""
    return torch.erfinv(2 * torch_uniform(random_bits) - (1 - 2.0**-53)) * 2**0.5


def torch_integers(random_bits: Tensor, high: int | Tensor) -> Tensor:
    """Integers in ``[0, high)``, the same as those of :func:`integers`."""
    return _shift(random_bits, 1) % high


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


def _torch_mix(z: Tensor) -> Tensor:
    z = (z ^ _shift(z, 30)) * _signed(_FIRST)
    z = (z ^ _shift(z, 27)) * _signed(_SECOND)
    return z ^ _shift(z, 31)


def _shift(z: Tensor, places: int) -> Tensor:
    # torch's shift of an int64 copies the sign in; the mask makes it the logical shift
    return (z >> places) & ((1 << (64 - places)) - 1)


def _signed(word: int) -> int:
    word %= _MODULUS
    return word - _MODULUS if word >= _MODULUS // 2 else word


def _as_uint64(word: Words) -> NDArray[np.uint64]:
    if isinstance(word, np.ndarray):
        return word.astype(np.uint64)
    return np.asarray(int(word) % _MODULUS, np.uint64)
