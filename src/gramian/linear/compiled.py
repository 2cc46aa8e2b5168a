"""How the kernels of this package are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
"""Sums may be reordered, so that they vectorise; infinities and NaN keep their meaning: divergence is a result."""


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` with numba: without the interpreter lock, so that runs go over the cores in threads.

    The machine code is not kept on the disk: numba notices a change in a kernel's own file only, not in the files of
    the kernels that it calls, and compiling all of them takes a few seconds.
    """
    return cast("Kernel", numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(function))


def exact_kernel(function: Kernel) -> Kernel:
    """Compile ``function`` like `kernel`, but keep every operation in the order and rounding that is written."""
    return cast("Kernel", numba.njit(nogil=True, error_model="numpy")(function))
