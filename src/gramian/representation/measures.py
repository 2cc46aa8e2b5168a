"""Measures of a representation: pure functions of features Φ ``[N, d]``, N states (rows) of d features.

Everything is computed in float64 on the device of the features. σ are the singular values of Φ; C = XᵀX/N is the
covariance, X = Φ minus its mean over the states. Ranks are those of Φ itself, as in their sources; correlation,
spectrum, condition number and participation ratio are those of C.

| function | value | all features zero | constant |
| --- | --- | --- | --- |
| `sparsity` | share of entries with abs(φ) ≤ ε, for each ε | 1 | by its value |
| `active_per_state` | number of states with k active features, k = 0…d | all at 0 | at its number |
| `active_per_feature` | number of states in which each feature is active | 0 | N |
| `feature_norm` | mean_n ‖φ_n‖ | 0 | its norm |
| `cross_term` | mean over n ≠ m of (φ_n·φ_m)²; NaN for N = 1 | 0 | ‖φ‖⁴ |
| `std_sum` | Σ_i of the standard deviation of φ_i | 0 | 0 |
| `mean_abs_correlation` | mean abs of the correlation of two features that vary | NaN | NaN |
| `spectrum` | eigenvalues of C, falling | 0 | 0 |
| `condition_number` | largest over smallest eigenvalue of C; ∞ where C is singular | ∞ | ∞ |
| `participation_ratio` | (tr C)²/‖C‖_F² | 0 | 0 |
| `effective_rank` | exp of the entropy of σ/Σσ | 0 | 1 |
| `srank` | fewest σ that hold 1 - δ of Σσ | 0 | 1 |
| `feature_rank` | number of σ above a threshold | 0 | 1 |
| `dormant_share` | share of features with at most τ times the mean activity | 1 | by its value |
| `dead_share` | share of features that are zero in every state | 1 | 0 |
| `constant_share` | share of features with one and the same value in every state | 1 | 1 |
| `duplicated_share` | share of features that are copies of an earlier one | 0 | 0 |
| `dr3_dot` | mean_n φ(s_n)·φ(s'_n) | 0 | ‖φ‖² |

A feature is *active* in a state where it is not zero. Features that are not finite raise ``ValueError``.
`gramian.representation.FeatureStatistics` gives the same numbers from a stream of batches in O(d²) memory; it counts
states that are not finite and leaves them out. It uses the functions whose names end in ``_from``.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

THRESHOLDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Default ε of `sparsity`."""
SRANK_DELTA = 0.01
"""δ of Kumar et al. (2020)."""
RANK_THRESHOLD = 0.01
"""ε of Lyle et al. (2022)."""
DORMANT_TAUS = (0.0, 0.025, 0.1)
"""τ of Sokar et al. (2023)."""
COPY_CORRELATION = 1 - 1e-6
"""Features with a higher correlation are copies of each other up to scale and shift."""

Features = Tensor | NDArray[np.floating]
"""``[N, d]``."""


def sparsity(features: Features, thresholds: Sequence[float] = THRESHOLDS) -> Tensor:
    """sparsity_ε = 1 - Σ 1[abs(φ_ni) > ε]/(Nd), for each threshold ε (Mavrin, Graves & Chan 2019).

    Examples
    --------
    >>> sparsity(torch.tensor([[0.0, 0.5], [2.0, 0.0]]), [0, 1]).tolist()
    [0.5, 0.75]
    """
    magnitudes = _features(features).abs()
    return torch.stack([(magnitudes <= threshold).double().mean() for threshold in thresholds])


def active_per_state(features: Features) -> Tensor:
    """How many states have k active features, for k = 0…d: int64 ``[d + 1]`` (Mavrin, Graves & Chan 2019)."""
    phi = _features(features)
    return torch.bincount((phi != 0).sum(1), minlength=phi.shape[1] + 1)


def active_per_feature(features: Features) -> Tensor:
    """In how many states each feature is active: int64 ``[d]`` (Mavrin, Graves & Chan 2019)."""
    return (_features(features) != 0).sum(0)


def feature_norm(features: Features) -> float:
    """mean_n ‖φ_n‖."""
    return float(_features(features).norm(dim=1).mean())


def cross_term(features: Features) -> float:
    """Mean over the pairs n ≠ m of (φ_n·φ_m)²; NaN for a single state.

    The cross-sample part of ‖ΦΦᵀ‖_F² = Σ_n‖φ_n‖⁴ + Σ_{n≠m}(φ_n·φ_m)² (Mavrin, Graves & Chan 2019).

    Examples
    --------
    >>> cross_term(torch.tensor([[1.0, 2.0], [3.0, 0.0]]))
    9.0
    """
    phi = _features(features)
    states = phi.shape[0]
    if states < 2:
        return float("nan")
    pairs = (phi.T @ phi).square().sum() - phi.square().sum(1).square().sum()
    return float(pairs.clamp_min(0) / (states * (states - 1)))


def std_sum(features: Features) -> float:
    """Σ_i √(mean_n (φ_ni - mean φ_i)²) (Mavrin, Graves & Chan 2019)."""
    return float(_features(features).std(dim=0, correction=0).sum())


def covariance(features: Features) -> Tensor:
    """C = XᵀX/N, ``[d, d]``."""
    phi = _features(features)
    centred = phi - phi.mean(0)
    return centred.T @ centred / phi.shape[0]


def correlation(features: Features) -> Tensor:
    """C_ij/√(C_ii C_jj), ``[d, d]``; NaN in the rows and columns of features that do not vary."""
    phi = _features(features)
    return correlation_from(covariance(phi), constant=phi.amin(0) == phi.amax(0))


def correlation_from(covariances: Tensor, constant: Tensor) -> Tensor:
    """`correlation` from C ``[d, d]`` and a mask ``[d]`` of constant features: rounding may give these a variance."""
    scale = covariances.diagonal().sqrt().masked_fill(constant, torch.nan)
    return (covariances / scale / scale[:, None]).clamp(-1, 1)


def mean_abs_correlation(features: Features) -> float:
    """Mean of the absolute correlation over all pairs of features that vary; NaN where fewer than two vary."""
    return mean_abs_correlation_from(correlation(features))


def mean_abs_correlation_from(correlations: Tensor) -> float:
    """`mean_abs_correlation` from the matrix of `correlation`."""
    pairs = correlations.triu(1).abs()
    varies = ~correlations.diagonal().isnan()
    count = int(varies.sum())
    return float(pairs[varies][:, varies].sum() / (count * (count - 1) / 2)) if count > 1 else float("nan")


def spectrum(features: Features) -> Tensor:
    """Eigenvalues of C, largest first, ``[d]``."""
    return eigenvalues(covariance(features))


def eigenvalues(moments: Tensor) -> Tensor:
    """Eigenvalues of a positive semi-definite matrix, largest first; those below rounding are 0."""
    values = torch.linalg.eigvalsh(moments).flip(0)
    noise = values[:1].abs() * values.numel() * torch.finfo(values.dtype).eps
    return torch.where(values > noise, values, 0.0)


def condition_number(features: Features) -> float:
    """Largest over smallest eigenvalue of C; ∞ where C is singular, so wherever a feature is dead or copied."""
    return condition_number_from(spectrum(features))


def condition_number_from(values: Tensor) -> float:
    """`condition_number` from the `spectrum`."""
    return float(values[0] / values[-1]) if values.numel() and values[-1] > 0 else float("inf")


def participation_ratio(features: Features) -> float:
    """(tr C)²/‖C‖_F²: d where all eigenvalues are equal, 1 where there is one, 0 where nothing varies.

    Source: Gao et al. (2017), "A theory of multineuronal dimensionality, dynamics and measurement".
    """
    return participation_ratio_from(spectrum(features))


def participation_ratio_from(values: Tensor) -> float:
    """`participation_ratio` from the `spectrum`."""
    total = values.sum()
    return float(total.square() / values.square().sum()) if total > 0 else 0.0


def singular_values(features: Features) -> Tensor:
    """σ of Φ (uncentred), largest first, ``[d]``, with zeros where N < d."""
    phi = _features(features)
    values = torch.linalg.svdvals(phi)
    return torch.cat([values, values.new_zeros(phi.shape[1] - values.numel())])


def effective_rank(features: Features) -> float:
    """exp(-Σ p_i log p_i) with p = σ/Σσ (Roy & Vetterli 2007); 0 where all features are zero.

    Examples
    --------
    >>> round(effective_rank(torch.tensor([[3.0, 0.0], [0.0, 3.0]])), 12)
    2.0
    """
    return effective_rank_from(singular_values(features))


def effective_rank_from(values: Tensor) -> float:
    """`effective_rank` from the `singular_values`."""
    total = values.sum()
    return float(torch.special.entr(values / total).sum().exp()) if total > 0 else 0.0


def srank(features: Features, delta: float = SRANK_DELTA) -> int:
    """srank_δ = min k with Σ_{i≤k} σ_i ≥ (1 - δ)Σσ (Kumar et al. 2020, implicit under-parameterization).

    Examples
    --------
    >>> srank(torch.tensor([[99.0, 0.0], [0.0, 1.0]])), srank(torch.tensor([[98.0, 0.0], [0.0, 2.0]]))
    (1, 2)
    """
    return srank_from(singular_values(features), delta)


def srank_from(values: Tensor, delta: float = SRANK_DELTA) -> int:
    """`srank` from the `singular_values`; a share of 1 - δ to within rounding counts as reached."""
    sums = values.cumsum(0)
    reached = sums >= (1 - delta) * sums[-1:] * (1 - 1e-12)
    return int(reached.int().argmax()) + 1 if values.numel() and sums[-1] > 0 else 0


def feature_rank(features: Features, threshold: float = RANK_THRESHOLD, *, scaled: bool = True) -> int:
    """Number of singular values of Φ/√N, or of Φ where not ``scaled``, above a threshold.

    Lyle, Rowland & Dabney (2022), "Understanding and preventing capacity loss", define it with 1/√N: then it does not
    grow with N. It depends on the features' scale either way.

    Examples
    --------
    >>> x = torch.tensor([[0.012, 0.0], [0.0, 2.0]])
    >>> feature_rank(x), feature_rank(x, scaled=False)
    (1, 2)
    """
    values = singular_values(features)
    return feature_rank_from(values / len(features) ** 0.5 if scaled else values, threshold)


def feature_rank_from(values: Tensor, threshold: float = RANK_THRESHOLD) -> int:
    """`feature_rank` from the singular values, divided by √N beforehand or not."""
    return int((values > threshold).sum())


def dormant_share(features: Features, tau: float = 0.0) -> float:
    """Share of features i with mean_n abs(φ_ni) at most τ times the mean of that over all features.

    Sokar et al. (2023), "The dormant neuron phenomenon in deep reinforcement learning". Where all features are zero
    their score is 0/0; all are dormant then.

    Examples
    --------
    >>> x = torch.tensor([[0.0, 0.1, 4.0, 4.0], [0.0, 0.0, 4.0, 4.0]])
    >>> dormant_share(x), dormant_share(x, 0.1)
    (0.25, 0.5)
    """
    return dormant_share_from(_features(features).abs().mean(0), tau)


def dormant_share_from(activity: Tensor, tau: float) -> float:
    """`dormant_share` from mean_n abs(φ_ni), ``[d]``."""
    return float((activity <= tau * activity.mean()).double().mean())


def dead_share(features: Features) -> float:
    """Share of features that are zero in every state."""
    return float((_features(features) == 0).all(0).double().mean())


def constant_share(features: Features) -> float:
    """Share of features with the same value in every state; the dead ones are among them."""
    phi = _features(features)
    return float((phi == phi[:1]).all(0).double().mean())


def duplicated_share(features: Features) -> float:
    """Share of features that vary as an earlier one does: correlation above 1 - 10⁻⁶, so equal up to scale and shift.

    Examples
    --------
    >>> duplicated_share(torch.tensor([[0.0, 1.0, 2.0, 0.0], [1.0, 0.0, 0.0, 2.0]]))
    0.5
    """
    return duplicated_share_from(correlation(features))


def duplicated_share_from(correlations: Tensor) -> float:
    """`duplicated_share` from the matrix of `correlation`."""
    return float((correlations.triu(1) > COPY_CORRELATION).any(0).double().mean())


def dr3_dot(features: Features, next_features: Features) -> float:
    """mean_n φ(s_n)·φ(s'_n), the co-adaptation that DR3 penalises (Kumar et al. 2022)."""
    here, there = _features(features), _features(next_features)
    if here.shape != there.shape:
        raise ValueError(f"features {list(here.shape)} and next features {list(there.shape)} must have the same shape")
    return float((here * there).sum(1).mean())


def as_features(features: Features) -> Tensor:
    """Features as a float64 tensor ``[N, d]``; raises ``TypeError`` or ``ValueError`` where they are none."""
    tensor = torch.as_tensor(features).detach()
    if not tensor.is_floating_point():
        raise TypeError(f"features must be floating-point numbers, not {tensor.dtype}")
    if tensor.dim() != 2 or 0 in tensor.shape:
        raise ValueError(f"features must have shape [N, d] with N and d at least 1, not {list(tensor.shape)}")
    return tensor.double()


def _features(features: Features) -> Tensor:
    phi = as_features(features)
    odd = int((~phi.isfinite()).any(1).sum())
    if odd:
        raise ValueError(
            f"features are not finite in {odd} of {phi.shape[0]} states; leave these out, "
            "or use FeatureStatistics, which counts them"
        )
    return phi
