"""The drop-in: put a penalty on a layer of somebody else's model.

`attach` hangs a forward hook on a module that puts out features ``[n, d]``, or takes them in. Their penalty then enters
the host's training in one of two ways:

- The caller owns the loss and adds `Attachment.loss` to it.
- ``inject=True``: the features pass through an identity whose backward pass adds the gradient of κ·penalty to whatever
  gradient the host sends. No line of the host's training loop changes.
"""

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Literal

import torch
from torch import Tensor, nn

from gramian.attach.attachment import Attachment, Rows
from gramian.attach.kinds import NAMES, find_kind
from gramian.attach.terms import Last, Scale, number

__all__ = ["NAMES", "Attachment", "Last", "Rows", "Scale", "attach"]

Penalty = str | Callable[[Tensor], Tensor]
"""A name of `NAMES`, or a function of features ``[n, d]`` that returns a scalar."""


def attach(
    module: nn.Module,
    kappa: float | None = None,
    penalty: Penalty | None = None,
    *,
    ratio: float | None = None,
    penalties: Mapping[str, float] | None = None,
    on: Literal["output", "input"] = "output",
    centered: bool = True,
    inject: bool = False,
    scale: Scale | None = None,
    mask: Rows | None = None,
    when: Callable[[Tensor], bool] | None = None,
) -> Attachment:
    """Put κ·penalty on the features that ``module`` puts out, or takes in.

    It is active in a forward pass in training mode, with gradients on, of at least two samples (four for the centred
    ``gram-unbiased``). Every other forward pass goes by untouched: acting, target values, evaluation. A penalty that
    was not active for 100 optimiser steps of the process is warned about once; `Attachment.check` raises at any time.

    Exactly one of ``kappa``, ``ratio`` and ``penalties`` is given.

    Parameters
    ----------
    module
        Any module whose output, or input, is one tensor of features ``[n, d]``.
    kappa
        Coefficient κ ≥ 0 of the penalty beside a loss that is a *mean* over samples; `gramian.kappa` converts a
        published λ. At 0 the host trains as if nothing were attached, bit for bit, and the penalty is only measured.
    penalty
        ``gram`` unless given. A name of `gramian.core.arms.PENALTIES` except ``dr3``; ``covariance`` is ``decor``,
        ``decorrelation`` the cheaper of ``gram`` and ``decor``; ``orthogonality`` is of the module's weights. Or a
        function of the features that returns a scalar.
    ratio
        With ``inject``, in place of ``kappa``: the length of the penalty's gradient at the features divided by that of
        the host's. κ follows from the smoothed lengths. It is 0 before the first backward pass, is held where the
        host's gradient is 0, and stops rising when the penalty's gradient has fallen to a tenth of its largest.
    penalties
        Several penalties by name, each with its κ.
    on
        ``input`` penalises what goes into the module: its first argument. So the head of a network is enough to know.
    centered
        Subtract the mean over the samples first, where the penalty can.
    inject
        Add the gradient in the backward pass of the host's loss, instead of through `Attachment.loss`.
    scale
        With ``inject``, the factor between the host's loss and what it backpropagates, 1 unless given; see
        `Attachment.scale`.
    mask
        Rows that count, ``[n]``, for batches with padding; see `Attachment.mask`.
    when
        Called with the features of each pass that would be active; it is, where this returns True.
        `gramian.depends_only_on` makes one for critics that an actor is trained through.

    Examples
    --------
    >>> body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    >>> head = nn.Linear(8, 2)
    >>> reg = attach(head, ratio=0.1, on="input", inject=True)
    >>> head(body(torch.randn(32, 4))).square().mean().backward()
    >>> round(float(reg.last.ratio), 4)
    0.1
    >>> reg.remove()
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    if isinstance(module, torch.jit.ScriptModule):
        raise TypeError("module is a TorchScript module, which runs no Python hooks; attach to the module it is from")
    given = {"kappa": kappa, "ratio": ratio, "penalties": penalties}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        raise TypeError(f"attach takes exactly one of kappa, ratio and penalties, got {' and '.join(names) or 'none'}")
    if on not in ("output", "input"):
        raise ValueError(f"on must be 'output' or 'input', not {on!r}")
    if penalties is None:
        coefficient = number("ratio", ratio) if kappa is None else number("kappa", kappa)
        kinds = {find_kind("gram" if penalty is None else penalty, centered): coefficient}
    else:
        if penalty is not None:
            raise TypeError("penalties names the penalties; leave penalty out")
        if not isinstance(penalties, Mapping) or not penalties:
            raise TypeError('penalties must be a dict of names and κ, as in {"gram": 0.08, "norm": 0.2}')
        kinds = {find_kind(name, centered): number(f"kappa of {name}", value) for name, value in penalties.items()}
    return Attachment(
        module,
        kinds,
        ratio=None if ratio is None else number("ratio", ratio),
        on_input=on == "input",
        centered=centered,
        inject=inject,
        scale=scale,
        mask=mask,
        when=when,
    )


class _Callable(ModuleType):
    """Lets ``gramian.attach(...)`` be called though this module, once imported, takes the function's place there."""

    __call__ = staticmethod(attach)


sys.modules[__name__].__class__ = _Callable
