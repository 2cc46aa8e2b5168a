"""What learning changes."""

from typing import NamedTuple

from torch import Tensor


class State(NamedTuple):
    """Everything that an update changes; the first axis is the run."""

    online: Tensor
    """Parameters of the online networks, rows ``[P, N]`` of a `Layout`."""
    target: Tensor
    """Parameters of the target networks, ``[P, N]``."""
    mean: Tensor
    """Adam's running mean of the gradients, ``[P, N]``."""
    square: Tensor
    """Adam's running mean of their squares, ``[P, N]``."""
    updates: Tensor
    """Number of updates done, int64 ``[P]``."""
    diverged_at: Tensor
    """Number of the update (the first is 1) after which a run was first not finite, or -1; int64 ``[P]``."""

    def select(self, runs: slice) -> "State":
        """The state of some runs, sharing its memory."""
        return State(*(tensor[runs] for tensor in self))
