"""Updates by hand against automatic differentiation."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.engines.halves import Agenda, Piece
from tests.deep.populations import EVERY_ARM, SPECS, alone_and_among_others, batch_of, update_in_threads

ATARI = NetworkSpec("nature", (4, 84, 84), actions=6, features_dim=512)
CONFIGS = {
    "huber": LearnerConfig(),
    "squared": LearnerConfig(loss="squared"),
    "double_q": LearnerConfig(double_q=True),
    "clipped": LearnerConfig(max_grad_norm=0.05, weight_decay=0.1),
}


def pair(spec, config, arms, dtype=torch.float64, counts=None):
    seeds = list(range(len(arms)))
    return tuple(Learner(spec, config, seeds, arms, counts, dtype=dtype) for _ in range(2))


def compare(spec, config, arms, dtype=torch.float64, tolerance=1e-11, counts=None, updates=3, size=6):
    by_hand, by_autograd = pair(spec, config, arms, dtype, counts)
    for number in range(updates):
        batch = batch_of(spec, list(range(len(arms))), number, size, counts, 2.0)
        ours = by_hand.update(batch)
        theirs = update(by_autograd.objective, by_autograd.adam, by_autograd.layout, by_autograd.state, batch)
        by_autograd.count_update()
        torch.testing.assert_close(ours.total, theirs.total, rtol=tolerance, atol=tolerance)
        for name, component in theirs.components.items():
            torch.testing.assert_close(ours.components[name], component, rtol=tolerance, atol=tolerance)
    for name, tensor in by_autograd.state_dict().items():
        torch.testing.assert_close(by_hand.state_dict()[name], tensor, rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("kind", ["mlp", "minatar", "nature", "dopamine"])
def test_every_arm_is_updated_as_by_automatic_differentiation(kind, config):
    compare(SPECS[kind], config, EVERY_ARM)


@pytest.mark.parametrize("kind", ["mlp", "minatar", "nature", "dopamine"])
def test_normalised_layers_are_updated_as_by_automatic_differentiation(kind):
    compare(replace(SPECS[kind], layer_norm=True), LearnerConfig(), EVERY_ARM)


def test_runs_with_fewer_actions_are_updated_as_by_automatic_differentiation():
    compare(
        SPECS["mlp"], LearnerConfig(double_q=True), [Arm("dqn"), Arm("gram", 0.1), Arm("dr3", 0.1)], counts=[3, 2, 1]
    )


def test_float32_differs_by_rounding_alone():
    compare(SPECS["minatar"], LearnerConfig(), EVERY_ARM, torch.float32, 2e-5)


@pytest.mark.parametrize("kind", ["mlp", "minatar", "nature", "dopamine"])
def test_a_run_is_updated_to_the_same_bits_alone_and_among_others(kind):
    # Sixteen samples: whoever is first or second, what he sees begins at a multiple of 64 bytes.
    for alone, among_others in alone_and_among_others(SPECS[kind], LearnerConfig(), EVERY_ARM, updates=3, size=16):
        assert torch.equal(alone, among_others)


@pytest.mark.parametrize("size", [1, 2, 5, 32])
def test_atari_s_network_is_updated_as_by_automatic_differentiation_in_halves_of_any_size(size):
    arms = [Arm("dqn"), Arm("l2", 0.3), Arm("dr3", 0.2), *([Arm("gram", 0.1), Arm("decor", 0.1)] if size > 1 else [])]
    for config in (LearnerConfig(), LearnerConfig(double_q=True)):
        compare(SPECS["nature"], config, arms, size=size, counts=[3, 2, 3, 3, 1][: len(arms)])


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_halves_in_threads_give_the_same_bits(workers):
    spec, seeds = SPECS["nature"], list(range(len(EVERY_ARM)))
    in_turn, threaded = pair(spec, LearnerConfig(target_period_updates=2), EVERY_ARM, torch.float32)
    with ThreadPoolExecutor(workers) as threads:
        for number in range(1, 6):
            batch = batch_of(spec, seeds, number, size=17)
            in_turn.update(batch)
            update_in_threads(threaded, batch, number, threads, workers)
    for name, tensor in in_turn.state_dict().items():
        assert torch.equal(threaded.state_dict()[name], tensor), name


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_halves_give_the_same_bits_whatever_number_of_threads_torch_has(threads):
    learners = pair(ATARI, LearnerConfig(), [Arm("gram", 0.1)], torch.float32)
    before = torch.get_num_threads()
    try:
        for learner, count in zip(learners, (1, threads), strict=True):
            torch.set_num_threads(count)
            for number in range(2):
                learner.update(batch_of(ATARI, [0], number, size=32))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert torch.equal(learners[0].state.online, learners[1].state.online)


def test_a_run_of_atari_s_full_network_is_updated_to_the_same_bits_alone_and_among_others():
    arms = [Arm("dqn"), Arm("gram", 0.1), Arm("decor", 0.1)]
    for alone, among_others in alone_and_among_others(ATARI, LearnerConfig(), arms, updates=2, size=32):
        assert torch.equal(alone, among_others)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("double_q", [False, True])
def test_an_update_that_looks_at_the_target_before_its_turn_gives_the_same_bits(double_q, bf16):
    spec, seeds, config = SPECS["nature"], [0, 1], LearnerConfig(double_q=double_q, bf16=bf16)
    in_turn, ahead = (Learner(spec, config, seeds, [Arm("gram", 0.1), Arm("dr3", 0.1)]) for _ in range(2))
    batches = [batch_of(spec, seeds, number, size=8) for number in range(1, 5)]
    for batch in batches:
        in_turn.update(batch)
    agenda, turns = Agenda(), [Piece() for _ in batches]
    updates = [
        [agenda.add(run.pieces(batch, number, [turn])) for run in ahead.run_updates]
        for number, (batch, turn) in enumerate(zip(batches, turns, strict=True), start=1)
    ]
    with ThreadPoolExecutor(2) as threads:
        agenda.staff(threads, 2)
        for turn, update in zip(turns, updates, strict=True):
            agenda.open(turn)
            for run in update:
                run.result()
    assert torch.equal(ahead.state.online, in_turn.state.online)


def test_the_pieces_of_an_update_go_through_a_method_that_a_profile_can_watch(monkeypatch):
    (run,) = Learner(SPECS["nature"], LearnerConfig(), [0], [Arm("dqn")]).run_updates
    watched, work = [], run.work
    monkeypatch.setattr(run, "work", lambda piece: (watched.append(piece), work(piece)))
    pieces = run.pieces(batch_of(SPECS["nature"], [0]), 1)
    agenda = Agenda()
    agenda.add(pieces)
    agenda.work()
    assert len(watched) == len(pieces)


def test_a_piece_that_fails_does_not_leave_the_other_thread_waiting():
    (run,) = Learner(SPECS["nature"], LearnerConfig(), [0], [Arm("gram-unbiased", 0.1)]).run_updates
    agenda = Agenda()
    done = agenda.add(run.pieces(batch_of(SPECS["nature"], [0], size=2), 1))
    with ThreadPoolExecutor(2) as threads:  # the penalty needs four samples
        agenda.staff(threads, 2)
    assert isinstance(done.exception(timeout=0), ValueError)


@pytest.mark.parametrize(("network", "bf16"), [("mlp", False), ("nature", False), ("nature", True)])
def test_a_run_that_diverged_keeps_its_state_and_its_mark(network, bf16):
    spec = SPECS[network]
    learner = Learner(spec, LearnerConfig(bf16=bf16), [0, 1], [Arm("dqn"), Arm("gram", 0.1)])
    batch = batch_of(spec, [0, 1])
    batch.rewards[1] = torch.nan
    before = learner.state.online.clone()
    for _ in range(2):
        learner.update(batch)
    assert learner.diverged_at.tolist() == [-1, 1]
    assert torch.equal(learner.state.online[1], before[1])
    assert not torch.equal(learner.state.online[0], before[0])
