"""What a container leaves of the machine: cores and memory."""

import os

import pytest

from gramian.core import cores, host_memory

NONE, NO_MEMORY_LIMIT = 2**31, 2**62


def group(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "400000 100000\n"}, 4),
        ({"cpu.max": "250000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, NONE),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, NONE),
        ({}, NONE),
    ],
)
def test_a_container_has_the_whole_cores_of_its_quota(tmp_path, files, expected):
    assert cores._container_cores(group(tmp_path, files)) == expected


@pytest.mark.parametrize(("quota", "bound", "expected"), [(4, 16, 4), (32, 16, 16), (0, 16, 1)])
def test_cores_are_those_that_the_process_is_bound_to_within_the_quota(monkeypatch, quota, bound, expected):
    monkeypatch.setattr(cores, "_container_cores", lambda _: quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(bound)), raising=False)
    assert cores.cores() == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "1000\n", "memory.current": "700\n", "memory.stat": "anon 500\ninactive_file 150\n"}, 450),
        ({"memory.max": "1000\n", "memory.current": "700\n"}, 300),
        ({"memory.max": "max\n", "memory.current": "700\n"}, NO_MEMORY_LIMIT),
        ({}, NO_MEMORY_LIMIT),
    ],
)
def test_a_containers_memory_is_its_limit_minus_what_is_used_except_its_file_cache(tmp_path, files, expected):
    assert host_memory._container_available(group(tmp_path, files)) == expected


def test_the_hosts_memory_is_what_the_kernel_says_or_all_there_is(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 20 kB\nMemAvailable:  10 kB\n")
    assert host_memory._host_available(tmp_path / "meminfo") == 10240
    assert host_memory._host_available(tmp_path / "nothing") > 0
