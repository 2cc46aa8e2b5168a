"""What a population does at every step, on the host or on a GPU, in an order that never depends on who is faster.

The environments carry out their actions while the learner learns, and the next actions must not wait for it. So the
actors have weights of their own, and a step is, in this order:

1. `act`: actions from the actors' weights; the environments begin to carry them out;
2. where an update has fallen due by the transitions so far, `draw`: the actors get the weights after the *last* update,
   and a batch is drawn from what the replay holds at that moment; and `learn`: the online weights are updated on that
   batch, while the environments, and the next steps, go on;
3. when the environments are done, `observe`: what came of it is what the actors see next, and they `act`, so that the
   environments go on; and `store`: it goes into the replay.

With an update in every four steps, the actions of four steps in a row are thus chosen with weights that lack the two
newest updates at the first of them and the newest one at the other three, where an agent that does one thing after the
other would lack none. Nothing else is different, and on the host the same happens in the same order: a run is the same
run everywhere.

With the setting ``sequential`` a step begins with what is due instead, `draw`, `learn` and `hand_over`, and acts with
weights that lack nothing.

The actions are waited for (`chosen`) as soon as somebody else can begin to carry them out; where this process plays the
games itself, only when it has nothing else to do, while the actors look.

The runs may be divided into parts that act one after the other, so that the environments of one part play while the
actors of another look. No number depends on it: a part acts as soon as its own environments are done, and between its
actions and those of the others nobody gets new weights.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.core.cores import cores
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner, update
from gramian.deep.agent.streams import Stream, bits, further, integers, uniform
from gramian.deep.engines.acting import actors
from gramian.deep.engines.compiled_update import CompiledUpdate
from gramian.deep.engines.graphs import Execution, compile_whole, nothing, record
from gramian.deep.engines.halves import HALVES, Agenda, HalvedUpdate, Piece, one_thread
from gramian.deep.engines.rounding import RoundedUpdate
from gramian.deep.envs.observations import FrameStack, ObservationSpec
from gramian.deep.replay.device import Replay
from gramian.deep.replay.host import HostReplay

_BLOCK_STEPS = 256
"""Steps whose random numbers the host makes at once: one call for them costs about as much as one for each."""
_ALIGNMENT = 64
"""Bytes to whose multiples the fields of a transition are aligned."""


class Transition:
    """One step of a part's environments on its way to the replay: fields ``[P, E, …]`` in one piece of memory.

    Parameters
    ----------
    spec
        What an observation is.
    environments
        ``(P, E)``: the runs of the part, and the environments of each.

    Attributes
    ----------
    memory
        Bytes, so that one copy moves all fields.
    fields
        By the names of the arguments of `Replay.add`, but for ``final_frames``.
    final_frames
        Apart, since they are rarely needed.
    """

    def __init__(
        self,
        spec: ObservationSpec,
        environments: tuple[int, int],
        device: torch.device | str = "cpu",
        *,
        pinned: bool = False,
    ) -> None:
        frame, dtype = spec.frame_shape, spec.torch_dtype
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
        if cut := bool(np.count_nonzero(truncated)):
            self.final_frames.numpy()[...] = final_frames
        return cut


def joined(transitions: Sequence[Transition]) -> dict[str, Tensor]:
    """The fields of all parts together, in their order; final frames apart.

    Examples
    --------
    >>> parts = [Transition(ObservationSpec((4,), np.float32, 1), (runs, 2)) for runs in (3, 1)]
    >>> joined(parts)["frames"].shape
    torch.Size([4, 2, 4])
    """
    if len(transitions) == 1:
        return transitions[0].fields
    return {name: torch.cat([part.fields[name] for part in transitions]) for name in transitions[0].fields}


def joined_finals(transitions: Sequence[Transition]) -> Tensor:
    """The final frames of all parts together."""
    return transitions[0].final_frames if len(transitions) == 1 else torch.cat([t.final_frames for t in transitions])


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
    parts
        The runs that act together, as `Environments.parts` has them; all of them where it is not given.
    """

    def __init__(
        self,
        learner: Learner,
        replay: Replay,
        stack: FrameStack,
        seeds: list[int],
        batch_size: int,
        parts: Sequence[slice] = (),
    ) -> None:
        self.learner, self.replay, self.stack = learner, replay, stack
        self.batch_size = batch_size
        self.parts = tuple(parts) or (slice(0, stack.environments[0]),)
        self.acting = learner.state.online.clone()
        """Weights that the actors use, ``[P, N]``."""
        self.seeds = torch.tensor(seeds, dtype=torch.int64, device=replay.device)
        self._transitions = [
            Transition(stack.spec, (runs.stop - runs.start, stack.environments[1]), pinned=stack.frames.is_cuda)
            for runs in self.parts
        ]
        self._cut = [False] * len(self.parts)

    @abstractmethod
    def act(self, epsilon: float, agent_step: int, part: int = 0) -> None:
        """Begin to choose ε-greedy actions of a part's runs in the current observations."""

    @abstractmethod
    def chosen(self, part: int = 0) -> NDArray[np.int64]:
        """Wait for the actions that a part's runs have chosen; they are of use until the part acts again."""

    def observe(self, part: int = 0, **outcome: NDArray[Any]) -> None:
        """Take in what a part's actions led to (`Transition.fill`), as what its actors see next."""
        self._cut[part] = self._transitions[part].fill(**outcome)
        self._observe(part)

    @abstractmethod
    def store(self) -> None:
        """Put the step that all parts have observed into the replay."""

    @abstractmethod
    def draw(self) -> None:
        """Hand the actors the newest weights, and draw the batch of the next update."""

    @abstractmethod
    def learn(self) -> None:
        """Update the online weights on the batch drawn."""

    @abstractmethod
    def hand_over(self) -> None:
        """Hand the actors the newest weights, those of an update under way included."""

    @abstractmethod
    def _observe(self, part: int) -> None:
        """Take the part's transition in from the host."""

    def _add(self) -> None:
        """Put the host's transitions into the replay."""
        finals = joined_finals(self._transitions) if any(self._cut) else None
        self.replay.add(**joined(self._transitions), final_frames=finals)

    def at_work(self) -> AbstractContextManager[object]:
        """The context in which `act`, `observe`, `store` and `draw` are called, to be entered once for a step."""
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
    """A population on the CPU. With Atari's network or compiled updates, and a second core, it learns in threads."""

    def __init__(
        self,
        learner: Learner,
        replay: HostReplay,
        stack: FrameStack,
        seeds: list[int],
        batch_size: int,
        parts: Sequence[slice] = (),
    ) -> None:
        super().__init__(learner, replay, stack, seeds, batch_size, parts)
        self._batch, self._next_batch = (replay.empty_batch(batch_size) for _ in range(2))
        self._keys = bits(np.array(seeds, np.int64)[:, None], Stream.EXPLORE)
        self._environments = np.arange(stack.environments[1])
        self._action_counts = learner.action_counts.numpy()
        rounds = any(isinstance(run, RoundedUpdate) for run in learner.run_updates)
        self._actors = [
            actors(learner.spec, learner.layout, self.acting[runs], stack.observations[runs], bf16=rounds)
            for runs in self.parts
        ]
        self._chosen: dict[int, NDArray[np.int64]] = {}
        self._block = -1
        # Threads pay where operations are long: torch lets go of the interpreter's lock in each of them, and taking it
        # again costs more than the whole operation of a small network. A compiled update is one long operation.
        self._compiled = [run for run in learner.run_updates if isinstance(run, CompiledUpdate)]
        self._halved = [run for run in learner.run_updates if isinstance(run, HalvedUpdate)]
        threaded = len(self._compiled) + len(self._halved) == len(learner.run_updates)
        self._threads = learner_threads(bool(self._halved)) if threaded and cores() > 1 else None
        self._learning: list[Future[None]] = []
        self._agenda = Agenda()
        # the halved updates that wait for those under way, and what they wait for
        self._upcoming: Future[None] | None = None
        self._turn = Piece()

    def at_work(self) -> AbstractContextManager[object]:
        """See :meth:`Pipeline.at_work`. Where the learner has the cores, torch is not to divide the actors' work."""
        return nullcontext() if self._threads is None else one_thread()

    @property
    def updates(self) -> int:
        """See :attr:`Pipeline.updates`."""
        return self.learner.updates + bool(self._learning)

    def act(self, epsilon: float, agent_step: int, part: int = 0) -> None:
        """See :meth:`Pipeline.act`: the actions of `Learner.act`, for less overhead. They are chosen at once."""
        runs = self.parts[part]
        actions, chances = self._explore(agent_step)
        explores = chances[runs] < epsilon
        if explores.all():  # as in a prefill: nobody needs the network
            self._chosen[part] = actions[runs]
            return
        with torch.no_grad():
            greedy = self.learner.objective.masked(self._actors[part](), runs).numpy().argmax(2)
        self._chosen[part] = np.where(explores, actions[runs], greedy)

    def chosen(self, part: int = 0) -> NDArray[np.int64]:
        """See :meth:`Pipeline.chosen`."""
        return self._chosen[part]

    def _explore(self, agent_step: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Random actions, and the numbers that decide whether to take them, each ``[P, E]``."""
        block, place = divmod(agent_step, _BLOCK_STEPS)
        if block != self._block:
            steps = np.arange(block * _BLOCK_STEPS, (block + 1) * _BLOCK_STEPS)
            random_bits = further(self._keys, steps[:, None, None], self._environments)
            self._chances, self._choices = uniform(random_bits), integers(random_bits, self._action_counts)
            self._block = block
        return self._choices[place], self._chances[place]

    def _observe(self, part: int) -> None:
        fields = self._transitions[part].fields
        self.stack.push(fields["frames"], fields["started"], self.parts[part])

    def store(self) -> None:
        """See :meth:`Pipeline.store`."""
        self._add()

    def draw(self) -> None:
        """See :meth:`Pipeline.draw`."""
        self._file_upcoming()  # of a draw after which nobody has learned
        # The learner may still be at work on the other batch.
        self.replay.sample(self.seeds, self.updates, self.batch_size, out=self._next_batch)
        try:
            # Where the last update does not change the target networks, the next one looks at them before it is over.
            if self._learning and self.updates % self.learner.config.target_period_updates:
                self._plan_halved(self._next_batch)
            self.hand_over()
        except BaseException:
            self._file_upcoming()
            raise
        self._batch, self._next_batch = self._next_batch, self._batch

    def learn(self) -> None:
        """See :meth:`Pipeline.learn`. Only begins it, where there are threads for it."""
        if self._threads is None:
            self.learner.update(self._batch)
            return
        batch, number = self._batch, self.learner.updates + 1
        for first in range(min(cores(), len(self._compiled))):
            self._learning.append(self._threads.submit(_learn, self._compiled[first :: cores()], batch, number))
        if self._halved:
            if self._upcoming is None:
                self._plan_halved(batch)
            self._agenda.open(self._turn)
            self._file_upcoming()

    def _plan_halved(self, batch: Batch) -> None:
        """Begin the next halved updates, as far as that is possible before their turn."""
        if self._threads is None or not self._halved:
            return
        self._turn, number = Piece(), self.updates + 1
        # All of them first: nothing is on the agenda before all of it can be dropped again.
        pieces = [piece for run in self._halved for piece in run.pieces(batch, number, [self._turn])]
        self._upcoming = self._agenda.add(pieces)
        self._agenda.staff(self._threads, min(cores(), len(HALVES) * len(self._halved)))

    def _file_upcoming(self) -> None:
        """Note planned updates as under way if their turn has come; else forget them, so that nobody waits for it."""
        if self._upcoming is None:
            return
        if self._turn.done:
            self._learning.append(self._upcoming)
        else:
            self._agenda.drop(self._upcoming)
        self._upcoming = None

    def hand_over(self) -> None:
        """See :meth:`Pipeline.hand_over`."""
        self.settle()
        self.acting.copy_(self.learner.state.online)

    def settle(self) -> None:
        """See :meth:`Pipeline.settle`."""
        if self._learning:
            failures = [failure for task in self._learning if (failure := task.exception()) is not None]
            if failures:
                raise failures[0]
            self._learning = []
            self.learner.count_host_update()

    def close(self) -> None:
        """See :meth:`Pipeline.close`."""
        self._file_upcoming()
        try:
            super().close()
        finally:
            if self._threads is not None:
                self._agenda.clear()
                self._threads.shutdown()


def learner_threads(halved: bool) -> ThreadPoolExecutor:
    """As many threads as there are cores. Where two threads share an update and two cores, each has a core of its own.

    A system that is free to choose often lets both wait for one core, or one of them for a core on which an actor or an
    emulator is at work, while the other core is idle. With more cores than threads, processes side by side would choose
    the same cores; with two of each nobody is left out.

    Examples
    --------
    >>> with learner_threads(halved=True) as threads:
    ...     threads.submit(sum, [1, 2]).result()
    3
    """
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not halved or len(usable) != 2:
        return ThreadPoolExecutor(cores(), "gramian-learner")
    places = cycle(usable)

    def settle_down() -> None:
        with suppress(OSError):  # it is for speed alone
            os.sched_setaffinity(0, {next(places)})

    return ThreadPoolExecutor(cores(), "gramian-learner", settle_down)


def _learn(runs: Sequence[CompiledUpdate], batch: Batch, number: int) -> None:
    for run in runs:
        run.learn(batch, number)


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
        parts: Sequence[slice] = (),
    ) -> None:
        super().__init__(learner, replay, stack, seeds, batch_size, parts)
        device = learner.state.online.device
        self._device = device
        self._actors = torch.cuda.Stream(device, priority=-1)
        self._learner = torch.cuda.Stream(device)
        self._acted = [torch.cuda.Event() for _ in self.parts]
        self._drawn, self._learned = torch.cuda.Event(), torch.cuda.Event()
        self._on_host = isinstance(replay, HostReplay)
        # what travels, and its copies on the device
        sizes = [(runs.stop - runs.start, stack.environments[1]) for runs in self.parts]
        self._arrived = [Transition(stack.spec, size, device) for size in sizes]
        self._knobs = [torch.zeros(2, dtype=torch.float64, pin_memory=True) for _ in sizes]
        self._epsilon_and_step = torch.zeros(len(sizes), 2, dtype=torch.float64, device=device)
        self._chosen = [torch.zeros(size, dtype=torch.int64, device=device) for size in sizes]
        self._actions = [torch.zeros(size, dtype=torch.int64, pin_memory=True) for size in sizes]
        host_batch = replay.empty_batch(batch_size)
        self._drawn_batch = Batch(*(tensor.pin_memory() for tensor in host_batch)) if self._on_host else None
        self._batch = Batch(*(tensor.to(device) for tensor in host_batch))
        self._execution = execution
        self._work: dict[str, Callable[[], object]] = {}
        self.launches: dict[str, Callable[[], object]] = {}
        """The pieces of work by name, each to be launched on its own."""
        # Parts whose actors have not been told yet what came of their actions: they will be when they act again.
        self._untold: set[int] = set()
        torch.cuda.synchronize(device)

    def at_work(self) -> AbstractContextManager[object]:
        """See :meth:`Pipeline.at_work`."""
        return torch.cuda.stream(self._actors)

    def act(self, epsilon: float, agent_step: int, part: int = 0) -> None:
        """See :meth:`Pipeline.act`."""
        self._knobs[part].numpy()[:] = epsilon, agent_step
        if (name := f"act{part}") not in self.launches:
            self._prepare(
                name,
                partial(self._act, part),
                (),
                bring=partial(self._epsilon_and_step[part].copy_, self._knobs[part], non_blocking=True),
                take=partial(self._actions[part].copy_, self._chosen[part], non_blocking=True),
            )
        if part in self._untold:  # what is to be seen goes with it, in one launch
            self._untold.remove(part)
            if (name := f"look{part}") not in self.launches:
                self._join(name, (f"observe{part}", f"act{part}"), (self.stack.frames,))
        self.launches[name]()
        self._acted[part].record(self._actors)

    def chosen(self, part: int = 0) -> NDArray[np.int64]:
        """See :meth:`Pipeline.chosen`. Does not wait for the learner, nor for what the actors' queue has after it."""
        self._acted[part].synchronize()
        return self._actions[part].numpy()

    def begin(self, frames: NDArray[np.generic], started: NDArray[np.bool_]) -> None:
        """See :meth:`Pipeline.begin`."""
        super().begin(frames, started)
        self.learner.act(self.stack.observations, 1.0, 0)  # what it makes once is there before anything is compiled
        with torch.cuda.stream(self._actors):
            for part, (arrived, transition) in enumerate(zip(self._arrived, self._transitions, strict=True)):
                self._prepare(
                    f"observe{part}",
                    partial(self._take_in, part),
                    (self.stack.frames,),
                    bring=partial(arrived.memory.copy_, transition.memory, non_blocking=True),
                    tuned=False,
                )
            if not self._on_host:
                # Recording writes a few transitions ahead of the newest. In an empty replay they do no harm.
                self._prepare("store", self._write, self.replay.counters, tuned=False)
        self.settle()

    def _observe(self, part: int) -> None:
        if self._cut[part] and not self._on_host:
            self._arrived[part].final_frames.copy_(self._transitions[part].final_frames, non_blocking=True)
        self._untold.add(part)

    def _tell(self) -> None:
        """Let the actors see what they have not been told yet."""
        while self._untold:
            self.launches[f"observe{self._untold.pop()}"]()

    def store(self) -> None:
        """See :meth:`Pipeline.store`."""
        self._tell()
        if self._on_host:
            self._add()
        else:
            self.launches["store"]()
            self.replay.count()

    def draw(self) -> None:
        """See :meth:`Pipeline.draw`."""
        if self._drawn_batch is not None:
            self.hand_over()
            # Where several updates are due in one step, the copy of the last batch may still be on its way.
            self._drawn.synchronize()
            self.replay.sample(self.seeds, self.learner.updates, self.batch_size, out=self._drawn_batch)
            for place, drawn in zip(self._batch, self._drawn_batch, strict=True):
                place.copy_(drawn, non_blocking=True)
        else:
            self._actors.wait_event(self._learned)
            self._run("draw", self._draw, (self.acting,))
        self._drawn.record(self._actors)

    def learn(self) -> None:
        """See :meth:`Pipeline.learn`. Only begins it."""
        with torch.cuda.stream(self._learner):
            self._learner.wait_event(self._drawn)
            self._run("learn", self._learn, self.learner.state)
            self.learner.count_update()
            self._learned.record(self._learner)

    def hand_over(self) -> None:
        """See :meth:`Pipeline.hand_over`. Only begins it."""
        self._actors.wait_event(self._learned)
        self.acting.copy_(self.learner.state.online)

    @property
    def updates(self) -> int:
        """See :attr:`Pipeline.updates`."""
        return self.learner.updates

    def settle(self) -> None:
        """See :meth:`Pipeline.settle`."""
        with torch.cuda.stream(self._actors):
            self._tell()
        torch.cuda.synchronize(self._device)

    def _act(self, part: int) -> None:
        epsilon, agent_step = self._epsilon_and_step[part, 0], self._epsilon_and_step[part, 1].to(torch.int64)
        runs = self.parts[part]
        seen = self.stack.observations[runs]
        self._chosen[part].copy_(self.learner.act(seen, epsilon, agent_step, weights=self.acting, runs=runs))

    def _take_in(self, part: int) -> None:
        fields = self._arrived[part].fields
        self.stack.push(fields["frames"], fields["started"], self.parts[part])

    def _write(self) -> None:
        self.replay.write(**joined(self._arrived), final_frames=joined_finals(self._arrived))

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

    def _prepare(
        self,
        name: str,
        function: Callable[[], None],
        changed: Sequence[Tensor],
        bring: Callable[[], object] = nothing,
        take: Callable[[], object] = nothing,
        tuned: bool = True,
    ) -> None:
        """Make a piece of work ready, between copies from and to page-locked memory of the host."""
        work = compile_whole(function, tuned=tuned) if self._execution == "compiled" else function

        def whole() -> None:
            bring()
            work()
            take()

        self._work[name] = whole
        self._join(name, (name,), changed)

    def _join(self, name: str, names: Sequence[str], changed: Sequence[Tensor]) -> None:
        """Make pieces of work, one after the other, ready as one."""
        pieces = [self._work[piece] for piece in names]

        def launch() -> None:
            for piece in pieces:
                piece()

        if self._execution != "eager":
            self.settle()
            launch = record(launch, changed, torch.cuda.current_stream(self._device), compiled=False)
        self.launches[name] = launch
