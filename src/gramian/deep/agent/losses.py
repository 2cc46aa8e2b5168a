"""The loss that a population minimises: a TD loss and the penalties of its arms.

J_p = mean_n w_n ℓ_n + κ_p · penalty_p(φ(s_1) … φ(s_B)), where ℓ_n compares the outputs of the online network at
(s_n, a_n) with the target r + γᵐ Z⁻(s', a*), and w_n is the importance weight of a sample, 1 in uniform replay. Z⁻ are
the outputs of the target network, γᵐ = 0 where s' is terminal, and

    a* = argmax_a Q⁻(s', a),   or with double Q   a* = argmax_a Q(s', a).

For DQN Z⁻ is Q⁻ and ℓ is Huber's loss or the square; other heads are in `gramian.deep.agent.heads`. Sources: Mnih et
al. 2015; van Hasselt, Guez & Silver 2016; Mavrin, Graves & Chan 2019, Algorithm 2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from gramian.deep.agent import heads
from gramian.deep.agent.arms import Arms, Group
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.model import Model, Pass
from gramian.deep.agent.networks import Parameters, body, forward, head
from gramian.deep.agent.state import Layout
from gramian.deep.choices import TDLoss

Counter = int | Tensor
"""Updates done so far: what the random numbers of an update are a function of; an int, or int64 ``[P, 1]``."""


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


class _Seen(NamedTuple):
    samples: Tensor
    values: Tensor
    features: Tensor
    next_features: Callable[[Group], Tensor]


@dataclass(frozen=True)
class Objective:
    """The loss that a population minimises.

    Attributes
    ----------
    model, arms
        The networks and the arms of the runs.
    td_loss
        Of a scalar head: ``huber``, ½δ² up to |δ| = 1 and |δ| - ½ beyond, or ``squared``, δ².
    double_q
        The online network chooses the action that the target network values.
    """

    model: Model
    arms: Arms
    td_loss: TDLoss
    double_q: bool

    def select(self, runs: slice) -> "Objective":
        """The loss of some runs of the population."""
        return replace(self, model=self.model.select(runs), arms=self.arms.select(runs))

    @torch.no_grad()
    def targets(self, online: Parameters, target: Parameters, batch: Batch, counter: Counter = 0) -> Tensor:
        """The targets, ``[P, B]`` or ``[P, B, Z]``; see `gramian.deep.agent.heads.targets`."""
        model, states = self.model, batch.next_observations
        noisy = model.noisy(target, Pass.TARGET, counter)
        taus = model.taus(Pass.TARGET, counter, next(iter(target.values())).dtype)
        following = forward(model.spec, noisy, states, taus, model.legal)
        choosers = following.values
        if self.double_q:
            choosers = model.forward(online, states, Pass.CHOOSE, counter).values
        elif taus is not None:  # the choice has τ of its own
            others = model.taus(Pass.CHOOSE, counter, taus.dtype)
            choosers = head(model.spec, noisy, following.features, others, model.legal).values
        best = _of_actions(following.outputs, model.masked(choosers).argmax(2))
        rewards, discounts = (field.to(best.dtype) for field in (batch.rewards, batch.discounts))
        return heads.targets(model.spec.head, rewards, discounts, best)

    def evaluate(self, online: Parameters, targets: Tensor, batch: Batch, counter: Counter = 0) -> Evaluation:
        """The losses, differentiable with respect to ``online``, and what they were computed from."""
        seen = self._forward(online, targets, batch, counter)
        penalties = self.arms.penalties(seen.features, seen.next_features, counter)
        return Evaluation(self._losses(batch, seen.samples, penalties), seen.values, seen.features, penalties)

    def gradients(
        self, layout: Layout, online: Tensor, targets: Tensor, batch: Batch, counter: Counter = 0
    ) -> tuple[Tensor, Losses]:
        """The gradient of each run's own loss, ``[P, N]``, and the losses, without graph.

        The losses are summed over the runs: a run's parameters are in no other run's loss, so the gradient of the sum
        is each run's own. Penalties are differentiated by their closed forms, `Arms.surrogates`.
        """

        def total(parameters: Parameters) -> tuple[Tensor, Losses]:
            seen = self._forward(parameters, targets, batch, counter)
            penalties, surrogates = self.arms.surrogates(seen.features, seen.next_features, counter)
            loss = _mean(seen.samples, batch.weights) + self.arms.kappas * surrogates
            return loss.sum(), self._losses(batch, seen.samples.detach(), penalties)

        if torch.compiler.is_compiling():  # which cannot trace the faster eager form below
            gradients, losses = torch.func.grad(total, has_aux=True)(layout.views(online))
            return layout.flatten(gradients), losses
        with torch.enable_grad():
            leaves = {name: view.detach().requires_grad_() for name, view in layout.views(online).items()}
            loss, losses = total(leaves)
            found = torch.autograd.grad(loss, list(leaves.values()))
        return layout.flatten(dict(zip(leaves, found, strict=True))), losses

    def _forward(self, online: Parameters, targets: Tensor, batch: Batch, counter: Counter) -> _Seen:
        """The TD losses ℓ_n ``[P, B]``, Q(s_n, a_n) ``[P, B]``, φ(s_n) ``[P, B, d]``, and φ(s'_n) for groups."""
        model = self.model
        noisy = model.noisy(online, Pass.LEARN, counter)
        taus = model.taus(Pass.LEARN, counter, targets.dtype)
        seen = forward(model.spec, noisy, batch.observations, taus, model.legal)
        outputs = _of_actions(seen.outputs, batch.actions)
        samples = heads.td_losses(model.spec.head, self.td_loss, outputs, seen.taus, targets)

        def next_features(group: Group) -> Tensor:
            own = {name: group.select(parameter) for name, parameter in noisy.items()}
            return body(model.spec, own, group.select(batch.next_observations))

        return _Seen(samples, heads.values(model.spec.head, outputs), seen.features, next_features)

    def _losses(self, batch: Batch, samples: Tensor, penalties: Tensor) -> Losses:
        """The losses from the TD losses of the samples ``[P, B]`` and the penalties without κ ``[P]``."""
        td, penalty = _mean(samples, batch.weights), self.arms.kappas * penalties
        return Losses(td + penalty, {"td": td, "penalty": penalty}, samples.detach())


def _of_actions(outputs: Tensor, actions: Tensor) -> Tensor:
    """The outputs ``[P, B, A, ...]`` of actions ``[P, B]``: ``[P, B, ...]``."""
    index = actions.unsqueeze(2)
    if outputs.dim() > 3:
        index = index.unsqueeze(3).expand(-1, -1, -1, outputs.shape[3])
    return outputs.gather(2, index).squeeze(2)


def _mean(samples: Tensor, weights: Tensor | None) -> Tensor:
    """mean_n w_n ℓ_n, ``[P]``."""
    return samples.mean(1) if weights is None else (weights * samples).mean(1)
