"""What a penalty of `gramian.attach` stands for: its function and what that needs."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from torch import Tensor, nn

from gramian.core.arms import PENALTIES
from gramian.core.errors import unknown
from gramian.penalties import decorrelation_penalty, orthogonality_penalty, penalty_function

ALIASES = {"covariance": "decor"}
NAMES = (
    *(kind for kind, penalty in PENALTIES.items() if not penalty.next_features),
    *ALIASES,
    "decorrelation",
    "orthogonality",
)
"""What ``penalty`` may be called in `gramian.attach`."""
_SAMPLE_POWERS = {
    "gram": 2,
    "decor": 2,
    "decorrelation": 2,
    "norm": 2,
    "cross": 2,
    "l2": 1,
    "isotropy": 0,
    "correlation": 0,
}
"""Powers of 1/n in the penalties for which rows of zeros change nothing else: they can leave out the rows of a mask."""


class Kind(NamedTuple):
    """A penalty by name or a function of the caller."""

    name: str
    function: Callable[..., Tensor]
    """Of features ``[n, d]``; of weights ``[out, in]`` where ``of_weights``; of features and noise where ``noise``."""
    least_samples: int = 2
    noise: tuple[str, str] | None = None
    """Shape of the normal random numbers that it takes too: ``n`` and ``d`` of the features, or a number."""
    of_weights: bool = False
    centered: bool = False
    """Whether its function subtracts the mean over the samples."""
    sample_power: int | None = None
    """Power of 1/n in it; None where it cannot leave out the rows of a mask."""

    def noise_shape(self, features: Tensor) -> list[int]:
        """Shape of the random numbers for these features."""
        sizes = {"n": features.shape[-2], "d": features.shape[-1]}
        return [sizes[name] if name in sizes else int(name) for name in self.noise or ()]

    def without_function(self) -> "Kind":
        """For a copy of an attachment, which computes nothing: a function of the caller may not be copied or saved."""
        return self._replace(function=_removed)


def _removed(*_: object) -> Tensor:
    raise RuntimeError("the penalty was removed, or this is a copy; attach() it again")


def find_kind(penalty: object, centered: bool) -> Kind:
    """The penalty of a name or of a function of the features.

    Examples
    --------
    >>> find_kind("gram-unbiased", centered=True).least_samples
    4
    """
    if not isinstance(penalty, str):
        if not callable(penalty):
            raise TypeError(f"penalty must be one of {', '.join(NAMES)}, or a function, not a {type(penalty).__name__}")
        return Kind(getattr(penalty, "__name__", type(penalty).__name__), penalty)
    if penalty == "dr3":
        raise ValueError("penalty 'dr3' needs the next states' features too; add gramian.dr3_penalty to the loss")
    if penalty not in NAMES:
        raise ValueError(str(unknown("penalty", penalty, NAMES)))
    if penalty == "orthogonality":
        return Kind(penalty, orthogonality_penalty, of_weights=True)
    if penalty == "decorrelation":
        return Kind(penalty, partial(decorrelation_penalty, centered=centered), centered=centered, sample_power=2)
    arm = ALIASES.get(penalty, penalty)
    needs = PENALTIES[arm]
    return Kind(
        penalty,
        penalty_function(arm, centered),
        max(2, needs.samples[centered]),
        needs.noise,
        centered=centered and needs.centrable,
        sample_power=_SAMPLE_POWERS.get(arm),
    )


def weights_of(module: nn.Module) -> list[Tensor]:
    """Weights ``[out, in]`` of the linear and convolutional layers of a module, and of their like."""
    return [weight.flatten(1) for name, weight in module.named_parameters() if weight.dim() > 1 and "weight" in name]
