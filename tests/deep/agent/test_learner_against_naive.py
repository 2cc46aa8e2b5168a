"""Updates compared number by number with a naive PyTorch implementation."""

from dataclasses import replace

import pytest
import torch

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig
from tests.deep.naive import NaiveRun, own_part
from tests.deep.populations import EVERY_ARM, SPECS, batch_of


def compare(spec, config, arms, updates, dtype=torch.float64, tolerance=1e-10, actions=None):
    """Train the population and the naive runs side by side; every loss and every weight must agree."""
    seeds = list(range(len(arms)))
    rates = tuple(3e-3 * (1 + run / 2) for run in seeds)
    config = replace(config, learning_rate=rates, target_period_updates=4)
    counts = actions or [spec.actions] * len(arms)
    learner = Learner(spec, config, seeds, arms, counts, dtype=dtype)
    naive = [NaiveRun.like(learner, run, arms[run], rates[run], counts[run]) for run in seeds]
    for number in range(updates):
        batch = batch_of(spec, seeds, number, actions=counts, scale=2.0)
        losses = learner.update(batch)
        for run, one in enumerate(naive):
            td, penalty = one.update(own_part(batch, run))
            close = {"rtol": tolerance, "atol": tolerance}
            torch.testing.assert_close(losses.components["td"][run], td, **close)
            torch.testing.assert_close(losses.components["penalty"][run], penalty, **close)
            torch.testing.assert_close(losses.total[run], td + penalty, **close)
    state = learner.state_dict()
    for run, one in enumerate(naive):
        for role, network in (("online", one.online), ("target", one.target)):
            for name, parameter in network.named().items():
                ours = state[f"{role}.{name}"][run]
                torch.testing.assert_close(
                    ours[: parameter.shape[0]], parameter.detach(), rtol=tolerance, atol=tolerance, msg=f"{run} {name}"
                )
                assert (ours[parameter.shape[0] :] == 0).all()
    assert (learner.diverged_at == -1).all()


@pytest.mark.parametrize("updates", [1, 10])
@pytest.mark.parametrize("double_q", [False, True])
@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_every_arm_in_one_population_equals_naive_runs(loss, double_q, updates):
    compare(SPECS["mlp"], LearnerConfig(loss=loss, double_q=double_q), EVERY_ARM, updates)


@pytest.mark.parametrize("arm", EVERY_ARM, ids=str)
def test_an_arm_alone_equals_a_naive_run(arm):
    compare(SPECS["mlp"], LearnerConfig(), [arm], 10)


@pytest.mark.parametrize("kind", ["minatar", "nature", "dopamine"])
def test_convolutional_populations_equal_naive_runs(kind):
    compare(SPECS[kind], LearnerConfig(), [Arm("dqn"), Arm("gram", 0.5), Arm("decor", 0.2), Arm("dr3", 0.1)], 10)


@pytest.mark.parametrize("kind", ["mlp", "minatar"])
def test_layer_norm_equals_naive_runs(kind):
    compare(replace(SPECS[kind], layer_norm=True), LearnerConfig(), [Arm("dqn"), Arm("gram", 0.1), Arm("dr3", 0.1)], 10)


def test_weight_decay_equals_adamw():
    compare(SPECS["mlp"], LearnerConfig(weight_decay=0.1), [Arm("dqn"), Arm("gram", 0.1)], 10)


def test_gradient_clipping_equals_naive_runs():
    compare(SPECS["mlp"], LearnerConfig(max_grad_norm=0.05), [Arm("dqn"), Arm("gram", 5.0)], 10)


@pytest.mark.parametrize("double_q", [False, True])
def test_runs_with_fewer_actions_equal_naive_runs_with_a_smaller_head(double_q):
    arms = [Arm("dqn"), Arm("gram", 0.1), Arm("dqn")]
    compare(SPECS["mlp"], LearnerConfig(double_q=double_q), arms, 10, actions=[3, 2, 1])


def test_float32_equals_naive_runs_within_its_precision():
    compare(
        SPECS["minatar"], LearnerConfig(), [Arm("dqn"), Arm("gram", 0.1), Arm("decor", 0.1)], 10, torch.float32, 2e-5
    )


def test_the_full_nature_network_equals_a_naive_run():
    spec = replace(SPECS["nature"], observation_shape=(4, 84, 84), actions=6, features_dim=512)
    compare(spec, LearnerConfig(adam_epsilon=1.5e-4), [Arm("dqn"), Arm("l2", 0.01)], 1)
