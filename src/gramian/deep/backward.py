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

import torch
from torch import Tensor

from gramian.deep.batch import Batch
from gramian.deep.layout import Layout
from gramian.deep.losses import Losses, Objective
from gramian.deep.networks import Layer, Parameters, QOutput, by_run, forward_run


class HostGradients:
    """The gradients of a population on a CPU.

    Parameters
    ----------
    objective, layout
        The loss and the layout of the parameters.
    online, target
        Parameters ``[P, N]``, which stay where they are.

    Examples
    --------
    >>> from gramian.deep.arms import Arm
    >>> from gramian.deep.learner import Learner, LearnerConfig
    >>> from gramian.deep.networks import NetworkSpec
    >>> spec = NetworkSpec("mlp", (4,), actions=2, features_dim=16)
    >>> learner = Learner(spec, LearnerConfig(), seeds=[0], arms=[Arm("gram", 0.1)])
    >>> gradients = HostGradients(learner.objective, learner.layout, learner.state.online, learner.state.target)
    >>> states = torch.randn(1, 32, 4)
    >>> batch = Batch(states, torch.zeros(1, 32, dtype=torch.int64), torch.ones(1, 32), torch.zeros(1, 32), states)
    >>> losses = gradients.compute(batch)
    >>> gradients.rows.shape == learner.state.online.shape
    True
    """

    def __init__(self, objective: Objective, layout: Layout, online: Tensor, target: Tensor) -> None:
        self._objective = objective
        self.rows = torch.zeros_like(online)
        """The gradients, ``[P, N]``: those of the last batch."""
        self._online, self._target, self._places = (by_run(layout.views(rows)) for rows in (online, target, self.rows))
        arms = objective.arms
        everyone = range(len(online))
        self._groups = [(group, [*everyone] if group.runs is None else group.runs.tolist()) for group in arms.groups]
        self._kappas = arms.kappas.tolist()
        self._looks_ahead = {run for group, runs in self._groups if group.slope is None for run in runs}

    def compute(self, batch: Batch) -> Losses:
        """Write the gradient of each run's own loss to `rows`; gives the losses."""
        objective, spec = self._objective, self._objective.spec
        size = batch.actions.shape[1]
        records: list[list[Layer]] = [[] for _ in self._online]
        outputs = [
            forward_run(spec, own, self._observations(batch, run), records[run]) for run, own in enumerate(self._online)
        ]
        nexts = [
            forward_run(spec, own, seen).values
            for own, seen in zip(self._target, batch.next_observations.unbind(), strict=True)
        ]
        choosers = self._choosers(batch, outputs) if objective.double_q else None
        targets = objective.bootstrap(torch.stack(nexts), choosers, batch)
        chosen = batch.actions.unsqueeze(2)
        values = torch.stack([output.values[:size] for output in outputs]).gather(2, chosen).squeeze(2)
        td, slopes = objective.td(values, targets)
        value_slopes = targets.new_zeros(*targets.shape, spec.actions).scatter_(2, chosen, slopes.unsqueeze(2))
        penalties, feature_slopes = self._penalise([output.features for output in outputs], size)
        for run, own in enumerate(self._online):
            backward(
                own, records[run], outputs[run].features, value_slopes[run], feature_slopes.get(run), self._places[run]
            )
        return objective.losses(td, penalties)

    def _observations(self, batch: Batch, run: int) -> Tensor:
        """What a run's online network is to see; for ``dr3`` the next states too, after the others."""
        if run in self._looks_ahead:
            return torch.cat([batch.observations[run], batch.next_observations[run]])
        return batch.observations[run]

    def _choosers(self, batch: Batch, outputs: list[QOutput]) -> Tensor:
        """The online networks' values of the next states, ``[P, B, A]``."""
        size = batch.actions.shape[1]
        return torch.stack(
            [
                outputs[run].values[size:]
                if run in self._looks_ahead
                else forward_run(self._objective.spec, own, batch.next_observations[run]).values
                for run, own in enumerate(self._online)
            ]
        )

    def _penalise(self, features: list[Tensor], size: int) -> tuple[Tensor, dict[int, Tensor]]:
        """The penalties ``[P]``, and for each run that has one its part of ∂φ, κ and all."""
        penalties = features[0].new_zeros(len(features))
        slopes: dict[int, Tensor] = {}
        for group, runs in self._groups:
            if group.slope is not None:
                values, gradients = group.slope(torch.stack([features[run] for run in runs]))
            else:
                both = torch.stack([features[run] for run in runs]).view(len(runs), 2, size, -1)
                values = both.prod(1).sum(-1).mean(-1)
                gradients = (both.flip(1) / size).flatten(1, 2)
            penalties = group.place(penalties, values)
            slopes |= {run: own.mul_(self._kappas[run]) for run, own in zip(runs, gradients, strict=True)}
        return penalties, slopes


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
