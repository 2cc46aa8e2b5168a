"""Arms: plain DQN, and DQN with κ times a penalty on its features.

| kind | penalty of the features φ_n = φ(s_n) of a batch of n samples |
| --- | --- |
| ``dqn`` | none |
| ``decor`` | Σ_{i≠j} C_ij² from the explicit covariance (DQN-decor; Mavrin, Yao & Kong 2019) |
| ``gram`` | the same number from the Gram matrix (DQN-Gram; Mavrin, Graves & Chan 2019) |
| ``gram-unbiased`` | unbiased estimate of the distribution's Σ_{i≠j} C_ij² |
| ``norm`` | Σ_n ‖x_n‖⁴/n²: the part of the Gram penalty that only shrinks |
| ``cross`` | Σ_{n≠m} (x_n·x_m)²/n²: the part that makes samples orthogonal |
| ``l2`` | mean_n ‖φ_n‖² |
| ``dr3`` | mean_n φ(s_n)·φ(s'_n), both from the online network and both with gradient (Kumar et al. 2022) |

All but ``l2`` and ``dr3``, which are defined on raw features, come centred over the batch (the default) or not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gramian.core.arms import CENTRABLE, Kind
from gramian.core.arms import Arm as Arm
from gramian.core.arms import parse_arm as parse_arm
from gramian.deep.agent import penalty_gradients
from gramian.deep.agent.penalty_gradients import PenaltyGradient
from gramian.penalties import covariance_penalty, gram_penalty, gram_terms, unbiased_gram_penalty

_PENALTIES: dict[str, Callable[..., Tensor]] = {
    "decor": covariance_penalty,
    "gram": gram_penalty,
    "gram-unbiased": unbiased_gram_penalty,
    "norm": lambda features, *, centered: gram_terms(features, centered=centered).norm,
    "cross": lambda features, *, centered: gram_terms(features, centered=centered).cross,
}


@dataclass(frozen=True)
class Group:
    """The runs of a population that share a penalty; they are computed together."""

    penalty: Callable[[Tensor], Tensor] | None
    """Features ``[G, n, d]`` → ``[G]``; None for ``dr3``, which needs the features of the next states too."""
    gradient: Callable[[Tensor], PenaltyGradient] | None
    """The same with its gradient, in closed form; None for ``dr3``."""
    runs: Tensor | None
    """Positions of the runs in the population, int64 ``[G]``; None where they are the whole population."""

    def select(self, tensor: Tensor) -> Tensor:
        """The rows of ``tensor`` ``[P, ...]`` that belong to the group, ``[G, ...]``."""
        return tensor if self.runs is None else tensor.index_select(0, self.runs)

    def place(self, everyone: Tensor, own: Tensor) -> Tensor:
        """``everyone`` ``[P, ...]`` with the rows of the group replaced by ``own`` ``[G, ...]``."""
        return own if self.runs is None else everyone.index_copy(0, self.runs, own)


class Arms:
    """The arms of a population, grouped by penalty once and for all.

    A run with κ = 0 belongs to no group: its penalty is never computed, and no non-finite penalty is ever multiplied
    by zero.

    Parameters
    ----------
    arms
        One for each run.

    Examples
    --------
    >>> arms = Arms([Arm("dqn"), Arm("gram", 0.5), Arm("l2", 2.0)], dtype=torch.float64)
    >>> arms.penalties(torch.ones(3, 4, 2, dtype=torch.float64))
    tensor([0., 0., 2.], dtype=torch.float64)
    """

    def __init__(
        self, arms: Sequence[Arm], *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.arms = tuple(arms)
        self.kappas = torch.tensor([arm.kappa for arm in arms], dtype=dtype, device=device)
        members: dict[tuple[Kind, bool], list[int]] = {}
        for run, arm in enumerate(arms):
            if arm.kappa != 0:
                members.setdefault((arm.kind, arm.centered), []).append(run)
        self.groups = tuple(
            Group(
                _penalty(kind, centered),
                _gradient(kind, centered),
                None if len(runs) == len(arms) else torch.tensor(runs, dtype=torch.int64, device=device),
            )
            for (kind, centered), runs in members.items()
        )

    def select(self, runs: slice) -> "Arms":
        """The arms of some runs of the population."""
        return Arms(self.arms[runs], device=self.kappas.device, dtype=self.kappas.dtype)

    def penalties(self, features: Tensor, next_features: Callable[[Group], Tensor] | None = None) -> Tensor:
        """The penalty of each run without κ, ``[P]``; 0 where κ = 0.

        Parameters
        ----------
        features
            Raw features of the states, ``[P, n, d]``.
        next_features
            Gives a group of ``dr3`` runs the online network's features of the next states, ``[G, n, d]``.
        """
        penalties = features.new_zeros(features.shape[0])
        for group in self.groups:
            own = group.select(features)
            values = _alignment(own, group, next_features) if group.penalty is None else group.penalty(own)
            penalties = group.place(penalties, values)
        return penalties

    def stand_ins(
        self, features: Tensor, next_features: Callable[[Group], Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The `penalties`, without gradient, and sums to differentiate in their place.

        The sum that stands in for a penalty is ⟨φ, g⟩ with g the penalty's gradient at φ in closed form, taken as a
        constant: its gradient is g, and its value means nothing. (``dr3`` stands for itself.)

        The arguments are those of `penalties`; penalties and sums are ``[P]`` each, without κ.

        Examples
        --------
        >>> features = torch.tensor([[[1.0, 2.0], [3.0, 6.0]]], requires_grad=True)
        >>> penalties, sums = Arms([Arm("gram", 0.5)]).stand_ins(features)
        >>> penalties
        tensor([8.])
        >>> torch.autograd.grad(sums.sum(), features)[0]
        tensor([[[-8., -4.],
                 [ 8.,  4.]]])
        """
        penalties = sums = features.new_zeros(features.shape[0])
        for group in self.groups:
            own = group.select(features)
            if group.gradient is not None:
                values, gradient = group.gradient(own.detach())
                inner = (own * gradient).sum((1, 2))
            else:
                inner = _alignment(own, group, next_features)
                values = inner.detach()
            penalties, sums = group.place(penalties, values), group.place(sums, inner)
        return penalties, sums


def _gradient(kind: Kind, centered: bool) -> Callable[[Tensor], PenaltyGradient] | None:
    if kind in CENTRABLE:
        return partial(penalty_gradients.CENTRABLE[kind], centered=centered)
    return penalty_gradients.l2 if kind == "l2" else None


def _penalty(kind: Kind, centered: bool) -> Callable[[Tensor], Tensor] | None:
    if kind in CENTRABLE:
        return partial(_PENALTIES[kind], centered=centered)
    return _mean_squared_norm if kind == "l2" else None


def _alignment(own: Tensor, group: Group, next_features: Callable[[Group], Tensor] | None) -> Tensor:
    if next_features is None:
        raise ValueError("a dr3 arm needs the features of the next states")
    return (own * next_features(group)).sum(-1).mean(-1)


def _mean_squared_norm(features: Tensor) -> Tensor:
    return features.square().sum(-1).mean(-1)
