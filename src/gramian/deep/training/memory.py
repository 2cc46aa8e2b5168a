"""How much memory there is, and whether what a run asks for fits into it."""

from collections.abc import Mapping

import torch

from gramian.core.errors import UserError
from gramian.core.host_memory import available_host_bytes


def available_bytes(device: str | torch.device = "cpu") -> int:
    """Bytes that can still be allocated: on a GPU its free memory, else the host's within the container's limit.

    Examples
    --------
    >>> available_bytes("cpu") > 0
    True
    """
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return available_host_bytes()


def memory_bill(items: Mapping[str, int], device: str | torch.device, advice: str) -> str:
    """Give one line that says what will be allocated on ``device``; nothing is allocated here.

    Parameters
    ----------
    items
        Bytes of each thing.
    advice
        What makes it smaller: the flag to use.

    Raises
    ------
    UserError
        If it does not fit.

    Examples
    --------
    >>> memory_bill({"replay": 7_090_000_000, "networks": 60_000_000}, "cpu", "lower --capacity").split(";")[0]
    'memory on cpu: 7.15 GB (replay 7.09 GB, networks 0.06 GB)'
    """
    total = sum(items.values())
    parts = ", ".join(f"{name} {_gigabytes(size)}" for name, size in items.items())
    available = available_bytes(device)
    if total > available:
        raise UserError(
            f"not enough memory on {device}: {_gigabytes(total)} are needed ({parts}) and {_gigabytes(available)} are "
            f"free; {advice}"
        )
    return f"memory on {device}: {_gigabytes(total)} ({parts}); {_gigabytes(available)} are free"


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
