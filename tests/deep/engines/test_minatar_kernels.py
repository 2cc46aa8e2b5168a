"""Acting and updates by the kernels of MinAtar against the plain update."""

import numpy as np
import pytest
import torch

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.losses import Losses
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.engines.kernels import update as kernels
from gramian.deep.engines.minatar import RunUpdate, legal_actions, networks
from tests.deep.populations import EVERY_ARM, SPECS, batch_of

CONFIGS = {
    "huber": LearnerConfig(),
    "squared": LearnerConfig(loss="squared"),
    "double_q": LearnerConfig(double_q=True),
    "clipped": LearnerConfig(max_grad_norm=0.05, weight_decay=0.1),
}
ARMS = [*(arm for arm in EVERY_ARM if arm.kind != "dr3"), Arm("gram-permuted", 0.1), Arm("sigreg", 1.0)]
CHANNELS = {"breakout": 4, "asterix": 4, "freeway": 7, "space_invaders": 6, "seaquest": 10}


def network(channels=4, features=128, actions=6):
    return NetworkSpec("minatar", (channels, 10, 10), actions=actions, features_dim=features)


class ByKernels(Learner):
    """A learner whose runs are updated by kernels."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.runs = [RunUpdate(self, run) for run in range(len(self.seeds))]

    def update_block(self, number, batch):
        td, penalty = torch.tensor(self.runs[number].learn(batch, self.updates + 1)).unsqueeze(1)
        samples = torch.full_like(batch.rewards[:1], torch.nan)  # which the kernels do not give
        return Losses(td + penalty, {"td": td, "penalty": penalty}, samples)


def pair(spec, config, arms, counts=None):
    return [kind(spec, config, list(range(len(arms))), arms, counts) for kind in (ByKernels, Learner)]


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


CASES = {
    **{game: {"spec": network(channels), "updates": 5} for game, channels in CHANNELS.items()},
    "sizes that fill no block": {
        "spec": network(features=13, actions=3),
        "config": CONFIGS["double_q"],
        "arms": ARMS,
        "size": 7,
    },
    "fewer actions": {"arms": [Arm("dqn")] * 3, "counts": [6, 3, 1]},
    "fewer actions, double Q": {"arms": [Arm("dqn")] * 3, "counts": [6, 3, 1], "config": CONFIGS["double_q"]},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_game_and_size_is_updated_as_in_torch(case):
    compare(**{"spec": network(), "config": LearnerConfig(), "arms": [Arm("dqn"), Arm("gram", 0.1)]} | case)


def test_sparse_pictures_and_batches_of_other_sizes_are_updated_as_in_torch():
    spec, arms = network(), [Arm("dqn"), Arm("gram", 0.1)]
    ours, theirs = pair(spec, LearnerConfig(), arms)
    for size in (32, 8, 32):
        batch = batch_of(spec, [0, 1], size=size)
        for pictures in (batch.observations, batch.next_observations):
            pictures *= torch.rand(pictures.shape, generator=torch.Generator().manual_seed(0)) < 0.1
        ours.update(batch)
        theirs.update(batch)
    torch.testing.assert_close(ours.state.online, theirs.state.online, rtol=1e-3, atol=2e-6)


@pytest.mark.parametrize("size", [6, 32])
def test_a_run_is_updated_to_the_same_bits_alone_and_among_others(size):
    spec, seeds = SPECS["minatar"], list(range(len(ARMS)))
    together = ByKernels(spec, LearnerConfig(), seeds, ARMS)
    alone = [ByKernels(spec, LearnerConfig(), [seed], [arm]) for seed, arm in zip(seeds, ARMS, strict=True)]
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


@pytest.mark.parametrize("environments", [1, 3])
def test_actors_choose_as_in_torch(environments):
    learner = Learner(network(), LearnerConfig(), [0, 1], [Arm("dqn")] * 2, [6, 3])
    head = learner.layout.views(learner.state.online)["head.weight"]
    head.copy_(torch.randn(head.shape, generator=torch.Generator().manual_seed(0)))  # best actions of all kinds
    pictures = batch_of(learner.spec, [0, 1], size=60).observations
    chosen = np.zeros((2, 60), np.int64)
    for run, own in enumerate(networks(learner, learner.state.online)):
        workspace = kernels.workspace(own, pictures[run, :environments].numpy())
        for first in range(0, 60, environments):
            some = slice(first, first + environments)
            kernels.act(pictures[run, some].numpy(), own, legal_actions(learner)[run], workspace, chosen[run, some])
    assert np.array_equal(chosen, learner.greedy(pictures))
    assert all(len(np.unique(actions)) > 2 for actions in chosen)


def test_an_actor_takes_a_value_that_is_not_a_number_for_the_largest_as_torch_does():
    values, legal = np.array([1.0, np.nan, 3.0], np.float32), np.ones(3, np.bool_)
    assert kernels.best(values, legal) == int(torch.from_numpy(values).argmax()) == 1
    assert kernels.best(values, np.array([True, False, True])) == 2
