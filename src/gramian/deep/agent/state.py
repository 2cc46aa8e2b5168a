"""What learning changes: all parameters of a run in one row, and the rows of a population."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from gramian.deep.agent.networks import NetworkSpec, Parameters, parameter_shapes

_ALIGNMENT = 8
"""Rows are padded to a multiple of this many numbers, so that every run's weights are aligned as the first one's are;
matrix products on an accelerator are slower without."""


class Layout:
    """Where each parameter lies in the row ``[N]`` of a run.

    One row makes the optimiser a dozen operations for the whole population, where a tensor for each parameter would
    make it a dozen for each of them.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        self.shapes = parameter_shapes(spec)
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.padding = -sum(self.sizes) % _ALIGNMENT
        self.body_size = sum(math.prod(shape) for name, shape in self.shapes.items() if name.startswith("body."))
        """The body takes the first ``body_size`` places of a row, the head (and the padding) the others."""

    def views(self, rows: Tensor) -> Parameters:
        """The parameters in ``rows`` ``[P, N]`` by name, each ``[P, ...]``, sharing its memory."""
        parts = rows.split_with_sizes([*self.sizes, self.padding], dim=1)
        return {name: part.view(-1, *shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=False)}

    def flatten(self, parameters: Parameters) -> Tensor:
        """The rows ``[P, N]`` that hold ``parameters``; the padding is zero."""
        parts = [parameters[name].flatten(1) for name in self.shapes]
        return torch.cat([*parts, parts[0].new_zeros(parts[0].shape[0], self.padding)], dim=1)


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
