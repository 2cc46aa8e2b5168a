"""What the page of the penalties says about them."""

import pytest
import torch

from gramian import penalties
from gramian.penalties import covariance_penalty, isotropy_penalty
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "penalties.md").read_text(encoding="utf-8")


@pytest.fixture
def features():
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(4, 8, generator=generator, dtype=torch.float64)
    return torch.randn(64, 4, generator=generator, dtype=torch.float64) @ mixing


def trap(features):
    """Σ_{i≠j} C_ij²/(tr C)²."""
    return covariance_penalty(features) / features.var(0, correction=0).sum() ** 2


@pytest.mark.parametrize("kind", penalties.PENALTIES)
def test_every_penalty_stands_in_the_table(kind):
    assert f"| `{kind}` |" in PAGE


def test_half_the_size_has_a_sixteenth_of_the_penalty_and_the_same_correlations(features):
    torch.testing.assert_close(covariance_penalty(features / 2), covariance_penalty(features) / 16)
    torch.testing.assert_close(torch.corrcoef(features.T), torch.corrcoef(features.T / 2))


def test_the_ratio_to_the_squared_trace_rewards_dead_features_and_isotropy_does_not(features):
    grown, one = features.clone(), torch.zeros_like(features)
    grown[:, 0] *= 10
    one[:, 0] = features[:, 0]
    torch.testing.assert_close(torch.corrcoef(grown.T), torch.corrcoef(features.T))
    assert trap(one) == 0 < trap(grown) < trap(features)
    assert isotropy_penalty(one) == pytest.approx(1)
    assert isotropy_penalty(features) < isotropy_penalty(grown)


@pytest.mark.parametrize("kind", ["gram", "decor", "norm", "correlation"])
def test_dead_features_lower_a_penalty(kind, features):
    fewer = features.clone()
    fewer[:, 4:] = 0
    function = penalties.penalty_function(kind)
    assert function(fewer) < function(features)
