from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
import torch

from gramian.deep.engines.halves import Agenda, Piece, one_thread


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


def test_pieces_are_done_in_their_order_as_soon_as_they_are_ready():
    done, agenda, gate = [], Agenda(), Piece()
    first = Piece(lambda: done.append("first"), [gate])
    second = Piece(lambda: (done.append("second"), agenda.open(gate)))
    third = Piece(lambda: done.append("third"))
    both, last = agenda.add([first, second]), agenda.add([third])
    agenda.work()
    assert done == ["second", "first", "third"]
    assert both.done()
    assert last.done()


def test_threads_that_are_at_work_are_not_asked_twice():
    agenda, begun, gate = Agenda(), Event(), Event()
    with ThreadPoolExecutor(3) as threads:
        first = agenda.add([Piece(lambda: (begun.set(), gate.wait()))])
        agenda.staff(threads, 1)
        begun.wait()
        second = agenda.add([Piece()])
        agenda.staff(threads, 1)
        assert not second.done()
        gate.set()
        for future in (first, second):
            future.result(timeout=10)
    third = agenda.add([Piece()])
    with ThreadPoolExecutor(1) as threads:  # those before have gone
        agenda.staff(threads, 1)
        third.result(timeout=10)


def test_pieces_that_are_dropped_are_not_done_and_leave_nobody_waiting():
    agenda, done = Agenda(), []
    with ThreadPoolExecutor(1) as threads:
        future = agenda.add([Piece(lambda: done.append("never"), [Piece()])])
        agenda.staff(threads, 1)
        agenda.drop(future)
    assert not done


def test_a_failure_is_told_to_all_who_wait():
    agenda = Agenda()
    futures = [agenda.add([Piece(lambda: 1 / 0)]), agenda.add([Piece(print)])]
    agenda.work()
    assert [type(future.exception()) for future in futures] == [ZeroDivisionError] * 2


def test_pieces_that_fail_at_the_same_time_leave_nobody_waiting():
    for _ in range(50):
        agenda, meeting = Agenda(), Barrier(2)

        def fail(meeting=meeting):
            meeting.wait()
            raise MemoryError("no room")

        futures = [agenda.add([Piece(fail)]) for _ in range(2)]
        futures += [agenda.add([Piece(needs=[Piece()])]) for _ in range(3)]
        with ThreadPoolExecutor(2) as threads:
            agenda.staff(threads, 2)
        for future in futures:
            assert isinstance(future.exception(timeout=10), MemoryError)
        assert agenda._workers == 0
