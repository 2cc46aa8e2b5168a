"""Decorrelated features in reinforcement learning, through the Gram matrix.

The public names are loaded when they are first used, so that ``import gramian`` and the command line start at
once, without waiting for torch.

Examples
--------
>>> import torch, gramian
>>> features = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
>>> float(gramian.gram_penalty(features, centered=False))
0.0
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gramian.attach import Attachment, attach
    from gramian.attach.layers import layers
    from gramian.attach.reach import depends_only_on
    from gramian.penalties import (
        GramTerms,
        correlation_penalty,
        covariance_penalty,
        cross_penalty,
        decorrelation_penalty,
        dr3_penalty,
        gram_penalty,
        gram_terms,
        isotropy_penalty,
        kappa,
        l2_penalty,
        lam,
        norm_penalty,
        orthogonality_penalty,
        permuted_gram_penalty,
        sigreg_penalty,
        unbiased_gram_penalty,
        vicreg_penalty,
    )
    from gramian.representation.monitoring import Monitor, monitor
    from gramian.representation.probing import probe

__version__ = "0.1.0"

__all__ = [
    "Attachment",
    "GramTerms",
    "Monitor",
    "attach",
    "correlation_penalty",
    "covariance_penalty",
    "cross_penalty",
    "decorrelation_penalty",
    "depends_only_on",
    "dr3_penalty",
    "gram_penalty",
    "gram_terms",
    "isotropy_penalty",
    "kappa",
    "l2_penalty",
    "lam",
    "layers",
    "monitor",
    "norm_penalty",
    "orthogonality_penalty",
    "permuted_gram_penalty",
    "probe",
    "sigreg_penalty",
    "unbiased_gram_penalty",
    "vicreg_penalty",
]

_HOME = dict.fromkeys(__all__, "gramian.penalties") | dict.fromkeys(["Attachment", "attach"], "gramian.attach")
_HOME |= dict.fromkeys(["Monitor", "monitor"], "gramian.representation.monitoring")
_HOME |= {"probe": "gramian.representation.probing"}
_HOME |= {"depends_only_on": "gramian.attach.reach", "layers": "gramian.attach.layers"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gramian' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
