"""What features were computed from."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def depends_only_on(*modules: nn.Module) -> Callable[[Tensor], bool]:
    """A condition for ``when`` of `gramian.attach`: every parameter behind the features belongs to these modules.

    It leaves an actor alone that is trained through its critic (DDPG, TD3, SAC). In the actor's pass the features of
    the critic depend on the actor's parameters too, so that an injected penalty would drive the actor.

    It walks the graph of autograd, which a compiled host hides: give such a host a condition of your own.

    Examples
    --------
    >>> critic, actor, state = nn.Linear(1, 1), nn.Linear(1, 1), torch.ones(2, 1)
    >>> condition = depends_only_on(critic)
    >>> condition(critic(state)), condition(critic(actor(state)))
    (True, False)
    """
    for module in modules:
        if not isinstance(module, nn.Module):
            raise TypeError(f"depends_only_on takes modules, not a {type(module).__name__}")

    def condition(features: Tensor) -> bool:
        if torch.compiler.is_compiling():
            raise RuntimeError("depends_only_on cannot see into a compiled host; give when= another condition")
        own = {id(parameter) for module in modules for parameter in module.parameters()}
        return all(id(parameter) in own for parameter in parameters_behind(features))

    return condition


def parameters_behind(features: Tensor) -> list[Tensor]:
    """Leaves that need a gradient and that ``features`` were computed from."""
    if features.grad_fn is None:
        return [features] if features.requires_grad else []
    found: list[Tensor] = []
    seen: set[Any] = set()
    nodes: list[Any] = [features.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):  # the node that accumulates a leaf's gradient
            found.append(node.variable)
        nodes.extend(following for following, _ in node.next_functions)
    return found


def made_by_linear(features: Tensor) -> bool:
    """Whether the last thing done to the features was a linear layer."""
    return type(features.grad_fn).__name__ in ("AddmmBackward0", "MmBackward0", "LinearBackward0")


def inside_vmap(features: Tensor) -> bool:
    """Whether the features are those of one element inside ``torch.func.vmap``."""
    functorch = getattr(torch._C, "_functorch", None)
    test = getattr(functorch, "is_batchedtensor", None)
    return bool(test is not None and test(features))
