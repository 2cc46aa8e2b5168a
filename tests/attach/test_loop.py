"""A DQN loop written out by hand, as a researcher has one: acting, replay, target network, double Q-learning."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

import gramian


def trained(mode: str, kappa: float, updates: int = 20) -> tuple[list[Tensor], float]:
    """Weights of online and target network, and the last penalty, on a fixed memory of random transitions."""
    torch.manual_seed(0)
    body, head = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU()), nn.Linear(16, 2)
    reg = gramian.attach(body, kappa=kappa, inject=mode == "inject") if mode in ("loss", "inject") else None
    online = nn.Sequential(body, head)
    target = copy.deepcopy(online)  # carries no penalty
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
    states, next_states, rewards = torch.randn(64, 4), torch.randn(64, 4), torch.randn(64)
    actions = torch.randint(2, (64, 1))
    for _ in range(updates):
        online(states[:1]).argmax()  # to act, with gradients on, as many scripts do
        index = torch.randint(64, (16,))
        features = body(states[index])
        values = head(features).gather(1, actions[index]).squeeze(1)
        with torch.no_grad():
            best = online(next_states[index]).argmax(1, keepdim=True)
            targets = rewards[index] + 0.9 * target(next_states[index]).gather(1, best).squeeze(1)
        loss = smooth_l1_loss(values, targets)
        if mode == "by hand":
            loss = loss + kappa * gramian.gram_penalty(features)
        elif mode == "loss":
            loss = loss + reg.loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = [parameter.detach() for network in (online, target) for parameter in network.parameters()]
    return weights, float(gramian.gram_penalty(body(states).detach()))


@pytest.mark.parametrize("mode", ["loss", "inject"])
def test_it_trains_as_the_penalty_written_by_hand(mode: str) -> None:
    expected = trained("by hand", 0.5)[0]
    for actual, wanted in zip(trained(mode, 0.5)[0], expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-6)
    others = zip(trained(mode, 0.25)[0], expected, strict=True)
    assert max(float((a - b).abs().max()) for a, b in others) > 1e-3  # or else the lines above would say nothing


@pytest.mark.parametrize("mode", ["loss", "inject"])
def test_kappa_zero_trains_as_plain_dqn_bit_for_bit(mode: str) -> None:
    assert all(torch.equal(a, b) for a, b in zip(trained(mode, 0.0)[0], trained("plain", 0.0)[0], strict=True))


def test_the_penalty_falls_when_it_is_on() -> None:
    assert trained("inject", 1.0, updates=200)[1] < 0.5 * trained("plain", 0.0, updates=200)[1]
