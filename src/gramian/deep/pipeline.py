"""What a population does at every step, on the host or on a GPU, in an order that never depends on who is faster.

The environments carry out their actions while the learner learns, and the next actions must not wait for it. So the
actors have weights of their own, and a step is, in this order:

1. `act`: actions from the actors' weights; the environments begin to carry them out;
2. where an update has fallen due by the transitions so far, `draw`: the actors get the weights after the *last* update,
   and a batch is drawn from what the replay holds at that moment; and `learn`: the online weights are updated on that
   batch, while the environments, and the next steps, go on;
3. when the environments are done, `observe`: what came of it goes into the replay.

With an update in every four steps, the actions of four steps in a row are thus chosen with weights that lack the two
newest updates at the first of them and the newest one at the other three, where an agent that does one thing after the
other would lack none. Nothing else is different, and on the host the same happens in the same order: a run is the same
run everywhere.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.deep.batch import Batch
from gramian.deep.environments import cores
from gramian.deep.graphs import Execution, record
from gramian.deep.host_replay import HostReplay
from gramian.deep.learner import Learner, update
from gramian.deep.networks import by_run, forward_run
from gramian.deep.observations import FrameStack
from gramian.deep.replay import Replay
from gramian.deep.streams import Stream, bits, further, integers, uniform

_ALIGNMENT = 64
"""Bytes to whose multiples the fields of a transition are aligned."""


class Transition:
    """One step of all environments on its way to the replay: fields ``[P, E, …]`` that share one piece of memory.

    Attributes
    ----------
    memory
        Bytes, so that one copy moves all fields.
    fields
        By the names of the arguments of `Replay.add`, but for ``final_frames``.
    final_frames
        Apart, since they are rarely needed.
    """

    def __init__(self, stack: FrameStack, device: torch.device | str = "cpu", *, pinned: bool = False) -> None:
        environments, frame, dtype = stack.environments, stack.spec.frame_shape, stack.spec.torch_dtype
        kinds = {
            "actions": ((), torch.int64),
            "rewards": ((), torch.float32),
            "terminal": ((), torch.bool),
            "truncated": ((), torch.bool),
            "started": ((), torch.bool),
            "frames": (frame, dtype),
        }
        count = math.prod(environments)
        sizes = [count * math.prod(shape) * kind.itemsize for shape, kind in kinds.values()]
        ends = np.cumsum([-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]).tolist()
        self.memory = torch.zeros(ends[-1], dtype=torch.uint8, device=device, pin_memory=pinned)
        self.fields = {
            name: self.memory[begin : begin + size].view(kind).view(*environments, *shape)
            for (name, (shape, kind)), begin, size in zip(kinds.items(), [0, *ends], sizes, strict=False)
        }
        self.final_frames = torch.zeros(*environments, *frame, dtype=dtype, device=device, pin_memory=pinned)
        self._arrays = [] if self.memory.is_cuda else [field.numpy() for field in self.fields.values()]

    def fill(
        self,
        actions: NDArray[np.int64],
        rewards: NDArray[np.float32],
        terminal: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        started: NDArray[np.bool_],
        frames: NDArray[np.generic],
        final_frames: NDArray[np.generic],
    ) -> bool:
        """Take the host's arrays in; says whether there are final frames among them."""
        given = (actions, rewards, terminal, truncated, started, frames)
        for place, array in zip(self._arrays, given, strict=True):
            place[...] = array
        if cut := bool(truncated.any()):
            self.final_frames.numpy()[...] = final_frames
        return cut


class Pipeline(ABC):
    """The device's side of a population: replay, what the actors see, and the learner.

    Parameters
    ----------
    learner, replay, stack
        Of one population; the learner and the stack are on one device.
    seeds
        Of the runs.
    batch_size
        B.
    """

    def __init__(self, learner: Learner, replay: Replay, stack: FrameStack, seeds: list[int], batch_size: int) -> None:
        self.learner, self.replay, self.stack = learner, replay, stack
        self.batch_size = batch_size
        self.acting = learner.state.online.clone()
        """Weights that the actors use, ``[P, N]``."""
        self.seeds = torch.tensor(seeds, dtype=torch.int64, device=replay.device)
        self._transition = Transition(stack, pinned=stack.frames.is_cuda)

    @abstractmethod
    def act(self, epsilon: float, agent_step: int) -> NDArray[np.int64]:
        """ε-greedy actions ``[P, E]`` in the current observations."""

    def observe(self, **outcome: NDArray[Any]) -> None:
        """Take in what the actions led to (`Transition.fill`): into the replay, and as what the actors see next."""
        self._observe(with_finals=self._transition.fill(**outcome))

    @abstractmethod
    def draw(self) -> None:
        """Hand the actors the newest weights, and draw the batch of the next update."""

    @abstractmethod
    def learn(self) -> None:
        """Update the online weights on the batch drawn."""

    @abstractmethod
    def _observe(self, *, with_finals: bool) -> None:
        """Take the host's transition in."""

    def at_work(self) -> AbstractContextManager[object]:
        """The context in which `act`, `observe` and `draw` are called, to be entered once for a step."""
        return nullcontext()

    @property
    @abstractmethod
    def updates(self) -> int:
        """Updates of each run, those under way included."""

    def close(self) -> None:
        """Wait for what is under way; nothing is begun any more."""
        self.settle()

    @abstractmethod
    def settle(self) -> None:
        """Wait until all that was begun is done, so that the tensors can be read and replaced."""

    def begin(self, frames: NDArray[np.generic], started: NDArray[np.bool_]) -> None:
        """Take the first frames of all games."""
        self.replay.begin(torch.from_numpy(frames).to(self.replay.device))
        self.stack.push(
            torch.from_numpy(frames).to(self.stack.frames.device),
            torch.from_numpy(started).to(self.stack.frames.device),
        )
        self.settle()


class HostPipeline(Pipeline):
    """A population on the CPU. With Atari's network and a second core, the learner has a thread of its own."""

    def __init__(
        self, learner: Learner, replay: HostReplay, stack: FrameStack, seeds: list[int], batch_size: int
    ) -> None:
        super().__init__(learner, replay, stack, seeds, batch_size)
        self._batch = replay.empty_batch(batch_size)
        self._keys = bits(np.array(seeds, np.int64)[:, None], Stream.EXPLORE)
        self._environments = np.arange(stack.environments[1])
        self._action_counts = learner.action_counts.numpy()
        self._actors = by_run(learner.layout.views(self.acting))
        # A thread pays where updates are long and whoever steps the environments holds no lock of the interpreter.
        threaded = learner.spec.kind == "nature" and cores() > 1
        self._thread = ThreadPoolExecutor(1, "gramian-learner") if threaded else None
        self._learning: Future[object] | None = None
        self._begun = 0

    @property
    def updates(self) -> int:
        """See :attr:`Pipeline.updates`."""
        return self.learner.updates if self._learning is None else self._begun

    def act(self, epsilon: float, agent_step: int) -> NDArray[np.int64]:
        """See :meth:`Pipeline.act`: the actions of `Learner.act`, for less overhead."""
        random_bits = further(self._keys, agent_step, self._environments)
        actions = integers(random_bits, self._action_counts)
        if epsilon >= 1:  # in a prefill nobody needs the network
            return actions
        with torch.no_grad():
            seen = self.stack.observations
            values = [forward_run(self.learner.spec, own, x).values for own, x in zip(self._actors, seen, strict=True)]
            greedy = self.learner.objective.masked(torch.stack(values)).argmax(2).numpy()
        return np.where(uniform(random_bits) < epsilon, actions, greedy)

    def _observe(self, *, with_finals: bool) -> None:
        fields = self._transition.fields
        self.replay.add(**fields, final_frames=self._transition.final_frames if with_finals else None)
        self.stack.push(fields["frames"], fields["started"])

    def draw(self) -> None:
        """See :meth:`Pipeline.draw`."""
        self.settle()
        self.acting.copy_(self.learner.state.online)
        self.replay.sample(self.seeds, self.learner.updates, self.batch_size, out=self._batch)

    def learn(self) -> None:
        """See :meth:`Pipeline.learn`. Only begins it, where there is a thread for it."""
        if self._thread is None:
            self.learner.update(self._batch)
        else:
            self._begun = self.learner.updates + 1
            self._learning = self._thread.submit(self.learner.update, self._batch)

    def settle(self) -> None:
        """See :meth:`Pipeline.settle`."""
        if self._learning is not None:
            self._learning.result()
            self._learning = None

    def close(self) -> None:
        """See :meth:`Pipeline.close`."""
        super().close()
        if self._thread is not None:
            self._thread.shutdown()


class DevicePipeline(Pipeline):
    """A population on a GPU: two queues of work, one for the actors and one for the learner.

    The actors' queue goes first wherever both have work. The replay lies on the GPU or, being a `HostReplay`, in the
    memory of the host.
    """

    def __init__(
        self,
        learner: Learner,
        replay: Replay,
        stack: FrameStack,
        seeds: list[int],
        batch_size: int,
        execution: Execution,
    ) -> None:
        super().__init__(learner, replay, stack, seeds, batch_size)
        device = learner.state.online.device
        self._device = device
        self._actors = torch.cuda.Stream(device, priority=-1)
        self._learner = torch.cuda.Stream(device)
        self._acted, self._drawn, self._learned = (torch.cuda.Event() for _ in range(3))
        self._on_host = isinstance(replay, HostReplay)
        # what travels, and its copies on the device
        self._arrived = Transition(stack, device)
        self._knobs = torch.zeros(2, dtype=torch.float64, pin_memory=True)
        self._epsilon_and_step = torch.zeros(2, dtype=torch.float64, device=device)
        self._actions = torch.zeros(stack.environments, dtype=torch.int64, pin_memory=True)
        self._knob, self._action = self._knobs.numpy(), self._actions.numpy()
        host_batch = replay.empty_batch(batch_size)
        self._drawn_batch = Batch(*(tensor.pin_memory() for tensor in host_batch)) if self._on_host else None
        self._batch = Batch(*(tensor.to(device) for tensor in host_batch))
        self._execution = execution
        self.launches: dict[str, Callable[[], object]] = {}
        """The pieces of work by name, each to be launched on its own."""
        torch.cuda.synchronize(device)

    def at_work(self) -> AbstractContextManager[object]:
        """See :meth:`Pipeline.at_work`."""
        return torch.cuda.stream(self._actors)

    def act(self, epsilon: float, agent_step: int) -> NDArray[np.int64]:
        """See :meth:`Pipeline.act`. Waits for the actions, and not for the learner."""
        self._knob[:] = epsilon, agent_step
        self._epsilon_and_step.copy_(self._knobs, non_blocking=True)
        self._run("act", self._act, ())
        self._actions.copy_(self._arrived.fields["actions"], non_blocking=True)
        self._acted.record(self._actors)
        self._acted.synchronize()
        return self._action

    def begin(self, frames: NDArray[np.generic], started: NDArray[np.bool_]) -> None:
        """See :meth:`Pipeline.begin`."""
        super().begin(frames, started)
        self.learner.act(self.stack.observations, 1.0, 0)  # what it makes once is there before anything is compiled
        # Recording writes a few transitions ahead of the newest. In an empty replay they do no harm.
        with torch.cuda.stream(self._actors):
            self._prepare("observe", self._take_in, (self.stack.frames, *self.replay.counters))
        self.settle()

    def _observe(self, *, with_finals: bool) -> None:
        self._arrived.memory.copy_(self._transition.memory, non_blocking=True)
        if self._on_host:
            finals = self._transition.final_frames if with_finals else None
            self.replay.add(**self._transition.fields, final_frames=finals)
        elif with_finals:
            self._arrived.final_frames.copy_(self._transition.final_frames, non_blocking=True)
        self.launches["observe"]()
        if not self._on_host:
            self.replay.count()

    def draw(self) -> None:
        """See :meth:`Pipeline.draw`."""
        self._actors.wait_event(self._learned)
        if self._drawn_batch is not None:
            self.acting.copy_(self.learner.state.online)
            self.replay.sample(self.seeds, self.learner.updates, self.batch_size, out=self._drawn_batch)
            for place, drawn in zip(self._batch, self._drawn_batch, strict=True):
                place.copy_(drawn, non_blocking=True)
        else:
            self._run("draw", self._draw, (self.acting,))
        self._drawn.record(self._actors)

    def learn(self) -> None:
        """See :meth:`Pipeline.learn`. Only begins it."""
        with torch.cuda.stream(self._learner):
            self._learner.wait_event(self._drawn)
            self._run("learn", self._learn, self.learner.state)
            self.learner.count_update()
            self._learned.record(self._learner)

    @property
    def updates(self) -> int:
        """See :attr:`Pipeline.updates`."""
        return self.learner.updates

    def settle(self) -> None:
        """See :meth:`Pipeline.settle`."""
        torch.cuda.synchronize(self._device)

    def _act(self) -> None:
        epsilon, agent_step = self._epsilon_and_step[0], self._epsilon_and_step[1].to(torch.int64)
        actions = self.learner.act(self.stack.observations, epsilon, agent_step, weights=self.acting)
        self._arrived.fields["actions"].copy_(actions)

    def _take_in(self) -> None:
        fields = self._arrived.fields
        if not self._on_host:
            self.replay.write(**fields, final_frames=self._arrived.final_frames)
        self.stack.push(fields["frames"], fields["started"])

    def _draw(self) -> None:
        self.acting.copy_(self.learner.state.online)
        environments, transitions = self.replay.indices(self.seeds, self.learner.state.updates, self.batch_size)
        self.replay.fetch(environments, transitions, out=self._batch)

    def _learn(self) -> None:
        learner = self.learner
        update(learner.objective, learner.adam, learner.layout, learner.state, self._batch)

    def _run(self, name: str, function: Callable[[], None], changed: Sequence[Tensor]) -> None:
        """Do a piece of work on the current stream."""
        if name not in self.launches:
            self._prepare(name, function, changed)
        self.launches[name]()

    def _prepare(self, name: str, function: Callable[[], None], changed: Sequence[Tensor]) -> None:
        if self._execution == "eager":
            self.launches[name] = function
        else:
            self.settle()
            stream = torch.cuda.current_stream(self._device)
            self.launches[name] = record(function, changed, stream, compiled=self._execution == "compiled")
