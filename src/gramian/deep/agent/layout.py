"""All parameters of a run in one row: what the optimiser, the target copy and the checks work on."""

import math

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

    Examples
    --------
    >>> from gramian.deep.agent.networks import init
    >>> spec = NetworkSpec("mlp", (4,), actions=2, features_dim=8)
    >>> layout, parameters = Layout(spec), init(spec, seeds=[0, 1])
    >>> rows = layout.flatten(parameters)
    >>> rows.shape
    torch.Size([2, 136])
    >>> all(torch.equal(view, parameters[name]) for name, view in layout.views(rows).items())
    True
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
