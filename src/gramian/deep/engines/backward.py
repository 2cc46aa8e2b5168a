"""Updates on a CPU: every run by itself, its gradient by hand.

An update of a small network is some forty short operations, and automatic differentiation costs as much again to note
and to walk them. The networks are chains of few layers, so the chain rule is written out here instead. With ∂· the
gradient of a run's loss J with respect to ·, for a batch of B samples in rows,

| layer | forward | backward |
| --- | --- | --- |
| TD loss | mean ℓ(δ), δ = Q(s, a) - y | ∂Q(s, a) = clip(δ, -1, 1)/B for Huber's ℓ, 2δ/B for the square |
| penalty | κ · penalty(φ) | ∂φ += κ · gradient, in closed form (`gramian.deep.agent.slopes`) |
| ``dr3`` | κ · mean φ(s)·φ(s') | ∂φ(s) += κφ(s')/B, ∂φ(s') = κφ(s)/B |
| linear | y = xWᵀ + b | ∂W = ∂yᵀx, ∂b = Σ_rows ∂y, ∂x = ∂y W |
| rectifier | y = max(x, 0) | ∂x = ∂y where y > 0, else 0 |
| normalisation, convolution | torch's | torch's |

The gradients go straight to their places in the row of the run, from which the optimiser takes them. The numbers are
those of `gramian.deep.agent.learner.update` but for rounding, and a run's are the same whoever is in its population.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from gramian.deep.agent.batch import Batch
from gramian.deep.agent.layout import Layout
from gramian.deep.agent.losses import Losses, Objective
from gramian.deep.agent.networks import Layer, Parameters, QOutput, by_run, forward_run
from gramian.deep.agent.optimiser import Adam
from gramian.deep.agent.state import State


class RunUpdate:
    """Updates one run of a population on a CPU. The runs of a population may be updated at the same time.

    Parameters
    ----------
    run
        Its place in the population.
    objective, adam, layout, state
        Of the population, as for `gramian.deep.agent.learner.update`. The tensors of the state stay where they are.

    Examples
    --------
    >>> from gramian.deep.agent.arms import Arm
    >>> from gramian.deep.agent.learner import Learner, LearnerConfig
    >>> from gramian.deep.agent.networks import NetworkSpec
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
    def update(self, batch: Batch, number: int) -> Losses:
        """One update on the run's own part of ``batch``, the ``number``-th; gives its losses, each ``[1]``.

        What is not finite is dealt with as in `gramian.deep.agent.learner.update`.

        Parameters
        ----------
        batch
            Of the whole population.
        number
            Of the update, 1 at the first.
        """
        losses = self._differentiate(self._own(batch))
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

    def _own(self, batch: Batch) -> Batch:
        """The run's part of the population's batch, ``[1, B, ...]``."""
        return Batch(*(tensor[self._run : self._run + 1] for tensor in batch))

    @property
    def _looks_ahead(self) -> bool:
        """Whether the loss has φ(s') in it."""
        return self._group is not None and self._group.slope is None

    def _differentiate(self, batch: Batch) -> Losses:
        """Write the gradient to its place; gives the losses."""
        objective, spec, (states, actions, _, _, next_states) = self._objective, self._objective.spec, batch
        size = actions.shape[1]
        record: list[Layer] = []
        # Where the loss has φ(s') in it, the next states go through the network after the others.
        seen = torch.cat([states[0], next_states[0]]) if self._looks_ahead else states[0]
        output = forward_run(spec, self._online, seen, record)
        choosers = None
        if objective.double_q:
            choosers = (
                output.values[size:] if self._looks_ahead else forward_run(spec, self._online, next_states[0]).values
            )
        nexts = forward_run(spec, self._target, next_states[0]).values
        losses, value_slopes, feature_slopes = self._judge(output, nexts, choosers, batch)
        backward(self._online, record, output.features, value_slopes, feature_slopes, self._gradient)
        return losses

    def _judge(
        self, output: QOutput, nexts: Tensor, choosers: Tensor | None, batch: Batch
    ) -> tuple[Losses, Tensor, Tensor | None]:
        """The losses, ∂Q ``[B, A]``, and what ∂φ has beside the part through Q.

        Parameters
        ----------
        output
            Of the online network in the states, and after them in the next ones where the loss has φ(s') in it.
        nexts, choosers
            Q⁻(s', ·), and Q(s', ·) where double Q chooses by it; each ``[B, A]``.
        batch
            The run's own.
        """
        objective, size, chosen = self._objective, len(nexts), batch.actions.unsqueeze(2)
        targets = objective.bootstrap(nexts.unsqueeze(0), None if choosers is None else choosers.unsqueeze(0), batch)
        td, slopes = objective.td(output.values[:size].unsqueeze(0).gather(2, chosen).squeeze(2), targets)
        value_slopes = torch.zeros_like(nexts).scatter_(1, chosen[0], slopes[0].unsqueeze(1))
        penalties, feature_slopes = self._penalise(output.features, size)
        return objective.losses(td, penalties), value_slopes, feature_slopes

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
    >>> from gramian.deep.agent.networks import NetworkSpec, init
    >>> spec, record = NetworkSpec("mlp", (4,), actions=2, features_dim=16), []
    >>> (own,), (out,) = (by_run(init(spec, seeds=[seed])) for seed in (0, 1))
    >>> output = forward_run(spec, own, torch.ones(3, 4), record)
    >>> backward(own, record, output.features, torch.ones(3, 2), None, out)
    >>> out["head.bias"]
    tensor([3., 3.])
    """
    slope = through_head(own, features, value_slopes, feature_slopes, out)
    for number, layer in reversed(list(enumerate(record))):
        if layer.stride:
            slope = through_convolution(own, layer, slope, out, wanted=number > 0)
            continue
        slope = through_rectifier(own, layer, slope, out)
        torch.mm(slope.mT, layer.inputs, out=out[f"{layer.name}.weight"])
        if number:
            slope = torch.mm(slope, own[f"{layer.name}.weight"])


def through_head(
    own: Parameters, features: Tensor, value_slopes: Tensor, feature_slopes: Tensor | None, out: Parameters
) -> Tensor:
    """∂φ ``[B', d]``; the arguments, and what is written, as for `backward`."""
    size = len(value_slopes)
    slope = torch.mm(value_slopes, own["head.weight"])
    if feature_slopes is not None:
        feature_slopes[:size] += slope
        slope = feature_slopes
    torch.mm(value_slopes.mT, features[:size], out=out["head.weight"])
    torch.sum(value_slopes, 0, out=out["head.bias"])
    return slope


def through_rectifier(own: Parameters, layer: Layer, slope: Tensor, out: Parameters) -> Tensor:
    """From a hidden layer's outputs to xWᵀ + b, ``[B', d]``; the gradients of b, gain and shift are written."""
    slope = torch.ops.aten.threshold_backward(slope, layer.outputs, 0)
    if layer.normalised is not None:
        raw, mean, inverse = layer.normalised
        gain, shift = own[f"{layer.name}.norm.weight"], own[f"{layer.name}.norm.bias"]
        slope, gain_slope, shift_slope = torch.ops.aten.native_layer_norm_backward(
            slope, raw, gain.shape, mean, inverse, gain, shift, [True, True, True]
        )
        out[f"{layer.name}.norm.weight"].copy_(gain_slope)
        out[f"{layer.name}.norm.bias"].copy_(shift_slope)
    torch.sum(slope, 0, out=out[f"{layer.name}.bias"])
    return slope


def through_convolution(own: Parameters, layer: Layer, slope: Tensor, out: Parameters, *, wanted: bool) -> Tensor:
    """From a convolution's outputs to its inputs, where that is wanted; its gradients are written."""
    slope = through_rectified_images(layer, slope)
    differentiate_filters(own, layer, slope, out)
    return through_filters(own, layer, slope) if wanted else slope


def through_rectified_images(layer: Layer, slope: Tensor) -> Tensor:
    """From a convolution's outputs to what it rectifies, ``[B', C, H, W]``."""
    slope = slope.view(layer.outputs.shape)  # which was flattened for the hidden layer above
    if layer.inputs.dim() == 4:  # first, since torch is slow where two layouts meet
        slope = slope.contiguous(memory_format=torch.channels_last)
    before: Tensor = torch.ops.aten.threshold_backward(slope, layer.outputs, 0)
    return before


def differentiate_filters(own: Parameters, layer: Layer, slope: Tensor, out: Parameters) -> None:
    """The gradients of a convolution's weights and biases, from that of what it rectifies."""
    weight = own[f"{layer.name}.weight"]
    if layer.inputs.dim() == 2:  # patches
        columns = slope.transpose(0, 1).reshape(len(weight), -1)
        torch.mm(columns, layer.inputs.mT, out=out[f"{layer.name}.weight"].view(len(weight), -1))
        torch.sum(columns, 1, out=out[f"{layer.name}.bias"])
        return
    _, weight_slope, bias_slope = _convolution_backward(weight, layer, slope, [False, True, True])
    out[f"{layer.name}.weight"].copy_(weight_slope)
    out[f"{layer.name}.bias"].copy_(bias_slope)


def through_filters(own: Parameters, layer: Layer, slope: Tensor) -> Tensor:
    """From what a convolution rectifies to its inputs, which are no patches."""
    slope, _, _ = _convolution_backward(own[f"{layer.name}.weight"], layer, slope, [True, False, False])
    return slope[(..., *layer.unpadded)] if layer.unpadded is not None else slope


def _convolution_backward(
    weight: Tensor, layer: Layer, slope: Tensor, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of inputs, weights and biases, those that are wanted; torch makes them one by one in any case."""
    slopes: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        slope,
        *(tensor.contiguous(memory_format=torch.channels_last) for tensor in (layer.inputs, weight)),
        [len(weight)],
        [layer.stride] * 2,
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
        wanted,
    )
    return slopes
