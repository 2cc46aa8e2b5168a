"""The penalties at work on a network small enough to train in seconds."""

import math
import statistics
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gramian.errors import UserError
from gramian.penalties import gram_penalty, gram_terms
from gramian.progress import Progress

PENALTIES = {
    "none": lambda _: torch.zeros(()),
    "gram": gram_penalty,
    "norm": lambda features: gram_terms(features).norm,
}
KAPPA = 1.0
INPUTS, WIDTH, BATCH = 8, 64, 32


@dataclass(frozen=True)
class Options:
    """What to train."""

    steps: int = 2_000
    """Gradient steps of each network."""
    seeds: int = 3
    """Networks of each kind; the table shows mean ± standard error."""


def demo(options: Options) -> int:
    """Fit a small function with no penalty, with the Gram penalty, and with the control that only shrinks."""
    for name, value in vars(options).items():
        if value < 1:
            raise UserError(f"--{name} must be at least 1, not {value}")
    torch.set_num_threads(1)  # the products are too small to share
    rows = {}
    with Progress(len(PENALTIES) * options.seeds, "training", unit="network") as progress:
        for penalty in PENALTIES:
            runs = []
            for seed in range(options.seeds):
                runs.append(_train(penalty, seed, options.steps))
                progress.advance(note=f"penalty {penalty}")
            rows[penalty] = runs

    columns = list(rows["none"][0])
    print(f"A ReLU network with {WIDTH} features fits a function of {INPUTS} inputs; {options.steps} steps,")
    print(f"batches of {BATCH}, κ = {KAPPA}, {options.seeds} seeds, measured on 4,096 unseen inputs.\n")
    print(f"{'penalty':<9}" + "".join(f"{name:>18}" for name in columns))
    for penalty, runs in rows.items():
        print(f"{penalty:<9}" + "".join(f"{_mean_and_error([run[name] for run in runs]):>18}" for name in columns))
    print("\n'gram' penalises the covariance of features; 'norm', the control, their size alone.")
    print("Compare mean |corr|, which does not depend on that size, and mind the standard errors.")
    return 0


def _train(penalty: str, seed: int, steps: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    body, head = (
        nn.Sequential(nn.Linear(INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()),
        nn.Linear(WIDTH, 1),
    )
    optimiser = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
    for _ in range(steps):
        inputs = torch.randn(BATCH, INPUTS, generator=generator)
        features = body(inputs)
        loss = nn.functional.mse_loss(head(features).squeeze(-1), _target(inputs)) + KAPPA * PENALTIES[penalty](
            features
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        inputs = torch.randn(4096, INPUTS, generator=generator)
        features = body(inputs)
        return {
            "error": float(nn.functional.mse_loss(head(features).squeeze(-1), _target(inputs))),
            "Σ C_ij²": float(gram_penalty(features)),
            "mean |corr|": _mean_absolute_correlation(features),
            "mean ‖φ‖": float(features.norm(dim=1).mean()),
        }


def _target(inputs: Tensor) -> Tensor:
    return torch.sin(2 * inputs[:, 0]) + inputs[:, 1] * inputs[:, 2]


def _mean_absolute_correlation(features: Tensor) -> float:
    alive = features[:, features.std(0) > 0]
    correlation = torch.corrcoef(alive.T)
    return float((correlation.abs().sum() - len(correlation)) / (correlation.numel() - len(correlation)))


def _mean_and_error(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values) / math.sqrt(len(values)):.3f}"
