"""The features of any PyTorch model: the output of one of its layers over many states."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gramian.core.errors import unknown
from gramian.representation.streaming import FeatureStatistics

BATCH_SIZE = 1024


@dataclass(frozen=True)
class Probe:
    """What `probe` found.

    Attributes
    ----------
    statistics
        Everything: histograms, spectrum, correlations, sparsities.
    measures
        Every measure that is one number, by name; see `FeatureStatistics.summary`.
    """

    statistics: FeatureStatistics
    measures: dict[str, float]


def probe(
    model: nn.Module,
    observations: Tensor | NDArray[np.generic],
    *,
    layer: str | nn.Module,
    next_observations: Tensor | NDArray[np.generic] | None = None,
    batch_size: int = BATCH_SIZE,
    forward: Callable[[Tensor], object] | None = None,
) -> Probe:
    """Measure the output of a layer of ``model`` over many states.

    The model runs in evaluation mode without gradients and is left as it was.

    Parameters
    ----------
    model
        Any PyTorch module: a policy of Stable-Baselines3, a network of your own.
    observations
        ``[N, ...]``, as the model takes them. They stay where they are and travel in batches.
    layer
        The module whose output are the features, or its name in ``model.named_modules()``. Outputs ``[n, ...]`` are
        flattened to ``[n, d]``. It must be called once for each batch.
    next_observations
        Successors of the observations ``[N, ...]``, for `dr3_dot`.
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
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}; with SB3 it is model.policy")
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    if not len(observations):
        raise ValueError("there are no observations; give at least one")
    if next_observations is not None and len(next_observations) != len(observations):
        raise ValueError(f"{len(next_observations)} next observations for {len(observations)} observations")
    module, name = _find(model, layer)
    statistics: FeatureStatistics | None = None
    with _listening(model, module, name) as heard:
        for start in range(0, len(observations), batch_size):
            here = _features(model, observations[start : start + batch_size], forward, heard, name)
            if statistics is None:
                statistics = FeatureStatistics(here.shape[1], device=here.device)
            statistics.update(here)
            if next_observations is not None:
                there = _features(model, next_observations[start : start + batch_size], forward, heard, name)
                statistics.update_pairs(here, there)
    assert statistics is not None  # there was at least one observation
    return Probe(statistics, statistics.summary())


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
def _listening(model: nn.Module, module: nn.Module, name: str) -> Iterator[list[Tensor]]:
    """Collect what ``module`` puts out; evaluation mode meanwhile."""
    heard: list[Tensor] = []

    def hook(_module: nn.Module, _arguments: Any, output: object) -> None:
        if not isinstance(output, Tensor):
            raise TypeError(f"layer '{name}' puts out a {type(output).__name__}; name one that puts out one tensor")
        heard.append(output.detach().clone())  # the model may go on to change it in place

    trained = [part for part in model.modules() if part.training]
    handle = module.register_forward_hook(hook)
    model.eval()
    try:
        with torch.no_grad():
            yield heard
    finally:
        handle.remove()
        for part in trained:
            part.training = True


def _features(
    model: nn.Module,
    observations: Tensor | NDArray[np.generic],
    forward: Callable[[Tensor], object] | None,
    heard: list[Tensor],
    name: str,
) -> Tensor:
    batch = torch.as_tensor(observations)
    place = next(model.parameters(), None)
    heard.clear()
    (forward or model)(batch if place is None else batch.to(place.device))
    if len(heard) != 1:
        raise ValueError(
            f"layer '{name}' was called {len(heard)} times for one batch, not once; "
            "name another one, or give the forward that calls it"
        )
    (features,) = heard
    if features.dim() < 2 or features.shape[0] != len(batch):
        raise ValueError(
            f"layer '{name}' puts out {list(features.shape)} for {len(batch)} states; its first axis must be the states"
        )
    return features.flatten(1).float() if features.dtype in (torch.float16, torch.bfloat16) else features.flatten(1)
