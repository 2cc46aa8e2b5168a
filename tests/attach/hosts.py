"""What the drop-in is tested on: a small host with its gradients by hand, and a small world for agents."""

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

import gramian

PENALTIES = {
    "gram": gramian.gram_penalty,
    "covariance": gramian.covariance_penalty,
    "decor": gramian.covariance_penalty,
    "decorrelation": gramian.decorrelation_penalty,
    "gram-unbiased": gramian.unbiased_gram_penalty,
    "norm": lambda features, centered: gramian.gram_terms(features, centered=centered).norm,
    "cross": lambda features, centered: gramian.gram_terms(features, centered=centered).cross,
    "l2": lambda features, centered: features.square().sum(1).mean() + 0 * centered,
    "isotropy": gramian.isotropy_penalty,
    "correlation": gramian.correlation_penalty,
    "vicreg": lambda features, centered: gramian.vicreg_penalty(features) + 0 * centered,
}


def network(activation: nn.Module | None = None, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    """A body of eight features and a linear head; the same weights at each call."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Sequential(nn.Linear(5, 8), activation or nn.Tanh()), nn.Linear(8, 3)).to(dtype)


def batch(n: int = 6, dtype: torch.dtype = torch.float64, seed: int = 1) -> Tensor:
    return torch.randn(n, 5, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def td_loss(values: Tensor) -> Tensor:
    return values.square().mean()


def gradients(net: nn.Module, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(net.parameters())))


def by_hand(kappa: float, penalty: str = "gram", centered: bool = True, x: Tensor | None = None) -> list[Tensor]:
    """The oracle: features by name, penalty added to the loss in plain sight."""
    net = network()
    features = net[0](batch() if x is None else x)
    return gradients(net, td_loss(net[1](features)) + kappa * PENALTIES[penalty](features, centered=centered))


def assert_equal(actual: list[Tensor], expected: list[Tensor], factor: float = 1.0) -> None:
    """Equal gradients, but for the rounding of the first ones' precision; ``expected`` times ``factor``."""
    for a, e in zip(actual, expected, strict=True):
        rtol = 1e-10 if a.dtype == torch.float64 else 1e-5
        torch.testing.assert_close(a.double(), factor * e, rtol=rtol, atol=0.1 * rtol * factor * max(1, e.abs().max()))


def assert_same_bits(actual: list[Tensor], expected: list[Tensor]) -> None:
    assert all(torch.equal(a, e) for a, e in zip(actual, expected, strict=True))


class Pictures(gymnasium.Env[np.ndarray, np.int64]):
    """Random 36×36 pictures, a reward for naming the brighter half, episodes of eight steps."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return self._picture(), {}

    def step(self, action):
        reward = float(action == (self.picture[:18].mean() > self.picture[18:].mean()))
        self.steps += 1
        return self._picture(), reward, self.steps == 8, False, {}

    def _picture(self) -> np.ndarray:
        self.picture = self.np_random.integers(0, 256, (36, 36, 1), dtype=np.uint8)
        return self.picture
