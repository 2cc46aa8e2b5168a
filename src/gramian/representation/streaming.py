"""The measures of any number of states, a batch at a time, in O(d²) memory."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from gramian.representation import measures
from gramian.representation.measures import DORMANT_TAUS, THRESHOLDS, Features, as_features

MEASURES = (
    "states", "nonfinite_share", "feature_norm", "cross_term", "std_sum", "sparsity", "mean_abs_correlation",
    "condition_number", "participation_ratio", "effective_rank", "srank", "feature_rank", "feature_rank_unscaled",
    "dormant_share", "dormant_share_0.025", "dormant_share_0.1", "dead_share", "constant_share", "duplicated_share",
    "dr3_dot",
)  # fmt: skip
"""Names of `FeatureStatistics.summary`, in its order."""


class FeatureStatistics:
    """Everything that the measures need to know of a stream of features.

    A state whose features are not all finite is counted and left out. Before the first finite state every measure is
    NaN. ``thresholds`` are the ε of the sparsities; the sums are kept on ``device``, that of the features.

    Examples
    --------
    >>> statistics = FeatureStatistics(2)
    >>> statistics.update(torch.tensor([[1.0, 0.0], [3.0, 0.0]]))
    >>> statistics.update(torch.tensor([[2.0, 6.0], [2.0, torch.nan]]))
    >>> statistics.states, statistics.summary()["feature_norm"] > 3, statistics.summary()["nonfinite_share"]
    (3, True, 0.25)
    >>> statistics.update_pairs(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 0.0]]))
    >>> statistics.summary()["dr3_dot"]
    3.0

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

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        self._mean, self._scatter = zeros(features_dim), zeros(features_dim, features_dim)
        self._absolute = zeros(features_dim)
        self._norms, self._fourth_powers, self._dots = zeros(), zeros(), zeros()
        self._least, self._most = zeros(features_dim) + torch.inf, zeros(features_dim) - torch.inf
        self._below = torch.zeros(len(self.thresholds), dtype=torch.int64, device=device)
        self._active = torch.zeros(features_dim, dtype=torch.int64, device=device)
        self._counts = torch.zeros(features_dim + 1, dtype=torch.int64, device=device)

    @classmethod
    def of(cls, features: Features, next_features: Features | None = None) -> Self:
        """The statistics of one batch ``[N, d]``, with its successors if they are given."""
        phi = as_features(features)
        statistics = cls(phi.shape[1], device=phi.device)
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
        self._below += torch.stack([(magnitudes <= threshold).sum() for threshold in self.thresholds])
        active = phi != 0
        self._active += active.sum(0)
        self._counts += torch.bincount(active.sum(1), minlength=self._counts.numel())

    def update_pairs(self, features: Features, next_features: Features) -> None:
        """Add the features ``[N, d]`` of states and of their successors to the mean of φ(s)·φ(s')."""
        dots = (self._checked(features) * self._checked(next_features)).sum(1)
        dots = dots[dots.isfinite()]
        self.pairs += dots.numel()
        self._dots += dots.sum()

    def sparsity(self) -> Tensor:
        """See `measures.sparsity`, for the thresholds of the constructor."""
        return self._below.double() / (self.states * self.features_dim)

    def active_per_state(self) -> Tensor:
        """See `measures.active_per_state`."""
        return self._counts.clone()

    def active_per_feature(self) -> Tensor:
        """See `measures.active_per_feature`."""
        return self._active.clone()

    def covariance(self) -> Tensor:
        """See `measures.covariance`."""
        return self._scatter / self.states if self.states else torch.full_like(self._scatter, torch.nan)

    def correlation(self) -> Tensor:
        """See `measures.correlation`."""
        return measures.correlation_from(self.covariance(), constant=self._least == self._most)

    def spectrum(self) -> Tensor:
        """See `measures.spectrum`."""
        return measures.eigenvalues(self.covariance()) if self.states else torch.full_like(self._mean, torch.nan)

    def singular_values(self) -> Tensor:
        """See `measures.singular_values`; as roots of eigenvalues, those below 10⁻⁷·σ₁ are lost in rounding."""
        if not self.states:
            return torch.full_like(self._mean, torch.nan)
        return measures.eigenvalues(self.states * self._second_moments()).sqrt()

    def summary(self) -> dict[str, float]:
        """All measures that are one number, by name: `MEASURES`.

        ``states`` is the number of finite states, ``nonfinite_share`` the share of the others; ``sparsity`` is that of
        ε = 0; ``dormant_share`` that of τ = 0, the others name their τ; ``feature_rank_unscaled`` is without 1/√N.
        ``dr3_dot`` is NaN without successors.
        """
        seen = self.states + self.nonfinite_states
        numbers: dict[str, float] = dict.fromkeys(MEASURES, float("nan")) | {
            "states": self.states,
            "nonfinite_share": self.nonfinite_states / seen if seen else float("nan"),
        }
        if not self.states:
            return numbers
        singular, eigen, correlation = self.singular_values(), self.spectrum(), self.correlation()
        activity = self._absolute / self.states
        dead = (self._least == 0) & (self._most == 0)
        numbers |= {
            "feature_norm": float(self._norms / self.states),
            "cross_term": self._cross_term(),
            "std_sum": float(self.covariance().diagonal().clamp_min(0).sqrt().sum()),
            "sparsity": 1 - int(self._active.sum()) / (self.states * self.features_dim),
            "mean_abs_correlation": measures.mean_abs_correlation_from(correlation),
            "condition_number": measures.condition_number_from(eigen),
            "participation_ratio": measures.participation_ratio_from(eigen),
            "effective_rank": measures.effective_rank_from(singular),
            "srank": measures.srank_from(singular),
            "feature_rank": measures.feature_rank_from(singular / self.states**0.5),
            "feature_rank_unscaled": measures.feature_rank_from(singular),
            "dead_share": float(dead.double().mean()),
            "constant_share": float((self._least == self._most).double().mean()),
            "duplicated_share": measures.duplicated_share_from(correlation),
        }
        for tau in DORMANT_TAUS:
            numbers["dormant_share" + (f"_{tau}" if tau else "")] = measures.dormant_share_from(activity, tau)
        if self.pairs:
            numbers["dr3_dot"] = float(self._dots / self.pairs)
        return numbers

    def _second_moments(self) -> Tensor:
        """ΦᵀΦ/N."""
        return self._scatter / self.states + torch.outer(self._mean, self._mean)

    def _cross_term(self) -> float:
        if self.states < 2:
            return float("nan")
        pairs = self._second_moments().square().sum() * self.states - self._fourth_powers / self.states
        return float(pairs.clamp_min(0) / (self.states - 1))

    def _checked(self, features: Features) -> Tensor:
        phi = as_features(features)
        if phi.shape[1] != self.features_dim:
            raise ValueError(f"features have shape {list(phi.shape)}, not [N, {self.features_dim}]")
        return phi.to(self._mean.device)
