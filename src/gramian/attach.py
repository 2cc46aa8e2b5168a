"""The drop-in: put a penalty on a layer of somebody else's model.

`attach` hangs a forward hook on a module whose output is features ``[n, d]``. The penalty of those features then enters
the host's training in one of two ways:

- The caller owns the loss and adds `Attachment.loss` to it.
- ``inject=True``: the output passes through an identity whose backward pass adds the gradient of κ·penalty to whatever
  gradient the host sends. No line of the host's training loop changes.
"""

import math
import sys
from collections.abc import Callable
from functools import partial
from numbers import Real
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gramian.core.arms import PENALTIES
from gramian.core.errors import unknown
from gramian.penalties import GramTerms, decorrelation_penalty, gram_terms, penalty_function

FROM_TERMS: dict[str, Callable[[GramTerms], Tensor]] = {
    "gram": lambda terms: terms.norm + terms.cross - terms.variance,
    "norm": lambda terms: terms.norm,
    "cross": lambda terms: terms.cross,
}
"""Penalties that come with the terms, which are computed for `Attachment.last` anyway: no second Gram matrix."""
OTHERS = ("covariance", "decorrelation")
"""Penalties without an arm of their own: another name of ``decor``, and the cheaper of ``decor`` and ``gram``."""
NAMES = (*(kind for kind, penalty in PENALTIES.items() if penalty.of_features_alone), *OTHERS)
"""What ``penalty`` may be called in `attach`."""

Scale = float | Tensor | torch.amp.GradScaler | Callable[[], float | Tensor]
"""What `Attachment.scale` may be."""


class Last(NamedTuple):
    """What the penalty was in the last forward pass in which it was active; detached and on the features' device."""

    value: Tensor
    """The penalty, scalar, before κ."""
    terms: GramTerms
    """Norm, cross and variance terms of the same features."""


def attach(
    module: nn.Module,
    kappa: float,
    penalty: str = "gram",
    *,
    centered: bool = True,
    inject: bool = False,
    scale: Scale | None = None,
) -> "Attachment":
    """Put κ·penalty on the features that ``module`` puts out.

    It is active in a forward pass in training mode, with gradients on, of at least two samples (four for the centred
    ``gram-unbiased``). Every other forward pass goes by untouched: acting, target values, evaluation.

    Parameters
    ----------
    module
        Any module whose output is one tensor of features ``[n, d]``.
    kappa
        Coefficient κ ≥ 0 of the penalty beside a loss that is a *mean* over samples; `gramian.kappa` converts a
        published λ. At 0 the host trains as if nothing were attached, bit for bit, and the penalty is only measured.
    penalty
        A name of `gramian.core.arms.PENALTIES` of the features alone; ``covariance`` is ``decor``, and
        ``decorrelation`` the cheaper of ``gram`` and ``decor``.
    centered
        Subtract the mean over the samples first.
    inject
        Add the gradient in the backward pass of the host's loss, instead of through `Attachment.loss`.
    scale
        With ``inject``, the factor between the host's loss and what it backpropagates, 1 unless given; see
        `Attachment.scale`.

    Examples
    --------
    >>> body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    >>> head = nn.Linear(8, 2)
    >>> reg = attach(body, kappa=0.1)
    >>> td_loss = head(body(torch.randn(32, 4))).square().mean()
    >>> (td_loss + reg.loss()).backward()
    >>> reg.remove()
    """
    return Attachment(module, kappa, penalty, centered=centered, inject=inject, scale=scale)


class Attachment:
    """A penalty on one module; made by `attach`, which describes the parameters.

    A copy of the host, by ``copy.deepcopy`` or from a saved file, carries no penalty: it belongs to the one module it
    was attached to. A copy of an attachment is one that has been removed.

    Attributes
    ----------
    last
        Value and terms of the last active forward pass, or None before the first. Reading them waits for the device
        only where the reader does (``float(reg.last.value)``).
    """

    def __init__(
        self,
        module: nn.Module,
        kappa: float,
        penalty: str = "gram",
        *,
        centered: bool = True,
        inject: bool = False,
        scale: Scale | None = None,
    ) -> None:
        if not isinstance(module, nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
        if isinstance(module, torch.jit.ScriptModule):
            raise TypeError(
                "module is a TorchScript module, which runs no Python hooks; attach to the module it is from"
            )
        if not isinstance(penalty, str):
            raise TypeError(f"penalty must be one of {', '.join(NAMES)}, not a {type(penalty).__name__}")
        if penalty not in NAMES:
            raise ValueError(str(unknown("penalty", penalty, NAMES)))
        self._module: nn.Module | None = module
        self._penalty, self._centered, self._inject = penalty, centered, inject
        self.last: Last | None = None
        kind = "decor" if penalty in OTHERS else penalty
        self._least_samples = max(2, PENALTIES[kind].samples[centered])
        self._function = (
            partial(decorrelation_penalty, centered=centered)
            if penalty == "decorrelation"
            else penalty_function(kind, centered)
        )
        self._pending: Tensor | None = None
        # κ times a constant scale lives in a tensor, so that a compiled host is not compiled anew when either changes.
        self._weight: Tensor | None = None
        self._rescale: Callable[[Tensor], Tensor] | None = None
        self._scale: Scale = 1.0
        self._kappa = 0.0
        self.kappa = kappa
        if scale is not None:
            self.scale = scale
        self._handle = module.register_forward_hook(self._hook)
        if "torch._dynamo" in sys.modules:
            # Code compiled before now does not look for new hooks: without this they would be passed over in silence.
            torch.compiler.reset()

    @property
    def module(self) -> nn.Module | None:
        """The module it is attached to, or None."""
        return self._module

    @property
    def penalty(self) -> str:
        """Name of the penalty."""
        return self._penalty

    @property
    def centered(self) -> bool:
        """Whether features are centred over the samples."""
        return self._centered

    @property
    def inject(self) -> bool:
        """Whether the gradient is added in the host's backward pass."""
        return self._inject

    @property
    def kappa(self) -> float:
        """Coefficient κ of the penalty; it may be changed at any time, and counts from the next forward pass."""
        return self._kappa

    @kappa.setter
    def kappa(self, kappa: float) -> None:
        self._kappa = _number("kappa", kappa)
        self._reweigh()

    @property
    def scale(self) -> Scale:
        """Factor between the host's loss and what the host backpropagates; for ``inject`` alone.

        A host that calls ``(loss / k).backward()`` to accumulate gradients over k batches has ``1 / k``; one that calls
        ``scaler.scale(loss).backward()`` has ``scaler``, the ``GradScaler`` itself. A tensor of one element is read on
        the device at each forward pass, and so is what a function without arguments returns.

        `loss` needs none: what it returns is scaled with the loss it is added to.
        """
        return self._scale

    @scale.setter
    def scale(self, scale: Scale) -> None:
        if not self.inject:
            raise ValueError("scale is for inject=True; what loss() returns is scaled with the loss it is added to")
        rescale: Callable[[Tensor], Tensor] | None
        if isinstance(scale, torch.amp.GradScaler):
            rescale = scale.scale  # no host synchronisation, unlike get_scale()
        elif isinstance(scale, Tensor):
            if scale.numel() != 1:
                raise ValueError(f"scale must be a tensor of one element, got shape {list(scale.shape)}")
            rescale = partial(_times, scale)
        elif callable(scale):
            rescale = partial(_times_returned, scale)
        else:
            scale, rescale = _number("scale", scale), None
        self._scale, self._rescale = scale, rescale
        self._reweigh()

    def loss(self) -> Tensor:
        """κ·penalty of the last forward pass in training mode with gradients on; add it to the loss.

        A scalar; of several forward passes since the last call, that of the last one. Of too few samples (n < 2) and
        of κ = 0, it is a zero without gradient.

        Raises
        ------
        RuntimeError
            If there was no such forward pass since the last call, and with ``inject=True``, where it would count twice.
        """
        if self.inject:
            raise RuntimeError("inject=True adds the penalty in the backward pass; loss() would add it a second time")
        if self.module is None:
            raise RuntimeError("the penalty was removed, or this is a copy; attach() it again")
        if self._pending is None:
            raise RuntimeError(
                "no forward pass of the module in training mode with gradients on since the last loss(); "
                "call the module first, once for each loss()"
            )
        pending, self._pending = self._pending, None
        return pending

    def remove(self) -> None:
        """Take the penalty off and leave the module as it was; a second call does nothing."""
        if self.module is not None:
            self._handle.remove()
        self._module = self._pending = None

    def __repr__(self) -> str:
        where = "removed" if self.module is None else f"on {type(self.module).__name__}"
        return (
            f"<gramian.Attachment {where}: kappa={self.kappa:g}, penalty={self.penalty!r}, "
            f"centered={self.centered}, inject={self.inject}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        live = {"_module": None, "last": None, "_pending": None, "_weight": None, "_rescale": None, "_scale": 1.0}
        return {name: live.get(name, value) for name, value in vars(self).items() if name != "_handle"}

    def _reweigh(self) -> None:
        if self._kappa == 0.0:
            self._weight = None
        elif self._weight is None:
            with torch.inference_mode(False):  # κ may be set anywhere, and an inference tensor is of no use elsewhere
                self._weight = torch.tensor(self._constant())
        else:
            # In place, so that a CUDA graph that was captured from the host reads the new value.
            self._weight.fill_(self._constant())

    def _constant(self) -> float:
        return self._kappa * self._scale if isinstance(self._scale, float) else self._kappa

    def _factor(self, value: Tensor) -> Tensor:
        """κ·scale as a scalar like ``value``, never shared with ``_weight``, which may change before the backward."""
        weight = self._weight
        if weight is None or weight.device != value.device or weight.dtype != value.dtype:
            weight = self._weight = torch.full((), self._constant(), dtype=value.dtype, device=value.device)
        factor = weight.clone()
        return factor if self._rescale is None else self._rescale(factor)

    def _hook(self, module: nn.Module, _arguments: Any, output: Any) -> Tensor | None:
        if self.module is None or not module.training or not torch.is_grad_enabled():
            return None
        if not isinstance(output, Tensor):
            raise TypeError(
                f"gramian.attach needs a module whose output is one tensor [n, d]; "
                f"{type(module).__name__} put out a {type(output).__name__}"
            )
        if not output.requires_grad:
            return None
        if output.dim() > 2:
            raise ValueError(
                f"gramian.attach needs features of shape [n, d] (n samples of d features); "
                f"{type(module).__name__} put out {list(output.shape)}; attach after a layer that flattens it"
            )
        if module is not self.module and not self.inject:
            raise RuntimeError("loss() cannot see the replicas of DataParallel; attach with inject=True")
        if output.dim() < 2 or output.shape[0] < self._least_samples:
            self._pending = None if self.inject else output.new_zeros(())
            return None
        return self._active(output)

    def _active(self, features: Tensor) -> Tensor | None:
        if self._weight is None:  # κ = 0: measured alone, for 0·∞ is not 0
            with torch.no_grad():
                self._measure(features)
            self._pending = None if self.inject else features.new_zeros(())
            return None
        if self.inject:
            value = self._measure(features)
            injected: Tensor = _Inject.apply(features, value, self._factor(value))
            return injected
        # The host may go on to change its output in place (ReLU(inplace=True)); the copy is ours.
        value = self._measure(features.clone())
        self._pending = self._factor(value) * value
        return None

    def _measure(self, features: Tensor) -> Tensor:
        """The penalty, with its gradient; keeps it and the terms in ``last``."""
        with_terms = FROM_TERMS.get(self.penalty)
        with torch.set_grad_enabled(torch.is_grad_enabled() and with_terms is not None):
            terms = gram_terms(features, centered=self.centered)
        value = with_terms(terms) if with_terms else self._function(features)
        self.last = Last(value.detach(), GramTerms(*(term.detach() for term in terms)))
        return value


class _Inject(torch.autograd.Function):
    """Identity on the features; its backward pass starts a second one, from ``factor``, at the penalty.

    The gradient that arrives goes on to the features unchanged, and ``factor`` goes to the penalty, as if the host had
    backpropagated ``factor * penalty`` beside its own loss: once for each time its own reaches these features.
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor, penalty: Tensor, factor: Tensor) -> Tensor:  # noqa: ARG004
        ctx.save_for_backward(factor)
        # A copy, because the host may change its output in place while the penalty's graph still needs the features.
        return features.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        (factor,) = ctx.saved_tensors
        return gradient, factor, None


def _times(scale: float | Tensor, weight: Tensor) -> Tensor:
    if isinstance(scale, Tensor):
        scale = scale.detach().reshape(()).to(weight, non_blocking=True)
    return weight * scale


def _times_returned(scale: Callable[[], float | Tensor], weight: Tensor) -> Tensor:
    return _times(scale(), weight)


def _number(name: str, value: object) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__} {value!r}")
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{name} must be finite and at least 0, not {number}")
    return number


class _Callable(ModuleType):
    """Lets ``gramian.attach(...)`` be called though this module, once imported, takes the function's place there."""

    __call__ = staticmethod(attach)


sys.modules[__name__].__class__ = _Callable
