"""Convolutions with few products: what is done to images and outputs so that the rest is a product of matrices.

A filter of r taps has m outputs on m + r - 1 = 6 neighbouring numbers d. A product of polynomials can be had from a
product at each of six points (Toom 1963, Cook 1966), and a filter is such a product transposed (Winograd 1980; Lavin &
Gray 2016 for networks): G and A evaluate at the points, and Bᵀ is what interpolates, transposed. With the points 0, 1,
-1, 2, -2 and ∞

    y = Aᵀ [(G g) ∘ (Bᵀ d)]

where Bᵀ and A are the small matrices that the functions here write out, and G is `gramian.deep.winograd`'s. In two
dimensions that is done to the rows and to the columns of a tile of 6×6: 36 products make 5×5 outputs of a filter of
2×2 taps, which would be 100, or 4×4 of one of 3×3, which would be 144. Each of the 36 is a sum over channels, so that
they are products of matrices, [tiles, channels] times [channels, filters].

| function | does | to make |
| --- | --- | --- |
| `evaluate` | Bᵀ d B | an image “at the points”: what is multiplied |
| `interpolate` | Aᵀ m A, bias, rectifier | outputs, from products |
| `interpolate_back` | rectifier, A ∂y Aᵀ | the gradient of products, from that of outputs |
| `evaluate_back` | B ∂v Bᵀ | the gradient of images, from that of what is multiplied |

A convolution with a stride s and filters of r·s pixels is one of r taps without a stride, on cells of s×s pixels. An
image ``[H, W·C]`` has its channels last; a row of cells is s rows of it, each with s·C numbers of a cell.

Tiles lie side by side; where the outputs are no multiple of m, the last tile begins m before their end, and what it has
in common with the one before is made by both. Backwards it belongs to the one before.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.compiled import inlined_kernel, kernel

Numbers: TypeAlias = NDArray[np.float32]
Images: TypeAlias = NDArray[Any]
"""``[n, H, W·C]``"""
Starts: TypeAlias = NDArray[np.int64]
"""``[T]``: the first output of each tile, in both directions"""

POINTS = 6


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


@inlined_kernel
def _evaluate(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Bᵀ times six numbers."""
    two, four, five = np.float32(2), np.float32(4), np.float32(5)
    even, odd = e - four * c, d - four * b
    even_2, odd_2 = e - c, two * (d - b)
    return four * a - five * c + e, even + odd, even - odd, even_2 + odd_2, even_2 - odd_2, four * b - five * d + f


@inlined_kernel
def _evaluate_back(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """B times six numbers."""
    two, four, five = np.float32(2), np.float32(4), np.float32(5)
    even, odd, even_2, odd_2 = b + c, b - c, d + e, d - e
    return (
        four * a,
        four * (f - odd) - two * odd_2,
        -five * a - four * even - even_2,
        odd + two * odd_2 - five * f,
        a + even + even_2,
        f,
    )


@inlined_kernel
def _interpolate(a: Any, b: Any, c: Any, d: Any, e: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Aᵀ times six numbers, without the last, which is added to the last output."""
    two, four = np.float32(2), np.float32(4)
    even, odd, even_2, odd_2 = b + c, b - c, d + e, two * (d - e)
    fourfold = four * even_2
    return a + even + even_2, odd + odd_2, even + fourfold, odd + four * odd_2, even + four * fourfold


@inlined_kernel
def _interpolate_back(a: Any, b: Any, c: Any, d: Any, e: Any) -> tuple[Any, Any, Any, Any, Any]:
    """A times five numbers, without the last row, which is the last number."""
    two, four = np.float32(2), np.float32(4)
    even, odd = c + e, b + d
    even_2, odd_2 = four * (c + four * e), two * (b + four * d)
    return a, a + even + odd, a + even - odd, a + even_2 + odd_2, a + even_2 - odd_2


@inlined_kernel
def _rectify(x: Any) -> Any:
    """max(x, 0), and NaN where x is."""
    return np.float32(0) if x < np.float32(0) else x


@kernel
def evaluate(images: Images, starts: Starts, lines: int, cell: int, lines_6: Numbers, values: Numbers) -> None:
    """Bᵀ d B of all tiles.

    Parameters
    ----------
    images
        ``[n, H, W·C]``.
    starts
        The first cell of each tile.
    lines, cell
        Rows of an image in a row of cells, and numbers of a cell in each of them.
    lines_6
        Memory to use, ``[6, W·C]``.
    values
        ``[36, n·T·T, lines · cell]``, which are written.
    """
    tiles, width = len(starts), images.shape[2]
    u0, u1, u2, u3, u4, u5 = lines_6[0], lines_6[1], lines_6[2], lines_6[3], lines_6[4], lines_6[5]
    for b in range(images.shape[0]):
        for y in range(tiles):
            for line in range(lines):
                first, image = starts[y] * lines + line, images[b]
                i0, i1, i2 = image[first], image[first + lines], image[first + 2 * lines]
                i3, i4, i5 = image[first + 3 * lines], image[first + 4 * lines], image[first + 5 * lines]
                for j in range(width):
                    u0[j], u1[j], u2[j], u3[j], u4[j], u5[j] = _evaluate(
                        np.float32(i0[j]),
                        np.float32(i1[j]),
                        np.float32(i2[j]),
                        np.float32(i3[j]),
                        np.float32(i4[j]),
                        np.float32(i5[j]),
                    )
                begin, end = line * cell, (line + 1) * cell
                for p in range(POINTS):
                    for x in range(tiles):
                        row, seen = (b * tiles + y) * tiles + x, lines_6[p, starts[x] * cell :]
                        s1, s2, s3 = seen[cell:], seen[2 * cell :], seen[3 * cell :]
                        s4, s5 = seen[4 * cell :], seen[5 * cell :]
                        v0, v1 = values[POINTS * p + 0, row, begin:end], values[POINTS * p + 1, row, begin:end]
                        v2, v3 = values[POINTS * p + 2, row, begin:end], values[POINTS * p + 3, row, begin:end]
                        v4, v5 = values[POINTS * p + 4, row, begin:end], values[POINTS * p + 5, row, begin:end]
                        for c in range(cell):
                            v0[c], v1[c], v2[c], v3[c], v4[c], v5[c] = _evaluate(
                                seen[c], s1[c], s2[c], s3[c], s4[c], s5[c]
                            )


@kernel
def evaluate_back(slopes: Numbers, starts: Starts, lines: int, cell: int, lines_6: Numbers, images: Numbers) -> None:
    """B ∂v Bᵀ of all tiles, added up where they overlap; the arguments as for `evaluate`.

    Parameters
    ----------
    slopes
        ∂v, ``[36, n·T·T, lines · cell]``.
    images
        ``[n, H, W·C]``, which are written.
    """
    tiles, width = len(starts), images.shape[2]
    u0, u1, u2, u3, u4, u5 = lines_6[0], lines_6[1], lines_6[2], lines_6[3], lines_6[4], lines_6[5]
    images[:] = np.float32(0)
    for b in range(images.shape[0]):
        for y in range(tiles):
            for line in range(lines):
                begin, end = line * cell, (line + 1) * cell
                lines_6[:] = np.float32(0)
                for p in range(POINTS):
                    for x in range(tiles):
                        row, seen = (b * tiles + y) * tiles + x, lines_6[p, starts[x] * cell :]
                        s1, s2, s3 = seen[cell:], seen[2 * cell :], seen[3 * cell :]
                        s4, s5 = seen[4 * cell :], seen[5 * cell :]
                        v0, v1 = slopes[POINTS * p + 0, row, begin:end], slopes[POINTS * p + 1, row, begin:end]
                        v2, v3 = slopes[POINTS * p + 2, row, begin:end], slopes[POINTS * p + 3, row, begin:end]
                        v4, v5 = slopes[POINTS * p + 4, row, begin:end], slopes[POINTS * p + 5, row, begin:end]
                        for c in range(cell):
                            d0, d1, d2, d3, d4, d5 = _evaluate_back(v0[c], v1[c], v2[c], v3[c], v4[c], v5[c])
                            seen[c] += d0
                            s1[c] += d1
                            s2[c] += d2
                            s3[c] += d3
                            s4[c] += d4
                            s5[c] += d5
                first, image = starts[y] * lines + line, images[b]
                i0, i1, i2 = image[first], image[first + lines], image[first + 2 * lines]
                i3, i4, i5 = image[first + 3 * lines], image[first + 4 * lines], image[first + 5 * lines]
                for j in range(width):
                    d0, d1, d2, d3, d4, d5 = _evaluate_back(u0[j], u1[j], u2[j], u3[j], u4[j], u5[j])
                    i0[j] += d0
                    i1[j] += d1
                    i2[j] += d2
                    i3[j] += d3
                    i4[j] += d4
                    i5[j] += d5


@kernel
def interpolate(
    products: Numbers, starts: Starts, count: int, bias: Numbers, before: int, lines_5: Numbers, images: Numbers
) -> None:
    """The outputs Aᵀ m A of all tiles, with their biases, rectified.

    Parameters
    ----------
    products
        m, ``[36, n·T·T, F]``.
    starts
        The first output of each tile.
    count
        Outputs of a tile in each direction, 4 or 5.
    bias
        ``[F]``.
    before
        Rows and columns that are left out before the outputs.
    lines_5
        Memory to use, ``[5, 6, F]``.
    images
        ``[n, H, W·F]``, which are written where there are outputs.
    """
    tiles, filters = len(starts), products.shape[2]
    # a fifth output is made in any case; it is right, and counts, where the last point belongs to it
    fourth, fifth = np.float32(count == 4), np.float32(count == 5)
    for b in range(images.shape[0]):
        for y in range(tiles):
            for x in range(tiles):
                tile = (b * tiles + y) * tiles + x
                for q in range(POINTS):
                    m0, m1, m2 = (
                        products[POINTS * 0 + q, tile],
                        products[POINTS * 1 + q, tile],
                        products[POINTS * 2 + q, tile],
                    )
                    m3, m4, m5 = (
                        products[POINTS * 3 + q, tile],
                        products[POINTS * 4 + q, tile],
                        products[POINTS * 5 + q, tile],
                    )
                    u0, u1, u2, u3, u4 = lines_5[0, q], lines_5[1, q], lines_5[2, q], lines_5[3, q], lines_5[4, q]
                    for f in range(filters):
                        a, i, c, d, e = _interpolate(m0[f], m1[f], m2[f], m3[f], m4[f])
                        u0[f], u1[f], u2[f] = a, i, c
                        u3[f], u4[f] = d + fourth * m5[f], e + fifth * m5[f]
                for k in range(count):
                    row = images[b, before + starts[y] + k, (before + starts[x]) * filters :]
                    m0, m1, m2 = lines_5[k, 0], lines_5[k, 1], lines_5[k, 2]
                    m3, m4, m5 = lines_5[k, 3], lines_5[k, 4], lines_5[k, 5]
                    o0, o1, o2, o3 = row[:filters], row[filters:], row[2 * filters :], row[3 * filters :]
                    if count == 4:
                        for f in range(filters):
                            a, i, c, d, _ = _interpolate(m0[f], m1[f], m2[f], m3[f], m4[f])
                            shift = bias[f]
                            o0[f], o1[f] = _rectify(a + shift), _rectify(i + shift)
                            o2[f], o3[f] = _rectify(c + shift), _rectify(d + m5[f] + shift)
                    else:
                        o4 = row[4 * filters :]
                        for f in range(filters):
                            a, i, c, d, e = _interpolate(m0[f], m1[f], m2[f], m3[f], m4[f])
                            shift = bias[f]
                            o0[f], o1[f] = _rectify(a + shift), _rectify(i + shift)
                            o2[f], o3[f] = _rectify(c + shift), _rectify(d + shift)
                            o4[f] = _rectify(e + m5[f] + shift)


@kernel
def interpolate_back(
    slopes: Numbers, outputs: Numbers, starts: Starts, count: int, before: int, lines_11: Numbers, products: Numbers
) -> None:
    """A ∂y Aᵀ of all tiles; the arguments as for `interpolate`.

    Parameters
    ----------
    slopes, outputs
        The gradient with respect to the outputs, and these themselves, ``[n, H, W·F]``.
    lines_11
        Memory to use, ``[11, 5, F]``.
    products
        ∂m, ``[36, n·T·T, F]``, which is written.
    """
    tiles, filters = len(starts), products.shape[2]
    fourth, fifth = np.float32(count == 4), np.float32(count == 5)
    passed, lines_6 = lines_11[:5], lines_11[5:]
    passed[:] = np.float32(0)
    for b in range(slopes.shape[0]):
        for y in range(tiles):
            for x in range(tiles):
                tile = (b * tiles + y) * tiles + x
                # what the tile has in common with those before it belongs to them
                above = starts[y - 1] + count - starts[y] if y else 0
                left = starts[x - 1] + count - starts[x] if x else 0
                for k in range(count):
                    for j in range(count):
                        place, line = (before + starts[x] + j) * filters, passed[k, j]
                        slope = slopes[b, before + starts[y] + k, place:]
                        output = outputs[b, before + starts[y] + k, place:]
                        if k < above or j < left:
                            line[:] = np.float32(0)
                        else:
                            for f in range(filters):
                                line[f] = slope[f] if output[f] > np.float32(0) else np.float32(0)
                for k in range(5):
                    y0, y1, y2, y3, y4 = passed[k, 0], passed[k, 1], passed[k, 2], passed[k, 3], passed[k, 4]
                    u0, u1, u2 = lines_6[0, k], lines_6[1, k], lines_6[2, k]
                    u3, u4, u5 = lines_6[3, k], lines_6[4, k], lines_6[5, k]
                    for f in range(filters):
                        u0[f], u1[f], u2[f], u3[f], u4[f] = _interpolate_back(y0[f], y1[f], y2[f], y3[f], y4[f])
                        u5[f] = fourth * y3[f] + fifth * y4[f]
                for q in range(POINTS):
                    y0, y1, y2, y3, y4 = lines_6[q, 0], lines_6[q, 1], lines_6[q, 2], lines_6[q, 3], lines_6[q, 4]
                    m0, m1, m2 = (
                        products[POINTS * 0 + q, tile],
                        products[POINTS * 1 + q, tile],
                        products[POINTS * 2 + q, tile],
                    )
                    m3, m4, m5 = (
                        products[POINTS * 3 + q, tile],
                        products[POINTS * 4 + q, tile],
                        products[POINTS * 5 + q, tile],
                    )
                    for f in range(filters):
                        m0[f], m1[f], m2[f], m3[f], m4[f] = _interpolate_back(y0[f], y1[f], y2[f], y3[f], y4[f])
                        m5[f] = fourth * y3[f] + fifth * y4[f]
