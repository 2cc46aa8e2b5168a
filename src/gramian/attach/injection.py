"""Where a penalty's gradient meets the host's: both are measured there, and a fixed ratio between them is kept.

The features split into two: the host goes on with one, the penalty is computed from the other. In the backward pass
the two gradients arrive together at `_Meet`. It takes no pass of its own, and nothing waits for the device.
"""

from typing import Any

import torch
from torch import Tensor

HOST, PENALTY, LARGEST, KAPPA, RATIO, PASSES = range(6)
"""Places in the state: smoothed norms of the host's and the penalty's gradient, the largest smoothed norm of the
penalty's, κ, the last measured ratio, and how many backward passes there were."""
SMOOTHING = 0.99
"""Share of the past in a smoothed norm."""
FLOOR = 0.1
"""A fixed ratio counts the penalty's gradient as at least this share of its largest one: it bounds κ."""


def new_state(device: torch.device) -> Tensor:
    """A state before the first backward pass, ``[6]``."""
    with torch.inference_mode(False):
        state = torch.zeros(6, device=device)
        state[RATIO].fill_(float("nan"))
        return state


def split(features: Tensor, state: Tensor, ratio: float | None) -> tuple[Tensor, Tensor]:
    """The features twice: for the host and for the penalty. Their gradients meet in the backward pass.

    Parameters
    ----------
    features
        ``[n, d]``.
    state
        ``[6]``, written in the backward pass.
    ratio
        None adds the penalty's gradient as it is. A number scales it by κ = ratio · ‖host's‖ / ‖penalty's‖, both
        smoothed.
    """
    host, own = _Meet.apply(features, state, ratio)
    return host, own


def start(host: Tensor, penalty: Tensor) -> Tensor:
    """``host`` itself; in its backward pass another one starts at ``penalty``, with a gradient of 1."""
    injected: Tensor = _Start.apply(host, penalty)
    return injected


class _Meet(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, state: Tensor, ratio: float | None) -> tuple[Tensor, Tensor]:
        ctx.state, ctx.ratio = state, ratio
        return features.view_as(features), features.view_as(features)

    @staticmethod
    def backward(ctx: Any, host: Tensor, own: Tensor) -> tuple[Tensor, None, None]:
        with torch.no_grad():
            norms = torch.stack([_norm(host), _norm(own)])
            after = _after(ctx.state, norms, ctx.ratio)
            # One write of the whole state: the compiler cannot take several apart.
            ctx.state.copy_(after)
        if ctx.ratio is None:
            return host + own, None, None
        kappa = after[KAPPA].to(own.dtype)
        # Never 0 times a penalty that has overflowed.
        return host + torch.where(kappa > 0, kappa * own, torch.zeros_like(own)), None, None


class _Start(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, host: Tensor, penalty: Tensor) -> Tensor:
        ctx.dtype = penalty.dtype
        # A copy, because the host may change its output in place while the penalty's graph still needs the features.
        return host.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return gradient, gradient.new_ones((), dtype=ctx.dtype)


def _norm(gradient: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(gradient if gradient.dtype == torch.float64 else gradient.float())
    return norm.float()


def _after(state: Tensor, norms: Tensor, ratio: float | None) -> Tensor:
    """The state ``[6]`` after a backward pass with these norms of the host's and the penalty's gradient, ``[2]``.

    κ is held where either norm is 0 or not finite. Both are smoothed alike from 0, so that their quotient needs no
    correction for the start. The penalty's is bounded below by a share of its largest: under ``gram`` its gradient
    falls with the third power of the features, and a fixed ratio would pull the harder the smaller the features are.
    """
    passes = state[PASSES] + 1
    if ratio is None:
        return torch.stack([*state[:RATIO], norms[1] / norms[0], passes])
    known = (norms.isfinite() & (norms > 0)).all()
    smoothed = torch.where(known, state[:LARGEST].lerp(norms, 1 - SMOOTHING), state[:LARGEST])
    largest = torch.maximum(state[LARGEST], smoothed[PENALTY])
    kappa = ratio * smoothed[HOST] / torch.maximum(smoothed[PENALTY], FLOOR * largest)
    kappa = torch.where(largest > 0, kappa, torch.zeros_like(kappa))
    return torch.stack([*smoothed, largest, kappa, kappa * norms[1] / norms[0], passes])
