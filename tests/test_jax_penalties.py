"""The penalties on JAX arrays against those on torch tensors, in float64, under jit, grad and vmap."""

import doctest
import functools

import numpy as np
import pytest
import torch

from gramian import penalties
from gramian.core.arms import PENALTIES

pytestmark = pytest.mark.slow  # JAX compiles everything

NAMES = [
    name
    for name, function in vars(penalties).items()
    if name.endswith("_penalty") and function.__module__ == penalties.__name__
]
CENTRED = [kind.function for kind in PENALTIES.values() if kind.centrable] + ["decorrelation_penalty"]
CASES = [(name, {}) for name in NAMES] + [(name, {"centered": False}) for name in NAMES if name in CENTRED]
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _jax_in_float64():
    """JAX is imported where these tests run and nowhere else: its threads do not go with the forks of other tests."""
    global jax, jnp, jax_penalties
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    from gramian import jax_penalties

    with jax.enable_x64(True):
        yield


def arguments(name, *shape):
    """Features, and the second argument where there is one."""
    rng = np.random.default_rng(0)
    features = np.maximum(rng.normal(size=shape), -0.5)  # as after a ReLU: several entries are the same
    noise = {"sigreg_penalty": (*shape[:-2], shape[-1], 16), "permuted_gram_penalty": shape, "dr3_penalty": shape}
    return [features, *(rng.normal(size=noise[name]) for _ in range(name in noise))]


def of_torch(name, options, features, *rest):
    """Values and gradient."""
    x = torch.tensor(features, requires_grad=True)
    value = getattr(penalties, name)(x, *map(torch.tensor, rest), **options)
    value.sum().backward()
    return value.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_value_and_gradient_under_jit_are_those_of_torch(name, options):
    given = arguments(name, 7, 5)
    function = functools.partial(getattr(jax_penalties, name), **options)
    found = jax.jit(jax.value_and_grad(function))(*map(jnp.asarray, given))
    for one, expected in zip(found, of_torch(name, options, *given), strict=True):
        np.testing.assert_allclose(one, expected, **TIGHT)


@pytest.mark.parametrize("name", NAMES)
def test_leading_axes_and_vmap_are_the_same_and_features_without_variance_are_finite(name):
    features, *rest = arguments(name, 3, 4, 9)
    features[1] = 1.0
    function = getattr(jax_penalties, name)
    values, gradient = of_torch(name, {}, features, *rest)
    given = [jnp.asarray(one) for one in (features, *rest)]
    found = jax.jit(jax.vmap(jax.value_and_grad(function)))(*given)
    for one, expected in zip(found, (values, gradient), strict=True):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(one, expected, **TIGHT)
    np.testing.assert_allclose(jax.jit(function)(*given), values, **TIGHT)


def test_the_examples_of_the_docstrings():
    with jax.enable_x64(False):
        assert doctest.testmod(jax_penalties).failed == 0


def test_the_terms_make_the_penalty():
    (features,) = arguments("gram_penalty", 7, 5)
    found, expected = jax_penalties.gram_terms(jnp.asarray(features)), penalties.gram_terms(torch.tensor(features))
    np.testing.assert_allclose(found, expected, **TIGHT)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_small_precisions_are_computed_in_float32(dtype):
    (features,) = arguments("gram_penalty", 7, 5)
    value = jax_penalties.gram_penalty(jnp.asarray(features, dtype))
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, jax_penalties.gram_penalty(jnp.asarray(features)), rtol=0.05)


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ([[1.0, 2.0]], TypeError, "must be a JAX array .*, not list"),
        (np.ones(3), ValueError, r"must have the shape \[..., n, d\]"),
        (np.ones((2, 2), int), TypeError, "must be floating point, got int64"),
        (np.ones((1, 2)), ValueError, "needs at least 4 samples"),
    ],
)
def test_bad_input_is_refused_as_by_torch(features, error, message):
    with pytest.raises(error, match=message):
        jax_penalties.unbiased_gram_penalty(features)
