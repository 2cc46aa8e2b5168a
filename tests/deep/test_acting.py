"""Actors on a CPU against the plain forward pass."""

from dataclasses import replace

import pytest
import torch

from gramian.deep.agent.layout import Layout
from gramian.deep.agent.networks import NetworkSpec, forward, init
from gramian.deep.engines import winograd
from gramian.deep.engines.acting import actors
from tests.deep.populations import SPECS

NETWORKS = {**SPECS, "normalised": replace(SPECS["minatar"], layer_norm=True)}


def prepared(spec, runs, envs, dtype=torch.float64):
    layout = Layout(spec)
    generator = torch.Generator().manual_seed(0)
    shape = (runs, envs, *spec.observation_shape)
    observations = torch.randint(0, 2, shape, generator=generator, dtype=torch.uint8)
    return layout, layout.flatten(init(spec, list(range(runs)), dtype=dtype)), observations


@pytest.mark.parametrize("envs", [1, 3])
@pytest.mark.parametrize("spec", NETWORKS.values(), ids=NETWORKS)
def test_actors_see_the_values_of_the_network(spec, envs):
    layout, weights, observations = prepared(spec, runs=3, envs=envs)
    expected = forward(spec, layout.views(weights), observations).values
    torch.testing.assert_close(actors(spec, layout, weights, observations)(), expected, rtol=1e-12, atol=1e-12)


TILED = {
    "nature": NetworkSpec("nature", (2, 62, 62), actions=3, features_dim=128),
    "whole": NetworkSpec("nature", (4, 84, 84), actions=3, features_dim=24),
    "dopamine": NetworkSpec("dopamine", (3, 45, 45), actions=3, features_dim=128),
    "normalised": NetworkSpec("nature", (2, 62, 62), actions=3, features_dim=128, layer_norm=True),
}
"""Pictures that are large enough for tiles."""


@pytest.mark.parametrize("numba", [True, False])
@pytest.mark.parametrize("envs", [1, 2])
@pytest.mark.parametrize("spec", [*TILED.values(), SPECS["nature"], SPECS["dopamine"]])
def test_actors_of_atari_in_float32_see_the_values_of_the_network(spec, envs, numba, monkeypatch):
    if not numba:
        monkeypatch.setattr(winograd, "find_spec", lambda _: None)
    layout, weights, observations = prepared(spec, runs=2, envs=envs, dtype=torch.float32)
    values = actors(spec, layout, weights, 255 * observations)()
    expected = forward(spec, layout.views(weights.double()), 255 * observations).values
    torch.testing.assert_close(values.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spec", TILED.values(), ids=TILED)
def test_actors_of_atari_follow_their_weights_and_observations(spec):
    layout, weights, observations = prepared(spec, runs=2, envs=1, dtype=torch.float32)
    values = actors(spec, layout, weights, observations)
    values()
    weights.mul_(0.5)
    observations.copy_(255 - observations)
    expected = forward(spec, layout.views(weights), observations).values
    torch.testing.assert_close(values(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "minatar"])
def test_actors_follow_their_weights_and_observations(kind):
    spec = SPECS[kind]
    layout, weights, observations = prepared(spec, runs=2, envs=1)
    values = actors(spec, layout, weights, observations)
    values()
    weights.mul_(0.5)
    observations.copy_(1 - observations)
    torch.testing.assert_close(values(), forward(spec, layout.views(weights), observations).values)


@pytest.mark.parametrize(
    "spec", [replace(SPECS["mlp"], features_dim=128), replace(SPECS["minatar"], features_dim=128), TILED["nature"]]
)
def test_a_run_sees_the_same_values_to_the_bit_alone_and_among_others(spec):
    layout, weights, observations = prepared(spec, runs=5, envs=1, dtype=torch.float32)
    together = actors(spec, layout, weights, observations)()
    for run in range(5):
        own = slice(run, run + 1)
        assert torch.equal(actors(spec, layout, weights[own], observations[own])(), together[own])
