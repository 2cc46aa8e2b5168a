from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch.nn import functional

from gramian.core.errors import UserError
from gramian.deep.agent.networks import (
    NetworkSpec,
    forward,
    init,
    parameter_shapes,
    population_conv2d,
)
from tests.deep.naive import NaiveNetwork
from tests.deep.populations import SPECS, batch_of


@pytest.mark.parametrize("kind", SPECS)
def test_values_and_features_equal_those_of_a_torch_module(kind):
    spec = SPECS[kind]
    parameters = init(spec, [3, 4], dtype=torch.float64)
    observations = batch_of(spec, [0, 1]).observations
    output = forward(spec, parameters, observations)
    for run in range(2):
        network = NaiveNetwork(spec, spec.actions).double()
        for name, parameter in network.named().items():
            parameter.data.copy_(parameters[name][run])
        values, features = network(observations[run])
        torch.testing.assert_close(output.values[run], values.squeeze(2), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(output.features[run], features, rtol=1e-12, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    population=st.integers(1, 3),
    batch=st.integers(1, 3),
    channels=st.integers(1, 3),
    filters=st.integers(1, 4),
    size=st.integers(1, 4),
    stride=st.integers(1, 3),
    extra=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_a_convolution_as_a_matrix_product_has_the_values_and_gradients_of_a_convolution(
    population, batch, channels, filters, size, stride, extra
):
    generator = torch.Generator().manual_seed(0)
    shapes = (
        (population, batch, channels, size + extra[0], size + extra[1]),
        (population, filters, channels, size, size),
        (population, filters),
    )
    inputs = [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]
    results = []

    def one_after_the_other(images, filters, biases, stride):
        return torch.stack(
            [functional.conv2d(x, w, b, stride) for x, w, b in zip(images, filters, biases, strict=True)]
        )

    for convolve in (one_after_the_other, population_conv2d):  # which is a matrix product from two runs on
        outputs = convolve(*inputs, stride)
        results.append([outputs, *torch.autograd.grad(outputs.square().sum(), inputs)])
    for by_run, by_matmul in zip(*results, strict=True):
        torch.testing.assert_close(by_run, by_matmul, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("kind", SPECS)
def test_all_runs_together_have_the_values_and_gradients_of_one_after_the_other(kind, layer_norm):
    spec = replace(SPECS[kind], layer_norm=layer_norm)
    observations, parameters = batch_of(spec, [0, 1]).observations, init(spec, [0, 1], dtype=torch.float64)

    def differentiated(runs):
        own = {name: tensor[runs].requires_grad_() for name, tensor in parameters.items()}
        output = forward(spec, own, observations[runs])
        loss = output.values.square().sum() + output.features.sum()
        return [output.values, output.features, *torch.autograd.grad(loss, list(own.values()))]

    alone = [differentiated(slice(run, run + 1)) for run in range(2)]
    for together, *parts in zip(differentiated(slice(None)), *alone, strict=True):
        torch.testing.assert_close(together, torch.cat(parts), rtol=1e-10, atol=1e-10)


def test_weights_depend_on_the_seed_alone():
    spec = SPECS["minatar"]
    alone, among = init(spec, [7]), init(spec, [1, 7, 2])
    assert all(torch.equal(alone[name][0], among[name][1]) for name in alone)
    assert not torch.equal(among["head.weight"][0], among["head.weight"][1])


def test_weights_of_a_smaller_game_are_those_of_its_own_network_with_zeros_below():
    spec = NetworkSpec("mlp", (5,), actions=4, features_dim=8)
    small = NetworkSpec("mlp", (5,), actions=2, features_dim=8)
    shared, own = init(spec, [1, 7], [4, 2]), init(small, [7])
    for name in own:
        rows = own[name].shape[1]
        assert torch.equal(shared[name][1, :rows], own[name][0])
        assert (shared[name][1, rows:] == 0).all()


def test_float64_weights_are_the_float32_ones():
    spec = SPECS["mlp"]
    single, double = init(spec, [0]), init(spec, [0], dtype=torch.float64)
    assert all(torch.equal(single[name].double(), double[name]) for name in single)


@pytest.mark.parametrize("kind", ["mlp", "minatar", "nature"])
def test_weights_and_biases_are_uniform_up_to_one_over_the_root_of_the_fan_in(kind):
    spec = SPECS[kind]
    parameters = init(spec, range(300))
    shapes = parameter_shapes(spec)
    for name, values in parameters.items():
        weight = shapes[name.replace("bias", "weight")]
        bound = torch.tensor(weight[1:]).prod().item() ** -0.5
        assert values.abs().max() <= bound
        assert values.abs().max() > 0.98 * bound
        # the standard deviation of U(-b, b) is b/√3; 10 % is more than six standard errors of the 900 draws of a bias
        assert abs(values.std().item() / (bound / 3**0.5) - 1) < 0.1


def test_weights_of_dopamines_network_are_glorot_and_bengio_s_and_its_biases_zero():
    spec = SPECS["dopamine"]
    parameters = init(spec, range(300), [3, 2] * 150)
    fans = {"conv1": (2 * 64, 32 * 64), "conv2": (32 * 16, 64 * 16), "conv3": (64 * 9, 64 * 9), "fc1": (5 * 5 * 64, 8)}
    for name, (fan_in, fan_out) in fans.items():
        values, bound = parameters[f"body.{name}.weight"], (6 / (fan_in + fan_out)) ** 0.5
        assert 0.98 * bound < values.abs().max() <= bound
        assert abs(values.std().item() / (bound / 3**0.5) - 1) < 0.1
        assert not parameters[f"body.{name}.bias"].any()
    large, small = (parameters["head.weight"][first::2].abs().max() for first in (0, 1))
    assert 0.98 * (6 / 11) ** 0.5 < large <= (6 / 11) ** 0.5
    assert (6 / 11) ** 0.5 < small <= (6 / 10) ** 0.5  # the fan-out of a run is its own number of actions
    assert not parameters["head.bias"].any()


def test_the_hidden_layer_of_dopamines_network_sees_eleven_by_eleven_places():
    spec = NetworkSpec("dopamine", (4, 84, 84), actions=6, features_dim=512)
    assert spec.body_inputs == 11 * 11 * 64
    assert [spec.margin(*layer) for layer in ((84, 8, 4), (21, 4, 2), (11, 3, 1))] == [(2, 2), (1, 2), (1, 1)]


def test_parameters_of_the_nature_network_are_those_of_mnih_et_al():
    spec = NetworkSpec("nature", (4, 84, 84), actions=18, features_dim=512)
    count = sum(torch.Size(shape).numel() for shape in parameter_shapes(spec).values())
    assert count == (8 * 8 * 4 + 1) * 32 + (4 * 4 * 32 + 1) * 64 + (3 * 3 * 64 + 1) * 64 + 3137 * 512 + 513 * 18


def test_features_are_rectified_and_the_head_is_linear_in_them():
    spec = SPECS["minatar"]
    parameters = init(spec, [0, 1])
    output = forward(spec, parameters, batch_of(spec, [0, 1]).observations)
    assert (output.features >= 0).all()
    assert (output.features == 0).any()
    head = torch.einsum("pbd,pad->pba", output.features, parameters["head.weight"]) + parameters["head.bias"][:, None]
    torch.testing.assert_close(output.values, head)


def test_bool_planes_give_the_values_of_zeros_and_ones():
    spec = SPECS["minatar"]
    parameters = init(spec, [0])
    planes = batch_of(spec, [0]).observations
    assert torch.equal(forward(spec, parameters, planes).values, forward(spec, parameters, planes.bool()).values)


def test_layer_norm_normalises_what_goes_into_the_rectifier():
    spec = NetworkSpec("mlp", (5,), actions=2, features_dim=64, layer_norm=True)
    parameters = init(spec, [0])
    small = forward(spec, parameters, torch.ones(1, 3, 5)).features
    parameters["body.fc1.weight"].mul_(100)
    parameters["body.fc1.bias"].mul_(100)
    torch.testing.assert_close(forward(spec, parameters, torch.ones(1, 3, 5)).features, small, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("natur", (4, 84, 84), 6, 512), "unknown network 'natur'; did you mean 'nature'?"),
        (("nature", (4,), 6, 512), "network 'nature' sees channels × height × width, not 4; choose 'mlp'"),
        (("nature", (4, 10, 10), 6, 512), "observations of 4×10×10 are too small for network 'nature'; choose 'mlp'"),
        (("mlp", (4,), 0, 512), "actions is 0; a network needs at least 1"),
        (("mlp", (4,), 2, 0), "features_dim is 0; a network needs at least 1"),
    ],
)
def test_an_impossible_network_is_an_error(arguments, message):
    with pytest.raises(UserError) as error:
        NetworkSpec(*arguments)
    assert str(error.value) == message


def test_more_actions_than_outputs_are_an_error():
    with pytest.raises(ValueError, match="action counts"):
        init(SPECS["mlp"], [0], [4])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("kind", SPECS)
def test_cuda_gives_the_values_of_the_cpu(kind):
    spec = SPECS[kind]
    observations = batch_of(spec, [0, 1]).observations
    parameters = init(spec, [0, 1], dtype=torch.float64)
    on_cpu = forward(spec, parameters, observations)
    on_cuda = forward(spec, {name: p.cuda() for name, p in parameters.items()}, observations.cuda())
    torch.testing.assert_close(on_cuda.values.cpu(), on_cpu.values, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(on_cuda.features.cpu(), on_cpu.features, rtol=1e-10, atol=1e-10)
