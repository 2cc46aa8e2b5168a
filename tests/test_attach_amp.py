"""Injection honours whatever factor lies between the host's loss and what it backpropagates."""

import math

import pytest
import torch
from torch import Tensor, nn

from gramian.attach import attach
from gramian.penalties import gram_penalty

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]


def network(device: str = "cpu") -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Sequential(nn.Linear(5, 16), nn.ReLU()), nn.Linear(16, 3)).to(device)


def batch(n: int = 8, seed: int = 1) -> Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))


def td_loss(values: Tensor) -> Tensor:
    return values.square().mean()


def by_hand(kappa: float, factor: float = 1.0) -> list[Tensor]:
    net = network()
    features = net[0](batch())
    (factor * (td_loss(net[1](features)) + kappa * gram_penalty(features))).backward()
    return [p.grad for p in net.parameters()]


def assert_close(net: nn.Module, expected: list[Tensor]) -> None:
    for p, e in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad.cpu(), e, rtol=1e-5, atol=1e-7 * float(e.abs().max()))


SCALES = {
    "float": lambda: 65536.0,
    "tensor": lambda: torch.tensor([65536.0]),
    "function of float": lambda: lambda: 65536.0,
    "function of tensor": lambda: lambda: torch.tensor(65536.0, dtype=torch.float64),
    "scaler": lambda: torch.amp.GradScaler("cpu", init_scale=65536.0),
}


@pytest.mark.parametrize("scale", SCALES)
def test_the_penalty_is_scaled_with_the_loss(scale: str) -> None:
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=SCALES[scale]())
    (65536.0 * td_loss(net(batch()))).backward()
    assert_close(net, by_hand(0.5, 65536.0))


def test_without_scale_the_penalty_would_be_too_weak() -> None:
    """What `scale` is for: the penalty's part of an unscaled gradient is 65536 times too small."""
    scaled, unscaled, plain = network(), network(), network()
    attach(scaled[0], kappa=0.5, inject=True, scale=65536.0)
    attach(unscaled[0], kappa=0.5, inject=True)
    for net in (scaled, unscaled, plain):
        (65536.0 * td_loss(net(batch()).double())).backward()
    host = plain[0][0].weight.grad
    with_scale, without = scaled[0][0].weight.grad - host, unscaled[0][0].weight.grad - host
    assert without.norm() < 1e-4 * with_scale.norm()


@pytest.mark.parametrize("device", DEVICES)
def test_three_steps_with_a_grad_scaler_equal_the_penalty_in_the_loss(device: str) -> None:
    def train(inject: bool) -> list[Tensor]:
        net = network(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=1)  # another scale at each step
        reg = attach(net[0], kappa=0.5, inject=inject, scale=scaler if inject else None)
        for step in range(3):
            optimizer.zero_grad()
            loss = td_loss(net(batch(seed=step).to(device)))
            scaler.scale(loss if inject else loss + reg.loss()).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 8192.0
        return [p.detach().cpu() for p in net.parameters()]

    for injected, added in zip(train(True), train(False), strict=True):
        torch.testing.assert_close(injected, added, rtol=1e-5, atol=1e-7)


def test_a_disabled_scaler_scales_by_one() -> None:
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=torch.amp.GradScaler("cpu", enabled=False))
    td_loss(net(batch())).backward()
    assert_close(net, by_hand(0.5))


def test_gradients_accumulated_over_k_batches_are_their_mean() -> None:
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=1 / 4)
    for _ in range(4):
        (td_loss(net(batch())) / 4).backward()
    assert_close(net, by_hand(0.5))


def test_scale_can_be_changed_from_one_forward_to_the_next() -> None:
    net = network()
    reg = attach(net[0], kappa=0.5, inject=True, scale=lambda: 7.0)
    for scale in (3.0, torch.tensor(2.0), 1):
        reg.scale = scale
        net.zero_grad()
        (float(scale) * td_loss(net(batch()))).backward()
        assert_close(net, by_hand(0.5, float(scale)))


def test_a_scale_tensor_is_read_anew_at_each_forward() -> None:
    scale = torch.tensor(1.0)
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=scale)
    net(batch())
    scale.fill_(16.0)
    (16.0 * td_loss(net(batch()))).backward()
    assert_close(net, by_hand(0.5, 16.0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("inject", [True, False])
def test_inside_autocast_the_penalty_is_of_float32(device: str, dtype: torch.dtype, inject: bool) -> None:
    net = network(device)
    reg = attach(net[0], kappa=0.5, inject=inject)
    with torch.autocast(device, dtype=dtype):
        loss = td_loss(net(batch().to(device)).float())
        loss = loss if inject else loss + reg.loss()
    loss.backward()
    assert reg.last is not None
    assert reg.last.value.dtype == torch.float32
    exact = by_hand(0.5)
    for p, e in zip(net.parameters(), exact, strict=True):
        assert (p.grad.cpu() - e).norm() < 0.03 * e.norm() + 1e-3


@pytest.mark.parametrize(
    ("scale", "error"),
    [(-1.0, ValueError), (math.inf, ValueError), ("2", TypeError), (torch.ones(3), ValueError)],
)
def test_a_scale_that_is_no_factor_is_refused(scale, error) -> None:
    reg = attach(network()[0], kappa=1.0, inject=True)
    with pytest.raises(error, match="scale must be"):
        reg.scale = scale
    assert reg.scale == 1.0


def test_a_scale_without_injection_is_refused() -> None:
    with pytest.raises(ValueError, match="scaled with the loss it is added to"):
        attach(network()[0], kappa=1.0, scale=2.0)
