"""Updates of Atari runs on a CPU whose convolutions have less to multiply (`gramian.deep.engines.winograd`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from gramian.deep.agent.layout import Layout
from gramian.deep.agent.losses import Objective
from gramian.deep.agent.networks import Layer, Parameters, QOutput
from gramian.deep.agent.optimiser import Adam
from gramian.deep.agent.state import State
from gramian.deep.engines.halves import HalvedUpdate, Pass, Piece, Preparation, Work, halves
from gramian.deep.engines.winograd import (
    PANEL,
    Convolution,
    Evaluated,
    Slopes,
    cells,
    empty_cells,
    hidden_kernels,
    tiled,
)

_NONE = np.zeros((0, 0, 0), np.float32)


QUARTERS = range(4)


@dataclass(frozen=True)
class TiledPass(Pass):
    """A `Pass` of `WinogradUpdate`.

    What the hidden layer sees lies as `gramian.deep.engines.kernels.hidden` wants it, as ``[⌈B'/16⌉, I, 16]``; what it
    rectifies lies as ``[d, 16·⌈B'/16⌉]``.
    """

    images: list[Tensor]
    """What each convolution sees, and at last what the hidden layer does."""
    panels: Tensor | None
    """What the hidden layer sees as ``[I/16, B', 16]``, where its gradient is needed."""


class WinogradUpdate(HalvedUpdate):
    """A `HalvedUpdate` in float32 whose convolutions have less to multiply. The kernels are loaded at the first one.

    What a convolution sees and gives is an image of `engines.winograd`, and its slopes are those of such images. A
    convolution's gradients at the points are added up over the halves before they become gradients of its weights.

    Forwards it goes by quarters of the batch and of the features, so that a thread that has lost its core for a while
    does not keep the other one waiting for long.
    """

    _prepared_online: Evaluated

    def __init__(self, run: int, objective: Objective, adam: Adam, layout: Layout, state: State) -> None:
        self._convolutions = tiled(objective.spec)
        super().__init__(run, objective, adam, layout, state, partial(Evaluated, convolutions=self._convolutions))
        self._prepared_online.add_transposed()
        self._at_points: tuple[dict[str, Slopes], dict[str, Slopes]] = {}, {}
        """In each half, by the name of the convolution."""

    def _prepare(self, after: Sequence[Piece]) -> Preparation:
        online, names = self._prepared_online, [f"{each.name}.weight" for each in self._convolutions]
        return Preparation(
            looks=[self._piece(after, online.renew_convolution, name) for name in names],
            slopes=[self._piece(after, online.renew_transposed, name) for name in names if name in online.transposed],
        )

    def _pass(
        self, own: Parameters, observations: Tensor, records: Sequence[list[Layer] | None] = (None, None)
    ) -> TiledPass:
        features, inputs = own["body.fc1.weight"].shape
        size = len(observations)
        blocks = -(-size // PANEL)
        # what is beside a batch that is no multiple of 16 is multiplied too
        columns = (torch.zeros if size % PANEL else torch.empty)(blocks, inputs, PANEL)
        panels = torch.empty(inputs // PANEL, size, PANEL) if records[0] is not None else None
        images = [empty_cells(self._objective.spec, size, observations.dtype)]
        images += [convolution.empty_outputs(size) for convolution in self._convolutions]
        for record, samples in zip(records, halves(size), strict=True):
            if record is not None:
                record += [
                    Layer(convolution.name, seen[samples], given[samples], convolution.stride, None)
                    for convolution, (seen, given) in zip(self._convolutions, pairwise(images), strict=True)
                ]
        return TiledPass(own, observations, columns, torch.empty(features, blocks * PANEL), records, images, panels)

    def _looks(self, seen: Pass, needs: Sequence[Piece]) -> list[Piece]:
        return [self._piece(needs, self._look, seen, quarter) for quarter in QUARTERS]

    def _look(self, seen: Pass, quarter: int) -> None:
        assert isinstance(seen, TiledPass)
        samples, own, columns = quarters(len(seen.observations))[quarter], seen.own, seen.inputs.numpy()
        images = cells(self._objective.spec, seen.observations[samples], seen.images[0][samples])
        for convolution, outputs in zip(self._convolutions, seen.images[1:], strict=True):
            weight, bias = own[f"{convolution.name}.weight"], own[f"{convolution.name}.bias"]
            images = convolution.forward(images, weight, bias, outputs[samples])
        panels = _NONE if seen.panels is None else seen.panels.numpy()
        hidden_kernels().arrange(images.numpy(), self._convolutions[-1].filters, samples.start, columns, panels)

    def _weighs(self, seen: Pass, needs: Sequence[Piece]) -> list[Piece]:
        return [self._piece(needs, self._weigh, seen, quarter) for quarter in QUARTERS]

    def _weigh(self, seen: Pass, quarter: int) -> None:
        weight = seen.own["body.fc1.weight"].numpy()
        features = quarters(len(weight))[quarter]
        hidden_kernels().weigh(weight, features.start, features.stop, seen.inputs.numpy(), seen.raw.numpy())

    def _conclude(self, done: Pass) -> tuple[Layer, QOutput]:
        raw = torch.empty(len(done.observations), len(done.raw))
        torch.add(done.raw[:, : len(raw)].mT, done.own["body.fc1.bias"], out=raw)
        return super()._conclude(replace(done, raw=raw))

    def _descend(self, work: Work, half: int) -> None:
        weight, columns = self._online["body.fc1.weight"].numpy(), halves(work.lower_slope.shape[1])[half]
        hidden_kernels().descend(work.slope.numpy(), weight, columns.start, columns.stop, work.lower_slope.numpy())

    def _differentiate_weights(self, work: Work, half: int) -> None:
        seen, features = work.online, self._features[half]
        assert isinstance(seen, TiledPass)
        assert seen.panels is not None
        slopes = work.slope[:, features].mT.contiguous().numpy()
        gradient = self._gradient["body.fc1.weight"].numpy()
        squares = hidden_kernels().differentiate(slopes, seen.panels.numpy(), features.start, gradient)
        work.norms[half] = math.sqrt(squares)

    def _convolve(self, work: Work, half: int, number: int) -> None:
        """The ``number``-th convolution from the top, backwards: the gradients of its weights and of what it saw."""
        layer, convolution = work.records[half][-1 - number], self._convolutions[-1 - number]
        if number:
            slopes = work.slopes[half].pop()
        else:
            side, flat = convolution.outputs, work.lower_slope[halves(len(work.slope))[half]]
            slopes = flat.view(len(flat), convolution.filters, side, side).permute(0, 2, 3, 1).flatten(2)
        transposed = self._prepared_online.transposed.get(f"{layer.name}.weight")
        below, self._at_points[half][layer.name] = convolution.backward(layer.inputs, layer.outputs, slopes, transposed)
        if below is not None:
            work.slopes[half].append(below)

    def _filter_pieces(self, _work: Work, chains: Sequence[Sequence[Piece]]) -> list[Piece]:
        by_convolution = zip(reversed(self._convolutions), *chains, strict=True)
        return [self._piece(done, self._add_halves, convolution) for convolution, *done in by_convolution]

    def _add_halves(self, convolution: Convolution) -> None:
        """The gradients of a convolution's weights and biases."""
        first, second = (slopes.pop(convolution.name) for slopes in self._at_points)
        weight, bias = (self._gradient[f"{convolution.name}.{kind}"] for kind in ("weight", "bias"))
        convolution.evaluate_filters_back(first.filters, second.filters, weight)
        torch.add(first.bias, second.bias, out=bias)

    def _add_shares(self) -> None:
        """They are added up already."""


def quarters(size: int) -> list[slice]:
    """The quarters of so many; the halves of their `halves`.

    Examples
    --------
    >>> quarters(6)
    [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None), slice(4, 6, None)]
    """
    return [
        slice(half.start + part.start, half.start + part.stop)
        for half in halves(size)
        for part in halves(half.stop - half.start)
    ]
