"""CUDA graphs: work that is the same at every step, recorded once and launched as a whole.

The functions recorded here take no arguments: they read and write tensors that stay where they are. Compiled and
recorded, an update of a population is one launch instead of some hundred.
"""

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from gramian.core.errors import unknown
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.heads import Head
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.choices import Execution

WARM_UP = 3
"""Calls before a recording: the first ones compile and load libraries, which cannot be recorded."""


def pick_execution(name: Execution | Literal["auto"], device: torch.device) -> Execution:
    """How to execute on ``device``; ``auto`` is ``compiled`` on CUDA and ``eager`` on the CPU."""
    choices = get_args(Execution) if device.type == "cuda" else ("eager",)
    if name == "auto":
        return "compiled" if device.type == "cuda" else "eager"
    if name not in choices:
        raise unknown(f"execution on {device.type}:", name, ("auto", *choices))
    return name


def compiler_options(*, tuned: bool) -> dict[str, str | int | bool | Callable[..., object]]:
    """Options of inductor: compiled in this process; block sizes are tried where it is to be ``tuned``."""
    # With more threads inductor waits for a pool of processes, and that without a limit.
    return {"compile_threads": 1} if tuned else {"compile_threads": 1, "triton.autotune_pointwise": False}


def compile_whole(function: Callable[[], object], *, tuned: bool = True) -> Callable[[], object]:
    """``function`` compiled as one graph, beside all that was compiled before.

    Where it is ``tuned``, the compiler tries which size of block is fastest. It copies what a kernel changes for that,
    which must not be done to a replay that fills the GPU.

    Dynamo keeps what it has compiled with the code of a function, and with the same code refuses a ninth graph. Who
    trains one population after another would come to that: their functions are the same, and the tensors in them are
    others. So every graph has code of its own, which goes when the graph goes.
    """

    def whole() -> object:
        return function()

    whole.__code__ = whole.__code__.replace()  # a copy
    return torch.compile(whole, fullgraph=True, dynamic=False, options=compiler_options(tuned=tuned))


def record(
    function: Callable[[], object], changed: Sequence[Tensor], stream: torch.cuda.Stream, *, compiled: bool
) -> Callable[[], None]:
    """Record ``function`` as a CUDA graph on ``stream``; calling the result launches it on the current stream.

    Parameters
    ----------
    function
        Reads and writes tensors that stay where they are, and waits for nothing.
    changed
        The tensors that it changes, as far as anybody minds: they are put back, since a recording takes a few calls.
    compiled
        Compile the function first. Its operations are fused then, and rounded a little differently.
    """
    work = compile_whole(function) if compiled else function
    before = [tensor.clone() for tensor in changed]
    stream.wait_stream(torch.cuda.current_stream(stream.device))
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            work()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()
    for tensor, saved in zip(changed, before, strict=True):
        tensor.copy_(saved)
    torch.cuda.synchronize(stream.device)
    return graph.replay


def compare(
    device: torch.device,
    updates: int = 10,
    execution: Execution = "compiled",
    head: Head = Head(),  # noqa: B008 - it is frozen
    *,
    double_q: bool = False,
) -> float:
    """How far the weights of graphed updates are from those of eager ones: the largest relative difference.

    Three runs with the network of Atari learn from the same random batches, once in each way, without TF32. The
    difference of a parameter is ‖graphed - eager‖ / ‖eager‖.
    """
    arms = [Arm("dqn"), Arm("gram", 0.1), Arm("decor", 0.1)]
    spec = NetworkSpec("nature", (4, 84, 84), actions=6, features_dim=512, head=head)
    config = LearnerConfig(double_q=double_q)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        eager, graphed = (Learner(spec, config, [0, 1, 2], arms, device=device) for _ in range(2))
        batch = random_batch(spec, len(arms), device, number=0, weighted=True)
        launch = record(
            lambda: update(graphed.objective, graphed.adam, graphed.layout, graphed.state, batch),
            graphed.state,
            torch.cuda.Stream(device),
            compiled=execution == "compiled",
        )
        for number in range(updates):
            fresh = random_batch(spec, len(arms), device, number, weighted=True)
            for place, values in zip(batch.tensors, fresh.tensors, strict=True):
                place.copy_(values)
            eager.update(batch)
            launch()
            graphed.count_update()
        ours, theirs = (learner.layout.views(learner.state.online) for learner in (graphed, eager))
        differences = [(ours[name] - theirs[name]).norm() / theirs[name].norm() for name in theirs]
        return float(torch.stack(differences).max())
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def random_batch(spec: NetworkSpec, runs: int, device: torch.device, number: int, *, weighted: bool = False) -> Batch:
    """A batch of 32 that is a function of ``number``; pixels at random, so of frames alone."""
    generator = torch.Generator().manual_seed(number)
    shape = (runs, 32)
    looks = [torch.randint(0, 256, (*shape, *spec.observation_shape), generator=generator) for _ in range(2)]
    batch = Batch(
        observations=looks[0].to(torch.uint8),
        actions=torch.randint(0, spec.actions, shape, generator=generator),
        rewards=torch.randint(-1, 2, shape, generator=generator).float(),
        discounts=torch.full(shape, 0.99),
        next_observations=looks[1].to(torch.uint8),
        weights=torch.rand(shape, generator=generator) if weighted else None,
    )
    return batch.map(lambda field: field.to(device))
