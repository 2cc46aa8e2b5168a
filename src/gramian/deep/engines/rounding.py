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
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from gramian.deep.agent.layout import Layout
from gramian.deep.agent.losses import Objective
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.agent.optimiser import Adam
from gramian.deep.agent.state import State
from gramian.deep.engines.halves import HALVES, HalvedUpdate, Pass, Piece, Preparation, Work, halves
from gramian.deep.engines.prepared import Prepared

_HIDDEN = "body.fc1.weight"
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


class Rounded(Prepared):
    """`Prepared` parameters with the weights of their products in bfloat16, the convolutions' biases among them.

    The head, and whatever else is not rounded, is the original.

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
    >>> from gramian.deep.agent.networks import NetworkSpec, init
    >>> spec = NetworkSpec("nature", (4, 36, 36), actions=6, features_dim=32)
    >>> layout = Layout(spec)
    >>> rounded = Rounded(layout, layout.flatten(init(spec, seeds=[0]))[0])
    >>> rounded.renew()
    >>> rounded.parameters["body.fc1.weight"].dtype, rounded.parameters["head.weight"].dtype
    (torch.bfloat16, torch.float32)
    """

    _dtype = torch.bfloat16

    def __init__(self, layout: Layout, row: Tensor, *, hidden: bool = True) -> None:
        self._hidden = [_HIDDEN] if hidden else []
        super().__init__(layout, row)

    def renew(self) -> None:
        """See :meth:`Prepared.renew`."""
        super().renew()
        for half in HALVES:
            self.renew_hidden(half)

    def renew_hidden(self, half: int) -> None:
        """Round what half of the hidden layer's originals are now, if they are rounded."""
        for name in self._hidden:
            features = halves(len(self._originals[name]))[half]
            self.parameters[name][features].copy_(self._originals[name][features])

    def _copied(self) -> list[str]:
        return [name for name in self._originals if name.startswith("body.conv") or name in self._hidden]


class RoundedUpdate(HalvedUpdate):
    """A `HalvedUpdate` in float32 that rounds the factors of its products to bfloat16."""

    _prepared_online: Rounded
    _prepared_target: Rounded

    def __init__(self, run: int, objective: Objective, adam: Adam, layout: Layout, state: State) -> None:
        super().__init__(run, objective, adam, layout, state, Rounded)

    def _prepare(self, after: Sequence[Piece]) -> Preparation:
        hidden = [self._piece(after, self._prepared_online.renew_hidden, half) for half in HALVES]
        return replace(super()._prepare(after), weighs=hidden)

    def _weigh(self, seen: Pass, half: int) -> None:
        own, features = seen.own, self._features[half]
        torch.add(seen.inputs @ own[_HIDDEN][features].mT, own["body.fc1.bias"][features], out=seen.raw[:, features])

    def _multiply(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        out.copy_(left @ right)

    def _meet(self, work: Work) -> None:
        super()._meet(work)
        work.slope = work.slope.bfloat16()
