"""What compilers and accelerators ask of an update: one graph, no wait for the device, the numbers of the CPU."""

from functools import partial

import pytest
import torch

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from tests.deep.populations import EVERY_ARM, SPECS, batch_of

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]
SEEDS = list(range(len(EVERY_ARM)))
ALL_OPTIONS = LearnerConfig(
    learning_rate=tuple(1e-3 * (1 + seed) for seed in SEEDS), double_q=True, weight_decay=0.01, max_grad_norm=1.0
)
COUNTS = [1 + seed % 3 for seed in SEEDS]


def every_arm(kind, device, dtype=torch.float64, config=ALL_OPTIONS):
    return Learner(SPECS[kind], config, SEEDS, EVERY_ARM, COUNTS, device=device, dtype=dtype)


def batches(kind, count, device):
    return [batch_of(SPECS[kind], SEEDS, number, actions=COUNTS, device=device) for number in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", ["mlp", "minatar"])
def test_the_update_compiles_to_one_graph_with_the_same_numbers(kind, backend, device):
    torch.compiler.reset()
    eager, compiled = every_arm(kind, device), every_arm(kind, device)
    step = torch.compile(
        partial(update, compiled.objective, compiled.adam, compiled.layout), fullgraph=True, backend=backend
    )
    for batch in batches(kind, 3, device):
        expected = update(eager.objective, eager.adam, eager.layout, eager.state, batch)
        losses = step(compiled.state, batch)
        torch.testing.assert_close(losses.total, expected.total, rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(compiled.state, eager.state, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_a_compiled_update_marks_a_diverged_run_and_leaves_the_others_alone():
    torch.compiler.reset()
    learner = Learner(SPECS["mlp"], LearnerConfig(), [0, 1], [Arm("gram", 0.1)] * 2, dtype=torch.float64)
    step = torch.compile(
        partial(update, learner.objective, learner.adam, learner.layout), fullgraph=True, backend="aot_eager"
    )
    before = learner.state.online.clone()
    batch = batch_of(SPECS["mlp"], [0, 1])
    batch.rewards[1, 0] = torch.nan
    step(learner.state, batch)
    assert learner.diverged_at.tolist() == [-1, 1]
    assert torch.equal(learner.state.online[1], before[1])
    assert not torch.equal(learner.state.online[0], before[0])


@needs_cuda
@pytest.mark.parametrize("kind", SPECS)
def test_cuda_learns_the_weights_of_the_cpu(kind):
    learners = {device: every_arm(kind, device) for device in ("cpu", "cuda")}
    for device, learner in learners.items():
        for batch in batches(kind, 10, device):
            learner.update(batch)
    for on_cpu, on_cuda in zip(*(learner.state for learner in learners.values()), strict=True):
        torch.testing.assert_close(on_cuda.cpu(), on_cpu, rtol=1e-9, atol=1e-9)


@needs_cuda
@pytest.mark.parametrize("kind", SPECS)
def test_neither_update_nor_acting_nor_diagnosing_waits_for_the_device(kind):
    learner = every_arm(kind, "cuda", torch.float32)
    data = batches(kind, 3, "cuda")
    epsilon = torch.full((len(SEEDS),), 0.5, device="cuda")
    learner.update(data[0])  # the first call loads libraries, which may wait
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step, batch in enumerate(data):
            learner.update(batch)
            learner.act(batch.observations, 0.1, step)
            learner.act(batch.observations, epsilon, step)
            learner.diagnose(batch)
        learner.copy_target()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_cuda
def test_a_captured_graph_of_the_update_gives_the_numbers_of_plain_updates():
    plain, captured = every_arm("minatar", "cuda"), every_arm("minatar", "cuda")
    data = batches("minatar", 6, "cuda")
    inputs = data[0].map(torch.clone)
    step = partial(update, captured.objective, captured.adam, captured.layout, captured.state)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for batch in data[:3]:  # warm-up, which counts as training
            step(batch)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        losses = step(inputs)
    for batch in data:
        expected = update(plain.objective, plain.adam, plain.layout, plain.state, batch)
    for batch in data[3:]:
        for field, value in zip(inputs.tensors, batch.tensors, strict=True):
            field.copy_(value)
        graph.replay()
    torch.testing.assert_close(losses.total, expected.total, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(captured.state, plain.state, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
