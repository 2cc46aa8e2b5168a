"""How the kernels of this package are compiled, and where their machine code is kept (`gramian.core.machine_code`)."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from gramian.core.machine_code import keep

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
"""Sums may be reordered, so that they vectorise; infinities and NaN keep their meaning: divergence is a result."""


def _compiled(function: Kernel, **options: Any) -> Kernel:
    return cast("Kernel", keep(numba.njit(nogil=True, error_model="numpy", **options)(function)))


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` with numba: without the interpreter lock, so that runs go over the cores in threads."""
    return _compiled(function, fastmath=FASTMATH)


def inlined_kernel(function: Kernel) -> Kernel:
    """Compile ``function`` like `kernel`, as a part of whatever calls it: for short ones that are given many arrays."""
    return _compiled(function, fastmath=FASTMATH, forceinline=True)


def exact_kernel(function: Kernel) -> Kernel:
    """Compile ``function`` like `kernel`, but keep every operation in the order and rounding that is written.

    That is said in so many words: what is left open numba takes from the first caller, which may be a `kernel`.

    Examples
    --------
    >>> @exact_kernel
    ... def left(a, b):
    ...     return (a + b) - a
    >>> left(1e16, 1.0)
    0.0
    """
    return _compiled(function, fastmath=False)
