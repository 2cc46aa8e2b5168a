"""Parameters of Atari's networks as a CPU's convolutions are fastest with them.

Convolutions on a CPU want the channels of filters and images last, and torch would put them there in every call: of a
batch in halves six times an update. Pixels are whole numbers, and to divide them by 255 is a pass over the largest
images of all; divided are the filters that look at them.
"""

import torch
from torch import Tensor

from gramian.deep.agent.layout import Layout
from gramian.deep.agent.networks import PIXELS, Parameters, by_run

_FIRST = "body.conv1.weight"


class Prepared:
    """A run's parameters with copies of its filters, channels last and those of the first convolution divided by 255.

    Parameters
    ----------
    layout
        Of the network.
    row
        The parameters ``[N]``, which stay where they are. All but the filters are these themselves.

    Examples
    --------
    >>> from gramian.deep.agent.networks import NetworkSpec, init
    >>> spec = NetworkSpec("nature", (4, 36, 36), actions=6, features_dim=32)
    >>> layout = Layout(spec)
    >>> row = layout.flatten(init(spec, seeds=[0]))[0]
    >>> prepared = Prepared(layout, row)
    >>> prepared.refresh()
    >>> torch.equal(prepared.parameters["body.conv2.weight"], by_run(layout.views(row[None]))[0]["body.conv2.weight"])
    True
    """

    _dtype: torch.dtype | None = None
    """Of the copies; where it is None, that of the originals."""

    def __init__(self, layout: Layout, row: Tensor) -> None:
        self._originals = by_run(layout.views(row.unsqueeze(0)))[0]
        self.parameters: Parameters = dict(self._originals)
        """By their names."""
        for name in self._copied():
            self.parameters[name] = self._room(name)
        self._row, self._version = row, -1

    def refresh(self) -> None:
        """`renew` where torch has written to the originals since they were last copied here.

        Its fused optimisers do not tell; nor do tensors of its inference mode, which are always copied.
        """
        version = -1 if self._row.is_inference() else self._row._version
        if version < 0 or version != self._version:
            self.renew()
            self._version = version  # last: what was interrupted is to be done again

    def renew(self) -> None:
        """Copy what the originals are now."""
        self.renew_convolutions()

    def renew_convolutions(self) -> None:
        """Copy what the convolutions' originals are now."""
        for name in self._copied():
            if name.startswith("body.conv"):
                original, copy = self._originals[name], self.parameters[name]
                # the type first: torch is slow with type and layout at once
                copy.copy_((original / PIXELS if name == _FIRST else original).to(copy.dtype))

    def _room(self, name: str) -> Tensor:
        original = self._originals[name]
        order = torch.channels_last if original.dim() == 4 else torch.contiguous_format
        return torch.empty_like(original, dtype=self._dtype, memory_format=order)

    def _copied(self) -> list[str]:
        return [name for name, original in self._originals.items() if original.dim() == 4]
