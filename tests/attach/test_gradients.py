"""What an attachment adds to the host's gradients, in one forward pass and in several."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gramian
from gramian.attach import NAMES, attach
from tests.attach.hosts import (
    PENALTIES,
    assert_equal,
    assert_same_bits,
    batch,
    by_hand,
    gradients,
    network,
    td_loss,
)


def test_every_penalty_has_its_oracle() -> None:
    assert set(NAMES) == {*PENALTIES, "sigreg", "gram-permuted", "orthogonality"}  # the last three in test_kinds.py


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
class TestGradients:
    def test_loss_adds_kappa_times_the_penalty(self, penalty: str, centered: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=0.7, penalty=penalty, centered=centered)
        assert_equal(gradients(net, td_loss(net(batch())) + reg.loss()), by_hand(0.7, penalty, centered))

    def test_injection_adds_the_same_gradient(self, penalty: str, centered: bool) -> None:
        net = network()
        attach(net[0], kappa=0.7, penalty=penalty, centered=centered, inject=True)
        assert_equal(gradients(net, td_loss(net(batch()))), by_hand(0.7, penalty, centered))


def test_injection_leaves_the_output_as_it_is() -> None:
    expected = network()(batch())
    net = network()
    attach(net[0], kappa=0.7, inject=True)
    assert torch.equal(net(batch()), expected)


def test_the_head_gets_no_gradient_from_the_penalty() -> None:
    net = network()
    attach(net[0], kappa=100.0, inject=True)
    assert_same_bits(gradients(net, td_loss(net(batch())))[2:], by_hand(0.0)[2:])


@pytest.mark.parametrize("inject", [True, False])
def test_kappa_zero_is_the_host_bit_for_bit(inject: bool) -> None:
    plain = network()
    expected = gradients(plain, td_loss(plain(batch())))
    net = network()
    reg = attach(net[0], kappa=0.0, inject=inject)
    loss = td_loss(net(batch()))
    assert_same_bits(gradients(net, loss if inject else loss + reg.loss()), expected)


@pytest.mark.filterwarnings("ignore:gramian.attach.*bare Linear")
@pytest.mark.parametrize("inject", [True, False])
def test_kappa_zero_never_multiplies_a_penalty_that_overflowed(inject: bool) -> None:
    net = network(nn.Identity(), torch.float32)
    reg = attach(net[0], kappa=0.0, inject=inject)
    loss = net(batch(dtype=torch.float32) * 1e15).mean()
    assert all(g.isfinite().all() for g in gradients(net, loss if inject else loss + reg.loss()))
    assert reg.last is not None
    assert not reg.last.value.isfinite()


def test_kappa_can_be_changed_from_one_forward_to_the_next() -> None:
    net = network()
    reg = attach(net[0], kappa=1.0, inject=True)
    for kappa in (0.5, 0.0, 2):
        reg.kappa = kappa
        assert_equal(gradients(net, td_loss(net(batch()))), by_hand(kappa))


@pytest.mark.parametrize("inject", [True, False])
def test_changing_kappa_before_the_backward_does_not_touch_the_forward_that_was(inject: bool) -> None:
    net = network()
    reg = attach(net[0], kappa=1.0, inject=inject)
    loss = td_loss(net(batch()))
    loss = loss if inject else loss + reg.loss()
    reg.kappa = 5.0
    assert_equal(gradients(net, loss), by_hand(1.0))


def test_kappa_can_be_set_in_inference_mode_and_out_of_it() -> None:
    net = network()
    with torch.inference_mode():
        reg = attach(net[0], kappa=1.0, inject=True)
    reg.kappa = 2.0
    assert_equal(gradients(net, td_loss(net(batch()))), by_hand(2.0))
    with torch.inference_mode():
        reg.kappa = 3.0
    assert_equal(gradients(net, td_loss(net(batch()))), by_hand(3.0))


def test_a_backward_pass_repeated_injects_again() -> None:
    """The limit that the documentation names: it enters with every backward pass, whatever that one is for."""
    net = network()
    attach(net[0], kappa=0.7, inject=True)
    loss = td_loss(net(batch()))
    loss.backward(retain_graph=True)
    loss.backward()
    assert_equal([p.grad for p in net.parameters()], [2 * g for g in by_hand(0.7)])


def test_kappa_follows_the_precision_of_the_features() -> None:
    net = network(dtype=torch.float32)
    attach(net[0], kappa=0.1, inject=True)
    net(batch(dtype=torch.float32))
    net.double()
    x = batch()
    features = net[0](x).detach().requires_grad_()
    assert features.dtype == torch.float64
    expected = torch.autograd.grad(0.1 * gramian.gram_penalty(features), features)[0]
    injected = net[0](x)
    injected.retain_grad()
    meeting = injected.grad_fn.next_functions[0][0]
    before = meeting.next_functions[0][0]  # the features as they were before the injection
    seen: list[Tensor] = []
    before.register_prehook(lambda grads: seen.append(grads[0]))
    (injected * 0).sum().backward()
    torch.testing.assert_close(seen[0], expected, rtol=1e-14, atol=0)


@pytest.mark.filterwarnings("ignore:gramian.attach.*bare Linear")
@pytest.mark.parametrize("activation", [nn.ReLU(inplace=True), nn.Tanh()])
@pytest.mark.parametrize("inject", [True, False])
def test_the_host_may_change_the_output_in_place(inject: bool, activation: nn.Module) -> None:
    x = batch()
    net = network(activation)
    features = net[0][0](x)
    expected = gradients(
        net, td_loss(net[1](activation(features.clone()))) + gramian.gram_penalty(features, centered=False)
    )
    reg = attach(net[0][0], kappa=1.0, centered=False, inject=inject)
    loss = td_loss(net(x))
    assert_equal(gradients(net, loss if inject else loss + reg.loss()), expected)


class TestSeveralForwards:
    def test_each_forward_that_is_backpropagated_injects_its_own_penalty(self) -> None:
        net = network()
        attach(net[0], kappa=0.3, inject=True)
        loss = td_loss(net(batch(6))) + td_loss(net(batch(4)))
        summed = [a + b for a, b in zip(by_hand(0.3, x=batch(6)), by_hand(0.3, x=batch(4)), strict=True)]
        assert_equal(gradients(net, loss), summed)

    def test_a_forward_that_is_not_backpropagated_injects_nothing(self) -> None:
        net = network()
        attach(net[0], kappa=0.3, inject=True)
        target = net(batch(4)).mean().detach()
        assert_equal(gradients(net, td_loss(net(batch())) + target), by_hand(0.3))

    def test_features_used_by_two_heads_are_penalised_once(self) -> None:
        net = network()
        attach(net[0], kappa=0.3, inject=True)
        features = net[0](batch())
        loss = 0.5 * td_loss(net[1](features)) + 0.5 * td_loss(net[1](features))
        assert_equal(gradients(net, loss), by_hand(0.3))

    def test_loss_is_that_of_the_last_forward(self) -> None:
        net = network()
        reg = attach(net[0], kappa=0.3)
        net(batch(4))
        values = net(batch(6))
        assert_equal(gradients(net, td_loss(values) + reg.loss()), by_hand(0.3))

    def test_a_forward_without_gradients_does_not_replace_the_one_before(self) -> None:
        net = network()
        reg = attach(net[0], kappa=0.3)
        values = net(batch(6))
        with torch.no_grad():
            net(batch(4))
        assert_equal(gradients(net, td_loss(values) + reg.loss()), by_hand(0.3))

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_recomputation_by_checkpoint_injects_once(self, reentrant: bool) -> None:
        net = network()
        attach(net[0], kappa=0.3, inject=True)
        loss = td_loss(checkpoint(net, batch().requires_grad_(), use_reentrant=reentrant))
        loss.backward()
        assert_equal([p.grad for p in net.parameters()], by_hand(0.3))


def test_two_attachments_add_up() -> None:
    net = network()
    attach(net[0], kappa=0.5, penalty="norm", inject=True)
    reg = attach(net[0], kappa=0.5, penalty="cross")
    features_net = network()
    features = features_net[0](batch())
    terms = gramian.gram_terms(features)
    expected = gradients(features_net, td_loss(features_net[1](features)) + 0.5 * (terms.norm + terms.cross))
    assert_equal(gradients(net, td_loss(net(batch())) + reg.loss()), expected)
