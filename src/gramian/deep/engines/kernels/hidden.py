"""The hidden layer of Atari's networks, whose weights are most of all parameters: products on one core, in float32.

Samples and inputs lie so that sixteen of them can be loaded at once, wherever they are the columns of a product:

| product | columns | which lie as |
| --- | --- | --- |
| Wxᵀ, forwards | samples | ``[B/16, I, 16]`` |
| ∂y W, backwards | inputs | ``[d, I]``, as W has them |
| ∂yᵀ x, the gradient of W | inputs | ``[I/16, B, 16]`` |
"""

import numpy as np

from gramian.core.compiled import kernel
from gramian.deep.engines.kernels.products import PANEL, Numbers, multiply
from gramian.deep.engines.kernels.vectors import load16, multiply_add, total, zeros16

DEPTH = 392
"""Inputs that are added up at a time: those of 16 samples stay in the innermost cache meanwhile."""
ROWS = 12
"""Rows of a gradient that are made at a time: they are still in a cache when their squares are added up."""


@kernel
def arrange(images: Numbers, filters: int, first: int, columns: Numbers, panels: Numbers) -> None:
    """Write what the last convolution gives to the places from which it is multiplied.

    Parameters
    ----------
    images
        ``[n, H, W · F]``, channels last.
    filters
        F.
    first
        The number of the first image in the batch.
    columns, panels
        ``[B/16, I, 16]`` and ``[I/16, B, 16]``, I = F·H·W, channels first, written where these images have their
        places. There may be no panels.
    """
    cells, width = images.shape[1] * images.shape[2] // filters, images.shape[2] // filters
    for b in range(images.shape[0]):
        sample = first + b
        block, lane = sample // PANEL, sample % PANEL
        for f in range(filters):
            for y in range(images.shape[1]):
                line = images[b, y]
                for x in range(width):
                    i = f * cells + y * width + x
                    columns[block, i, lane] = line[x * filters + f]
                    if panels.size:
                        panels[i // PANEL, sample, i % PANEL] = line[x * filters + f]


@kernel
def weigh_one(images: Numbers, filters: int, weight: Numbers, bias: Numbers, out: Numbers) -> None:
    """Wx + b of a single sample, whose weights have to be fetched from memory: one row after the other.

    Parameters
    ----------
    images
        What the last convolution gives, ``[1, H, W · F]``, channels last.
    filters
        F.
    weight, bias
        W ``[d, I]``, with channels first, and b ``[d]``.
    out
        ``[d]``.
    """
    height, width = images.shape[1], images.shape[2] // filters
    inputs = np.empty(weight.shape[1], np.float32)
    for f in range(filters):
        for y in range(height):
            for x in range(width):
                inputs[(f * height + y) * width + x] = images[0, y, x * filters + f]
    for row in range(weight.shape[0]):
        first, second = zeros16(), zeros16()
        place = row * inputs.size
        for i in range(0, inputs.size, 2 * PANEL):
            first = multiply_add(load16(weight, place + i), load16(inputs, i), first)
            second = multiply_add(load16(weight, place + i + PANEL), load16(inputs, i + PANEL), second)
        out[row] = bias[row] + total(first + second)


@kernel
def weigh(weight: Numbers, first: int, last: int, columns: Numbers, out: Numbers) -> None:
    """Some rows of Wxᵀ.

    Parameters
    ----------
    weight
        W, ``[d, I]``.
    first, last
        Rows from the first on, before the last.
    columns
        x, ``[B/16, I, 16]``.
    out
        ``[d, B]``, B a multiple of 16.
    """
    inputs, blocks = weight.shape[1], columns.shape[0]
    width = blocks * PANEL
    left, right, sums = weight.ravel(), columns.ravel(), out.ravel()
    for begin in range(0, inputs, DEPTH):
        depth = min(DEPTH, inputs - begin)
        for block in range(blocks):
            at, to, place = first * inputs + begin, (block * inputs + begin) * PANEL, first * width + block * PANEL
            multiply(left, at, inputs, 1, right, to, PANEL, sums, place, width, last - first, depth, begin > 0)


@kernel
def descend(slopes: Numbers, weight: Numbers, first: int, last: int, out: Numbers) -> None:
    """Some columns of ∂y W, in multiples of 16.

    Parameters
    ----------
    slopes
        ∂y, ``[B, d]``.
    weight
        W, ``[d, I]``.
    first, last
        Columns from the first on, before the last.
    out
        ``[B, I]``.
    """
    (size, features), inputs = slopes.shape, weight.shape[1]
    left, right, sums = slopes.ravel(), weight.ravel(), out.ravel()
    for i in range(first, last, PANEL):
        multiply(left, 0, features, 1, right, i, inputs, sums, i, inputs, size, features, False)


@kernel
def differentiate(slopes: Numbers, panels: Numbers, first: int, out: Numbers) -> float:
    """Some rows of ∂yᵀ x, and the sum of their squares.

    Parameters
    ----------
    slopes
        The columns of ∂y that they need, each as a row ``[d', B]``.
    panels
        x, ``[I/16, B, 16]``.
    first
        The first of these rows.
    out
        ``[d, I]``.
    """
    (features, size), inputs = slopes.shape, out.shape[1]
    left, right, sums, squares = slopes.ravel(), panels.ravel(), out.ravel(), 0.0
    for begin in range(0, features, ROWS):
        rows, place = min(ROWS, features - begin), (first + begin) * inputs
        for block in range(panels.shape[0]):
            to = block * size * PANEL
            multiply(left, begin * size, size, 1, right, to, PANEL, sums, place + block * PANEL, inputs,
                     rows, size, False)  # fmt: skip
        for row in range(rows):
            row_squares = zeros16()
            for i in range(place + row * inputs, place + (row + 1) * inputs, PANEL):
                numbers = load16(out, i)
                row_squares = multiply_add(numbers, numbers, row_squares)
            squares += total(row_squares)
    return squares
