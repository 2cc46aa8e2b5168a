"""In which forward passes an attachment is active, and what `loss` and `last` say of them."""

import weakref

import pytest
import torch
from torch import Tensor

import gramian
from gramian.attach import attach
from tests.attach.hosts import (
    assert_equal,
    assert_same_bits,
    batch,
    by_hand,
    gradients,
    network,
    td_loss,
)


class TestWhenItIsActive:
    @pytest.mark.parametrize("inject", [True, False])
    def test_not_in_evaluation_mode(self, inject: bool) -> None:
        net = network().eval()
        reg = attach(net[0], kappa=1.0, inject=inject)
        assert_same_bits(gradients(net, td_loss(net(batch()))), by_hand(0.0))
        assert reg.last is None

    def test_not_without_gradients(self) -> None:
        net = network()
        reg = attach(net[0], kappa=1.0, inject=True)
        with torch.no_grad():
            assert not net(batch()).requires_grad
        with torch.inference_mode():
            net(batch())
        assert reg.last is None

    def test_not_where_the_features_need_no_gradient(self) -> None:
        net = network()
        net[0].requires_grad_(False)
        reg = attach(net[0], kappa=1.0, inject=True)
        net(batch()).sum().backward()
        assert reg.last is None

    @pytest.mark.parametrize("inject", [True, False])
    @pytest.mark.parametrize("x", [batch(1), batch(1)[0], batch(0)], ids=["one sample", "unbatched", "no sample"])
    def test_not_on_fewer_than_two_samples(self, inject: bool, x: Tensor) -> None:
        net, plain = network(), network()
        reg = attach(net[0], kappa=1.0, inject=inject)
        loss = net(x).square().sum()
        loss = loss if inject else loss + reg.loss()
        assert_same_bits(gradients(net, loss), gradients(plain, plain(x).square().sum()))
        assert reg.last is None

    def test_the_centred_unbiased_penalty_needs_four_samples(self) -> None:
        net = network()
        reg = attach(net[0], kappa=1.0, penalty="gram-unbiased", inject=True)
        net(batch(3))
        assert reg.last is None
        net(batch(4))
        assert reg.last is not None

    def test_on_two_samples(self) -> None:
        net = network()
        attach(net[0], kappa=1.0, inject=True)
        assert_equal(gradients(net, td_loss(net(batch(2)))), by_hand(1.0, x=batch(2)))


class TestLoss:
    def test_a_second_call_without_a_forward_is_an_error(self) -> None:
        net = network()
        reg = attach(net[0], kappa=1.0)
        net(batch())
        reg.loss()
        with pytest.raises(RuntimeError, match=r"no forward pass .* call the module first"):
            reg.loss()

    def test_it_is_an_error_when_the_only_forward_was_in_evaluation_mode(self) -> None:
        net = network().eval()
        reg = attach(net[0], kappa=1.0)
        net(batch())
        with pytest.raises(RuntimeError, match="training mode with gradients on"):
            reg.loss()

    def test_it_is_an_error_with_injection_where_it_would_count_twice(self) -> None:
        with pytest.raises(RuntimeError, match="second time"):
            attach(network()[0], kappa=1.0, inject=True).loss()

    def test_the_graph_is_let_go_when_the_loss_is(self) -> None:
        class Saved:
            def __init__(self, tensor: Tensor) -> None:
                self.tensor = tensor

        saved: list[weakref.ref[Saved]] = []

        def pack(tensor: Tensor) -> Saved:
            holder = Saved(tensor.detach())
            saved.append(weakref.ref(holder))
            return holder

        net = network()
        reg = attach(net[0], kappa=1.0)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
            loss = td_loss(net(batch())) + reg.loss()
        assert all(holder() is not None for holder in saved)
        del loss
        assert all(holder() is None for holder in saved)

    def test_replicas_of_data_parallel_are_refused(self) -> None:
        net = network()
        attach(net[0], kappa=1.0)
        replica = net[0]._replicate_for_data_parallel()
        replica._modules = net[0]._modules
        with pytest.raises(RuntimeError, match="inject=True"):
            replica(batch())


class TestLast:
    @pytest.mark.parametrize("inject", [True, False])
    @pytest.mark.parametrize("kappa", [0.0, 3.0])
    def test_it_holds_value_and_terms_before_kappa(self, inject: bool, kappa: float) -> None:
        net = network()
        reg = attach(net[0], kappa=kappa, inject=inject)
        net(batch())
        features = net[0](batch()).detach()
        assert reg.last is not None
        torch.testing.assert_close(reg.last.value, gramian.gram_penalty(features))
        torch.testing.assert_close(tuple(reg.last.terms), tuple(gramian.gram_terms(features)))

    def test_it_is_detached(self) -> None:
        net = network()
        reg = attach(net[0], kappa=1.0)
        net(batch())
        assert reg.last is not None
        assert not any(t.requires_grad for t in (reg.last.value, *reg.last.terms))

    def test_it_is_none_before_the_first_active_forward(self) -> None:
        assert attach(network()[0], kappa=1.0).last is None
