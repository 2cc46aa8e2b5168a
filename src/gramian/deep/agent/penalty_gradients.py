"""Penalties and their gradients in closed form: what a training update needs of them, and no more.

For features φ ``[..., n, d]``; X, which is φ minus its mean over the n samples where centred; G = XXᵀ/n and C = XᵀX/n;
v_i = C_ii; and offdiag(·), a matrix with its diagonal set to zero:

| penalty | value | gradient with respect to X |
| --- | --- | --- |
| `decor` | ‖offdiag C‖² | 4/n · X offdiag(C) |
| `gram` | ‖G‖² - ‖v‖² | 4/n · (GX - X∘v) |
| `norm` | Σ_a G_aa² | 4/n · diag(G) X |
| `cross` | ‖offdiag G‖² | 4/n · offdiag(G) X |
| `l2` | mean_a ‖φ_a‖² | 2/n · φ |
| `gram_unbiased` | H(XXᵀ) - Σ_i H(x_i x_iᵀ) | see there |

Centred, the gradient with respect to φ is that with respect to X minus its mean over the samples. For `decor` and
`gram` there is no such mean, since 1ᵀX = 0. Automatic differentiation of `gramian.penalties`, the oracle, gives the
same numbers with more passes over the memory: the closed form of `gram` adds 6 % to a compiled update of one run on an
H200. A compiler leaves the value out where it is not read.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from gramian.penalties import floating, prepared, without_diagonal


class PenaltyGradient(NamedTuple):
    """A penalty at some features."""

    value: Tensor
    """The penalty, ``[...]``."""
    gradient: Tensor
    """Its gradient with respect to the features, ``[..., n, d]``."""


def decor(features: Tensor, *, centered: bool) -> PenaltyGradient:
    """`gramian.penalties.covariance_penalty`, through the explicit ``[d, d]`` covariance in both directions."""
    x = prepared(features, centered)
    n = x.shape[-2]
    covariance = without_diagonal(x.mT @ x / n)
    return _result(covariance.square().sum((-2, -1)), 4 / n * (x @ covariance), features)


def gram(features: Tensor, *, centered: bool) -> PenaltyGradient:
    """`gramian.penalties.gram_penalty`."""
    x = prepared(features, centered)
    n = x.shape[-2]
    products, variance = x @ x.mT, x.square().mean(-2, keepdim=True)
    value = (products / n).square().sum((-2, -1)) - variance.square().sum((-2, -1))
    # Dividing the second product saves a pass over the first.
    return _result(value, 4 / n * (products @ x / n - x * variance), features)


def norm(features: Tensor, *, centered: bool) -> PenaltyGradient:
    """`gramian.penalties.GramTerms.norm`."""
    x = prepared(features, centered)
    n = x.shape[-2]
    squares = x.square().sum(-1, keepdim=True) / n
    return _result(squares.square().sum((-2, -1)), _centered(4 / n * squares * x, centered), features)


def cross(features: Tensor, *, centered: bool) -> PenaltyGradient:
    """`gramian.penalties.GramTerms.cross`."""
    x = prepared(features, centered)
    n = x.shape[-2]
    products = without_diagonal(x @ x.mT / n)
    return _result(products.square().sum((-2, -1)), _centered(4 / n * (products @ x), centered), features)


def gram_unbiased(features: Tensor, *, centered: bool) -> PenaltyGradient:
    """`gramian.penalties.unbiased_gram_penalty`.

    With K = offdiag(XXᵀ), its row sums r, p_k = Σ_a x_aᵏ of each feature (all products of features elementwise):

    | term | value | its gradient with respect to x_a |
    | --- | --- | --- |
    | squares | ‖K‖² - Σ_i (p₂² - p₄) | 4 (Kx - p₂x + x³)_a |
    | total | (Σr)² - Σ_i (p₁² - p₂)² | 4 (Σr - p₁² + p₂)(p₁ - x_a) |
    | rows | ‖r‖² - Σ_i (p₁²p₂ - 2p₁p₃ + p₄) | 2 (rᵀx + r_a (p₁ - 2x_a) - p₁p₂ - p₁²x_a + p₃ + 3p₁x_a² - 2x_a³) |

    Uncentred it is squares/(n(n-1)); centred (squares + total/((n-1)(n-2)) - 2·rows/(n-2))/(n(n-3)), whose gradient
    has no mean over the samples, since the value does not change when all of them are shifted.
    """
    x = floating(features)
    n = x.shape[-2]
    if n < (least := 4 if centered else 2):
        raise ValueError(f"the unbiased penalty needs at least {least} samples, got {n}")
    if centered:
        x = x - x.mean(-2, keepdim=True)  # for accuracy alone
    squares = x.square()
    products = without_diagonal(x @ x.mT)
    p2, p4 = squares.sum(-2, keepdim=True), squares.square().sum(-2, keepdim=True)
    value = products.square().sum((-2, -1)) - (p2.square() - p4).sum((-2, -1))
    gradient = 4 * (products @ x - p2 * x + squares * x)
    if not centered:
        return _result(value / (n * (n - 1)), gradient / (n * (n - 1)), features)
    p1, p3 = x.sum(-2, keepdim=True), (squares * x).sum(-2, keepdim=True)
    rows = products.sum(-1, keepdim=True)
    everything, column = rows.sum(-2, keepdim=True), p1.square() - p2
    total = everything.square().sum((-2, -1)) - column.square().sum((-2, -1))
    row_terms = rows.square().sum((-2, -1)) - (p1.square() * p2 - 2 * p1 * p3 + p4).sum((-2, -1))
    total_gradient = 4 * (everything - column) * (p1 - x)
    rows_gradient = 2 * (
        rows.mT @ x + rows * (p1 - 2 * x) - p1 * p2 - p1.square() * x + p3 + 3 * p1 * squares - 2 * squares * x
    )
    value = value + total / ((n - 1) * (n - 2)) - row_terms * (2 / (n - 2))
    gradient = gradient + total_gradient / ((n - 1) * (n - 2)) - rows_gradient * (2 / (n - 2))
    return _result(value / (n * (n - 3)), gradient / (n * (n - 3)), features)


def l2(features: Tensor) -> PenaltyGradient:
    """mean_a ‖φ_a‖²."""
    n = features.shape[-2]
    return PenaltyGradient(features.square().sum((-2, -1)) / n, 2 / n * features)


CLOSED_FORMS: dict[str, Callable[..., PenaltyGradient]] = {
    "decor": decor,
    "gram": gram,
    "gram-unbiased": gram_unbiased,
    "norm": norm,
    "cross": cross,
    "l2": l2,
}
"""By the names of the arms; a penalty that is not here is differentiated automatically."""


def _centered(gradient: Tensor, centered: bool) -> Tensor:
    return gradient - gradient.mean(-2, keepdim=True) if centered else gradient


def _result(value: Tensor, gradient: Tensor, features: Tensor) -> PenaltyGradient:
    return PenaltyGradient(value.to(features.dtype), gradient.to(features.dtype))
