"""A DQN loop written out by hand, as a researcher has one: acting, replay, target network, double Q-learning."""

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

import gramian

KAPPA = 0.5
TRANSITIONS = 64


class Agent:
    """Double DQN on a fixed memory of random transitions; ``mode`` says how the penalty gets in."""

    def __init__(self, mode: str, kappa: float = KAPPA) -> None:
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)
        self.mode, self.kappa = mode, kappa
        self.reg = None
        if mode in ("loss", "inject"):
            self.reg = gramian.attach(self.body, kappa=kappa, inject=mode == "inject")
        self.online = nn.Sequential(self.body, self.head)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-3)
        generator = torch.Generator().manual_seed(1)
        self.states = torch.randn(TRANSITIONS, 4, generator=generator)
        self.next_states = torch.randn(TRANSITIONS, 4, generator=generator)
        self.rewards = torch.randn(TRANSITIONS, generator=generator)
        self.actions = torch.randint(2, (TRANSITIONS, 1), generator=generator)
        self.batches = torch.Generator().manual_seed(2)

    def update(self) -> None:
        self.online(self.states[:1]).argmax()  # to act, with gradients on, as many scripts do
        index = torch.randint(TRANSITIONS, (16,), generator=self.batches)
        features = self.body(self.states[index])
        values = self.head(features).gather(1, self.actions[index]).squeeze(1)
        with torch.no_grad():
            best = self.online(self.next_states[index]).argmax(1, keepdim=True)
            targets = self.rewards[index] + 0.9 * self.target(self.next_states[index]).gather(1, best).squeeze(1)
        loss = smooth_l1_loss(values, targets)
        if self.mode == "by hand":
            loss = loss + self.kappa * gramian.gram_penalty(features)
        elif self.mode == "loss":
            loss = loss + self.reg.loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def after(self, updates: int) -> list[Tensor]:
        for _ in range(updates):
            self.update()
        return [p.detach() for p in self.online.parameters()]


def test_loss_trains_as_the_penalty_written_by_hand() -> None:
    for actual, wanted in zip(Agent("loss").after(20), Agent("by hand").after(20), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-6)


def test_injection_trains_as_the_penalty_written_by_hand() -> None:
    for actual, wanted in zip(Agent("inject").after(20), Agent("by hand").after(20), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-6)


def test_another_kappa_would_give_other_weights() -> None:
    """Or else the two tests above would say nothing."""
    pairs = zip(Agent("inject", kappa=KAPPA / 2).after(20), Agent("by hand").after(20), strict=True)
    assert max(float((a - b).abs().max()) for a, b in pairs) > 1e-3


def test_the_penalty_falls_when_it_is_on() -> None:
    on, off = Agent("inject", kappa=1.0), Agent("inject", kappa=0.0)
    on.after(200)
    off.after(200)
    assert on.reg.last.value < 0.5 * off.reg.last.value


def test_kappa_zero_trains_as_plain_dqn_bit_for_bit() -> None:
    plain = Agent("plain").after(20)
    for mode in ("loss", "inject"):
        assert all(torch.equal(a, b) for a, b in zip(Agent(mode, kappa=0.0).after(20), plain, strict=True))


def test_a_target_network_copied_after_attaching_is_untouched() -> None:
    agent = Agent("inject")
    before = [p.clone() for p in agent.target.parameters()]
    agent.after(5)
    assert all(torch.equal(a, b) for a, b in zip(agent.target.parameters(), before, strict=True))
    assert agent.target(agent.states).requires_grad  # a net like another: it has a graph, and no penalty in it
    gradients = torch.autograd.grad(agent.target(agent.states).sum() * 0, list(agent.target.parameters()))
    assert not any(g.any() for g in gradients)
