"""Updates of Atari runs on a CPU whose products have factors in bfloat16, which some CPUs multiply twice as fast.

bfloat16 has float32's range and 8 of its 24 digits. What goes through it, and what does not:

| rounded to bfloat16 | float32 |
| --- | --- |
| a copy of the weights of convolutions and hidden layer, made for each update | the weights themselves, and Adam |
| what these layers see, and the convolutions' biases (pixels are whole numbers and stay exact) | – |
| the gradients that they pass down | the head, targets, losses, the penalty |
| the gradients of their weights, as they leave a product | sums of these, and all that is done with them |

Products are summed up in float32, and the result is rounded, since torch gives a product the type of its factors.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from gramian.deep.batch import Batch
from gramian.deep.halves import HALVES, HalvedUpdate, Pass, Piece, Work, halves
from gramian.deep.layout import Layout
from gramian.deep.losses import Objective
from gramian.deep.networks import PIXELS, NetworkSpec, Parameters, by_run
from gramian.deep.optimiser import Adam
from gramian.deep.state import State

_FIRST, _HIDDEN = "body.conv1", "body.fc1.weight"
CPUINFO = Path("/proc/cpuinfo")
_UNITS = re.compile(r"\b(avx512_bf16|amx_bf16|bf16)\b")
"""How Linux calls what multiplies bfloat16, on x86 and on Arm."""


def caution(spec: NetworkSpec, device: torch.device, dtype: torch.dtype, cpuinfo: Path = CPUINFO) -> str | None:
    """What to tell one who wants products rounded: that nothing will be, or that it will take longer.

    Examples
    --------
    >>> spec = NetworkSpec("mlp", (4,), actions=2, features_dim=16)
    >>> caution(spec, torch.device("cpu"), torch.float32)
    "bf16 rounds products of Atari's networks in float32 on a CPU; here it changes nothing"
    """
    if device.type != "cpu" or not spec.sees_pictures or dtype != torch.float32:
        return "bf16 rounds products of Atari's networks in float32 on a CPU; here it changes nothing"
    if cpuinfo.exists() and not _UNITS.search(cpuinfo.read_text(encoding="utf-8")):
        return (
            "this CPU cannot multiply bfloat16 (no avx512_bf16, no AMX); with bf16 an update takes longer than without"
        )
    return None


class Rounded:
    """A run's parameters with the weights of its products in bfloat16, in memory of their own.

    The first convolution's are divided by 255, so that it can look at whole numbers. The head, and whatever else is not
    rounded, is the original.

    Parameters
    ----------
    layout
        Of the network.
    row
        The parameters ``[N]`` in float32, which stay where they are.
    hidden
        Whether the hidden layer is rounded too.

    Examples
    --------
    >>> from gramian.deep.networks import NetworkSpec, init
    >>> spec = NetworkSpec("nature", (4, 36, 36), actions=6, features_dim=32)
    >>> layout = Layout(spec)
    >>> rounded = Rounded(layout, layout.flatten(init(spec, seeds=[0]))[0])
    >>> rounded.renew_convolutions()
    >>> rounded.parameters["body.fc1.weight"].dtype, rounded.parameters["head.weight"].dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(self, layout: Layout, row: Tensor, *, hidden: bool = True) -> None:
        self._originals = by_run(layout.views(row.unsqueeze(0)))[0]
        self.parameters: Parameters = dict(self._originals)
        """By their names."""
        self._convolutions = [name for name in self._originals if name.startswith("body.conv")]
        for name in [*self._convolutions, *([_HIDDEN] if hidden else [])]:
            original = self._originals[name]
            order = torch.channels_last if original.dim() == 4 else torch.contiguous_format
            self.parameters[name] = torch.empty_like(original, dtype=torch.bfloat16, memory_format=order)
        self._row, self._version = row, -1

    def outdated(self) -> bool:
        """Whether torch has written to the originals since this was last asked. Its fused optimisers do not tell."""
        before, self._version = self._version, self._row._version
        return before != self._version

    def renew_convolutions(self) -> None:
        """Round what the convolutions' originals are now."""
        for name in self._convolutions:
            original = self._originals[name]
            scaled = original / PIXELS if name == f"{_FIRST}.weight" else original
            self.parameters[name].copy_(scaled.bfloat16())  # first: torch is slow with type and layout at once

    def renew_hidden(self, half: int) -> None:
        """Round what half of the hidden layer's originals are now."""
        features = halves(len(self._originals[_HIDDEN]))[half]
        self.parameters[_HIDDEN][features].copy_(self._originals[_HIDDEN][features])


class RoundedUpdate(HalvedUpdate):
    """A `HalvedUpdate` in float32 that rounds the factors of its products to bfloat16."""

    def __init__(self, run: int, objective: Objective, adam: Adam, layout: Layout, state: State) -> None:
        super().__init__(run, objective, adam, layout, state)
        self._rounded_online, self._rounded_target = (
            Rounded(layout, rows[run]) for rows in (state.online, state.target)
        )
        self._online, self._target = self._rounded_online.parameters, self._rounded_target.parameters

    def _begin(self, batch: Batch, number: int) -> Work:
        if self._rounded_target.outdated():  # so rarely that it need not be a piece
            self._rounded_target.renew_convolutions()
            for half in HALVES:
                self._rounded_target.renew_hidden(half)
        return super()._begin(batch, number)

    def _prepare(self, after: Sequence[Piece]) -> tuple[list[Piece], list[Piece]]:
        copy = self._rounded_online
        return (
            [self._piece(after, copy.renew_convolutions)],
            [self._piece(after, copy.renew_hidden, half) for half in HALVES],
        )

    def _weigh(self, seen: Pass, half: int) -> None:
        own, _, inputs, raw, _ = seen
        features = self._features[half]
        torch.add(inputs @ own[_HIDDEN][features].mT, own["body.fc1.bias"][features], out=raw[:, features])

    def _multiply(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        out.copy_(left @ right)

    def _meet(self, work: Work) -> None:
        super()._meet(work)
        work.slope = work.slope.bfloat16()

    def _differentiate_filters(self, work: Work, half: int, number: int) -> None:
        super()._differentiate_filters(work, half, number)
        if work.records[half][-1 - number].name == _FIRST:  # whose weights see whole numbers
            self._shares[half][f"{_FIRST}.weight"].div_(PIXELS)
