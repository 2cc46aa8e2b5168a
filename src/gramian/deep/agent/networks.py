"""Q-networks with a population axis: P networks of one shape, as functions of a dict of parameters ``[P, ...]``.

A network is a body, whose output are the features φ (the rectified last hidden layer), and a linear head,
Q(s, ·) = Wφ(s) + b. The parameters of the body are named ``body.*``, those of the head ``head.*``.

| kind | observation | convolutions (filters, size, stride) | hidden layers | source |
| --- | --- | --- | --- | --- |
| ``nature`` | [C, H, W] in 0…255, scaled by 1/255 | (32, 8, 4), (64, 4, 2), (64, 3, 1) | one | Mnih et al. 2015 |
| ``dopamine`` | the same | the same, padded: a side of n becomes ⌈n/stride⌉ | one | Castro et al. 2018 |
| ``minatar`` | [C, H, W] of 0 and 1 | (16, 3, 1) | one | Young & Tian 2019 |
| ``mlp`` | any shape, flattened | none | two | – |

Every hidden layer is ``features_dim`` wide: 512 in Mnih et al., 128 in Young & Tian. With ``layer_norm`` each hidden
layer is normalised (Ba, Kiros & Hinton 2016, with gain and shift) before its rectifier.

``dopamine`` is what Dopamine (github.com/google/dopamine) calls Mnih et al.'s network. Its convolutions have zeros
around their images, half of them before and half after, the odd one after, so that its hidden layer sees 11×11×64
numbers instead of 7×7×64; and its weights are drawn as by Glorot & Bengio 2010, with biases of zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn import functional

from gramian.core.errors import UserError, unknown
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
        Number of outputs: the most actions that any run of the population has.
    features_dim
        Width d of the features.
    layer_norm
        Normalise the hidden layers.

    Examples
    --------
    >>> NetworkSpec("nature", (4, 84, 84), actions=6, features_dim=512).body_inputs
    3136
    """

    kind: Kind
    observation_shape: tuple[int, ...]
    actions: int
    features_dim: int
    layer_norm: bool = False

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
        """Number of inputs of the first hidden layer."""
        if not _CONVOLUTIONS[self.kind]:
            return math.prod(self.observation_shape)
        channels, *sides = self.observation_shape
        for filters, size, stride in _CONVOLUTIONS[self.kind]:
            seen = [side + sum(self.margin(side, size, stride)) for side in sides]
            channels, sides = filters, [max(0, (side - size) // stride + 1) for side in seen]
        return channels * math.prod(sides)

    @property
    def sees_pictures(self) -> bool:
        """Whether observations are Atari's pictures, in 0…255, and the network one of those made for them."""
        return self.kind in ("nature", "dopamine")

    def margin(self, side: int, size: int, stride: int) -> tuple[int, int]:
        """Zeros that a convolution puts before and after ``side`` pixels.

        Examples
        --------
        >>> NetworkSpec("dopamine", (4, 84, 84), actions=6, features_dim=512).margin(21, size=4, stride=2)
        (1, 2)
        """
        if self.kind != "dopamine":
            return 0, 0
        lacking = max(0, (-(-side // stride) - 1) * stride + size - side)
        return lacking // 2, lacking - lacking // 2

    def padded(self, images: Tensor, size: int, stride: int) -> Tensor:
        """Images ``[..., H, W]`` with the zeros around them that a convolution wants."""
        rows, columns = (self.margin(side, size, stride) for side in images.shape[-2:])
        margins = (*columns, *rows)
        return functional.pad(images, margins) if any(margins) else images


class QOutput(NamedTuple):
    """What a network returns."""

    values: Tensor
    """Q(s, a), ``[P, B, A]``."""
    features: Tensor
    """φ(s), the rectified last hidden layer, ``[P, B, d]``."""


def parameter_shapes(spec: NetworkSpec) -> dict[str, tuple[int, ...]]:
    """Shape of each parameter of one run, in the order of the layers; the head comes last.

    Examples
    --------
    >>> parameter_shapes(NetworkSpec("mlp", (4,), actions=2, features_dim=8))["head.weight"]
    (2, 8)
    """
    shapes: dict[str, tuple[int, ...]] = {}
    channels = spec.observation_shape[0]
    for number, (filters, size, _) in enumerate(_CONVOLUTIONS[spec.kind], start=1):
        shapes[f"body.conv{number}.weight"] = (filters, channels, size, size)
        shapes[f"body.conv{number}.bias"] = (filters,)
        channels = filters
    inputs = spec.body_inputs
    for number in range(1, _HIDDEN_LAYERS[spec.kind] + 1):
        name = f"body.fc{number}"
        shapes[f"{name}.weight"] = (spec.features_dim, inputs)
        shapes[f"{name}.bias"] = (spec.features_dim,)
        if spec.layer_norm:
            shapes[f"{name}.norm.weight"] = (spec.features_dim,)
            shapes[f"{name}.norm.bias"] = (spec.features_dim,)
        inputs = spec.features_dim
    shapes["head.weight"] = (spec.actions, spec.features_dim)
    shapes["head.bias"] = (spec.actions,)
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

    Those of ``dopamine`` are Glorot & Bengio's, from U(-b, b) with b = √(6/(fan_in + fan_out)), and biases are zero.

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

    Examples
    --------
    >>> spec = NetworkSpec("mlp", (4,), actions=2, features_dim=8)
    >>> alone, second = init(spec, [7]), init(spec, [3, 7])
    >>> bool(torch.equal(alone["head.weight"][0], second["head.weight"][1]))
    True
    """
    counts = [spec.actions] * len(seeds) if action_counts is None else list(action_counts)
    if len(counts) != len(seeds) or not all(1 <= count <= spec.actions for count in counts):
        raise ValueError(f"action counts {counts} for {len(seeds)} runs of a network with {spec.actions} outputs")
    runs = [_init_run(spec, seed, count) for seed, count in zip(seeds, counts, strict=True)]
    return {name: torch.stack([run[name] for run in runs]).to(device, dtype) for name in runs[0]}


def _init_run(spec: NetworkSpec, seed: int, action_count: int) -> Parameters:
    generator = torch.Generator().manual_seed(int(bits(seed, Stream.INIT)))
    run: Parameters = {}
    bound = 0.0
    for name, shape in parameter_shapes(spec).items():
        if ".norm." in name:
            run[name] = torch.full(shape, float(name.endswith("weight")))
            continue
        own = (action_count, *shape[1:]) if name.startswith("head.") else shape
        if name.endswith("weight"):
            bound = math.prod(shape[1:]) ** -0.5  # the bias that follows has the same fan-in
            if spec.kind == "dopamine":
                bound = math.sqrt(6 / (math.prod(own[1:]) + own[0] * math.prod(own[2:])))
        elif spec.kind == "dopamine":
            bound = 0.0
        # float32 whatever the dtype of the population, so that float64 runs start from the same numbers
        values = torch.empty(own).uniform_(-bound, bound, generator=generator)
        run[name] = torch.cat([values, values.new_zeros(shape[0] - own[0], *shape[1:])])
    return run


def forward(spec: NetworkSpec, parameters: Parameters, observations: Tensor) -> QOutput:
    """Q-values and features of a batch for each run of the population.

    Parameters
    ----------
    spec
        The network.
    parameters
        As `init` gives them.
    observations
        ``[P, B, *observation_shape]`` of any dtype.

    Examples
    --------
    >>> spec = NetworkSpec("minatar", (4, 10, 10), actions=6, features_dim=128)
    >>> output = forward(spec, init(spec, [0, 1]), torch.zeros(2, 32, 4, 10, 10, dtype=torch.uint8))
    >>> output.values.shape, output.features.shape
    (torch.Size([2, 32, 6]), torch.Size([2, 32, 128]))
    """
    features = body(spec, parameters, observations)
    return QOutput(population_linear(features, parameters["head.weight"], parameters["head.bias"]), features)


def body(spec: NetworkSpec, parameters: Parameters, observations: Tensor) -> Tensor:
    """The features φ ``[P, B, d]`` of observations ``[P, B, *observation_shape]``.

    Examples
    --------
    >>> spec = NetworkSpec("mlp", (4,), actions=2, features_dim=8)
    >>> body(spec, init(spec, [0]), torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 8])
    """
    dtype = parameters["head.bias"].dtype
    x = observations.to(dtype, copy=True).div_(_PIXELS) if spec.sees_pictures else observations.to(dtype)
    for number, (_, size, stride) in enumerate(_CONVOLUTIONS[spec.kind], start=1):
        name = f"body.conv{number}"
        x = spec.padded(x, size, stride)
        x = population_conv2d(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"], stride).relu()
    x = x.flatten(2)
    for number in range(1, _HIDDEN_LAYERS[spec.kind] + 1):
        name = f"body.fc{number}"
        x = population_linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])
        if spec.layer_norm:
            gain, shift = (parameters[f"{name}.norm.{part}"].unsqueeze(1) for part in ("weight", "bias"))
            x = functional.layer_norm(x, (spec.features_dim,), eps=_NORM_EPSILON) * gain + shift
        x = x.relu()
    return x


def population_linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """xWᵀ + b of each run: ``[P, B, I]``, ``[P, O, I]``, ``[P, O]`` → ``[P, B, O]``.

    Examples
    --------
    >>> population_linear(torch.ones(2, 3, 4), torch.ones(2, 5, 4), torch.zeros(2, 5)).shape
    torch.Size([2, 3, 5])
    """
    # (W xᵀ)ᵀ rather than xWᵀ: the gradient of W then comes out in the layout of W and need not be copied into it.
    # A sum rather than baddbmm, which copies the bias to the size of the product first: a compiler adds it on the way.
    return (torch.bmm(weight, inputs.mT) + bias.unsqueeze(2)).mT


def population_conv2d(inputs: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """Convolution of each run's images with its own filters, without padding.

    It is one batched matrix product. A single run on a CPU takes torch's own convolution, channels last: with it an
    update of Atari's network takes 0.4 of the time.

    Parameters
    ----------
    inputs
        ``[P, B, C, H, W]``.
    weight, bias
        ``[P, O, C, k, k]`` and ``[P, O]``.
    stride
        In both directions.

    Returns
    -------
    Tensor
        ``[P, B, O, H', W']``.

    Examples
    --------
    >>> population_conv2d(torch.ones(2, 3, 4, 10, 10), torch.ones(2, 16, 4, 3, 3), torch.zeros(2, 16), 1).shape
    torch.Size([2, 3, 16, 8, 8])
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
