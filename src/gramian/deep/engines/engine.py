"""The interface of an engine, and what all engines share: replay, observations and the state of a checkpoint."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.deep.agent.learner import Learner
from gramian.deep.agent.streams import Stream
from gramian.deep.envs.observations import FrameStack, ObservationSpec
from gramian.deep.replay import Outcome, Replay

_ALIGNMENT = 64
"""The fields of a transition begin at multiples of this many bytes."""
_SEGMENT_BYTES = 256 << 20
"""Frames of the replay that a checkpoint holds in memory at once."""


class Transition:
    """One step of a part's environments on its way to the replay.

    Attributes
    ----------
    fields
        ``[P, E, …]`` each: the runs of the part, and the environments of each.
    memory
        The bytes of all fields in one block, so that one copy moves them.
    final_frames
        A tensor of its own, since it is rarely needed.
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
        # actions, rewards, terminal, truncated, started, frames
        dtypes = (torch.int64, torch.float32, torch.bool, torch.bool, torch.bool, dtype)
        shapes: list[tuple[int, ...]] = [environments] * 5 + [(*environments, *frame)]
        sizes = [math.prod(shape) * kind.itemsize for shape, kind in zip(shapes, dtypes, strict=True)]
        ends = np.cumsum([-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]).tolist()
        self.memory = torch.zeros(ends[-1], dtype=torch.uint8, device=device, pin_memory=pinned)
        self.fields = Outcome(
            *(
                self.memory[begin : begin + size].view(kind).view(shape)
                for shape, kind, begin, size in zip(shapes, dtypes, [0, *ends], sizes, strict=False)
            )
        )
        self.final_frames = torch.zeros(*environments, *frame, dtype=dtype, device=device, pin_memory=pinned)

    def fill(self, final_frames: NDArray[np.generic], **outcome: NDArray[Any]) -> bool:
        """Copy the host's arrays into the fields of a transition on the host; gives whether a game was truncated."""
        for name, array in outcome.items():
            getattr(self.fields, name).numpy()[...] = array
        if cut := bool(np.count_nonzero(outcome["truncated"])):
            self.final_frames.numpy()[...] = final_frames
        return cut


def joined(transitions: Sequence[Transition]) -> Outcome:
    """The fields of all parts together, in their order, without the final frames."""
    if len(transitions) == 1:
        return transitions[0].fields
    return Outcome(*map(torch.cat, zip(*(part.fields for part in transitions), strict=True)))


def joined_finals(transitions: Sequence[Transition]) -> Tensor:
    """The final frames of all parts together."""
    return transitions[0].final_frames if len(transitions) == 1 else torch.cat([t.final_frames for t in transitions])


class Engine(ABC):
    """Executes the steps of a population: it acts, stores, draws and learns, and owns the replay.

    The order of a step is the same in every engine, so that a run is the same run on every device. The environments
    play while the learner learns, so the actors have weights of their own. A step is:

    1. `act`: the actors choose actions; the environments begin to carry them out;
    2. `update`, where one is due by the transitions so far: the actors get the weights after the *last* update and a
       batch is drawn from the replay as it is now (`draw`); then the online weights are updated on that batch
       (`learn`), while the environments and the next steps go on;
    3. when the environments are done, `observe`: the actors get the outcome, and `act` again; `store`: the outcome goes
       into the replay.

    A prioritised replay gets the losses of an update when the next batch is drawn, just before: in between, steps are
    stored with the largest priority before those losses.

    With one update in four steps, the actions of the first of them lack the two newest updates and those of the other
    three the newest one. With the setting ``sequential``, `update` and `sync_actor_weights` come first and none is
    lacking.

    The runs may be divided into parts that act one after the other, so that the environments of one part play while
    actions are chosen for another. No number depends on it: between the actions of the parts, weights do not change.

    Parameters
    ----------
    learner, replay, stack
        Of one population; learner and stack are on one device.
    batch_size
        B.
    parts
        The runs that act together, as `Environments.parts` has them; by default all of them.
    """

    def __init__(
        self, learner: Learner, replay: Replay, stack: FrameStack, batch_size: int, parts: Sequence[slice] = ()
    ) -> None:
        self._learner, self._replay, self._stack = learner, replay, stack
        self._batch_size = batch_size
        self._parts = tuple(parts) or (slice(0, stack.environments[0]),)
        self._acting = learner.state.online.clone()  # the actors' weights, [P, N]
        self._seeds = learner.seeds.to(replay.device)
        replay.prepare(batch_size)
        self._transitions = [
            Transition(stack.spec, (runs.stop - runs.start, stack.environments[1]), pinned=stack.frames.is_cuda)
            for runs in self._parts
        ]
        self._cut = [False] * len(self._parts)
        self.launches: dict[str, Callable[[], object]] = {}
        """A GPU's recorded work by name, each to be launched on its own; empty in other engines."""
        self.remark = ""
        """What a user should know of the choice of this engine."""

    @abstractmethod
    def act(self, epsilon: float, agent_step: int, part: int = 0) -> None:
        """Begin to choose ε-greedy actions of a part's runs in the current observations."""

    @abstractmethod
    def chosen(self, part: int = 0) -> NDArray[np.int64]:
        """Wait for the actions that a part's runs have chosen, ``[P, E]``; valid until the part acts again."""

    def observe(self, part: int = 0, **outcome: NDArray[Any]) -> None:
        """Take in the outcome of a part's actions: the fields of `Outcome` and ``final_frames`` as arrays."""
        self._cut[part] = self._transitions[part].fill(**outcome)
        self._observe(part)

    @abstractmethod
    def _observe(self, part: int) -> None:
        """Move the part's transition from the host to the actors."""

    @abstractmethod
    def store(self) -> None:
        """Put the step that all parts have observed into the replay."""

    def update(self) -> None:
        """Give the actors the newest weights, draw a batch, and begin to update the online weights on it."""
        self.draw()
        self.learn()

    @abstractmethod
    def draw(self) -> None:
        """Give the actors the newest weights, and draw the batch of the next update."""

    @abstractmethod
    def learn(self) -> None:
        """Begin to update the online weights on the batch drawn."""

    @abstractmethod
    def sync_actor_weights(self) -> None:
        """Give the actors the newest weights, those of an update under way included."""

    @property
    @abstractmethod
    def updates(self) -> int:
        """Updates of each run, those under way included."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything that was begun, so that tensors can be read and replaced."""

    def step(self) -> AbstractContextManager[object]:
        """The context in which `act`, `observe`, `store` and `update` are called, entered once a step."""
        return nullcontext()

    def close(self) -> None:
        """Wait for what is under way, and end threads."""
        self.synchronize()

    @property
    def learner(self) -> Learner:
        """The learner, with nothing under way."""
        self.synchronize()
        return self._learner

    @property
    def replay(self) -> Replay:
        """The replay, with nothing under way."""
        self.synchronize()
        return self._replay

    @property
    def acting(self) -> Tensor:
        """The weights that the actors use, ``[P, N]``, with nothing under way."""
        self.synchronize()
        return self._acting

    @property
    def added(self) -> int:
        """Steps that the replay holds or held: the counter of the actors' random numbers."""
        return self._replay.added

    def begin(self, frames: NDArray[np.generic], started: NDArray[np.bool_]) -> None:
        """Take the first frames of all games."""
        device = self._stack.frames.device
        self._replay.begin(torch.from_numpy(frames).to(self._replay.device))
        self._stack.push(torch.from_numpy(frames).to(device), torch.from_numpy(started).to(device))
        self.synchronize()

    def diagnose(self) -> dict[str, NDArray[np.float64]]:
        """What the logs record of each run, ``[P]`` each, from a batch that is drawn for this purpose alone."""
        learner, replay = self.learner, self.replay
        batch = replay.sample(self._seeds, learner.updates, self._batch_size, Stream.DIAGNOSE)
        numbers = learner.diagnose(batch.map(lambda field: field.to(learner.seeds.device)))
        together = torch.stack(list(numbers.values())).double().cpu().numpy()
        return dict(zip(numbers, together, strict=True))

    def state(self) -> dict[str, Tensor]:
        """What the runs share, as named tensors on the host: everything but `run_states` and `segments`."""
        named = {f"replay.{name}": tensor for name, tensor in self.replay.state().items()}
        return named | {"stack": self._stack.frames.cpu(), "acting": self._acting.cpu()}

    def run_states(self) -> Iterator[dict[str, Tensor]]:
        """What each run has learned, as named tensors on the host; one run after the other."""
        for run in range(len(self._learner.seeds)):
            yield {name: tensor.cpu() for name, tensor in self.learner.run_state(run).items()}

    def segments(self, start: int | None) -> Iterator[tuple[int, int, dict[str, Tensor]]]:
        """The replay's transitions from ``start`` on, or all that are needed, in parts of bounded size."""
        replay = self.replay
        size = max(1, _SEGMENT_BYTES // (math.prod(self._stack.environments) * self._stack.spec.frame_bytes))
        first = replay.oldest if start is None else max(start, replay.oldest)
        for begin in range(first, replay.added, size):
            end = min(begin + size, replay.added)
            yield begin, end, replay.segment(begin, end)

    def restore(
        self, state: dict[str, Tensor], runs: Sequence[dict[str, Tensor]], segments: Sequence[dict[str, Tensor]]
    ) -> None:
        """Go on from a state that `state`, `run_states` and `segments` gave; without segments the replay is empty."""
        self.learner.load_state_dict(
            {
                name: tensor if name == "updates" else torch.cat([run[name] for run in runs])
                for name, tensor in runs[0].items()
            }
        )
        own = {name.removeprefix("replay."): tensor for name, tensor in state.items() if name.startswith("replay.")}
        self._replay.load(own, segments)
        self._stack.frames.copy_(state["stack"])
        self._acting.copy_(state["acting"])
        self.synchronize()
