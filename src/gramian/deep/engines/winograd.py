"""Convolutions of Atari's networks on a CPU, with less to multiply.

Convolutions are most of an update, and a CPU is busy with their products all the time. A filter of r×r taps needs fewer
of them if all outputs of a tile are made at once, from what it and the image are at four or six points in both
directions (Winograd 1980, Lavin & Gray 2016; `engines.kernels.tiles` says how). With cells of pixels in place of
strides,

| convolution | as taps on cells | points | outputs of a tile | products for these | directly |
| --- | --- | ---: | --- | ---: | ---: |
| 8×8, stride 4 | 2×2 on 4×4 pixels | 6 | 5×5 | 36 | 100 |
| | | 4 | 3×3 | 16 | 36 |
| 4×4, stride 2 | 2×2 on 2×2 pixels | 6 | 5×5 | 36 | 100 |
| | | 4 | 3×3 | 16 | 36 |
| 3×3, stride 1 | 3×3 on single ones | 6 | 4×4 | 36 | 144 |

Where the outputs are no multiple of a tile's, tiles overlap, so that it hangs on their number which points are better.
Pictures of 84×84 pixels have 20×20, 9×9 and 7×7 outputs in network ``nature``: with 6, 4 and 6 points there are 2.8,
2.2 and 3.1 times fewer products, forwards and backwards. With the 21×21, 11×11 and 11×11 outputs of ``dopamine``, and
4, 4 and 6 points, there are 2.2, 1.9 and 3.4 times fewer. They are float32 as any others. Rounding errors are larger,
since numbers at the points are: some 10⁻⁶ of an output, where direct sums have 10⁻⁷.
"""

import math
import os
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.deep.agent.layout import Layout
from gramian.deep.agent.networks import PIXELS, NetworkSpec, Parameters, convolutions
from gramian.deep.engines.prepared import Prepared

POINTS = {4: (0, 1, -1), 6: (0, 1, -1, 2, -2)}
"""At which there are products, by their number; the last one is ∞."""
ROOM_BYTES = 2**19
"""For numbers at the points at a time: they should stay in a core's own cache until they are used."""
PANEL, LANES = 16, 8
"""Columns of a matrix that the kernels multiply at once, and numbers that they do all else to at once."""


@cache
def _kernels() -> Any:
    return import_module("gramian.deep.engines.kernels.tiles")  # numba comes with it


@cache
def hidden_kernels() -> Any:
    """The module `gramian.deep.engines.kernels.hidden`, with which numba comes."""
    return import_module("gramian.deep.engines.kernels.hidden")


def filter_matrix(taps: int, points: int) -> NDArray[np.float64]:
    """G ``[points, taps]``: the taps as a polynomial at the points, each divided by what Lagrange's formula wants.

    Examples
    --------
    >>> filter_matrix(2, points=6)[:3] * 12
    array([[ 3.,  0.],
           [-2., -2.],
           [-2.,  2.]])
    """
    finite = POINTS[points]
    rows = [
        [point**power / math.prod(point - other for other in finite if other != point) for power in range(taps)]
        for point in finite
    ]
    return np.array([*rows, [0.0] * (taps - 1) + [1.0]])


class Room(NamedTuple):
    """Memory for a convolution to use."""

    lines: NDArray[np.float32]
    """For what is between the two directions."""
    values: NDArray[np.float32]
    """For images at the points, ``[points², rows, inputs]``."""
    products: NDArray[np.float32]
    """``[points², rows, F]``."""


class _Rooms(threading.local):
    """Memory that a thread uses again and again, so that it stays in the thread's cache."""

    def __init__(self) -> None:
        self._numbers = torch.empty(0)
        self._known: dict[tuple[int, ...], Room] = {}

    def take(self, lines: int, points: int, rows: int, inputs: int, filters: int) -> Room:
        """Room for so many numbers of lines, images and products, until it is taken again."""
        key = lines, points, rows, inputs, filters
        if key not in self._known:
            sizes = [lines, points * rows * inputs, points * rows * filters]
            if sum(sizes) > len(self._numbers):
                with torch.inference_mode(False):  # so that it can be written to in any mode
                    self._numbers = torch.zeros(sum(sizes))
                self._known.clear()
            parts = [part.numpy() for part in self._numbers[: sum(sizes)].split(sizes)]
            self._known[key] = Room(parts[0], parts[1].reshape(points, rows, -1), parts[2].reshape(points, rows, -1))
        return self._known[key]


_ROOMS = _Rooms()
_NONE = np.zeros((0, 0, 0), np.float32)


class Slopes(NamedTuple):
    """The gradients of a convolution's parameters."""

    filters: Tensor
    """At the points, ``[points², F, inputs]``."""
    bias: Tensor
    """``[F]``."""


class Convolution:
    """One of a network's convolutions, with its rectifier.

    Images are ``[n, height, width · C]``, channels last; the first convolution sees `cells` in place of pixels. Its
    filters, and the numbers of a cell in a line of an image, are multiples of 16.

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
    >>> two_taps = Convolution("body.conv2", (16, 16, 4, 4), stride=2, outputs=5, margin=(0, 0), first=False)
    >>> filters = two_taps.empty_filters()
    >>> two_taps.evaluate_filters(torch.ones(16, 16, 4, 4), filters)
    >>> two_taps.forward(torch.ones(1, 12, 12 * 16), filters, torch.zeros(16)).round()[0, 0, ::16]
    tensor([256., 256., 256., 256., 256.])
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], stride: int, outputs: int, margin: tuple[int, int], *, first: bool
    ) -> None:
        self.filters, channels, size, _ = shape
        self.name, self.stride, self.outputs = name, stride, outputs
        self.inputs = channels * stride**2
        """Numbers in a cell."""
        self.taps = size // stride
        self.points = fewest_points(self.taps, outputs)
        """In each direction."""
        self._count = self.points + 1 - self.taps
        self._starts = np.array([*range(0, outputs - self._count, self._count), outputs - self._count])
        self._before, self._side = margin[0], outputs + sum(margin)
        matrix = filter_matrix(self.taps, self.points)
        self._matrix = (np.kron(matrix, matrix) / (PIXELS if first else 1)).astype(np.float32)
        self._matrix_back = np.ascontiguousarray(self._matrix.T)
        # The numbers of a cell: of `cells` those of a channel lie side by side, of other images those of a line.
        self._lines, self._cell = (1, self.inputs) if first else (stride, stride * channels)
        self._first = first
        seen = outputs + self.taps - 1
        self._lines_room = LANES * self.points * max(seen, 2 * self._count)

    def empty_filters(self) -> Tensor:
        """Room for filters at the points, ``[points², F/16, inputs, 16]``."""
        return torch.empty(self.points**2, self.filters // PANEL, self.inputs, PANEL)

    def empty_transposed(self) -> Tensor:
        """Room for transposed ones, ``[points², inputs/16, F, 16]``."""
        return torch.empty(self.points**2, self.inputs // PANEL, self.filters, PANEL)

    def evaluate_filters(self, weight: Tensor, out: Tensor, *, transposed: bool = False) -> None:
        """Weights ``[F, C, size, size]`` at the points, as `empty_filters` or `empty_transposed` has room for them."""
        taps = torch.empty(self.taps**2, *out.shape[1:]).numpy()
        if transposed:
            _kernels().gather_transposed(weight.numpy(), self.stride, taps)
        else:
            _kernels().gather_taps(weight.numpy(), self.stride, self._first, taps)
        _kernels().evaluate_filters(self._matrix, taps, out.numpy())

    def evaluate_filters_back(self, first: Tensor, second: Tensor, out: Tensor) -> None:
        """The gradient of the weights, from two shares of that at the points."""
        shares = first.numpy(), second.numpy()
        _kernels().evaluate_filters_back(self._matrix_back, *shares, self.stride, self._first, out.numpy())

    def empty_outputs(self, size: int) -> Tensor:
        """Room for outputs, ``[size, side, side · F]``, with zeros around them where these are wanted."""
        make = torch.empty if self._side == self.outputs else torch.zeros
        return make(size, self._side, self._side * self.filters)

    def forward(self, images: Tensor, filters: Tensor, bias: Tensor, out: Tensor | None = None) -> Tensor:
        """The rectified outputs, as `empty_outputs` has room for them, from filters at the points."""
        outputs = self.empty_outputs(len(images)) if out is None else out
        group, room = self._room(len(images))
        _kernels().forward(
            images.numpy(), *self._tiles, filters.numpy(), bias.numpy(), self._before, group, *room, outputs.numpy()
        )
        return outputs

    def backward(
        self, images: Tensor, outputs: Tensor, slopes: Tensor, transposed: Tensor | None
    ) -> tuple[Tensor | None, Slopes]:
        """The gradients of images, where they are wanted, and of parameters.

        Parameters
        ----------
        images, outputs
            As they were forwards.
        slopes
            The gradient of the outputs.
        transposed
            Filters at the points, transposed, where the gradient of the images is wanted.
        """
        below = None if transposed is None else torch.zeros(images.shape)
        here = Slopes(torch.zeros(self.points**2, self.filters, self.inputs), torch.zeros(self.filters))
        group, room = self._room(len(images))
        seen = (images.numpy(), outputs.numpy(), slopes.numpy())
        panels, wanted = (_NONE if tensor is None else tensor.numpy() for tensor in (transposed, below))
        made = (here.filters.numpy(), here.bias.numpy())
        _kernels().backward(*seen, *self._tiles, panels, self._before, group, *room, wanted, *made)
        return below, here

    @property
    def _tiles(self) -> tuple[NDArray[np.int64], int, int, int, int]:
        return self._starts, self.points, self._count, self._lines, self._cell

    def _room(self, size: int) -> tuple[int, Room]:
        """How many of so many images to work on at a time, and memory for what they are at the points."""
        tiles = len(self._starts) ** 2
        bytes_each = 4 * self.points**2 * tiles * (self.inputs + self.filters)
        parts = -(-max(size, 1) // max(1, ROOM_BYTES // bytes_each))
        group = -(-max(size, 1) // parts)
        # An odd number of rows: with a power of two, all points of a tile would want the same place of a cache.
        return group, _ROOMS.take(self._lines_room, self.points**2, group * tiles | 1, self.inputs, self.filters)


def fewest_points(taps: int, outputs: int) -> int:
    """With how many points in a direction there are the fewest products; of two numbers with as many, the smaller.

    Tiles with four points and three taps would have two outputs each: never fewer products than with six points, so
    that the kernels do not know them.

    Examples
    --------
    >>> [fewest_points(2, 20), fewest_points(2, 9), fewest_points(3, 7)]
    [6, 4, 6]
    """
    if taps != 2:
        return 6
    enough = [points for points in POINTS if outputs > points - taps]
    return min(enough, key=lambda points: points * -(-outputs // (points + 1 - taps)))


def cells(spec: NetworkSpec, pictures: Tensor, out: Tensor | None = None) -> Tensor:
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
    seen = pictures
    if not _whole(spec):
        seen = spec.padded(pictures, first.taps * stride, stride)[..., : side * stride, : side * stride]
    if out is None:
        out = empty_cells(spec, size, pictures.dtype)
    if seen.dtype != torch.uint8:
        lines = seen.reshape(size, channels, side, stride, side, stride)
        return out.view(size, side, side, channels, stride, stride).copy_(lines.permute(0, 2, 4, 1, 3, 5)).flatten(2)
    words = out.numpy().view(np.uint32).reshape(size, side, side, first.inputs // stride)
    _kernels().gather_cells(seen.contiguous().numpy().view(np.uint32), words)
    return out


def empty_cells(spec: NetworkSpec, size: int, dtype: torch.dtype) -> Tensor:
    """Room for the `cells` of so many pictures of a type."""
    first = tiled(spec)[0]
    side = first.outputs + first.taps - 1
    return torch.empty(size, side, side * first.inputs, dtype=dtype if dtype == torch.uint8 else torch.float32)


@cache
def _whole(spec: NetworkSpec) -> bool:
    """Whether the first convolution sees pictures as they are: no zeros around them, and no pixels left over."""
    first, sides = tiled(spec)[0], spec.observation_shape[1:]
    seen = (first.outputs + first.taps - 1) * first.stride
    margins = [spec.margin(side, first.taps * first.stride, first.stride) for side in sides]
    return all(side == seen and not any(margin) for side, margin in zip(sides, margins, strict=True))


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
        if side != width or outputs < (3 if size == 2 * stride else 4):
            return ()
        margin = (0, 0) if number + 1 == len(layers) else spec.margin(outputs, *layers[number + 1][1:])
        shape = filters, channels, size, size
        found.append(Convolution(f"body.conv{number + 1}", shape, stride, outputs, margin, first=number == 0))
        channels, side, width = filters, outputs, outputs
    return tuple(found)


def fits(spec: NetworkSpec, dtype: torch.dtype) -> bool:
    """Whether a network can be worked on so: one of Atari's in float32, with pictures that are large enough, and numba.

    Where numba is told to compile nothing, there are no kernels of vectors.
    """
    compiles = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and find_spec("numba") is not None
    return spec.sees_pictures and dtype == torch.float32 and bool(tiled(spec)) and compiles


class Evaluated(Prepared):
    """`Prepared` parameters with the filters of convolutions at the points, as `Convolution.forward` wants them."""

    def __init__(self, layout: Layout, row: Tensor, convolutions: Sequence[Convolution]) -> None:
        self._convolutions = {f"{each.name}.weight": each for each in convolutions}
        self.transposed: Parameters = {}
        """Those through which gradients pass, once they have been asked for."""
        super().__init__(layout, row)

    def add_transposed(self) -> None:
        """From now on, have the filters of all convolutions but the first transposed too."""
        _, *others = self._convolutions.items()
        self.transposed = {name: convolution.empty_transposed() for name, convolution in others}

    def renew_convolutions(self) -> None:
        """See :meth:`Prepared.renew_convolutions`."""
        for name in self._copied():
            self.renew_convolution(name)
        for name in self.transposed:
            self.renew_transposed(name)

    def renew_convolution(self, name: str) -> None:
        """Evaluate what the original of these weights is now."""
        self._convolutions[name].evaluate_filters(self._originals[name], self.parameters[name])

    def renew_transposed(self, name: str) -> None:
        """The same, transposed."""
        self._convolutions[name].evaluate_filters(self._originals[name], self.transposed[name], transposed=True)

    def _room(self, name: str) -> Tensor:
        return self._convolutions[name].empty_filters()
