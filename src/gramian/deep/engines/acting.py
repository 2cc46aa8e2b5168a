"""Acting on a CPU: one observation of each run, through small networks, as fast as the calls allow.

The layers of a small network take a few µs each, and calling them costs more. So everything that can be settled before
is settled here: the views of the weights and of what the actors see, and the memory of every layer. What remains is one
matrix product and one rectifier for a layer, of all runs at once; a convolution is the product of its filters with
patches of the observation.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from gramian.deep.agent.layout import Layout
from gramian.deep.agent.networks import (
    NetworkSpec,
    Parameters,
    by_run,
    convolutions,
    forward_run,
    hidden_names,
    rectified,
)
from gramian.deep.engines.prepared import Prepared
from gramian.deep.engines.rounding import Rounded
from gramian.deep.engines.winograd import Evaluated, cells, fits, hidden_kernels, tiled


def actors(
    spec: NetworkSpec, layout: Layout, weights: Tensor, observations: Tensor, *, bf16: bool = False
) -> Callable[[], Tensor]:
    """A function that gives the Q-values ``[P, E, A]`` of what the tensors hold when it is called.

    Parameters
    ----------
    spec, layout
        The network.
    weights
        Parameters ``[P, N]``, which stay where they are.
    observations
        ``[P, E, *observation_shape]``, which stay where they are.
    bf16
        Let the convolutions of Atari's network round their factors (`engines.rounding`). The hidden layer does
        not: for one observation that is no faster.

    Examples
    --------
    >>> from gramian.deep.agent.networks import init
    >>> spec = NetworkSpec("minatar", (4, 10, 10), actions=6, features_dim=128)
    >>> layout = Layout(spec)
    >>> actors(spec, layout, layout.flatten(init(spec, [0, 1])), torch.zeros(2, 1, 4, 10, 10))().shape
    torch.Size([2, 1, 6])
    """
    if not bf16 and fits(spec, weights.dtype):
        return _tiled(spec, [Evaluated(layout, row, tiled(spec)) for row in weights], observations)
    if spec.sees_pictures:
        return _seeing(
            spec,
            [Rounded(layout, row, hidden=False) if bf16 else Prepared(layout, row) for row in weights],
            observations,
        )
    if spec.layer_norm or observations.shape[1] > 1:
        runs = by_run(layout.views(weights))
        return lambda: torch.stack(
            [forward_run(spec, own, seen).values for own, seen in zip(runs, observations, strict=True)]
        )
    return _settled(spec, layout, weights, observations)


def _seeing(spec: NetworkSpec, runs: Sequence[Prepared], observations: Tensor) -> Callable[[], Tensor]:
    """The same for Atari's networks, whose filters are prepared once for all observations until they change."""

    def values() -> Tensor:
        for run in runs:
            run.refresh()
        return torch.stack(
            [
                forward_run(spec, run.parameters, seen, prepared=True).values
                for run, seen in zip(runs, observations, strict=True)
            ]
        )

    return values


def _tiled(spec: NetworkSpec, runs: Sequence[Evaluated], observations: Tensor) -> Callable[[], Tensor]:
    """The same for Atari's networks in float32, with convolutions of `gramian.deep.engines.winograd`."""
    layers = tiled(spec)
    last, alone = layers[-1], observations.shape[1] == 1

    def weigh(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if alone:
            out = torch.empty(1, len(weight))
            hidden_kernels().weigh_one(images.numpy(), last.filters, weight.numpy(), bias.numpy(), out[0].numpy())
            return out
        inputs = images.unflatten(2, (last.outputs, last.filters)).permute(0, 3, 1, 2).flatten(1)
        return functional.linear(inputs, weight, bias)

    def look(own: Parameters, seen: Tensor) -> Tensor:
        images = cells(spec, seen)
        for each in layers:
            images = each.forward(images, own[f"{each.name}.weight"], own[f"{each.name}.bias"])
        raw = weigh(images, own["body.fc1.weight"], own["body.fc1.bias"])
        features = rectified(spec, own, "body.fc1", images, raw).outputs
        return functional.linear(features, own["head.weight"], own["head.bias"])

    def values() -> Tensor:
        for run in runs:
            run.refresh()
        return torch.stack([look(run.parameters, seen) for run, seen in zip(runs, observations, strict=True)])

    return values


class _Product(NamedTuple):
    """bias + left · right → out."""

    move: tuple[Tensor, Tensor] | None
    """Where to copy something before, and what."""
    bias: Tensor
    left: Tensor
    right: Tensor
    out: Tensor


def _settled(spec: NetworkSpec, layout: Layout, weights: Tensor, observations: Tensor) -> Callable[[], Tensor]:
    """The same for one observation of each run, with all views and all memory there beforehand."""
    views, runs = layout.views(weights), len(weights)
    products: list[_Product] = []
    seen = observations.squeeze(1)
    for number, (filters, size, stride) in enumerate(convolutions(spec), start=1):
        weight, bias = views[f"body.conv{number}.weight"].flatten(2), views[f"body.conv{number}.bias"].unsqueeze(2)
        source = seen.unfold(2, size, stride).unfold(3, size, stride).permute(0, 1, 4, 5, 2, 3)  # [P, C, k, k, H', W']
        patches = torch.empty(source.shape, dtype=weights.dtype)
        out = weights.new_empty(runs, filters, *source.shape[4:])
        columns = patches.view(runs, weight.shape[2], -1)
        products.append(_Product((patches, source), bias, weight.view(runs, filters, -1), columns, out.flatten(2)))
        seen = out
    row, move = seen.flatten(1).unsqueeze(1), None
    if not products:  # nothing has taken the observations in yet
        move = torch.empty(row.shape, dtype=weights.dtype), row
        row = move[0]
    for name in (*hidden_names(spec), "head"):
        weight, bias = views[f"{name}.weight"].mT, views[f"{name}.bias"].unsqueeze(1)
        out = weights.new_empty(runs, 1, weight.shape[2])
        products.append(_Product(move, bias, row, weight, out))
        row, move = out, None
    *hidden, head = products

    def values() -> Tensor:
        for move, bias, left, right, out in hidden:
            if move is not None:
                move[0].copy_(move[1])
            torch.baddbmm(bias, left, right, out=out).relu_()
        return torch.baddbmm(head.bias, head.left, head.right, out=head.out)

    return values
