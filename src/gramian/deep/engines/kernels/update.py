"""One update of one MinAtar run in one call: `gramian.deep.agent.learner.update` in float32, layer by layer.

The network is a convolution, a hidden layer and a head. With x the rectified outputs of the convolution,
φ = max(Wx + b, 0) and Q = Hφ + h, and ∂· the gradient of the run's loss with respect to ·, an update is

1. x, φ and Q of the states, with the online network; Q⁻ of the next states, with the target network (and for double Q
   the online network's Q there); targets, TD loss and its gradient ∂Q, which is zero except for the action taken;
2. ∂H and ∂h; ∂φ = ∂Q H + κ·∂penalty, whose second part the caller gives, and nothing where φ = 0;
3. ∂W = ∂φᵀx, ∂b = Σ∂φ, ∂x = ∂φ W, and nothing where x = 0; the gradients of the filters;
4. the norm of the whole gradient; where it and the TD loss are finite, Adam's step.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import kernel
from gramian.deep.engines.kernels.convolution import (
    SIZE,
    Counts,
    Filters,
    Pictures,
    Places,
    convolve,
    convolve_back,
    find,
)
from gramian.deep.engines.kernels.matrices import Matrix, Number, Vector, add_row, combine, dots, transpose

Counters: TypeAlias = NDArray[np.int64]


class Network(NamedTuple):
    """The parameters of one network, or their gradients, in their row."""

    row: Vector
    """All of them, ``[N]``"""
    filters: Filters
    """``[F, C, 3, 3]``"""
    filter_bias: Vector
    """``[F]``"""
    weight: Matrix
    """W, ``[d, F·H'·W']``"""
    bias: Vector
    """b, ``[d]``"""
    head: Matrix
    """H, ``[A, d]``"""
    head_bias: Vector
    """h, ``[A]``"""


class Samples(NamedTuple):
    """The run's part of a `gramian.deep.agent.batch.Batch`."""

    observations: Pictures
    actions: NDArray[np.int64]
    rewards: Vector
    discounts: Vector
    next_observations: Pictures


class Step(NamedTuple):
    """The coefficients of one step of `gramian.deep.agent.optimiser.Adam`."""

    max_norm: float
    """Of the gradient; ∞ where it is left as it is"""
    keep: float
    """1 - α·wd"""
    mean: float
    """1 - β₁"""
    square_keep: float
    """β₂"""
    square: float
    """1 - β₂"""
    root: float
    """1/√(1 - β₂ᵗ)"""
    epsilon: float
    """ε"""
    rate: float
    """α/(1 - β₁ᵗ)"""


class Workspace(NamedTuple):
    """The workspace of updates of B samples."""

    places: Places
    counts: Counts
    taps: Vector
    sums: Vector
    x: Matrix
    """Outputs of the convolution for the states, ``[B, F·H'·W']``"""
    other: Matrix
    """The same for the next states; then ∂x"""
    features: Matrix
    """φ of the states, ``[B, d]``"""
    next_features: Matrix
    """φ of the next states; then κ·∂penalty and ∂φ"""
    turned: Matrix
    """∂φᵀ, ``[d, B]``"""
    values: Matrix
    """Q of the states, ``[B, A]``"""
    next_values: Matrix
    """Q⁻ of the next states"""
    choosers: Matrix
    """Q of the next states"""


def workspace(network: Network, batch: Pictures) -> Workspace:
    """The workspace for updates of ``network`` on batches like ``batch``."""
    samples, channels, height, width = batch.shape
    number, inputs = len(network.filters), network.weight.shape[1]
    outputs, features, values = (samples, inputs), (samples, len(network.bias)), (samples, len(network.head))
    floats = [(channels * SIZE * SIZE * number,), (inputs,), *[outputs] * 2, *[features] * 2, features[::-1]]
    return Workspace(
        np.zeros((samples, channels * height * width), np.int32),
        np.zeros(samples, np.int64),
        *(np.zeros(shape, np.float32) for shape in (*floats, *[values] * 3)),
    )


@kernel
def evaluate(samples: Samples, double_q: bool, online: Network, target: Network, workspace: Workspace) -> None:
    """Part 1 but for the loss: the outputs of all layers for the states and of the targets' for the next states."""
    m = workspace
    find(samples.next_observations, m.places, m.counts)
    if double_q:
        forward(samples.next_observations, online, m, m.other, m.next_features, m.choosers)
    forward(samples.next_observations, target, m, m.other, m.next_features, m.next_values)
    find(samples.observations, m.places, m.counts)
    forward(samples.observations, online, m, m.x, m.features, m.values)


@kernel
def update(
    samples: Samples,
    legal: NDArray[np.bool_],
    squared: bool,
    double_q: bool,
    online: Network,
    gradient: Network,
    mean: Vector,
    square: Vector,
    step: Step,
    number: int,
    count: Counters,
    mark: Counters,
    workspace: Workspace,
) -> np.float32:
    """The ``number``-th update after `evaluate`, with κ·∂penalty in ``next_features``; gives the mean TD loss.

    ``online`` and Adam's ``mean`` and ``square`` change in place; ``gradient`` is overwritten. ``legal`` ``[A]`` are
    the run's actions. ``count`` ``[1]`` becomes ``number``. ``mark`` ``[1]`` is the update that made the run
    diverge, or -1: a run that has diverged keeps its state.
    """
    m = workspace
    count[0] = number
    batch = samples.actions.size
    feature_gradients = m.next_features
    gradient.head[:] = np.float32(0)
    gradient.head_bias[:] = np.float32(0)
    td = np.float32(0)
    for b in range(batch):
        action = samples.actions[b]
        next_action = best(m.choosers[b] if double_q else m.next_values[b], legal)
        next_value = m.next_values[b, next_action]
        error = m.values[b, action] - (samples.rewards[b] + samples.discounts[b] * next_value)
        gradient_q = error
        if squared:
            td += error * error
            gradient_q = np.float32(2) * error
        else:
            if error > np.float32(1):
                gradient_q = np.float32(1)
            elif error < np.float32(-1):
                gradient_q = np.float32(-1)
            td += gradient_q * (error - np.float32(0.5) * gradient_q)
        gradient_q /= np.float32(batch)
        add_row(gradient_q, m.features[b], gradient.head[action])
        gradient.head_bias[action] += gradient_q
        add_row(gradient_q, online.head[action], feature_gradients[b])
    td /= np.float32(batch)
    if mark[0] >= 0:
        return td
    # the hidden layer
    gradient.bias[:] = np.float32(0)
    for b in range(batch):
        own, seen = feature_gradients[b], m.features[b]
        for i in range(own.size):
            own[i] = own[i] if seen[i] > 0 else np.float32(0)
        add_row(np.float32(1), own, gradient.bias)
    transpose(feature_gradients, m.turned)
    combine(m.turned, m.x, gradient.weight)
    combine(feature_gradients, online.weight, m.other)
    convolve_back(
        samples.observations, m.places, m.counts, m.x, m.other, m.taps, m.sums, gradient.filters, gradient.filter_bias
    )
    size = np.sqrt(sum_of_squares(gradient.row))
    finite = np.isfinite(size) and np.isfinite(td)
    if finite:
        scale = min(1.0, step.max_norm / (size + 1e-6))
        descend(online.row, gradient.row, mean, square, scale, step)
        finite = np.isfinite(total(online.row))
    if not finite:
        mark[0] = number
    return td


@kernel
def forward(
    pictures: Pictures, network: Network, workspace: Workspace, x: Matrix, features: Matrix, values: Matrix
) -> None:
    """x, φ and Q of pictures whose cells `find` has noted."""
    m = workspace
    convolve(pictures, m.places, m.counts, network.filters, network.filter_bias, m.taps, m.sums, x)
    dots(x, network.weight, features)
    for b in range(features.shape[0]):
        row = features[b]
        for i in range(row.size):
            row[i] = max(row[i] + network.bias[i], np.float32(0))
    dots(features, network.head, values)
    for b in range(features.shape[0]):
        add_row(np.float32(1), network.head_bias, values[b])


@kernel
def act(
    pictures: Pictures, network: Network, legal: NDArray[np.bool_], workspace: Workspace, actions: NDArray[np.int64]
) -> None:
    """The best action of each picture ``[E, C, H, W]``, ``[E]``; ``workspace`` is one for E samples."""
    m = workspace
    find(pictures, m.places, m.counts)
    forward(pictures, network, m, m.x, m.features, m.values)
    for e in range(actions.size):
        actions[e] = best(m.values[e], legal)


@kernel
def best(values: Vector, legal: NDArray[np.bool_]) -> int:
    """The action whose value is largest; a NaN is the largest of all, as in torch."""
    chosen, largest = 0, np.float32(-np.inf)
    for a in range(values.size):
        if legal[a] and not (values[a] <= largest or np.isnan(largest)):
            chosen, largest = a, values[a]
    return chosen


@kernel
def sum_of_squares(row: Vector) -> np.float32:
    """‖row‖²."""
    result = np.float32(0)
    for i in range(row.size):
        result += row[i] * row[i]
    return result


@kernel
def total(row: Vector) -> np.float32:
    """The sum of all numbers, which is finite only where all of them are."""
    result = np.float32(0)
    for i in range(row.size):
        result += row[i]
    return result


@kernel
def descend(parameters: Vector, gradient: Vector, mean: Vector, square: Vector, scale: Number, step: Step) -> None:
    """Adam's step with ``scale`` times the gradient, in place."""
    factor, keep, mean_weight = np.float32(scale), np.float32(step.keep), np.float32(step.mean)
    square_keep, square_weight, root = np.float32(step.square_keep), np.float32(step.square), np.float32(step.root)
    epsilon, rate = np.float32(step.epsilon), np.float32(step.rate)
    for i in range(parameters.size):
        g = gradient[i] * factor
        mean[i] += mean_weight * (g - mean[i])
        square[i] = square_keep * square[i] + square_weight * g * g
        parameters[i] = parameters[i] * keep - rate * mean[i] / (np.sqrt(square[i]) * root + epsilon)
