"""Injection honours whatever factor lies between the host's loss and what it backpropagates."""

import math

import pytest
import torch
from torch import Tensor

from gramian.attach import attach
from tests.attach.hosts import assert_equal, batch, by_hand, gradients, network, td_loss

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]
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
    assert_equal(gradients(net, 65536.0 * td_loss(net(batch()))), by_hand(0.5), 65536.0)


def test_without_scale_the_penalty_would_be_too_weak() -> None:
    net = network()
    attach(net[0], kappa=0.5, inject=True)
    found = gradients(net, 65536.0 * td_loss(net(batch())))[0]
    plain, wanted = 65536.0 * by_hand(0.0)[0], 65536.0 * by_hand(0.5)[0]
    assert (found - plain).norm() < 1e-4 * (wanted - plain).norm()


@pytest.mark.parametrize("device", DEVICES)
def test_three_steps_with_a_grad_scaler_equal_the_penalty_in_the_loss(device: str) -> None:
    def train(inject: bool) -> list[Tensor]:
        net = network(dtype=torch.float32).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=1)  # another scale at each step
        reg = attach(net[0], kappa=0.5, inject=inject, scale=scaler if inject else None)
        for step in range(3):
            optimizer.zero_grad()
            loss = td_loss(net(batch(dtype=torch.float32, seed=step).to(device)))
            scaler.scale(loss if inject else loss + reg.loss()).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 8192.0
        return [p.detach().cpu() for p in net.parameters()]

    for injected, added in zip(train(True), train(False), strict=True):
        torch.testing.assert_close(injected, added, rtol=1e-5, atol=1e-7)


def test_half_precision_with_a_scaler_keeps_a_ratio() -> None:
    plain, net = network(dtype=torch.float32), network(dtype=torch.float32)
    expected = attach(plain[0], ratio=0.1, inject=True)
    td_loss(plain(batch(dtype=torch.float32))).backward()
    scaler = torch.amp.GradScaler("cpu")
    reg = attach(net[0], ratio=0.1, inject=True, scale=scaler)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = td_loss(net(batch(dtype=torch.float32)).float())
    scaler.scale(loss).backward()
    assert float(reg.last.ratio) == pytest.approx(0.1, rel=0.02)
    assert float(reg.kappa) == pytest.approx(float(expected.kappa), rel=0.01)


def test_a_disabled_scaler_scales_by_one() -> None:
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=torch.amp.GradScaler("cpu", enabled=False))
    assert_equal(gradients(net, td_loss(net(batch()))), by_hand(0.5))


def test_gradients_accumulated_over_k_batches_are_their_mean() -> None:
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=1 / 4)
    for _ in range(4):
        (td_loss(net(batch())) / 4).backward()
    assert_equal([p.grad for p in net.parameters()], by_hand(0.5))


def test_scale_can_be_changed_from_one_forward_to_the_next() -> None:
    net = network()
    reg = attach(net[0], kappa=0.5, inject=True, scale=lambda: 7.0)
    for scale in (3.0, torch.tensor(2.0), 1):
        reg.scale = scale
        assert_equal(gradients(net, float(scale) * td_loss(net(batch()))), by_hand(0.5), float(scale))


def test_a_scale_tensor_is_read_anew_at_each_forward() -> None:
    scale = torch.tensor(1.0)
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=scale)
    net(batch())
    scale.fill_(16.0)
    assert_equal(gradients(net, 16.0 * td_loss(net(batch()))), by_hand(0.5), 16.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("inject", [True, False])
def test_inside_autocast_the_penalty_is_of_float32(device: str, dtype: torch.dtype, inject: bool) -> None:
    net = network(dtype=torch.float32).to(device)
    reg = attach(net[0], kappa=0.5, inject=inject)
    with torch.autocast(device, dtype=dtype):
        loss = td_loss(net(batch().float().to(device)).float())
        loss = loss if inject else loss + reg.loss()
    assert reg.last is not None
    assert reg.last.value.dtype == torch.float32
    for found, exact in zip(gradients(net, loss), by_hand(0.5), strict=True):
        assert (found.cpu() - exact).norm() < 0.03 * exact.norm() + 1e-3


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
