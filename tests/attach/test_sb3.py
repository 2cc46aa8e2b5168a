"""Stable-Baselines3's own DQN and PPO: injection against subclasses whose ``train`` adds the penalty to its loss."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss, smooth_l1_loss

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.utils import set_random_seed

import gramian
from tests.attach.hosts import Pictures

pytestmark = pytest.mark.slow

KAPPA = {"CnnPolicy": 1e5, "MlpPolicy": 300.0}
"""Large, so that the penalty's gradient at the small initial features is as large as the TD loss's."""
POLICIES = list(KAPPA)
PPO_KAPPA = 0.5


class DQNByHand(DQN):
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


class PPOByHand(PPO):
    """SB3's PPO, whose policy and value share their features, with one line more in its loss: the oracle."""

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
                loss = loss + PPO_KAPPA * gramian.gram_penalty(features)
                self.policy.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                self.policy.optimizer.step()


def dqn(policy: str, algorithm: type[DQN] = DQN, optimizer: type[torch.optim.Optimizer] = torch.optim.SGD) -> DQN:
    """An agent that has seen forty steps and learned from none; the same at each call.

    With CnnPolicy the head sits on the features extractor itself, so that its features are the last hidden layer.
    SGD, because Adam's first step is a sign: it would hide a penalty of the wrong size.
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


def ppo(algorithm: type[PPO] = PPO, **settings: object) -> PPO:
    """An agent that has one rollout and has learned nothing; hardly any clipping, which would hide a wrong size."""
    network = {"features_extractor_kwargs": {"features_dim": 32}, "optimizer_class": torch.optim.SGD}
    steps = {"n_steps": 32, "batch_size": 16, "n_epochs": 2, "learning_rate": 0.05, "max_grad_norm": 100.0}
    model = algorithm(
        "CnnPolicy", Pictures(), policy_kwargs=network | settings, ent_coef=0.01, seed=3, device="cpu", **steps
    )
    _, callback = model._setup_learn(32)
    assert model.collect_rollouts(model.env, callback, model.rollout_buffer, n_rollout_steps=32)
    return model


def features_of(model: DQN | PPO) -> nn.Module:
    """Where the recipes put the penalty."""
    if isinstance(model, PPO):
        return model.policy.features_extractor
    return model.q_net.features_extractor if model.q_net.net_arch == [] else model.q_net.q_net[-2]


def weights(module: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in module.parameters()]


def train(model: DQN | PPO, steps: int = 5) -> list[Tensor]:
    """Weights after training on batches that depend on nothing but what the agent has seen."""
    set_random_seed(11)
    if isinstance(model, PPO):
        model.train()
    else:
        model.train(steps, batch_size=16)
    return weights(model.policy)


def largest_difference(first: list[Tensor], second: list[Tensor]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("steps", [1, 5])
def test_injection_into_dqn_gives_the_weights_of_the_penalty_in_the_loss(policy, steps, optimizer) -> None:
    model, oracle = dqn(policy, optimizer=optimizer), dqn(policy, DQNByHand, optimizer)
    before = weights(model.q_net)
    gramian.attach(features_of(model), kappa=KAPPA[policy], inject=True)
    for actual, wanted in zip(train(model, steps), train(oracle, steps), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-6)
    assert not any(torch.equal(a, b) for a, b in zip(weights(model.q_net), before, strict=True))


def test_injection_into_ppo_gives_the_weights_of_the_penalty_in_the_loss() -> None:
    model = ppo()
    gramian.attach(features_of(model), kappa=PPO_KAPPA, inject=True)
    for actual, wanted in zip(train(model), train(ppo(PPOByHand)), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_another_kappa_would_give_other_weights(share: float) -> None:
    """Or else the tests above would say nothing."""
    for policy in POLICIES:
        model = dqn(policy)
        gramian.attach(features_of(model), kappa=share * KAPPA[policy], inject=True)
        assert largest_difference(train(model, 1), train(dqn(policy, DQNByHand), 1)) > 1e-4
    model = ppo()
    gramian.attach(features_of(model), kappa=share * PPO_KAPPA, inject=True)
    assert largest_difference(train(model), train(ppo(PPOByHand))) > 1e-4


@pytest.mark.parametrize("make", [lambda: dqn("CnnPolicy"), lambda: dqn("MlpPolicy"), ppo])
def test_kappa_zero_is_the_plain_agent_bit_for_bit(make) -> None:
    model = make()
    gramian.attach(features_of(model), kappa=0.0, inject=True)
    assert largest_difference(train(model), train(make())) == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_the_target_network_is_untouched(policy: str) -> None:
    model = dqn(policy)
    before = weights(model.q_net_target)
    gramian.attach(features_of(model), kappa=KAPPA[policy], inject=True)
    train(model)
    assert largest_difference(weights(model.q_net_target), before) == 0
    assert not any(module._forward_hooks for module in model.q_net_target.modules())


@pytest.mark.parametrize("policy", POLICIES)
def test_acting_does_not_trigger_it(policy: str) -> None:
    model = dqn(policy)
    reg = gramian.attach(features_of(model), kappa=KAPPA[policy], inject=True)
    model.learn(20, reset_num_timesteps=False)  # still before learning_starts: the agent acts and learns nothing
    model.predict(model.env.reset())
    assert reg.last is None


def test_collecting_a_rollout_does_not_trigger_it() -> None:
    model = ppo()
    reg = gramian.attach(features_of(model), kappa=PPO_KAPPA, inject=True)
    _, callback = model._setup_learn(32)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, n_rollout_steps=32)
    assert reg.last is None


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("make", [lambda: dqn("CnnPolicy"), lambda: dqn("MlpPolicy"), ppo])
def test_saving_and_loading_work(make, removed: bool, tmp_path: Path) -> None:
    model = make()
    reg = gramian.attach(features_of(model), kappa=1.0, inject=True)
    expected = train(model, 1)
    if removed:
        reg.remove()
    model.save(tmp_path / "agent")
    loaded = type(model).load(tmp_path / "agent", env=model.env)
    assert largest_difference(weights(loaded.policy), expected) == 0
    assert not any(module._forward_hooks for module in loaded.policy.modules())
    loaded.learn(8)
    if isinstance(model, DQN):
        model.save_replay_buffer(tmp_path / "buffer")
        loaded.load_replay_buffer(tmp_path / "buffer")
    train(loaded, 1)


def test_an_attachment_survives_set_parameters_and_goes_on() -> None:
    model = dqn("MlpPolicy")
    reg = gramian.attach(features_of(model), kappa=1.0, inject=True)
    model.set_parameters(dqn("MlpPolicy").get_parameters())
    train(model, 1)
    assert reg.last is not None


def test_the_mlp_features_extractor_is_a_bare_flatten_that_has_nothing_to_penalise() -> None:
    model = dqn("MlpPolicy")
    reg = gramian.attach(model.q_net.features_extractor, kappa=1.0, inject=True)
    train(model, 1)
    assert reg.last is None


def test_features_that_are_not_shared_take_one_attachment_each() -> None:
    model = ppo(share_features_extractor=False)
    extractors = (model.policy.pi_features_extractor, model.policy.vf_features_extractor)
    actor, critic = (gramian.attach(extractor, kappa=PPO_KAPPA, inject=True) for extractor in extractors)
    train(model)
    assert not torch.equal(actor.last.value, critic.last.value)


def test_the_hidden_layers_of_mlp_policy_can_be_penalised_each_on_its_own() -> None:
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, n_epochs=1, seed=3, device="cpu")
    bodies = (model.policy.mlp_extractor.policy_net, model.policy.mlp_extractor.value_net)
    actor, critic = (gramian.attach(body, kappa=PPO_KAPPA, inject=True) for body in bodies)
    model.learn(32)
    assert actor.last is not None
    assert critic.last is not None


def actor_gradient(algorithm: type[SAC] | type[TD3], kappa: float, guarded: bool = True) -> list[Tensor]:
    """What the actor's loss sends to the actor, after an update of the critics that changes nothing."""
    model = algorithm(
        "MlpPolicy",
        "Pendulum-v1",
        policy_kwargs={"net_arch": [16], "optimizer_class": torch.optim.SGD},
        learning_rate=0.0,
        learning_starts=40,
        seed=3,
        device="cpu",
    ).learn(40)
    when = gramian.depends_only_on(model.critic) if guarded else None
    regs = [gramian.attach(q[-1], kappa, on="input", inject=True, when=when) for q in model.critic.q_networks]
    set_random_seed(11)
    model.train(2, batch_size=16)
    for reg in regs:
        reg.check()
    return [parameter.grad.clone() for parameter in model.actor.parameters()]


@pytest.mark.parametrize("algorithm", [SAC, TD3])
def test_the_actor_behind_a_critic_is_untouched(algorithm) -> None:
    plain = actor_gradient(algorithm, 0.0)
    assert all(torch.equal(a, b) for a, b in zip(actor_gradient(algorithm, 100.0), plain, strict=True))
    with pytest.warns(UserWarning, match="the penalty drives the actor too"):
        driven = actor_gradient(algorithm, 100.0, guarded=False)
    assert largest_difference(driven, plain) > 0.1 * max(float(g.abs().max()) for g in plain)


def test_padding_of_recurrent_ppo_does_not_count() -> None:
    """Of its batches of sequences a part is padding; what the padded rows hold makes no difference."""
    contrib = pytest.importorskip("sb3_contrib")
    model = contrib.RecurrentPPO("MlpLstmPolicy", "CartPole-v1", n_steps=64, batch_size=32, seed=3, device="cpu")
    reg = gramian.attach(model.policy.value_net, kappa=0.1, on="input", inject=True)
    batches = model.rollout_buffer.get
    counted, rows, values, wanted = 0, 0, [], []

    def masked_batches(batch_size=None):
        nonlocal counted, rows
        for batch in batches(batch_size):
            reg.mask = batch.mask > 0
            counted, rows = counted + int(reg.mask.sum()), rows + len(batch.mask)
            yield batch

    def keep(_module, arguments) -> None:
        if arguments[0].requires_grad:
            values.append(float(reg.last.value))
            wanted.append(float(gramian.gram_penalty(arguments[0].detach()[reg.mask])))

    model.rollout_buffer.get = masked_batches
    model.policy.value_net.register_forward_pre_hook(keep)
    model.learn(64)
    assert 0.1 * rows < counted < 0.9 * rows
    assert values == pytest.approx(wanted, rel=1e-4)
