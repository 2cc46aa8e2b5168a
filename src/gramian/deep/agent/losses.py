"""The loss of DQN and of its penalised arms, for a population.

J_p = mean_n w_n ℓ(Q(s_n, a_n) - y_n) + κ_p · penalty_p(φ(s_1) … φ(s_B)), with ℓ Huber's loss or the square, w_n the
importance weight of a sample, 1 in uniform replay, and the target

    y = r + γᵐ · max_a Q⁻(s', a),   or with double Q   y = r + γᵐ · Q⁻(s', argmax_a Q(s', a))

where Q⁻ is the target network and γᵐ = 0 where s' is terminal. Sources: Mnih et al. 2015; van Hasselt, Guez & Silver
2016; Mavrin, Graves & Chan 2019, Algorithm 2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from gramian.deep.agent.arms import Arms, Group
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.layout import Layout
from gramian.deep.agent.networks import NetworkSpec, Parameters, body, forward

TDLoss = Literal["huber", "squared"]


class Losses(NamedTuple):
    """The loss of each run and what it is made of."""

    total: Tensor
    """J, ``[P]``: the sum of the components."""
    components: dict[str, Tensor]
    """``td``, the mean TD loss, and ``penalty``, κ times the penalty; each ``[P]``."""
    samples: Tensor
    """ℓ_n, the TD loss of each sample without importance weight and without graph, ``[P, B]``."""


class Evaluation(NamedTuple):
    """A batch seen by the online network."""

    losses: Losses
    values: Tensor
    """Q(s_n, a_n), ``[P, B]``."""
    features: Tensor
    """φ(s_n), raw, ``[P, B, d]``."""
    penalties: Tensor
    """The penalties without κ, ``[P]``; 0 where κ = 0."""


@dataclass(frozen=True)
class Objective:
    """The loss that a population minimises.

    Attributes
    ----------
    spec, arms
        The network and the arms of the runs.
    legal
        bool ``[P, 1, A]``, which actions each run has; None where all runs have all of them.
    td_loss
        ``huber``, ½δ² up to |δ| = 1 and |δ| - ½ beyond, or ``squared``, δ².
    double_q
        The online network chooses the action that the target network values.

    Examples
    --------
    >>> from gramian.deep.agent.arms import Arm
    >>> from gramian.deep.agent.networks import init
    >>> spec = NetworkSpec("mlp", (4,), actions=2, features_dim=16)
    >>> objective = Objective(spec, Arms([Arm("gram", 0.1)]), legal=None, td_loss="huber", double_q=False)
    >>> states, rewards, terminal = torch.zeros(1, 8, 4), torch.full((1, 8), 2.0), torch.zeros(1, 8)
    >>> batch = Batch(states, torch.zeros(1, 8, dtype=torch.int64), rewards, terminal, states)
    >>> parameters = init(spec, seeds=[0])
    >>> targets = objective.targets(parameters, parameters, batch)
    >>> bool((targets == rewards).all())
    True
    >>> objective.evaluate(parameters, targets, batch).features.shape
    torch.Size([1, 8, 16])
    """

    spec: NetworkSpec
    arms: Arms
    legal: Tensor | None
    td_loss: TDLoss
    double_q: bool

    def masked(self, values: Tensor, runs: slice = slice(None)) -> Tensor:
        """Q-values ``[P, B, A]`` of ``runs`` with -∞ for the actions that a run does not have."""
        return values if self.legal is None else values.masked_fill(~self.legal[runs], -torch.inf)

    def select(self, runs: slice) -> "Objective":
        """The loss of some runs of the population."""
        legal = None if self.legal is None else self.legal[runs]
        return replace(self, arms=self.arms.select(runs), legal=legal)

    @torch.no_grad()
    def targets(self, online: Parameters, target: Parameters, batch: Batch) -> Tensor:
        """The targets y, ``[P, B]``."""
        values = forward(self.spec, target, batch.next_observations).values
        if self.double_q:
            choosers = self.masked(forward(self.spec, online, batch.next_observations).values)
            best = values.gather(2, choosers.argmax(2, keepdim=True)).squeeze(2)
        else:
            best = self.masked(values).amax(2)
        return batch.rewards.to(values.dtype) + batch.discounts.to(values.dtype) * best

    def evaluate(self, online: Parameters, targets: Tensor, batch: Batch) -> Evaluation:
        """The losses, differentiable with respect to ``online``, and what they were computed from."""
        samples, values, features = self._forward(online, targets, batch)
        penalties = self.arms.penalties(features, self._next_features(online, batch))
        return Evaluation(self._losses(batch, samples, penalties), values, features, penalties)

    def gradients(self, layout: Layout, online: Tensor, targets: Tensor, batch: Batch) -> tuple[Tensor, Losses]:
        """The gradient of each run's own loss, ``[P, N]``, and the losses, without graph.

        The losses are summed over the runs: a run's parameters are in no other run's loss, so the gradient of the sum
        is each run's own. Penalties are differentiated by their closed forms, `Arms.stand_ins`.
        """

        def total(parameters: Parameters) -> tuple[Tensor, Losses]:
            samples, _, features = self._forward(parameters, targets, batch)
            penalties, sums = self.arms.stand_ins(features, self._next_features(parameters, batch))
            td = _mean(samples, batch.weights)
            return (td + self.arms.kappas * sums).sum(), self._losses(batch, samples.detach(), penalties)

        if torch.compiler.is_compiling():  # which cannot trace the faster eager form below
            gradients, losses = torch.func.grad(total, has_aux=True)(layout.views(online))
            return layout.flatten(gradients), losses
        with torch.enable_grad():
            leaves = {name: view.detach().requires_grad_() for name, view in layout.views(online).items()}
            loss, losses = total(leaves)
            found = torch.autograd.grad(loss, list(leaves.values()))
        return layout.flatten(dict(zip(leaves, found, strict=True))), losses

    def _forward(self, online: Parameters, targets: Tensor, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The TD losses ℓ_n ``[P, B]``, Q(s_n, a_n) ``[P, B]`` and φ(s_n) ``[P, B, d]``."""
        output = forward(self.spec, online, batch.observations)
        values = output.values.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        loss = functional.huber_loss if self.td_loss == "huber" else functional.mse_loss
        return loss(values, targets, reduction="none"), values, output.features

    def _next_features(self, online: Parameters, batch: Batch) -> Callable[[Group], Tensor]:
        def next_features(group: Group) -> Tensor:
            own = {name: group.select(parameter) for name, parameter in online.items()}
            return body(self.spec, own, group.select(batch.next_observations))

        return next_features

    def _losses(self, batch: Batch, samples: Tensor, penalties: Tensor) -> Losses:
        """The losses from the TD losses of the samples ``[P, B]`` and the penalties without κ ``[P]``."""
        td, penalty = _mean(samples, batch.weights), self.arms.kappas * penalties
        return Losses(td + penalty, {"td": td, "penalty": penalty}, samples.detach())


def _mean(samples: Tensor, weights: Tensor | None) -> Tensor:
    """mean_n w_n ℓ_n, ``[P]``."""
    return samples.mean(1) if weights is None else (weights * samples).mean(1)
