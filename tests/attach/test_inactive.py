"""A penalty that does nothing says so: `check` at any time, a warning after 100 optimiser steps."""

import gc
import warnings

import pytest
import torch
from torch import nn

import gramian
from gramian.attach import attach
from gramian.attach.attachment import Attachment
from tests.attach.hosts import assert_equal, batch, by_hand, gradients, network, td_loss


def train(net: nn.Module, steps: int = 100, run=None) -> None:
    """Optimiser steps with a learning rate of 0; ``run`` is what the host calls."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        td_loss((run or net)(batch())).backward()
        optimizer.step()


def in_evaluation(net: nn.Sequential) -> Attachment:
    net.eval()
    return attach(net[0], 1.0, inject=True)


def frozen(net: nn.Sequential) -> Attachment:
    net[0].requires_grad_(False)
    return attach(net[0], 1.0, inject=True)


def refused(net: nn.Sequential) -> Attachment:
    return attach(net[0], 1.0, inject=True, when=lambda _: False)


def never_added(net: nn.Sequential) -> Attachment:
    return attach(net[0], 1.0)


def sliced(net: nn.Sequential) -> Attachment:
    return attach(net[:-1], 1.0, inject=True)


CASES = {
    "evaluation mode": (in_evaluation, r"evaluation mode; call .train\(\).*\(100 passes\)"),
    "frozen layer": (frozen, "no trained weights below them"),
    "condition": (refused, "when= refused"),
    "loss not added": (never_added, r"reg.loss\(\) was never called"),
    "slice": (sliced, r"the module never ran. A slice such as net\[:-1\] is a new container"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_warns_once_and_says_why(case: str) -> None:
    make, reason = CASES[case]
    net = network()
    reg = make(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(net, 99)
    with pytest.warns(UserWarning, match=f"not active in 100 optimiser steps: .*{reason}"):
        train(net, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(net, 150)
    with pytest.raises(RuntimeError, match="not active in 250 optimiser steps"):
        reg.check()


def test_batches_of_one_sample_are_named() -> None:
    net = network()
    attach(net[0], 1.0, inject=True)
    with pytest.warns(UserWarning, match="its batches had too few samples"):
        train(net, run=lambda x: net(x[:1]))


def test_vmap_is_named() -> None:
    net = network()
    attach(net[0], 1.0, inject=True)
    with pytest.warns(UserWarning, match=r"inside torch.func.vmap.*pass deactivate_vmap=True"):
        train(net, run=lambda x: torch.func.vmap(net)(x[:, None]))


def test_it_warns_about_an_attachment_that_was_not_kept() -> None:
    net = network()
    attach(net[:-1], 1.0, inject=True)
    gc.collect()
    with pytest.warns(UserWarning, match="the module never ran"):
        train(net)


def test_it_warns_when_an_active_penalty_stops() -> None:
    net = network()
    reg = attach(net[0], 1.0, inject=True)
    train(net, 5)
    reg.check()
    net.eval()
    with pytest.warns(UserWarning, match="evaluation mode"):
        train(net)


def test_it_warns_when_another_model_trains_instead() -> None:
    net = network()
    reg = attach(net[0], 1.0, inject=True)
    train(net, 5)
    with pytest.warns(UserWarning, match="it was active before, and its module no longer runs"):
        train(network())
    train(net, 1)
    reg.check()


def test_passes_without_gradients_are_named_where_there_was_nothing_else() -> None:
    net = network()
    net[0].requires_grad_(False)
    reg = attach(net[0], 1.0, inject=True)
    with torch.no_grad():
        net(batch())
    with pytest.raises(RuntimeError, match="so far: it ran without gradients"):
        reg.check()
    net(batch())
    with pytest.raises(RuntimeError, match="so far: its features needed no gradient"):
        reg.check()


@pytest.mark.parametrize("kappa", [0.0, 1.0])
@pytest.mark.parametrize("inject", [True, False])
def test_an_active_penalty_is_quiet(inject: bool, kappa: float) -> None:
    net = network()
    reg = attach(net[0], kappa, inject=inject)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(net, 120, run=net if inject else lambda x: net(x) + reg.loss())
    reg.check()


def test_a_penalty_that_was_removed_or_went_with_its_model_is_quiet() -> None:
    for removed in (True, False):
        net = network()
        reg = attach(net[0], 1.0, inject=True)
        train(net, 1)
        if removed:
            reg.remove()
        del net, reg
        gc.collect()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train(network(), 120)


def test_check_raises_before_the_first_pass_and_before_the_first_backward() -> None:
    net = network()
    reg = attach(net[0], 1.0, inject=True)
    with pytest.raises(RuntimeError, match=r"on Sequential was not active so far: the module never ran"):
        reg.check()
    loss = td_loss(net(batch()))
    with pytest.raises(RuntimeError, match="no backward pass has reached the features of Sequential yet"):
        reg.check()
    loss.backward()
    reg.check()
    reg.remove()
    with pytest.raises(RuntimeError, match="removed"):
        reg.check()


def test_a_module_that_ends_in_a_bare_linear_layer_is_warned_about_once() -> None:
    net = network()
    attach(net, 1.0, inject=True)
    with pytest.warns(UserWarning, match="Sequential ends in a bare Linear layer.* action values"):
        net(batch())
    net(batch())


@pytest.mark.parametrize("options", [{"kappa": 1.0, "on": "input"}, {"kappa": 1.0, "penalty": "sigreg"}])
def test_the_input_of_a_head_and_penalties_for_before_the_activation_are_right_there(options) -> None:
    net = network()
    attach(net[1], inject=True, **options)
    net(batch())


def gradients_of_actor(kappa: float, guarded: bool = False) -> list[torch.Tensor]:
    """Of an actor that is trained through its critic, as in SAC, after an update of the critic."""
    critic, actor = network(), nn.Linear(5, 5).double()
    with torch.no_grad():
        actor.weight.copy_(torch.eye(5))
    when = gramian.depends_only_on(critic) if guarded else None
    attach(critic[1], kappa, on="input", inject=True, when=when)
    gradients(critic, td_loss(critic(batch())))
    return gradients(actor, -critic(actor(batch())).mean())


def test_an_actor_behind_the_features_is_left_alone_where_asked_for() -> None:
    for actual, wanted in zip(*(gradients_of_actor(kappa, guarded=True) for kappa in (10.0, 0.0)), strict=True):
        assert torch.equal(actual, wanted)


def test_an_actor_behind_the_features_is_warned_about() -> None:
    with pytest.warns(UserWarning, match=r"the penalty drives the actor too; give when=gramian.depends_only_on"):
        found = gradients_of_actor(10.0)
    assert not torch.equal(found[0], gradients_of_actor(0.0, guarded=True)[0])


def test_loss_is_of_the_pass_that_was_not_paused() -> None:
    net = network()
    reg = attach(net[0], kappa=0.3)
    values = net(batch(6))
    with reg.paused():
        net(batch(4))
    assert_equal(gradients(net, td_loss(values) + reg.loss()), by_hand(0.3))


def test_conditions_for_what_is_no_module_are_refused() -> None:
    with pytest.raises(TypeError, match="takes modules, not a list"):
        gramian.depends_only_on([network()])
