"""Updates on a CPU: every run by itself, its gradient by hand.

An update of a small network is some forty short operations, and automatic differentiation costs as much again to note
and to walk them. The networks are chains of few layers, so the chain rule is written out here instead. With ∂· the
gradient of a run's loss J with respect to ·, for a batch of B samples in rows,

| layer | forward | backward |
| --- | --- | --- |
| TD loss | mean ℓ(δ), δ = Q(s, a) - y | ∂Q(s, a) = clip(δ, -1, 1)/B for Huber's ℓ, 2δ/B for the square |
| penalty | κ · penalty(φ) | ∂φ += κ · gradient, in closed form (`gramian.deep.slopes`) |
| ``dr3`` | κ · mean φ(s)·φ(s') | ∂φ(s) += κφ(s')/B, ∂φ(s') = κφ(s)/B |
| linear | y = xWᵀ + b | ∂W = ∂yᵀx, ∂b = Σ_rows ∂y, ∂x = ∂y W |
| rectifier | y = max(x, 0) | ∂x = ∂y where y > 0, else 0 |
| normalisation, convolution | torch's | torch's |

The gradients go straight to their places in the row of the run, from which the optimiser takes them. The numbers are
those of `gramian.deep.learner.update` but for rounding, and a run's are the same whoever is in its population.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from gramian.deep.batch import Batch
from gramian.deep.layout import Layout
from gramian.deep.losses import Losses, Objective
from gramian.deep.networks import Layer, Parameters, by_run, forward_run
from gramian.deep.optimiser import Adam
from gramian.deep.state import State


class RunUpdate:
    """Updates one run of a population on a CPU. The runs of a population may be updated at the same time.

    Parameters
    ----------
    run
        Its place in the population.
    objective, adam, layout, state
        Of the population, as for `gramian.deep.learner.update`. The tensors of the state stay where they are.

    Examples
    --------
    >>> from gramian.deep.arms import Arm
    >>> from gramian.deep.learner import Learner, LearnerConfig
    >>> from gramian.deep.networks import NetworkSpec
    >>> spec = NetworkSpec("mlp", (4,), actions=2, features_dim=16)
    >>> learner = Learner(spec, LearnerConfig(), seeds=[0, 1], arms=[Arm("dqn"), Arm("gram", 0.1)])
    >>> second = RunUpdate(1, learner.objective, learner.adam, learner.layout, learner.state)
    >>> states = torch.randn(2, 32, 4)
    >>> batch = Batch(states, torch.zeros(2, 32, dtype=torch.int64), torch.ones(2, 32), torch.zeros(2, 32), states)
    >>> second.update(batch, number=1).total.shape
    torch.Size([1])
    """

    def __init__(self, run: int, objective: Objective, adam: Adam, layout: Layout, state: State) -> None:
        self._run, self._adam = run, adam
        # a population of this run alone
        self._objective = replace(
            objective,
            arms=objective.arms.alone(run),
            legal=None if objective.legal is None else objective.legal[run : run + 1],
        )
        self._mark = state.diverged_at[run]
        online, target = state.online[run], state.target[run]
        gradient = torch.zeros_like(online)
        self._rows = online, gradient, state.mean[run], state.square[run]
        self._online, self._target, self._gradient = (
            by_run(layout.views(row.unsqueeze(0)))[0] for row in (online, target, gradient)
        )
        self._group = next(iter(self._objective.arms.groups), None)
        self._kappa = self._objective.arms.kappas.item()

    @torch.inference_mode()
    def look_ahead(self, batch: Batch) -> Tensor:
        """Q⁻(s', ·) in the run's own part of ``batch``, ``[1, B, A]``: all that needs the target network."""
        return forward_run(self._objective.spec, self._target, batch.next_observations[self._run]).values.unsqueeze(0)

    @torch.inference_mode()
    def update(self, batch: Batch, number: int, ahead: Callable[[], Tensor] | None = None) -> Losses:
        """One update on the run's own part of ``batch``, the ``number``-th; gives its losses, each ``[1]``.

        What is not finite is dealt with as in `gramian.deep.learner.update`.

        Parameters
        ----------
        batch
            Of the whole population.
        number
            Of the update, 1 at the first.
        ahead
            Gives what `look_ahead` found, where somebody else does that meanwhile.
        """
        own = Batch(*(tensor[self._run : self._run + 1] for tensor in batch))
        losses = self._differentiate(own, partial(self.look_ahead, batch) if ahead is None else ahead)
        online, gradient, _, _ = self._rows
        if self._mark >= 0:
            return losses
        norm = torch.linalg.vector_norm(gradient).item()
        finite = math.isfinite(norm) and math.isfinite(losses.components["td"])
        if finite:
            self._adam.step_run(*self._rows, run=self._run, number=number, norm=norm)
            finite = math.isfinite(online.sum())
        if not finite:
            self._mark.fill_(number)
        return losses

    def _differentiate(self, batch: Batch, ahead: Callable[[], Tensor]) -> Losses:
        """Write the gradient to its place; gives the losses."""
        objective, spec, (states, actions, _, _, next_states) = self._objective, self._objective.spec, batch
        size = actions.shape[1]
        looks_ahead = self._group is not None and self._group.slope is None
        record: list[Layer] = []
        # Where the loss has φ(s') in it, the next states go through the network after the others.
        seen = torch.cat([states[0], next_states[0]]) if looks_ahead else states[0]
        values, features = forward_run(spec, self._online, seen, record)
        choosers = None
        if objective.double_q:
            choosers = values[size:] if looks_ahead else forward_run(spec, self._online, next_states[0]).values
            choosers = choosers.unsqueeze(0)
        nexts = ahead()
        targets = objective.bootstrap(nexts, choosers, batch)
        chosen = actions.unsqueeze(2)
        td, slopes = objective.td(values[:size].unsqueeze(0).gather(2, chosen).squeeze(2), targets)
        value_slopes = torch.zeros_like(nexts).scatter_(2, chosen, slopes.unsqueeze(2))
        penalties, feature_slopes = self._penalise(features, size)
        backward(self._online, record, features, value_slopes[0], feature_slopes, self._gradient)
        return objective.losses(td, penalties)

    def _penalise(self, features: Tensor, size: int) -> tuple[Tensor, Tensor | None]:
        """The penalty ``[1]``, and its part of ∂φ, κ and all."""
        if self._group is None:
            return features.new_zeros(1), None
        if self._group.slope is not None:
            penalties, slopes = self._group.slope(features.unsqueeze(0))
            return penalties, slopes[0].mul_(self._kappa)
        both = features.view(2, size, -1)
        return both.prod(0).sum(-1).mean(-1, keepdim=True), (both.flip(0) * (self._kappa / size)).flatten(0, 1)


def backward(
    own: Parameters,
    record: list[Layer],
    features: Tensor,
    value_slopes: Tensor,
    feature_slopes: Tensor | None,
    out: Parameters,
) -> None:
    """The chain rule from Q-values and features down to the parameters of one run; see this module's table.

    Parameters
    ----------
    own
        The run's parameters.
    record
        Its hidden layers, as `forward_run` noted them.
    features
        φ, ``[B', d]`` with B' ≥ B.
    value_slopes
        ∂Q, ``[B, A]``: of the first B samples; the others have none.
    feature_slopes
        What ∂φ has beside the part through Q, ``[B', d]``.
    out
        The gradients, by the names of the parameters.

    Examples
    --------
    >>> from gramian.deep.networks import NetworkSpec, init
    >>> spec, record = NetworkSpec("mlp", (4,), actions=2, features_dim=16), []
    >>> (own,), (out,) = (by_run(init(spec, seeds=[seed])) for seed in (0, 1))
    >>> output = forward_run(spec, own, torch.ones(3, 4), record)
    >>> backward(own, record, output.features, torch.ones(3, 2), None, out)
    >>> out["head.bias"]
    tensor([3., 3.])
    """
    size = len(value_slopes)
    slope = torch.mm(value_slopes, own["head.weight"])
    if feature_slopes is not None:
        feature_slopes[:size] += slope
        slope = feature_slopes
    _linear(features[:size], value_slopes, out["head.weight"], out["head.bias"])
    for number, layer in reversed(list(enumerate(record))):
        # the rectifier; a convolution's output was flattened for the layer above it
        slope = torch.ops.aten.threshold_backward(slope.view(layer.outputs.shape), layer.outputs, 0)
        weight = own[f"{layer.name}.weight"]
        if layer.stride and layer.inputs.dim() == 2:  # patches, which nobody needs the gradient of
            columns = slope.transpose(0, 1).reshape(len(weight), -1)
            torch.mm(columns, layer.inputs.mT, out=out[f"{layer.name}.weight"].view(len(weight), -1))
            torch.sum(columns, 1, out=out[f"{layer.name}.bias"])
            continue
        if layer.stride:
            slope, weight_slope, bias_slope = torch.ops.aten.convolution_backward(
                *(tensor.contiguous(memory_format=torch.channels_last) for tensor in (slope, layer.inputs, weight)),
                [len(weight)],
                [layer.stride] * 2,
                [0, 0],
                [1, 1],
                False,
                [0, 0],
                1,
                [number > 0, True, True],
            )
            out[f"{layer.name}.weight"].copy_(weight_slope)
            out[f"{layer.name}.bias"].copy_(bias_slope)
            continue
        if layer.normalised is not None:
            raw, mean, inverse = layer.normalised
            gain, shift = own[f"{layer.name}.norm.weight"], own[f"{layer.name}.norm.bias"]
            slope, gain_slope, shift_slope = torch.ops.aten.native_layer_norm_backward(
                slope, raw, gain.shape, mean, inverse, gain, shift, [True, True, True]
            )
            out[f"{layer.name}.norm.weight"].copy_(gain_slope)
            out[f"{layer.name}.norm.bias"].copy_(shift_slope)
        _linear(layer.inputs, slope, out[f"{layer.name}.weight"], out[f"{layer.name}.bias"])
        if number:
            slope = torch.mm(slope, weight)


def _linear(inputs: Tensor, slope: Tensor, weight: Tensor, bias: Tensor) -> None:
    torch.mm(slope.mT, inputs, out=weight)
    torch.sum(slope, 0, out=bias)
