"""What an attachment promises on any module: when it is active, what it adds, what it leaves behind."""

import copy
import inspect
import io
import math
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gramian
from gramian.attach import NAMES, Attachment, attach
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


class TestRemove:
    def test_it_leaves_the_module_as_it_was(self) -> None:
        net = network()
        before = {name: copy.copy(value) for name, value in vars(net[0]).items()}
        reg = attach(net[0], kappa=1.0, inject=True)
        net(batch())
        reg.remove()
        assert vars(net[0]) == before
        assert_same_bits(gradients(net, td_loss(net(batch()))), by_hand(0.0))

    def test_it_leaves_other_hooks_alone(self) -> None:
        net = network()
        net[0].register_forward_hook(lambda _m, _a, output: 2 * output)
        expected = net(batch())
        reg = attach(net[0], kappa=1.0)
        reg.remove()
        reg.remove()
        assert torch.equal(net(batch()), expected)

    def test_a_removed_attachment_has_no_loss(self) -> None:
        net = network()
        reg = attach(net[0], kappa=1.0)
        net(batch())
        reg.remove()
        with pytest.raises(RuntimeError, match="removed"):
            reg.loss()

    def test_one_of_two_attachments_can_go(self) -> None:
        net = network()
        first = attach(net[0], kappa=5.0, penalty="norm", inject=True)
        attach(net[0], kappa=0.3, inject=True)
        first.remove()
        assert_equal(gradients(net, td_loss(net(batch()))), by_hand(0.3))


def test_two_attachments_add_up() -> None:
    net = network()
    attach(net[0], kappa=0.5, penalty="norm", inject=True)
    reg = attach(net[0], kappa=0.5, penalty="cross")
    features_net = network()
    features = features_net[0](batch())
    terms = gramian.gram_terms(features)
    expected = gradients(features_net, td_loss(features_net[1](features)) + 0.5 * (terms.norm + terms.cross))
    assert_equal(gradients(net, td_loss(net(batch())) + reg.loss()), expected)


def saved_and_loaded(module: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert isinstance(loaded, nn.Module)
    return loaded


@pytest.mark.parametrize("copied", [copy.deepcopy, saved_and_loaded])
class TestCopies:
    @pytest.mark.parametrize("inject", [True, False])
    def test_a_copy_made_while_attached_carries_no_penalty(self, copied, inject: bool) -> None:
        net = network()
        reg = attach(net[0], kappa=1.0, inject=inject)
        net(batch())
        twin = copied(net)
        assert_same_bits(gradients(twin, td_loss(twin(batch()))), by_hand(0.0))
        loss = td_loss(net(batch()))
        assert_equal(gradients(net, loss if inject else loss + reg.loss()), by_hand(1.0))

    def test_a_copy_made_after_removal_knows_nothing_of_it(self, copied) -> None:
        net = network()
        attach(net[0], kappa=1.0).remove()
        assert not copied(net)[0]._forward_hooks

    def test_a_scaler_does_not_stand_in_the_way(self, copied) -> None:
        net = network()
        attach(net[0], kappa=1.0, inject=True, scale=lambda: 2.0)
        assert_same_bits(gradients(twin := copied(net), td_loss(twin(batch()))), by_hand(0.0))


def test_a_copied_attachment_is_a_removed_one_with_the_same_settings() -> None:
    reg = attach(network()[0], kappa=0.25, penalty="cross", centered=False)
    twin = copy.deepcopy(reg)
    assert (twin.module, twin.kappa, twin.penalty, twin.centered) == (None, 0.25, "cross", False)
    with pytest.raises(RuntimeError, match="copy"):
        twin.loss()
    twin.remove()


def test_the_state_dict_is_that_of_the_bare_host() -> None:
    net = network()
    keys = list(net.state_dict())
    attach(net[0], kappa=1.0, inject=True)
    assert list(net.state_dict()) == keys


class TestRefusals:
    @pytest.mark.parametrize(
        ("kappa", "error"),
        [
            (-1, ValueError),
            (math.nan, ValueError),
            (math.inf, ValueError),
            ("1", TypeError),
            (True, TypeError),
        ],
    )
    def test_a_kappa_that_is_no_coefficient(self, kappa, error) -> None:
        with pytest.raises(error, match="kappa must be"):
            attach(network()[0], kappa=kappa)
        reg = attach(network()[0], kappa=1.0)
        with pytest.raises(error, match="kappa must be"):
            reg.kappa = kappa
        assert reg.kappa == 1.0

    def test_numbers_of_numpy_are_numbers(self) -> None:
        assert attach(network()[0], kappa=np.float32(0.5)).kappa == 0.5

    def test_an_unknown_penalty_is_answered_with_the_nearest(self) -> None:
        with pytest.raises(ValueError, match=r"unknown penalty 'gramm'; did you mean 'gram'\?"):
            attach(network()[0], kappa=1.0, penalty="gramm")

    def test_something_that_is_no_module(self) -> None:
        with pytest.raises(TypeError, match="not function"):
            attach(lambda x: x, kappa=1.0)  # type: ignore[arg-type]

    @pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
    def test_a_torchscript_module(self) -> None:
        with pytest.raises(TypeError, match="TorchScript"):
            attach(torch.jit.trace(network(), batch()), kappa=1.0)

    def test_an_output_that_is_no_tensor(self) -> None:
        host = nn.LSTM(5, 8)
        attach(host, kappa=1.0)
        with pytest.raises(TypeError, match="LSTM put out a tuple"):
            host(batch(dtype=torch.float32))

    def test_an_output_of_three_axes(self) -> None:
        host = nn.Linear(5, 8)
        attach(host, kappa=1.0)
        with pytest.raises(ValueError, match=r"Linear put out \[2, 3, 8\]"):
            host(torch.zeros(2, 3, 5))

    def test_a_refused_attachment_leaves_no_hook(self) -> None:
        net = network()
        with pytest.raises(ValueError, match="scale must be finite"):
            attach(net[0], kappa=1.0, inject=True, scale=math.nan)
        assert not net[0]._forward_hooks


def test_its_text_says_where_it_is_and_what_it_does() -> None:
    reg = attach(network()[0], kappa=0.5)
    assert repr(reg) == "<gramian.Attachment on Sequential: kappa=0.5, penalty='gram', centered=True, inject=False>"
    reg.remove()
    assert "removed" in repr(reg)


def test_the_package_s_attach_is_called_alike_whether_the_module_was_imported_or_not() -> None:
    assert gramian.Attachment is Attachment
    assert inspect.ismodule(gramian.attach)  # this file imported it
    assert isinstance(gramian.attach(network()[0], kappa=1.0), Attachment)
    fresh = "import gramian, torch; print(type(gramian.attach(torch.nn.Linear(2, 2), kappa=1.0)).__name__)"
    assert subprocess.check_output([sys.executable, "-c", fresh], text=True).strip() == "Attachment"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("inject", [True, False])
def test_on_cuda_nothing_waits_for_the_device(inject: bool) -> None:
    net = network(dtype=torch.float32).cuda()
    x = batch(dtype=torch.float32).cuda()
    reg = attach(net[0], kappa=1.0, inject=inject)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for kappa in (1.0, 2.0):
            reg.kappa = kappa
            loss = td_loss(net(x))
            (loss if inject else loss + reg.loss()).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert reg.last is not None
    assert reg.last.value.is_cuda
