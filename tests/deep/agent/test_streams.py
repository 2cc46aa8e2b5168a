import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.deep.agent.streams import (
    Stream,
    bits,
    integers,
    torch_bits,
    torch_integers,
    torch_uniform,
    uniform,
)

WORDS = st.integers(0, 2**63 - 1)


def splitmix64(state, count):
    """The published generator, in Python's big integers."""
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        yield z ^ (z >> 31)


def naive_bits(*words):
    state = 0
    for word in words:
        *_, state = splitmix64(state, word + 1)
    return state


def test_splitmix64_of_the_oracle_gives_the_published_sequence():
    # the first outputs for seed 1234567, as listed with the reference implementation's test vectors
    assert list(splitmix64(1234567, 3)) == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(st.integers(0, 30), st.sampled_from(Stream), st.lists(st.integers(0, 30), max_size=3))
def test_bits_are_the_chained_splitmix64_generators(seed, stream, counters):
    assert int(bits(seed, stream, *counters)) == naive_bits(seed, int(stream), *counters)


@given(WORDS, st.sampled_from(Stream), st.lists(WORDS, max_size=3))
def test_torch_and_numpy_give_the_same_bits_integers_and_uniforms(seed, stream, counters):
    host = bits(seed, stream, *counters)
    for as_tensors in (False, True):
        words = [torch.tensor(c) for c in counters] if as_tensors else counters
        device = torch_bits(torch.tensor(seed), stream, *words)
        assert int(device) % 2**64 == int(host)
        assert float(torch_uniform(device)) == float(uniform(host))
        assert int(torch_integers(device, 18)) == int(integers(host, 18))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_gives_the_same_bits_as_the_cpu():
    seeds, counters = torch.arange(5)[:, None], torch.arange(1000)
    expected = torch_bits(seeds, Stream.REPLAY, counters)
    assert torch.equal(torch_bits(seeds.cuda(), Stream.REPLAY, counters.cuda()).cpu(), expected)


def test_arrays_broadcast_and_agree_with_single_numbers():
    table = bits(np.arange(3)[:, None], Stream.EXPLORE, 9, np.arange(4))
    assert table.shape == (3, 4)
    assert int(table[2, 1]) == int(bits(2, Stream.EXPLORE, 9, 1))


def test_seeds_streams_and_counters_all_matter_and_words_do_not_commute():
    keys = [(s, t, a, b) for s in range(6) for t in Stream for a in range(6) for b in range(6)]
    assert len({int(bits(s, t, a, b)) for s, t, a, b in keys}) == len(keys)


def test_every_bit_is_even_and_flips_half_the_time_when_a_counter_advances():
    n = 20_000
    numbers = bits(np.arange(2)[:, None], Stream.REPLAY, np.arange(n))
    planes = (numbers[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    five_sigma = 5 * 0.5 / np.sqrt(n)
    for sample in (planes[0], planes[0] ^ planes[1], planes[0, 1:] ^ planes[0, :-1]):
        assert np.abs(sample.mean(axis=0) - 0.5).max() < five_sigma


def test_uniform_numbers_lie_in_the_half_open_interval():
    extremes = np.array([0, 2**64 - 1], np.uint64)
    assert uniform(extremes).tolist() == [0.0, 1 - 2.0**-53]
    signed = torch.tensor([0, -1])
    assert torch_uniform(signed).tolist() == [0.0, 1 - 2.0**-53]
    assert torch_uniform(signed, torch.float32).tolist() == [0.0, 1 - 2.0**-24]


@settings(max_examples=20)
@given(WORDS, st.integers(1, 20))
def test_integers_are_uniform_below_high(seed, high):
    n = 5000
    counts = np.bincount(integers(bits(seed, Stream.EXPLORE, np.arange(n)), high), minlength=high)
    assert counts.size == high
    # chi-square with high - 1 degrees of freedom: mean + 6 standard deviations and a margin for its skewness
    freedom = high - 1
    statistic = ((counts - n / high) ** 2 / (n / high)).sum()
    assert statistic <= freedom + 6 * np.sqrt(2 * freedom) + 30


def test_integers_below_an_array_of_bounds_use_each_own_bound():
    random_bits = torch_bits(torch.arange(3)[:, None], Stream.EXPLORE, torch.arange(200))
    high = torch.tensor([[3], [6], [18]])
    drawn = torch_integers(random_bits, high)
    assert bool(((drawn >= 0) & (drawn < high)).all())
    assert drawn.amax(1).tolist() == [2, 5, 17]
