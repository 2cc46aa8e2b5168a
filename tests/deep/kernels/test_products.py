"""Products with their sums in registers, and the hidden layer made of them, against numpy's in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.deep.engines.kernels import hidden
from gramian.deep.engines.kernels.products import multiply

ANY_ROWS = st.integers(0, 30)


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(ours, expected):
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


@settings(deadline=None)  # the first one compiles
@given(ANY_ROWS, st.integers(0, 40), st.booleans(), st.booleans())
def test_sixteen_columns_are_those_of_the_product(rows, depth, transposed, adds):
    left, right, before = normal(0, rows, depth), normal(1, depth, 48), normal(2, rows, 32)
    flat, row, step = (left.T.ravel(), 1, rows) if transposed else (left.ravel(), depth, 1)
    out = before.copy()
    multiply(flat, 0, row, step, right.ravel(), 16, 48, out.ravel(), 16, 32, rows, depth, adds)
    close(out[:, 16:], left.astype(float) @ right[:, 16:32].astype(float) + (before[:, 16:] if adds else 0))
    assert np.array_equal(out[:, :16], before[:, :16])


def test_no_number_depends_on_the_rows_beside_it():
    left, right = normal(0, 13, 20), normal(1, 20, 16)
    whole = np.zeros((13, 16), np.float32)
    multiply(left.ravel(), 0, 20, 1, right.ravel(), 0, 16, whole.ravel(), 0, 16, 13, 20, False)
    for row in range(13):
        alone = np.zeros(16, np.float32)
        multiply(left[row], 0, 20, 1, right.ravel(), 0, 16, alone, 0, 16, 1, 20, False)
        assert np.array_equal(alone, whole[row])


def batch(size, filters=16, height=3, width=2):
    """What a last convolution gives, channels last, and the same as rows of inputs, channels first."""
    images = normal(0, size, height, width * filters)
    inputs = images.reshape(size, height, width, filters).transpose(0, 3, 1, 2).reshape(size, -1)
    return images, inputs


def arranged(images, size, first=0, filters=16):
    inputs = images.shape[1] * images.shape[2]
    columns = np.zeros((-(-size // 16), inputs, 16), np.float32)
    panels = np.zeros((inputs // 16, size, 16), np.float32)
    hidden.arrange(images, filters, first, columns, panels)
    return columns, panels


@pytest.mark.parametrize(("size", "split"), [(1, 0), (5, 2), (16, 8), (37, 18)])
def test_arranged_samples_are_found_as_columns_and_as_rows(size, split):
    images, inputs = batch(size)
    columns, panels = arranged(images[:split], size)
    again, panels_again = arranged(images[split:], size, split)
    columns, panels = columns + again, panels + panels_again
    together = columns.transpose(0, 2, 1).reshape(-1, inputs.shape[1])
    assert np.array_equal(together[:size], inputs)
    assert not together[size:].any()
    assert np.array_equal(panels.transpose(1, 0, 2).reshape(size, -1), inputs)


@pytest.mark.parametrize("size", [1, 16, 37])
@pytest.mark.parametrize("features", [1, 7, 20, 64])
@pytest.mark.parametrize("depth", [hidden.DEPTH, 1000])
def test_the_hidden_layer_has_the_products_of_numpy_forwards_and_backwards(size, features, depth):
    height = 1 + depth // 32
    images, inputs = batch(size, height=height)
    weight, slopes = normal(1, features, inputs.shape[1]), normal(2, size, features)
    columns, panels = arranged(images, size)
    half, out = features // 2, np.full((features, columns.shape[0] * 16), np.nan, np.float32)
    for first, last in ((0, half), (half, features)):
        hidden.weigh(weight, first, last, columns, out)
    close(out[:, :size].T, inputs.astype(float) @ weight.T.astype(float))

    middle, lower = inputs.shape[1] // 32 * 16, np.full_like(inputs, np.nan)
    for first, last in ((0, middle), (middle, inputs.shape[1])):
        hidden.descend(slopes, weight, first, last, lower)
    close(lower, slopes.astype(float) @ weight.astype(float))

    gradient, squares = np.full_like(weight, np.nan), 0.0
    for first, last in ((0, half), (half, features)):
        squares += hidden.differentiate(np.ascontiguousarray(slopes[:, first:last].T), panels, first, gradient)
    close(gradient, slopes.T.astype(float) @ inputs.astype(float))
    np.testing.assert_allclose(squares, (gradient.astype(float) ** 2).sum(), rtol=1e-5)


@pytest.mark.parametrize("features", [1, 5, 16])
def test_a_single_sample_is_weighed_with_its_bias(features):
    images, inputs = batch(1)
    weight, bias, out = normal(1, features, inputs.shape[1]), normal(2, features), np.full(features, np.nan, np.float32)
    hidden.weigh_one(images, 16, weight, bias, out)
    close(out, weight.astype(float) @ inputs[0].astype(float) + bias)
