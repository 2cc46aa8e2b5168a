"""Which layer to attach to: the modules of a model with what goes in and out of them."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class _Call(NamedTuple):
    """What went through a module that has no children, in one forward pass."""

    name: str
    module: nn.Module
    takes: Any
    puts_out: Any


def layers(model: nn.Module, example: Any) -> None:
    """Print the modules that an example runs through, with their shapes, and mark the last hidden features.

    The mark is at the linear layers that the outputs come from: what goes into them are the last hidden features.

    Parameters
    ----------
    model
        Any module. It runs once, in evaluation mode, and is left as it was; so is torch's random state.
    example
        A batch as the model takes it: a tensor, an array, or a dict of them; a tuple for several arguments.

    Examples
    --------
    >>> layers(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.zeros(32, 4))
    module  kind    input    output
    [0]     Linear  [32, 4]  [32, 8]
    [1]     ReLU    [32, 8]  [32, 8]
    [2]     Linear  [32, 8]  [32, 2]  <- last hidden features: gramian.attach(model[2], ..., on="input")
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}; with SB3 it is model.policy")
    calls, outputs = _run(model, example)
    heads = _heads(calls, outputs)
    rows = [("module", "kind", "input", "output")]
    rows += [
        (_path(call.name), type(call.module).__name__, _shape(call.takes), _shape(call.puts_out)) for call in calls
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for place, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if place and calls[place - 1] in heads:
            path = _path(calls[place - 1].name)
            where = f"model{path}" if path.startswith("[") else f"model.{path}"
            line += f'  <- last hidden features: gramian.attach({where}, ..., on="input")'
        print(line)


def _run(model: nn.Module, example: Any) -> tuple[list[_Call], list[Tensor]]:
    """Calls of the modules without children, in their order, and the tensors that come out of the model."""
    calls: list[_Call] = []
    names = {module: name for name, module in model.named_modules() if name and not list(module.children())}
    trained = [part for part in model.modules() if part.training]

    def hook(module: nn.Module, arguments: Any, output: Any) -> None:
        calls.append(_Call(names[module], module, arguments[0] if arguments else None, output))

    place = next((parameter.device for parameter in model.parameters()), None)
    arguments = example if isinstance(example, tuple) else (example,)
    handles = [module.register_forward_hook(hook) for module in names]
    model.eval()
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            output = model(*(_on(place, argument) for argument in arguments))
    finally:
        for handle in handles:
            handle.remove()
        for part in trained:
            part.training = True
    return calls, _tensors(output)


def _heads(calls: list[_Call], outputs: list[Tensor]) -> list[_Call]:
    """The linear layers that are met first on the way back from the outputs; the last one called where none is."""
    linear = [call for call in calls if isinstance(call.module, nn.Linear) and isinstance(call.puts_out, Tensor)]
    nodes = {call.puts_out.grad_fn: call for call in linear}
    found: list[_Call] = []
    pending: list[Any] = [output.grad_fn for output in outputs]
    seen: set[Any] = {None}
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in nodes:
            found.append(nodes[node])
        else:
            pending.extend(following for following, _ in node.next_functions)
    return found or linear[-1:]


def _on(place: torch.device | None, argument: Any) -> Any:
    if isinstance(argument, dict):
        return {name: _on(place, value) for name, value in argument.items()}
    return torch.as_tensor(argument, device=place)


def _tensors(output: Any) -> list[Tensor]:
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, dict):
        output = tuple(output.values())
    return [tensor for part in output for tensor in _tensors(part)] if isinstance(output, (tuple, list)) else []


def _shape(value: Any) -> str:
    return str(list(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _path(name: str) -> str:
    """A module's name as Python has it: ``q_net.0`` is ``q_net[0]``.

    Examples
    --------
    >>> _path("q_net.0"), _path("0.body")
    ('q_net[0]', '[0].body')
    """
    path = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in name.split("."))
    return path.removeprefix(".")
