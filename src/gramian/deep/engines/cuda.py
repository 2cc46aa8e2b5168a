"""The engines of a GPU: work is recorded as CUDA graphs, in a queue of the actors and one of the learner.

`CudaEngine` has its replay on the GPU, `HostReplayEngine` in the host's memory, from which batches are copied.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.deep.agent.learner import Learner, update
from gramian.deep.engines.engine import Engine, Transition, joined, joined_finals
from gramian.deep.engines.graphs import compile_whole, record
from gramian.deep.envs.observations import FrameStack
from gramian.deep.replay import Replay


def _nothing() -> None:
    pass


class CudaEngine(Engine):
    """A population on a GPU; its work is ``compiled`` before it is recorded, or not.

    The actors' queue goes first wherever both queues have work.
    """

    def __init__(
        self,
        learner: Learner,
        replay: Replay,
        stack: FrameStack,
        batch_size: int,
        parts: Sequence[slice] = (),
        *,
        compiled: bool,
    ) -> None:
        super().__init__(learner, replay, stack, batch_size, parts)
        device = learner.seeds.device
        self._device, self._compiled = device, compiled
        self._actors_queue = torch.cuda.Stream(device, priority=-1)
        self._learner_queue = torch.cuda.Stream(device)
        self._acted = [torch.cuda.Event() for _ in self._parts]
        self._drawn, self._learned = torch.cuda.Event(), torch.cuda.Event()
        # what is copied from and to the device, in page-locked memory of the host, and its places on the device
        sizes = [(runs.stop - runs.start, stack.environments[1]) for runs in self._parts]
        self._arrived = [Transition(stack.spec, size, device) for size in sizes]
        self._inputs = [torch.zeros(2, dtype=torch.float64, pin_memory=True) for _ in sizes]
        self._epsilon_and_step = torch.zeros(len(sizes), 2, dtype=torch.float64, device=device)
        self._chosen = [torch.zeros(size, dtype=torch.int64, device=device) for size in sizes]
        self._actions = [torch.zeros(size, dtype=torch.int64, pin_memory=True) for size in sizes]
        self._batch = replay.empty_batch(batch_size).map(lambda field: field.to(device))
        self._work: dict[str, Callable[[], object]] = {}
        # the parts whose outcome the actors have yet to take in: they do it when they act again
        self._unseen: set[int] = set()
        torch.cuda.synchronize(device)

    def step(self) -> AbstractContextManager[object]:
        """See `Engine.step`."""
        return torch.cuda.stream(self._actors_queue)

    def act(self, epsilon: float, agent_step: int, part: int = 0) -> None:
        """See `Engine.act`."""
        self._inputs[part].numpy()[:] = epsilon, agent_step
        if (name := f"act{part}") not in self.launches:
            self._prepare(
                name,
                partial(self._act, part),
                (),
                before=partial(self._epsilon_and_step[part].copy_, self._inputs[part], non_blocking=True),
                after=partial(self._actions[part].copy_, self._chosen[part], non_blocking=True),
            )
        if part in self._unseen:  # one launch for both
            self._unseen.remove(part)
            if (name := f"observe_act{part}") not in self.launches:
                self._join(name, (f"observe{part}", f"act{part}"), (self._stack.frames,))
        self.launches[name]()
        self._acted[part].record(self._actors_queue)

    def chosen(self, part: int = 0) -> NDArray[np.int64]:
        """See `Engine.chosen`. It waits neither for the learner nor for later work of the actors' queue."""
        self._acted[part].synchronize()
        return self._actions[part].numpy()

    def begin(self, frames: NDArray[np.generic], started: NDArray[np.bool_]) -> None:
        """See `Engine.begin`."""
        super().begin(frames, started)
        self._learner.act(self._stack.observations, 1.0, 0)  # allocates what must be there before anything is compiled
        with self.step():
            for part, (arrived, transition) in enumerate(zip(self._arrived, self._transitions, strict=True)):
                self._prepare(
                    f"observe{part}",
                    partial(self._push, part),
                    (self._stack.frames,),
                    before=partial(arrived.memory.copy_, transition.memory, non_blocking=True),
                    tuned=False,
                )
            self._prepare_store()
        self.synchronize()

    def _prepare_store(self) -> None:
        """Record how the replay stores: a few transitions ahead of the newest, which do no harm in an empty replay."""
        self._prepare("store", self._write, self._replay.counters, tuned=False)

    def _observe(self, part: int) -> None:
        if self._cut[part]:
            self._arrived[part].final_frames.copy_(self._transitions[part].final_frames, non_blocking=True)
        self._unseen.add(part)

    def _observe_unseen(self) -> None:
        """Let the actors take in the outcomes that they have not seen yet."""
        while self._unseen:
            self.launches[f"observe{self._unseen.pop()}"]()

    def store(self) -> None:
        """See `Engine.store`."""
        self._observe_unseen()
        self.launches["store"]()
        self._replay.count()

    def draw(self) -> None:
        """See `Engine.draw`."""
        self._actors_queue.wait_event(self._learned)
        self._run("draw", self._draw, (self._acting,))
        self._drawn.record(self._actors_queue)

    def learn(self) -> None:
        """See `Engine.learn`."""
        with torch.cuda.stream(self._learner_queue):
            self._learner_queue.wait_event(self._drawn)
            self._run("learn", self._learn, self._learner.state)
            self._learner.count_update()
            self._learned.record(self._learner_queue)

    def sync_actor_weights(self) -> None:
        """See `Engine.sync_actor_weights`. It only begins it."""
        self._actors_queue.wait_event(self._learned)
        self._acting.copy_(self._learner.state.online)

    @property
    def updates(self) -> int:
        """See `Engine.updates`."""
        return self._learner.updates

    def synchronize(self) -> None:
        """See `Engine.synchronize`."""
        with self.step():
            self._observe_unseen()
        torch.cuda.synchronize(self._device)

    def _act(self, part: int) -> None:
        epsilon, agent_step = self._epsilon_and_step[part, 0], self._epsilon_and_step[part, 1].to(torch.int64)
        runs = self._parts[part]
        seen = self._stack.observations[runs]
        self._chosen[part].copy_(self._learner.act(seen, epsilon, agent_step, weights=self._acting, runs=runs))

    def _push(self, part: int) -> None:
        fields = self._arrived[part].fields
        self._stack.push(fields.frames, fields.started, self._parts[part])

    def _write(self) -> None:
        self._replay.write(joined(self._arrived), joined_finals(self._arrived))

    def _draw(self) -> None:
        state = self._learner.state
        self._acting.copy_(state.online)
        self._replay.draw(self._seeds, state.updates.unsqueeze(1), self._batch)

    def _learn(self) -> None:
        learner = self._learner
        losses = update(learner.objective, learner.adam, learner.layout, learner.state, self._batch)
        self._replay.record_losses(losses.samples)

    def _run(self, name: str, function: Callable[[], None], changed: Sequence[Tensor]) -> None:
        """Do a piece of work on the current stream."""
        if name not in self.launches:
            self._prepare(name, function, changed)
        self.launches[name]()

    def _prepare(
        self,
        name: str,
        function: Callable[[], None],
        changed: Sequence[Tensor],
        before: Callable[[], object] = _nothing,
        after: Callable[[], object] = _nothing,
        tuned: bool = True,
    ) -> None:
        """Record a piece of work, between copies from and to page-locked memory of the host."""
        work = compile_whole(function, tuned=tuned) if self._compiled else function

        def whole() -> None:
            before()
            work()
            after()

        self._work[name] = whole
        self._join(name, (name,), changed)

    def _join(self, name: str, names: Sequence[str], changed: Sequence[Tensor]) -> None:
        """Record pieces of work, one after the other, as one."""
        pieces = [self._work[piece] for piece in names]

        def launch() -> None:
            for piece in pieces:
                piece()

        self.synchronize()
        stream = torch.cuda.current_stream(self._device)
        self.launches[name] = record(launch, changed, stream, compiled=False)


class HostReplayEngine(CudaEngine):
    """A `CudaEngine` whose replay lies on the host, which stores and draws itself and copies each batch to the GPU."""

    def _prepare_store(self) -> None:
        self._drawn_batch = self._replay.empty_batch(self._batch_size).map(Tensor.pin_memory)

    def _observe(self, part: int) -> None:
        self._unseen.add(part)

    def store(self) -> None:
        """See `Engine.store`."""
        self._observe_unseen()
        self._replay.add(joined(self._transitions), joined_finals(self._transitions) if any(self._cut) else None)

    def draw(self) -> None:
        """See `Engine.draw`."""
        self.sync_actor_weights()
        if self._replay.prioritized:
            self._learned.synchronize()
        # Where several updates are due in one step, the copy of the last batch may still be on its way.
        self._drawn.synchronize()
        self._replay.draw(self._seeds, self.updates, self._drawn_batch)
        for place, drawn in zip(self._batch.tensors, self._drawn_batch.tensors, strict=True):
            place.copy_(drawn, non_blocking=True)
        self._drawn.record(self._actors_queue)
