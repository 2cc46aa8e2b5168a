"""Prioritised replay against one dictionary of priorities for each run, and sums over all of it."""

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gramian.deep.agent.streams import Stream, bits, uniform
from gramian.deep.engines.graphs import compile_whole
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay import Exponents, HostReplay, Outcome, Replay
from gramian.deep.replay.priorities import BLOCK, LARGEST, ONE, Priorities
from tests.deep.replay.replay_oracle import GO_ON, Table
from tests.deep.replay.test_replay import EVENTS

SPEC = ObservationSpec((1,), np.float32, 2)
SEEDS = torch.tensor([7, 8, 9])
B = 8


class Naive:
    """The priorities of one run: (environment, transition) → a whole number of 2^-24."""

    def __init__(self, replay, players):
        self.replay, self.players = replay, players
        self.priorities, self.largest, self.pending = {}, ONE, []

    def add(self):
        layout = self.replay._layout
        held = {
            (e, t)
            for e, player in enumerate(self.players)
            for t in player.sampleable(self.replay.n_step, layout.kept, layout.reach)
        }
        self.priorities = {key: self.priorities.get(key, self.largest) for key in held}

    def settle(self):
        new = {}
        for key, loss in self.pending:
            if np.isfinite(loss):
                priority = min(max(round((max(float(loss), 0) + 1e-10) ** 0.5 * ONE), 1), LARGEST)
                new[key] = max(new.get(key, 0), priority)
        self.largest = max([self.largest, *new.values()])
        self.priorities |= {key: priority for key, priority in new.items() if key in self.priorities}
        self.pending = []

    def draw(self, seed, counter):
        """Walk along the priorities, in the order of their places, until the share wanted is reached."""
        ring = self.replay._layout.starts
        order = sorted(self.priorities, key=lambda key: (key[0], key[1] % ring))
        total = sum(self.priorities.values())
        drawn = []
        for b, chance in enumerate(uniform(bits(seed, Stream.REPLAY, counter, np.arange(B)))):
            wanted = min(int((b + chance) / B * total), total - 1)
            for key in order:
                wanted -= self.priorities[key]
                if wanted < 0:
                    break
            drawn.append(key)
        return drawn


class Pair:
    """A prioritised replay, its players and a naive one for each run."""

    def __init__(self, kind, numbers, each, capacity, n):
        self.replay = make(kind, len(numbers), each, capacity, n)
        self.table, self.numbers = Table(self.replay, SPEC, 0.9, numbers), numbers
        self.naive = [Naive(self.replay, run) for run in self.table.players]
        self.batch = self.replay.empty_batch(B)
        self.table.begin()

    def add(self, events):
        self.table.add(events)
        for naive in self.naive:
            naive.add()

    def learn(self, counter, rng):
        """Draw a batch and record losses for it, some of which are not finite; gives what was drawn."""
        self.replay.draw(SEEDS[self.numbers], counter, self.batch)
        losses = rng.choice([0.0, 1e-4, 0.3, 2.0, 50.0, np.nan, np.inf], (3, B)).astype(np.float32)[self.numbers]
        self.replay.record_losses(torch.from_numpy(losses))
        drawn = []
        for run, naive in enumerate(self.naive):
            naive.settle()
            drawn.append(naive.draw(int(SEEDS[self.numbers[run]]), counter))
            naive.pending = list(zip(drawn[-1], losses[run], strict=True))
        return drawn

    def check(self):
        ring = self.replay._layout.starts
        for run, naive in enumerate(self.naive):
            expected = np.zeros(self.replay._priorities.flat.shape[1], np.int64)
            for (e, t), priority in naive.priorities.items():
                expected[e * ring + t % ring] = priority
            assert np.array_equal(self.replay._priorities.flat[run], expected)


def make(kind, runs, each, capacity, n):
    replay = kind(SPEC, runs, each, capacity, n_step=n, gamma=0.9, exponents=Exponents())
    replay.prepare(B)
    return replay


def expected_by(replay):
    """What the replay drew last, as the naive replay names it."""
    priorities = replay._priorities
    return [
        list(zip(*run, strict=True))
        for run in zip(priorities._environments.tolist(), priorities._transitions.tolist(), strict=True)
    ]


CASES = {
    "kind": st.sampled_from([Replay, HostReplay]),
    "each": st.integers(1, 3),
    "n": st.integers(1, 4),
    "kept": st.integers(0, 20),
    "seed": st.integers(0, 2**32 - 1),
}


@settings(max_examples=40, deadline=None)
@given(**CASES)
def test_priorities_and_draws_are_those_of_brute_force(kind, each, n, kept, seed):
    rng = np.random.default_rng(seed)
    pair = Pair(kind, [0, 1], each, (n + kept) * each, n)
    for step in range(60):
        pair.add(rng.choice(EVENTS, (2, each)).tolist())
        pair.check()
        if pair.replay.ready and rng.random() < 0.5:
            drawn = pair.learn(step, rng)
            assert expected_by(pair.replay) == drawn
            pair.check()
            for run, naive in enumerate(pair.naive):
                priorities = np.array([naive.priorities[key] for key in drawn[run]])
                weights = (priorities / sum(naive.priorities.values())) ** -0.5
                np.testing.assert_allclose(pair.batch.weights[run], weights / weights.max(), rtol=1e-6)
                for b, (e, t) in enumerate(drawn[run]):
                    seen = pair.table.players[run][e].n_step(t, n, 0.9)
                    np.testing.assert_array_equal(pair.batch.observations[run, b], seen[0])


@settings(max_examples=15, deadline=None)
@given(**CASES)
def test_a_run_is_the_same_alone_and_a_restored_replay_goes_on_as_the_saved_one(kind, each, n, kept, seed):
    pairs = [Pair(kind, numbers, each, (n + kept) * each, n) for numbers in ([0, 1, 2], [1], [2, 0])]
    generators = [np.random.default_rng(seed) for _ in pairs]
    pause = seed % 40
    for step in range(50):
        for pair, rng in zip(pairs, generators, strict=True):
            pair.add(rng.choice(EVENTS, (3, each))[pair.numbers].tolist())
            if pair.replay.ready and step % 3 == 0:
                pair.learn(step, rng)
        if step == pause:
            old = pairs[0].replay
            new = make(Replay if kind is HostReplay else HostReplay, 3, each, (n + kept) * each, n)
            new.load(
                {name: tensor.clone() for name, tensor in old.state().items()}, [old.segment(old.oldest, old.added)]
            )
            pairs[0].replay = pairs[0].table.replay = new
    whole, *others = pairs
    for pair in others:
        assert torch.equal(pair.replay._priorities.flat, whole.replay._priorities.flat[pair.numbers])
        assert expected_by(pair.replay) == [expected_by(whole.replay)[run] for run in pair.numbers]


@pytest.mark.parametrize("kind", [Replay, HostReplay])
def test_a_replay_that_was_not_saved_begins_empty_with_the_largest_priority(kind):
    pair = Pair(kind, [0], 1, 20, 1)
    for step in range(10):
        pair.add([[GO_ON]])
        pair.learn(step, np.random.default_rng(step))
    new = make(kind, 1, 1, 20, 1)
    new.load(pair.replay.state(), [])
    assert not new._priorities.flat.any()
    pair.table.add([[GO_ON]], new)
    pair.table.add([[GO_ON]], new)
    assert new._priorities.flat.unique().tolist() == [0, pair.naive[0].largest]


def filled(priorities):
    """`Priorities` of as many runs with these values, one environment each."""
    runs, ring = priorities.shape
    made = Priorities((runs, 1), ring, 1, Exponents(), torch.device("cpu"))
    made.allocate(B)
    made._rings[:, 0] = torch.from_numpy(priorities)
    return made


def test_transitions_are_drawn_in_proportion_to_their_priorities():
    values = np.random.default_rng(0).choice([0, 1, 2, 5, 9], (2, 2 * BLOCK + 100)) * ONE
    made, counts = filled(values), np.zeros(values.shape)
    made.allocate(512)
    for counter in range(100):
        random_bits = bits(np.array([[1], [2]]), Stream.REPLAY, counter, np.arange(512)).astype(np.int64)
        _, drawn = made.draw(torch.from_numpy(random_bits), torch.zeros(2, 1, dtype=torch.int64))
        for run in range(2):
            counts[run] += np.bincount(drawn[run], minlength=values.shape[1])
    for run in range(2):
        possible = values[run] > 0
        assert not counts[run, ~possible].any()
        expected = values[run, possible] / values[run].sum() * counts[run].sum()
        # a right sampler fails this less than once in a million seeds; the seeds are fixed
        assert stats.chisquare(counts[run, possible], expected).pvalue > 1e-6


def test_a_million_priorities_of_all_sizes_are_summed_exactly():
    values = np.random.default_rng(0).choice([0, 1, ONE // 3, 5 * ONE, LARGEST], (1, 1_000_000))
    random_bits = bits(3, Stream.REPLAY, np.arange(B)).astype(np.int64)[None]
    made = filled(values)
    drawn = made.draw(torch.from_numpy(random_bits), torch.zeros(1, 1, dtype=torch.int64))[1][0]
    shares = (np.arange(B) + uniform(random_bits[0].astype(np.uint64))) / B
    wanted = (shares * values.sum()).astype(np.int64)
    assert np.array_equal(drawn, np.searchsorted(values[0].cumsum(), wanted, side="right"))


def test_losses_that_are_not_finite_change_nothing_and_of_two_losses_of_a_transition_the_larger_counts():
    made = filled(np.full((3, 10), 2 * ONE))
    made.expect(torch.zeros(3, B, dtype=torch.int64), torch.tensor([0, 1, 1, 2, 3, 4, 5, 5]).expand(3, -1))
    losses = torch.tensor([0.25, 4.0, 9.0, 1e30, torch.nan, torch.inf, torch.nan, 1.0])
    made.record(torch.stack([losses, torch.full_like(losses, torch.nan), losses.flip(0)]), slice(None))
    made.settle(torch.zeros(3, 1, dtype=torch.int64))
    expected = [0.5, 3, LARGEST / ONE, 2, 2, 1, 2, 2, 2, 2]
    assert (made.flat[0, :10] / ONE).tolist() == expected
    assert (made.flat[1, :10] == 2 * ONE).all()
    assert (made._largest / ONE).tolist() == [[LARGEST / ONE], [1], [LARGEST / ONE]]
    before = made.flat.clone()
    made.settle(torch.zeros(3, 1, dtype=torch.int64))  # there are no new losses
    assert torch.equal(made.flat, before)


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler")
def test_compiled_as_one_graph_a_replay_stores_draws_and_settles_as_it_does_without():
    pairs = [Pair(Replay, [0, 1], 2, 24, 3) for _ in range(2)]
    rng = np.random.default_rng(0)
    for _ in range(30):
        events = rng.choice(EVENTS, (2, 2)).tolist()
        for pair in pairs:
            pair.add(events)
    eager, compiled = (pair.replay for pair in pairs)
    counter, losses = torch.zeros(2, 1, dtype=torch.int64), torch.rand(2, B)
    no, yes, actions = torch.zeros(2, 2, dtype=torch.bool), torch.eye(2, dtype=torch.bool), torch.ones(2, 2).long()
    outcome = Outcome(actions, torch.ones(2, 2), yes, no, yes, torch.ones(2, 2, 1))
    write = compile_whole(lambda: compiled.write(outcome), tuned=False)
    draw = compile_whole(lambda: compiled.draw(SEEDS[:2], counter, pairs[1].batch), tuned=False)
    record = compile_whole(lambda: compiled.record_losses(losses), tuned=False)
    for number in range(5):
        counter.fill_(number)
        losses.copy_(torch.rand(2, B, generator=torch.Generator().manual_seed(number)))
        eager.draw(SEEDS[:2], number, pairs[0].batch)
        eager.record_losses(losses)
        eager.write(outcome)
        draw()
        record()
        write()
        assert expected_by(compiled) == expected_by(eager)
        for mine, theirs in zip(pairs[1].batch.tensors, pairs[0].batch.tensors, strict=True):
            torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(compiled._priorities.flat, eager._priorities.flat, rtol=0, atol=1)
