"""The networks of a population with what differs between its runs: their actions and their random numbers."""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Self

import torch
from torch import Tensor

from gramian.deep.agent.networks import NetworkSpec, Output, Parameters, forward, noise_size, perturb
from gramian.deep.agent.streams import Stream, torch_bits, torch_normal, torch_uniform


class Pass(IntEnum):
    """What a forward pass is for. Each has τ and noise of its own; the values are part of a run's identity."""

    LEARN = 0
    """Online network, states of an update."""
    TARGET = 1
    """Target network, next states of an update."""
    CHOOSE = 2
    """The network that chooses the actions of the next states."""
    ACT = 3


@dataclass(frozen=True)
class Model:
    """P networks of one shape.

    A pass has one draw of τ and one of noise for each run, the same for all samples of a batch, as in Dopamine. They
    are a function of the run's seed, the pass and its counter: the number of updates done, or the agent step.

    Attributes
    ----------
    spec
        The network.
    seeds
        Of the runs, int64 ``[P]``.
    legal
        bool ``[P, 1, A]``, which actions each run has; None where all runs have all of them.
    numbers
        0, 1, 2, …, as many as a draw has numbers. A compiler that makes them itself takes 32 bits; a key needs 64.
    """

    spec: NetworkSpec
    seeds: Tensor
    legal: Tensor | None
    numbers: Tensor

    @classmethod
    def of(cls, spec: NetworkSpec, seeds: Tensor, legal: Tensor | None = None) -> Self:
        """The networks of runs with these ``seeds``."""
        head = spec.head
        most = max(noise_size(spec), head.size, head.target_size, head.acting_size)
        return cls(spec, seeds, legal, torch.arange(most, device=seeds.device))

    def select(self, runs: slice) -> "Model":
        """The networks of some runs."""
        return replace(self, seeds=self.seeds[runs], legal=None if self.legal is None else self.legal[runs])

    def masked(self, values: Tensor) -> Tensor:
        """Q-values ``[P, B, A]`` with -∞ for the actions that a run does not have."""
        return values if self.legal is None else values.masked_fill(~self.legal, -torch.inf)

    def noisy(self, parameters: Parameters, purpose: Pass, counter: int | Tensor) -> Parameters:
        """The parameters with the noise of a pass; themselves where no layer is noisy."""
        if not self.spec.head.noisy:
            return parameters
        draws = torch_normal(self._bits(Stream.NOISE, purpose, counter, noise_size(self.spec)))
        return perturb(self.spec, parameters, draws.to(next(iter(parameters.values())).dtype))

    def taus(self, purpose: Pass, counter: int | Tensor, dtype: torch.dtype) -> Tensor | None:
        """τ of a pass, ``[P, N]``; None where the head draws none."""
        head = self.spec.head
        if head.kind != "implicit":
            return None
        count = {Pass.LEARN: head.size, Pass.TARGET: head.target_size}.get(purpose, head.acting_size)
        return torch_uniform(self._bits(Stream.TAUS, purpose, counter, count)).to(dtype)

    def forward(self, parameters: Parameters, observations: Tensor, purpose: Pass, counter: int | Tensor) -> Output:
        """A pass with its own τ and noise; ``counter`` is a number, an int64 scalar or int64 ``[P, 1]``."""
        noisy = self.noisy(parameters, purpose, counter)
        taus = self.taus(purpose, counter, next(iter(parameters.values())).dtype)
        return forward(self.spec, noisy, observations, taus, self.legal)

    def _bits(self, stream: Stream, purpose: Pass, counter: int | Tensor, count: int) -> Tensor:
        return torch_bits(self.seeds.unsqueeze(1), stream, int(purpose), counter, self.numbers[:count])
