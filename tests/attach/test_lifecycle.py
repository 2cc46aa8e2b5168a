"""What an attachment leaves behind: when it is removed, copied, saved."""

import copy
import inspect
import io
import subprocess
import sys

import pytest
import torch
from torch import nn

import gramian
from gramian.attach import Attachment, attach
from tests.attach.hosts import (
    assert_equal,
    assert_same_bits,
    batch,
    by_hand,
    gradients,
    network,
    td_loss,
)


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

    @pytest.mark.parametrize(
        "options",
        [{"scale": lambda: 2.0}, {"mask": lambda: None}, {"when": lambda _: True}, {"penalty": lambda x: x.sum()}],
        ids=lambda options: next(iter(options)),
    )
    def test_functions_of_the_caller_do_not_stand_in_the_way(self, copied, options) -> None:
        net = network()
        attach(net[0], kappa=1.0, inject=True, **options)
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
