"""What an agent sees: one newest frame for a step, and the stack of the last few of them."""

from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from numpy.typing import DTypeLike
from torch import Tensor

_TORCH_DTYPES = {np.dtype(np.uint8): torch.uint8, np.dtype(np.float32): torch.float32}


@dataclass(frozen=True)
class ObservationSpec:
    """Shape of an observation: ``stack`` frames, zero before the first one of an episode, or of a life if ``per_life``.

    A frame is ``(84, 84)`` for Atari, ``(C, 10, 10)`` for MinAtar (uint8), ``(4,)`` for CartPole (float32).
    """

    frame_shape: tuple[int, ...]
    dtype: DTypeLike
    stack: int
    per_life: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        if self.dtype not in _TORCH_DTYPES:
            raise ValueError(f"frames are uint8 or float32, not {self.dtype}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a whole observation: images without channels become channels, all else is stacked along axis 0."""
        if len(self.frame_shape) == 2:
            return (self.stack, *self.frame_shape)
        return (self.stack * self.frame_shape[0], *self.frame_shape[1:])

    @property
    def torch_dtype(self) -> torch.dtype:
        """The frames' type as torch knows it."""
        return _TORCH_DTYPES[np.dtype(self.dtype)]

    @property
    def frame_bytes(self) -> int:
        """Bytes of one frame."""
        return prod(self.frame_shape) * np.dtype(self.dtype).itemsize


class FrameStack:
    """The observations that the actors of ``environments`` (P, E) act on, kept on a device."""

    def __init__(self, spec: ObservationSpec, environments: tuple[int, int], device: str | torch.device = "cpu"):
        self.spec, self.environments = spec, environments
        self._shape = (*environments, *spec.shape)
        self.frames = torch.zeros(*environments, spec.stack, *spec.frame_shape, dtype=spec.torch_dtype, device=device)
        """``[P, E, stack, *frame_shape]``, oldest first: all there is to save and restore."""

    def push(self, frames: Tensor, started: Tensor, runs: slice = slice(None)) -> Tensor:
        """Add the newest frames ``[P, E, *frame_shape]`` of some runs; gives the observations ``[P, E, *shape]``.

        Zeros come before a frame that has ``started`` ``[P, E]`` its episode.
        """
        own = self.frames[runs]
        if self.spec.stack == 1:
            own.copy_(frames.unsqueeze(2))
            return self.observations
        if own.device.type == "cpu":  # where numpy's calls are the cheaper ones
            host, first = own.numpy(), started.numpy()
            host[:, :, :-1] = host[:, :, 1:]
            host[:, :, -1] = frames.numpy()
            if first.any():
                host[first, :-1] = 0
            return self.observations
        keep = ~started.view(*started.shape, *(1,) * (own.dim() - 2))
        own.copy_(torch.cat([own[:, :, 1:] * keep, frames.unsqueeze(2)], dim=2))
        return self.observations

    @property
    def observations(self) -> Tensor:
        """The current observations ``[P, E, *spec.shape]``, a view that the next :meth:`push` changes."""
        return self.frames.view(self._shape)
