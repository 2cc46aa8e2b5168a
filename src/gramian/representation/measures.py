"""Measures of a representation: functions of features Φ ``[N, d]``, N states (rows) of d features.

Each takes a torch tensor, a NumPy or JAX array, or the `FeatureStatistics` of a stream of batches. Everything is
computed in float64, of a tensor on its device. C = XᵀX/N is the covariance, X = Φ minus its mean over the states. σ are
the singular values of Φ itself, as in the ranks' sources. A feature is *active* in a state where it is not zero.

At the edges of their domain the measures are:

| function | all features zero | constant |
| --- | --- | --- |
| `sparsity`, `dormant_share` | 1 | by their value |
| `feature_norm`, `cross_term`, `dr3_dot` | 0 | ‖φ‖, ‖φ‖⁴, ‖φ‖²; `cross_term` of one state NaN |
| `std_sum`, `spectrum`, `participation_ratio` | 0 | 0 |
| `mean_abs_correlation` | NaN | NaN |
| `condition_number` | ∞ | ∞ |
| `effective_rank`, `srank`, `feature_rank` | 0 | 1 |
| `dead_share`, `constant_share`, `duplicated_share` | 1, 1, 0 | 0, 1, 0 |

Features that are not finite raise ``ValueError``; `FeatureStatistics` counts such states and omits them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.core.errors import unknown

THRESHOLDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Default ε of `sparsity`."""
SRANK_DELTA = 0.01
"""δ of Kumar et al. (2020)."""
RANK_THRESHOLD = 0.01
"""ε of Lyle et al. (2022)."""
COPY_CORRELATION = 1 - 1e-6
"""Features with a higher correlation are copies of each other up to scale and shift."""

Features = Tensor | NDArray[np.floating] | Any
"""``[N, d]``: a tensor, or an array of NumPy or JAX."""


class FeatureStatistics:
    """Everything that the measures need to know of a stream of features, in O(d²) memory.

    A state whose features are not all finite is counted and omitted. Before the first finite state every measure is
    NaN. ``thresholds`` are the ε of the sparsities; the sums are kept on ``device``, that of the features.

    Examples
    --------
    >>> statistics = FeatureStatistics(2)
    >>> statistics.update(torch.tensor([[1.0, 0.0], [3.0, 0.0]]))
    >>> statistics.update(torch.tensor([[2.0, 6.0], [2.0, torch.nan]]))
    >>> statistics.states, statistics.summary(["feature_norm"])["feature_norm"] > 3
    (3, True)
    >>> statistics.update_pairs(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 0.0]]))
    >>> statistics.summary()["dr3_dot"], statistics.summary()["nonfinite_share"]
    (3.0, 0.25)

    Measures that are more than one number are methods:

    >>> statistics.covariance().shape, statistics.correlation().shape, statistics.spectrum().shape
    (torch.Size([2, 2]), torch.Size([2, 2]), torch.Size([2]))
    >>> statistics.active_per_state().tolist(), statistics.active_per_feature().tolist()
    ([0, 2, 1], [3, 1])
    >>> statistics.singular_values().shape, statistics.sparsity().shape == (len(statistics.thresholds),)
    (torch.Size([2]), True)
    >>> FeatureStatistics.of(torch.ones(5, 2)).states
    5
    """

    def __init__(
        self, features_dim: int, *, thresholds: Sequence[float] = THRESHOLDS, device: torch.device | str = "cpu"
    ) -> None:
        if features_dim < 1:
            raise ValueError(f"features_dim is {features_dim}; there must be at least one feature")
        self.thresholds = tuple(thresholds)
        self.states = 0
        """Finite states so far."""
        self.nonfinite_states = 0
        self.pairs = 0
        self._has_pairs = False

        def zeros(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self._mean, self._scatter, self._absolute = (
            zeros(features_dim),
            zeros(features_dim, features_dim),
            zeros(features_dim),
        )
        self._norms, self._fourth_powers, self._dots = zeros(), zeros(), zeros()
        self._least, self._most = zeros(features_dim) + torch.inf, zeros(features_dim) - torch.inf
        self._below = zeros(len(self.thresholds), dtype=torch.int64)
        self._active, self._counts = (zeros(size, dtype=torch.int64) for size in (features_dim, features_dim + 1))
        self._known: dict[str, Tensor] = {}
        """Decompositions of the states so far, which several measures need."""

    @classmethod
    def of(
        cls, features: Features, next_features: Features | None = None, *, thresholds: Sequence[float] = THRESHOLDS
    ) -> "FeatureStatistics":
        """The statistics of one batch ``[N, d]``, with its successors if they are given."""
        phi = as_features(features)
        statistics = cls(phi.shape[1], thresholds=thresholds, device=phi.device)
        statistics.update(phi)
        if next_features is not None:
            statistics.update_pairs(phi, next_features)
        return statistics

    @property
    def features_dim(self) -> int:
        """Number d of features."""
        return self._mean.numel()

    def update(self, features: Features) -> None:
        """Add the features of some states, ``[N, d]``."""
        phi = self._checked(features)
        finite = phi.isfinite().all(1)
        if not finite.all():
            phi = phi[finite]
        self.nonfinite_states += finite.numel() - phi.shape[0]
        if not phi.shape[0]:
            return
        self._known.clear()
        # Chan, Golub & LeVeque (1979): means and centred sums are merged, so that nothing large is ever subtracted.
        before, added = self.states, phi.shape[0]
        self.states = before + added
        mean = phi.mean(0)
        centred, shift = phi - mean, mean - self._mean
        self._scatter.addmm_(centred.T, centred).addr_(shift, shift, alpha=before * added / self.states)
        self._mean.add_(shift, alpha=added / self.states)

        magnitudes, squares = phi.abs(), phi.square().sum(1)
        self._absolute += magnitudes.sum(0)
        self._norms += squares.sqrt().sum()
        self._fourth_powers += squares.square().sum()
        self._least = torch.minimum(self._least, phi.amin(0))
        self._most = torch.maximum(self._most, phi.amax(0))
        for place, threshold in enumerate(self.thresholds):
            self._below[place] += (magnitudes <= threshold).sum()
        active = phi != 0
        self._active += active.sum(0)
        self._counts += torch.bincount(active.sum(1), minlength=self._counts.numel())

    def update_pairs(self, features: Features, next_features: Features) -> None:
        """Add the features ``[N, d]`` of states and of their successors to the mean of φ(s)·φ(s')."""
        here, there = self._checked(features), self._checked(next_features)
        if here.shape != there.shape:
            raise ValueError(
                f"features {list(here.shape)} and next features {list(there.shape)} must have the same shape"
            )
        dots = (here * there).sum(1)
        dots = dots[dots.isfinite()]
        self._has_pairs = True
        self.pairs += dots.numel()
        self._dots += dots.sum()

    def sparsity(self) -> Tensor:
        """See `sparsity`, for the thresholds of the constructor."""
        return self._below.double() / (self.states * self.features_dim)

    def active_per_state(self) -> Tensor:
        """See `active_per_state`."""
        return self._counts.clone()

    def active_per_feature(self) -> Tensor:
        """See `active_per_feature`."""
        return self._active.clone()

    def covariance(self) -> Tensor:
        """See `covariance`."""
        constant = self._constant()  # rounding may give these a variance
        return (self._scatter / self.states).masked_fill(constant | constant[:, None], 0.0)

    def correlation(self) -> Tensor:
        """See `correlation`."""
        if "correlation" not in self._known:
            covariances = self.covariance()
            scale = covariances.diagonal().sqrt()
            self._known["correlation"] = (covariances / scale / scale[:, None]).clamp(-1, 1)
        return self._known["correlation"]

    def spectrum(self) -> Tensor:
        """See `spectrum`."""
        if "spectrum" not in self._known:
            self._known["spectrum"] = _eigenvalues(self.covariance())
        return self._known["spectrum"]

    def singular_values(self) -> Tensor:
        """See `singular_values`; as roots of eigenvalues, those below 10⁻⁷·σ₁ are lost in rounding."""
        if "singular" not in self._known:
            self._known["singular"] = _eigenvalues(self.states * self._second_moments()).sqrt()
        return self._known["singular"]

    def _second_moments(self) -> Tensor:
        """ΦᵀΦ/N, ``[d, d]``."""
        return self._scatter / self.states + torch.outer(self._mean, self._mean)

    def _constant(self) -> Tensor:
        """Which features had one value in every state: bool ``[d]``."""
        return self._least == self._most

    def summary(self, names: Iterable[str] | None = None) -> dict[str, float]:
        """Measures that are one number, by name: those named, or all of `MEASURES`.

        ``states`` is the number of finite states, ``nonfinite_share`` the share of the others; ``sparsity`` is that of
        ε = 0; ``dormant_share`` that of τ = 0, the others name their τ; ``feature_rank_unscaled`` is without 1/√N.
        ``dr3_dot`` is there where successors were given, or where it is named.
        """
        chosen = [name for name in MEASURES if name != "dr3_dot" or self._has_pairs] if names is None else list(names)
        check_measures(chosen)
        always = ("states", "nonfinite_share")
        return {name: MEASURES[name](self) if self.states or name in always else float("nan") for name in chosen}

    def _checked(self, features: Features) -> Tensor:
        phi = as_features(features)
        if phi.shape[1] != self.features_dim:
            raise ValueError(f"features have shape {list(phi.shape)}, not [N, {self.features_dim}]")
        return phi.to(self._mean.device)


Source = Features | FeatureStatistics
"""What a measure takes."""


def sparsity(features: Features, thresholds: Sequence[float] = THRESHOLDS) -> Tensor:
    """sparsity_ε = 1 - Σ 1[abs(φ_ni) > ε]/(Nd), for each threshold ε (Mavrin, Graves & Chan 2019).

    Examples
    --------
    >>> sparsity(torch.tensor([[0.0, 0.5], [2.0, 0.0]]), [0, 1]).tolist()
    [0.5, 0.75]
    """
    return FeatureStatistics.of(_finite(features), thresholds=thresholds).sparsity()


def active_per_state(features: Source) -> Tensor:
    """How many states have k active features, for k = 0…d: int64 ``[d + 1]`` (Mavrin, Graves & Chan 2019)."""
    return _of(features).active_per_state()


def active_per_feature(features: Source) -> Tensor:
    """In how many states each feature is active: int64 ``[d]`` (Mavrin, Graves & Chan 2019)."""
    return _of(features).active_per_feature()


def feature_norm(features: Source) -> float:
    """mean_n ‖φ_n‖."""
    statistics = _of(features)
    return float(statistics._norms / statistics.states)


def cross_term(features: Source) -> float:
    """Mean over the pairs n ≠ m of (φ_n·φ_m)²; NaN for a single state.

    The cross-sample part of ‖ΦΦᵀ‖_F² = Σ_n‖φ_n‖⁴ + Σ_{n≠m}(φ_n·φ_m)² (Mavrin, Graves & Chan 2019).

    Examples
    --------
    >>> cross_term(torch.tensor([[1.0, 2.0], [3.0, 0.0]]))
    9.0
    """
    statistics = _of(features)
    states = statistics.states
    if states < 2:
        return float("nan")
    pairs = statistics._second_moments().square().sum() * states - statistics._fourth_powers / states
    return float(pairs.clamp_min(0) / (states - 1))


def std_sum(features: Source) -> float:
    """Σ_i √(mean_n (φ_ni - mean φ_i)²) (Mavrin, Graves & Chan 2019)."""
    return float(_of(features).covariance().diagonal().clamp_min(0).sqrt().sum())


def covariance(features: Source) -> Tensor:
    """C = XᵀX/N, ``[d, d]``."""
    return _of(features).covariance()


def correlation(features: Source) -> Tensor:
    """C_ij/√(C_ii C_jj), ``[d, d]``; NaN in the rows and columns of features that do not vary."""
    return _of(features).correlation()


def mean_abs_correlation(features: Source) -> float:
    """Mean of the absolute correlation over all pairs of features that vary; NaN where fewer than two vary."""
    correlations = _of(features).correlation()
    pairs = correlations.triu(1).abs()
    varies = ~correlations.diagonal().isnan()
    count = int(varies.sum())
    return float(pairs[varies][:, varies].sum() / (count * (count - 1) / 2)) if count > 1 else float("nan")


def spectrum(features: Source) -> Tensor:
    """Eigenvalues of C, largest first, ``[d]``."""
    return _of(features).spectrum()


def condition_number(features: Source) -> float:
    """Largest over smallest eigenvalue of C; ∞ where C is singular, so wherever a feature is dead or copied."""
    values = _of(features).spectrum()
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")


def participation_ratio(features: Source) -> float:
    """(tr C)²/‖C‖_F²: d where all eigenvalues are equal, 1 where there is one, 0 where nothing varies.

    Source: Gao et al. (2017), "A theory of multineuronal dimensionality, dynamics and measurement".
    """
    covariances = _of(features).covariance()
    trace = covariances.trace()
    return float((covariances / trace).square().sum().reciprocal()) if trace > 0 else 0.0


def singular_values(features: Source) -> Tensor:
    """σ of Φ (uncentred), largest first, ``[d]``, with zeros where N < d."""
    return _of(features).singular_values()


def effective_rank(features: Source) -> float:
    """exp(-Σ p_i log p_i) with p = σ/Σσ (Roy & Vetterli 2007); 0 where all features are zero.

    Examples
    --------
    >>> round(effective_rank(torch.tensor([[3.0, 0.0], [0.0, 3.0]])), 12)
    2.0
    """
    values = _of(features).singular_values()
    total = values.sum()
    return float(torch.special.entr(values / total).sum().exp()) if total > 0 else 0.0


def srank(features: Source, delta: float = SRANK_DELTA) -> int:
    """srank_δ = min k with Σ_{i≤k} σ_i ≥ (1 - δ)Σσ (Kumar et al. 2020, implicit under-parameterization).

    A share of 1 - δ to within rounding counts as reached.

    Examples
    --------
    >>> srank(torch.tensor([[99.0, 0.0], [0.0, 1.0]])), srank(torch.tensor([[98.0, 0.0], [0.0, 2.0]]))
    (1, 2)
    """
    sums = _of(features).singular_values().cumsum(0)
    reached = sums >= (1 - delta) * sums[-1:] * (1 - 1e-12)
    return int(reached.int().argmax()) + 1 if sums[-1] > 0 else 0


def feature_rank(features: Source, threshold: float = RANK_THRESHOLD, *, scaled: bool = True) -> int:
    """Number of singular values of Φ/√N, or of Φ where not ``scaled``, above a threshold.

    Lyle, Rowland & Dabney (2022), "Understanding and preventing capacity loss", define it with 1/√N: then it does not
    grow with N. It depends on the features' scale either way.

    Examples
    --------
    >>> x = torch.tensor([[0.012, 0.0], [0.0, 2.0]])
    >>> feature_rank(x), feature_rank(x, scaled=False)
    (1, 2)
    """
    statistics = _of(features)
    scale = statistics.states**0.5 if scaled else 1.0
    return int((statistics.singular_values() / scale > threshold).sum())


def dormant_share(features: Source, tau: float = 0.0) -> float:
    """Share of features i with mean_n abs(φ_ni) at most τ times the mean of that over all features.

    Sokar et al. (2023), "The dormant neuron phenomenon in deep reinforcement learning". Where all features are zero
    their score is 0/0; all are dormant then.

    Examples
    --------
    >>> x = torch.tensor([[0.0, 0.1, 4.0, 4.0], [0.0, 0.0, 4.0, 4.0]])
    >>> dormant_share(x), dormant_share(x, 0.1)
    (0.25, 0.5)
    """
    statistics = _of(features)
    activity = statistics._absolute / statistics.states
    return float((activity <= tau * activity.mean()).double().mean())


def dead_share(features: Source) -> float:
    """Share of features that are zero in every state."""
    return float((_of(features)._absolute == 0).double().mean())


def constant_share(features: Source) -> float:
    """Share of features with the same value in every state; the dead ones are among them."""
    return float(_of(features)._constant().double().mean())


def duplicated_share(features: Source) -> float:
    """Share of features that vary as an earlier one does: correlation above 1 - 10⁻⁶, so equal up to scale and shift.

    Examples
    --------
    >>> duplicated_share(torch.tensor([[0.0, 1.0, 2.0, 0.0], [1.0, 0.0, 0.0, 2.0]]))
    0.5
    """
    return float((_of(features).correlation().triu(1) > COPY_CORRELATION).any(0).double().mean())


def dr3_dot(features: Features, next_features: Features) -> float:
    """mean_n φ(s_n)·φ(s'_n), the co-adaptation that DR3 penalises (Kumar et al. 2022)."""
    return _dr3_dot(FeatureStatistics.of(_finite(features), _finite(next_features)))


def _dr3_dot(statistics: FeatureStatistics) -> float:
    return float(statistics._dots / statistics.pairs) if statistics.pairs else float("nan")


def _nonfinite_share(statistics: FeatureStatistics) -> float:
    seen = statistics.states + statistics.nonfinite_states
    return statistics.nonfinite_states / seen if seen else float("nan")


MEASURES: dict[str, Callable[[FeatureStatistics], float]] = {
    "states": lambda statistics: statistics.states,
    "nonfinite_share": _nonfinite_share,
    "feature_norm": feature_norm,
    "cross_term": cross_term,
    "std_sum": std_sum,
    "sparsity": lambda statistics: 1 - int(statistics._active.sum()) / (statistics.states * statistics.features_dim),
    "mean_abs_correlation": mean_abs_correlation,
    "condition_number": condition_number,
    "participation_ratio": participation_ratio,
    "effective_rank": effective_rank,
    "srank": srank,
    "feature_rank": feature_rank,
    "feature_rank_unscaled": lambda statistics: feature_rank(statistics, scaled=False),
    "dormant_share": dormant_share,
    "dormant_share_0.025": lambda statistics: dormant_share(statistics, 0.025),
    "dormant_share_0.1": lambda statistics: dormant_share(statistics, 0.1),
    "dead_share": dead_share,
    "constant_share": constant_share,
    "duplicated_share": duplicated_share,
    "dr3_dot": _dr3_dot,
}
"""Every measure that is one number, by the name that tables and logs have; τ are those of Sokar et al. (2023)."""


def check_measures(names: Iterable[str]) -> None:
    """Raise ``ValueError`` for a name that is not in `MEASURES`."""
    for name in names:
        if name not in MEASURES:
            raise ValueError(str(unknown("measure", name, MEASURES)))


def as_features(features: Features) -> Tensor:
    """Features as a float64 tensor ``[N, d]``; raises ``TypeError`` or ``ValueError`` where they are none."""
    if isinstance(features, Tensor):
        tensor, floating = features.detach(), features.is_floating_point()
    else:
        array = np.asarray(features)
        floating = array.dtype.kind not in "biucSUOM"  # JAX's bfloat16 is of kind V
        tensor = torch.from_numpy(np.array(array, np.float64)) if floating else torch.empty(0)
    if not floating:
        raise TypeError(f"features must be floating-point numbers, not {features.dtype}")
    if tensor.dim() != 2 or 0 in tensor.shape:
        raise ValueError(f"features must have shape [N, d] with N and d at least 1, not {list(tensor.shape)}")
    return tensor.double()


def _of(features: Source) -> FeatureStatistics:
    if isinstance(features, FeatureStatistics):
        return features
    return FeatureStatistics.of(_finite(features), thresholds=())


def _finite(features: Features) -> Tensor:
    phi = as_features(features)
    odd = int((~phi.isfinite()).any(1).sum())
    if odd:
        raise ValueError(
            f"features are not finite in {odd} of {phi.shape[0]} states; leave these out, "
            "or use FeatureStatistics, which counts them"
        )
    return phi


def _eigenvalues(moments: Tensor) -> Tensor:
    """Eigenvalues of a positive semi-definite matrix, largest first; those below rounding are 0; NaN of NaN."""
    if moments.isnan().any():
        return moments.diagonal() * torch.nan
    values = torch.linalg.eigvalsh(moments).flip(0)
    noise = values[:1].abs() * values.numel() * torch.finfo(values.dtype).eps
    return torch.where(values > noise, values, 0.0)
