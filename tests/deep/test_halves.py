from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from gramian.deep.halves import one_thread


@pytest.fixture
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
def test_one_thread_lets_a_thread_that_has_used_torch_keep_its_number():
    with ThreadPoolExecutor(1) as other:
        assert other.submit(torch.get_num_threads).result() == 2
        with one_thread():
            assert torch.get_num_threads() == 1
            assert other.submit(torch.get_num_threads).result() == 2
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("_two_threads")
def test_a_thread_that_first_uses_torch_in_the_block_keeps_one_thread():
    with ThreadPoolExecutor(1) as other:
        with one_thread():
            assert other.submit(torch.get_num_threads).result() == 1
        assert other.submit(torch.get_num_threads).result() == 1
