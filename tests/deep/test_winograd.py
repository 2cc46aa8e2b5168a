"""Convolutions with few products, and updates with them, against direct ones in float64."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.engines import winograd
from gramian.deep.engines.halves import HalvedUpdate
from gramian.deep.engines.rounding import RoundedUpdate
from gramian.deep.engines.winograd import Convolution, cells, filter_matrix, tiled
from gramian.deep.engines.winograd_update import WinogradUpdate
from tests.deep.populations import EVERY_ARM, SPECS, alone_and_among_others, batch_of, update_in_threads

SMALL = {
    "nature": NetworkSpec("nature", (2, 62, 62), actions=3, features_dim=8),
    "dopamine": NetworkSpec("dopamine", (3, 45, 45), actions=3, features_dim=8),
}
"""The least pictures, or nearly, that have tiles."""
ATARI = {kind: NetworkSpec(kind, (4, 84, 84), actions=6, features_dim=512) for kind in SMALL}


@st.composite
def layers(draw):
    """A convolution that is not the first, with weights, biases, images and the gradient of its outputs."""
    taps, stride = draw(st.sampled_from([2, 3])), draw(st.sampled_from([1, 2]))
    filters, channels = draw(st.sampled_from([16, 32, 48])), draw(st.sampled_from([16, 32]))
    outputs = draw(st.integers(3 if taps == 2 else 4, 14))
    margin = draw(st.sampled_from([(0, 0), (1, 2), (1, 1)]))
    convolution = Convolution(
        "body.conv2", (filters, channels, taps * stride, taps * stride), stride, outputs, margin, first=False
    )
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    size, side = draw(st.integers(0, 5)), (outputs + taps - 1) * stride
    weight = torch.randn(filters, channels, taps * stride, taps * stride, generator=generator)
    bias = torch.randn(filters, generator=generator)
    images = torch.randn(size, side, side, channels, generator=generator)
    slopes = torch.randn(size, *[outputs + sum(margin)] * 2, filters, generator=generator)
    return convolution, weight, bias, images, slopes, margin


def evaluated(convolution, weight):
    filters, transposed = convolution.empty_filters(), convolution.empty_transposed()
    convolution.evaluate_filters(weight, filters)
    convolution.evaluate_filters(weight, transposed, transposed=True)
    return filters, transposed


def far(ours, theirs):
    """How far two tensors are apart, relative to the second."""
    return (torch.linalg.vector_norm(ours - theirs) / torch.linalg.vector_norm(theirs).clamp_min(1e-12)).item()


@settings(deadline=None, max_examples=80)
@given(layers(), st.sampled_from([1, 2**15, 2**21]))
def test_convolutions_are_those_of_torch_forwards_and_backwards(layer, room_bytes):
    convolution, weight, bias, images, slopes, (before, after) = layer
    leaves = [x.double().requires_grad_() for x in (images.permute(0, 3, 1, 2), weight, bias)]
    expected = functional.conv2d(*leaves, convolution.stride).relu()
    inner = slice(before, before + convolution.outputs)
    expected.backward(slopes[:, inner, inner].permute(0, 3, 1, 2).double())

    flat, (filters, transposed) = images.flatten(2), evaluated(convolution, weight)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd, "ROOM_BYTES", room_bytes)  # of which a single image may need more
        outputs = convolution.forward(flat, filters, bias)
        below, (filter_slopes, bias_slopes) = convolution.backward(flat, outputs, slopes.flatten(2), transposed)
    weight_slopes = torch.full_like(weight, torch.nan)
    share = torch.randn(filter_slopes.shape)
    convolution.evaluate_filters_back(filter_slopes - share, share, weight_slopes)

    framed = functional.pad(expected.detach(), [before, after] * 2).permute(0, 2, 3, 1)
    assert far(outputs.view(framed.shape), framed) < 2e-5
    # where an output is so close to zero that rounding decides, its slope passes here and not there
    if torch.equal(outputs.view(framed.shape) > 0, framed > 0):
        mine = below.view(images.shape).permute(0, 3, 1, 2), weight_slopes, bias_slopes
        for ours, leaf in zip(mine, leaves, strict=True):
            assert far(ours, leaf.grad) < 2e-5


def test_a_tile_is_what_the_definition_says():
    """Bᵀ and A from the points, not from the kernels' formulas: y = Aᵀ[(Gg) ∘ (Bᵀd)] is a convolution."""
    generator = np.random.default_rng(0)
    for count, taps in ((4, 2), (6, 2), (6, 3)):
        points, outputs = winograd.POINTS[count], count + 1 - taps
        everything = np.poly(points)[::-1]
        rows = [np.append(np.poly([p for p in points if p != point])[::-1], 0) for point in points]
        evaluate = np.array([*rows, everything])
        interpolate = np.array(
            [[float(point) ** k for point in points] + [float(k == outputs - 1)] for k in range(outputs)]
        )
        d, g = generator.normal(size=count), generator.normal(size=taps)
        expected, matrix = np.convolve(d, g[::-1], "valid"), filter_matrix(taps, count)
        np.testing.assert_allclose(interpolate @ ((matrix @ g) * (evaluate @ d)), expected, rtol=1e-12)


@pytest.mark.parametrize("spec", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_cells_have_the_pixels_that_a_filter_sees(spec, dtype):
    pictures = torch.randint(0, 256, (3, *spec.observation_shape), dtype=torch.uint8).to(dtype)
    first = tiled(spec)[0]
    seen = cells(spec, pictures).view(3, first.outputs + 1, first.outputs + 1, spec.observation_shape[0], 4, 4)
    padded = spec.padded(pictures, 8, 4)
    for y, x in ((0, 0), (2, 5), (first.outputs, first.outputs)):
        assert torch.equal(seen[:, y, x], padded[:, :, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4].to(seen.dtype))


def gradients(update, spec, config, arm, size, dtype):
    """Of a first update: Adam's mean is a tenth of them then."""
    learner = Learner(spec, config, [0], [arm], dtype=dtype)
    run = update(0, learner.objective, learner.adam, learner.layout, learner.state)
    run.update(batch_of(spec, [0], size=size), 1)
    return {name: row[0].double() for name, row in learner.layout.views(learner.state.mean).items()}


@pytest.mark.parametrize("size", [1, 2, 5, 32])
@pytest.mark.parametrize("spec", SMALL.values(), ids=SMALL)
def test_batches_of_any_size_have_the_gradients_of_float64(spec, size):
    apart = []
    for arm in (Arm("dqn"), Arm("l2", 0.3), Arm("dr3", 0.2), *([Arm("gram", 0.1)] if size > 1 else [])):
        for config in (LearnerConfig(), LearnerConfig(double_q=True)):
            expected = gradients(HalvedUpdate, spec, config, arm, size, torch.float64)
            ours = gradients(WinogradUpdate, spec, config, arm, size, torch.float32)
            apart += [far(ours[name], expected[name]) for name in expected]
    # Rounding may turn a rectifier over here or there, which in a small batch may be worth 1e-2.
    assert np.median(apart) < 5e-6
    assert max(apart) < 2e-2


@pytest.mark.parametrize("spec", ATARI.values(), ids=ATARI)
def test_atari_s_gradients_are_as_close_to_float64_as_rectifiers_let_them(spec):
    expected = gradients(HalvedUpdate, spec, LearnerConfig(), Arm("gram", 0.1), 32, torch.float64)
    for name, ours in gradients(WinogradUpdate, spec, LearnerConfig(), Arm("gram", 0.1), 32, torch.float32).items():
        # of 32 samples a rectifier that rounding turns over is worth some 1e-5; without one it is 1e-6
        assert far(ours, expected[name]) < 2e-4, name


def test_several_updates_stay_close_to_direct_ones_also_after_the_target_has_changed():
    spec, learners, losses = SMALL["nature"], [], []
    for update in (HalvedUpdate, WinogradUpdate):
        learner = Learner(spec, LearnerConfig(), [0], [Arm("gram", 0.1)])
        learner.run_updates[:] = [update(0, learner.objective, learner.adam, learner.layout, learner.state)]
        for number in range(5):
            if number == 3:
                learner.state.target.mul_(-2)
            losses.append(learner.update(batch_of(spec, [0], number, size=16)).total.item())
        learners.append(learner)
    direct, ours = (learner.state.online for learner in learners)
    assert far(ours, direct) < 1e-5
    np.testing.assert_allclose(losses[5:], losses[:5], rtol=1e-5)


@pytest.mark.parametrize("workers", [2, 3])
def test_halves_in_threads_give_the_same_bits(workers):
    spec, seeds = SMALL["nature"], list(range(3))
    arms = [Arm("dqn"), Arm("gram", 0.1), Arm("dr3", 0.2)]
    in_turn, threaded = (Learner(spec, LearnerConfig(target_period_updates=2), seeds, arms) for _ in range(2))
    assert all(type(run) is WinogradUpdate for run in threaded.run_updates)
    with ThreadPoolExecutor(workers) as threads:
        for number in range(1, 5):
            batch = batch_of(spec, seeds, number, size=17)
            in_turn.update(batch)
            update_in_threads(threaded, batch, number, threads, workers)
    for name, tensor in in_turn.state_dict().items():
        assert torch.equal(threaded.state_dict()[name], tensor), name


@pytest.mark.parametrize("spec", SMALL.values(), ids=SMALL)
def test_a_run_is_updated_to_the_same_bits_alone_and_among_others(spec):
    for alone, among_others in alone_and_among_others(spec, LearnerConfig(), EVERY_ARM[:4], updates=3, size=16):
        assert torch.equal(alone, among_others)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_is_not_rectified_away(bad):
    convolution = Convolution("body.conv3", (16, 16, 3, 3), 1, 4, (0, 0), first=False)
    images = torch.ones(1, 6, 6 * 16)
    images[0, 3, 20] = bad
    outputs = convolution.forward(images, evaluated(convolution, torch.ones(16, 16, 3, 3))[0], torch.zeros(16))
    assert not outputs.isfinite().all()


def test_a_run_that_diverges_is_marked_and_left_as_it_was():
    spec = SMALL["nature"]
    learner = Learner(spec, LearnerConfig(), [0], [Arm("dqn")])
    with torch.no_grad():
        learner.layout.views(learner.state.online)["body.conv2.weight"].fill_(3e38)
    before = learner.state.online.clone()
    learner.update(batch_of(spec, [0], size=8))
    assert learner.state.diverged_at.tolist() == [1]
    assert torch.equal(learner.state.online, before)


@pytest.mark.parametrize(
    ("spec", "config", "dtype", "expected"),
    [
        (ATARI["nature"], LearnerConfig(), torch.float32, WinogradUpdate),
        (ATARI["dopamine"], LearnerConfig(), torch.float32, WinogradUpdate),
        (ATARI["nature"], LearnerConfig(bf16=True), torch.float32, RoundedUpdate),
        (ATARI["nature"], LearnerConfig(), torch.float64, HalvedUpdate),
        (SPECS["nature"], LearnerConfig(), torch.float32, HalvedUpdate),
        (NetworkSpec("nature", (4, 84, 96), actions=6, features_dim=8), LearnerConfig(), torch.float32, HalvedUpdate),
    ],
)
def test_float32_with_square_pictures_that_have_tiles_is_updated_so(spec, config, dtype, expected):
    (run,) = Learner(spec, config, [0], [Arm("dqn")], dtype=dtype).run_updates
    assert type(run) is expected


def test_without_numba_convolutions_are_torch_s(monkeypatch):
    monkeypatch.setattr(winograd, "find_spec", lambda _: None)
    (run,) = Learner(ATARI["nature"], LearnerConfig(), [0], [Arm("dqn")]).run_updates
    assert type(run) is HalvedUpdate
