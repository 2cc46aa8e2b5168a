"""Priorities of a population's transitions (Schaul et al. 2016), by Dopamine's rules.

Transition i of a run is drawn with probability p_i / Σp, in strata: draw b of B lies in the b-th part of Σp. Its
priority is p_i = (ℓ_i + 1e-10)^α, with ℓ_i its TD loss when it was last drawn; a new transition takes the largest
priority of its run so far. The importance weights of a batch are p_i^-β divided by the largest of them.

Priorities are whole multiples of 2^-24. Their sums are exact in any order, so that a run draws the same transitions
alone, in any population and on every device. The sum has two levels, blocks and their transitions: a draw reads every
priority once, which is fast in parallel, and sums up only the blocks that it hits.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gramian.deep.agent.streams import torch_uniform

BLOCK = 1024
"""Transitions whose priorities are summed at the lower level."""
ONE = 1 << 24
"""A priority of 1."""
LARGEST = 1 << 40
"""Priorities above are rounded down to this one, so that the sum of some millions of them fits into 63 bits."""


class Exponents(NamedTuple):
    """How priorities and importance weights depend on losses and probabilities."""

    priority: float = 0.5
    """α"""
    importance: float = 0.5
    """β"""


class Priorities:
    """The priorities of P runs with E environments, 0 for transitions that cannot be drawn.

    The losses of a batch arrive after the draw, and count from the next draw on, when `settle` is called. Until then
    transitions may have left the replay: those get no priority.

    Parameters
    ----------
    shape
        ``(P, E)``.
    ring
        Transition t of an environment lies in place t modulo ``ring``.
    pinned
        Losses are copied from a GPU into page-locked memory.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        ring: int,
        n_step: int,
        exponents: Exponents,
        device: torch.device,
        *,
        pinned: bool = False,
    ) -> None:
        self._shape, self._ring, self._exponents, self._pinned = shape, ring, exponents, pinned
        runs, environments = shape
        blocks = -(-environments * ring // BLOCK)
        self._blocks = torch.zeros(runs, blocks, BLOCK, dtype=torch.int64, device=device)
        self.flat = self._blocks.view(runs, blocks * BLOCK)
        """Of each run's places, environment after environment, ``[P, ·]``."""
        self._rings = self.flat[:, : environments * ring].view(runs, environments, ring)
        self._largest = torch.full((runs, 1), ONE, dtype=torch.int64, device=device)
        self._row = torch.arange(runs, device=device)[:, None]
        self._behind = torch.arange(n_step, device=device)
        self.allocate(0)

    def allocate(self, batch_size: int) -> None:
        """Memory for the losses of batches of this size."""
        shape, device = (self._shape[0], batch_size), self.flat.device
        self._losses = torch.full(shape, torch.nan, device=device)
        if self._pinned:
            self._losses = self._losses.pin_memory()
        self._environments, self._transitions = torch.zeros(2, *shape, dtype=torch.int64, device=device)
        self._strata = torch.arange(batch_size, device=device)

    def clear(self) -> None:
        """Forget everything but the sizes."""
        self.flat.zero_()
        self._largest.fill_(ONE)
        self._losses.fill_(torch.nan)

    def move(self, newest: int | Tensor, before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> None:
        """The transitions that can be drawn were ``[first, last]`` of ``before``, and now are those of ``after``.

        All four are ``[P·E]``. ``newest`` was added between: at most n transitions before it enter, and at most three
        leave.
        """
        (old_first, old_last), (first, last) = (
            tuple(bound.view(*self._shape, 1) for bound in bounds) for bounds in (before, after)
        )
        entering = newest - self._behind
        places = entering % self._ring
        enters = (entering > old_last) & (entering <= last) & (entering >= first)
        self._rings[:, :, places] = torch.where(enters, self._largest[:, :, None], self._rings[:, :, places])
        for step in range(3):
            place = (old_first + step) % self._ring
            stays = old_first + step >= first
            self._rings.scatter_(2, place, torch.where(stays, self._rings.gather(2, place), 0))

    def draw(self, random_bits: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Transitions by random bits ``[P, B]``: (environment, transition), ``[P, B]`` each.

        ``first`` ``[P, E]`` are the first transitions that can be drawn.
        """
        sums = self._blocks.sum(2)
        ends = sums.cumsum(1)
        share = (self._strata + torch_uniform(random_bits)) / random_bits.shape[1]
        wanted = torch.minimum((share * ends[:, -1:]).to(torch.int64), ends[:, -1:] - 1)
        block = torch.searchsorted(ends, wanted, right=True)
        rest = wanted - (ends - sums).gather(1, block)
        within = self._blocks[self._row, block].cumsum(2)
        place = block * BLOCK + torch.searchsorted(within, rest[..., None], right=True)[..., 0]
        environment = place // self._ring
        oldest = first.gather(1, environment)
        return environment, oldest + (place - oldest) % self._ring

    def weights(self, environments: Tensor, transitions: Tensor) -> Tensor:
        """The importance weights of a batch, ``[P, B]``."""
        priorities = self.flat.gather(1, self._place(environments, transitions)).double()
        return (priorities.amin(1, keepdim=True) / priorities).pow(self._exponents.importance).float()

    def expect(self, environments: Tensor, transitions: Tensor) -> None:
        """Losses of these transitions ``[P, B]`` will be recorded."""
        self._environments.copy_(environments)
        self._transitions.copy_(transitions)

    def record(self, losses: Tensor, runs: slice) -> None:
        """The TD losses ``[P, B]`` of the transitions expected; without waiting for the device that they lie on."""
        self._losses[runs].copy_(losses, non_blocking=True)

    def settle(self, first: Tensor) -> None:
        """Give the transitions of the last batch the priorities of their losses, where these are finite.

        Where a transition was drawn twice, its largest loss counts.
        """
        loss, known = self._losses, self._losses.isfinite()
        fresh = (loss.double().clamp(min=0) + 1e-10).pow(self._exponents.priority) * ONE
        fresh = torch.where(known, fresh, 0.0).round().clamp(1, LARGEST).to(torch.int64)
        self._largest.copy_(torch.maximum(self._largest, torch.where(known, fresh, 0).amax(1, keepdim=True)))

        place = self._place(self._environments, self._transitions)
        known &= self._transitions >= first.gather(1, self._environments)
        same = (place[:, :, None] == place[:, None]) & known[:, None]
        fresh = torch.where(same, fresh[:, None], 0).amax(2)  # the same for all draws of a transition
        self.flat.scatter_(1, place, torch.where(fresh > 0, fresh, self.flat.gather(1, place)))
        loss.fill_(torch.nan)

    def state(self) -> dict[str, Tensor]:
        """Everything, on the host."""
        return {name: tensor.cpu() for name, tensor in self._named().items()}

    def load(self, state: dict[str, Tensor], *, whole: bool) -> None:
        """Take over a `state`; where the replay is not ``whole`` but empty, the largest priority alone."""
        self.clear()
        for name, tensor in self._named().items():
            if whole or name == "priorities.largest":
                tensor.copy_(state[name])

    def _named(self) -> dict[str, Tensor]:
        return {
            "priorities": self._rings,
            "priorities.largest": self._largest,
            "priorities.losses": self._losses,
            "priorities.environments": self._environments,
            "priorities.transitions": self._transitions,
        }

    def _place(self, environments: Tensor, transitions: Tensor) -> Tensor:
        return environments * self._ring + transitions % self._ring
