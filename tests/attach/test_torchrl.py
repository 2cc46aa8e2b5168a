"""TorchRL's own DQN loss, which runs online and target parameters through one module."""

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("torchrl")

from tensordict import TensorDict
from torchrl.data import OneHot
from torchrl.modules import QValueActor
from torchrl.objectives import DQNLoss

import gramian

pytestmark = pytest.mark.slow

KAPPA = 0.5


def host(double_dqn: bool) -> tuple[nn.Module, nn.Module, DQNLoss]:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 16), nn.ReLU())
    network = nn.Sequential(body, nn.Linear(16, 2))
    actor = QValueActor(network, in_keys=["observation"], spec=OneHot(2))
    loss = DQNLoss(actor, double_dqn=double_dqn)
    loss.make_value_estimator(gamma=0.9)
    for target in loss.target_value_network_params.values(True, True):
        target.data.add_(0.1)
    return body, network, loss


def transitions(n: int = 8) -> TensorDict:
    generator = torch.Generator().manual_seed(1)
    done = torch.zeros(n, 1, dtype=torch.bool)
    return TensorDict(
        {
            "observation": torch.randn(n, 4, generator=generator),
            "action": torch.eye(2)[torch.randint(2, (n,), generator=generator)],
            "next": {
                "observation": torch.randn(n, 4, generator=generator),
                "reward": torch.randn(n, 1, generator=generator),
                "done": done,
                "terminated": done,
            },
        },
        [n],
    )


def gradients(loss_module: DQNLoss, extra: Tensor | None = None, loss: Tensor | None = None) -> list[Tensor]:
    loss = loss_module(transitions())["loss"] if loss is None else loss
    (loss if extra is None else loss + extra).backward()
    return [p.grad for p in loss_module.value_network_params.values(True, True)]


def by_hand(double_dqn: bool) -> list[Tensor]:
    body, _, loss = host(double_dqn)
    with loss.value_network_params.to_module(loss.value_network):
        features = body(transitions()["observation"])
    return gradients(loss, KAPPA * gramian.gram_penalty(features))


@pytest.mark.parametrize("double_dqn", [False, True])
def test_injection_gives_the_gradients_of_the_penalty_in_the_loss(double_dqn: bool) -> None:
    body, _, loss = host(double_dqn)
    gramian.attach(body, kappa=KAPPA, inject=True)
    for actual, wanted in zip(gradients(loss), by_hand(double_dqn), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("double_dqn", [False, True])
def test_loss_gives_them_too_though_the_target_ran_through_the_same_module_since(double_dqn: bool) -> None:
    body, _, loss = host(double_dqn)
    reg = gramian.attach(body, kappa=KAPPA)
    td_loss = loss(transitions())["loss"]
    for actual, wanted in zip(gradients(loss, reg.loss(), td_loss), by_hand(double_dqn), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-6)


def test_the_target_parameters_get_no_gradient() -> None:
    body, _, loss = host(double_dqn=True)
    gramian.attach(body, kappa=KAPPA, inject=True)
    gradients(loss)
    assert all(p.grad is None for p in loss.target_value_network_params.values(True, True))
