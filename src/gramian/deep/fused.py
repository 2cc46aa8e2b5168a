"""The gradient of the Gram penalty as one kernel of a GPU (Triton).

In separate operations it is a mean, two products and what lies between them: little work, but five launches, which are
a twentieth of the update of a single run. Here every program makes the products of all samples by itself, since the
multiprocessors of the GPU have nothing else to do, and then its own columns of the gradient.

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
MOST_SAMPLES = 128
"""More do not fit into the registers of a program."""
COLUMNS = 16
"""Features whose gradient a program makes, the fewest that a product takes: with more programs all are done sooner."""
LEAST_CAPABILITY = (8, 0)
"""Of a GPU whose units multiply TF32, and whose memory on the chip is large enough for the tiles."""
TILE = 4096
"""Numbers that a program has in hand at a time. Few large steps: each waits for the one before it."""

if AVAILABLE:
    import triton
    import triton.language as tl

    kernel: Callable[[Any], Any] = triton.jit

    @kernel
    def _columns(
        features: tl.tensor, run: tl.tensor, first: tl.tensor,
        stride_run: tl.tensor, stride_sample: tl.tensor, stride_feature: tl.tensor,
        n: tl.constexpr, d: tl.constexpr, centered: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    ) -> tl.tensor:  # fmt: skip
        """X[run, :, first : first + columns], zero beyond n and d."""
        sample, feature = tl.arange(0, rows)[:, None], first + tl.arange(0, columns)[None, :]
        there = (sample < n) & (feature < d)
        place = features + run * stride_run + sample * stride_sample + feature * stride_feature
        x = tl.load(place, mask=there, other=0.0)
        if centered:
            x = tl.where(there, x - tl.sum(x, axis=0, keep_dims=True) / n, 0.0)
        return x

    @kernel
    def _gram_gradient(
        features: tl.tensor, gradient: tl.tensor,
        stride_run: tl.tensor, stride_sample: tl.tensor, stride_feature: tl.tensor,
        n: tl.constexpr, d: tl.constexpr, centered: tl.constexpr,
        rows: tl.constexpr, step: tl.constexpr, columns: tl.constexpr,
    ) -> None:  # fmt: skip
        run, own = tl.program_id(0).to(tl.int64), tl.program_id(1) * columns
        products = tl.zeros((rows, rows), dtype=tl.float32)
        for first in range(0, d, step):
            x = _columns(features, run, first, stride_run, stride_sample, stride_feature, n, d, centered, rows, step)
            # three products of TF32 parts: as exact as one of float32, on the units that are made for products
            products = tl.dot(x, tl.trans(x), products, input_precision="tf32x3")
        x = _columns(features, run, own, stride_run, stride_sample, stride_feature, n, d, centered, rows, columns)
        variance = tl.sum(x * x, axis=0, keep_dims=True) / n
        slope = 4.0 / n * (tl.dot(products, x, input_precision="tf32x3") / n - x * variance)
        sample, feature = tl.arange(0, rows)[:, None], own + tl.arange(0, columns)[None, :]
        tl.store(gradient + (run * n + sample) * d + feature, slope, mask=(sample < n) & (feature < d))


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
    return (4 / n * (x @ x.mT @ x / n - x * x.square().mean(-2, keepdim=True))).contiguous()


@torch.library.custom_op("gramian::gram_gradient", mutates_args=(), device_types="cuda")
def operation(features: Tensor, centered: bool) -> Tensor:
    """`gram_gradient` as one of torch's operations: its compiler cannot differentiate around a bare kernel."""
    if torch.cuda.get_device_capability(features.device) < LEAST_CAPABILITY:
        return plain(features, centered)
    runs, n, d = features.shape
    gradient = torch.empty((runs, n, d), device=features.device)
    rows = max(16, 1 << (n - 1).bit_length())  # a power of two, and the fewest that a product takes
    _gram_gradient[(runs, -(-d // COLUMNS))](
        features, gradient, *features.stride(), n, d, centered, rows, min(128, TILE // rows), COLUMNS,
        num_warps=2 if rows <= 32 else 8,
    )  # fmt: skip
    return gradient


operation.register_kernel("cpu")(plain)


@operation.register_fake
def _(features: Tensor, _centered: bool) -> Tensor:
    return torch.empty(features.shape, dtype=features.dtype, device=features.device)
