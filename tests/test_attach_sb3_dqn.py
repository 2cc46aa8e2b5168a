"""Stable-Baselines3's own DQN: injection against a subclass whose ``train`` adds the penalty to its loss."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN
from stable_baselines3.common.utils import set_random_seed

import gramian
from tests.attach_hosts import Pictures

pytestmark = pytest.mark.slow

KAPPA = {"CnnPolicy": 1e5, "MlpPolicy": 300.0}
"""Large, so that the penalty's gradient at the small initial features is as large as the TD loss's."""
POLICIES = list(KAPPA)


class ByHand(DQN):
    """SB3's DQN with one term more in its loss: the oracle."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        kappa = KAPPA["CnnPolicy" if self.q_net.net_arch == [] else "MlpPolicy"]
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size)
            with torch.no_grad():
                best = self.q_net_target(data.next_observations).max(dim=1, keepdim=True).values
                targets = data.rewards + (1 - data.dones) * self.gamma * best
            *body, head = self.q_net.q_net
            hidden = self.q_net.extract_features(data.observations, self.q_net.features_extractor)
            for layer in body:
                hidden = layer(hidden)
            values = head(hidden).gather(1, data.actions.long())
            loss = smooth_l1_loss(values, targets) + kappa * gramian.gram_penalty(hidden)
            self.policy.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps


def agent(policy: str, algorithm: type[DQN] = DQN, optimizer: type[torch.optim.Optimizer] = torch.optim.SGD) -> DQN:
    """An agent that has seen forty steps and learned from none; the same at each call.

    With CnnPolicy the head sits on the features extractor itself, so that its features are the last hidden layer.
    SGD is the default here because Adam's first step is a sign: it would hide a penalty of the wrong size.
    """
    pictures = policy == "CnnPolicy"
    network = {"features_extractor_kwargs": {"features_dim": 32}} if pictures else {"net_arch": [32, 16]}
    model = algorithm(
        policy,
        Pictures() if pictures else "CartPole-v1",
        policy_kwargs={**network, "optimizer_class": optimizer},
        learning_rate=0.1 if optimizer is torch.optim.SGD else 1e-4,
        learning_starts=100,
        buffer_size=64,
        batch_size=16,
        seed=3,
        device="cpu",
    )
    return model.learn(40)


def features_of(model: DQN) -> nn.Module:
    """Where the recipes put the penalty."""
    return model.q_net.features_extractor if model.q_net.net_arch == [] else model.q_net.q_net[-2]


def weights(module: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in module.parameters()]


def train(model: DQN, steps: int) -> DQN:
    """Take training steps on batches that depend on nothing but the replay memory."""
    set_random_seed(11)
    model.train(steps, batch_size=16)
    return model


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("steps", [1, 5])
def test_injection_gives_the_weights_of_the_penalty_in_the_loss(
    policy: str, steps: int, optimizer: type[torch.optim.Optimizer]
) -> None:
    expected = train(agent(policy, ByHand, optimizer), steps)
    model = agent(policy, optimizer=optimizer)
    before = weights(model.q_net)
    gramian.attach(features_of(model), kappa=KAPPA[policy], inject=True)
    train(model, steps)
    for actual, wanted, old in zip(weights(model.q_net), weights(expected.q_net), before, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-6)
        assert not torch.equal(actual, old)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_another_kappa_would_give_other_weights(policy: str, share: float) -> None:
    """Or else the test above would say nothing."""
    expected = train(agent(policy, ByHand), 1)
    model = agent(policy)
    gramian.attach(features_of(model), kappa=share * KAPPA[policy], inject=True)
    train(model, 1)
    largest = max(
        float((a - b).abs().max()) for a, b in zip(weights(model.q_net), weights(expected.q_net), strict=True)
    )
    assert largest > 1e-4


@pytest.mark.parametrize("policy", POLICIES)
def test_kappa_zero_is_plain_dqn_bit_for_bit(policy: str) -> None:
    plain = train(agent(policy), 5)
    model = agent(policy)
    gramian.attach(features_of(model), kappa=0.0, inject=True)
    train(model, 5)
    assert all(torch.equal(a, b) for a, b in zip(weights(model.q_net), weights(plain.q_net), strict=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_target_network_is_untouched(policy: str) -> None:
    model = agent(policy)
    before = weights(model.q_net_target)
    gramian.attach(features_of(model), kappa=KAPPA[policy], inject=True)
    train(model, 5)
    assert all(torch.equal(a, b) for a, b in zip(weights(model.q_net_target), before, strict=True))
    assert not any(module._forward_hooks for module in model.q_net_target.modules())


@pytest.mark.parametrize("policy", POLICIES)
def test_acting_does_not_trigger_it(policy: str) -> None:
    model = agent(policy)
    reg = gramian.attach(features_of(model), kappa=KAPPA[policy], inject=True)
    model.learn(20, reset_num_timesteps=False)  # still before learning_starts: the agent acts and learns nothing
    model.predict(model.env.reset())
    assert reg.last is None


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_saving_and_loading_work(policy: str, removed: bool, tmp_path: Path) -> None:
    model = agent(policy)
    reg = gramian.attach(features_of(model), kappa=KAPPA[policy], inject=True)
    train(model, 1)
    if removed:
        reg.remove()
    model.save(tmp_path / "agent")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded = DQN.load(tmp_path / "agent", env=model.env)
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert all(torch.equal(a, b) for a, b in zip(weights(loaded.policy), weights(model.policy), strict=True))
    assert not any(module._forward_hooks for module in loaded.policy.modules())
    loaded.learn(8)
    train(loaded, 1)


def test_an_attachment_survives_set_parameters_and_goes_on() -> None:
    model = agent("MlpPolicy")
    reg = gramian.attach(features_of(model), kappa=1.0, inject=True)
    model.set_parameters(agent("MlpPolicy").get_parameters())
    train(model, 1)
    assert reg.last is not None


def test_the_mlp_features_extractor_is_a_bare_flatten_that_has_nothing_to_penalise() -> None:
    model = agent("MlpPolicy")
    reg = gramian.attach(model.q_net.features_extractor, kappa=1.0, inject=True)
    train(model, 1)
    assert reg.last is None
