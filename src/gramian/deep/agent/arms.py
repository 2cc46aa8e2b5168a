"""The arms of a population, grouped by penalty: the plain agent, or penalties of its features, each with its κ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gramian.core.arms import PENALTIES
from gramian.core.arms import Arm as Arm
from gramian.core.arms import parse_arm as parse_arm
from gramian.deep.agent.penalty_gradients import CLOSED_FORMS, PenaltyGradient
from gramian.penalties import penalty_function


@dataclass(frozen=True)
class Group:
    """The runs of a population that share a penalty; they are computed together."""

    penalty: Callable[..., Tensor]
    """Features ``[G, n, d]`` → ``[G]``; where ``needs_next``, of the features of the next states too."""
    gradient: Callable[[Tensor], PenaltyGradient] | None
    """The same with its gradient, in closed form; None where there is none."""
    needs_next: bool
    runs: Tensor | None
    """Positions of the runs in the population, int64 ``[G]``; None where they are the whole population."""
    shares: Tensor | None
    """Of the penalty's κ in its run's, ``[G]``; None where it is the only one of each run."""

    def select(self, tensor: Tensor) -> Tensor:
        """The rows of ``tensor`` ``[P, ...]`` that belong to the group, ``[G, ...]``."""
        return tensor if self.runs is None else tensor.index_select(0, self.runs)

    def add(self, everyone: Tensor, own: Tensor) -> Tensor:
        """``everyone`` ``[P]`` plus the group's ``own`` ``[G]``, times its shares."""
        own = own if self.shares is None else self.shares * own
        return everyone + own if self.runs is None else everyone.index_add(0, self.runs, own)


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
    >>> arms = Arms([Arm("none"), Arm("gram", 0.5), Arm("l2", 2.0)], dtype=torch.float64)
    >>> arms.penalties(torch.ones(3, 4, 2, dtype=torch.float64))
    tensor([0., 0., 2.], dtype=torch.float64)
    """

    def __init__(
        self, arms: Sequence[Arm], *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.arms = tuple(arms)
        self.kappas = torch.tensor([arm.kappa for arm in arms], dtype=dtype, device=device)
        members: dict[tuple[str, bool], dict[int, float]] = {}
        for run, arm in enumerate(arms):
            for term in arm.active:
                members.setdefault((term.kind, term.centered), {})[run] = term.kappa / arm.kappa
        self.groups = tuple(
            Group(
                penalty_function(kind, centered),
                _closed_form(kind, centered),
                PENALTIES[kind].next_features,
                None if len(shares) == len(arms) else torch.tensor(list(shares), dtype=torch.int64, device=device),
                None
                if set(shares.values()) == {1.0}
                else torch.tensor(list(shares.values()), dtype=dtype, device=device),
            )
            for (kind, centered), shares in members.items()
        )

    def select(self, runs: slice) -> "Arms":
        """The arms of some runs of the population."""
        return Arms(self.arms[runs], device=self.kappas.device, dtype=self.kappas.dtype)

    def penalties(self, features: Tensor, next_features: Callable[[Group], Tensor] | None = None) -> Tensor:
        """The penalty of each run without κ, ``[P]``: 0 where κ = 0, of a combination the κ-weighted mean.

        Parameters
        ----------
        features
            Raw features of the states, ``[P, n, d]``.
        next_features
            Gives a group that needs them the online network's features of the next states, ``[G, n, d]``.
        """
        penalties = features.new_zeros(features.shape[0])
        for group in self.groups:
            penalties = group.add(penalties, _value(group, features, next_features))
        return penalties

    def surrogates(
        self, features: Tensor, next_features: Callable[[Group], Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The `penalties`, without gradient, and sums to differentiate in their place; ``[P]`` each, without κ.

        Where the penalty's gradient g is known in closed form, its sum is ⟨φ, g⟩ with g as a constant: the gradient of
        the sum is g, and its value means nothing. Other penalties stand for themselves.

        Examples
        --------
        >>> features = torch.tensor([[[1.0, 2.0], [3.0, 6.0]]], requires_grad=True)
        >>> penalties, sums = Arms([Arm("gram", 0.5)]).surrogates(features)
        >>> penalties
        tensor([8.])
        >>> torch.autograd.grad(sums.sum(), features)[0]
        tensor([[[-8., -4.],
                 [ 8.,  4.]]])
        """
        penalties = sums = features.new_zeros(features.shape[0])
        for group in self.groups:
            if group.gradient is not None:
                own = group.select(features)
                values, gradient = group.gradient(own.detach())
                inner = (own * gradient).sum((1, 2))
            else:
                inner = _value(group, features, next_features)
                values = inner.detach()
            penalties, sums = group.add(penalties, values), group.add(sums, inner)
        return penalties, sums


def _closed_form(kind: str, centered: bool) -> Callable[[Tensor], PenaltyGradient] | None:
    form = CLOSED_FORMS.get(kind)
    return partial(form, centered=centered) if form and PENALTIES[kind].centrable else form


def _value(group: Group, features: Tensor, next_features: Callable[[Group], Tensor] | None) -> Tensor:
    own = group.select(features)
    if not group.needs_next:
        return group.penalty(own)
    if next_features is None:
        raise ValueError("a dr3 arm needs the features of the next states")
    return group.penalty(own, next_features(group))
