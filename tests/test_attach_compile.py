"""Compiled hosts: whatever the order of compiling and attaching, the gradients are those of the eager host."""

import shutil
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

from gramian.attach import attach
from gramian.penalties import gram_penalty

needs_compiler = pytest.mark.skipif(
    not (torch.cuda.is_available() or shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler"
)
BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, needs_compiler])]


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).relu()


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(Body(), nn.Linear(16, 3))


def batch() -> Tensor:
    return torch.randn(8, 5, generator=torch.Generator().manual_seed(1))


def td_loss(values: Tensor) -> Tensor:
    return values.square().mean()


def gradients(net: nn.Module, run: Callable[[Tensor], Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(td_loss(run(batch())), list(net.parameters())))


def by_hand(kappa: float) -> list[Tensor]:
    net = network()
    features = net[0](batch())
    return list(torch.autograd.grad(td_loss(net[1](features)) + kappa * gram_penalty(features), list(net.parameters())))


def assert_close(actual: list[Tensor], expected: list[Tensor]) -> None:
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
class TestInjection:
    def test_attached_before_compiling(self, backend: str, fullgraph: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=0.5, inject=True)
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        assert_close(gradients(net, compiled), by_hand(0.5))
        assert reg.last is not None
        torch.testing.assert_close(reg.last.value, gram_penalty(net[0](batch())).detach())

    def test_attached_after_the_compiled_host_has_run(self, backend: str, fullgraph: bool) -> None:
        net = network()
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        assert_close(gradients(net, compiled), by_hand(0.0))
        attach(net[0], kappa=0.5, inject=True)
        assert_close(gradients(net, compiled), by_hand(0.5))

    def test_attached_to_a_module_that_is_itself_compiled(self, backend: str, fullgraph: bool) -> None:
        net = network()
        net[0] = torch.compile(net[0], backend=backend, fullgraph=fullgraph)
        net(batch())
        attach(net[0], kappa=0.5, inject=True)
        assert_close(gradients(net, net), by_hand(0.5))

    def test_attached_to_a_module_compiled_in_place(self, backend: str, fullgraph: bool) -> None:
        net = network()
        net[0].compile(backend=backend, fullgraph=fullgraph)
        net(batch())
        attach(net[0], kappa=0.5, inject=True)
        assert_close(gradients(net, net), by_hand(0.5))

    def test_removed_after_the_compiled_host_has_run(self, backend: str, fullgraph: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=0.5, inject=True)
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        gradients(net, compiled)
        reg.remove()
        assert_close(gradients(net, compiled), by_hand(0.0))

    def test_inactive_in_evaluation_mode(self, backend: str, fullgraph: bool) -> None:
        net = network()
        attach(net[0], kappa=0.5, inject=True)
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        gradients(net, compiled)
        net.eval()
        assert_close(gradients(net, compiled), by_hand(0.0))

    def test_a_scale_tensor_is_honoured(self, backend: str, fullgraph: bool) -> None:
        net = network()
        scale = torch.tensor(1.0)
        attach(net[0], kappa=0.5, inject=True, scale=scale)
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        gradients(net, compiled)
        scale.fill_(4.0)
        assert_close(gradients(net, compiled), by_hand(2.0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_grad_scaler_is_honoured_at_the_price_of_a_graph_break(backend: str) -> None:
    net = network()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    attach(net[0], kappa=0.5, inject=True, scale=scaler)
    assert_close(gradients(net, torch.compile(net, backend=backend)), by_hand(2.0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_new_kappas_and_scales_do_not_compile_anew(backend: str) -> None:
    net = network()
    reg = attach(net[0], kappa=0.5, inject=True)
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(net, backend=counter)
    for step in range(1, 12):
        reg.kappa, reg.scale = 0.1 * step, 2.0 * step
        assert_close(gradients(net, compiled), by_hand(0.2 * step**2))
    assert counter.frame_count == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_penalty_can_be_switched_off_and_on_again(backend: str) -> None:
    net = network()
    reg = attach(net[0], kappa=0.5, inject=True)
    compiled = torch.compile(net, backend=backend)
    for kappa in (0.5, 0.0, 0.25):
        reg.kappa = kappa
        assert_close(gradients(net, compiled), by_hand(kappa))


@pytest.mark.slow
@needs_compiler
def test_the_default_compiler_takes_the_whole_life_of_an_attachment() -> None:
    net = network()
    compiled = torch.compile(net, fullgraph=True)
    assert_close(gradients(net, compiled), by_hand(0.0))
    reg = attach(net[0], kappa=0.5, inject=True)
    assert_close(gradients(net, compiled), by_hand(0.5))
    reg.kappa = 1.5
    assert_close(gradients(net, compiled), by_hand(1.5))
    reg.remove()
    assert_close(gradients(net, compiled), by_hand(0.0))


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
class TestLoss:
    def test_added_outside_the_compiled_host(self, backend: str, fullgraph: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=0.5)
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        for _ in range(2):
            loss = td_loss(compiled(batch())) + reg.loss()
            assert_close(list(torch.autograd.grad(loss, list(net.parameters()))), by_hand(0.5))

    def test_of_a_module_that_is_itself_compiled(self, backend: str, fullgraph: bool) -> None:
        net = network()
        net[0] = torch.compile(net[0], backend=backend, fullgraph=fullgraph)
        reg = attach(net[0], kappa=0.5)
        loss = td_loss(net(batch())) + reg.loss()
        assert_close(list(torch.autograd.grad(loss, list(net.parameters()))), by_hand(0.5))

    def test_added_inside_a_compiled_loss(self, backend: str, fullgraph: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=0.5)

        @torch.compile(backend=backend, fullgraph=fullgraph)
        def total(x: Tensor) -> Tensor:
            return td_loss(net(x)) + reg.loss()

        for _ in range(2):
            assert_close(list(torch.autograd.grad(total(batch()), list(net.parameters()))), by_hand(0.5))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_captured_cuda_graph_reads_a_new_kappa() -> None:
    net = network().cuda()
    x = batch().cuda()
    reg = attach(net[0], kappa=0.5, inject=True)

    def backward() -> None:
        net.zero_grad(set_to_none=False)
        td_loss(net(x)).backward()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            backward()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        backward()
    for kappa in (0.5, 3.0):
        reg.kappa = kappa
        graph.replay()
        for p, expected in zip(net.parameters(), by_hand(kappa), strict=True):
            torch.testing.assert_close(p.grad.cpu(), expected, rtol=1e-4, atol=1e-5)
