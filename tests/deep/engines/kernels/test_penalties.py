"""The penalties of the kernels against the closed forms in torch."""

import numpy as np
import pytest
import torch

from gramian.deep.agent import penalty_gradients
from gramian.deep.engines.kernels.penalties import KINDS, penalise, workspace

CASES = [(kind, centered) for kind in KINDS for centered in (True, False) if kind != "l2" or not centered]


@pytest.mark.parametrize(("kind", "centered"), CASES)
@pytest.mark.parametrize(("samples", "width"), [(32, 128), (4, 1), (7, 13), (40, 6)])
def test_value_and_gradient_are_those_of_the_closed_form(kind, centered, samples, width):
    features = np.maximum(np.random.default_rng(width).normal(size=(samples, width)), 0).astype(np.float32)
    gradient = np.full_like(features, np.nan)
    value = penalise(KINDS[kind], centered, features, workspace(KINDS[kind], samples, width), gradient)
    exact = torch.from_numpy(features).double()
    expected = (
        penalty_gradients.l2(exact) if kind == "l2" else penalty_gradients.CLOSED_FORMS[kind](exact, centered=centered)
    )
    scale = max(1.0, float(expected.gradient.abs().max()))
    assert value == pytest.approx(float(expected.value), rel=2e-5, abs=1e-4)
    np.testing.assert_allclose(gradient, expected.gradient.numpy(), rtol=2e-5, atol=2e-6 * scale)
