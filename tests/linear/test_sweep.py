import json
import threading

import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.linear.sweep import Cells, run_cells


def cells_of(folder, **configuration):
    return Cells(folder, {"seed": 0, **configuration})


def test_cells_are_written_whole_and_read_back(tmp_path):
    cells = cells_of(tmp_path)
    cells.save("a", {"x": np.array([0.1, np.nan])})
    np.testing.assert_array_equal(cells_of(tmp_path).load("a")["x"], [0.1, np.nan])
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.npz", "cells", "configuration.json"]


def test_another_configuration_in_the_same_folder_is_refused_and_changes_nothing(tmp_path):
    cells_of(tmp_path, runs=5)
    before = (tmp_path / "configuration.json").read_text()
    with pytest.raises(UserError, match="holds results with runs 5, not 6"):
        cells_of(tmp_path, runs=6)
    assert (tmp_path / "configuration.json").read_text() == before


def test_folders_that_cannot_be_continued_are_named(tmp_path):
    cells = cells_of(tmp_path / "a")
    (tmp_path / "a" / "cells" / "a.npz").write_bytes(b"not an archive")
    with pytest.raises(UserError, match=r"cannot read the cell '.*a\.npz'"):
        cells.load("a")
    (tmp_path / "a" / "configuration.json").write_text("{")
    with pytest.raises(UserError, match="cannot read"):
        cells_of(tmp_path / "a")
    (tmp_path / "a" / "configuration.json").unlink()
    with pytest.raises(UserError, match="holds cells but no configuration"):
        cells_of(tmp_path / "a")


def test_finished_cells_are_not_computed_again(tmp_path):
    computed = []

    def job(name):
        return lambda _: computed.append(name) or {"x": np.zeros(1)}

    run_cells(cells_of(tmp_path), {"a": job("a")}, threads=1, description="test")
    run_cells(cells_of(tmp_path), {n: job(n) for n in "ab"}, threads=1, description="test")
    assert computed == ["a", "b"]


def test_jobs_run_at_the_same_time_on_several_threads(tmp_path):
    barrier = threading.Barrier(2, timeout=30)

    def job(_):
        barrier.wait()
        return {"x": np.zeros(1)}

    run_cells(cells_of(tmp_path), {"a": job, "b": job}, threads=2, description="test")


def test_an_interrupt_keeps_what_has_finished_and_stops_the_rest(tmp_path):
    cells = cells_of(tmp_path)
    saw = []

    def endless(stop):
        while not stop[0]:
            pass
        saw.append("stopped")
        return {"x": np.zeros(1)}

    def interrupted(_):
        raise KeyboardInterrupt

    jobs = {"done": lambda _: {"x": np.ones(1)}, "interrupted": interrupted, "endless": endless, "late": endless}
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, jobs, threads=2, description="test")
    assert cells.has("done")
    assert not any(cells.has(name) for name in ("interrupted", "endless", "late"))
    assert len(saw) <= 1


def test_a_failed_job_fails_loudly(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run_cells(cells_of(tmp_path), {"a": lambda _: 1 / 0}, threads=1, description="test")


def test_the_configuration_is_plain_json(tmp_path):
    cells_of(tmp_path, lambdas=(0.1, 1.0))
    assert json.loads((tmp_path / "configuration.json").read_text())["lambdas"] == [0.1, 1.0]
    cells_of(tmp_path, lambdas=(0.1, 1.0))


def test_preparation_comes_first_and_only_if_there_is_work(tmp_path):
    order = []
    options = {"threads": 1, "description": "test", "prepare": lambda: order.append("prepared")}
    job = {"a": lambda _: order.append("a") or {"x": np.zeros(1)}}
    run_cells(cells_of(tmp_path), job, **options)
    run_cells(cells_of(tmp_path), job, **options)
    assert order == ["prepared", "a"]
