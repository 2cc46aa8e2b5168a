"""Engines: how the steps of a population are executed. `make_engine` chooses one; its users do not know which."""

from importlib.util import find_spec
from typing import Literal

import torch

from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.deep.agent.heads import Head
from gramian.deep.agent.learner import Learner
from gramian.deep.choices import Execution
from gramian.deep.engines.cuda import CudaEngine, HostReplayEngine
from gramian.deep.engines.engine import Engine
from gramian.deep.engines.graphs import compare, pick_execution
from gramian.deep.engines.plain import PlainEngine
from gramian.deep.envs.observations import FrameStack, ObservationSpec
from gramian.deep.replay import Exponents, HostReplay, Replay

__all__ = ["Engine", "compare", "make_engine", "pick_execution"]

_MOST_GATHERING = 4
"""Most threads that gather a batch from a replay on the host, beside a GPU."""
_LARGEST_SIDE = 256
"""Rows and columns of a picture that the kernels of MinAtar can number."""


def make_engine(
    learner: Learner,
    observation: ObservationSpec,
    envs_per_run: int,
    *,
    capacity: int,
    batch_size: int,
    n_step: int = 1,
    gamma: float = 0.99,
    exponents: Exponents | None = None,
    replay_device: torch.device | str | None = None,
    execution: Execution | Literal["auto"] = "auto",
    parts: tuple[slice, ...] = (),
) -> Engine:
    """The engine of a population on its learner's device, with an empty replay there or on ``replay_device``.

    ``capacity``, ``n_step``, ``gamma`` and ``exponents`` are those of `Replay`. The runs of each part act together, by
    default all of them. ``execution`` says how work reaches a GPU, see `gramian.deep.engines.graphs`.
    """
    device = learner.seeds.device
    place = device if replay_device is None else torch.device(replay_device)
    how = pick_execution(execution, device)
    runs = len(learner.seeds)
    sizes = observation, runs, envs_per_run, capacity
    replay: Replay
    on_gpu: type[CudaEngine]
    if place.type == "cpu":
        # a learner on the CPU needs every core itself
        beside_gpu = device.type == "cuda"
        gathering = min(cores(), _MOST_GATHERING) if beside_gpu else 1
        on_gpu = HostReplayEngine
        replay = HostReplay(
            *sizes, n_step=n_step, gamma=gamma, exponents=exponents, pinned=beside_gpu, threads=gathering
        )
    elif device.type == "cpu":
        raise UserError("a learner on the CPU has its replay there too; omit --replay-device")
    else:
        on_gpu = CudaEngine
        replay = Replay(*sizes, n_step=n_step, gamma=gamma, exponents=exponents, device=place)
    stack = FrameStack(observation, (runs, envs_per_run), device)
    if how != "eager":
        return on_gpu(learner, replay, stack, batch_size, parts, compiled=how == "compiled")
    on_cores = min(cores(), runs) if device.type == "cpu" and cores() > 1 else 0
    if _has_kernels(learner) and not replay.prioritized:
        from gramian.deep.engines.minatar import MinAtarEngine  # numba comes with it

        return MinAtarEngine(learner, replay, stack, batch_size, parts, threads=on_cores)
    threads = on_cores if learner.spec.sees_pictures else 0
    engine = PlainEngine(learner, replay, stack, batch_size, parts, threads=threads)
    if learner.spec.kind == "minatar" and device.type == "cpu":
        engine.remark = "MinAtar learns in torch: the faster kernels are for float32, plain DQN and uniform replay"
    return engine


def _has_kernels(learner: Learner) -> bool:
    """Whether there are kernels for the network; MinAtar is not played without numba, but can be learned from files."""
    spec, online = learner.spec, learner.state.online
    return (
        spec.kind == "minatar"
        and not spec.layer_norm
        and spec.head == Head()
        and max(spec.observation_shape[1:]) <= _LARGEST_SIDE
        and online.device.type == "cpu"
        and online.dtype == torch.float32
        and find_spec("numba") is not None
    )
