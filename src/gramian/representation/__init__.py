"""What a network's features look like: measures of them, for our runs and for anyone's network.

Examples
--------
>>> import torch
>>> from gramian import representation
>>> body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
>>> model = torch.nn.Sequential(body, torch.nn.Linear(8, 2))
>>> result = representation.probe(model, torch.randn(100, 4), layer=body)
>>> 0 < result.measures["effective_rank"] <= 8
True
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gramian.representation.probing import Probe, probe
    from gramian.representation.streaming import MEASURES, FeatureStatistics

__all__ = ["MEASURES", "FeatureStatistics", "Probe", "probe"]

_MODULES = {
    "FeatureStatistics": "gramian.representation.streaming",
    "MEASURES": "gramian.representation.streaming",
    "Probe": "gramian.representation.probing",
    "probe": "gramian.representation.probing",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'gramian.representation' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
