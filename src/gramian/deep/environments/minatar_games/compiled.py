"""How the kernels of the games are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def exact_kernel(function: Kernel) -> Kernel:
    """Compile ``function`` with numba: without the interpreter lock, every operation as it is written."""
    return cast("Kernel", numba.njit(nogil=True, error_model="numpy")(function))
