import pytest
import torch

from gramian.core.errors import UserError
from gramian.deep.training import memory
from gramian.deep.training.memory import available_bytes, memory_bill


def test_a_bill_that_fits_names_every_item(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda _: 10_000_000_000)
    line = memory_bill({"replay": 7_000_000_000, "networks": 500_000_000}, "cpu", "lower --capacity")
    assert line == "memory on cpu: 7.50 GB (replay 7.00 GB, networks 0.50 GB); 10.00 GB are free"


def test_a_bill_that_does_not_fit_is_an_error_with_the_numbers_and_the_flag(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda _: 6_000_000_000)
    with pytest.raises(UserError, match=r"7.00 GB are needed .* and 6.00 GB are free; lower --capacity"):
        memory_bill({"replay": 7_000_000_000}, "cpu", "lower --capacity")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_gpu_has_memory():
    assert available_bytes("cuda") > 0
