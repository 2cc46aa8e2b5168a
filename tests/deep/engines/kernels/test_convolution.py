"""The convolution of nearly empty pictures against torch's."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from gramian.deep.engines.kernels.convolution import convolve, convolve_back, find

FILTERS, BATCH = 16, 5


class Case:
    """Pictures of which about a share of the cells is not zero, and what the kernels make of them."""

    def __init__(self, channels, share, height=10, width=10, highest=1):
        rng = np.random.default_rng(channels)
        values = rng.integers(1, highest + 1, size=(BATCH, channels, height, width))
        self.pictures = (values * (rng.random(values.shape) < share)).astype(np.uint8)
        self.filters = rng.normal(size=(FILTERS, channels, 3, 3)).astype(np.float32)
        self.bias = rng.normal(size=FILTERS).astype(np.float32)
        cells = (height - 2) * (width - 2)
        self.places = np.zeros((BATCH, channels * height * width), np.int32)
        self.counts = np.zeros(BATCH, np.int64)
        self.workspace = np.zeros(channels * 9 * FILTERS, np.float32), np.zeros(cells * FILTERS, np.float32)
        self.outputs = np.zeros((BATCH, FILTERS * cells), np.float32)
        find(self.pictures, self.places, self.counts)
        convolve(self.pictures, self.places, self.counts, self.filters, self.bias, *self.workspace, self.outputs)


CASES = {
    "empty": Case(4, 0.0),
    "sparse": Case(4, 0.05),
    "full": Case(10, 1.0),
    "not square": Case(2, 0.3, height=5, width=9),
    "one cell": Case(3, 0.5, height=3, width=3),
    "levels": Case(2, 0.3, highest=255),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_convolution_is_torch_s(case):
    pictures, filters, bias = (torch.from_numpy(array) for array in (case.pictures, case.filters, case.bias))
    expected = functional.conv2d(pictures.double(), filters.double(), bias.double()).relu().flatten(1)
    np.testing.assert_allclose(case.outputs, expected.numpy(), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_its_gradients_are_those_of_automatic_differentiation(case):
    gradients = np.random.default_rng(1).normal(size=case.outputs.shape).astype(np.float32)
    filters, bias = np.full_like(case.filters, np.nan), np.full_like(case.bias, np.nan)
    convolve_back(case.pictures, case.places, case.counts, case.outputs, gradients, *case.workspace, filters, bias)
    leaves = [torch.from_numpy(array).double().requires_grad_() for array in (case.filters, case.bias)]
    outputs = functional.conv2d(torch.from_numpy(case.pictures).double(), *leaves).relu().flatten(1)
    expected = torch.autograd.grad((outputs * torch.from_numpy(gradients)).sum(), leaves)
    for ours, theirs in zip((filters, bias), expected, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-2 if case is CASES["levels"] else 1e-4)
