"""Convolutions with few products: what is done to images and outputs so that the rest is a product of matrices.

A filter of r taps has m outputs on n = m + r - 1 neighbouring numbers d. A product of polynomials can be had from a
product at each of n points (Toom 1963, Cook 1966), and a filter is such a product transposed (Winograd 1980; Lavin &
Gray 2016 for networks): G and A evaluate at the points, and Bᵀ is what interpolates, transposed. With the points 0, 1,
-1 and ∞, or these and 2 and -2,

    y = Aᵀ [(G g) ∘ (Bᵀ d)]

where Bᵀ and A are the small matrices that the functions here write out, and G is `engines.winograd`'s. In two
dimensions that is done to the rows and to the columns of a tile of n×n: with six points 36 products make 5×5 outputs of
a filter of 2×2 taps, which would be 100, or 4×4 of one of 3×3, which would be 144; with four points 16 products make
3×3 outputs of a filter of 2×2 taps, which would be 36. Each of them is a sum over channels, so that they are products
of matrices, [tiles, channels] times [channels, filters].

| function | does | to make |
| --- | --- | --- |
| `evaluate` | Bᵀ d B | an image “at the points”: what is multiplied |
| `interpolate` | Aᵀ m A, bias, rectifier | outputs, from products |
| `interpolate_back` | rectifier, A ∂y Aᵀ | the gradient of products, from that of outputs |
| `evaluate_back` | B ∂v Bᵀ | the gradient of images, from that of what is multiplied |
| `forward`, `backward` | all of them, and the products | a few images at a time, so that a core's cache can hold them |

A convolution with a stride s and filters of r·s pixels is one of r taps without a stride, on cells of s×s pixels. An
image ``[H, W·C]`` has its channels last; a row of cells is s rows of it, each with s·C numbers of a cell.

Tiles lie side by side; where the outputs are no multiple of m, the last tile begins m before their end, and what it has
in common with the one before is made by both. Backwards it belongs to the one before.
"""

# mypy: disable-error-code="no-untyped-def"
# Vectors have no type in Python, and what is inlined may be given arrays of any.

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import inlined_kernel, kernel
from gramian.deep.engines.kernels.products import PANEL, Numbers, multiply
from gramian.deep.engines.kernels.vectors import load8, load16, passed, rectified, store, zeros8

Images: TypeAlias = NDArray[Any]
"""``[n, H, W·C]``, of float32 or, where they are pictures, of bytes"""
Starts: TypeAlias = NDArray[np.int64]
"""``[T]``: the first output of each tile, in both directions"""
Weights: TypeAlias = NDArray[np.float32]
"""``[F, C, size, size]``"""

LANES = 8
"""Numbers that are worked on at once."""


@kernel
def gather_cells(lines: NDArray[np.uint32], cells: NDArray[np.uint32]) -> None:
    """Put all pixels of a cell side by side.

    Parameters
    ----------
    lines
        ``[n, C, 4·H, W]``: what a cell has of a line of pixels is one number.
    cells
        ``[n, H, W, C·4]``, which are written.
    """
    size, height, width, _ = cells.shape
    for b in range(size):
        for y in range(height):
            for channel in range(lines.shape[1]):
                for line in range(4):
                    row, place = lines[b, channel, 4 * y + line], 4 * channel + line
                    for x in range(width):
                        cells[b, y, x, place] = row[x]


@kernel
def gather_taps(weight: Weights, stride: int, pictures: bool, taps: Numbers) -> None:
    """Put the taps of filters on cells in the order in which images are multiplied with them.

    Parameters
    ----------
    weight
        ``[F, C, size, size]``.
    stride
        Height and width of a cell.
    pictures
        Whether a cell has the pixels of a channel side by side, or the channels of a pixel.
    taps
        ``[taps², F/16, inputs, 16]``, which are written.
    """
    filters, channels, size, _ = weight.shape
    number = size // stride
    for block in range(filters // PANEL):
        for c in range(channels):
            for tap in range(number * number):
                top, left = tap // number * stride, tap % number * stride
                for y in range(stride):
                    for x in range(stride):
                        pixel = y * stride + x
                        lane = taps[tap, block, c * stride * stride + pixel if pictures else pixel * channels + c]
                        for f in range(PANEL):
                            lane[f] = weight[block * PANEL + f, c, top + y, left + x]


@kernel
def gather_transposed(weight: Weights, stride: int, taps: Numbers) -> None:
    """The same in the order in which gradients are multiplied, ``[taps², inputs/16, F, 16]``; not of pictures."""
    filters, channels, size, _ = weight.shape
    number = size // stride
    for f in range(filters):
        for block in range(channels // PANEL):
            for tap in range(number * number):
                top, left = tap // number * stride, tap % number * stride
                for y in range(stride):
                    for x in range(stride):
                        lane = taps[tap, (y * stride + x) * (channels // PANEL) + block, f]
                        for c in range(PANEL):
                            lane[c] = weight[f, block * PANEL + c, top + y, left + x]


@kernel
def evaluate_filters(matrix: Numbers, taps: Numbers, panels: Numbers) -> None:
    """Taps at the points: ``[points², taps²]`` times ``[taps², …]``, ``[points², …]``."""
    points, number = matrix.shape
    width = taps[0].size
    left, right, out = matrix.ravel(), taps.ravel(), panels.ravel()
    for place in range(0, width, PANEL):
        multiply(left, 0, number, 1, right, place, width, out, place, width, points, number, False)


@kernel
def evaluate_filters_back(
    matrix: Numbers, first: Numbers, second: Numbers, stride: int, pictures: bool, weight: Weights
) -> None:
    """The gradient of weights from two shares of it at the points, as `gather_taps` and `evaluate_filters` went.

    Parameters
    ----------
    matrix
        ``[taps², points²]``.
    first, second
        The shares, ``[points², F, inputs]``.
    weight
        ``[F, C, size, size]``, which is written.
    """
    filters, channels, size, _ = weight.shape
    (squared, points), (_, _, inputs) = matrix.shape, first.shape
    number, pixels, width = size // stride, stride * stride, filters * inputs
    sums, taps, flat = np.empty(points * PANEL, np.float32), np.empty(squared * PANEL, np.float32), matrix.ravel()
    for f in range(filters):
        for begin in range(0, inputs, PANEL):
            for p in range(points):
                place = p * width + f * inputs + begin
                store(load16(first, place) + load16(second, place), sums, p * PANEL)
            multiply(flat, 0, points, 1, sums, 0, PANEL, taps, 0, PANEL, squared, points, False)
            for i in range(PANEL):
                k = begin + i
                c, pixel = (k // pixels, k % pixels) if pictures else (k % channels, k // channels)
                y, x = pixel // stride, pixel % stride
                for top in range(number):
                    for left in range(number):
                        weight[f, c, top * stride + y, left * stride + x] = taps[(top * number + left) * PANEL + i]


@inlined_kernel
def _evaluate(points, source, at, step, out, to, jump):
    """Bᵀ times what lies from ``at`` on, every ``step``; goes from ``to`` on, every ``jump``."""
    a, b, c, d = load8(source, at), load8(source, at + step), load8(source, at + 2 * step), load8(source, at + 3 * step)
    if points == 4:
        store(c - a, out, to)
        store(c + b, out, to + jump)
        store(c - b, out, to + 2 * jump)
        store(d - b, out, to + 3 * jump)
        return
    two, four, five = np.float32(2), np.float32(4), np.float32(5)
    e, f = load8(source, at + 4 * step), load8(source, at + 5 * step)
    even, odd = e - four * c, d - four * b
    even_2, odd_2 = e - c, two * (d - b)
    store(four * a - five * c + e, out, to)
    store(even + odd, out, to + jump)
    store(even - odd, out, to + 2 * jump)
    store(even_2 + odd_2, out, to + 3 * jump)
    store(even_2 - odd_2, out, to + 4 * jump)
    store(four * b - five * d + f, out, to + 5 * jump)


@inlined_kernel
def _add(vector, out, place):
    store(load8(out, place) + vector, out, place)


@inlined_kernel
def _evaluate_back(points, source, at, step, out, to, jump):
    """B times what lies from ``at`` on, every ``step``; is added from ``to`` on, every ``jump``."""
    a, b, c, d = load8(source, at), load8(source, at + step), load8(source, at + 2 * step), load8(source, at + 3 * step)
    if points == 4:
        _add(zeros8() - a, out, to)
        _add(b - c - d, out, to + jump)
        _add(a + b + c, out, to + 2 * jump)
        _add(d, out, to + 3 * jump)
        return
    two, four, five = np.float32(2), np.float32(4), np.float32(5)
    e, f = load8(source, at + 4 * step), load8(source, at + 5 * step)
    even, odd, even_2, odd_2 = b + c, b - c, d + e, d - e
    _add(four * a, out, to)
    _add(four * (f - odd) - two * odd_2, out, to + jump)
    _add(zeros8() - five * a - four * even - even_2, out, to + 2 * jump)
    _add(odd + two * odd_2 - five * f, out, to + 3 * jump)
    _add(a + even + even_2, out, to + 4 * jump)
    _add(f, out, to + 5 * jump)


@inlined_kernel
def _interpolate(points, count, source, at, step):
    """Aᵀ times what lies from ``at`` on, every ``step``: five outputs, of which the first ``count`` are meant."""
    a, b, c, d = load8(source, at), load8(source, at + step), load8(source, at + 2 * step), load8(source, at + 3 * step)
    even, odd = b + c, b - c
    if points == 4:
        return a + even, odd, even + d, d, d
    two, four = np.float32(2), np.float32(4)
    e, f = load8(source, at + 4 * step), load8(source, at + 5 * step)
    even_2, odd_2 = d + e, two * (d - e)
    fourfold = four * even_2
    third = odd + four * odd_2
    # the last point belongs to the last output
    return (
        a + even + even_2,
        odd + odd_2,
        even + fourfold,
        third + f if count == 4 else third,
        even + four * fourfold + f,
    )


@inlined_kernel
def _interpolate_back(points, count, source, at, step, out, to, jump):
    """A times the ``count`` outputs from ``at`` on, every ``step``; goes from ``to`` on, every ``jump``."""
    a, b, c = load8(source, at), load8(source, at + step), load8(source, at + 2 * step)
    if points == 4:
        store(a, out, to)
        store(a + b + c, out, to + jump)
        store(a - b + c, out, to + 2 * jump)
        store(c, out, to + 3 * jump)
        return
    two, four = np.float32(2), np.float32(4)
    d = load8(source, at + 3 * step)
    e = load8(source, at + 4 * step) if count == 5 else zeros8()
    even, odd = c + e, b + d
    even_2, odd_2 = four * (c + four * e), two * (b + four * d)
    store(a, out, to)
    store(a + even + odd, out, to + jump)
    store(a + even - odd, out, to + 2 * jump)
    store(a + even_2 + odd_2, out, to + 3 * jump)
    store(a + even_2 - odd_2, out, to + 4 * jump)
    store(e if count == 5 else d, out, to + 5 * jump)


@inlined_kernel
def _seen(starts, points):
    """Cells that tiles see in each direction."""
    return starts[-1] + points


@kernel
def evaluate(
    images: Images,
    first: int,
    last: int,
    starts: Starts,
    points: int,
    lines: int,
    cell: int,
    room: Numbers,
    values: Numbers,
) -> None:
    """Bᵀ d B of all tiles of some images.

    Parameters
    ----------
    images
        ``[n, H, W·C]``.
    first, last
        Those from the first on, before the last.
    starts
        The first cell of each tile.
    points
        In each direction, 4 or 6.
    lines, cell
        Rows of an image in a row of cells, and numbers of a cell in each of them.
    room
        Memory to use, 8 · points numbers for each cell in a row.
    values
        ``[points², rows, lines · cell]`` with at least ``(last - first) · T · T`` rows, which are written.
    """
    tiles, seen, (height, width) = len(starts), _seen(starts, points), images.shape[1:]
    rows, inputs = values.shape[1:]
    for b in range(first, last):
        for y in range(tiles):
            row = ((b - first) * tiles + y) * tiles
            for line in range(lines):
                begin = (b * height + starts[y] * lines + line) * width
                for c in range(0, cell, LANES):
                    for x in range(seen):
                        _evaluate(points, images, begin + x * cell + c, lines * width, room, x * LANES, seen * LANES)
                    for p in range(points):
                        to = (points * p * rows + row) * inputs + line * cell + c
                        for x in range(tiles):
                            at = (p * seen + starts[x]) * LANES
                            _evaluate(points, room, at, LANES, values, to + x * inputs, rows * inputs)


@kernel
def evaluate_back(
    values: Numbers,
    first: int,
    last: int,
    starts: Starts,
    points: int,
    lines: int,
    cell: int,
    room: Numbers,
    images: Images,
) -> None:
    """B ∂v Bᵀ of all tiles, added up where they overlap; the arguments as for `evaluate`.

    Parameters
    ----------
    values
        ∂v, ``[points², rows, lines · cell]``.
    images
        ``[n, H, W·C]``, to some of which it is added.
    """
    tiles, seen, (height, width) = len(starts), _seen(starts, points), images.shape[1:]
    rows, inputs = values.shape[1:]
    for b in range(first, last):
        for y in range(tiles):
            row = ((b - first) * tiles + y) * tiles
            for line in range(lines):
                begin = (b * height + starts[y] * lines + line) * width
                for c in range(0, cell, LANES):
                    for place in range(0, points * seen * LANES, LANES):
                        store(zeros8(), room, place)
                    for p in range(points):
                        at = (points * p * rows + row) * inputs + line * cell + c
                        for x in range(tiles):
                            to = (p * seen + starts[x]) * LANES
                            _evaluate_back(points, values, at + x * inputs, rows * inputs, room, to, LANES)
                    for x in range(seen):
                        _evaluate_back(
                            points, room, x * LANES, seen * LANES, images, begin + x * cell + c, lines * width
                        )


@kernel
def interpolate(
    products: Numbers,
    first: int,
    last: int,
    starts: Starts,
    points: int,
    count: int,
    bias: Numbers,
    before: int,
    room: Numbers,
    images: Images,
) -> None:
    """The outputs Aᵀ m A of all tiles of some images, with their biases, rectified; the arguments as for `evaluate`.

    Parameters
    ----------
    products
        m, ``[points², rows, F]``.
    count
        Outputs of a tile in each direction.
    bias
        ``[F]``.
    before
        Rows and columns that are left out before the outputs.
    images
        ``[n, H, H·F]``, which are written where there are outputs.
    """
    tiles, side = len(starts), images.shape[1]
    rows, filters = products.shape[1:]
    for b in range(first, last):
        for y in range(tiles):
            for x in range(tiles):
                tile = ((b - first) * tiles + y) * tiles + x
                corner = ((b * side + before + starts[y]) * side + before + starts[x]) * filters
                for f in range(0, filters, LANES):
                    for q in range(points):
                        at, step, to = (q * rows + tile) * filters + f, points * rows * filters, q * LANES
                        o0, o1, o2, o3, o4 = _interpolate(points, count, products, at, step)
                        jump = points * LANES
                        store(o0, room, to)
                        store(o1, room, to + jump)
                        store(o2, room, to + 2 * jump)
                        if count > 3:
                            store(o3, room, to + 3 * jump)
                            if count > 4:
                                store(o4, room, to + 4 * jump)
                    shift = load8(bias, f)
                    for k in range(count):
                        o0, o1, o2, o3, o4 = _interpolate(points, count, room, k * points * LANES, LANES)
                        to = corner + k * side * filters + f
                        store(rectified(o0 + shift), images, to)
                        store(rectified(o1 + shift), images, to + filters)
                        store(rectified(o2 + shift), images, to + 2 * filters)
                        if count > 3:
                            store(rectified(o3 + shift), images, to + 3 * filters)
                            if count > 4:
                                store(rectified(o4 + shift), images, to + 4 * filters)


@kernel
def interpolate_back(
    slopes: Numbers,
    outputs: Numbers,
    first: int,
    last: int,
    starts: Starts,
    points: int,
    count: int,
    before: int,
    room: Numbers,
    products: Numbers,
) -> None:
    """A ∂y Aᵀ of all tiles; the arguments as for `interpolate`.

    Parameters
    ----------
    slopes, outputs
        The gradient with respect to the outputs, and these themselves, ``[n, H, H·F]``.
    room
        Memory to use, 16 · points · count numbers.
    products
        ∂m, ``[points², rows, F]``, which is written.
    """
    tiles, side = len(starts), outputs.shape[1]
    rows, filters = products.shape[1:]
    half = points * count * LANES  # the room has two parts
    for b in range(first, last):
        for y in range(tiles):
            for x in range(tiles):
                tile = ((b - first) * tiles + y) * tiles + x
                corner = ((b * side + before + starts[y]) * side + before + starts[x]) * filters
                # what the tile has in common with those before it belongs to them
                above = starts[y - 1] + count - starts[y] if y else 0
                left = starts[x - 1] + count - starts[x] if x else 0
                for f in range(0, filters, LANES):
                    for k in range(count):
                        for j in range(count):
                            at, to = corner + (k * side + j) * filters + f, (k * count + j) * LANES
                            if k < above or j < left:
                                store(zeros8(), room, to)
                            else:
                                store(passed(load8(slopes, at), load8(outputs, at)), room, to)
                    for k in range(count):
                        to = half + k * LANES
                        _interpolate_back(points, count, room, k * count * LANES, LANES, room, to, count * LANES)
                    for q in range(points):
                        at, to = half + q * count * LANES, (q * rows + tile) * filters + f
                        _interpolate_back(points, count, room, at, LANES, products, to, points * rows * filters)


@kernel
def forward(
    images: Images,
    starts: Starts,
    points: int,
    count: int,
    lines: int,
    cell: int,
    panels: Numbers,
    bias: Numbers,
    before: int,
    group: int,
    room: Numbers,
    values: Numbers,
    products: Numbers,
    outputs: Numbers,
) -> None:
    """A convolution with its rectifier, ``group`` images at a time.

    Parameters
    ----------
    panels
        The filters at the points, ``[points², F/16, inputs, 16]``.
    values, products
        Memory to use, ``[points², rows, inputs]`` and ``[points², rows, F]`` with at least ``group · T · T`` rows.
    """
    tiles, size = len(starts) ** 2, images.shape[0]
    squared, rows, inputs = values.shape
    filters = products.shape[2]
    flat_values, flat_products, flat_panels = values.ravel(), products.ravel(), panels.ravel()
    for first in range(0, size, group):
        last = min(first + group, size)
        evaluate(images, first, last, starts, points, lines, cell, room, values)
        for p in range(squared):
            for f in range(0, filters, PANEL):
                to, place = (p * filters + f) * inputs, p * rows * filters + f
                multiply(flat_values, p * rows * inputs, inputs, 1, flat_panels, to, PANEL, flat_products, place,
                         filters, (last - first) * tiles, inputs, False)  # fmt: skip
        interpolate(products, first, last, starts, points, count, bias, before, room, outputs)


@kernel
def backward(
    images: Images,
    outputs: Numbers,
    slopes: Numbers,
    starts: Starts,
    points: int,
    count: int,
    lines: int,
    cell: int,
    panels: Numbers,
    before: int,
    group: int,
    room: Numbers,
    values: Numbers,
    products: Numbers,
    below: Numbers,
    filter_slopes: Numbers,
    bias_slopes: Numbers,
) -> None:
    """The gradients of a convolution, ``group`` images at a time; the other arguments as for `forward`.

    Parameters
    ----------
    panels
        The transposed filters at the points, ``[points², inputs/16, F, 16]``; none where images need no gradient.
    below
        That of the images, to which it is added.
    filter_slopes
        That of the filters at the points, ``[points², F, inputs]``, to which it is added.
    bias_slopes
        That of the biases, ``[F]``, to which it is added.
    """
    tiles, size = len(starts) ** 2, images.shape[0]
    squared, rows, inputs = values.shape
    filters = products.shape[2]
    flat_values, flat_products, flat_panels = values.ravel(), products.ravel(), panels.ravel()
    flat_slopes = filter_slopes.ravel()
    for first in range(0, size, group):
        last = min(first + group, size)
        used = (last - first) * tiles
        evaluate(images, first, last, starts, points, lines, cell, room, values)
        interpolate_back(slopes, outputs, first, last, starts, points, count, before, room, products)
        for p in range(squared):
            for k in range(0, inputs, PANEL):
                at, to, place = p * rows * filters, p * rows * inputs + k, p * filters * inputs + k
                multiply(flat_products, at, 1, filters, flat_values, to, inputs, flat_slopes, place, inputs,
                         filters, used, True)  # fmt: skip
        for row in range(used):  # at 1 in both directions every output of a tile counts once, since A evaluates
            for f in range(0, filters, LANES):
                store(
                    load8(bias_slopes, f) + load8(products, ((points + 1) * rows + row) * filters + f), bias_slopes, f
                )
        if panels.size:
            for p in range(squared):
                for k in range(0, inputs, PANEL):
                    at, to, place = p * rows * filters, (p * inputs + k) * filters, p * rows * inputs + k
                    multiply(flat_products, at, filters, 1, flat_panels, to, PANEL, flat_values, place, inputs,
                             used, filters, False)  # fmt: skip
            evaluate_back(values, first, last, starts, points, lines, cell, room, below)
