"""The parts of an attachment: each penalty with its κ, the host's scale of its loss, and what was measured last."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Real

import torch
from torch import Tensor

from gramian.attach.kinds import Kind
from gramian.penalties import GramTerms, floating, gram_terms

Scale = float | Tensor | torch.amp.GradScaler | Callable[[], float | Tensor]
"""What `Attachment.scale` may be."""


@dataclass(frozen=True)
class Last:
    """What the penalty was in the last forward pass in which it was active; detached and on the features' device."""

    values: dict[str, Tensor]
    """Each penalty by name, scalar, before κ."""
    ratio: Tensor | None
    """‖κ·∂penalty‖ / ‖∂host's loss‖ at the features, of the last backward pass; None without ``inject``, NaN before."""
    _features: Tensor = field(repr=False)
    _centered: bool = field(repr=False)
    _counted: Tensor | None = field(repr=False)

    @property
    def value(self) -> Tensor:
        """The penalty before κ; of several the sum."""
        return (
            torch.stack(list(self.values.values())).sum() if len(self.values) > 1 else next(iter(self.values.values()))
        )

    @cached_property
    def terms(self) -> GramTerms:
        """Norm, cross and variance terms of the same features, computed when they are first read."""
        with torch.no_grad():
            if self._counted is None:
                return gram_terms(self._features, centered=self._centered)
            rows, share = counted_rows(self._features, self._counted, self._centered)
            return GramTerms(*(term / share**2 for term in gram_terms(rows, centered=self._centered)))


@dataclass
class Term:
    """One penalty with its coefficient."""

    kind: Kind
    kappa: float
    constant: float = 0.0
    """κ, or 1 where it follows a ratio, times a constant scale."""
    weight: Tensor | None = None
    """The constant, or None where it is 0. A tensor, so that a compiled host is not compiled anew when it changes, and
    a captured CUDA graph reads the new value."""

    def weigh(self, constant: float) -> None:
        """Set the weight."""
        self.constant = constant
        if constant == 0:
            self.weight = None
        elif self.weight is None:
            with torch.inference_mode(False):  # κ may be set anywhere; an inference tensor is of no use elsewhere
                self.weight = torch.tensor(constant)
        else:
            self.weight.fill_(constant)

    def factor(self, value: Tensor) -> Tensor:
        """A copy of the weight like ``value``: the weight itself may change before the backward pass."""
        weight = self.weight
        if weight is None or weight.device != value.device or weight.dtype != value.dtype:
            weight = self.weight = torch.full((), self.constant, dtype=value.dtype, device=value.device)
        return weight.clone()


def counted_rows(features: Tensor, counts: Tensor, centered: bool) -> tuple[Tensor, Tensor]:
    """The features ``[n, d]`` with zeros in the rows that do not count, and the share of those that do.

    They are centred over the rows that count, where asked for, so that centring over all changes nothing more.
    """
    rows = torch.where(counts, floating(features), 0)
    number_of_rows = counts.sum().clamp_min(1).to(rows.dtype)
    if centered:
        rows = torch.where(counts, rows - rows.sum(0) / number_of_rows, torch.zeros_like(rows))
    return rows, number_of_rows / features.shape[0]


def rescaler(scale: Scale) -> Callable[[Tensor], Tensor] | None:
    """What multiplies a weight by the host's scale on the device, or None where the scale is a number."""
    if isinstance(scale, torch.amp.GradScaler):
        return scale.scale  # no host synchronisation, unlike get_scale()
    if isinstance(scale, Tensor):
        if scale.numel() != 1:
            raise ValueError(f"scale must be a tensor of one element, got shape {list(scale.shape)}")
        return partial(_times, scale)
    return partial(_times_returned, scale) if callable(scale) else None


def _times(scale: float | Tensor, weight: Tensor) -> Tensor:
    if isinstance(scale, Tensor):
        scale = scale.detach().reshape(()).to(weight, non_blocking=True)
    return weight * scale


def _times_returned(scale: Callable[[], float | Tensor], weight: Tensor) -> Tensor:
    return _times(scale(), weight)


def number(name: str, value: object) -> float:
    """A finite number of at least 0, as a float."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__} {value!r}")
    result = float(value)
    if not math.isfinite(result) or result < 0:
        raise ValueError(f"{name} must be finite and at least 0, not {result}")
    return result
