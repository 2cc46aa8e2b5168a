"""Convolutions of Atari's networks on a CPU, with less to multiply.

Convolutions are most of an update, and a CPU is busy with their products all the time. A filter of r×r taps needs fewer
of them if all outputs of a tile are made at once, from what it and the image are at six points in both directions
(Winograd 1980, Lavin & Gray 2016; `gramian.deep.kernels.tiles` says how). With cells of pixels in place of strides,

| convolution | as taps on cells | outputs of a tile | products for these | directly |
| --- | --- | --- | ---: | ---: |
| 8×8, stride 4 | 2×2 on 4×4 pixels | 5×5 | 36 | 100 |
| 4×4, stride 2 | 2×2 on 2×2 pixels | 5×5 | 36 | 100 |
| 3×3, stride 1 | 3×3 on single ones | 4×4 | 36 | 144 |

Pictures of 84×84 pixels have 20×20, 9×9 and 7×7 outputs in network ``nature``, so that two of the three have tiles that
overlap: in all there are 2.8, 2.2 and 3.1 times fewer products, forwards and backwards. With the 21×21, 11×11 and 11×11
outputs of ``dopamine`` there are 2.0, 1.5 and 3.4 times fewer. They are float32 as any others. Rounding errors are
larger, since numbers at the points are: some 10⁻⁶ of an output, where direct sums have 10⁻⁷.
"""

import math
import threading
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.deep.networks import PIXELS, NetworkSpec, convolutions

POINTS = (0, 1, -1, 2, -2)
"""At which there are products; the sixth is ∞."""
SIDE = len(POINTS) + 1
EVALUATED = SIDE**2
ROOM_BYTES = 2**21
"""For numbers at the points at a time: they should stay in a cache until they are used."""
_SUM = SIDE * POINTS.index(1) + POINTS.index(1)
"""Where every output of a tile counts once: at 1 in both directions, since A evaluates."""


@cache
def _kernels() -> Any:
    return import_module("gramian.deep.kernels.tiles")  # numba comes with it


def filter_matrix(taps: int) -> NDArray[np.float64]:
    """G ``[6, taps]``: the taps as a polynomial at the six points, each divided by what Lagrange's formula wants.

    Examples
    --------
    >>> filter_matrix(2)[:3] * 12
    array([[ 3.,  0.],
           [-2., -2.],
           [-2.,  2.]])
    """
    rows = [
        [point**power / math.prod(point - other for other in POINTS if other != point) for power in range(taps)]
        for point in POINTS
    ]
    return np.array([*rows, [0.0] * (taps - 1) + [1.0]])


class Slopes(NamedTuple):
    """The gradients of a convolution's parameters."""

    filters: Tensor
    """At the points, ``[36, F, inputs]``."""
    bias: Tensor
    """``[F]``."""


class Convolution:
    """One of a network's convolutions, with its rectifier.

    Images are ``[n, height, width · C]``, channels last; the first convolution sees `cells` in place of pixels.

    Parameters
    ----------
    name
        Of its parameters.
    shape
        Of its weights, ``[F, C, size, size]``.
    stride
        Pixels from one output to the next.
    outputs
        In each direction, at least as many as a tile has.
    margin
        Zeros that the next convolution wants before and after these outputs, in both directions.
    first
        Whether it sees pictures, whose pixels are to be divided by 255.

    Examples
    --------
    >>> two_taps = Convolution("body.conv2", (1, 1, 4, 4), stride=2, outputs=5, margin=(0, 0), first=False)
    >>> filters = torch.empty(36, 1, 4)
    >>> two_taps.evaluate_filters(torch.ones(1, 1, 4, 4), filters)
    >>> two_taps.forward(torch.ones(1, 12, 12), filters, torch.zeros(1)).round()[0, 0]
    tensor([16., 16., 16., 16., 16.])
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], stride: int, outputs: int, margin: tuple[int, int], *, first: bool
    ) -> None:
        self.filters, channels, size, _ = shape
        self.name, self.stride, self.outputs = name, stride, outputs
        self.inputs = channels * stride**2
        """Numbers in a cell."""
        self.taps = size // stride
        self._count = SIDE + 1 - self.taps
        self._starts = np.array([*range(0, outputs - self._count, self._count), outputs - self._count])
        self._tiles = len(self._starts) ** 2
        self._before, self._side = margin[0], outputs + sum(margin)
        matrix = filter_matrix(self.taps)
        self._matrix = torch.tensor(np.kron(matrix, matrix) / (PIXELS if first else 1), dtype=torch.float32)
        # The numbers of a cell: of `cells` those of a channel lie side by side, of other images those of a line.
        self._lines, self._cell = (1, self.inputs) if first else (stride, stride * channels)
        self._taps = self.filters, channels, self.taps, stride, self.taps, stride
        self._order = (2, 4, 0, 1, 3, 5) if first else (2, 4, 0, 3, 5, 1)

    def evaluate_filters(self, weight: Tensor, out: Tensor) -> None:
        """Weights ``[F, C, size, size]`` at the points, ``[36, F, inputs]``."""
        taps = weight.view(self._taps).permute(self._order).reshape(self._matrix.shape[1], -1)
        torch.mm(self._matrix, taps, out=out.view(EVALUATED, -1))

    def evaluate_filters_back(self, slopes: Tensor, out: Tensor) -> None:
        """The gradient of the weights, from that at the points."""
        taps = out.view(self._taps).permute(self._order)
        taps.copy_(torch.mm(self._matrix.mT, slopes.view(EVALUATED, -1)).view(taps.shape))

    def forward(self, images: Tensor, filters: Tensor, bias: Tensor) -> Tensor:
        """The rectified outputs, ``[n, side, side · F]``, from filters at the points."""
        make = torch.empty if self._side == self.outputs else torch.zeros
        outputs = make(len(images), self._side, self._side * self.filters)
        seen, given, shifts, factors = images.numpy(), outputs.numpy(), bias.numpy(), filters.mT
        for part in self._parts(len(images)):
            room = self._room(part)
            self._evaluate(seen[part], room)
            torch.bmm(room.values, factors, out=room.products)
            lines = np.empty((5, SIDE, self.filters), np.float32)
            place = self._starts, self._count, shifts, self._before
            _kernels().interpolate(room.products_array, *place, lines, given[part])
        return outputs

    def backward(
        self, images: Tensor, outputs: Tensor, slopes: Tensor, filters: Tensor, *, wanted: bool
    ) -> tuple[Tensor | None, Slopes]:
        """The gradients of images, where they are wanted, and of parameters.

        Parameters
        ----------
        images, outputs
            As they were forwards.
        slopes
            The gradient of the outputs.
        filters
            At the points.
        """
        below = torch.empty(images.shape) if wanted else None
        here = Slopes(torch.empty_like(filters), filters.new_zeros(self.filters))
        seen, given, wished = images.numpy(), outputs.numpy(), slopes.numpy()
        for number, part in enumerate(self._parts(len(images))):
            room = self._room(part)
            self._evaluate(seen[part], room)
            lines = np.empty((11, 5, self.filters), np.float32)
            place = self._starts, self._count, self._before
            _kernels().interpolate_back(wished[part], given[part], *place, lines, room.products_array)
            torch.baddbmm(here.filters, room.products.mT, room.values, beta=min(number, 1), out=here.filters)
            here.bias.add_(room.products[_SUM].sum(0))
            if below is not None:
                torch.bmm(room.products, filters, out=room.values)
                lines = np.empty((SIDE, seen.shape[2]), np.float32)
                place = self._starts, self._lines, self._cell
                _kernels().evaluate_back(room.values_array, *place, lines, below.numpy()[part])
        return below, here

    def _evaluate(self, images: NDArray[Any], room: "_Room") -> None:
        lines = np.empty((SIDE, images.shape[2]), np.float32)
        _kernels().evaluate(images, self._starts, self._lines, self._cell, lines, room.values_array)

    def _parts(self, size: int) -> list[slice]:
        """So many images in parts of nearly one size."""
        bytes_each = 4 * EVALUATED * self._tiles * (self.inputs + self.filters)
        count = max(1, -(-size // max(1, ROOM_BYTES // bytes_each)))
        edges = [size * number // count for number in range(count + 1)]
        return [slice(*pair) for pair in pairwise(edges)]

    def _room(self, part: slice) -> "_Room":
        return _ROOMS.take((part.stop - part.start) * self._tiles, self.inputs, self.filters)


class _Room:
    """Memory for numbers at the points, as torch and as numpy see it."""

    def __init__(self, numbers: Tensor, rows: int, inputs: int, filters: int) -> None:
        sizes = [EVALUATED * rows * inputs, EVALUATED * rows * filters]
        values, products = numbers[: sum(sizes)].split(sizes)
        self.values, self.products = values.view(EVALUATED, rows, inputs), products.view(EVALUATED, rows, filters)
        self.values_array, self.products_array = self.values.numpy(), self.products.numpy()


class _Rooms(threading.local):
    """Memory that a thread uses again and again, so that it stays in the thread's cache."""

    def __init__(self) -> None:
        self._numbers = torch.empty(0)
        self._known: dict[tuple[int, int, int], _Room] = {}

    def take(self, rows: int, inputs: int, filters: int) -> _Room:
        """Room for images, ``[36, rows, inputs]``, and products, ``[36, rows, filters]``, until it is taken again."""
        key = rows, inputs, filters
        if key not in self._known:
            size = EVALUATED * rows * (inputs + filters)
            if size > len(self._numbers):
                with torch.inference_mode(False):  # so that it can be written to in any mode
                    self._numbers = torch.empty(size)
                self._known.clear()
            self._known[key] = _Room(self._numbers, *key)
        return self._known[key]


_ROOMS = _Rooms()


def cells(spec: NetworkSpec, pictures: Tensor) -> Tensor:
    """What the first convolution sees of pictures ``[n, C, H, W]``: all pixels of a cell side by side.

    Examples
    --------
    >>> spec = NetworkSpec("nature", (1, 84, 84), actions=6, features_dim=512)
    >>> lines = torch.arange(84, dtype=torch.uint8).view(84, 1).expand(2, 1, 84, 84)
    >>> cells(spec, lines)[0, :2, :6]
    tensor([[0, 0, 0, 0, 1, 1],
            [4, 4, 4, 4, 5, 5]], dtype=torch.uint8)
    """
    first, (size, channels) = tiled(spec)[0], pictures.shape[:2]
    stride, side = first.stride, first.outputs + first.taps - 1
    seen = spec.padded(pictures, first.taps * stride, stride)[..., : side * stride, : side * stride]
    if seen.dtype != torch.uint8:
        lines = seen.reshape(size, channels, side, stride, side, stride)
        return lines.permute(0, 2, 4, 1, 3, 5).flatten(2).float()
    out = torch.empty(size, side, side * first.inputs, dtype=torch.uint8)
    words = out.view(size, side, side, first.inputs).numpy().view(np.uint32)
    _kernels().gather_cells(seen.contiguous().numpy().view(np.uint32), words)
    return out


@cache
def tiled(spec: NetworkSpec) -> tuple[Convolution, ...]:
    """The convolutions of an Atari network, or none where one of them has fewer outputs than a tile.

    Examples
    --------
    >>> [each.inputs for each in tiled(NetworkSpec("nature", (4, 84, 84), actions=6, features_dim=512))]
    [64, 128, 64]
    >>> tiled(NetworkSpec("nature", (4, 36, 36), actions=6, features_dim=512))
    ()
    """
    channels, side, width = spec.observation_shape
    found: list[Convolution] = []
    layers = convolutions(spec)
    for number, (filters, size, stride) in enumerate(layers):
        outputs = (side + sum(spec.margin(side, size, stride)) - size) // stride + 1
        if side != width or outputs < SIDE + 1 - size // stride:
            return ()
        margin = (0, 0) if number + 1 == len(layers) else spec.margin(outputs, *layers[number + 1][1:])
        shape = filters, channels, size, size
        found.append(Convolution(f"body.conv{number + 1}", shape, stride, outputs, margin, first=number == 0))
        channels, side, width = filters, outputs, outputs
    return tuple(found)
