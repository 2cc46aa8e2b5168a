"""How much memory there is, and whether what a run asks for fits into it."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch

from gramian.errors import UserError

_CGROUP_FILES = (  # limit, use and statistics of the control group that a container runs in: version 2, version 1
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


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
    return min(_host_available(Path("/proc/meminfo")), _container_available(Path("/sys/fs/cgroup")))


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


def _host_available(meminfo: Path) -> int:
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _container_available(root: Path) -> int:
    for limit_name, used_name, statistics_name in _CGROUP_FILES:
        limit, used, statistics = root / limit_name, root / used_name, root / statistics_name
        if limit.exists() and used.exists() and limit.read_text().strip() != "max":
            lines = statistics.read_text().splitlines() if statistics.exists() else []
            values = dict(line.split() for line in lines)
            # file pages that the kernel gives back when memory is asked for count as used
            reclaimable = int(values.get("total_inactive_file", values.get("inactive_file", "0")))
            return int(limit.read_text()) - int(used.read_text()) + reclaimable
    return 2**62
