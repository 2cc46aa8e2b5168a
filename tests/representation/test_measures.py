"""Every measure against examples by hand, at the edges of its domain, and of a stream against NumPy."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gramian.representation import measures
from gramian.representation.measures import MEASURES, FeatureStatistics

# Three states of four features: one dead, one constant, the last a copy (twice the third, plus one).
PHI = torch.tensor([[0.0, 2.0, 1.0, 3.0], [0.0, 2.0, 0.0, 1.0], [0.0, 2.0, 2.0, 5.0]])


INDEPENDENT = torch.tensor([[1.0, 10.0], [-1.0, 10.0], [1.0, -10.0], [-1.0, -10.0]])
HALF = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])  # covariance 1/3 of variances 2/3 and 2/3
DIAGONAL = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]) + 5.0  # C = diag(2, ½) wherever it lies
SHARES = torch.diag(torch.tensor([60.0, 30.0, 9.5, 0.5]))  # σ hold 60, 90, 99.5 and 100 percent
FEW = torch.zeros(100, 3)
FEW[0, 0], FEW[1, 1], FEW[2, 2] = 1.0, 0.05, 0.001  # σ; over the root of 100 states 0.1, 0.005, 0.0001


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # zeros: 3 of the dead feature and 1 of the third; ≤ 1 adds the 1 of row 0 and the 1 of row 1
        (measures.sparsity(PHI, [0, 1, 4, 5]).tolist(), [4 / 12, 6 / 12, 11 / 12, 1]),
        (measures.active_per_state(PHI).tolist(), [0, 0, 1, 2, 0]),
        (measures.active_per_feature(PHI).tolist(), [0, 3, 2, 3]),
        (measures.feature_norm(PHI), (math.sqrt(14) + math.sqrt(5) + math.sqrt(33)) / 3),
        # φ0·φ1 = 4 + 3 = 7, φ0·φ2 = 4 + 2 + 15 = 21, φ1·φ2 = 4 + 5 = 9
        (measures.cross_term(PHI), (7**2 + 21**2 + 9**2) / 3),
        (measures.cross_term(PHI[:1]), math.nan),
        # the third is 1, 0, 2 (variance 2/3), the fourth twice that
        (measures.std_sum(PHI), 3 * math.sqrt(2 / 3)),
        (measures.mean_abs_correlation(PHI), 1),
        (measures.mean_abs_correlation(INDEPENDENT), 0),
        (measures.mean_abs_correlation(HALF), 0.5),
        (measures.mean_abs_correlation(HALF * torch.tensor([1.0, -1000.0])), 0.5),
        (measures.spectrum(DIAGONAL).tolist(), [2, 0.5]),
        (measures.condition_number(DIAGONAL), 4),
        (measures.participation_ratio(DIAGONAL), 2.5**2 / 4.25),
        (
            measures.effective_rank(torch.diag(torch.tensor([2.0, 1.0, 1.0]))),
            math.exp(0.5 * math.log(2) + 0.5 * math.log(4)),
        ),
        ([measures.srank(SHARES, delta) for delta in (0.5, 0.1, 0.01, 0.001)], [1, 2, 3, 4]),
        ([measures.feature_rank(FEW), measures.feature_rank(FEW, scaled=False)], [1, 2]),
        # mean activities 0, 2, 1, 3; their mean 1.5: scores 0, 4/3, 2/3, 2
        ([measures.dormant_share(PHI, tau) for tau in (0, 0.025, 0.7, 1.5, 2)], [0.25, 0.25, 0.5, 0.75, 1]),
        ([measures.dead_share(PHI), measures.constant_share(PHI), measures.duplicated_share(PHI)], [0.25, 0.5, 0.25]),
    ],
)
def test_by_hand(found, expected):
    assert found == pytest.approx(expected, nan_ok=True, abs=1e-12)


def test_dr3_dot_is_the_mean_product_of_a_state_with_its_successor():
    assert measures.dr3_dot(PHI[:2], PHI[1:]) == pytest.approx((7 + 9) / 2)
    with pytest.raises(ValueError, match="same shape"):
        measures.dr3_dot(PHI, PHI[:2])


def test_all_zero_features_have_defined_measures():
    zero = torch.zeros(5, 3)
    assert measures.sparsity(zero).tolist() == [1] * len(measures.THRESHOLDS)
    assert measures.effective_rank(zero) == measures.srank(zero) == measures.feature_rank(zero) == 0
    assert measures.participation_ratio(zero) == measures.cross_term(zero) == measures.std_sum(zero) == 0
    assert measures.dormant_share(zero) == measures.dormant_share(zero, 0.1) == measures.dead_share(zero) == 1
    assert measures.condition_number(zero) == math.inf
    assert math.isnan(measures.mean_abs_correlation(zero))
    assert measures.duplicated_share(zero) == 0


def test_constant_features_have_one_direction_and_no_variance():
    constant = torch.full((7, 4), 0.1)
    assert measures.effective_rank(constant) == pytest.approx(1)
    assert measures.srank(constant) == measures.feature_rank(constant) == 1
    assert measures.participation_ratio(constant) == pytest.approx(0, abs=1e-9)
    assert math.isnan(measures.mean_abs_correlation(constant))
    assert measures.constant_share(constant) == 1
    assert measures.dead_share(constant) == 0


def test_features_that_are_not_finite_are_refused_with_their_number():
    bad = PHI.clone()
    bad[1, 2] = torch.nan
    for function in (measures.srank, measures.sparsity, measures.cross_term, measures.mean_abs_correlation):
        with pytest.raises(ValueError, match="not finite in 1 of 3 states"):
            function(bad)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        *((torch.zeros(*shape), ValueError, r"shape \[N, d\]") for shape in ((3,), (0, 3), (3, 0), (2, 2, 2))),
        (torch.ones(2, 2, dtype=torch.int64), TypeError, "floating-point"),
    ],
)
def test_anything_but_a_table_of_numbers_is_refused(bad, error, message):
    with pytest.raises(error, match=message):
        measures.srank(bad)


def test_arrays_of_numpy_are_features_too():
    assert measures.feature_norm(np.array([[3.0, 4.0]], np.float32)) == 5


@pytest.mark.slow
def test_arrays_of_jax_are_features_too():
    jax_numpy = pytest.importorskip("jax.numpy")
    for kind in (jax_numpy.float32, jax_numpy.bfloat16):
        assert measures.feature_norm(jax_numpy.array([[3.0, 4.0]], kind)) == 5
    assert FeatureStatistics.of(jax_numpy.ones((5, 2))).summary()["constant_share"] == 1
    with pytest.raises(TypeError, match="floating-point"):
        measures.srank(jax_numpy.ones((2, 2), int))


def test_half_precision_is_computed_in_float64():
    x = torch.full((4096, 2), 0.1, dtype=torch.float16)
    assert measures.feature_norm(x) == pytest.approx(float(x[0, 0].double()) * math.sqrt(2), rel=1e-14)


def naive(phi, following=None):
    """Every measure of all states at once, in NumPy."""
    phi = phi.double().numpy()
    states, width = phi.shape
    singular = np.linalg.svd(phi, compute_uv=False)
    shares = singular[singular > 1e-6 * singular.max()] / singular.sum()
    covariance = np.cov(phi.T, bias=True)
    varies = phi.min(0) < phi.max(0)
    eigenvalues = np.linalg.eigvalsh(covariance)
    correlations = np.corrcoef(phi[:, varies].T) if varies.sum() > 1 else np.eye(varies.sum())
    upper = np.triu(correlations, 1)
    products = (phi @ phi.T)[~np.eye(states, dtype=bool)] ** 2
    activity = np.abs(phi).mean(0)
    found = {
        "states": states,
        "nonfinite_share": 0.0,
        "feature_norm": np.linalg.norm(phi, axis=1).mean(),
        "cross_term": products.mean() if states > 1 else math.nan,
        "std_sum": phi.std(0).sum(),
        "sparsity": (phi == 0).mean(),
        "mean_abs_correlation": np.abs(upper).sum() / math.comb(varies.sum(), 2) if varies.sum() > 1 else math.nan,
        "condition_number": math.inf if eigenvalues[0] < 1e-12 else eigenvalues[-1] / eigenvalues[0],
        "participation_ratio": eigenvalues.sum() ** 2 / (eigenvalues**2).sum() if varies.any() else 0.0,
        "effective_rank": math.exp(-(shares * np.log(shares)).sum()) if singular.any() else 0.0,
        "srank": int(np.argmax(singular.cumsum() >= 0.99 * singular.sum()) + 1) if singular.any() else 0,
        "feature_rank": int((singular / math.sqrt(states) > 0.01).sum()),
        "feature_rank_unscaled": int((singular > 0.01).sum()),
        "dormant_share": (activity == 0).mean(),
        "dormant_share_0.025": (activity <= 0.025 * activity.mean()).mean(),
        "dormant_share_0.1": (activity <= 0.1 * activity.mean()).mean(),
        "dead_share": (phi == 0).all(0).mean(),
        "constant_share": (~varies).mean(),
        "duplicated_share": (upper > 1 - 1e-6).any(0).sum() / width,
    }
    return found if following is None else found | {"dr3_dot": (phi * following.double().numpy()).sum(1).mean()}


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
def test_a_stream_gives_what_numpy_gives(seed, states, width, sizes):
    phi = features_of(seed, states, width)
    following = phi.roll(1, 0)
    statistics = streamed(phi, sizes, following)
    assert statistics.summary() == pytest.approx(naive(phi, following), rel=1e-6, abs=1e-9, nan_ok=True)
    torch.testing.assert_close(statistics.sparsity(), measures.sparsity(phi))
    for name in ("active_per_state", "active_per_feature", "covariance", "spectrum", "correlation"):
        whole = getattr(measures, name)(phi)
        torch.testing.assert_close(getattr(statistics, name)(), whole, equal_nan=True)
        torch.testing.assert_close(getattr(measures, name)(statistics), whole, equal_nan=True)
    singular = np.linalg.svd(phi.double().numpy(), compute_uv=False)
    # a σ of zero is the root of an eigenvalue that is zero to rounding
    torch.testing.assert_close(
        statistics.singular_values()[: len(singular)], torch.tensor(singular), rtol=1e-9, atol=1e-6
    )


@pytest.mark.parametrize(
    "name", [name for name in MEASURES if hasattr(measures, name) and name not in ("sparsity", "dr3_dot")]
)
def test_a_measure_of_a_stream_is_that_of_all_its_states(name):
    phi = features_of(3, 60, 7)
    measure = getattr(measures, name)
    assert measure(streamed(phi, [13])) == pytest.approx(measure(phi), rel=1e-9)


def test_the_summary_has_every_measure_in_its_order_and_successors_where_they_were_given():
    assert list(FeatureStatistics.of(PHI, PHI).summary()) == list(MEASURES)
    assert list(FeatureStatistics.of(PHI).summary()) == list(FeatureStatistics(3).summary()) == list(MEASURES)[:-1]
    assert list(FeatureStatistics.of(PHI).summary(["srank", "dr3_dot"])) == ["srank", "dr3_dot"]


def test_an_unknown_measure_is_refused():
    with pytest.raises(ValueError, match="unknown measure 'sranks'; did you mean 'srank'"):
        FeatureStatistics.of(PHI).summary(["sranks"])


def test_a_large_common_mean_costs_no_precision():
    phi = features_of(0, 200, 6).double()
    phi[:, 1:] += 1e6
    expected = naive(phi)
    got = streamed(phi, [7]).summary()
    assert got["std_sum"] == pytest.approx(expected["std_sum"], rel=1e-8)
    assert got["mean_abs_correlation"] == pytest.approx(expected["mean_abs_correlation"], rel=1e-7)


@pytest.mark.parametrize("phi", [torch.zeros(9, 3), torch.full((9, 3), 0.1)], ids=["zero", "constant"])
def test_features_without_variance_give_what_the_direct_functions_give(phi):
    assert streamed(phi, [2]).summary() == pytest.approx(naive(phi), abs=1e-9, nan_ok=True)


def test_states_that_are_not_finite_are_counted_and_left_out():
    phi = features_of(1, 40, 6)
    bad = phi.clone()
    bad[::4, 2] = torch.inf
    good = torch.ones(40, dtype=torch.bool)
    good[::4] = False
    got = streamed(bad, [7]).summary()
    assert got["nonfinite_share"] == 0.25
    assert got | {"nonfinite_share": 0.0} == pytest.approx(naive(phi[good]), rel=1e-6, nan_ok=True)


def test_nothing_but_nan_gives_nan_and_the_share():
    statistics = FeatureStatistics.of(torch.full((5, 3), torch.nan), torch.full((5, 3), torch.nan))
    numbers = statistics.summary()
    assert (numbers["states"], numbers["nonfinite_share"]) == (0, 1)
    assert all(math.isnan(number) for name, number in numbers.items() if name not in ("states", "nonfinite_share"))
    assert statistics.spectrum().isnan().all()
    assert statistics.singular_values().isnan().all()
    assert statistics.correlation().isnan().all()
    assert statistics.sparsity().isnan().all()


def test_one_state_is_enough():
    phi = torch.tensor([[1.0, 0.0, 2.0]])
    assert FeatureStatistics.of(phi).summary() == pytest.approx(naive(phi), nan_ok=True)


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
    assert statistics.summary() == pytest.approx(naive(phi), rel=1e-6, abs=1e-9, nan_ok=True)
