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
    from gramian.representation.measures import MEASURES, FeatureStatistics
    from gramian.representation.monitoring import Monitor, monitor
    from gramian.representation.probing import Probe, probe

__all__ = ["MEASURES", "FeatureStatistics", "Monitor", "Probe", "monitor", "probe"]

_HOME = dict.fromkeys(["FeatureStatistics", "MEASURES"], "gramian.representation.measures")
_HOME |= dict.fromkeys(["Monitor", "monitor"], "gramian.representation.monitoring")
_HOME |= dict.fromkeys(["Probe", "probe"], "gramian.representation.probing")


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gramian.representation' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
