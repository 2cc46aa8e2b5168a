"""Gradients in closed form against automatic differentiation of the plain penalties."""

from functools import partial
from types import SimpleNamespace

import hypothesis.strategies as st
import pytest
import torch
from functorch.compile import make_boxed_func
from hypothesis import given, settings
from torch._dynamo.backends.common import aot_autograd

from gramian.deep.agent import fused, slopes
from gramian.deep.agent.arms import Arm, Arms
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from gramian.deep.engines.graphs import compile_whole
from tests.deep.populations import CENTRABLE, EVERY_ARM, SPECS, batch_of


def autograd(arms, features, next_features):
    """Penalties times κ and their gradients, by differentiating the plain penalties."""
    here, there = features.clone().requires_grad_(), next_features.clone().requires_grad_()
    penalties = arms.kappas * arms.penalties(here, lambda group: group.select(there))
    slope, next_slope = torch.autograd.grad(penalties.sum(), [here, there], materialize_grads=True)
    return penalties.detach(), slope, next_slope


def closed(arms, features, next_features):
    here, there = features.clone().requires_grad_(), next_features.clone().requires_grad_()
    penalties, sums = arms.stand_ins(here, lambda group: group.select(there))
    slope, next_slope = torch.autograd.grad((arms.kappas * sums).sum(), [here, there], materialize_grads=True)
    return arms.kappas * penalties, slope, next_slope


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
    value, gradient = slopes.CENTRABLE[kind](x, centered=centered)
    expected_value, expected, _ = autograd(arms, x, x)
    # Two nearly equal numbers are subtracted, so the scale of the rounding is that of the larger of them.
    scale = float(4 / samples**2 * (x @ x.mT).norm() * x.norm())
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-13 * scale)
    torch.testing.assert_close(value, expected_value, rtol=1e-12, atol=1e-13 * scale * float(x.norm()))


def test_stand_ins_of_a_mixed_population_have_the_gradients_of_the_penalties():
    arms = Arms([*EVERY_ARM, Arm("gram", 0.0)], dtype=torch.float64)
    here, there = (draw((len(EVERY_ARM) + 1, 6, 4), seed, 0.3).relu() for seed in (0, 1))
    for ours, theirs in zip(closed(arms, here, there), autograd(arms, here, there), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


def test_with_kappa_zero_nothing_is_added():
    infinite = torch.full((2, 6, 4), torch.inf)
    penalties, sums = Arms([Arm("gram", 0.0), Arm("gram", 1.0)]).stand_ins(infinite)
    assert (penalties[0], sums[0]) == (0, 0)
    assert penalties[1].isnan()


def test_the_plain_penalties_keep_their_second_derivatives():
    x = draw((1, 5, 3), 0).requires_grad_()
    arms = Arms([Arm("gram", 1.0)], dtype=torch.float64)
    assert torch.autograd.gradgradcheck(arms.penalties, x)


def test_a_batch_too_small_for_an_unbiased_penalty_is_an_error():
    with pytest.raises(ValueError, match="at least 4"):
        slopes.gram_unbiased(torch.zeros(1, 3, 2), centered=True)


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


needs_the_kernels = pytest.mark.skipif(
    not (fused.AVAILABLE and torch.cuda.is_available()), reason="needs Triton and a GPU"
)


@needs_the_kernels
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize(
    ("runs", "samples", "features"), [(1, 32, 512), (3, 32, 128), (2, 5, 70), (1, 64, 65), (54, 32, 512)]
)
def test_the_kernels_give_the_gradient_of_the_plain_version(runs, samples, features, centered, compiled):
    x = (draw((runs, features, samples), seed=samples) + 0.5).relu().mT  # rows that do not lie together
    plain = slopes.gram(x, centered=centered).gradient  # float64: in several operations
    single = x.float().cuda()
    assert fused.fits(single)
    function = partial(slopes.gram, single, centered=centered)
    ours = (compile_whole(function) if compiled else function)().gradient.cpu()
    assert (ours - plain).norm() < 1e-6 * plain.norm()


@needs_the_kernels
def test_the_kernels_lose_no_digits_to_features_far_from_zero():
    x = (0.01 * draw((1, 32, 512), seed=0) + 100 * draw((1, 1, 512), seed=1)).float()
    plain = slopes.gram(x.double(), centered=True).gradient
    assert (slopes.gram(x.cuda(), centered=True).gradient.cpu() - plain).norm() < 1e-5 * plain.norm()


@needs_the_kernels
@pytest.mark.parametrize("samples", [1, 17, 33, 63])
@pytest.mark.parametrize("runs", [1, 12])
def test_the_kernels_look_at_their_own_samples_alone(runs, samples):
    """Beyond them lie others, and here they are not numbers."""
    around = torch.full((runs, 64, 512), torch.nan, device="cuda")
    x = around[:, :samples, :130]
    x.copy_((draw((runs, samples, 130), seed=samples) + 0.5).relu())
    plain = slopes.gram(x.double().cpu(), centered=True).gradient
    assert (fused.gram_gradient(x, centered=True).cpu() - plain).norm() <= 1e-6 * plain.norm()


@needs_the_kernels
def test_the_kernels_give_the_same_bits_again_and_in_any_population():
    x = (draw((12, 32, 512), seed=0) + 0.5).relu().float().cuda()
    together = fused.gram_gradient(x, centered=True)
    assert torch.equal(fused.gram_gradient(x, centered=True), together)
    assert torch.equal(fused.gram_gradient(x[5:6], centered=True), together[5:6])


def test_the_plain_operation_keeps_the_kind_of_number_where_products_are_rounded(monkeypatch):
    """What a compiler has been told is what it reads."""
    x = (draw((2, 5, 7), seed=0) + 0.5).relu().float()
    exact = fused.plain(x, centered=True)
    monkeypatch.setattr("gramian.penalties.floating", lambda features: features.double())
    assert fused.plain(x, centered=True).dtype == torch.float32
    torch.testing.assert_close(fused.plain(x, centered=True), exact)


@pytest.mark.slow
def test_a_compiled_update_can_hold_the_fused_operation(monkeypatch):
    """The kernels need a GPU; whether an update can be differentiated and compiled around them does not."""
    seeds, arms = [0, 1, 2], [Arm("dqn"), Arm("gram", 0.1), Arm("gram", 0.2, centered=False)]
    batch = batch_of(SPECS["mlp"], seeds, size=16)
    states, calls = [], []
    ask = fused.gram_gradient
    monkeypatch.setattr(fused, "gram_gradient", lambda x, centered: calls.append(centered) or ask(x, centered=centered))
    for fits in (False, True):
        monkeypatch.setattr(fused, "fits", lambda _features, fits=fits: fits)
        learner = Learner(SPECS["mlp"], LearnerConfig(), seeds, arms)

        def learn(learner=learner):
            update(learner.objective, learner.adam, learner.layout, learner.state, batch)

        torch.compile(learn, backend="aot_eager", fullgraph=True, dynamic=False)()
        states.append(learner.state.online)
    assert calls == [True, False]
    torch.testing.assert_close(states[1], states[0])


@pytest.mark.parametrize(
    ("odd", "fits"),
    [
        ({}, True),
        ({"shape": (1, 64, 7)}, True),
        ({"shape": (1, 65, 7)}, False),
        ({"ndim": 2, "shape": (32, 512)}, False),
        ({"dtype": torch.float64}, False),
        ({"is_cuda": False}, False),
    ],
)
def test_the_kernels_take_few_samples_in_single_precision_on_a_gpu(monkeypatch, odd, fits):
    usual = {"is_cuda": True, "ndim": 3, "dtype": torch.float32, "shape": (1, 32, 512)}
    monkeypatch.setattr(fused, "AVAILABLE", True)
    assert fused.fits(SimpleNamespace(**(usual | odd))) is fits
    monkeypatch.setattr(fused, "AVAILABLE", False)
    assert not fused.fits(SimpleNamespace(**(usual | odd)))
