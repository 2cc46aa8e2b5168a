"""What the replay hands to the learner."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """A batch of B transitions for each of the P runs of a population.

    The target of a transition is ``rewards + discounts · max_a Q(next_observations, a)``.

    Attributes
    ----------
    observations
        [P, B, ...] state s, in the dtype of the replay (uint8 frames, 0/1 planes or floats).
    actions
        [P, B] int64, the action taken in s.
    rewards
        [P, B] the m-step return Σ_{k<m} γᵏ r_k, m being the number of steps that were taken (1 to n).
    discounts
        [P, B] γᵐ, and 0 where the m-th state is terminal.
    next_observations
        [P, B, ...] the state after those m steps.
    weights
        [P, B] importance weights w of prioritised replay: the TD loss is mean_n w_n ℓ_n; None where all are 1.
    """

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    discounts: Tensor
    next_observations: Tensor
    weights: Tensor | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The fields that are there."""
        return tuple(field for field in self if field is not None)

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """The batch of ``function(field)`` for each field that is there."""
        return Batch._make(None if field is None else function(field) for field in self)
