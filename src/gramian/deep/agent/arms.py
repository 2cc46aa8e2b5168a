"""The arms of a population, grouped by penalty: the plain agent, or penalties of its features, each with its κ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gramian.core.arms import PENALTIES, Penalty
from gramian.core.arms import Arm as Arm
from gramian.core.arms import parse_arm as parse_arm
from gramian.deep.agent.penalty_gradients import CLOSED_FORMS, PenaltyGradient
from gramian.deep.agent.streams import Stream, torch_bits, torch_normal
from gramian.penalties import penalty_function


@dataclass(frozen=True)
class Group:
    """The runs of a population that share a penalty; they are computed together."""

    kind: Penalty
    penalty: Callable[..., Tensor]
    """Features ``[G, n, d]`` → ``[G]``; of next features or of noise too, as the kind says."""
    gradient: Callable[[Tensor], PenaltyGradient] | None
    """The same with its gradient, in closed form; None where there is none."""
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
    arms, seeds
        One for each run. The seeds are of penalties that need random numbers.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        seeds: Sequence[int] = (),
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.arms = tuple(arms)
        self.seeds = tuple(seeds) or (0,) * len(arms)
        self.kappas = torch.tensor([arm.kappa for arm in arms], dtype=dtype, device=device)
        members: dict[tuple[str, bool], dict[int, float]] = {}
        for run, arm in enumerate(arms):
            for term in arm.active:
                members.setdefault((term.kind, term.centered), {})[run] = term.kappa / arm.kappa
        self.groups = tuple(
            Group(
                PENALTIES[kind],
                penalty_function(kind, centered),
                _closed_form(kind, centered),
                None if len(shares) == len(arms) else torch.tensor(list(shares), dtype=torch.int64, device=device),
                None
                if set(shares.values()) == {1.0}
                else torch.tensor(list(shares.values()), dtype=dtype, device=device),
            )
            for (kind, centered), shares in members.items()
        )
        self._seeds = torch.tensor(self.seeds, dtype=torch.int64, device=device)
        noisy = any(group.kind.noise for group in self.groups)
        # Kept: a compiler that makes the numbers itself takes 32 bits for them, and the random bits need 64.
        self._counters = torch.arange(_MOST_FEATURES if noisy else 0, device=device)

    def select(self, runs: slice) -> "Arms":
        """The arms of some runs of the population."""
        return Arms(self.arms[runs], self.seeds[runs], device=self.kappas.device, dtype=self.kappas.dtype)

    def penalties(
        self,
        features: Tensor,
        next_features: Callable[[Group], Tensor] | None = None,
        counter: int | Tensor = 0,
    ) -> Tensor:
        """The penalty of each run without κ, ``[P]``: 0 where κ = 0, of a combination the κ-weighted mean.

        Parameters
        ----------
        features
            Raw features of the states, ``[P, n, d]``.
        next_features
            Gives a group that needs them the online network's features of the next states, ``[G, n, d]``.
        counter
            Of the random numbers: the updates of each run, int64 ``[P, 1]``, or one number.
        """
        penalties = features.new_zeros(features.shape[0])
        for group in self.groups:
            own = group.select(features)
            penalties = group.add(penalties, self._penalty(group, own, next_features, counter))
        return penalties

    def surrogates(
        self,
        features: Tensor,
        next_features: Callable[[Group], Tensor] | None = None,
        counter: int | Tensor = 0,
    ) -> tuple[Tensor, Tensor]:
        """The `penalties`, without gradient, and sums to differentiate in their place; ``[P]`` each, without κ.

        Where the penalty's gradient g is known in closed form, its sum is ⟨φ, g⟩ with g as a constant: the gradient of
        the sum is g, and its value means nothing. Other penalties stand for themselves.
        """
        penalties = sums = features.new_zeros(features.shape[0])
        for group in self.groups:
            own = group.select(features)
            if group.gradient is not None:
                values, gradient = group.gradient(own.detach())
                inner = (own * gradient).sum((1, 2))
            else:
                inner = self._penalty(group, own, next_features, counter)
                values = inner.detach()
            penalties, sums = group.add(penalties, values), group.add(sums, inner)
        return penalties, sums

    def gradient(self, group: Group, features: Tensor, counter: int | Tensor = 0) -> PenaltyGradient:
        """A group's penalty, without κ, and its gradient with respect to its runs' features ``[G, n, d]``."""
        if group.gradient is not None:
            return group.gradient(features)
        with torch.enable_grad():
            leaf = features.detach().requires_grad_()
            values = self._penalty(group, leaf, None, counter)
            (gradient,) = torch.autograd.grad(values.sum(), leaf)
        return PenaltyGradient(values.detach(), gradient)

    def _penalty(
        self,
        group: Group,
        own: Tensor,
        next_features: Callable[[Group], Tensor] | None,
        counter: int | Tensor,
    ) -> Tensor:
        if group.kind.of_features_alone:
            return group.penalty(own)
        if group.kind.noise is not None:
            return group.penalty(own, self._noise(group, own, counter))
        if next_features is None:
            raise ValueError("a dr3 arm needs the features of the next states")
        return group.penalty(own, next_features(group))

    def _noise(self, group: Group, own: Tensor, counter: int | Tensor) -> Tensor:
        """Normal numbers of the group's runs for one update, ``[G, rows, columns]``."""
        assert group.kind.noise is not None
        sizes = {"n": own.shape[1], "d": own.shape[2]}
        rows, columns = (sizes[size] if size in sizes else int(size) for size in group.kind.noise)
        number = counter if isinstance(counter, int) else group.select(counter)[:, None]
        seed = group.select(self._seeds)[:, None, None]
        bits = torch_bits(seed, Stream.PENALTY, number, self._counters[:rows, None], self._counters[:columns])
        return torch_normal(bits).to(own.dtype)


_MOST_FEATURES = 2**16
"""Most samples or features of a penalty that needs random numbers."""


def _closed_form(kind: str, centered: bool) -> Callable[[Tensor], PenaltyGradient] | None:
    form = CLOSED_FORMS.get(kind)
    return partial(form, centered=centered) if form and PENALTIES[kind].centrable else form
