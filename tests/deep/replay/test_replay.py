import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gramian.core.errors import UserError
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay import HostReplay, Outcome, Replay, bytes_needed
from gramian.deep.replay.host import PIECE_BYTES
from tests.deep.replay.replay_oracle import (
    GAME_OVER,
    GO_ON,
    LIFE_LOST,
    LIFE_LOST_AND_OUT_OF_TIME,
    OUT_OF_TIME,
    Table,
)

GAMMA = 0.9
ATARI = ObservationSpec((84, 84), np.uint8, 4)
SMALL = ObservationSpec((2, 2), np.uint8, 3)
EVENTS = (GO_ON,) * 8 + (LIFE_LOST, GAME_OVER, OUT_OF_TIME, LIFE_LOST_AND_OUT_OF_TIME)


@st.composite
def specs(draw):
    stack = draw(st.integers(1, 4))
    if draw(st.booleans()):
        return ObservationSpec((2, 3), np.uint8, stack)
    return ObservationSpec((3,), np.float32, stack)


@st.composite
def tables(draw, device="cpu"):
    """A replay with its oracle, and events for some tens of steps."""
    spec = draw(specs())
    runs, each, n = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    capacity = draw(st.integers(n * each, 25 * each))
    if device == "cpu" and draw(st.booleans()):
        replay = HostReplay(spec, runs, each, capacity, n_step=n, gamma=GAMMA)
    else:
        replay = Replay(spec, runs, each, capacity, n_step=n, gamma=GAMMA, device=device)
    # how often something happens varies, so that there are long games and games that are cut at each step
    events = draw(
        st.sampled_from([(GO_ON,), EVENTS, (*EVENTS, *[OUT_OF_TIME] * 6), (OUT_OF_TIME,), (GAME_OVER, GO_ON)])
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = draw(st.integers(0, 90))
    return Table(replay, spec, GAMMA), rng.choice(events, (steps, runs, each)).tolist()


def played(table, events):
    table.begin()
    for step in events:
        table.add(step)
    return table


@settings(max_examples=150, deadline=None)
@given(tables())
def test_every_sampleable_transition_is_what_the_actor_saw(case):
    played(*case).check()


@settings(max_examples=30, deadline=None)
@given(tables())
def test_the_sampleable_transitions_are_right_after_every_step(case):
    table, events = case
    table.begin()
    for step in events[:40]:
        table.add(step)
        table.check()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_on_numpy_a_replay_draws_what_it_draws_on_torch(data):
    table, events = data.draw(tables())
    spec, (runs, each), n = table.spec, table.replay.shape, table.replay.n_step
    capacity = data.draw(st.integers(n * each, 25 * each))
    twins = [kind(spec, runs, each, capacity, n_step=n, gamma=GAMMA) for kind in (Replay, HostReplay)]
    for twin in twins:
        played(Table(twin, spec, GAMMA), events)
    if not twins[0].ready:
        return
    seeds, out = torch.arange(runs) + 7, twins[1].empty_batch(16)
    for counter in range(3):
        plain, fast = (
            twin.sample(seeds, counter, 16, out=place) for twin, place in zip(twins, (None, out), strict=True)
        )
        assert all(torch.equal(one, other) for one, other in zip(plain.tensors, fast.tensors, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(*(twin.bounds() for twin in twins), strict=True))
    for name, saved in twins[0].state().items():
        assert torch.equal(saved, twins[1].state()[name])


class Late:
    """Helpers that take their time, and count what they are given."""

    def __init__(self):
        self.pieces, self._threads = 0, ThreadPoolExecutor(4)

    def submit(self, function, *arguments):
        self.pieces += 1
        return self._threads.submit(lambda: (time.sleep(0.02), function(*arguments)))


def test_threads_gather_the_batch_that_one_does():
    replays = [HostReplay(ATARI, 3, 2, 300, n_step=3, threads=threads) for threads in (1, 4)]
    events = np.random.default_rng(0).choice(EVENTS, (200, 3, 2)).tolist()
    for replay in replays:
        played(Table(replay, ATARI, GAMMA), events)
    replays[1]._helpers = Late()
    seeds, places = torch.arange(3), [replay.empty_batch(32) for replay in replays]
    pieces = places[0].observations.nbytes // PIECE_BYTES
    assert 2 <= pieces <= 4
    for counter in range(5):
        one, many = (
            replay.sample(seeds, counter, 32, out=place) for replay, place in zip(replays, places, strict=True)
        )
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(one.tensors, many.tensors, strict=True))
    assert replays[1]._helpers.pieces == 5 * 2 * pieces


def test_a_small_batch_is_gathered_by_the_thread_that_asks_for_it():
    replay = HostReplay(SMALL, 1, 1, 20, threads=4)
    played(Table(replay, SMALL, GAMMA), [[[GO_ON]]] * 10)
    replay._helpers = Late()
    replay.sample(torch.tensor([7]), 0, 8)
    assert replay._helpers.pieces == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@settings(max_examples=30, deadline=None)
@given(tables(device="cuda"))
def test_on_cuda_every_sampleable_transition_is_what_the_actor_saw(case):
    played(*case).check()


@pytest.fixture
def full_cuda_replay():
    replay = Replay(ATARI, 2, 2, 400, n_step=3, device="cuda")
    frames = torch.zeros(2, 2, 84, 84, dtype=torch.uint8, device="cuda")
    replay.begin(frames)
    return replay, frames


def cuda_step(replay, frames, number):
    no = torch.zeros(2, 2, dtype=torch.bool, device="cuda")
    actions, rewards = torch.ones(2, 2, dtype=torch.int64, device="cuda"), torch.full((2, 2), float(number)).cuda()
    replay.add(Outcome(actions, rewards, no, no, no, frames + number), frames)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_adding_and_sampling_never_wait_for_the_device(full_cuda_replay):
    replay, frames = full_cuda_replay
    seeds, counter = torch.arange(2, device="cuda"), torch.tensor(3, device="cuda")
    for number in range(5):
        cuda_step(replay, frames, number)
    torch.cuda.set_sync_debug_mode("error")
    try:
        cuda_step(replay, frames, 5)
        replay.sample(seeds, counter, 32)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_sampling_works_inside_a_cuda_graph_while_the_replay_grows(full_cuda_replay):
    replay, frames = full_cuda_replay
    seeds, counter = torch.arange(2, device="cuda"), torch.tensor(0, device="cuda")
    for number in range(5):
        cuda_step(replay, frames, number)
    replay.sample(seeds, counter, 32)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = replay.sample(seeds, counter, 32)
    for number in range(5, 500):
        cuda_step(replay, frames, number % 200)
        counter.fill_(number)
        graph.replay()
        for mine, expected in zip(captured.tensors, replay.sample(seeds, number, 32).tensors, strict=True):
            assert torch.equal(mine, expected)


def test_beyond_a_life_loss_the_stack_goes_on_and_beyond_a_game_it_does_not():
    table = Table(Replay(SMALL, 1, 1, 20), SMALL, 0.99)
    played(table, [[[GO_ON]], [[LIFE_LOST]], [[GO_ON]], [[GAME_OVER]], [[GO_ON]]])
    batch = table.replay.fetch(torch.zeros(1, 5, dtype=torch.int64), torch.arange(5)[None])
    empty = (batch.observations == 0).all(dim=(3, 4))[0]
    assert empty.tolist() == [
        [True, True, False],
        [True, False, False],
        [False, False, False],
        [False, False, False],
        [True, True, False],
    ]
    assert batch.discounts[0].tolist() == pytest.approx([0.99, 0, 0.99, 0, 0.99])
    assert not batch.next_observations[0, 3].any()


def test_a_truncated_episode_bootstraps_from_its_own_last_frame():
    table = played(Table(Replay(SMALL, 1, 1, 20), SMALL, 0.99), [[[GO_ON]], [[OUT_OF_TIME]], [[GO_ON]]])
    batch = table.replay.fetch(torch.tensor([[0]]), torch.tensor([[1]]))
    assert float(batch.discounts) == pytest.approx(0.99)
    player = table.players[0][0]
    np.testing.assert_array_equal(batch.next_observations[0, 0], player.history[1].following)
    assert [int(bound) for bound in table.replay.bounds()] == [0, 2]


def test_a_full_replay_keeps_exactly_the_newest_transitions_of_its_capacity():
    table = played(Table(Replay(SMALL, 1, 2, 30), SMALL, GAMMA), [[[GO_ON, GAME_OVER]]] * 100)
    assert [bound.tolist() for bound in table.replay.bounds()] == [[[85, 85]], [[99, 99]]]


def test_sampling_is_uniform_over_the_run_s_transitions():
    # environments with different numbers of transitions, as the 3-step ones of a running episode are not complete
    replay = Replay(SMALL, 2, 3, 36, n_step=3, gamma=GAMMA)
    events = np.full((40, 2, 3), GO_ON)
    events[39, :, 0] = GAME_OVER
    events[36:39, 1, 1] = OUT_OF_TIME
    table = played(Table(replay, SMALL, GAMMA), events.tolist())
    first, last = table.replay.bounds()
    assert (last - first + 1).tolist() == [[12, 10, 10], [12, 11, 10]]
    draws = 3000
    seeds = torch.tensor([3, 4])
    drawn = [replay.indices(seeds, counter, 100) for counter in range(draws)]
    environments, transitions = (torch.cat(part, dim=1) for part in zip(*drawn, strict=True))
    for p in range(2):
        cells = environments[p] * 1000 + transitions[p]
        numbers, counts = cells.unique(return_counts=True)
        expected = [e * 1000 + i for e in range(3) for i in range(int(first[p, e]), int(last[p, e]) + 1)]
        assert numbers.tolist() == expected
        # a right sampler fails this once in a million seeds; the seeds are fixed
        assert stats.chisquare(counts.numpy()).pvalue > 1e-6


def test_a_run_samples_the_same_alone_and_in_any_population():
    rng = np.random.default_rng(0)
    events = rng.choice(EVENTS, (60, 3, 2))
    seeds = torch.tensor([11, 12, 13])

    def batches(numbers):
        table = Table(Replay(SMALL, len(numbers), 2, 40, n_step=2, gamma=GAMMA), SMALL, GAMMA, numbers)
        played(table, events[:, numbers].tolist())
        return table.replay.sample(seeds[numbers], 5, 16)

    together = batches([0, 1, 2])
    for numbers in ([1], [2, 1]):
        for part, whole in zip(batches(numbers).tensors, together.tensors, strict=True):
            assert torch.equal(part, whole[numbers])


def test_another_seed_or_counter_draws_other_transitions_and_the_same_draws_the_same():
    table = played(Table(Replay(SMALL, 1, 1, 500), SMALL, GAMMA), [[[GO_ON]]] * 500)

    def draw(seed, counter):
        return table.replay.indices(torch.tensor([seed]), counter, 32)[1].tolist()

    assert draw(0, 0) == draw(0, 0)
    assert draw(0, 0) == table.replay.indices(torch.tensor([0]), torch.tensor(0), 32)[1].tolist()
    assert draw(0, 0) != draw(0, 1)
    assert draw(0, 0) != draw(1, 0)


@settings(max_examples=100, deadline=None)
@given(tables(), st.data())
def test_a_replay_loaded_from_segments_samples_and_goes_on_as_the_saved_one(case, data):
    table, events = case
    replay = table.replay
    table.begin()
    pause = data.draw(st.integers(0, len(events)))
    segments, end = [], 0
    for number, step in enumerate(events[:pause]):
        table.add(step)
        if number % 7 == 3 or number == pause - 1:
            start = max(end, replay.oldest)
            segments = [*segments, replay.segment(start, replay.added)] if start == end else []
            if start > end:
                segments = [replay.segment(start, replay.added)]
            end = replay.added
    needed = [s for s in segments if int(s["start"]) + s["ends"].shape[1] > replay.oldest]
    state = replay.state()
    copy = Replay(table.spec, *replay.shape, replay._layout.kept * replay.shape[1], n_step=replay.n_step, gamma=GAMMA)
    copy.load(state, needed)
    table.check(copy) if pause else None
    for step in events[pause:]:
        table.add(step, copy)
    table.check(copy)
    assert copy.oldest == replay.oldest
    if replay.ready:
        seeds = torch.arange(replay.shape[0])
        for mine, theirs in zip(copy.sample(seeds, 1, 8).tensors, replay.sample(seeds, 1, 8).tensors, strict=True):
            assert torch.equal(mine, theirs)


def test_one_segment_of_everything_equals_many():
    table = played(Table(Replay(SMALL, 2, 1, 10), SMALL, GAMMA), [[[OUT_OF_TIME], [GO_ON]]] * 47)
    copy = Replay(SMALL, 2, 1, 10, gamma=GAMMA)
    copy.load(table.replay.state(), [table.replay.segment(table.replay.oldest, 47)])
    table.check(copy)


@settings(max_examples=30, deadline=None)
@given(tables())
def test_a_replay_loaded_without_its_transitions_gives_only_whole_new_ones(case):
    table, events = case
    table.begin()
    for step in events:
        table.add(step)
    replay = table.replay
    copy = Replay(table.spec, *replay.shape, replay._layout.kept * replay.shape[1], n_step=replay.n_step, gamma=GAMMA)
    copy.load(replay.state(), [])
    assert (copy.bounds()[1] < copy.bounds()[0]).all()
    assert not copy.ready
    for _ in range(replay.n_step + table.spec.stack - 1):
        table.add(np.full(replay.shape, GO_ON).tolist(), copy)
    assert copy.ready or not events
    first, last = copy.bounds()
    runs, each = replay.shape
    for p in range(runs):
        for e in range(each):
            for i in range(int(first[p, e]), int(last[p, e]) + 1):
                assert i >= len(events)
                index = torch.full((runs, 1), e), torch.full((runs, 1), i)
                for mine, theirs in zip(copy.fetch(*index).tensors, replay.fetch(*index).tensors, strict=True):
                    assert torch.equal(mine[p], theirs[p])


def test_segments_with_a_gap_or_a_lost_end_are_refused():
    table = played(Table(Replay(SMALL, 1, 1, 10), SMALL, GAMMA), [[[GO_ON]]] * 9)
    state, cut = table.replay.state(), table.replay.segment
    copy = Replay(SMALL, 1, 1, 10)
    for segments in ([cut(0, 3), cut(4, 9)], [cut(0, 8)], [cut(2, 9)]):
        with pytest.raises(UserError, match="the saved replay is not whole"):
            copy.load(state, segments)
    with pytest.raises(UserError, match="has 1 environments and this one 2"):
        Replay(SMALL, 1, 2, 10).load(state, [])


def test_nothing_can_be_sampled_before_the_first_whole_transition():
    table = Table(Replay(SMALL, 1, 1, 10, n_step=2), SMALL, GAMMA)
    played(table, [[[GO_ON]]])
    with pytest.raises(ValueError, match="nothing to sample yet"):
        table.replay.sample(torch.tensor([0]), 0, 4)


@pytest.mark.parametrize("envs_per_run", [1, 8])
def test_a_million_atari_transitions_take_at_most_7_2_gb(envs_per_run):
    assert bytes_needed(ATARI, 1, envs_per_run, 1_000_000) <= 7.2e9


@pytest.mark.parametrize(("population", "envs_per_run", "capacity"), [(1, 1, 1000), (3, 2, 700), (2, 4, 33)])
def test_the_bytes_foretold_are_the_bytes_allocated(population, envs_per_run, capacity):
    replay = Replay(ATARI, population, envs_per_run, capacity)
    tensors = [value for value in vars(replay).values() if isinstance(value, torch.Tensor)]
    allocated = sum(tensor.untyped_storage().nbytes() for tensor in tensors)
    constants = 8 * (ATARI.stack + 1 + 2 + 1)  # the offsets within a stack, the powers of γ and a counter
    assert 0 <= allocated - bytes_needed(ATARI, population, envs_per_run, capacity) <= constants
