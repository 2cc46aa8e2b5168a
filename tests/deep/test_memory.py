import pytest
import torch

from gramian.deep import memory
from gramian.deep.memory import available_bytes, memory_bill
from gramian.errors import UserError


def test_a_bill_that_fits_names_every_item(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda _: 10_000_000_000)
    line = memory_bill({"replay": 7_000_000_000, "networks": 500_000_000}, "cpu", "lower --capacity")
    assert line == "memory on cpu: 7.50 GB (replay 7.00 GB, networks 0.50 GB); 10.00 GB are free"


def test_a_bill_that_does_not_fit_is_an_error_with_the_numbers_and_the_flag(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda _: 6_000_000_000)
    with pytest.raises(UserError, match=r"7.00 GB are needed .* and 6.00 GB are free; lower --capacity"):
        memory_bill({"replay": 7_000_000_000}, "cpu", "lower --capacity")


def test_the_container_s_limit_counts_less_what_is_used_but_not_its_file_cache(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    assert memory._container_available(tmp_path) == 450


def test_a_container_without_a_limit_has_none(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700\n")
    assert memory._container_available(tmp_path) == 2**62
    assert memory._container_available(tmp_path / "nothing") == 2**62


def test_the_host_s_memory_is_what_the_kernel_says_or_all_there_is(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 20 kB\nMemAvailable:  10 kB\n")
    assert memory._host_available(tmp_path / "meminfo") == 10240
    assert memory._host_available(tmp_path / "nothing") > 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_gpu_has_memory():
    assert available_bytes("cuda") > 0
