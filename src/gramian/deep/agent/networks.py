"""Q-networks with a population axis: P networks of one shape, as functions of a dict of parameters ``[P, ...]``.

A network is a body, whose output are the features φ that a penalty sees, and a head. The parameters of the body are
named ``body.*``, those of the head ``head.*``.

| kind | observation | convolutions (filters, size, stride) | hidden layers | source |
| --- | --- | --- | --- | --- |
| ``nature`` | [C, H, W] in 0…255, scaled by 1/255 | (32, 8, 4), (64, 4, 2), (64, 3, 1) | one | Mnih et al. 2015 |
| ``dopamine`` | the same | the same, padded: a side of n becomes ⌈n/stride⌉ | one | Castro et al. 2018 |
| ``minatar`` | [C, H, W] of 0 and 1 | (16, 3, 1) | one | Young & Tian 2019 |
| ``mlp`` | any shape, flattened | none | two | – |

Every hidden layer is ``features_dim`` wide and rectified: 512 in Mnih et al., 128 in Young & Tian. With ``layer_norm``
it is normalised (Ba, Kiros & Hinton 2016, with gain and shift) before its rectifier. The features are the last hidden
layer, and the head is one linear layer, ``head``, or two, ``head.value`` and ``head.advantage``, where it is dueling.

In an ``implicit`` head (IQN) the last hidden layer comes after the quantiles: φ is what precedes it, multiplied by an
embedding of τ, ``head.embedding``, and followed by the hidden layer ``head.fc``.

With a ``noisy`` head all dense layers have weights w + σ_w ∘ f(ε')f(ε)ᵀ, ε normal and f(ε) = sign(ε)√|ε| (`perturb`).

``dopamine`` is what Dopamine (github.com/google/dopamine) calls Mnih et al.'s network. Its convolutions have zeros
around their images, half of them before and half after, the odd one after, so that its hidden layer sees 11×11×64
numbers instead of 7×7×64; and its weights are drawn in a way of their own, with biases of zero (`init`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn import functional

from gramian.core.errors import UserError, unknown
from gramian.deep.agent import heads
from gramian.deep.agent.heads import Head
from gramian.deep.agent.streams import Stream, bits

Kind = Literal["nature", "dopamine", "minatar", "mlp"]
Parameters = dict[str, Tensor]
"""Parameters by name, each ``[P, ...]``."""

_CONVOLUTIONS: dict[Kind, tuple[tuple[int, int, int], ...]] = {
    "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "dopamine": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "minatar": ((16, 3, 1),),
    "mlp": (),
}
_PIXELS = 255
"""Atari's pixels are divided by this number."""
_NORM_EPSILON = 1e-5
"""Added to the variance in a normalisation."""
_HIDDEN_LAYERS: dict[Kind, int] = {"nature": 1, "dopamine": 1, "minatar": 1, "mlp": 2}
COSINES = 64
"""cos(πiτ), i = 1 … 64, are what a τ is embedded from (Dabney et al. 2018b)."""
_NOISE, _DOPAMINE_NOISE = 0.5, 0.1
"""σ·√fan_in of a noisy layer at the start: Fortunato et al.'s, and Dopamine's."""


@dataclass(frozen=True)
class NetworkSpec:
    """The shape of a network, common to all runs of a population.

    Attributes
    ----------
    kind
        ``nature``, ``dopamine``, ``minatar`` or ``mlp``.
    observation_shape
        Shape of one observation as the network sees it, frames stacked.
    actions
        Number of actions: the most that any run of the population has.
    features_dim
        Width of the hidden layers.
    layer_norm
        Normalise the hidden layers.
    head
        What follows the features.
    """

    kind: Kind
    observation_shape: tuple[int, ...]
    actions: int
    features_dim: int
    layer_norm: bool = False
    head: Head = field(default_factory=Head)

    def __post_init__(self) -> None:
        if self.kind not in _CONVOLUTIONS:
            raise unknown("network", self.kind, get_args(Kind))
        for name, value in (("actions", self.actions), ("features_dim", self.features_dim)):
            if value < 1:
                raise UserError(f"{name} is {value}; a network needs at least 1")
        shape = "×".join(map(str, self.observation_shape))
        if _CONVOLUTIONS[self.kind] and len(self.observation_shape) != 3:
            raise UserError(f"network {self.kind!r} sees channels × height × width, not {shape}; choose 'mlp'")
        if self.body_inputs < 1:
            raise UserError(f"observations of {shape} are too small for network {self.kind!r}; choose 'mlp'")

    @property
    def body_inputs(self) -> int:
        """Number of inputs of the first hidden layer: outputs of the last convolution."""
        if not _CONVOLUTIONS[self.kind]:
            return math.prod(self.observation_shape)
        channels, *sides = self.observation_shape
        for filters, size, stride in _CONVOLUTIONS[self.kind]:
            seen = [side + sum(self.margin(side, size, stride)) for side in sides]
            channels, sides = filters, [max(0, (side - size) // stride + 1) for side in seen]
        return channels * math.prod(sides)

    @property
    def hidden_layers(self) -> int:
        """Number of the body's hidden layers."""
        return _HIDDEN_LAYERS[self.kind] - (self.head.kind == "implicit")

    @property
    def body_outputs(self) -> int:
        """Number d of the features that a penalty sees."""
        return self.features_dim if self.hidden_layers else self.body_inputs

    @property
    def dense_layers(self) -> dict[str, tuple[int, int]]:
        """Outputs and inputs of the dense layers by name, first to last; those with a row for each action come last."""
        widths = [self.body_inputs, *[self.features_dim] * self.hidden_layers]
        layers = {f"body.fc{n}": (after, before) for n, (before, after) in enumerate(pairwise(widths), start=1)}
        if self.head.kind == "implicit":
            layers["head.embedding"] = self.body_outputs, COSINES
            layers["head.fc"] = self.features_dim, self.body_outputs
        if self.head.dueling:
            layers["head.value"] = self.head.outputs, self.features_dim
        layers["head.advantage" if self.head.dueling else "head"] = self.actions * self.head.outputs, self.features_dim
        return layers

    @property
    def sees_pictures(self) -> bool:
        """Whether observations are Atari's pictures, in 0…255, and the network one of those made for them."""
        return self.kind in ("nature", "dopamine")

    def margin(self, side: int, size: int, stride: int) -> tuple[int, int]:
        """Zeros that a convolution puts before and after ``side`` pixels."""
        if self.kind != "dopamine":
            return 0, 0
        lacking = max(0, (-(-side // stride) - 1) * stride + size - side)
        return lacking // 2, lacking - lacking // 2

    def padded(self, images: Tensor, size: int, stride: int) -> Tensor:
        """Images ``[..., H, W]`` with the zeros around them that a convolution wants."""
        rows, columns = (self.margin(side, size, stride) for side in images.shape[-2:])
        margins = (*columns, *rows)
        return functional.pad(images, margins) if any(margins) else images


class Output(NamedTuple):
    """What a network gives for a batch."""

    values: Tensor
    """Q-values ``[P, B, A]``."""
    features: Tensor
    """φ, ``[P, B, d]``."""
    outputs: Tensor
    """The Q-values, or what they are computed from: logits or quantiles ``[P, B, A, Z]``."""
    taus: Tensor | None
    """τ of the quantiles, ``[P, Z]`` or ``[1, Z]``; None where there are none."""


def parameter_shapes(spec: NetworkSpec) -> dict[str, tuple[int, ...]]:
    """Shapes of one run's parameters by name, in a fixed order."""
    shapes: dict[str, tuple[int, ...]] = {}
    channels = spec.observation_shape[0]
    for number, (filters, size, _) in enumerate(_CONVOLUTIONS[spec.kind], start=1):
        shapes[f"body.conv{number}.weight"] = (filters, channels, size, size)
        shapes[f"body.conv{number}.bias"] = (filters,)
        channels = filters
    for name, (outputs, inputs) in spec.dense_layers.items():
        for part in ("", ".sigma") if spec.head.noisy else ("",):
            shapes[f"{name}{part}.weight"] = (outputs, inputs)
            shapes[f"{name}{part}.bias"] = (outputs,)
        if spec.layer_norm and ".fc" in name:
            shapes[f"{name}.norm.weight"] = (outputs,)
            shapes[f"{name}.norm.bias"] = (outputs,)
    return shapes


def init(
    spec: NetworkSpec,
    seeds: Sequence[int],
    action_counts: Sequence[int] | None = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Parameters:
    """Draw the weights of every run: weights and biases from U(-1/√fan_in, 1/√fan_in), PyTorch's and Torch7's default.

    Those of ``dopamine`` are from U(-b, b), and its biases are zero, with b as in Dopamine: √(6/(fan_in + fan_out))
    (Glorot & Bengio 2010) for DQN and where the head is dueling or noisy, √(√3/fan_in) for other heads. Noisy layers
    have the default weights and biases, and σ = 0.5/√fan_in, in ``dopamine`` 0.1/√fan_in.

    A run's weights are a function of its seed and its own number of actions, wherever it stands in the population. The
    rows of the head for actions that a run does not have are zero. Gains and shifts of normalisations are 1 and 0.

    Parameters
    ----------
    spec
        The network.
    seeds
        One for each run.
    action_counts
        How many actions each run has; ``spec.actions`` where it is not given.
    """
    counts = [spec.actions] * len(seeds) if action_counts is None else list(action_counts)
    if len(counts) != len(seeds) or not all(1 <= count <= spec.actions for count in counts):
        raise ValueError(f"action counts {counts} for {len(seeds)} runs of a network with {spec.actions} outputs")
    runs = [_init_run(spec, seed, count) for seed, count in zip(seeds, counts, strict=True)]
    return {name: torch.stack([run[name] for run in runs]).to(device, dtype) for name in runs[0]}


def _init_run(spec: NetworkSpec, seed: int, action_count: int) -> Parameters:
    generator = torch.Generator().manual_seed(int(bits(seed, Stream.INIT)))
    dense = spec.dense_layers
    last = list(dense)[-1]
    run: Parameters = {}
    bound = 0.0
    for name, shape in parameter_shapes(spec).items():
        layer, _, kind = name.rpartition(".")
        own = (action_count * spec.head.outputs, *shape[1:]) if layer.removesuffix(".sigma") == last else shape
        if kind == "weight" and len(shape) > 1:
            bound = math.prod(shape[1:]) ** -0.5  # the bias that follows has the same fan-in
        if layer.endswith(".norm"):
            values = torch.full(own, float(kind == "weight"))
        elif layer.endswith(".sigma"):
            values = torch.full(own, bound * (_DOPAMINE_NOISE if spec.kind == "dopamine" else _NOISE))
        else:
            if spec.kind == "dopamine" and not (spec.head.noisy and layer in dense):
                bound = _dopamine_bound(spec.head, own) if kind == "weight" else 0.0
            # float32 whatever the dtype of the population, so that float64 runs start from the same numbers
            values = torch.empty(own).uniform_(-bound, bound, generator=generator)
        run[name] = torch.cat([values, values.new_zeros(shape[0] - own[0], *shape[1:])])
    return run


def _dopamine_bound(head: Head, shape: tuple[int, ...]) -> float:
    fan_in = math.prod(shape[1:])
    if head.kind == "scalar" or head.dueling or head.noisy:
        return math.sqrt(6 / (fan_in + shape[0] * math.prod(shape[2:])))
    return math.sqrt(math.sqrt(3) / fan_in)


def noise_size(spec: NetworkSpec) -> int:
    """Random numbers that `perturb` needs for a run."""
    return sum(sum(layer) for layer in spec.dense_layers.values())


def perturb(spec: NetworkSpec, parameters: Parameters, noise: Tensor) -> Parameters:
    """The weights of noisy layers with their noise: w + σ_w ∘ f(ε')f(ε)ᵀ and b + σ_b ∘ f(ε').

    ``noise`` ``[P, noise_size]`` is normal: ε for the inputs and ε' for the outputs of each layer in turn.
    """
    shaped = noise.sign() * noise.abs().sqrt()
    # The outputs of the last layer come last, so that a run with fewer actions has the same noise among others.
    parts = iter(
        shaped.split([size for outputs, inputs in spec.dense_layers.values() for size in (inputs, outputs)], 1)
    )
    perturbed = dict(parameters)
    for name, before, after in zip(spec.dense_layers, parts, parts, strict=True):
        weight, bias = parameters[f"{name}.sigma.weight"], parameters[f"{name}.sigma.bias"]
        perturbed[f"{name}.weight"] = parameters[f"{name}.weight"] + weight * after.unsqueeze(2) * before.unsqueeze(1)
        perturbed[f"{name}.bias"] = parameters[f"{name}.bias"] + bias * after
    return perturbed


def forward(
    spec: NetworkSpec,
    parameters: Parameters,
    observations: Tensor,
    taus: Tensor | None = None,
    legal: Tensor | None = None,
) -> Output:
    """Q-values, features and outputs of a batch for each run of the population, without noise: `head` of `body`.

    Parameters
    ----------
    spec
        The network.
    parameters
        As `init` gives them, or `perturb`.
    observations
        ``[P, B, *observation_shape]`` of any dtype.
    taus
        τ of an implicit head, ``[P, N]``; by default the midpoints of as many as it acts with, so that Q is a function
        of the observation.
    legal
        bool ``[P, 1, A]``, which actions each run has; by default all. A dueling head needs to know.
    """
    return head(spec, parameters, body(spec, parameters, observations), taus, legal)


def body(spec: NetworkSpec, parameters: Parameters, observations: Tensor) -> Tensor:
    """The features φ ``[P, B, d]`` of observations ``[P, B, *observation_shape]``."""
    dtype = next(iter(parameters.values())).dtype
    x = observations.to(dtype, copy=True).div_(_PIXELS) if spec.sees_pictures else observations.to(dtype)
    for number, (_, size, stride) in enumerate(_CONVOLUTIONS[spec.kind], start=1):
        name = f"body.conv{number}"
        x = spec.padded(x, size, stride)
        x = population_conv2d(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"], stride).relu()
    x = x.flatten(2)
    for number in range(1, spec.hidden_layers + 1):
        x = _hidden(spec, parameters, f"body.fc{number}", x)
    return x


def head(
    spec: NetworkSpec, parameters: Parameters, features: Tensor, taus: Tensor | None = None, legal: Tensor | None = None
) -> Output:
    """What the head makes of features ``[P, B, d]``; the arguments are those of `forward`."""
    shape, x = spec.head, features
    if shape.kind == "implicit":
        if taus is None:
            taus = shape.midpoints(shape.acting_size, features)
        x = (features.unsqueeze(2) * _embedding(parameters, taus).unsqueeze(1)).flatten(1, 2)  # [P, B·N, d]
        x = _hidden(spec, parameters, "head.fc", x)
    elif shape.kind == "quantile":
        taus = shape.midpoints(shape.size, features)
    if shape.dueling:
        value = _dense(parameters, "head.value", x).unsqueeze(2)
        advantages = _dense(parameters, "head.advantage", x).unflatten(2, (spec.actions, shape.outputs))
        outputs = value + advantages - _mean_of_legal(advantages, legal)
    else:
        outputs = _dense(parameters, "head", x).unflatten(2, (spec.actions, shape.outputs))
    if shape.kind == "implicit":
        outputs = outputs.unflatten(1, (features.shape[1], -1)).squeeze(4).mT  # [P, B·N, A, 1] → [P, B, A, N]
    elif shape.kind == "scalar":
        outputs = outputs.squeeze(3)
    return Output(heads.values(shape, outputs), features, outputs, taus)


def _embedding(parameters: Parameters, taus: Tensor) -> Tensor:
    """relu(W cos(πiτ) + b) of each τ, ``[P, N]`` or ``[1, N]`` → ``[P, N, d]``."""
    frequencies = math.pi * torch.arange(1, COSINES + 1, dtype=taus.dtype, device=taus.device)
    cosines = (taus.unsqueeze(2) * frequencies).cos()
    population = parameters["head.embedding.weight"].shape[0]
    return _dense(parameters, "head.embedding", cosines.expand(population, -1, -1)).relu()


def _mean_of_legal(advantages: Tensor, legal: Tensor | None) -> Tensor:
    """The mean over each run's own actions of advantages ``[P, R, A, Z]``: ``[P, R, 1, Z]``."""
    if legal is None:
        return advantages.mean(2, keepdim=True)
    mask = legal.unsqueeze(3).to(advantages.dtype)
    return (advantages * mask).sum(2, keepdim=True) / mask.sum(2, keepdim=True)


def _hidden(spec: NetworkSpec, parameters: Parameters, name: str, x: Tensor) -> Tensor:
    x = _dense(parameters, name, x)
    if spec.layer_norm:
        gain, shift = (parameters[f"{name}.norm.{part}"].unsqueeze(1) for part in ("weight", "bias"))
        x = functional.layer_norm(x, (spec.features_dim,), eps=_NORM_EPSILON) * gain + shift
    return x.relu()


def _dense(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    return population_linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])


def population_linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """xWᵀ + b of each run: ``[P, B, I]``, ``[P, O, I]``, ``[P, O]`` → ``[P, B, O]``."""
    # (W xᵀ)ᵀ rather than xWᵀ: the gradient of W then comes out in the layout of W and need not be copied into it.
    # A sum rather than baddbmm, which copies the bias to the size of the product first: a compiler adds it on the way.
    return (torch.bmm(weight, inputs.mT) + bias.unsqueeze(2)).mT


def population_conv2d(inputs: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """Convolution of each run's images with its own filters, without padding.

    ``[P, B, C, H, W]``, ``[P, O, C, k, k]``, ``[P, O]`` → ``[P, B, O, H', W']``.

    It is one batched matrix product. A single run on a CPU takes torch's own convolution, channels last: with it an
    update of Atari's network takes 0.4 of the time.
    """
    population, batch = inputs.shape[:2]
    size = weight.shape[-1]
    if population == 1 and inputs.device.type == "cpu":
        images, filters = (x[0].contiguous(memory_format=torch.channels_last) for x in (inputs, weight))
        return functional.conv2d(images, filters, bias[0], stride).unsqueeze(0)
    patches = inputs.unfold(3, size, stride).unfold(4, size, stride)  # [P, B, C, H', W', k, k]
    height, width = patches.shape[3:5]
    rows = patches.permute(0, 1, 3, 4, 2, 5, 6).reshape(population, batch * height * width, -1)
    outputs = population_linear(rows, weight.flatten(2), bias)
    return outputs.view(population, batch, height, width, -1).permute(0, 1, 4, 2, 3)
