"""The gradient of the Gram penalty as two kernels of a GPU (Triton).

In separate operations it is a mean, two products and what lies between them: little work, but where the runs are few
the products have one program each, which goes through all features, one after the other. Here the features are divided
into blocks, with a program for each:

1. each centres its own features and multiplies all samples by them, a part of XXᵀ;
2. each adds up the parts, in their order, and makes its own columns of the gradient.

Products are of float32, whatever torch may round: rounded to TF32, the gradient would be too short by a thousandth.

`gramian.deep.agent.slopes.gram` is the plain version, and the oracle.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gramian.penalties import prepared

try:
    if torch.version.cuda is None:
        raise ImportError("a build of torch that knows no CUDA needs no kernels")
    import triton
    import triton.language as tl
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True
"""Triton comes with the builds of torch that know CUDA."""
MOST_SAMPLES = 64
"""More do not fit into a program, and are work enough for separate operations."""
COLUMNS = 64
"""Features of a program."""
WARPS = 4
"""Of a program."""

if AVAILABLE:
    kernel: Callable[[Any], Any] = triton.jit

    @kernel
    def _multiply(
        features: tl.tensor, gradient: tl.tensor, parts: tl.tensor,
        from_run: tl.tensor, from_sample: tl.tensor, from_feature: tl.tensor,
        to_run: tl.tensor, to_sample: tl.tensor, to_feature: tl.tensor,
        n: tl.constexpr, d: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr, centered: tl.constexpr,
    ) -> None:  # fmt: skip
        """Some columns of X, in the place of their gradient, and their part of XXᵀ."""
        sample, feature = tl.arange(0, rows)[:, None], tl.program_id(1) * columns + tl.arange(0, columns)[None, :]
        there = (sample < n) & (feature < d)
        features += tl.program_id(0).to(tl.int64) * from_run
        x = tl.load(features + sample * from_sample + feature * from_feature, mask=there, other=0.0)
        if centered:  # twice: a mean of large numbers is itself rounded
            x = tl.where(there, x - tl.sum(x, axis=0, keep_dims=True) / n, 0.0)
            x = tl.where(there, x - tl.sum(x, axis=0, keep_dims=True) / n, 0.0)
        gradient += tl.program_id(0).to(tl.int64) * to_run
        tl.store(gradient + sample * to_sample + feature * to_feature, x, mask=there)
        products = tl.dot(x, tl.trans(x), input_precision="ieee")
        place = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)).to(tl.int64) * rows * rows
        tl.store(parts + place + sample * rows + tl.arange(0, rows)[None, :], products)

    @kernel
    def _descend(
        gradient: tl.tensor, parts: tl.tensor,
        to_run: tl.tensor, to_sample: tl.tensor, to_feature: tl.tensor,
        n: tl.constexpr, d: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr, count: tl.constexpr,
    ) -> None:  # fmt: skip
        """Some columns of the gradient, in the place of X, from all parts of XXᵀ."""
        sample, feature = tl.arange(0, rows)[:, None], tl.program_id(1) * columns + tl.arange(0, columns)[None, :]
        there = (sample < n) & (feature < d)
        gradient += tl.program_id(0).to(tl.int64) * to_run + sample * to_sample + feature * to_feature
        x = tl.load(gradient, mask=there, other=0.0)
        parts += tl.program_id(0).to(tl.int64) * count * rows * rows + sample * rows + tl.arange(0, rows)[None, :]
        products = tl.load(parts)
        for part in tl.static_range(1, count):
            products += tl.load(parts + part * rows * rows)
        slope = tl.dot(products, x, input_precision="ieee")
        slope = 4.0 / n * (slope / n - x * (tl.sum(x * x, axis=0, keep_dims=True) / n))
        tl.store(gradient, slope, mask=there)


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
    """4/n · (GX - X∘v) of features ``[G, n, d]``, see `gramian.deep.agent.slopes`; float32, on a GPU."""
    gradient: Tensor = operation(features, centered)
    return gradient


def plain(features: Tensor, centered: bool) -> Tensor:
    """The same in several operations, for whoever asks on a CPU."""
    x = prepared(features, centered)
    n = x.shape[-2]
    gradient = 4 / n * (x @ x.mT @ x / n - x * x.square().mean(-2, keepdim=True))
    # It may be float64, where products of float32 are rounded.
    return torch.empty_like(features).copy_(gradient)


@torch.library.custom_op("gramian::gram_gradient", mutates_args=(), device_types="cuda")
def operation(features: Tensor, centered: bool) -> Tensor:
    """`gram_gradient` as one of torch's operations: its compiler cannot differentiate around a bare kernel."""
    with torch.cuda.device(features.device):  # on which Triton launches, whatever its arguments are on
        return launch(features, centered)


def launch(features: Tensor, centered: bool) -> Tensor:
    """Let the kernels do it, on the current device."""
    runs, n, d = features.shape
    gradient = torch.empty_like(features)
    rows = max(16, 1 << (n - 1).bit_length())  # a power of two, and the fewest that a product takes
    count = -(-d // COLUMNS)
    parts = features.new_empty((runs, count, rows, rows))
    grid, sizes, strides = (runs, count), (n, d, rows, COLUMNS), gradient.stride()
    _multiply[grid](features, gradient, parts, *features.stride(), *strides, *sizes, centered, num_warps=WARPS)
    _descend[grid](gradient, parts, *strides, *sizes, count, num_warps=WARPS)
    return gradient


operation.register_kernel("cpu")(plain)


@operation.register_fake
def _(features: Tensor, _centered: bool) -> Tensor:
    return torch.empty_like(features)
