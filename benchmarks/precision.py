"""Rounding errors of the float32 penalties against float64.

The Gram form subtracts two numbers that are nearly equal when the features are nearly decorrelated, so its error is
stated against what is subtracted: in value against ‖C‖_F², in gradient against the norm of the gradient of ‖C‖_F².
Of the scale-free penalties C is that of the features divided by their scale.

    python -m benchmarks.precision [--device cuda] [--tf32] [--quick]
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.command_line import Parser, exit_code, table
from gramian import (
    correlation_penalty,
    covariance_penalty,
    cross_penalty,
    gram_penalty,
    isotropy_penalty,
    norm_penalty,
    unbiased_gram_penalty,
)

Penalty = Callable[..., Tensor]
PENALTIES: dict[str, Penalty] = {
    "covariance": covariance_penalty,
    "gram": gram_penalty,
    "unbiased": unbiased_gram_penalty,
    "norm": norm_penalty,
    "cross": cross_penalty,
    "isotropy": isotropy_penalty,
    "correlation": correlation_penalty,
}
SAMPLES = (4, 32, 256)
FEATURES = (2, 32, 512, 8192)
COVARIANCE_LARGEST = 2048
"""The explicit form is left out above this d, where it takes gigabytes."""


@dataclass(frozen=True)
class Errors:
    """Relative rounding errors of one penalty on one batch."""

    value: float
    gradient: float


def random_features(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Independent standard normal features."""
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def rectified(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Normal features after a ReLU: what a network's last hidden layer looks like."""
    return random_features(n, d, generator).relu()


def nearly_orthogonal(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Orthogonal, centred columns, as many as n samples allow, plus noise of relative size 1e-3."""
    rank = min(n - 1, d)
    start = torch.cat([torch.ones(n, 1, dtype=torch.float64), random_features(n, rank, generator)], dim=1)
    columns = torch.linalg.qr(start).Q[:, 1 : rank + 1] * n**0.5
    padded = torch.zeros(n, d, dtype=torch.float64)
    padded[:, :rank] = columns
    return padded + 1e-3 * random_features(n, d, generator)


def duplicated(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Every feature stands twice."""
    half = random_features(n, (d + 1) // 2, generator)
    return torch.cat([half, half], dim=1)[:, :d]


def badly_scaled(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Each feature has a scale of its own between 1e-4 and 1e4."""
    exponents = 8 * torch.rand(d, generator=generator, dtype=torch.float64) - 4
    return random_features(n, d, generator) * 10**exponents


def offset(n: int, d: int, generator: torch.Generator) -> Tensor:
    """A mean ten thousand times the standard deviation."""
    return random_features(n, d, generator) + 1e4


CASES = {
    "random": random_features,
    "rectified": rectified,
    "nearly orthogonal": nearly_orthogonal,
    "duplicated": duplicated,
    "badly scaled": badly_scaled,
    "offset": offset,
}
SCALES = (1e-4, 1.0, 1e4)


def rounding_errors(penalty: Penalty, features: Tensor, *, centered: bool) -> Errors:
    """Errors of ``penalty`` on float32 ``features`` against the same function in float64."""
    exact = features.double()
    x = exact - exact.mean(-2, keepdim=True) if centered else exact
    variance = x.square().mean(-2)
    scale = torch.ones_like(variance)
    if penalty is isotropy_penalty:
        scale *= variance.sum().sqrt()
    elif penalty is correlation_penalty:
        scale = (variance.shape[0] ** 0.5 * torch.maximum(variance, 1e-4 * variance.mean())).sqrt()
    z = x / scale
    gram = z @ z.mT
    value_unit = gram.square().sum() / len(x) ** 2
    gradient_unit = (4 / len(x) ** 2 * gram @ z / scale).norm()

    value, gradient = value_and_gradient(penalty, features, centered)
    true_value, true_gradient = value_and_gradient(penalty, exact, centered)
    return Errors(
        float((value.double() - true_value).abs() / value_unit),
        float((gradient.double() - true_gradient).norm() / gradient_unit),
    )


def value_and_gradient(penalty: Penalty, features: Tensor, centered: bool) -> tuple[Tensor, Tensor]:
    """A penalty and its gradient with respect to the features."""
    leaf = features.detach().requires_grad_()
    value = penalty(leaf, centered=centered)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


def batches(
    case: str, samples: tuple[int, ...], features: tuple[int, ...], device: str
) -> Iterator[tuple[Tensor, str]]:
    """Float32 batches of a case in every size and scale, each with a label."""
    generator = torch.Generator().manual_seed(0)
    for n in samples:
        for d in features:
            made = CASES[case](n, d, generator)
            for scale in (1.0,) if case in ("badly scaled", "offset") else SCALES:
                yield (made * scale).float().to(device), f"n={n} d={d} ×{scale:g}"


def measured(arguments: Sequence[str] | None) -> None:
    """Print the largest error of each penalty in each case."""
    parser = Parser("precision", __doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--tf32", action="store_true", help="allow TF32 products on CUDA")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args(arguments)
    if options.tf32:
        torch.set_float32_matmul_precision("high")
    samples, features = (SAMPLES[:2], FEATURES[:3]) if options.quick else (SAMPLES, FEATURES)

    print(f"torch {torch.__version__}, {options.device}, products in {torch.get_float32_matmul_precision()} precision")
    print(f"n in {samples}, d in {features}, scales {SCALES}; largest error over sizes, scales and centring\n")
    lines = []
    for case in CASES:
        worst = {name: (Errors(0.0, 0.0), "") for name in PENALTIES}
        for batch, label in batches(case, samples, features, options.device):
            for name, penalty in PENALTIES.items():
                if name == "covariance" and batch.shape[1] > COVARIANCE_LARGEST:
                    continue
                for centered in (True, False):
                    found = rounding_errors(penalty, batch, centered=centered)
                    so_far, where = worst[name]
                    if max(found.value, found.gradient) > max(so_far.value, so_far.gradient):
                        where = label + (" centred" if centered else " uncentred")
                    largest = Errors(max(found.value, so_far.value), max(found.gradient, so_far.gradient))
                    worst[name] = largest, where
        lines += [
            [case, name, f"{one.value:.1e}", f"{one.gradient:.1e}", where] for name, (one, where) in worst.items()
        ]
    print(table(["features", "penalty", "value, of ‖C‖²", "gradient, of ‖∇‖C‖²‖", "worst at"], lines, words=5), end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("precision", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
