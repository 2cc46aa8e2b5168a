"""The probe on models that know nothing of it."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from gramian.core.errors import UserError
from gramian.representation import measures, probe


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))


def test_the_measures_are_those_of_the_layers_output_whatever_the_batch_size():
    model, states = network(), torch.randn(50, 4)
    features = model[1](model[0](states)).detach()
    for size in (7, 50, 1000):
        result = probe(model, states, layer="1", batch_size=size)
        assert result.measures["states"] == 50
        assert result.measures["effective_rank"] == pytest.approx(measures.effective_rank(features), rel=1e-9)
        torch.testing.assert_close(result.statistics.correlation(), measures.correlation(features), equal_nan=True)


def test_a_layer_may_be_given_itself():
    model = network()
    states = torch.randn(20, 4)
    assert probe(model, states, layer=model[1]).measures == pytest.approx(
        probe(model, states, layer="1").measures, nan_ok=True
    )


def test_successors_give_dr3s_product():
    model, states, following = network(), torch.randn(20, 4), torch.randn(20, 4)
    body = model[:2]
    expected = measures.dr3_dot(body(states).detach(), body(following).detach())
    result = probe(model, states, layer="1", next_observations=following, batch_size=6)
    assert result.measures["dr3_dot"] == pytest.approx(expected)


def test_the_model_is_left_as_it_was():
    model = network()
    model[0].eval()
    before = [part.training for part in model.modules()]
    probe(model, torch.randn(5, 4), layer="1")
    with pytest.raises(RuntimeError):
        probe(model, torch.randn(5, 3), layer="1")
    assert [part.training for part in model.modules()] == before
    assert not model[1]._forward_hooks


def test_a_layer_that_is_changed_in_place_afterwards_is_seen_as_it_was():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True))
    result = probe(model, torch.randn(30, 4), layer="0")
    assert result.measures["sparsity"] == 0


def test_convolutional_outputs_are_flattened():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    assert probe(model, torch.randn(9, 1, 4, 4), layer="0").statistics.features_dim == 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numpy_observations_are_taken_in_either_precision(dtype):
    states = np.random.default_rng(0).normal(size=(10, 4)).astype(dtype)
    assert probe(network(), states, layer="1").measures["states"] == 10


class Named(nn.Module):
    """A model of dict observations, in the manner of CleanRL without a forward where asked."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Linear(8, 2)

    def get_value(self, observations):
        x = torch.cat([observations["near"], observations["far"]], 1)
        return self.head(torch.relu(self.body(x)))


class Called(Named):
    def forward(self, observations):
        return self.get_value(observations)


NAMED = {"near": np.random.default_rng(0).normal(size=(30, 2)), "far": torch.randn(30, 3).double()}


def test_dict_observations_and_what_goes_into_a_layer():
    model = Called()
    result = probe(model, NAMED, layer="head", on="input", batch_size=7)
    x = torch.cat([torch.as_tensor(NAMED["near"]), NAMED["far"]], 1).float()
    assert result.statistics.features_dim == 8
    expected = float(measures.sparsity(torch.relu(model.body(x)), [0]))
    assert result.measures["sparsity"] == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match=r"differ in their number of states: \{'near': 30, 'far': 2\}"):
        probe(model, NAMED | {"far": torch.zeros(2, 3)}, layer="head")


def test_a_class_without_forward_is_called_by_the_one_that_is_given():
    model = Named()
    assert probe(model, NAMED, layer="head", on="input", forward=model.get_value).measures["states"] == 30
    with pytest.raises(TypeError, match="Named has no forward; say how to call it: forward="):
        probe(model, NAMED, layer="head")


def test_the_random_state_is_the_same_after_a_probe():
    model = network()
    before = torch.get_rng_state()
    probe(model, torch.zeros(5, 4), layer="1", forward=lambda states: model(states + torch.rand(5, 4)))
    assert torch.equal(torch.get_rng_state(), before)


def test_only_what_was_asked_for_is_measured():
    states = torch.randn(20, 4)
    assert "dr3_dot" not in probe(network(), states, layer="1").measures
    assert not any(math.isnan(value) for value in probe(network(), states, layer="1").measures.values())
    assert list(probe(network(), states, layer="1", measures=["srank"]).measures) == ["srank"]


class Idle(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.idle = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        return self.used(x)


@pytest.mark.parametrize(
    ("model", "observations", "layer", "error", "message"),
    [
        (nn.ModuleDict({"features": nn.Linear(4, 2)}), (2, 4), "feature", UserError, "did you mean 'features'"),
        (network(), (2, 4), nn.ReLU(), ValueError, "not a module of"),
        (Idle(), (2, 4), "idle", ValueError, "'idle' was called 0 times"),
        (nn.Sequential(nn.LSTM(4, 3)), (2, 5, 4), "0", TypeError, "puts out a tuple"),
        (network(), (0, 4), "1", ValueError, "no observations"),
    ],
)
def test_what_cannot_be_probed_is_refused(model, observations, layer, error, message):
    with pytest.raises(error, match=message):
        probe(model, torch.zeros(*observations), layer=layer)


def test_a_model_with_nan_weights_gives_nan_and_no_crash():
    model = network()
    nn.init.constant_(model[0].weight, torch.nan)
    result = probe(model, torch.zeros(4, 4), layer="1")
    assert result.measures["nonfinite_share"] == 1


def test_bfloat16_models_are_measured_in_float64():
    model = network().bfloat16()
    states = torch.randn(16, 4).bfloat16()
    features = model[1](model[0](states)).detach()
    assert probe(model, states, layer="1").measures["feature_norm"] == pytest.approx(measures.feature_norm(features))
