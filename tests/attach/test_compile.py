"""Compiled hosts: whatever the order of compiling and attaching, the gradients are those of the eager host."""

import shutil
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

from gramian.attach import attach
from gramian.penalties import gram_penalty
from tests.attach import hosts
from tests.attach.hosts import assert_equal, by_hand, gradients, td_loss

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
    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__()
        self.layer, self.activation = layers

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.layer(x))


def network() -> nn.Sequential:
    body, head = hosts.network(dtype=torch.float32)
    return nn.Sequential(Body(body), head)


def batch() -> Tensor:
    return hosts.batch().float()


def check(net: nn.Module, run: nn.Module, kappa: float) -> None:
    assert_equal(gradients(net, td_loss(run(batch()))), by_hand(kappa))


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
class TestInjection:
    def test_attached_before_compiling(self, backend: str, fullgraph: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=0.5, inject=True)
        check(net, torch.compile(net, backend=backend, fullgraph=fullgraph), 0.5)
        torch.testing.assert_close(reg.last.value, gram_penalty(net[0](batch())).detach())

    def test_attached_after_the_compiled_host_has_run_and_removed(self, backend: str, fullgraph: bool) -> None:
        net = network()
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        check(net, compiled, 0.0)
        reg = attach(net[0], kappa=0.5, inject=True)
        check(net, compiled, 0.5)
        reg.remove()
        check(net, compiled, 0.0)

    @pytest.mark.parametrize("in_place", [False, True])
    def test_attached_to_a_module_that_is_itself_compiled(self, backend: str, fullgraph: bool, in_place: bool) -> None:
        net = network()
        if in_place:
            net[0].compile(backend=backend, fullgraph=fullgraph)
        else:
            net[0] = torch.compile(net[0], backend=backend, fullgraph=fullgraph)
        net(batch())
        attach(net[0], kappa=0.5, inject=True)
        check(net, net, 0.5)

    def test_inactive_in_evaluation_mode(self, backend: str, fullgraph: bool) -> None:
        net = network()
        attach(net[0], kappa=0.5, inject=True)
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        check(net, compiled, 0.5)
        net.eval()
        check(net, compiled, 0.0)

    def test_a_scale_tensor_is_honoured(self, backend: str, fullgraph: bool) -> None:
        net, scale = network(), torch.tensor(1.0)
        attach(net[0], kappa=0.5, inject=True, scale=scale)
        compiled = torch.compile(net, backend=backend, fullgraph=fullgraph)
        for factor in (1.0, 4.0):
            scale.fill_(factor)
            check(net, compiled, 0.5 * factor)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_grad_scaler_is_honoured_at_the_price_of_a_graph_break(backend: str) -> None:
    net = network()
    attach(net[0], kappa=0.5, inject=True, scale=torch.amp.GradScaler("cpu", init_scale=4.0))
    check(net, torch.compile(net, backend=backend), 2.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_new_kappas_and_scales_do_not_compile_anew(backend: str) -> None:
    net = network()
    reg = attach(net[0], kappa=0.5, inject=True)
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(net, backend=counter)
    for step in range(1, 12):
        reg.kappa, reg.scale = 0.1 * step, 2.0 * step
        check(net, compiled, 0.2 * step**2)
    assert counter.frame_count == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_penalty_can_be_switched_off_and_on_again(backend: str) -> None:
    net = network()
    reg = attach(net[0], kappa=0.5, inject=True)
    compiled = torch.compile(net, backend=backend)
    for kappa in (0.5, 0.0, 0.25):
        reg.kappa = kappa
        check(net, compiled, kappa)


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
class TestLoss:
    @pytest.mark.parametrize("whole", [False, True])
    def test_added_outside_what_is_compiled(self, backend: str, fullgraph: bool, whole: bool) -> None:
        net = network()
        if not whole:
            net[0] = torch.compile(net[0], backend=backend, fullgraph=fullgraph)
        reg = attach(net[0], kappa=0.5)
        run = torch.compile(net, backend=backend, fullgraph=fullgraph) if whole else net
        for _ in range(2):
            loss = td_loss(run(batch()))
            assert_equal(gradients(net, loss + reg.loss()), by_hand(0.5))

    def test_added_inside_a_compiled_loss(self, backend: str, fullgraph: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=0.5)

        @torch.compile(backend=backend, fullgraph=fullgraph)
        def total(x: Tensor) -> Tensor:
            return td_loss(net(x)) + reg.loss()

        for _ in range(2):
            assert_equal(gradients(net, total(batch())), by_hand(0.5))
