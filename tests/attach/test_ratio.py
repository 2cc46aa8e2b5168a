"""The ratio of the penalty's gradient to the host's: measured with a fixed κ, and kept with ``ratio``."""

import io
import math

import pytest
import torch
from torch import Tensor, nn

import gramian
from gramian.attach import attach, injection
from gramian.attach.attachment import Attachment
from tests.attach.hosts import PENALTIES, assert_equal, batch, by_hand, gradients, network, td_loss


def norms(penalty: str = "gram", x: Tensor | None = None) -> tuple[float, float]:
    """‖∂loss/∂features‖ and ‖∂penalty/∂features‖, by hand."""
    net = network()
    features = net[0](batch() if x is None else x).detach().requires_grad_()
    of_loss = torch.autograd.grad(td_loss(net[1](features)), features)[0]
    of_penalty = torch.autograd.grad(PENALTIES[penalty](features, centered=True), features)[0]
    return float(of_loss.norm()), float(of_penalty.norm())


def step(net: nn.Module, x: Tensor | None = None, factor: float = 1.0) -> list[Tensor]:
    return gradients(net, factor * td_loss(net(batch() if x is None else x)))


def attached(ratio: float = 0.1, **options) -> tuple[nn.Sequential, Attachment]:
    net = network()
    return net, attach(net[0], ratio=ratio, inject=True, **options)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_it_is_measured_beside_a_fixed_kappa(penalty: str) -> None:
    net = network()
    reg = attach(net[0], kappa=0.7, penalty=penalty, inject=True)
    net(batch())
    assert math.isnan(reg.last.ratio)
    step(net)
    host, own = norms(penalty)
    assert float(reg.last.ratio) == pytest.approx(0.7 * own / host, rel=1e-4)


def test_without_injection_it_is_not_known() -> None:
    net = network()
    reg = attach(net[0], kappa=0.7)
    net(batch())
    assert reg.last.ratio is None


@pytest.mark.parametrize("penalty", PENALTIES)
def test_kappa_follows_it_from_the_first_pass_on(penalty: str) -> None:
    net, reg = attached(penalty=penalty)
    assert float(reg.kappa) == 0
    found = step(net)
    host, own = norms(penalty)
    assert float(reg.kappa) == pytest.approx(0.1 * host / own, rel=1e-5)
    assert float(reg.last.ratio) == pytest.approx(0.1, rel=1e-5)
    for actual, wanted in zip(found, by_hand(0.1 * host / own, penalty), strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e4])
def test_one_ratio_serves_every_scale_of_the_loss(factor: float) -> None:
    net, reg = attached()
    step(net, factor=factor)
    assert float(reg.last.ratio) == pytest.approx(0.1, rel=1e-4)


def test_kappa_is_smoothed() -> None:
    net, reg = attached()
    for _ in range(50):
        step(net)
    before = float(reg.kappa)
    step(net, factor=100.0)
    assert 1.0 * before < float(reg.kappa) < 4 * before


@pytest.mark.parametrize("factor", [0.0, math.nan, math.inf])
def test_kappa_is_held_where_the_host_s_gradient_says_nothing(factor: float) -> None:
    net, reg = attached()
    step(net)
    before = float(reg.kappa)
    step(net, factor=factor)
    assert float(reg.kappa) == before


def test_kappa_stays_zero_until_the_host_has_a_gradient() -> None:
    net, reg = attached()
    found = step(net, factor=0.0)
    assert float(reg.kappa) == 0
    assert all((g == 0).all() for g in found)
    with pytest.raises(RuntimeError, match="κ on Sequential is 0 until both gradients"):
        reg.check()


def test_kappa_is_bounded_as_the_features_shrink() -> None:
    """The penalty's gradient falls a million times; κ rises ten times."""
    state = injection.new_state(torch.device("cpu"))
    kappas = []
    for own in [1.0] * 1000 + [1e-6] * 4000:
        state = injection._after(state, torch.tensor([1.0, own]), 0.1)
        kappas.append(float(state[injection.KAPPA]))
    assert kappas[999] == pytest.approx(0.1, rel=1e-3)
    assert max(kappas) == pytest.approx(1.0, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["gram", "norm", "isotropy"])
def test_nothing_collapses(penalty: str) -> None:
    """A noisy regression: at the end its gradient is noise, and a penalty with half its length pulls all the time."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Sequential(nn.Linear(4, 32), nn.ReLU()), nn.Linear(32, 1))
    reg = attach(net[0], ratio=0.5, penalty=penalty, inject=True)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    held_out = torch.randn(256, 4)
    at_first = float(net[0](held_out).detach().norm())
    for _ in range(1500):
        x = torch.randn(32, 4)
        y = x[:, :1].sin() + x[:, 1:2] + torch.randn(32, 1)
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    reg.check()
    error = (net(held_out) - held_out[:, :1].sin() - held_out[:, 1:2]).square().mean()
    assert float(net[0](held_out).detach().norm()) > 0.05 * at_first
    assert float(error.detach()) < 0.5  # of 1.4 for a constant


def test_a_constant_factor_of_the_loss_needs_no_word_beside_a_ratio() -> None:
    net, reg = attached()
    assert_equal([g / 65536 for g in step(net, factor=65536.0)], step(attached()[0]))
    assert float(reg.last.ratio) == pytest.approx(0.1, rel=1e-5)


def test_a_state_that_was_saved_goes_on() -> None:
    net, reg = attached()
    for seed in range(5):
        step(net, batch(seed=seed))
    file = io.BytesIO()
    torch.save(reg.state_dict(), file)
    file.seek(0)
    other_net, other = attached()
    other.load_state_dict(torch.load(file, weights_only=True))
    assert float(other.kappa) == float(reg.kappa)
    step(net, batch(seed=9))
    step(other_net, batch(seed=9))
    assert float(other.kappa) == float(reg.kappa)


def test_a_state_of_another_penalty_is_refused() -> None:
    state = attached()[1].state_dict()
    with pytest.raises(ValueError, match="the state is of penalty 'gram', not 'norm'"):
        attach(network()[0], kappa=1.0, penalty="norm").load_state_dict(state)


def test_fixed_kappas_are_saved_too() -> None:
    reg = attach(network()[0], penalties={"gram": 0.5, "norm": 0.25}, inject=True)
    reg.penalties = {"gram": 0.1, "norm": 0.0}
    other = attach(network()[0], penalties={"gram": 0.5, "norm": 0.25}, inject=True)
    other.load_state_dict(reg.state_dict())
    assert other.penalties == {"gram": 0.1, "norm": 0.0}


def test_kappa_cannot_be_set_beside_a_ratio() -> None:
    _, reg = attached()
    assert reg.ratio == 0.1
    with pytest.raises(RuntimeError, match="κ follows the ratio"):
        reg.kappa = 1.0


def test_a_ratio_of_zero_is_the_host() -> None:
    net, _ = attached(ratio=0.0)
    for actual, wanted in zip(step(net), by_hand(0.0), strict=True):
        assert torch.equal(actual, wanted)


@pytest.mark.filterwarnings("ignore:gramian.attach.*bare Linear")
def test_a_penalty_that_overflowed_is_not_multiplied_by_zero() -> None:
    net = network(nn.Identity(), torch.float32)
    attach(net[0], ratio=0.1, inject=True)
    assert all(g.isfinite().all() for g in gradients(net, net(batch(dtype=torch.float32) * 1e15).mean()))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_host_keeps_the_ratio(backend: str) -> None:
    torch.compiler.reset()
    net, reg = attached()
    compiled = torch.compile(net, backend=backend, fullgraph=True)
    host, own = norms()
    for _ in range(2):
        gradients(net, td_loss(compiled(batch())))
    assert float(reg.kappa) == pytest.approx(0.1 * host / own, rel=1e-5)
    assert float(reg.last.ratio) == pytest.approx(0.1, rel=1e-5)


def test_the_host_s_random_numbers_are_left_alone() -> None:
    before = torch.get_rng_state()
    net = network()
    torch.set_rng_state(before)
    gramian.attach(net[0], ratio=0.1, inject=True)
    step(net)
    assert torch.equal(torch.get_rng_state(), before)
