"""Gradients in closed form against automatic differentiation of the plain penalties."""

import hypothesis.strategies as st
import pytest
import torch
from functorch.compile import make_boxed_func
from hypothesis import given, settings
from torch._dynamo.backends.common import aot_autograd

from gramian.deep.agent import penalty_gradients
from gramian.deep.agent.arms import Arm, Arms
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from tests.deep.populations import CENTRABLE, EVERY_ARM, SPECS, batch_of


def autograd(arms, features, next_features):
    """Penalties times κ and their gradients, by differentiating the plain penalties."""
    here, there = features.clone().requires_grad_(), next_features.clone().requires_grad_()
    penalties = arms.kappas * arms.penalties(here, lambda group: group.select(there))
    gradient, next_gradient = torch.autograd.grad(penalties.sum(), [here, there], materialize_grads=True)
    return penalties.detach(), gradient, next_gradient


def closed(arms, features, next_features):
    here, there = features.clone().requires_grad_(), next_features.clone().requires_grad_()
    penalties, sums = arms.surrogates(here, lambda group: group.select(there))
    gradient, next_gradient = torch.autograd.grad((arms.kappas * sums).sum(), [here, there], materialize_grads=True)
    return arms.kappas * penalties, gradient, next_gradient


def draw(shape, seed, shift=0.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64) + shift


@pytest.mark.parametrize("kind", CENTRABLE)
@settings(max_examples=25, deadline=None)
@given(
    samples=st.integers(4, 40),
    features=st.integers(2, 40),
    centered=st.booleans(),
    seed=st.integers(0, 2**31),
    shift=st.floats(-3, 3),
)
def test_a_closed_form_is_the_gradient_of_the_plain_penalty(kind, samples, features, centered, seed, shift):
    arms = Arms([Arm(kind, 1.0, centered)], dtype=torch.float64)
    x = draw((1, samples, features), seed, shift)
    value, gradient = penalty_gradients.CLOSED_FORMS[kind](x, centered=centered)
    expected_value, expected, _ = autograd(arms, x, x)
    # Two nearly equal numbers are subtracted, so the scale of the rounding is that of the larger of them.
    scale = float(4 / samples**2 * (x @ x.mT).norm() * x.norm())
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-13 * scale)
    torch.testing.assert_close(value, expected_value, rtol=1e-12, atol=1e-13 * scale * float(x.norm()))


def test_surrogates_of_a_mixed_population_have_the_gradients_of_the_penalties():
    arms = Arms([*EVERY_ARM, Arm("gram", 0.0)], dtype=torch.float64)
    here, there = (draw((len(EVERY_ARM) + 1, 6, 4), seed, 0.3).relu() for seed in (0, 1))
    for ours, theirs in zip(closed(arms, here, there), autograd(arms, here, there), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


def test_with_kappa_zero_nothing_is_added():
    infinite = torch.full((2, 6, 4), torch.inf)
    penalties, sums = Arms([Arm("gram", 0.0), Arm("gram", 1.0)]).surrogates(infinite)
    assert (penalties[0], sums[0]) == (0, 0)
    assert penalties[1].isnan()


def test_the_plain_penalties_keep_their_second_derivatives():
    x = draw((1, 5, 3), 0).requires_grad_()
    arms = Arms([Arm("gram", 1.0)], dtype=torch.float64)
    assert torch.autograd.gradgradcheck(arms.penalties, x)


def test_a_batch_too_small_for_an_unbiased_penalty_is_an_error():
    with pytest.raises(ValueError, match="at least 4"):
        penalty_gradients.gram_unbiased(torch.zeros(1, 3, 2), centered=True)


def matrix_products(arm):
    """How many matrix products a compiled update has, once what nobody reads is left out."""
    learner = Learner(SPECS["mlp"], LearnerConfig(), [0], [arm])
    batch = batch_of(SPECS["mlp"], [0])
    found = []

    def count(graph, _):
        graph.graph.eliminate_dead_code()
        found.extend(
            node for node in graph.graph.nodes if str(node.target).split(".")[1:2] in (["mm"], ["bmm"], ["addmm"])
        )
        return make_boxed_func(graph.forward)

    def learn():
        update(learner.objective, learner.adam, learner.layout, learner.state, batch)

    torch.compile(learn, backend=aot_autograd(fw_compiler=count), fullgraph=True)()
    return len(found)


@pytest.mark.slow
def test_the_gram_penalty_adds_two_matrix_products_to_a_compiled_update():
    assert matrix_products(Arm("gram", 0.1)) == matrix_products(Arm("dqn")) + 2
