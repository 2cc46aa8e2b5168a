"""How much of the host's memory can still be taken."""

import os
from pathlib import Path

_CGROUP_FILES = (  # limit, use and statistics of the control group that a container runs in: version 2, version 1
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


def available_host_bytes() -> int:
    """Bytes that can still be allocated on the host, within the limit of the container."""
    return min(_host_available(Path("/proc/meminfo")), _container_available(Path("/sys/fs/cgroup")))


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
