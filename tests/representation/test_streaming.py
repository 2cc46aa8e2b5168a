"""A stream of batches gives what the direct functions give."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from gramian.representation import measures
from gramian.representation.streaming import MEASURES, FeatureStatistics


def direct(phi, following=None):
    """Every measure by its own function."""
    return {
        "states": len(phi),
        "nonfinite_share": 0.0,
        "feature_norm": measures.feature_norm(phi),
        "cross_term": measures.cross_term(phi),
        "std_sum": measures.std_sum(phi),
        "sparsity": float(measures.sparsity(phi, [0.0])),
        "mean_abs_correlation": measures.mean_abs_correlation(phi),
        "condition_number": measures.condition_number(phi),
        "participation_ratio": measures.participation_ratio(phi),
        "effective_rank": measures.effective_rank(phi),
        "srank": measures.srank(phi),
        "feature_rank": measures.feature_rank(phi),
        "feature_rank_unscaled": measures.feature_rank(phi, scaled=False),
        "dormant_share": measures.dormant_share(phi),
        "dormant_share_0.025": measures.dormant_share(phi, 0.025),
        "dormant_share_0.1": measures.dormant_share(phi, 0.1),
        "dead_share": measures.dead_share(phi),
        "constant_share": measures.constant_share(phi),
        "duplicated_share": measures.duplicated_share(phi),
        "dr3_dot": math.nan if following is None else measures.dr3_dot(phi, following),
    }


def features_of(seed, states, width):
    """Rectified features as a network has them, one of them dead, one constant, one a copy."""
    generator = torch.Generator().manual_seed(seed)
    phi = (torch.randn(states, width, generator=generator) + 0.3).relu()
    phi[:, 0], phi[:, 1], phi[:, 2] = 0.0, 0.7, 4 * phi[:, 3]
    return phi


def streamed(phi, sizes, following=None):
    statistics = FeatureStatistics(phi.shape[1])
    start = 0
    while start < len(phi):
        end = start + sizes[start % len(sizes)]
        statistics.update(phi[start:end])
        if following is not None:
            statistics.update_pairs(phi[start:end], following[start:end])
        start = end
    return statistics


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    states=st.integers(30, 90),
    width=st.integers(5, 12),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
def test_a_stream_gives_what_the_direct_functions_give(seed, states, width, sizes):
    phi = features_of(seed, states, width)
    following = phi.roll(1, 0)
    statistics = streamed(phi, sizes, following)
    assert statistics.summary() == pytest.approx(direct(phi, following), rel=1e-9, abs=1e-12, nan_ok=True)
    torch.testing.assert_close(statistics.sparsity(), measures.sparsity(phi))
    assert statistics.active_per_state().tolist() == measures.active_per_state(phi).tolist()
    assert statistics.active_per_feature().tolist() == measures.active_per_feature(phi).tolist()
    torch.testing.assert_close(statistics.spectrum(), measures.spectrum(phi))
    torch.testing.assert_close(statistics.correlation(), measures.correlation(phi), equal_nan=True)
    # a σ of zero is the root of an eigenvalue that is zero to rounding
    torch.testing.assert_close(statistics.singular_values(), measures.singular_values(phi), rtol=1e-9, atol=1e-6)


def test_a_large_common_mean_costs_no_precision():
    phi = features_of(0, 200, 6).double()
    phi[:, 1:] += 1e6
    expected = direct(phi)
    got = streamed(phi, [7]).summary()
    assert got["std_sum"] == pytest.approx(expected["std_sum"], rel=1e-8)
    assert got["mean_abs_correlation"] == pytest.approx(expected["mean_abs_correlation"], rel=1e-7)


@pytest.mark.parametrize("phi", [torch.zeros(9, 3), torch.full((9, 3), 0.1)], ids=["zero", "constant"])
def test_features_without_variance_give_what_the_direct_functions_give(phi):
    assert streamed(phi, [2]).summary() == pytest.approx(direct(phi), abs=1e-9, nan_ok=True)


def test_states_that_are_not_finite_are_counted_and_left_out():
    phi = features_of(1, 40, 6)
    bad = phi.clone()
    bad[::4, 2] = torch.inf
    good = torch.ones(40, dtype=torch.bool)
    good[::4] = False
    got = streamed(bad, [7]).summary()
    assert got["nonfinite_share"] == 0.25
    assert got | {"nonfinite_share": 0.0} == pytest.approx(direct(phi[good]), rel=1e-9, nan_ok=True)


def test_nothing_but_nan_gives_nan_and_the_share():
    statistics = FeatureStatistics.of(torch.full((5, 3), torch.nan), torch.full((5, 3), torch.nan))
    numbers = statistics.summary()
    assert (numbers["states"], numbers["nonfinite_share"]) == (0, 1)
    assert all(math.isnan(numbers[name]) for name in MEASURES[2:])
    assert statistics.spectrum().isnan().all()
    assert statistics.singular_values().isnan().all()
    assert statistics.correlation().isnan().all()
    assert statistics.sparsity().isnan().all()


def test_one_state_is_enough():
    phi = torch.tensor([[1.0, 0.0, 2.0]])
    assert FeatureStatistics.of(phi).summary() == pytest.approx(direct(phi), nan_ok=True)


def test_features_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"\[2, 4\], not \[N, 3\]"):
        FeatureStatistics(3).update(torch.zeros(2, 4))


def test_memory_does_not_grow_with_the_states():
    statistics = FeatureStatistics(4)
    sizes = []
    for _ in range(3):
        statistics.update(torch.rand(1000, 4))
        sizes.append(sum(value.numel() for value in vars(statistics).values() if isinstance(value, torch.Tensor)))
    assert sizes[0] == sizes[-1] < 100


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA")
def test_a_gpu_gives_what_a_cpu_gives():
    phi = features_of(2, 300, 9)
    statistics = FeatureStatistics(9, device="cuda")
    for part in phi.cuda().split(64):
        statistics.update(part)
    assert statistics.summary() == pytest.approx(direct(phi), rel=1e-9, abs=1e-12, nan_ok=True)
