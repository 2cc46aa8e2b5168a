"""What `gramian.attach` returns: the hook on the host's module, and everything that it owns."""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gramian.attach import inactive, injection
from gramian.attach.kinds import Kind, weights_of
from gramian.attach.reach import inside_vmap, made_by_linear, parameters_behind
from gramian.attach.terms import Last, Scale, Term, counted_rows, number, rescaler

Rows = Tensor | Callable[[], Tensor | None]
"""What `Attachment.mask` may be."""

PASSES_LOOKED_AT = 20
"""First active passes in which an injected penalty looks for an actor behind the features."""


class Attachment:
    """Penalties on one module; made by `attach`, which describes the parameters.

    It owns the hook on the module, each κ, the state behind ``ratio``, and random numbers of its own where a penalty
    takes some. `state_dict` holds what a resumed training needs. The host's state, weights and random numbers are left
    alone.

    A copy of the host, by ``copy.deepcopy`` or from a saved file, carries no penalty: it belongs to the one module it
    was attached to. A copy of an attachment is one that has been removed.

    Examples
    --------
    >>> from gramian.attach import attach
    >>> body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
    >>> reg = attach(body, kappa=0.1)
    >>> loss = head(body(torch.randn(32, 4))).square().mean()
    >>> with reg.paused():  # another pass with gradients, which is not to count
    ...     _ = body(torch.randn(32, 4))
    >>> (loss + reg.loss()).backward()
    >>> reg.check()
    >>> reg.load_state_dict(reg.state_dict())
    >>> reg.remove()
    """

    def __init__(
        self,
        module: nn.Module,
        kinds: Mapping[Kind, float],
        *,
        ratio: float | None = None,
        on_input: bool = False,
        centered: bool = True,
        inject: bool = False,
        scale: Scale | None = None,
        mask: Rows | None = None,
        when: Callable[[Tensor], bool] | None = None,
    ) -> None:
        if ratio is not None and not inject:
            raise ValueError("ratio needs inject=True: only there do the two gradients meet")
        self._terms = tuple(Term(kind, kappa) for kind, kappa in kinds.items())
        self._centered, self._inject, self._ratio, self._on_input = centered, inject, ratio, on_input
        self._when = when
        for kind in kinds:
            if kind.of_weights and ratio is not None:
                raise ValueError(
                    f"ratio compares gradients at the features; {kind.name!r} is of weights, so give kappa"
                )
            if kind.of_weights and (on_input or not weights_of(module)):
                where = "on='input'" if on_input else f"a {type(module).__name__} without any"
                raise ValueError(f"penalty {kind.name!r} is of the module's weights; it cannot be put on {where}")
            if kind.sample_power is None and mask is not None:
                raise ValueError(f"penalty {kind.name!r} takes no mask; it counts every row")
        self._module: nn.Module | None = module
        self._mask = mask
        self._rescale: Callable[[Tensor], Tensor] | None = None
        self._scale: Scale = 1.0
        self._paused = False
        self._pending: Tensor | None = None
        self._passes = 0
        self._reached: set[int] = set()
        self._state = injection.new_state(next((p.device for p in module.parameters()), torch.device("cpu")))
        self._generator: torch.Generator | None = None
        self._noise_state: Tensor | None = None
        self._features: Tensor | None = None
        self._counted: Tensor | None = None
        self._values: tuple[Tensor, ...] = ()
        self._reweigh()
        if scale is not None:
            self.scale = scale
        self._watch = inactive.Watch(self, self._where())
        self._handle = (
            module.register_forward_pre_hook(self._input_hook, with_kwargs=True)
            if on_input
            else module.register_forward_hook(self._output_hook)
        )
        if "torch._dynamo" in sys.modules:
            # Code compiled before now does not look for new hooks: without this they would be passed over in silence.
            torch.compiler.reset()

    @property
    def module(self) -> nn.Module | None:
        """The module it is attached to, or None."""
        return self._module

    @property
    def penalty(self) -> str:
        """Name of the penalty; of several, joined by ``+``."""
        return "+".join(term.kind.name for term in self._terms)

    @property
    def centered(self) -> bool:
        """Whether features are centred over the samples."""
        return self._centered

    @property
    def inject(self) -> bool:
        """Whether the gradient is added in the host's backward pass."""
        return self._inject

    @property
    def ratio(self) -> float | None:
        """The ratio of gradients that κ follows, or None where κ is fixed."""
        return self._ratio

    @property
    def last(self) -> Last | None:
        """Values, ratio and terms of the last active forward pass, or None before the first.

        Reading waits for the device only where the reader does (``float(reg.last.value)``).
        """
        if self._features is None:
            return None
        values = dict(zip((term.kind.name for term in self._terms), self._values, strict=True))
        ratio = None
        if self._inject:
            ratio = self._balance(self._features)[injection.RATIO].clone()
        return Last(values, ratio, self._features, self._centered, self._counted)

    @property
    def kappa(self) -> float | Tensor:
        """Coefficient κ of the penalty; it may be changed at any time, and counts from the next forward pass.

        With ``ratio`` it is a tensor on the device, and follows the gradients.
        """
        if len(self._terms) > 1:
            raise RuntimeError("there are several penalties, each with its own κ; use penalties")
        return next(iter(self.penalties.values()))

    @kappa.setter
    def kappa(self, kappa: float) -> None:
        if len(self._terms) > 1:
            raise RuntimeError("there are several penalties, each with its own κ; use penalties")
        self.penalties = {self.penalty: number("kappa", kappa)}

    @property
    def penalties(self) -> dict[str, float | Tensor]:
        """Each penalty's name and κ; set it to change them."""
        if self._ratio is not None:
            return {self.penalty: self._state[injection.KAPPA].clone()}
        return {term.kind.name: term.kappa for term in self._terms}

    @penalties.setter
    def penalties(self, penalties: Mapping[str, float]) -> None:
        if self._ratio is not None:
            raise RuntimeError("κ follows the ratio; attach with kappa= to set it")
        names = [term.kind.name for term in self._terms]
        if set(penalties) != set(names):
            raise ValueError(f"penalties are {', '.join(names)}; got {', '.join(penalties)}")
        kappas = [number(f"kappa of {name}", penalties[name]) for name in names]
        for term, kappa in zip(self._terms, kappas, strict=True):
            term.kappa = kappa
        self._reweigh()

    @property
    def scale(self) -> Scale:
        """Factor between the host's loss and what the host backpropagates; for ``inject`` alone.

        A host that calls ``(loss / k).backward()`` to accumulate gradients over k batches has ``1 / k``; one that calls
        ``scaler.scale(loss).backward()`` has ``scaler``, the ``GradScaler`` itself. A tensor of one element is read on
        the device at each forward pass, and so is what a function without arguments returns.

        `loss` needs none: what it returns is scaled with the loss it is added to. Nor does a constant factor beside
        ``ratio``; a ``GradScaler`` is given there too, because half precision would lose the smaller gradient.
        """
        return self._scale

    @scale.setter
    def scale(self, scale: Scale) -> None:
        if not self.inject:
            raise ValueError("scale is for inject=True; what loss() returns is scaled with the loss it is added to")
        rescale = rescaler(scale)
        if rescale is None:
            scale = number("scale", scale)
        self._scale, self._rescale = scale, rescale
        self._reweigh()

    @property
    def mask(self) -> Rows | None:
        """Rows of the features that count: a boolean tensor of n elements, or a function that returns one each time.

        Set it before the forward pass that it is for; None counts every row. The result is that of the penalty of the
        counted rows alone, without a copy of them, which would wait for the device.
        """
        return self._mask

    @mask.setter
    def mask(self, mask: Rows | None) -> None:
        for term in self._terms:
            if mask is not None and term.kind.sample_power is None:
                raise ValueError(f"penalty {term.kind.name!r} takes no mask; it counts every row")
        self._mask = mask

    def loss(self) -> Tensor:
        """κ·penalty of the last active forward pass; add it to the loss.

        A scalar. Of several active passes since the last call it is that of the last one: run the others inside
        `paused` to choose. Of too few samples (n < 2) and of κ = 0, it is a zero without gradient.

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
        self._watch.entered = True
        return pending

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Forward passes in this context are not penalised, and `loss` does not see them."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def check(self) -> None:
        """Raise where the penalty does nothing: not active within the last 100 optimiser steps, or never.

        It reads the device's state, and so waits for it.

        Raises
        ------
        RuntimeError
            With the reason, as far as it can be known.
        """
        if self.module is None:
            raise RuntimeError("the penalty was removed, or this is a copy; attach() it again")
        problem = self._watch.problem()
        if problem is None and self._inject and any(term.weight is not None for term in self._terms):
            if float(self._state[injection.PASSES]) == 0:
                problem = f"gramian.attach: no backward pass has reached the features of {self._where()} yet"
            elif self._ratio and float(self.kappa) == 0:
                problem = f"gramian.attach: κ on {self._where()} is 0 until both gradients are finite and not 0"
        if problem is not None:
            raise RuntimeError(problem)

    def state_dict(self) -> dict[str, Any]:
        """Every κ, the state behind ``ratio``, and that of the penalties' random numbers; `torch.save` takes it."""
        return {
            "kappas": {term.kind.name: term.kappa for term in self._terms},
            "state": self._state.clone(),
            "noise": None if self._generator is None else self._generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the attachment that `state_dict` is from was; it has to have the same penalties."""
        names = [term.kind.name for term in self._terms]
        if list(state["kappas"]) != names:
            raise ValueError(f"the state is of penalty {'+'.join(state['kappas'])!r}, not {self.penalty!r}")
        for term in self._terms:
            term.kappa = number(f"kappa of {term.kind.name}", state["kappas"][term.kind.name])
        self._state = state["state"].to(self._state.device, copy=True)
        self._generator, self._noise_state = None, state["noise"]
        self._reweigh()

    def remove(self) -> None:
        """Take the penalty off and leave the module as it was; a second call does nothing."""
        if self.module is not None:
            self._handle.remove()
            self._watch.stop()
        self._module = self._pending = None

    def __repr__(self) -> str:
        where = "removed" if self.module is None else f"on {self._where()}"
        kappas = f"ratio={self._ratio:g}, " if self._ratio is not None else ""
        if self._ratio is None and len(self._terms) == 1:
            kappas = f"kappa={self._terms[0].kappa:g}, "
        names = repr(self.penalty) if len(self._terms) == 1 else repr(self.penalties)
        return f"<gramian.Attachment {where}: {kappas}penalty={names}, centered={self.centered}, inject={self.inject}>"

    def __getstate__(self) -> dict[str, Any]:
        live = dict.fromkeys(
            ("_module", "_features", "_counted", "_pending", "_rescale", "_generator", "_mask", "_when")
        )
        terms = tuple(Term(term.kind.without_function(), term.kappa) for term in self._terms)
        fresh: dict[str, Any] = {**live, "_scale": 1.0, "_values": (), "_reached": set(), "_terms": terms}
        return {name: fresh.get(name, value) for name, value in vars(self).items() if name not in ("_handle", "_watch")}

    def _where(self) -> str:
        name = type(self._module).__name__
        return f"the input of {name}" if self._on_input else name

    def _reweigh(self) -> None:
        scale = self._scale if isinstance(self._scale, float) else 1.0
        for term in self._terms:
            term.weigh(scale * (term.kappa if self._ratio is None else float(self._ratio > 0)))

    def _output_hook(self, module: nn.Module, _arguments: Any, output: Any) -> Tensor | None:
        return self._seen(module, output)

    def _input_hook(self, module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if arguments:
            features = self._seen(module, arguments[0])
            return None if features is None else ((features, *arguments[1:]), named)
        name, value = next(iter(named.items()), ("", None))
        features = self._seen(module, value)
        return None if features is None else ((), {**named, name: features})

    def _seen(self, module: nn.Module, features: Any) -> Tensor | None:
        """What the host goes on with in place of the features, or None where that is the features themselves."""
        if self.module is None:
            return None
        if not torch.is_grad_enabled():
            self._watch.saw(inactive.NO_GRADIENTS)
            return None
        if not module.training:
            self._watch.saw(inactive.EVALUATION)
            return None
        way = "takes in" if self._on_input else "put out"
        if not isinstance(features, Tensor):
            raise TypeError(
                f"gramian.attach needs a module whose {'input' if self._on_input else 'output'} is one tensor [n, d]; "
                f"{type(module).__name__} {way} a {type(features).__name__}"
            )
        if not features.requires_grad:
            self._watch.saw(inactive.VMAP if inside_vmap(features) else inactive.DETACHED)
            return None
        if features.dim() > 2:
            raise ValueError(
                f"gramian.attach needs features of shape [n, d] (n samples of d features); {type(module).__name__} "
                f"{way} {list(features.shape)}; attach after a layer that flattens it"
            )
        if module is not self.module and (not self.inject or self._ratio is not None):
            raise RuntimeError("replicas of DataParallel need inject=True and a fixed kappa")
        if self._paused or (self._when is not None and not self._when(features)):
            self._watch.saw(inactive.REFUSED)
            return None
        if features.dim() < 2 or features.shape[0] < max(term.kind.least_samples for term in self._terms):
            self._watch.saw(inactive.FEW)
            self._pending = None if self.inject else features.new_zeros(())
            return None
        if not torch.compiler.is_compiling() and self._passes < PASSES_LOOKED_AT:
            self._look(features)
        return self._active(module, features)

    def _active(self, module: nn.Module, features: Tensor) -> Tensor | None:
        if all(term.weight is None for term in self._terms):  # κ = 0: measured alone, for 0·∞ is not 0
            self._total(features.detach().clone())
            self._pending = None if self.inject else features.new_zeros(())
            self._watch.entered = True
            return None
        if self.inject:
            self._watch.entered = True
            # A replica of DataParallel is on another device: its gradients are not measured.
            state = self._balance(features) if module is self.module else injection.new_state(features.device)
            host, own = injection.split(features, state, self._ratio)
            return injection.start(host, self._total(own))
        # The host may go on to change its output in place (ReLU(inplace=True)); the copy is ours.
        self._pending = self._total(features.clone())
        self._watch.saw(inactive.NOT_ADDED)
        return None

    def _balance(self, features: Tensor) -> Tensor:
        """The state behind the ratio, on the device of the features."""
        if self._state.device != features.device:
            self._state = self._state.to(features.device)
        return self._state

    def _total(self, features: Tensor) -> Tensor:
        """The sum of all factor·penalty, with its gradient; keeps the values for `last`."""
        counts = self._counts(features)
        total: Tensor | None = None
        values = []
        for term in self._terms:
            with torch.set_grad_enabled(torch.is_grad_enabled() and term.weight is not None):
                value = self._value(term.kind, features, counts)
            values.append(value.detach())
            if term.weight is not None:
                factor = term.factor(value)
                weighted = (factor if self._rescale is None else self._rescale(factor)) * value
                total = weighted if total is None else total + weighted
        self._features, self._counted, self._values = features.detach(), counts, tuple(values)
        return features.new_zeros(()) if total is None else total

    def _counts(self, features: Tensor) -> Tensor | None:
        """Which rows count, ``[n, 1]``, or None for all."""
        mask = self._mask if self._mask is None or isinstance(self._mask, Tensor) else self._mask()
        if mask is None:
            return None
        if mask.numel() != features.shape[0]:
            raise ValueError(
                f"mask has {mask.numel()} elements for {features.shape[0]} rows of features; give one each"
            )
        return mask.to(device=features.device, dtype=torch.bool, non_blocking=True).reshape(-1, 1)

    def _value(self, kind: Kind, features: Tensor, counts: Tensor | None) -> Tensor:
        if kind.of_weights:
            assert self._module is not None
            return torch.stack([kind.function(weight) for weight in weights_of(self._module)]).sum()
        if kind.noise is not None:
            return kind.function(features, self._noise(kind.noise_shape(features), features.device))
        if counts is not None and kind.sample_power is not None:
            rows, share = counted_rows(features, counts, kind.centered)
            return kind.function(rows) / share**kind.sample_power
        value = kind.function(features)
        if value.dim():
            raise ValueError(f"penalty {kind.name!r} must return a scalar, not a tensor of shape {list(value.shape)}")
        return value

    def _noise(self, shape: list[int], device: torch.device) -> Tensor:
        """Normal numbers from a generator of its own: the host's random state is left alone."""
        if self._generator is None or self._generator.device != device:
            self._generator = torch.Generator(device)
            self._generator.manual_seed(0)
            if self._noise_state is not None:
                self._generator.set_state(self._noise_state)
                self._noise_state = None
        return torch.randn(shape, generator=self._generator, device=device)

    def _look(self, features: Tensor) -> None:
        """Warn about what the first passes show to be wrong."""
        self._passes += 1
        before_activation = all(term.kind.name in ("sigreg", "orthogonality") for term in self._terms)
        if self._passes == 1 and not self._on_input and not before_activation and made_by_linear(features):
            warnings.warn(
                f"gramian.attach: {self._where()} ends in a bare Linear layer: its output are action values or the "
                "like, not features after an activation. Attach to the layer before, or with on='input' to that Linear",
                stacklevel=2,
            )
        if not self._inject or self._when is not None:
            return
        reached = {id(leaf) for leaf in parameters_behind(features) if isinstance(leaf, nn.Parameter)}
        if self._passes > 1 and reached - self._reached:
            self._passes = PASSES_LOOKED_AT
            warnings.warn(
                f"gramian.attach: the features of {self._where()} now depend on parameters that they did not depend on "
                "before. If an actor is trained through this critic, the penalty drives the actor too; give "
                "when=gramian.depends_only_on(critic)",
                stacklevel=2,
            )
        self._reached |= reached
