"""The penalties against slow, obvious oracles, and their properties under hypothesis."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import gramian
from benchmarks.precision import CASES, PENALTIES, batches, rounding_errors
from gramian import (
    correlation_penalty,
    covariance_penalty,
    decorrelation_penalty,
    gram_penalty,
    gram_terms,
    isotropy_penalty,
    kappa,
    l2_penalty,
    lam,
    orthogonality_penalty,
    permuted_gram_penalty,
    sigreg_penalty,
    unbiased_gram_penalty,
    vicreg_penalty,
)
from gramian.penalties import _tf32_allowed
from tests.deep.naive import naive_penalty


def sketched(features):
    """`sigreg_penalty` along the same directions each time."""
    noise = torch.arange(16.0 * features.shape[-1]).cos().reshape(-1, 16)
    return sigreg_penalty(features, noise.to(features.device))


SAME_NUMBER = [covariance_penalty, gram_penalty, decorrelation_penalty]
ALL = [*SAME_NUMBER, unbiased_gram_penalty]
SCALE_FREE = [isotropy_penalty, correlation_penalty]
EVERY = [*ALL, *SCALE_FREE, vicreg_penalty, l2_penalty, sketched]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]


def oracle(features, centered=True):
    """Σ_{i≠j} C_ij² in NumPy, one pair of features after the other."""
    x = np.asarray(features, dtype=np.float64)
    if centered:
        x = x - x.mean(0)
    n, d = x.shape
    return sum(float(x[:, i] @ x[:, j] / n) ** 2 for i in range(d) for j in range(d) if i != j)


def unbiased_oracle(features, centered=True):
    """The same, each E f_i f_j (or covariance) estimated twice from samples that are all different."""
    x = np.asarray(features, dtype=np.float64)
    n, d = x.shape
    total, count = 0.0, 0
    for a in range(n):
        for b in range(n):
            if not centered:
                if a != b:
                    total += sum(
                        (x[a, i] * x[a, j]) * (x[b, i] * x[b, j]) for i in range(d) for j in range(d) if i != j
                    )
                    count += 1
                continue
            for c in range(n):
                for e in range(n):
                    if len({a, b, c, e}) == 4:
                        first, second = (x[a] - x[b]) / 2, (x[c] - x[e]) / 2
                        product = np.outer(first, x[a] - x[b]) * np.outer(second, x[c] - x[e])
                        total += product.sum() - np.trace(product)
                        count += 1
    return total / count


def matrices(min_n=1, max_n=6, min_d=1, max_d=6):
    return npst.arrays(
        np.float64,
        st.tuples(st.integers(min_n, max_n), st.integers(min_d, max_d)),
        elements=st.floats(-10, 10, allow_subnormal=False),
    ).map(torch.from_numpy)


def close(a, b, scale):
    return abs(float(a) - float(b)) <= 1e-9 * (1 + float(scale))


def size(features):
    """An upper bound of ‖C‖_F², in whose units the errors are."""
    return features.square().sum().square() / len(features) ** 2


@pytest.mark.parametrize("penalty", SAME_NUMBER)
@given(features=matrices(), centered=st.booleans())
def test_all_forms_equal_the_sum_over_pairs(penalty, features, centered):
    assert close(penalty(features, centered=centered), oracle(features, centered), size(features))


@given(features=matrices(min_n=4, max_n=5, max_d=3), centered=st.booleans())
def test_the_unbiased_form_is_the_mean_over_distinct_samples(features, centered):
    found = unbiased_gram_penalty(features, centered=centered)
    assert close(found, unbiased_oracle(features, centered), size(features))


@given(features=matrices(), centered=st.booleans())
def test_the_terms_add_up_to_the_penalty(features, centered):
    terms = gram_terms(features, centered=centered)
    assert close(terms.norm + terms.cross - terms.variance, gram_penalty(features, centered=centered), size(features))


@given(features=matrices(), centered=st.booleans())
def test_each_term_is_what_its_formula_says(features, centered):
    x = (features - features.mean(0) if centered else features).numpy()
    n = len(x)
    gram = x @ x.T
    terms = gram_terms(features, centered=centered)
    norm = sum(float(row @ row) ** 2 for row in x) / n**2
    assert close(terms.norm, norm, size(features))
    assert close(terms.cross, ((gram**2).sum() - (np.diag(gram) ** 2).sum()) / n**2, size(features))
    assert close(terms.variance, sum(float(column @ column) ** 2 for column in x.T) / n**2, size(features))


@pytest.mark.parametrize("penalty", ALL)
@given(features=matrices(min_n=4), centered=st.booleans(), data=st.data())
def test_permuting_samples_or_features_changes_nothing(penalty, features, centered, data):
    rows = data.draw(st.permutations(range(features.shape[0])))
    columns = data.draw(st.permutations(range(features.shape[1])))
    value = penalty(features, centered=centered)
    assert close(value, penalty(features[rows], centered=centered), size(features))
    assert close(value, penalty(features[:, columns], centered=centered), size(features))


@pytest.mark.parametrize("penalty", ALL)
@given(features=matrices(min_n=4), centered=st.booleans(), scale=st.floats(0.01, 100))
def test_scaling_the_features_by_s_scales_the_penalty_by_the_fourth_power(penalty, features, centered, scale):
    value = penalty(features, centered=centered)
    assert close(penalty(features * scale, centered=centered), value * scale**4, size(features * scale))


@pytest.mark.parametrize("penalty", ALL)
@given(features=matrices(min_n=4), shift=st.floats(-100, 100))
def test_centred_penalties_ignore_a_shift(penalty, features, shift):
    assert close(penalty(features + shift), penalty(features), size(features.abs() + abs(shift)))


@pytest.mark.parametrize("penalty", SAME_NUMBER)
@given(n=st.integers(3, 8), d=st.integers(1, 7), centered=st.booleans(), seed=st.integers(0, 99))
def test_decorrelated_features_have_no_penalty(penalty, n, d, centered, seed):
    assume(d < n)
    generator = torch.Generator().manual_seed(seed)
    start = torch.cat([torch.ones(n, 1), torch.randn(n, d, generator=generator)], dim=1).double()
    features = torch.linalg.qr(start).Q[:, 1:] * torch.arange(1, d + 1)
    assert abs(float(penalty(features, centered=centered))) < 1e-10


def test_disjoint_supports_have_exactly_no_explicit_penalty():
    assert covariance_penalty(torch.diag(torch.arange(1.0, 6.0)), centered=False) == 0


@pytest.mark.parametrize("penalty", [gram_penalty, decorrelation_penalty])
@given(features=matrices(), centered=st.booleans())
def test_gradients_equal_those_of_the_explicit_form(penalty, features, centered):
    leaf = features.clone().requires_grad_()
    (found,) = torch.autograd.grad(penalty(leaf, centered=centered), leaf)
    (explicit,) = torch.autograd.grad(covariance_penalty(leaf, centered=centered), leaf)
    torch.testing.assert_close(found, explicit, rtol=1e-9, atol=1e-9 * (1 + float(size(features))))


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("centered", [True, False])
def test_gradients_equal_finite_differences(name, centered):
    features = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: PENALTIES[name](x, centered=centered), features)
    assert torch.autograd.gradgradcheck(lambda x: PENALTIES[name](x, centered=centered), features)


@pytest.mark.parametrize("centered", [True, False])
def test_the_u_statistic_is_unbiased_where_the_plain_penalty_is_not(centered):
    # 200,000 batches of n = 8 from a skewed distribution with a mean, d = 4. A true mean lies outside 4.5 standard
    # errors once in 150,000 draws; the plain penalty is hundreds of standard errors away.
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    shift = torch.randn(4, dtype=torch.float64, generator=generator)
    noise = torch.empty(200_000, 8, 4, dtype=torch.float64).exponential_(generator=generator) - 1  # variance 1
    features = noise @ mix.T + shift
    moments = mix @ mix.T + (0 if centered else torch.outer(shift, shift))
    truth = float(moments.square().sum() - moments.diagonal().square().sum())

    def standard_errors_off(values):
        return abs(float(values.mean()) - truth) / (float(values.std()) / math.sqrt(len(values)))

    assert standard_errors_off(unbiased_gram_penalty(features, centered=centered)) < 4.5
    assert standard_errors_off(gram_penalty(features, centered=centered)) > 50


def test_the_uncentred_u_statistic_on_centred_data_is_biased():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(100_000, 8, 6, dtype=torch.float64, generator=generator)
    mix = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    features = features @ mix.T
    moments = mix @ mix.T
    truth = float(moments.square().sum() - moments.diagonal().square().sum())
    naive = unbiased_gram_penalty(features - features.mean(-2, keepdim=True), centered=False)
    assert float(naive.mean()) < 0.95 * truth


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("case", CASES)
def test_float32_errors_stay_below_1e_4(case, name, device):
    for batch, label in batches(case, samples=(4, 32), features=(2, 512, 8192), device=device):
        if name == "covariance" and batch.shape[1] > 512:
            continue
        for centered in (True, False):
            errors = rounding_errors(PENALTIES[name], batch, centered=centered)
            assert errors.value < 1e-4, label
            assert errors.gradient < 1e-4, label


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize("name", PENALTIES)
def test_errors_stay_below_1e_4_where_tf32_is_allowed(name):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        test_float32_errors_stay_below_1e_4("badly scaled", name, "cuda")
    finally:
        torch.set_float32_matmul_precision(before)


def test_tf32_is_noticed_however_it_was_allowed():
    probe = (
        "import torch; from gramian.penalties import _tf32_allowed as allowed; answers = [allowed()]\n"
        "torch.set_float32_matmul_precision('high'); answers.append(allowed())\n"
        "torch.set_float32_matmul_precision('highest'); answers.append(allowed())\n"
        "torch.backends.cuda.matmul.allow_tf32 = True; answers.append(allowed())\n"
        "print(answers)"
    )
    newer = "import torch; from gramian.penalties import _tf32_allowed as allowed\n" + (
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'; print([allowed()])"
    )
    for script, expected in ((probe, "[False, True, False, True]"), (newer, "[True]")):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_the_question_of_tf32_does_not_break_a_compiled_graph():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x + _tf32_allowed(), fullgraph=True, backend="aot_eager")
    assert compiled(torch.zeros(2)).tolist() == [float(_tf32_allowed())] * 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("penalty", [*ALL, *SCALE_FREE])
@pytest.mark.parametrize("centered", [True, False])
def test_leading_axes_are_independent_batches(penalty, centered, device):
    features = torch.randn(2, 3, 5, 4, dtype=torch.float64).to(device)
    values = penalty(features, centered=centered)
    assert values.shape == (2, 3)
    one_by_one = torch.stack([penalty(x, centered=centered) for x in features.flatten(0, 1)])
    torch.testing.assert_close(values.flatten(), one_by_one)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("penalty", EVERY)
def test_vmap_gives_the_batched_result(penalty, device):
    features = torch.randn(3, 6, 4, dtype=torch.float64).to(device)
    torch.testing.assert_close(torch.func.vmap(penalty)(features), penalty(features))
    gradients = torch.func.vmap(torch.func.grad(penalty))(features)
    leaf = features.clone().requires_grad_()
    torch.testing.assert_close(gradients, torch.autograd.grad(penalty(leaf).sum(), leaf)[0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("penalty", [*EVERY, lambda x: gram_terms(x).cross])
def test_compiled_without_a_graph_break_it_gives_the_same_value_and_gradient(penalty, device):
    features = torch.randn(8, 16, generator=torch.Generator().manual_seed(0)).to(device).requires_grad_()
    torch._dynamo.reset()
    compiled = torch.compile(penalty, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    torch.testing.assert_close(compiled(features), penalty(features))
    torch.testing.assert_close(
        torch.autograd.grad(compiled(features), features), torch.autograd.grad(penalty(features), features)
    )


@pytest.mark.slow
def test_the_cpu_code_generator_accepts_the_gram_penalty():
    features = torch.randn(4, 8, 16, generator=torch.Generator().manual_seed(0), requires_grad=True)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: gram_penalty(x).sum(), fullgraph=True)
    torch.testing.assert_close(compiled(features), gram_penalty(features).sum())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("penalty", EVERY)
def test_inside_autocast_they_compute_in_float32(penalty, device):
    features = torch.randn(16, 64, generator=torch.Generator().manual_seed(0)).to(device).requires_grad_()
    with torch.autocast(device, dtype=torch.bfloat16):
        inside = penalty(features)
    assert inside.dtype == torch.float32
    torch.testing.assert_close(inside, penalty(features))
    torch.testing.assert_close(torch.autograd.grad(inside, features), torch.autograd.grad(penalty(features), features))


@pytest.mark.parametrize("penalty", EVERY)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_features_are_computed_and_returned_in_float32(penalty, dtype):
    features = (300 * torch.randn(16, 64, generator=torch.Generator().manual_seed(0))).to(dtype)
    assert penalty(features).dtype == torch.float32
    assert torch.equal(penalty(features), penalty(features.float()))
    leaf = features.clone().requires_grad_()
    assert torch.autograd.grad(penalty(leaf / 300), leaf)[0].dtype == dtype


@pytest.mark.parametrize("penalty", [*EVERY, gram_terms])
def test_wrong_input_raises_an_error_that_names_what_it_got(penalty):
    with pytest.raises(ValueError, match=r"\[\.\.\., n, d\].*got \[7\]"):
        penalty(torch.zeros(7))
    with pytest.raises(ValueError, match=r"\[0, 3\]"):
        penalty(torch.zeros(0, 3))
    with pytest.raises(TypeError, match=r"torch\.int64 of shape \[5, 3\]"):
        penalty(torch.zeros(5, 3, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"torch\.complex64 of shape \[5, 3\]"):
        penalty(torch.zeros(5, 3, dtype=torch.complex64))
    with pytest.raises(TypeError, match="not ndarray"):
        penalty(np.zeros((5, 3)))


def test_the_unbiased_form_says_how_many_samples_it_needs():
    with pytest.raises(ValueError, match=r"at least 4 samples, got shape \[3, 2\]"):
        unbiased_gram_penalty(torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"at least 2 samples, got shape \[1, 2\]"):
        unbiased_gram_penalty(torch.zeros(1, 2), centered=False)
    assert unbiased_gram_penalty(torch.ones(2, 2), centered=False) == 2


@pytest.mark.parametrize("penalty", SAME_NUMBER)
def test_one_sample_has_no_covariance_but_has_second_moments(penalty):
    features = torch.tensor([[1.0, 2.0, 3.0]])
    assert penalty(features) == 0
    assert penalty(features, centered=False) == 2 * (1 * 4 + 1 * 9 + 4 * 9)


def test_one_feature_has_no_pair():
    features = torch.tensor([[1.0], [2.0], [4.0], [5.0]])
    for centered in (True, False):
        assert covariance_penalty(features, centered=centered) == 0
        assert abs(float(gram_penalty(features, centered=centered))) < 1e-6 * float(features.square().sum() ** 2)


@pytest.mark.parametrize("penalty", EVERY[:-1])
def test_no_features_and_no_batches_give_zero_and_nothing(penalty):
    assert penalty(torch.zeros(5, 0)) == 0
    assert penalty(torch.zeros(0, 5, 3)).shape == (0,)


@pytest.mark.parametrize("penalty", EVERY)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_non_finite_features_spoil_their_own_batch_alone(penalty, bad):
    features = torch.randn(3, 6, 4, requires_grad=True, generator=torch.Generator().manual_seed(0))
    spoiled = features.detach().clone()
    spoiled[1, 2, 3] = bad
    spoiled.requires_grad_()
    values = penalty(spoiled)
    assert not torch.isfinite(values[1])
    assert torch.equal(values[[0, 2]], penalty(features)[[0, 2]])
    (gradient,) = torch.autograd.grad(values.sum(), spoiled)
    (expected,) = torch.autograd.grad(penalty(features).sum(), features)
    assert torch.equal(gradient[[0, 2]], expected[[0, 2]])


@pytest.mark.parametrize("penalty", [gram_penalty, unbiased_gram_penalty])
@pytest.mark.parametrize("centered", [True, False])
def test_the_gram_forms_never_make_a_d_by_d_matrix(penalty, centered):
    d = 300_000  # a d×d float32 matrix would take 360 GB
    features = torch.rand(4, d, requires_grad=True)
    penalty(features, centered=centered).backward()
    assert features.grad is not None


# --- free of scale ---


def drawn(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("penalty", SCALE_FREE)
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
class TestScaleFree:
    def test_is_what_its_definition_says(self, penalty, centered, shape):
        x = drawn(*shape) + 0.3
        x[:, 0] *= 1e-3  # below the floor
        expected = naive_penalty(penalty.__name__.removesuffix("_penalty"), x, None, centered)
        torch.testing.assert_close(penalty(x, centered=centered), expected, rtol=1e-12, atol=0)

    def test_does_not_depend_on_the_scale(self, penalty, centered, shape):
        x = drawn(*shape)
        for factor in (1e-100, 1e100):
            torch.testing.assert_close(penalty(x * factor, centered=centered), penalty(x, centered=centered))
        single = x.float()
        for factor in (1e-30, 1e30):
            torch.testing.assert_close(penalty(single * factor, centered=centered), penalty(single, centered=centered))

    def test_its_gradient_does_not_pull_on_the_scale(self, penalty, centered, shape):
        leaf = drawn(*shape) + 0.3
        leaf[:, 0] *= 1e-3
        leaf.requires_grad_()
        (gradient,) = torch.autograd.grad(penalty(leaf, centered=centered), leaf)
        assert abs(float((gradient * leaf.detach()).sum())) < 1e-13 * float(gradient.norm() * leaf.detach().norm())

    def test_its_gradient_equals_finite_differences_below_the_floor_too(self, penalty, centered, shape):
        x = drawn(*shape)
        x[:, 0] *= 1e-3
        x.requires_grad_()
        assert torch.autograd.gradcheck(lambda x: penalty(x, centered=centered), x, eps=1e-7)


@pytest.mark.parametrize("penalty", SCALE_FREE)
def test_features_that_do_not_vary_have_no_penalty_and_no_gradient(penalty):
    for value in (0.0, 0.1, 1e20):
        leaf = torch.full((3, 4), value, requires_grad=True)
        assert penalty(leaf) == 0
        assert abs(torch.autograd.grad(penalty(leaf), leaf)[0]).max() < 1e-6


def test_isotropy_is_the_inverse_participation_ratio():
    rotation = torch.linalg.qr(drawn(5, 5)).Q
    assert float(isotropy_penalty(rotation, centered=False)) == pytest.approx(1 / 5)
    eigenvalues = torch.linalg.eigvalsh(drawn(9, 5).T.cov())
    ratio = eigenvalues.sum() ** 2 / eigenvalues.square().sum()
    assert float(1 / isotropy_penalty(drawn(9, 5))) == pytest.approx(float(ratio))


def test_dead_features_lower_the_correlation_penalty_of_a_small_batch():
    x = drawn(200, 32, 128)
    assert float(correlation_penalty(x).mean()) == pytest.approx(127 / 31, rel=0.02)
    x[..., 8:] = 0
    assert float(correlation_penalty(x).mean()) == pytest.approx(8 * 7 / 128 / 31, rel=0.05)


def test_the_trap_of_dividing_by_the_trace_is_minimal_with_all_variance_in_one_feature():
    one = torch.zeros(8, 4, dtype=torch.float64)
    one[:, 0] = drawn(8)

    def trap(x):
        return covariance_penalty(x) / x.var(0, correction=0).sum() ** 2

    assert trap(one) == 0 < trap(drawn(8, 4))
    assert float(isotropy_penalty(one)) == pytest.approx(1)
    assert isotropy_penalty(drawn(8, 4)) < 0.5


# --- what they are compared with ---


def test_a_permuted_gram_penalty_is_that_of_permuted_features():
    x, noise = drawn(3, 6, 4), drawn(3, 6, 4, seed=1)
    permuted = torch.stack([torch.stack([a[b.argsort()] for a, b in zip(*both, strict=True)], 1)
                            for both in zip(x.mT, noise.mT, strict=True)])  # fmt: skip
    torch.testing.assert_close(permuted_gram_penalty(x, noise), gram_penalty(permuted))
    assert torch.autograd.gradcheck(lambda x: permuted_gram_penalty(x, noise), x.requires_grad_())


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_vicreg_is_its_variance_and_covariance_terms(shape):
    x = drawn(*shape) * torch.linspace(0.3, 2, shape[1], dtype=torch.float64)
    torch.testing.assert_close(vicreg_penalty(x), naive_penalty("vicreg", x, None, True), rtol=1e-12, atol=0)
    assert torch.autograd.gradcheck(vicreg_penalty, x.requires_grad_())


def test_sigreg_is_the_distance_of_characteristic_functions():
    x, noise = drawn(7, 4), drawn(4, 3, seed=1)
    total = 0.0
    for direction in noise.T.numpy():
        along = x.numpy() @ (direction / np.linalg.norm(direction))
        for t in np.linspace(-5, 5, 8):
            total += abs(np.exp(1j * t * along).mean() - np.exp(-(t**2) / 2)) ** 2 / (8 * 3)
    assert float(sigreg_penalty(x, noise)) == pytest.approx(total, rel=1e-12)
    assert torch.autograd.gradcheck(lambda x: sigreg_penalty(x, noise), x.requires_grad_())


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_orthogonality_is_zero_for_orthonormal_weights_alone(shape):
    weight = torch.linalg.qr(drawn(5, 3)).Q.reshape(5, 3)
    weight = weight if shape == (5, 3) else weight.T
    assert float(orthogonality_penalty(weight)) < 1e-28
    assert float(orthogonality_penalty(2 * weight, scale=4.0)) < 1e-27
    assert float(orthogonality_penalty(2 * weight)) == pytest.approx(27)
    assert torch.autograd.gradcheck(orthogonality_penalty, drawn(*shape).requires_grad_())


def test_kappa_of_each_convention():
    assert kappa(0.01, 32, "author") == pytest.approx(10.24)
    assert kappa(0.01, 32, "algorithm2") == pytest.approx(0.16)
    assert kappa(0.01, 32, "equation3") == pytest.approx(0.0025)
    assert kappa(0.01, 32, "decov") == pytest.approx(0.005)
    assert kappa(25.0, 32, "vicreg", d=512) == pytest.approx(25 / 512 * (32 / 31) ** 2)


@given(
    value=st.floats(1e-6, 1e6),
    n=st.integers(2, 4096),
    convention=st.sampled_from(["author", "algorithm2", "equation3", "decov", "vicreg"]),
)
def test_lam_undoes_kappa(value, n, convention):
    assert lam(kappa(value, n, convention, d=512), n, convention, d=512) == pytest.approx(value)


@given(features=matrices(min_n=2, min_d=2), coefficient=st.floats(0.001, 10))
def test_each_published_loss_equals_ours_with_its_kappa(features, coefficient):
    """The TD part is ½ mean δ² where errors are small; δ is anything of the batch's length."""
    n, d = features.shape
    x = (features - features.mean(0)).numpy()
    delta = np.linspace(-1, 1, n)
    raw, td = x.T @ x, 0.5 * (delta**2).mean()
    off = (raw**2).sum() - (np.diag(raw) ** 2).sum()
    published = {  # each as its publication writes it, divided by what its TD loss is multiplied with
        "author": td + coefficient * off,
        "algorithm2": ((delta**2).sum() + coefficient * off) / (2 * n),
        "equation3": td + 0.5 * coefficient * (off / n**2) / 2,
        "decov": td + coefficient * 0.5 * off / n**2,
        "vicreg": td + coefficient / d * off / (n - 1) ** 2,
    }
    for convention, loss in published.items():
        ours = td + kappa(coefficient, n, convention, d=d) * float(covariance_penalty(features))
        assert ours == pytest.approx(loss, rel=1e-9, abs=1e-9 * (1 + n**2 * float(size(features))))


def test_bad_conventions_are_named():
    with pytest.raises(ValueError, match="unknown convention 'autor'; choose from author"):
        kappa(0.01, 32, "autor")
    with pytest.raises(ValueError, match="pass d="):
        kappa(0.01, 32, "vicreg")
    with pytest.raises(ValueError, match="n = 0"):
        kappa(0.01, 0, "author")
    with pytest.raises(ValueError, match="n = 1"):
        kappa(0.01, 1, "vicreg", d=3)


def test_the_names_are_importable_from_the_package():
    for name in ("covariance_penalty", "gram_penalty", "decorrelation_penalty", "unbiased_gram_penalty", "gram_terms"):
        assert callable(getattr(gramian, name))
    assert set(gramian.__all__) <= set(dir(gramian))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gramian.nothing  # noqa: B018
