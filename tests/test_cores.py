import os

import pytest

from gramian.core import cores


def group(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("cpu_", "cpu.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu_max": "400000 100000\n"}, 4),
        ({"cpu_max": "250000 100000\n"}, 2),
        ({"cpu_max": "max 100000\n"}, 2**31),
        ({"cpu__cpu_cfs_quota_us": "300000\n", "cpu__cpu_cfs_period_us": "100000\n"}, 3),
        ({"cpu__cpu_cfs_quota_us": "-1\n", "cpu__cpu_cfs_period_us": "100000\n"}, 2**31),
        ({}, 2**31),
    ],
)
def test_a_container_has_the_whole_cores_of_its_quota(tmp_path, files, expected):
    assert cores._container_cores(group(tmp_path, **files)) == expected


@pytest.mark.parametrize(("quota", "bound", "expected"), [(4, 16, 4), (32, 16, 16), (0, 16, 1)])
def test_cores_are_those_that_it_is_bound_to_within_the_quota(monkeypatch, quota, bound, expected):
    monkeypatch.setattr(cores, "_container_cores", lambda _: quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(bound)), raising=False)
    assert cores.cores() == expected
