"""The features of any PyTorch model: what one of its layers puts out, or takes in, over many states."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gramian.core.errors import unknown
from gramian.representation.measures import FeatureStatistics, check_measures

BATCH_SIZE = 1024

Array = Tensor | NDArray[np.generic]
Observations = Array | Mapping[str, Array]
"""``[N, ...]``, or a dict of such."""


@dataclass(frozen=True)
class Probe:
    """What `probe` found.

    Attributes
    ----------
    statistics
        Everything: histograms, spectrum, correlations, sparsities.
    measures
        Measures that are one number, by name; see `FeatureStatistics.summary`.
    """

    statistics: FeatureStatistics
    measures: dict[str, float]


def probe(
    model: nn.Module,
    observations: Observations,
    *,
    layer: str | nn.Module,
    on: Literal["output", "input"] = "output",
    next_observations: Observations | None = None,
    measures: Sequence[str] | None = None,
    batch_size: int = BATCH_SIZE,
    forward: Callable[[Any], object] | None = None,
) -> Probe:
    """Measure the features at a layer of ``model`` over many states.

    The model runs in evaluation mode without gradients; it and torch's random state are left as they were.

    Parameters
    ----------
    model
        Any PyTorch module: a policy of Stable-Baselines3, a network of your own.
    observations
        ``[N, ...]``, or a dict of such, as the model takes them. They stay where they are and travel in batches, in the
        precision of the model's weights.
    layer
        The module whose output are the features, or its name in ``model.named_modules()``. Outputs ``[n, ...]`` are
        flattened to ``[n, d]``. It must be called once for each batch.
    on
        ``"input"``: the features are what goes into the layer, as its first argument.
    next_observations
        Successors of the observations, for `dr3_dot`.
    measures
        Names of `MEASURES`; all of them unless given, without `dr3_dot` where there are no successors.
    batch_size
        States that go through the model at once.
    forward
        How to call the model, if not as ``model(observations)``; for instance ``model.predict_values``.

    Returns
    -------
    Probe
        The statistics, and the measures that are one number.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> result = probe(model, torch.randn(100, 4), layer="1")
    >>> result.statistics.features_dim, result.measures["states"]
    (8, 100)
    >>> probe(model, torch.zeros(100, 4), layer="2", on="input", measures=["constant_share"]).measures
    {'constant_share': 1.0}
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}; with SB3 it is model.policy")
    if on not in ("output", "input"):
        raise ValueError(f"on is {on!r}; it must be 'output' or 'input'")
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    check_measures(measures or ())
    count = _count(observations)
    if not count:
        raise ValueError("there are no observations; give at least one")
    if next_observations is not None and _count(next_observations) != count:
        raise ValueError(f"{_count(next_observations)} next observations for {count} observations")
    module, name = _find(model, layer)
    if forward is None and getattr(type(model), "forward", None) in (None, nn.Module.forward):
        raise TypeError(f"{type(model).__name__} has no forward; say how to call it: forward=model.…")
    statistics: FeatureStatistics | None = None
    with _listening(model, module, name, on) as heard:
        for start in range(0, count, batch_size):
            batch = slice(start, start + batch_size)
            here = _features(model, observations, batch, forward, heard, name)
            if statistics is None:
                statistics = FeatureStatistics(here.shape[1], device=here.device)
            statistics.update(here)
            if next_observations is not None:
                statistics.update_pairs(here, _features(model, next_observations, batch, forward, heard, name))
    assert statistics is not None  # there was at least one observation
    return Probe(statistics, statistics.summary(measures))


def _count(observations: Observations) -> int:
    """Number N of states."""
    if not isinstance(observations, Mapping):
        return len(observations)
    lengths = {key: len(value) for key, value in observations.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the observations differ in their number of states: {lengths}")
    return max(lengths.values(), default=0)


def _find(model: nn.Module, layer: str | nn.Module) -> tuple[nn.Module, str]:
    modules = dict(model.named_modules())
    if isinstance(layer, str):
        if layer not in modules:
            raise unknown(f"layer of {type(model).__name__}", layer, [name for name in modules if name])
        return modules[layer], layer
    names = [name for name, module in modules.items() if module is layer]
    if not names:
        raise ValueError(f"the {type(layer).__name__} given as layer is not a module of the {type(model).__name__}")
    return layer, names[0]


@contextmanager
def _listening(model: nn.Module, module: nn.Module, name: str, on: str) -> Iterator[list[Tensor]]:
    """Collect what ``module`` puts out or takes in; evaluation mode meanwhile, and random numbers that do not count."""
    heard: list[Tensor] = []

    def hear(features: object) -> None:
        if not isinstance(features, Tensor):
            verb = "puts out" if on == "output" else "takes in"
            raise TypeError(
                f"layer '{name}' {verb} a {type(features).__name__}; name one where the features are one tensor"
            )
        heard.append(features.detach().clone())  # the model may go on to change it in place

    def of_output(_module: nn.Module, _arguments: Any, output: object) -> None:
        hear(output)

    def of_input(_module: nn.Module, arguments: tuple[object, ...]) -> None:
        hear(arguments[0] if arguments else None)

    trained = [part for part in model.modules() if part.training]
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    handle = module.register_forward_hook(of_output) if on == "output" else module.register_forward_pre_hook(of_input)
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(list(devices)):
            yield heard
    finally:
        handle.remove()
        for part in trained:
            part.training = True


def _features(
    model: nn.Module,
    observations: Observations,
    batch: slice,
    forward: Callable[[Any], object] | None,
    heard: list[Tensor],
    name: str,
) -> Tensor:
    place = next((parameter for parameter in model.parameters() if parameter.is_floating_point()), None)

    def moved(values: Array) -> Tensor:
        part = torch.as_tensor(values[batch])
        if place is None:
            return part
        return part.to(place.device, place.dtype if part.is_floating_point() else part.dtype)

    if isinstance(observations, Mapping):
        states: Any = {key: moved(values) for key, values in observations.items()}
        count = _count(states)
    else:
        states = moved(observations)
        count = len(states)
    heard.clear()
    (forward or model)(states)
    if len(heard) != 1:
        raise ValueError(
            f"layer '{name}' was called {len(heard)} times for one batch, not once; "
            "name another one, or give the forward that calls it"
        )
    (features,) = heard
    if features.dim() < 2 or features.shape[0] != count:
        raise ValueError(
            f"the features at layer '{name}' are {list(features.shape)} for {count} states; "
            "their first axis must be the states"
        )
    return features.flatten(1).float() if features.dtype in (torch.float16, torch.bfloat16) else features.flatten(1)
