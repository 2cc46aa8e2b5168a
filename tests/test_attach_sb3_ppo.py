"""Stable-Baselines3's own PPO, whose policy and value share their features."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed

import gramian
from tests.attach_hosts import Pictures

pytestmark = pytest.mark.slow

KAPPA = 0.5


class ByHand(PPO):
    """SB3's PPO with one line more in its loss: the oracle."""

    def train(self) -> None:
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        clip = self.clip_range(self._current_progress_remaining)
        for _ in range(self.n_epochs):
            for data in self.rollout_buffer.get(self.batch_size):
                features = self.policy.extract_features(data.observations)
                latent_pi, latent_vf = self.policy.mlp_extractor(features)
                distribution = self.policy._get_action_dist_from_latent(latent_pi)
                advantages = (data.advantages - data.advantages.mean()) / (data.advantages.std() + 1e-8)
                ratio = torch.exp(distribution.log_prob(data.actions.long().flatten()) - data.old_log_prob)
                surrogate = torch.min(advantages * ratio, advantages * ratio.clamp(1 - clip, 1 + clip)).mean()
                value_loss = mse_loss(data.returns, self.policy.value_net(latent_vf).flatten())
                loss = -surrogate - self.ent_coef * distribution.entropy().mean() + self.vf_coef * value_loss
                loss = loss + KAPPA * gramian.gram_penalty(features)
                self.policy.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                self.policy.optimizer.step()


def agent(algorithm: type[PPO] = PPO, **settings: object) -> PPO:
    """An agent that has one rollout and has learned nothing; the same at each call.

    SGD and hardly any clipping, because both Adam's first step and the clipped norm would hide a penalty of the wrong
    size.
    """
    model = algorithm(
        "CnnPolicy",
        Pictures(),
        policy_kwargs={
            "features_extractor_kwargs": {"features_dim": 32},
            "optimizer_class": torch.optim.SGD,
            **settings,
        },
        learning_rate=0.05,
        max_grad_norm=100.0,
        n_steps=32,
        batch_size=16,
        n_epochs=2,
        ent_coef=0.01,
        seed=3,
        device="cpu",
    )
    _, callback = model._setup_learn(32)
    assert model.collect_rollouts(model.env, callback, model.rollout_buffer, n_rollout_steps=32)
    return model


def train(model: PPO) -> list[Tensor]:
    set_random_seed(11)
    model.train()
    return [p.detach().clone() for p in model.policy.parameters()]


def test_injection_gives_the_weights_of_the_penalty_in_the_loss() -> None:
    model = agent()
    gramian.attach(model.policy.features_extractor, kappa=KAPPA, inject=True)
    for actual, wanted in zip(train(model), train(agent(ByHand)), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kappa", [0.0, KAPPA / 2])
def test_another_kappa_would_give_other_weights(kappa: float) -> None:
    """Or else the test above would say nothing."""
    model = agent()
    gramian.attach(model.policy.features_extractor, kappa=kappa, inject=True)
    pairs = zip(train(model), train(agent(ByHand)), strict=True)
    assert max(float((a - b).abs().max()) for a, b in pairs) > 1e-4


def test_kappa_zero_is_plain_ppo_bit_for_bit() -> None:
    model = agent()
    gramian.attach(model.policy.features_extractor, kappa=0.0, inject=True)
    assert all(torch.equal(a, b) for a, b in zip(train(model), train(agent()), strict=True))


def test_collecting_a_rollout_does_not_trigger_it() -> None:
    model = agent()
    reg = gramian.attach(model.policy.features_extractor, kappa=KAPPA, inject=True)
    _, callback = model._setup_learn(32)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, n_rollout_steps=32)
    assert reg.last is None


def test_features_that_are_not_shared_take_one_attachment_each() -> None:
    model = agent(share_features_extractor=False)
    actor = gramian.attach(model.policy.pi_features_extractor, kappa=KAPPA, inject=True)
    critic = gramian.attach(model.policy.vf_features_extractor, kappa=KAPPA, inject=True)
    train(model)
    assert actor.last is not None
    assert critic.last is not None
    assert not torch.equal(actor.last.value, critic.last.value)


def test_saving_and_loading_work_while_attached(tmp_path) -> None:
    model = agent()
    gramian.attach(model.policy.features_extractor, kappa=KAPPA, inject=True)
    expected = train(model)
    model.save(tmp_path / "agent")
    loaded = PPO.load(tmp_path / "agent")
    assert all(torch.equal(a, b) for a, b in zip(loaded.policy.parameters(), expected, strict=True))
    assert not any(module._forward_hooks for module in loaded.policy.modules())


def test_the_hidden_layers_of_mlp_policy_can_be_penalised_each_on_its_own() -> None:
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, n_epochs=1, seed=3, device="cpu")
    actor = gramian.attach(model.policy.mlp_extractor.policy_net, kappa=KAPPA, inject=True)
    critic = gramian.attach(model.policy.mlp_extractor.value_net, kappa=KAPPA, inject=True)
    model.learn(32)
    assert actor.last is not None
    assert critic.last is not None
