"""How many cores there are for this process."""

import os
from functools import cache
from pathlib import Path


def cores() -> int:
    """Cores that this process may use: those that it is bound to, and no more than its container is given."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, _container_cores(Path("/sys/fs/cgroup"))))


@cache
def _container_cores(root: Path) -> int:
    """Whole cores' time that the control group may take: of version 2, else of version 1."""
    newer, older = root / "cpu.max", root / "cpu" / "cpu.cfs_quota_us"
    if newer.exists():
        quota, period = newer.read_text().split()
    elif older.exists():
        quota, period = older.read_text().strip(), older.with_name("cpu.cfs_period_us").read_text()
    else:
        return 2**31
    return 2**31 if quota in ("max", "-1") else int(quota) // int(period)
