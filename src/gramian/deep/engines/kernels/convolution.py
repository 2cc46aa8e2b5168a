"""A convolution with 3×3 filters of pictures that are nearly empty, as those of MinAtar are.

A picture has some tens of cells that are not zero among its 400 to 1,000. A cell of value v at (c, y, x) adds v times
the filter's weight (c, i, j) to the filter's output at (y - i, x - j): nine small additions, and nothing need be done
for the other cells. The gradient of the weights goes the same ways back.

While they are summed up, the outputs lie as [cell, filter], and the weights as [c, i, 2 - j, filter], so that what a
cell adds to a row of outputs is contiguous in both.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import kernel
from gramian.deep.engines.kernels.matrices import Matrix, Vector

SIZE = 3
"""Height and width of a filter; the stride is 1."""

Pictures: TypeAlias = NDArray[Any]
"""``[B, C, H, W]``, of integers"""
Places: TypeAlias = NDArray[np.int32]
"""``[B, C·H·W]``: the cells that are not zero, each as c·2¹⁶ + y·2⁸ + x"""
Counts: TypeAlias = NDArray[np.int64]
"""``[B]``: how many of them there are"""
Filters: TypeAlias = NDArray[np.float32]
"""``[F, C, 3, 3]``"""


@kernel
def find(pictures: Pictures, places: Places, counts: Counts) -> None:
    """Note the cells that are not zero."""
    batch, channels, height, width = pictures.shape
    for b in range(batch):
        noted, count = places[b], 0
        for c in range(channels):
            for y in range(height):
                row = pictures[b, c, y]
                for x in range(width):
                    noted[count] = (c << 16) + (y << 8) + x  # overwritten, unless it counts
                    count += row[x] != 0
        counts[b] = count


@kernel
def convolve(
    pictures: Pictures,
    places: Places,
    counts: Counts,
    filters: Filters,
    bias: Vector,
    taps: Vector,
    sums: Vector,
    out: Matrix,
) -> None:
    """The rectified outputs of a convolution, ``[B, F·H'·W']``, of cells that `find` noted.

    ``taps`` ``[C·9·F]`` and ``sums`` ``[H'·W'·F]`` are workspace.
    """
    number, channels = filters.shape[:2]
    cells = sums.size // number
    for f in range(number):
        for c in range(channels):
            for i in range(SIZE):
                for j in range(SIZE):
                    taps[((c * SIZE + i) * SIZE + SIZE - 1 - j) * number + f] = filters[f, c, i, j]
    for b in range(pictures.shape[0]):
        sums[:] = np.float32(0)
        spread(pictures[b], places[b, : counts[b]], taps, sums, number, False)
        outputs = out[b]
        for f in range(number):
            for cell in range(cells):
                outputs[f * cells + cell] = max(sums[cell * number + f] + bias[f], np.float32(0))


@kernel
def convolve_back(
    pictures: Pictures,
    places: Places,
    counts: Counts,
    outputs: Matrix,
    gradients: Matrix,
    taps: Vector,
    sums: Vector,
    filters: Filters,
    bias: Vector,
) -> None:
    """The gradients ``filters`` and ``bias`` from those of the rectified ``outputs``, ``gradients`` ``[B, F·H'·W']``.

    The other parameters are those of `convolve`.
    """
    number, channels = filters.shape[:2]
    cells = sums.size // number
    taps[:] = bias[:] = np.float32(0)
    for b in range(pictures.shape[0]):
        seen, gradient = outputs[b], gradients[b]
        for f in range(number):
            total = np.float32(0)
            for cell in range(cells):
                own = gradient[f * cells + cell] if seen[f * cells + cell] > 0 else np.float32(0)
                sums[cell * number + f] = own
                total += own
            bias[f] += total
        spread(pictures[b], places[b, : counts[b]], taps, sums, number, True)
    for f in range(number):
        for c in range(channels):
            for i in range(SIZE):
                for j in range(SIZE):
                    filters[f, c, i, j] = taps[((c * SIZE + i) * SIZE + SIZE - 1 - j) * number + f]


@kernel
def spread(picture: Pictures, places: NDArray[np.int32], taps: Vector, sums: Vector, number: int, back: bool) -> None:
    """Add what each cell adds to the outputs, or where it is the way ``back`` to the gradients of the weights."""
    height, width = picture.shape[1] - SIZE + 1, picture.shape[2] - SIZE + 1
    for place in places:
        c, y, x = place >> 16, (place >> 8) & 255, place & 255
        value = np.float32(picture[c, y, x])
        first, last = max(x - SIZE + 1, 0), min(x, width - 1)
        length = (last - first + 1) * number
        for row in range(max(y - SIZE + 1, 0), min(y, height - 1) + 1):
            begin = (row * width + first) * number
            tap = ((c * SIZE + y - row) * SIZE + SIZE - 1 - x + first) * number
            cell, weights = sums[begin : begin + length], taps[tap : tap + length]
            if back:
                for k in range(length):
                    weights[k] += value * cell[k]
            else:
                for k in range(length):
                    cell[k] += value * weights[k]
