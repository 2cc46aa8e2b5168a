"""Live measures: what the features of a layer look like while anybody's code trains it."""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch._compile import _disable_dynamo

from gramian.representation.measures import FeatureStatistics, check_measures

if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback

LIVE = (
    "effective_rank", "srank", "participation_ratio", "mean_abs_correlation", "dormant_share", "dormant_share_0.025",
    "feature_norm", "sparsity", "nonfinite_share",
)  # fmt: skip
"""What a monitor measures unless it is told otherwise."""
SAMPLES = 1024
"""States that a measurement is made of, unless told otherwise."""
SHARE = 1 / 16
"""Of the forward passes, those whose features are kept: a copy costs more than a glance."""
MOST_TIME = 0.01
"""Largest share of the time that measurements take, after the first one."""
GOLDEN = 0.6180339887498949
"""Its multiples, modulo 1, are spread evenly: the passes that are kept follow no period of the host's."""


def monitor(
    layer: nn.Module,
    every: int = 1000,
    *,
    on: Literal["output", "input"] = "output",
    samples: int = SAMPLES,
    measures: Sequence[str] = LIVE,
) -> "Monitor":
    """Watch the features that pass through a layer while it is trained.

    One in sixteen forward passes, in training and in evaluation mode, leaves its features in a rolling sample. The
    measures are computed where they are read, by `Monitor.latest`, at most once in ``every`` passes, and less often
    where that would take more than 1 % of the time. The host's random state and gradients stay as they are.

    Parameters
    ----------
    layer
        Any module whose output are features ``[n, ...]``, which are flattened to ``[n, d]``.
    every
        Forward passes of the layer between two measurements.
    on
        ``"input"``: watch what goes into the layer instead, as its first argument.
    samples
        States in the rolling sample, the newest ones. No rank is larger than that.
    measures
        Names of `gramian.representation.MEASURES`.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> watch = monitor(model[1], every=100)
    >>> watch.latest()
    {}
    >>> for _ in range(100):
    ...     loss = model(torch.randn(32, 4)).square().mean()
    >>> 1 < watch.latest()["effective_rank"] <= 8
    True
    >>> watch.remove()
    """
    return Monitor(layer, every, on=on, samples=samples, measures=measures)


class Monitor:
    """A rolling sample of features and its measures; made by `monitor`, which describes the parameters.

    A copy of the layer, by ``copy.deepcopy`` or from a saved file, is not watched.
    """

    def __init__(
        self,
        layer: nn.Module,
        every: int = 1000,
        *,
        on: Literal["output", "input"] = "output",
        samples: int = SAMPLES,
        measures: Sequence[str] = LIVE,
    ) -> None:
        if not isinstance(layer, nn.Module):
            raise TypeError(f"layer must be a torch.nn.Module, not {type(layer).__name__}")
        if on not in ("output", "input"):
            raise ValueError(f"on is {on!r}; it must be 'output' or 'input'")
        for name, value, least in (("every", every, 1), ("samples", samples, 2)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value}; it must be a whole number, at least {least}")
        check_measures(measures)
        self.every, self.samples, self.measures = every, samples, tuple(measures)
        self.passes = 0
        """Forward passes of the layer so far."""
        self._layer: nn.Module | None = layer
        self._rows: Tensor | None = None  # [samples, d]; the newest row stands before _next
        self._next = self._filled = self._measured_at = 0
        self._not_before = 0.0
        self._latest: dict[str, float] = {}
        if on == "input":
            self._handle = layer.register_forward_pre_hook(self._on_input)
        else:
            self._handle = layer.register_forward_hook(self._on_output)
        if "torch._dynamo" in sys.modules:
            torch.compiler.reset()  # code compiled before now does not look for new hooks

    def latest(self) -> dict[str, float]:
        """The newest measures by name; empty before ``every`` forward passes.

        It measures anew where ``every`` passes have gone by since the last time, and `MOST_TIME` allows it.
        """
        begun = time.perf_counter()
        due = self.passes - self._measured_at >= self.every and begun >= self._not_before
        if due and self._rows is not None:
            statistics = FeatureStatistics(self._rows.shape[1], thresholds=(), device=self._rows.device)
            statistics.update(self._rows[: self._filled])
            self._latest = {name: float(value) for name, value in statistics.summary(self.measures).items()}
            self._measured_at = self.passes
            ended = time.perf_counter()
            self._not_before = ended + (ended - begun) / MOST_TIME
        return dict(self._latest)

    def sb3_callback(self, prefix: str = "features/") -> "BaseCallback":
        """A callback for ``learn`` of Stable-Baselines3 that puts the measures into the agent's log.

        Examples
        --------
        >>> watch = monitor(nn.Linear(4, 8))
        >>> watch.sb3_callback()  # doctest: +SKIP
        >>> agent.learn(50_000, callback=watch.sb3_callback())  # doctest: +SKIP
        """
        from stable_baselines3.common.callbacks import BaseCallback

        monitored = self

        class Callback(BaseCallback):
            def _on_step(self) -> bool:
                for name, value in monitored.latest().items():
                    self.logger.record(prefix + name, value)
                return True

        return Callback()

    def remove(self) -> None:
        """Watch no longer; a second call does nothing."""
        if self._layer is not None:
            self._handle.remove()
        self._layer = self._rows = None

    def __getstate__(self) -> dict[str, Any]:
        live = {"_layer": None, "_rows": None}
        return {name: live.get(name, value) for name, value in vars(self).items() if name != "_handle"}

    # the compiler must not trace the counters: each new number would compile the host anew
    @_disable_dynamo
    def _on_output(self, layer: nn.Module, _arguments: Any, output: object) -> None:
        if layer is self._layer:
            self._see(output)

    @_disable_dynamo
    def _on_input(self, layer: nn.Module, arguments: tuple[object, ...]) -> None:
        if layer is self._layer:
            self._see(arguments[0] if arguments else None)

    def _see(self, features: object) -> None:
        self.passes += 1
        if self.passes * GOLDEN % 1 >= SHARE and self._rows is not None:
            return
        if not isinstance(features, Tensor) or not features.is_floating_point():
            raise TypeError(
                f"gramian.monitor needs one tensor of floating-point features; "
                f"{type(self._layer).__name__} has a {getattr(features, 'dtype', type(features).__name__)}"
            )
        if torch._C._functorch.is_functorch_wrapped_tensor(features):
            raise TypeError(
                "gramian.monitor cannot watch a layer inside vmap or another transform of torch.func; "
                "measure the model with gramian.representation.probe"
            )
        # a buffer that is made in inference mode could not be written to outside of it
        with torch.inference_mode(False), torch.no_grad():
            self._keep(features.detach())

    def _keep(self, features: Tensor) -> None:
        new = features[None] if features.dim() == 1 else features.flatten(1)
        if self._rows is None:
            dtype = torch.float64 if new.dtype == torch.float64 else torch.float32
            self._rows = torch.zeros(self.samples, new.shape[1], dtype=dtype, device=new.device)
        elif new.shape[1:] != self._rows.shape[1:]:
            raise ValueError(f"the layer had {self._rows.shape[1]} features, and now it has {new.shape[1]}")
        new = new[-self.samples :]
        first = min(len(new), self.samples - self._next)
        self._rows[self._next : self._next + first] = new[:first]
        self._rows[: len(new) - first] = new[first:]
        self._next = (self._next + len(new)) % self.samples
        self._filled = min(self.samples, self._filled + len(new))
