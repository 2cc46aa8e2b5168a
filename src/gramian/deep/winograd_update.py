"""Updates of Atari runs on a CPU whose convolutions have less to multiply (`gramian.deep.winograd`)."""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

import torch
from torch import Tensor

from gramian.deep.halves import HalvedUpdate, Pass, Piece, Work, halves
from gramian.deep.layout import Layout
from gramian.deep.losses import Objective
from gramian.deep.networks import Layer, NetworkSpec
from gramian.deep.optimiser import Adam
from gramian.deep.prepared import Prepared
from gramian.deep.state import State
from gramian.deep.winograd import EVALUATED, Convolution, Slopes, cells, tiled


def fits(spec: NetworkSpec, dtype: torch.dtype) -> bool:
    """Whether a run can be updated so: in float32, with pictures that are large enough, and with numba."""
    return dtype == torch.float32 and bool(tiled(spec)) and find_spec("numba") is not None


class Evaluated(Prepared):
    """`Prepared` parameters with the filters of convolutions at the points, ``[36, F, inputs]``."""

    def __init__(self, layout: Layout, row: Tensor, convolutions: Sequence[Convolution]) -> None:
        self._convolutions = {f"{each.name}.weight": each for each in convolutions}
        super().__init__(layout, row)

    def renew_convolutions(self) -> None:
        """See :meth:`Prepared.renew_convolutions`."""
        for name in self._copied():
            self.renew_convolution(name)

    def renew_convolution(self, name: str) -> None:
        """Evaluate what the original of these weights is now."""
        self._convolutions[name].evaluate_filters(self._originals[name], self.parameters[name])

    def _room(self, name: str) -> Tensor:
        convolution = self._convolutions[name]
        return self._originals[name].new_empty(EVALUATED, convolution.filters, convolution.inputs)


class WinogradUpdate(HalvedUpdate):
    """A `HalvedUpdate` in float32 whose convolutions have less to multiply. The kernels are loaded at the first one.

    What a convolution sees and gives is an image of `gramian.deep.winograd`, and its slopes are those of such images. A
    convolution's gradients at the points are added up over the halves before they become gradients of its weights.
    """

    _prepared_online: Evaluated

    def __init__(self, run: int, objective: Objective, adam: Adam, layout: Layout, state: State) -> None:
        self._convolutions = tiled(objective.spec)
        super().__init__(run, objective, adam, layout, state, partial(Evaluated, convolutions=self._convolutions))
        self._at_points: tuple[dict[str, Slopes], dict[str, Slopes]] = {}, {}
        """In each half, by the name of the convolution."""

    def _prepare(self, after: Sequence[Piece]) -> tuple[list[Piece], list[Piece]]:
        renew = self._prepared_online.renew_convolution
        return [self._piece(after, renew, f"{each.name}.weight") for each in self._convolutions], []

    def _look(self, seen: Pass, half: int) -> None:
        own, observations, inputs, _, records = seen
        samples, record = halves(len(observations))[half], records[half]
        images = cells(self._objective.spec, observations[samples])
        for convolution in self._convolutions:
            weight, bias = own[f"{convolution.name}.weight"], own[f"{convolution.name}.bias"]
            outputs = convolution.forward(images, weight, bias)
            if record is not None:
                record.append(Layer(convolution.name, images, outputs, convolution.stride, None))
            images = outputs
        last = self._convolutions[-1]
        outputs = images.unflatten(2, (last.outputs, last.filters)).permute(0, 3, 1, 2)
        inputs[samples].view(outputs.shape).copy_(outputs)

    def _convolve(self, work: Work, half: int, number: int) -> None:
        """The ``number``-th convolution from the top, backwards: the gradients of its weights and of what it saw."""
        layer, convolution = work.records[half][-1 - number], self._convolutions[-1 - number]
        if number:
            slopes = work.slopes[half].pop()
        else:
            side, flat = convolution.outputs, work.lower_slope[halves(len(work.slope))[half]]
            slopes = flat.view(len(flat), convolution.filters, side, side).permute(0, 2, 3, 1).flatten(2)
        weight = self._online[f"{layer.name}.weight"]
        below, self._at_points[half][layer.name] = convolution.backward(
            layer.inputs, layer.outputs, slopes, weight, wanted=convolution is not self._convolutions[0]
        )
        if below is not None:
            work.slopes[half].append(below)

    def _filter_pieces(self, _work: Work, chains: Sequence[Sequence[Piece]]) -> list[Piece]:
        by_convolution = zip(reversed(self._convolutions), *chains, strict=True)
        return [self._piece(done, self._add_halves, convolution) for convolution, *done in by_convolution]

    def _add_halves(self, convolution: Convolution) -> None:
        """The gradients of a convolution's weights and biases."""
        first, second = (slopes.pop(convolution.name) for slopes in self._at_points)
        weight, bias = (self._gradient[f"{convolution.name}.{kind}"] for kind in ("weight", "bias"))
        convolution.evaluate_filters_back(first.filters.add_(second.filters), weight)
        torch.add(first.bias, second.bias, out=bias)

    def _add_shares(self) -> None:
        """They are added up already."""
