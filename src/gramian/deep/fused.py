"""The gradient of the Gram penalty as one kernel of a GPU (Triton).

In separate operations it is a mean, two products and what lies between them: little work, but five launches, which are
a twentieth of the update of a single run. Here every program makes the products of all samples by itself, since the
multiprocessors of the GPU have nothing else to do, and then its own columns of the gradient. Within a program each warp
sums the products over features of its own; the sums are added at the end.

Products are three products of TF32 parts: as exact as one of float32, on the units that are made for products. A single
one, where torch may round to TF32, would make the gradient too short by a thousandth: bits are cut off, not rounded.

`gramian.deep.slopes.gram` is the plain version, and the oracle.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from gramian.penalties import prepared

AVAILABLE = find_spec("triton") is not None
"""Triton comes with the builds of torch that know CUDA."""
MOST_SAMPLES = 64
"""More do not fit into a program, and are work enough for separate operations."""
LEAST_CAPABILITY = (8, 0)
"""Of a GPU whose units multiply TF32, and whose memory on the chip is large enough for the tiles."""
PRECISION = "tf32x3"
"""Of the products."""
PROGRAMS = 128
"""About as many as a large GPU has multiprocessors: beyond, a program had better make more columns."""

if AVAILABLE:
    import triton
    import triton.language as tl

    kernel: Callable[[Any], Any] = triton.jit

    @kernel
    def _columns(
        features: tl.tensor, sample: tl.tensor, feature: tl.tensor,
        stride_sample: tl.tensor, stride_feature: tl.tensor, n: tl.constexpr, d: tl.constexpr, centered: tl.constexpr,
    ) -> tl.tensor:  # fmt: skip
        """φ at these places, zero beyond n and d; less that of the first sample, where it is to be centred.

        That takes no sum over the samples, and what is far from zero loses no digits in what follows.
        """
        there = (sample < n) & (feature < d)
        x = tl.load(features + sample * stride_sample + feature * stride_feature, mask=there, other=0.0)
        if centered:
            x = tl.where(there, x - tl.load(features + feature * stride_feature, mask=feature < d, other=0.0), 0.0)
        return x

    @kernel
    def _gram_gradient(
        features: tl.tensor, gradient: tl.tensor,
        stride_run: tl.tensor, stride_sample: tl.tensor, stride_feature: tl.tensor,
        n: tl.constexpr, d: tl.constexpr, centered: tl.constexpr, precision: tl.constexpr,
        rows: tl.constexpr, parts: tl.constexpr, step: tl.constexpr, columns: tl.constexpr,
    ) -> None:  # fmt: skip
        features += tl.program_id(0).to(tl.int64) * stride_run
        sample, feature = tl.arange(0, rows)[None, :, None], tl.arange(0, step)[None, None, :]
        feature += tl.arange(0, parts)[:, None, None] * step
        sums = tl.zeros((parts, rows, rows), dtype=tl.float32)
        for first in range(0, d, parts * step):
            x = _columns(features, sample, first + feature, stride_sample, stride_feature, n, d, centered)
            sums = tl.dot(x, tl.permute(x, (0, 2, 1)), sums, input_precision=precision)
        products = tl.sum(sums, axis=0)
        sample, feature = tl.arange(0, rows)[:, None], tl.program_id(1) * columns + tl.arange(0, columns)[None, :]
        there = (sample < n) & (feature < d)
        x = _columns(features, sample, feature, stride_sample, stride_feature, n, d, centered)
        if centered:
            x = tl.where(there, x - tl.sum(x, axis=0, keep_dims=True) / n, 0.0)
        slope = tl.dot(products, x, input_precision=precision)
        if centered:  # the other side of the products
            slope -= tl.sum(tl.where(there, slope, 0.0), axis=0, keep_dims=True) / n
        slope = 4.0 / n * (slope / n - x * (tl.sum(x * x, axis=0, keep_dims=True) / n))
        tl.store(gradient + (tl.program_id(0).to(tl.int64) * n + sample) * d + feature, slope, mask=there)


def fits(features: Tensor) -> bool:
    """Whether `gram_gradient` can be asked for these features ``[G, n, d]``.

    Examples
    --------
    >>> fits(torch.zeros(1, 32, 512))  # not on a GPU
    False
    """
    return (
        AVAILABLE
        and features.is_cuda
        and features.ndim == 3
        and features.dtype == torch.float32
        and features.shape[1] <= MOST_SAMPLES
    )


def gram_gradient(features: Tensor, *, centered: bool) -> Tensor:
    """4/n · (GX - X∘v) of features ``[G, n, d]``, see `gramian.deep.slopes`; float32, on a GPU."""
    gradient: Tensor = operation(features, centered)
    return gradient


def plain(features: Tensor, centered: bool) -> Tensor:
    """The same in several operations, where there are no units for products of TF32."""
    x = prepared(features, centered)
    n = x.shape[-2]
    gradient = 4 / n * (x @ x.mT @ x / n - x * x.square().mean(-2, keepdim=True))
    return gradient.to(features.dtype).contiguous()  # it may be float64, where products of float32 are rounded


@torch.library.custom_op("gramian::gram_gradient", mutates_args=(), device_types="cuda")
def operation(features: Tensor, centered: bool) -> Tensor:
    """`gram_gradient` as one of torch's operations: its compiler cannot differentiate around a bare kernel."""
    if torch.cuda.get_device_capability(features.device) < LEAST_CAPABILITY:
        return plain(features, centered)
    runs, n, d = features.shape
    gradient = features.new_empty((runs, n, d))
    rows = max(16, 1 << (n - 1).bit_length())  # a power of two, and the fewest that a product takes
    parts, step, warps = shape(rows)
    columns = columns_of(runs, d)
    _gram_gradient[(runs, -(-d // columns))](
        features, gradient, *features.stride(), n, d, centered, PRECISION,
        rows, parts, step, columns, num_warps=warps, num_stages=2,
    )  # fmt: skip
    return gradient


def shape(rows: int) -> tuple[int, int, int]:
    """How a program goes through the features: parts at a time, features of a part, warps.

    Few large steps, since each waits for the one before it; as large as the 99 KB allow that a multiprocessor of any
    GPU of `LEAST_CAPABILITY` has for them.
    """
    return (4, 32, 4) if rows <= 32 else (1, 64, 8)


def columns_of(runs: int, d: int) -> int:
    """How many columns of the gradient a program makes.

    Examples
    --------
    >>> columns_of(1, 512), columns_of(12, 512)
    (16, 32)
    """
    columns = 16  # the fewest that a product takes: with more programs all are done sooner
    while columns < 64 and runs * d >= 2 * columns * PROGRAMS:
        columns *= 2
    return columns


operation.register_kernel("cpu")(plain)


@operation.register_fake
def _(features: Tensor, _centered: bool) -> Tensor:
    return torch.empty(features.shape, dtype=features.dtype, device=features.device)
