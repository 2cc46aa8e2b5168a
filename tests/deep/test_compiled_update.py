"""Updates by the kernels against updates by hand in torch, and against themselves."""

from dataclasses import replace

import pytest
import torch

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.engines import compiled_update
from gramian.deep.engines.backward import RunUpdate
from gramian.deep.engines.compiled_update import CompiledUpdate
from gramian.deep.engines.halves import HalvedUpdate
from tests.deep.populations import EVERY_ARM, SPECS, batch_of

CONFIGS = {
    "huber": LearnerConfig(),
    "squared": LearnerConfig(loss="squared"),
    "double_q": LearnerConfig(double_q=True),
    "clipped": LearnerConfig(max_grad_norm=0.05, weight_decay=0.1),
}
ARMS = [arm for arm in EVERY_ARM if arm.kind != "dr3"]
CHANNELS = {"breakout": 4, "asterix": 4, "freeway": 7, "space_invaders": 6, "seaquest": 10}


def network(channels=4, features=128, actions=6):
    return NetworkSpec("minatar", (channels, 10, 10), actions=actions, features_dim=features)


def in_torch(learner):
    """The same learner, without kernels."""
    learner.run_updates = [
        RunUpdate(run, learner.objective, learner.adam, learner.layout, learner.state)
        for run in range(len(learner.run_updates))
    ]
    return learner


def pair(spec, config, arms, counts=None):
    ours, theirs = (Learner(spec, config, list(range(len(arms))), arms, counts) for _ in range(2))
    assert all(isinstance(run, CompiledUpdate) for run in ours.run_updates)
    return ours, in_torch(theirs)


def compare(spec, config, arms=ARMS, counts=None, size=32, updates=3, scale=2.0):
    ours, theirs = pair(spec, config, arms, counts)
    for number in range(updates):
        batch = batch_of(spec, list(range(len(arms))), number, size, counts, scale)
        found, expected = ours.update(batch), theirs.update(batch)
        torch.testing.assert_close(found.total, expected.total, rtol=1e-4, atol=1e-5)
        for name, component in expected.components.items():
            torch.testing.assert_close(found.components[name], component, rtol=1e-4, atol=1e-5)
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, rtol=1e-3, atol=2e-6, msg=name)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_arm_is_updated_as_in_torch(config):
    compare(network(), config)


@pytest.mark.parametrize("game", CHANNELS)
def test_every_game_is_updated_as_in_torch(game):
    compare(network(CHANNELS[game]), LearnerConfig(), [Arm("dqn"), Arm("gram", 0.1)], updates=5)


def test_sizes_that_fill_no_block_are_updated_as_in_torch():
    compare(network(features=13, actions=3), LearnerConfig(double_q=True), size=7)


@pytest.mark.parametrize("double_q", [False, True])
def test_runs_with_fewer_actions_are_updated_as_in_torch(double_q):
    compare(network(), LearnerConfig(double_q=double_q), [Arm("dqn")] * 3, counts=[6, 3, 1])


def test_pictures_of_few_ones_are_updated_as_in_torch():
    spec, arms = network(), [Arm("dqn"), Arm("gram", 0.1)]
    ours, theirs = pair(spec, LearnerConfig(), arms)
    batch = batch_of(spec, [0, 1], size=32)
    for pictures in (batch.observations, batch.next_observations):
        pictures *= torch.rand(pictures.shape, generator=torch.Generator().manual_seed(0)) < 0.1
    for _ in range(5):
        ours.update(batch)
        theirs.update(batch)
    torch.testing.assert_close(ours.state.online, theirs.state.online, rtol=1e-3, atol=2e-6)


@pytest.mark.parametrize("size", [6, 32])
def test_a_run_is_updated_to_the_same_bits_alone_and_among_others(size):
    spec, seeds = SPECS["minatar"], list(range(len(ARMS)))
    together = Learner(spec, LearnerConfig(), seeds, ARMS)
    alone = [Learner(spec, LearnerConfig(), [seed], [arm]) for seed, arm in zip(seeds, ARMS, strict=True)]
    for number in range(3):
        together.update(batch_of(spec, seeds, number, size))
        for seed, one in enumerate(alone):
            one.update(batch_of(spec, [seed], number, size))
    for seed, one in enumerate(alone):
        assert torch.equal(one.state.online[0], together.state.online[seed])


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1e30])
def test_a_run_that_diverges_keeps_its_state_and_is_marked(bad):
    spec, arms = network(), [Arm("dqn"), Arm("gram", 0.1)]
    ours, theirs = pair(spec, LearnerConfig(loss="squared"), arms)
    batch = batch_of(spec, [0, 1])
    ours.update(batch)
    theirs.update(batch)
    batch.rewards[1, 2] = bad
    before = ours.run_state(1)
    for _ in range(2):
        found, expected = ours.update(batch), theirs.update(batch)
        torch.testing.assert_close(found.components["td"], expected.components["td"], equal_nan=True)
    assert ours.diverged_at.tolist() == theirs.diverged_at.tolist() == [-1, 2]
    for name in ("online.body.fc1.weight", "mean.body.fc1.weight", "square.head.bias"):
        assert torch.equal(ours.run_state(1)[name], before[name])
    assert not torch.equal(ours.state.online[0], ours.state.target[0])


def test_a_run_whose_weights_overflow_is_marked():
    spec = network()
    ours, theirs = pair(spec, LearnerConfig(learning_rate=1e38, adam_epsilon=1e-30), [Arm("dqn")])
    batch = batch_of(spec, [0])
    for learner in (ours, theirs):
        learner.update(batch)
    assert ours.diverged_at.tolist() == theirs.diverged_at.tolist() == [1]


@pytest.mark.parametrize("double_q", [False, True])
def test_a_target_that_is_not_a_number_is_not_passed_over(double_q):
    spec = network()
    ours, theirs = pair(spec, LearnerConfig(double_q=double_q), [Arm("dqn")])
    for learner in (ours, theirs):
        learner.state.target[0, learner.layout.body_size] = torch.nan  # the first action's
        learner.update(batch_of(spec, [0]))
    # with double Q the action may never be chosen
    assert ours.diverged_at.tolist() == theirs.diverged_at.tolist()
    assert double_q or ours.diverged_at.tolist() == [1]


def test_a_batch_of_another_size_is_taken():
    spec, arms = network(), [Arm("gram", 0.1)]
    ours, theirs = pair(spec, LearnerConfig(), arms)
    for size in (32, 8, 32):
        batch = batch_of(spec, [0], size=size)
        ours.update(batch)
        theirs.update(batch)
    torch.testing.assert_close(ours.state.online, theirs.state.online, rtol=1e-3, atol=2e-6)


@pytest.mark.parametrize(
    ("spec", "arm", "dtype"),
    [
        (network(), Arm("dr3", 0.1), torch.float32),
        (network(), Arm("dqn"), torch.float64),
        (replace(network(), layer_norm=True), Arm("dqn"), torch.float32),
        (SPECS["mlp"], Arm("dqn"), torch.float32),
    ],
)
def test_what_has_no_kernel_is_updated_in_torch(spec, arm, dtype):
    (run,) = Learner(spec, LearnerConfig(), [0], [arm], dtype=dtype).run_updates
    assert type(run) is RunUpdate


def test_atari_s_network_is_updated_in_halves():
    (run,) = Learner(SPECS["nature"], LearnerConfig(), [0], [Arm("dqn")]).run_updates
    assert type(run) is HalvedUpdate


def test_without_numba_updates_are_done_in_torch(monkeypatch):
    monkeypatch.setattr(compiled_update, "find_spec", lambda _: None)
    (run,) = Learner(network(), LearnerConfig(), [0], [Arm("dqn")]).run_updates
    assert type(run) is RunUpdate
