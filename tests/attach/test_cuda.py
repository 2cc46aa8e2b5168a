"""On CUDA: nothing waits for the device, and a captured graph reads what changes."""

import pytest
import torch
from torch import nn

from gramian.attach import attach
from gramian.attach.attachment import Attachment
from tests.attach.hosts import batch, by_hand, network, td_loss

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

CASES = {
    "loss": {"kappa": 1.0},
    "inject": {"kappa": 1.0, "inject": True},
    "input": {"kappa": 1.0, "inject": True, "on": "input"},
    "ratio": {"ratio": 0.1, "inject": True},
    "two": {"penalties": {"gram": 1.0, "norm": 0.5}, "inject": True},
    "sigreg": {"kappa": 1.0, "penalty": "sigreg", "inject": True},
    "weights": {"kappa": 1.0, "penalty": "orthogonality", "inject": True, "on": "output"},
    "mask": {"ratio": 0.1, "inject": True},
}


def host(case: str) -> tuple[nn.Sequential, Attachment, torch.Tensor]:
    net = network(dtype=torch.float32).cuda()
    x = batch(dtype=torch.float32).cuda()
    reg = attach(net[1] if case == "input" else net[0], **CASES[case])
    if case == "mask":
        reg.mask = torch.tensor([True, True, False, True, True, False], device="cuda")
    return net, reg, x


@pytest.mark.parametrize("case", CASES)
def test_nothing_waits_for_the_device(case: str) -> None:
    net, reg, x = host(case)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    td_loss(net(x)).backward()  # what is made once may wait
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in range(3):
            if case in ("loss", "inject", "input"):
                reg.kappa = 1.0 + step
            loss = td_loss(net(x))
            (loss if reg.inject else loss + reg.loss()).backward()
            optimizer.step()
            _ = reg.last.value, reg.last.terms, reg.last.ratio, reg.penalties
    finally:
        torch.cuda.set_sync_debug_mode("default")
    reg.check()
    assert reg.last.value.is_cuda


@pytest.mark.parametrize("case", ["inject", "ratio", "mask"])
def test_a_captured_graph_equals_the_eager_host_and_reads_a_new_kappa(case: str) -> None:
    net, reg, x = host(case)

    def backward() -> None:
        net.zero_grad(set_to_none=False)
        td_loss(net(x)).backward()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            backward()
    torch.cuda.current_stream().wait_stream(stream)
    eager = [p.grad.clone() for p in net.parameters()]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        backward()
    graph.replay()
    for parameter, wanted in zip(net.parameters(), eager, strict=True):
        torch.testing.assert_close(parameter.grad, wanted, rtol=1e-4, atol=1e-6)
    if case == "inject":
        reg.kappa = 3.0
        graph.replay()
        for parameter, expected in zip(net.parameters(), by_hand(3.0), strict=True):
            torch.testing.assert_close(parameter.grad.cpu().double(), expected, rtol=1e-4, atol=1e-5)
