"""Penalties on the correlation of features, their decomposition, and the regularisers that people compare them with.

Every penalty is a pure, differentiable function of features ``[..., n, d]``: n samples (rows) of d features, with any
leading axes. It returns one value for each leading index, ``[...]``. X stands for the features, minus their mean over
the n samples where ``centered``; C = XᵀX/n is ``[d, d]``, G = XXᵀ ``[n, n]``, and m = min(n, d).

| function | value | time |
| --- | --- | --- |
| `covariance_penalty` | Σ_{i≠j} C_ij², from C | O(nd²) |
| `gram_penalty` | the same number, from G | O(n²d) |
| `decorrelation_penalty` | the same number, the cheaper way | O(ndm) |
| `unbiased_gram_penalty` | an unbiased estimate of the distribution's penalty | O(n²d) |
| `gram_terms` | the three terms of the penalty: norm, cross, variance | O(n²d) |
| `norm_penalty`, `cross_penalty` | Σ_n ‖x_n‖⁴/n² and Σ_{n≠m} (x_n·x_m)²/n² | O(nd), O(n²d) |
| `isotropy_penalty` | ‖G‖_F²/(tr G)², free of the features' scale | O(ndm) |
| `correlation_penalty` | Σ_{i≠j} R_ij²/d with R the correlations, free of scale | O(ndm) |
| `permuted_gram_penalty` | the Gram penalty of features permuted one by one: a control | O(n²d) |
| `vicreg_penalty` | 25 · mean_i max(0, 1 - std_i) + Σ_{i≠j} Cov_ij²/d | O(ndm) |
| `sigreg_penalty` | distance of 16 random projections from a normal distribution | O(nd) |
| `l2_penalty`, `dr3_penalty` | mean_n ‖φ_n‖² and mean_n φ(s_n)·φ(s'_n) | O(nd) |
| `orthogonality_penalty` | ‖WWᵀ - sI‖_F², of a layer's weights | O(weights · m) |

What goes in and what comes out:

- float32 and float64 are computed and returned in their own precision, inside autocast too. float16 and bfloat16,
  which is what a layer under autocast gives, are computed and returned in float32. Integer, boolean and complex
  features raise ``TypeError``.
- Where float32 products on CUDA are allowed to round to TF32, float32 features are computed in float64: TF32's ten
  bits are too few for the difference that the Gram form takes.
- One sample has no covariance: the centred penalties are 0; uncentred they are Σ_{i≠j} φ_i²φ_j². One feature has no
  pair: 0, exactly from the covariance form and to rounding from the Gram form. No features give 0.
- No samples, or fewer than `unbiased_gram_penalty` needs, raise ``ValueError``. An empty leading axis gives an empty
  result.
- NaN or infinite features make the value and gradient of their own leading index non-finite (except for d = 1), and of
  no other. So do features whose fourth power overflows: covariance gives inf then, Gram NaN.
- Of nearly decorrelated features the Gram form may come out slightly negative, by about 1e-6·‖C‖_F² in float32: it is
  a difference of two nearly equal numbers. It is not clamped, because that would cut the gradient.

Source: Mavrin, Graves & Chan (2019), "Efficient decorrelation of features using Gramian in Reinforcement Learning".
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from numbers import Real
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from gramian.core.arms import PENALTIES

_CORRELATION_FLOOR = 1e-4

Convention = Literal["author", "algorithm2", "equation3", "decov", "vicreg"]
"""How a publication weighs its penalty; see `kappa`."""


class GramTerms(NamedTuple):
    """The Gram penalty taken apart: ``norm + cross - variance`` is `gram_penalty`. Each is ``[...]``."""

    norm: Tensor
    """Σ_n ‖x_n‖⁴ / n²: as a penalty, it shrinks the features and decorrelates nothing."""
    cross: Tensor
    """Σ_{n≠m} (x_n·x_m)² / n²: as a penalty, it makes samples orthogonal to each other."""
    variance: Tensor
    """Σ_i (Σ_n x_ni²)² / n² = Σ_i C_ii²: the penalty *rewards* it."""


def covariance_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """Σ_{i≠j} C_ij² from the explicit covariance matrix, as in DQN-decor (Mavrin, Yao & Kong 2019).

    Exactly zero where all off-diagonal covariances are.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])  # C = [[1, 2], [2, 4]]
    >>> covariance_penalty(x)
    tensor(8.)
    """
    with _full_precision(features):
        x = prepared(features, centered)
        covariance = x.mT @ x / x.shape[-2]
        return _returned(without_diagonal(covariance).square().sum((-2, -1)), features)


def gram_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """Σ_{i≠j} C_ij² from the Gram matrix, linear in the number of features: the penalty of DQN-Gram.

    ``(‖G‖_F² - Σ_i (Σ_n x_ni²)²) / n²``, because ‖XᵀX‖_F = ‖XXᵀ‖_F. No d×d matrix is ever made, neither here nor in
    the backward pass.

    Equal to `covariance_penalty` up to rounding.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> gram_penalty(x)
    tensor(8.)
    """
    with _full_precision(features):
        x = prepared(features, centered)
        # Divided by n before squaring, so that float32 overflows no sooner than the result does.
        gram = x @ x.mT / x.shape[-2]
        variance = x.square().mean(-2)
        return _returned(gram.square().sum((-2, -1)) - variance.square().sum(-1), features)


def decorrelation_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """Σ_{i≠j} C_ij² by whichever form is cheaper for this shape: Gram where n ≤ d, else covariance.

    Examples
    --------
    >>> decorrelation_penalty(torch.tensor([[1.0, 2.0], [3.0, 6.0], [2.0, 4.0]])).round(decimals=4)
    tensor(3.5556)
    """
    n, d = _checked(features).shape[-2:]
    return (gram_penalty if n <= d else covariance_penalty)(features, centered=centered)


def unbiased_gram_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """Unbiased estimate of the penalty of the distribution that the samples come from, at the Gram form's cost.

    The penalty of an uncentred batch overestimates: its expectation is (1 - 1/n)·T + B/n. T = Σ_{i≠j} (E f_i f_j)² is
    what is meant, and B = Σ_{i≠j} E f_i² f_j² ≥ T acts like a penalty on the norm. Leaving out the pairs n = m
    removes B:

    ``[Σ_{n≠m} G_nm² - Σ_{n≠m} ⟨x_n², x_m²⟩] / (n(n-1))``

    Centring by the batch mean would bias that again: a centred batch has too large a penalty where the features are
    nearly independent, and too small a one where they are strongly correlated. The centred version is instead
    H(XXᵀ) - Σ_i H(x_i x_iᵀ), x_i a column, with the U-statistic of four samples, K's diagonal set to zero,

    ``H(K) = [ΣK² + (ΣK)²/((n-1)(n-2)) - 2/(n-2)·Σ_a (Σ_b K_ab)²] / (n(n-3))``

    whose expectation is Σ_{i≠j} Cov(f_i, f_j)² exactly. An unbiased estimate of a small positive number is often
    negative.

    It needs n ≥ 2, or n ≥ 4 where ``centered``.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 1.0], [1.0, -1.0]])  # E f_1 f_2 is estimated as 0, its square as 1·(-1)
    >>> unbiased_gram_penalty(x, centered=False)
    tensor(-2.)
    """
    n = _checked(features, minimum=4 if centered else 2).shape[-2]
    with _full_precision(features):
        # H does not change when the same vector is subtracted from all samples. The mean is subtracted for accuracy
        # alone, and carries no gradient.
        x = floating(features)
        if centered:
            x = x - x.detach().mean(-2, keepdim=True)
        squares = x.square()
        gram = without_diagonal(x @ x.mT)
        p2, p4 = squares.sum(-2), squares.square().sum(-2)
        value = gram.square().sum((-2, -1)) - (p2.square() - p4).sum(-1)
        if not centered:
            return _returned(value / (n * (n - 1)), features)
        p1, p3 = x.sum(-2), (squares * x).sum(-2)
        rows = gram.sum(-1)
        total = rows.sum(-1).square() - (p1.square() - p2).square().sum(-1)
        row_terms = rows.square().sum(-1) - (p1.square() * p2 - 2 * p1 * p3 + p4).sum(-1)
        value = value + total / ((n - 1) * (n - 2)) - row_terms * (2 / (n - 2))
        return _returned(value / (n * (n - 3)), features)


def gram_terms(features: Tensor, *, centered: bool = True) -> GramTerms:
    """The paper's decomposition of the penalty into norm, cross-sample and variance terms.

    ``‖G‖_F² = Σ_n ‖x_n‖⁴ + Σ_{n≠m} (x_n·x_m)²``. Each term carries the 1/n² of the penalty and a gradient, so that each
    can be a penalty of its own: "norm" and "cross" are the controls that tell decorrelation from mere shrinking.

    Returns ``(norm, cross, variance)``, each ``[...]``, with ``norm + cross - variance`` the penalty.

    Examples
    --------
    >>> terms = gram_terms(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    >>> terms
    GramTerms(norm=tensor(12.5000), cross=tensor(12.5000), variance=tensor(17.))
    >>> terms.norm + terms.cross - terms.variance
    tensor(8.)
    """
    with _full_precision(features):
        x = prepared(features, centered)
        gram = x @ x.mT / x.shape[-2]
        norm = gram.diagonal(dim1=-2, dim2=-1).square().sum(-1)
        cross = without_diagonal(gram).square().sum((-2, -1))
        variance = x.square().mean(-2).square().sum(-1)
        return GramTerms(_returned(norm, features), _returned(cross, features), _returned(variance, features))


def norm_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """Σ_n ‖x_n‖⁴/n², the `norm` of `gram_terms`: it shrinks the features and decorrelates nothing; O(nd).

    Examples
    --------
    >>> norm_penalty(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    tensor(12.5000)
    """
    with _full_precision(features):
        squares = prepared(features, centered).square().sum(-1) / features.shape[-2]
        return _returned(squares.square().sum(-1), features)


def cross_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """Σ_{n≠m} (x_n·x_m)²/n², the `cross` of `gram_terms`: it makes samples orthogonal to each other.

    Examples
    --------
    >>> cross_penalty(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    tensor(12.5000)
    """
    return gram_terms(features, centered=centered).cross


def l2_penalty(features: Tensor) -> Tensor:
    """mean_n ‖φ_n‖².

    Examples
    --------
    >>> l2_penalty(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    tensor(25.)
    """
    return _returned(floating(_checked(features)).square().sum(-1).mean(-1), features)


def dr3_penalty(features: Tensor, next_features: Tensor) -> Tensor:
    """mean_n φ(s_n)·φ(s'_n), both with gradient (DR3; Kumar et al. 2022).

    Examples
    --------
    >>> dr3_penalty(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(3.5000)
    """
    return _returned((floating(_checked(features)) * floating(_checked(next_features))).sum(-1).mean(-1), features)


def isotropy_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """‖G‖_F²/(tr G)², the inverse of the participation ratio: from 1/min(n, d), isotropic, to 1, one direction.

    The features' scale does not matter: the gradient g has ⟨g, X⟩ = 0. Features that vary by no more than rounding
    give 0.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> isotropy_penalty(x, centered=False), isotropy_penalty(x), isotropy_penalty(100 * x)
    (tensor(0.5000), tensor(1.), tensor(1.))
    """
    with _full_precision(features):
        x = _unit(prepared(features, centered), features)
        trace = x.square().sum((-2, -1)).clamp_min(0.5)
        return _returned(_smaller_gram(x).square().sum((-2, -1)) / trace.square(), features)


def correlation_penalty(features: Tensor, *, centered: bool = True) -> Tensor:
    """Σ_{i≠j} R_ij²/d with R = ZᵀZ/n and z_i = x_i/√max(v_i, ε·mean v), the squared correlations of a feature.

    v_i is the variance of feature i and ε = 1e-4, so that a feature with a standard deviation below 1 % of the usual
    one counts for less: R_ii < 1. The features' scale does not matter, ⟨g, X⟩ = 0, for the floor is differentiated too.

    Dead features lower it. Of 32 samples of 128 independent features it is 4.1 while all vary, 0.014 while 8 do:
    report the dormant share beside it.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]])  # correlation 1/2, twice
    >>> correlation_penalty(x), correlation_penalty(x * torch.tensor([1.0, 9.0]))
    (tensor(0.2500), tensor(0.2500))
    """
    with _full_precision(features):
        x = _unit(prepared(features, centered), features)
        n, d = x.shape[-2], max(x.shape[-1], 1)
        variance = x.square().mean(-2)
        floor = _CORRELATION_FLOOR * (variance.sum(-1, keepdim=True) / d).clamp_min(0.5 / (n * d))
        bounded = torch.maximum(variance, floor)
        gram = _smaller_gram(x * bounded.rsqrt().unsqueeze(-2)) / n
        value = gram.square().sum((-2, -1)) - (variance / bounded).square().sum(-1)
        return _returned(value / d, features)


def permuted_gram_penalty(features: Tensor, noise: Tensor, *, centered: bool = True) -> Tensor:
    """`gram_penalty` after each feature is permuted over the samples, in the order of its ``noise`` ``[..., n, d]``.

    A control: every feature keeps its values, and the correlation between features is destroyed.

    Examples
    --------
    >>> noise = torch.tensor([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])  # the second feature is turned round
    >>> permuted_gram_penalty(torch.tensor([[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]]), noise).round(decimals=4)
    tensor(0.2222)
    """
    order = noise.argsort(dim=-2, stable=True).expand_as(_checked(features))
    return gram_penalty(features.gather(-2, order), centered=centered)


def vicreg_penalty(features: Tensor) -> Tensor:
    """25 · mean_i max(0, 1 - √(Var_i + 1e-4)) + Σ_{i≠j} Cov_ij²/d, with Var and Cov over n - 1.

    The variance and covariance terms of VICReg (Bardes, Ponce & LeCun 2022) with its weights; it needs n ≥ 2.

    Examples
    --------
    >>> vicreg_penalty(torch.tensor([[1.0, 2.0], [3.0, 6.0]])), vicreg_penalty(torch.zeros(4, 3))
    (tensor(16.), tensor(24.7500))
    """
    n, d = _checked(features, minimum=2).shape[-2:]
    with _full_precision(features):
        x = prepared(features, centered=True)
        deviation = (x.square().sum(-2) / (n - 1) + 1e-4).sqrt()
        hinge = 25 * (1 - deviation).relu().sum(-1)
        return _returned((hinge + (n / (n - 1)) ** 2 * decorrelation_penalty(x)) / max(d, 1), features)


def sigreg_penalty(features: Tensor, noise: Tensor) -> Tensor:
    """Mean over directions a and points t of abs(mean_n exp(it a·φ_n) - exp(-t²/2))²: how far from normal φ·a is.

    Sketched isotropic Gaussian regularisation (arXiv 2602.19373, and its code): the m columns of ``noise``
    ``[..., d, m]``, normal numbers that are drawn anew each time, are the directions once their length is 1; there m is
    16 and t takes 8 values from -5 to 5. It wants features of mean 0 and variance 1, as they are before a ReLU.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> features, noise = (torch.randn(1000, size, generator=generator) for size in (4, 16))
    >>> bool(sigreg_penalty(features, noise[:4]) < 0.002), bool(sigreg_penalty(2 * features, noise[:4]) > 0.02)
    (True, True)
    """
    with _full_precision(features):
        x = floating(features)
        directions = noise.to(x.dtype)
        directions = directions / directions.norm(dim=-2, keepdim=True)
        along = x @ directions
        points = [5 * k / 7 for k in (1, 3, 5, 7)]  # -t gives the same as t
        total = torch.zeros_like(along[..., 0, :])
        for t in points:
            real, imaginary = (t * along).cos().mean(-2), (t * along).sin().mean(-2)
            total = total + (real - math.exp(-(t**2) / 2)).square() + imaginary.square()
        return _returned(total.mean(-1) / len(points), features)


def orthogonality_penalty(weight: Tensor, *, scale: float = 1.0) -> Tensor:
    """‖WWᵀ - s·I‖_F² of a layer's weights ``[..., out, in]``, or ‖WᵀW - s·I‖_F² where out > in.

    Parseval regularisation (Cissé et al. 2017; Chung et al. 2024 in reinforcement learning).

    Examples
    --------
    >>> orthogonality_penalty(torch.eye(3, 5)), orthogonality_penalty(2 * torch.eye(3, 5))
    (tensor(0.), tensor(27.))
    """
    with _full_precision(weight):
        gram = _smaller_gram(floating(weight))
        identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        return _returned((gram - scale * identity).square().sum((-2, -1)), weight)


def penalty_function(kind: str, centered: bool = True) -> Callable[..., Tensor]:
    """The function of a penalty by its name in `gramian.core.arms.PENALTIES`, centred or not where it can be.

    Examples
    --------
    >>> penalty_function("gram")(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    tensor(8.)
    """
    function: Callable[..., Tensor] = globals()[PENALTIES[kind].function]
    return partial(function, centered=centered) if PENALTIES[kind].centrable else function


def kappa(lam: float, n: int, convention: Convention, *, d: int | None = None) -> float:
    """κ of ``J = mean Huber(TD) + κ·Σ_{i≠j} C_ij²`` for a λ that is stated in another convention.

    A λ means nothing without its convention: how the penalty is normalised, and whether the TD loss beside it is a sum
    or a mean.

    | convention | loss as published | κ |
    | --- | --- | --- |
    | `author` | mean Huber(TD) + λ Σ_{i≠j} (XᵀX)_ij²: the published code of DQN-decor, λ = 0.01 | λn² |
    | `algorithm2` | Σ_n δ_n² + λ Σ_{i≠j} (XᵀX)_ij²: the paper's Algorithm 2 to the letter | λn/2 |
    | `equation3` | ½ mean δ² + ½λ Σ_{i<j} C_ij²: the paper's Eq. (3) | λ/4 |
    | `decov` | loss + ½λ (‖C‖_F² - ‖diag C‖²): Cogswell et al. 2015 | λ/2 |
    | `vicreg` | loss + (λ/d) Σ_{i≠j} C'_ij², C' = XᵀX/(n-1): Bardes, Ponce & LeCun 2022 | (λ/d)(n/(n-1))² |

    Parameters
    ----------
    lam
        The published coefficient.
    n
        Batch size.
    convention
        One of the names above.
    d
        Number of features; ``vicreg`` alone needs it.

    Examples
    --------
    >>> kappa(0.01, 32, "author"), kappa(0.01, 32, "algorithm2")
    (10.24, 0.16)
    """
    return _coefficient("lam", lam) * _factor(n, convention, d)


def lam(kappa: float, n: int, convention: Convention, *, d: int | None = None) -> float:
    """λ of a convention for a κ: the inverse of `kappa`.

    Examples
    --------
    >>> lam(10.24, 32, "author")
    0.01
    """
    return _coefficient("kappa", kappa) / _factor(n, convention, d)


_FACTORS: dict[str, Callable[[int, float], float]] = {
    "author": lambda n, _: n**2,
    "algorithm2": lambda n, _: n / 2,
    "equation3": lambda _n, _d: 1 / 4,
    "decov": lambda _n, _d: 1 / 2,
    "vicreg": lambda n, d: (n / (n - 1)) ** 2 / d,
}


def _factor(n: int, convention: str, d: int | None) -> float:
    if convention not in _FACTORS:
        raise ValueError(f"unknown convention {convention!r}; choose from {', '.join(get_args(Convention))}")
    least = 2 if convention == "vicreg" else 1
    if n < least:
        raise ValueError(f"a batch of n = {n} has no {convention} penalty; n must be at least {least}")
    if convention == "vicreg" and (d is None or d < 1):
        raise ValueError(f"convention 'vicreg' divides by the number of features; pass d=…, at least 1, not {d}")
    return _FACTORS[convention](n, math.nan if d is None else d)


def _coefficient(name: str, value: float) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__} {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and at least 0, not {value}")
    return float(value)


def _checked(features: Tensor, minimum: int = 1) -> Tensor:
    if not isinstance(features, Tensor):
        raise TypeError(f"features must be a torch.Tensor [..., n, d], not {type(features).__name__}")
    shape = list(features.shape)
    if features.dim() < 2:
        raise ValueError(f"features must have the shape [..., n, d] (n samples of d features), got {shape}")
    if not features.is_floating_point():
        raise TypeError(
            f"features must be floating point, got {features.dtype} of shape {shape}; convert with .float()"
        )
    if features.shape[-2] < minimum:
        raise ValueError(
            f"this penalty needs at least {minimum} samples, got shape {shape} with n = {features.shape[-2]}"
        )
    return features


def _full_precision(features: Tensor) -> AbstractContextManager[object]:
    """Context in which matrix products are not cast down, whatever autocast surrounds it."""
    device = _checked(features).device.type
    return nullcontext() if device == "meta" else torch.autocast(device, enabled=False)


def floating(features: Tensor) -> Tensor:
    """``features`` in the precision that the computation needs.

    Examples
    --------
    >>> floating(torch.zeros(1, 1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    if features.dtype == torch.float64:
        return features
    rounded = features.device.type == "cuda" and _tf32_allowed()
    return features.to(torch.float64 if rounded else torch.float32)


def _tf32_allowed() -> bool:
    """Whether CUDA may round float32 products, by the newer of torch's two settings where it has that one."""
    newer: str | None = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    if newer is not None:
        return newer not in ("ieee", "none")
    return torch.get_float32_matmul_precision() != "highest"


# The compiler cannot trace the lookup; it keeps the answer that it gets when it compiles. This is what
# torch.compiler.assume_constant_result does, without a second of importing the compiler.
vars(_tf32_allowed)["_dynamo_marked_constant"] = True


def prepared(features: Tensor, centered: bool) -> Tensor:
    """X ``[..., n, d]``: the features in working precision, centred over n where asked for.

    Examples
    --------
    >>> prepared(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), centered=True)
    tensor([[-1., -2.],
            [ 1.,  2.]])
    """
    x = floating(features)
    if centered:
        x = x - x.mean(-2, keepdim=True)
        # A float32 mean of large numbers is itself rounded; a second pass takes away what that left behind.
        x = x - x.detach().mean(-2, keepdim=True)
    return x


def _unit(x: Tensor, features: Tensor) -> Tensor:
    """X with a largest entry of 1, or smaller where the features vary by no more than rounding."""
    if x.numel() == 0:
        return x
    largest, given = (one.detach().abs().amax((-2, -1), keepdim=True) for one in (x, floating(features)))
    numbers = torch.finfo(x.dtype)
    return x / torch.maximum(largest, 16 * numbers.eps * given).clamp_min(numbers.tiny)


def _smaller_gram(x: Tensor) -> Tensor:
    """XXᵀ or XᵀX, whichever is smaller: their norms and traces are the same."""
    return x @ x.mT if x.shape[-2] <= x.shape[-1] else x.mT @ x


def without_diagonal(matrix: Tensor) -> Tensor:
    """``matrix`` ``[..., k, k]`` with zeros in its diagonal.

    Examples
    --------
    >>> without_diagonal(torch.ones(2, 2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return torch.diagonal_scatter(matrix, matrix.new_zeros(matrix.shape[:-1]), dim1=-2, dim2=-1)


def _returned(value: Tensor, features: Tensor) -> Tensor:
    return value if features.dtype == torch.float64 else value.float()
