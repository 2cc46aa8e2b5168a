"""The penalties of `gramian.penalties` on JAX arrays (extra ``jax``): same names, formulas and shapes.

Pure functions of features ``[..., n, d]`` for ``jit``, ``grad`` and ``vmap``. Each returns one value for each leading
index. float32 and float64 stay as they are; float16 and bfloat16 are computed and returned in float32. Matrix products
have the highest precision of the device.

Examples
--------
>>> import jax, jax.numpy as jnp
>>> x = jnp.array([[1.0, 2.0], [3.0, 6.0]])
>>> float(gram_penalty(x)), float(jax.jit(covariance_penalty)(x))
(8.0, 8.0)
>>> jax.grad(gram_penalty)(x).shape
(2, 2)
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

_CORRELATION_FLOOR = 1e-4


class GramTerms(NamedTuple):
    """The Gram penalty taken apart: ``norm + cross - variance`` is `gram_penalty`. Each is ``[...]``."""

    norm: Array
    cross: Array
    variance: Array


def covariance_penalty(features: Array, *, centered: bool = True) -> Array:
    """Σ_{i≠j} C_ij² from the covariance matrix, O(nd²)."""
    x = _prepared(features, centered)
    covariance = _product(x.mT, x) / x.shape[-2]
    return jnp.square(_without_diagonal(covariance)).sum((-2, -1))


def gram_penalty(features: Array, *, centered: bool = True) -> Array:
    """Σ_{i≠j} C_ij² from the Gram matrix, O(n²d)."""
    x = _prepared(features, centered)
    gram = _product(x, x.mT) / x.shape[-2]
    variance = jnp.square(x).mean(-2)
    return jnp.square(gram).sum((-2, -1)) - jnp.square(variance).sum(-1)


def decorrelation_penalty(features: Array, *, centered: bool = True) -> Array:
    """Σ_{i≠j} C_ij² by whichever form is cheaper for this shape: Gram where n ≤ d, else covariance."""
    n, d = _checked(features).shape[-2:]
    return (gram_penalty if n <= d else covariance_penalty)(features, centered=centered)


def unbiased_gram_penalty(features: Array, *, centered: bool = True) -> Array:
    """Unbiased estimate of the penalty of the distribution that the samples come from; n ≥ 4, uncentred n ≥ 2."""
    n = _checked(features, minimum=4 if centered else 2).shape[-2]
    x = _floating(features)
    if centered:
        x = x - lax.stop_gradient(x).mean(-2, keepdims=True)
    squares = jnp.square(x)
    gram = _without_diagonal(_product(x, x.mT))
    p2, p4 = squares.sum(-2), jnp.square(squares).sum(-2)
    value = jnp.square(gram).sum((-2, -1)) - (jnp.square(p2) - p4).sum(-1)
    if not centered:
        return value / (n * (n - 1))
    p1, p3 = x.sum(-2), (squares * x).sum(-2)
    rows = gram.sum(-1)
    total = jnp.square(rows.sum(-1)) - jnp.square(jnp.square(p1) - p2).sum(-1)
    row_terms = jnp.square(rows).sum(-1) - (jnp.square(p1) * p2 - 2 * p1 * p3 + p4).sum(-1)
    value = value + total / ((n - 1) * (n - 2)) - row_terms * (2 / (n - 2))
    return value / (n * (n - 3))


def gram_terms(features: Array, *, centered: bool = True) -> GramTerms:
    """Norm, cross-sample and variance terms of the penalty, each with its 1/n²."""
    x = _prepared(features, centered)
    gram = _product(x, x.mT) / x.shape[-2]
    norm = jnp.square(jnp.diagonal(gram, axis1=-2, axis2=-1)).sum(-1)
    cross = jnp.square(_without_diagonal(gram)).sum((-2, -1))
    return GramTerms(norm, cross, jnp.square(jnp.square(x).mean(-2)).sum(-1))


def norm_penalty(features: Array, *, centered: bool = True) -> Array:
    """Σ_n ‖x_n‖⁴/n²."""
    x = _prepared(features, centered)
    return jnp.square(jnp.square(x).sum(-1) / x.shape[-2]).sum(-1)


def cross_penalty(features: Array, *, centered: bool = True) -> Array:
    """Σ_{n≠m} (x_n·x_m)²/n²."""
    return gram_terms(features, centered=centered).cross


def l2_penalty(features: Array) -> Array:
    """mean_n ‖φ_n‖²."""
    return jnp.square(_floating(_checked(features))).sum(-1).mean(-1)


def dr3_penalty(features: Array, next_features: Array) -> Array:
    """mean_n φ(s_n)·φ(s'_n), both with gradient."""
    return (_floating(_checked(features)) * _floating(_checked(next_features))).sum(-1).mean(-1)


def isotropy_penalty(features: Array, *, centered: bool = True) -> Array:
    """‖G‖_F²/(tr G)², the inverse of the participation ratio."""
    x = _unit(_prepared(features, centered), features)
    trace = jnp.maximum(jnp.square(x).sum((-2, -1)), 0.5)
    return jnp.square(_smaller_gram(x)).sum((-2, -1)) / jnp.square(trace)


def correlation_penalty(features: Array, *, centered: bool = True) -> Array:
    """Σ_{i≠j} R_ij²/d of the correlations, the variances bounded below by 1e-4 of their mean."""
    x = _unit(_prepared(features, centered), features)
    n, d = x.shape[-2], max(x.shape[-1], 1)
    variance = jnp.square(x).mean(-2)
    floor = _CORRELATION_FLOOR * jnp.maximum(variance.sum(-1, keepdims=True) / d, 0.5 / (n * d))
    bounded = jnp.maximum(variance, floor)
    gram = _smaller_gram(x * lax.rsqrt(bounded)[..., None, :]) / n
    return (jnp.square(gram).sum((-2, -1)) - jnp.square(variance / bounded).sum(-1)) / d


def permuted_gram_penalty(features: Array, noise: Array, *, centered: bool = True) -> Array:
    """`gram_penalty` after each feature is permuted over the samples, in the order of its ``noise`` ``[..., n, d]``."""
    order = jnp.broadcast_to(jnp.argsort(noise, axis=-2, stable=True), _checked(features).shape)
    return gram_penalty(jnp.take_along_axis(features, order, -2), centered=centered)


def vicreg_penalty(features: Array) -> Array:
    """25 · mean_i max(0, 1 - √(Var_i + 1e-4)) + Σ_{i≠j} Cov_ij²/d, with Var and Cov over n - 1; n ≥ 2."""
    n, d = _checked(features, minimum=2).shape[-2:]
    x = _prepared(features, centered=True)
    deviation = jnp.sqrt(jnp.square(x).sum(-2) / (n - 1) + 1e-4)
    hinge = 25 * jax.nn.relu(1 - deviation).sum(-1)
    return (hinge + (n / (n - 1)) ** 2 * decorrelation_penalty(x)) / max(d, 1)


def sigreg_penalty(features: Array, noise: Array) -> Array:
    """How far from normal random projections are; the columns of ``noise`` ``[..., d, m]`` are the directions."""
    x = _floating(_checked(features))
    directions = noise.astype(x.dtype)
    along = _product(x, directions / jnp.linalg.norm(directions, axis=-2, keepdims=True))
    total = jnp.zeros_like(along[..., 0, :])
    for k in (1, 3, 5, 7):  # -t gives the same as t
        t = 5 * k / 7
        real, imaginary = jnp.cos(t * along).mean(-2), jnp.sin(t * along).mean(-2)
        total = total + jnp.square(real - math.exp(-(t**2) / 2)) + jnp.square(imaginary)
    return total.mean(-1) / 4


def orthogonality_penalty(weight: Array, *, scale: float = 1.0) -> Array:
    """‖WWᵀ - s·I‖_F² of a layer's weights ``[..., out, in]``, or ‖WᵀW - s·I‖_F² where out > in."""
    gram = _smaller_gram(_floating(_checked(weight)))
    return jnp.square(gram - scale * jnp.eye(gram.shape[-1], dtype=gram.dtype)).sum((-2, -1))


def _checked(features: Array, minimum: int = 1) -> Array:
    if not hasattr(features, "shape"):
        raise TypeError(f"features must be a JAX array [..., n, d], not {type(features).__name__}")
    if features.ndim < 2:
        raise ValueError(f"features must have the shape [..., n, d] (n samples of d features), got {features.shape}")
    if not jnp.issubdtype(features.dtype, jnp.floating):
        raise TypeError(f"features must be floating point, got {features.dtype} of shape {features.shape}")
    if features.shape[-2] < minimum:
        raise ValueError(f"this penalty needs at least {minimum} samples, got shape {features.shape}")
    return features


def _floating(features: Array) -> Array:
    return jnp.asarray(features, jnp.float64 if features.dtype == jnp.float64 else jnp.float32)


def _prepared(features: Array, centered: bool) -> Array:
    x = _floating(_checked(features))
    if centered:
        x = x - x.mean(-2, keepdims=True)
        # a float32 mean of large numbers is itself rounded; a second pass takes away what that left behind
        x = x - lax.stop_gradient(x).mean(-2, keepdims=True)
    return x


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


def _unit(x: Array, features: Array) -> Array:
    """X with a largest entry of 1, or smaller where the features vary by no more than rounding."""
    if x.size == 0:
        return x
    numbers = jnp.finfo(x.dtype)
    largest, given = (jnp.abs(lax.stop_gradient(one)).max((-2, -1), keepdims=True) for one in (x, _floating(features)))
    return x / jnp.maximum(jnp.maximum(largest, 16 * float(numbers.eps) * given), float(numbers.tiny))


def _smaller_gram(x: Array) -> Array:
    return _product(x, x.mT) if x.shape[-2] <= x.shape[-1] else _product(x.mT, x)


def _without_diagonal(matrix: Array) -> Array:
    return jnp.where(jnp.eye(matrix.shape[-1], dtype=bool), 0, matrix)
