"""Small populations and batches for the tests of the learner."""

import torch

from gramian.core.arms import Arm, combined
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner
from gramian.deep.agent.networks import NetworkSpec

SPECS = {
    "mlp": NetworkSpec("mlp", (5,), actions=3, features_dim=8),
    "minatar": NetworkSpec("minatar", (2, 10, 10), actions=3, features_dim=8),
    "nature": NetworkSpec("nature", (2, 36, 36), actions=3, features_dim=8),
    "dopamine": NetworkSpec("dopamine", (2, 36, 36), actions=3, features_dim=8),
}
CENTRABLE = ("decor", "gram", "gram-unbiased", "norm", "cross")
EVERY_ARM = [
    Arm("dqn"),
    *(Arm(kind, 0.1 * (i + 1), centered) for i, kind in enumerate(CENTRABLE) for centered in (True, False)),
    Arm("l2", 0.3),
    Arm("dr3", 0.2),
    Arm("isotropy", 0.4),
    Arm("correlation", 0.01),
    Arm("vicreg", 0.01),
    combined([Arm("gram", 0.2), Arm("norm", 0.1, centered=False), Arm("l2", 0.0)]),
]
"""All of which `naive_penalty` knows the definition."""


def run_batch(spec, seed, number=0, size=6, actions=None, scale=1.0):
    """A batch of one run that is a function of its seed and of the number of the update; [B, ...]."""
    generator = torch.Generator().manual_seed(1_000_003 * seed + number)

    def observations():
        shape = (size, *spec.observation_shape)
        if spec.kind == "mlp":
            return torch.randn(shape, generator=generator)
        return torch.randint(0, 256 if spec.sees_pictures else 2, shape, generator=generator, dtype=torch.uint8)

    terminal = torch.rand(size, generator=generator) < 0.3
    return Batch(
        observations=observations(),
        actions=torch.randint(0, actions or spec.actions, (size,), generator=generator),
        rewards=torch.randn(size, generator=generator) * scale,
        discounts=torch.where(terminal, 0.0, 0.99),
        next_observations=observations(),
    )


def batch_of(spec, seeds, number=0, size=6, actions=None, scale=1.0, device="cpu"):
    """The batches of several runs; [P, B, ...]."""
    counts = actions or [spec.actions] * len(seeds)
    runs = [run_batch(spec, seed, number, size, count, scale) for seed, count in zip(seeds, counts, strict=True)]
    return Batch(*(torch.stack(field).to(device) for field in zip(*(run.tensors for run in runs), strict=True)))


def alone_and_among_others(spec, config, arms, updates, size):
    """Parameters of each arm's run after some updates: trained by itself, and in a population with the others."""
    seeds = list(range(len(arms)))
    together = Learner(spec, config, seeds, arms)
    alone = [Learner(spec, config, [seed], [arm]) for seed, arm in zip(seeds, arms, strict=True)]
    for number in range(updates):
        together.update(batch_of(spec, seeds, number, size))
        for seed, one in enumerate(alone):
            one.update(batch_of(spec, [seed], number, size))
    return [(one.state.online[0], row) for one, row in zip(alone, together.state.online, strict=True)]
