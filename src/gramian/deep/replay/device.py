"""Replay memory of a population: one frame a step, observations rebuilt when they are sampled.

Every environment has a ring of *slots*. A slot holds one frame and the action taken on seeing it; the newest slot holds
the frame that waits for its action. A slot's *age* (steps since the game began, at most the stack's length) says how
many of the slots before it belong to its stack. An episode that ran out of time has a slot of its own for the last
frame, from which a learner bootstraps and no transition starts.

Transitions are numbered 0, 1, 2, …: the k-th call of `Replay.add` makes transition k of every environment. ``starts``
maps a transition to its slot. A transition can be sampled once its n steps are known, and as long as it is among the
newest ``capacity / E`` of its environment. These are one interval ``[first, last]`` for each environment, so that a
uniform draw needs no rejection.
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import torch
from torch import Tensor

from gramian.core.errors import UserError
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.streams import Stream, torch_bits, torch_integers
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay.priorities import Exponents, Priorities

TERMINAL, TRUNCATED = 1, 2
"""How a step ended, as flags: no value follows; the time was over."""


class Outcome(NamedTuple):
    """What one step of all environments gives to the replay; every tensor is ``[P, E, …]``."""

    actions: Tensor
    """Taken on seeing the frames before."""
    rewards: Tensor
    """The learner's (clipped, if it clips them)."""
    terminal: Tensor
    """bool: the learner's episode ended (game over, or a life lost where that counts), so that no value follows."""
    truncated: Tensor
    """bool: the game was ended by its time limit."""
    started: Tensor
    """bool: zeros stand before ``frames``, because a game was over or truncated, or a life lost (`Step.cleared`)."""
    frames: Tensor
    """The newest frames: the first of the next game where one ended."""


class _Layout(NamedTuple):
    """Sizes of the rings of one environment."""

    kept: int
    """The number of transitions that may be sampled."""
    starts: int
    """The length of the ring of transitions."""
    slots: int
    """The length of the ring of slots."""
    reach: int
    """The greatest distance of a sampleable transition's slot from the newest slot."""


def _layout(capacity: int, environments: int, stack: int) -> _Layout:
    kept = ceil(capacity / environments)
    # Final frames take slots too, one in 512 steps; with more of them the oldest transitions are dropped earlier.
    reach = kept + kept // 512 + 8
    # The frames before the oldest transition are needed for its stack, and there may be a final frame before each.
    return _Layout(kept, kept + stack, reach + 2 * stack + 2, reach)


def bytes_needed(
    spec: ObservationSpec, population: int, envs_per_run: int, capacity: int, *, prioritized: bool = False
) -> int:
    """Bytes that a :class:`Replay` of these sizes allocates."""
    layout = _layout(capacity, envs_per_run, spec.stack)
    count = population * envs_per_run
    slots = count * layout.slots
    per_slot = 1 + 4 + 1 + 1  # action, reward, end, age
    per_start = 12 if prioritized else 4
    per_environment = 8 * 4  # base, head, first, last
    return (slots + 1) * spec.frame_bytes + slots * per_slot + count * (layout.starts * per_start + per_environment)


class Replay:
    """The last ``capacity`` transitions of each of P runs, on ``device``.

    Parameters
    ----------
    spec
        What one observation is.
    envs_per_run
        E: the capacity of a run is split evenly over its environments.
    n_step, gamma
        Steps of reward in a transition, and the discount γ of a step.
    exponents
        Of the priorities that transitions are drawn by; uniformly without.
    pinned
        Losses are copied from a GPU into page-locked memory.
    """

    def __init__(
        self,
        spec: ObservationSpec,
        population: int,
        envs_per_run: int,
        capacity: int,
        *,
        n_step: int = 1,
        gamma: float = 0.99,
        exponents: Exponents | None = None,
        pinned: bool = False,
        device: str | torch.device = "cpu",
    ):
        self.spec = spec
        self.shape = (population, envs_per_run)
        self.n_step = n_step
        self.added = 0
        """Calls of `add` so far: the number of transitions of every environment."""
        self._floor = 0  # the first transition that there is
        self._layout = _layout(capacity, envs_per_run, spec.stack)
        count, slots = population * envs_per_run, self._layout.slots

        # The frames are not cleared, so that memory of the host is taken as it fills. The last one stays zero: it
        # stands before the first frame of an episode.
        self._frames = torch.empty(count * slots + 1, *spec.frame_shape, dtype=spec.torch_dtype, device=device)
        self._frames[-1] = 0
        self.device = device = self._frames.device
        self._nothing = count * slots
        self._actions = torch.zeros(count * slots, dtype=torch.uint8, device=device)
        self._rewards = torch.zeros(count * slots, dtype=torch.float32, device=device)
        self._ends = torch.zeros(count * slots, dtype=torch.uint8, device=device)
        self._ages = torch.zeros(count * slots, dtype=torch.uint8, device=device)
        self._starts = torch.zeros(count, self._layout.starts, dtype=torch.int32, device=device)
        # for each environment: its first slot; its newest slot; its first and last transition that can be sampled
        self._base = torch.arange(count, device=device) * slots
        self._head = torch.zeros(count, dtype=torch.int64, device=device)
        self._added = torch.zeros((), dtype=torch.int64, device=device)  # `added`, where a CUDA graph can read it
        self._first = torch.zeros(count, dtype=torch.int64, device=device)
        self._last = torch.full((count,), -1, dtype=torch.int64, device=device)
        self._powers = gamma ** torch.arange(n_step + 1, dtype=torch.float64, device=device)
        self._back = torch.arange(spec.stack - 1, -1, -1, device=device)
        self._ahead = torch.arange(n_step, device=device)
        self._counted = torch.arange(0, device=device)
        self._priorities: Priorities | None = None
        if exponents is not None:
            self._priorities = Priorities(self.shape, self._layout.starts, n_step, exponents, device, pinned=pinned)

    @property
    def prioritized(self) -> bool:
        """Whether a draw depends on the losses of the batch before."""
        return self._priorities is not None

    @property
    def counters(self) -> tuple[Tensor, ...]:
        """What `write` changes beside the transitions themselves."""
        counters = (self._added, self._head, self._first, self._last)
        return counters if self._priorities is None else (*counters, self._priorities.flat)

    @property
    def oldest(self) -> int:
        """The first transition whose data may still be needed, now or later."""
        return max(self._floor, self.added - self._layout.kept - self.spec.stack + 1)

    @property
    def ready(self) -> bool:
        """Whether every environment has a transition that can be sampled."""
        return self.added >= self._floor + self.n_step + (self.spec.stack - 1 if self._floor else 0)

    def begin(self, frames: Tensor) -> None:
        """Take the first frames ``[P, E, *frame_shape]`` of the first episodes; empties the replay."""
        self.added = self._floor = 0
        self._added.zero_()
        self._head.zero_()
        self._first.zero_()
        self._last.fill_(-1)
        if self._priorities is not None:
            self._priorities.clear()
        self._put(self._base, frames, torch.zeros_like(self._head))

    def add(self, outcome: Outcome, final_frames: Tensor | None = None) -> None:
        """Add one step of all environments, which lies on the replay's device. Nothing waits for the device.

        ``final_frames`` ``[P, E, *frame_shape]`` are the truncated games' last; None where no game is truncated.
        """
        self.write(outcome, final_frames)
        self.count()

    def write(self, outcome: Outcome, final_frames: Tensor | None = None) -> None:
        """The device's part of `add`: it depends on nothing that the host knows, so a CUDA graph can hold it."""
        layout = self._layout
        slot = self._base + self._head
        cut = outcome.truncated.reshape(-1).to(torch.int64)
        ended = outcome.terminal.reshape(-1).to(torch.int64) * TERMINAL + cut * TRUNCATED
        self._actions[slot] = outcome.actions.reshape(-1).to(torch.uint8)
        self._rewards[slot] = outcome.rewards.reshape(-1).to(torch.float32)
        self._ends[slot] = ended.to(torch.uint8)
        self._starts.index_copy_(1, (self._added % layout.starts).view(1), self._head.to(torch.int32)[:, None])
        age = (self._ages[slot].to(torch.int64) + 1).clamp(max=self.spec.stack)
        if final_frames is not None:  # where nothing was truncated, the frames below take this slot
            self._put(self._base + (self._head + 1) % layout.slots, final_frames, age)
        self._head.copy_((self._head + 1 + cut) % layout.slots)
        self._put(self._base + self._head, outcome.frames, torch.where(outcome.started.reshape(-1), 0, age))

        number = self._added.clone()
        self._added.add_(1)
        last = torch.where(ended > 0, number, torch.maximum(self._last, self._added - self.n_step))
        first = torch.maximum(self._first, self._added - layout.kept)
        for _ in range(2):  # a step takes two slots at most
            first = first + (self._distance(first) > layout.reach)
        if self._priorities is not None:
            self._priorities.move(number, (self._first, self._last), (first, last))
        self._first.copy_(first)
        self._last.copy_(last)

    def count(self) -> None:
        """The host's part of `add`: there is one more transition."""
        self.added += 1

    def bounds(self) -> tuple[Tensor, Tensor]:
        """``[P, E]`` each: the first and the last transition of every environment that can be sampled."""
        return self._first.view(self.shape).clone(), self._last.view(self.shape).clone()

    def indices(
        self, seeds: Tensor, counter: int | Tensor, batch_size: int, stream: Stream = Stream.REPLAY
    ) -> tuple[Tensor, Tensor]:
        """Draw transitions with replacement: (environment, transition), ``[P, B]`` each.

        Element b of run p is a function of (``seeds[p]``, ``stream``, ``counter``, b) and of what the run's replay
        holds. Without priorities each transition has the same chance up to 2^-63 times their number. In a CUDA graph
        ``counter`` is a tensor.
        """
        random_bits = torch_bits(seeds[:, None], stream, counter, self._numbers(batch_size))
        first = self._first.view(self.shape)
        if self._priorities is not None:
            return self._priorities.draw(random_bits, first)
        counts = (self._last.view(self.shape) - first + 1).clamp(min=0)
        ends = counts.cumsum(dim=1)
        drawn = torch_integers(random_bits, ends[:, -1:])
        environment = (drawn[:, :, None] >= ends[:, None, :]).sum(dim=2)
        rank = drawn - (ends - counts).gather(1, environment)
        return environment, rank + first.gather(1, environment)

    def prepare(self, batch_size: int) -> None:
        """Allocate what `draw` and `record_losses` need, before anything is compiled."""
        self._numbers(batch_size)
        if self._priorities is not None:
            self._priorities.allocate(batch_size)

    def empty_batch(self, batch_size: int) -> Batch:
        """Memory for a batch of this replay's transitions, for `fetch` and `sample` to write into."""
        shape, device = (self.shape[0], batch_size), self.device
        seen, following = (
            torch.empty(*shape, *self.spec.shape, dtype=self.spec.torch_dtype, device=device) for _ in range(2)
        )
        rewards, discounts, weights = torch.empty(3, *shape, device=device)
        actions = torch.empty(shape, dtype=torch.int64, device=device)
        if self._priorities is None:
            return Batch(seen, actions, rewards, discounts, following)
        return Batch(seen, actions, rewards, discounts, following, weights)

    def fetch(self, environments: Tensor, transitions: Tensor, out: Batch | None = None) -> Batch:
        """Rebuild the given transitions of every run, int64 ``[P, B]`` each; with ``out`` the batch is written there.

        A window of n steps stops where the episode ends; where the game was over, the next observation is zero.
        """
        run = torch.arange(self.shape[0], device=environments.device)[:, None]
        row = run * self.shape[1] + environments
        start = self._starts[row, transitions % self._layout.starts].to(torch.int64)

        steps = self._slot(row[..., None], start[..., None] + self._ahead)
        ends = self._ends[steps]
        ended = (ends > 0).to(torch.int64)
        counted = ended.cumsum(dim=-1) - ended == 0  # an end cuts off the steps after it
        length = counted.sum(dim=-1)
        rewards = torch.where(counted, self._rewards[steps].to(torch.float64) * self._powers[:-1], 0).sum(dim=-1)
        terminal = (counted & (ends & TERMINAL > 0)).any(dim=-1)
        discounts = torch.where(terminal, 0, self._powers[length])
        batch = Batch(
            observations=self._observations(row, start),
            actions=self._actions[self._slot(row, start)].to(torch.int64),
            rewards=rewards.to(torch.float32),
            discounts=discounts.to(torch.float32),
            next_observations=self._observations(row, start + length, after_a_step=True),
            weights=None if self._priorities is None else self._priorities.weights(environments, transitions),
        )
        if out is None:
            return batch
        for place, found in zip(out.tensors, batch.tensors, strict=True):
            place.copy_(found)
        return out

    def sample(
        self,
        seeds: Tensor,
        counter: int | Tensor,
        batch_size: int,
        stream: Stream = Stream.REPLAY,
        out: Batch | None = None,
    ) -> Batch:
        """Draw ``batch_size`` transitions of every run: `fetch` of `indices`."""
        if not self.ready:
            raise ValueError(f"nothing to sample yet: {self.added - self._floor} steps were added")
        return self.fetch(*self.indices(seeds, counter, batch_size, stream), out)

    def draw(self, seeds: Tensor, counter: int | Tensor, out: Batch) -> None:
        """`sample` the batch of an update into ``out``; if `prioritized`, by the losses recorded of the one before."""
        if self._priorities is not None:
            self._priorities.settle(self._first.view(self.shape))
        environments, transitions = self.indices(seeds, counter, out.actions.shape[1])
        if self._priorities is not None:
            self._priorities.expect(environments, transitions)
        self.fetch(environments, transitions, out)

    def record_losses(self, losses: Tensor, runs: slice = slice(None)) -> None:
        """Take the TD losses ``[P, B]`` of the batch drawn, of some runs; the next `draw` uses them."""
        if self._priorities is not None:
            self._priorities.record(losses, runs)

    def segment(self, start: int, end: int) -> dict[str, Tensor]:
        """Copy transitions ``[start, end)`` of all environments to the host; what is copied never changes again.

        ``frames [P·E, n, *frame_shape]``; ``actions``, ``rewards``, ``ends``, ``ages`` ``[P·E, n]``, zero where an
        environment no longer holds the transition; ``final_frames [k, *frame_shape]`` of the truncated episodes, by
        environment and transition; and ``start``.
        """
        if not self.oldest <= start <= end <= self.added:
            raise ValueError(f"transitions [{start}, {end}) are not within [{self.oldest}, {self.added})")
        number = torch.arange(start, end, device=self.device)
        row = torch.arange(self._head.numel(), device=self.device)[:, None]
        local = self._starts[row, number % self._layout.starts].to(torch.int64)
        slot = self._slot(row, local)
        held = number >= self._first[:, None] - self.spec.stack + 1
        ends = self._ends[slot] * held
        final = self._slot(row, local + 1)[ends & TRUNCATED > 0]
        return {
            "frames": self._frames[torch.where(held, slot, self._nothing)].cpu(),
            "actions": (self._actions[slot] * held).cpu(),
            "rewards": torch.where(held, self._rewards[slot], 0).cpu(),
            "ends": ends.cpu(),
            "ages": (self._ages[slot] * held).cpu(),
            "final_frames": self._frames[final].cpu(),
            "start": torch.tensor([start]),
        }

    def state(self) -> dict[str, Tensor]:
        """Copy everything but the transitions to the host: the waiting frames and the counters."""
        slot = self._base + self._head
        return {
            "frames": self._frames[slot].cpu(),
            "ages": self._ages[slot].cpu(),
            "first": self._first.cpu(),
            "last": self._last.cpu(),
            "added": torch.tensor([self.added]),
            "floor": torch.tensor([self._floor]),
            **({} if self._priorities is None else self._priorities.state()),
        }

    def load(self, state: dict[str, Tensor], segments: Sequence[dict[str, Tensor]]) -> None:
        """Go on as the replay that gave this `state`, with the transitions of its `segment` calls.

        The segments follow one another without gaps, from ``oldest`` (as it was then) or before. Without them the
        replay is empty, and its transitions are numbered on from those saved. A gap is a `UserError`.
        """
        added, floor = int(state["added"]), int(state["floor"])
        if state["first"].shape != self._head.shape:
            raise UserError(
                f"the saved replay has {state['first'].numel()} environments and this one {self._head.numel()}; "
                "resume with the settings of the saved run"
            )
        self._floor = floor if segments else added
        self.added = int(segments[0]["start"]) if segments else added
        if self.added > max(floor, added - self._layout.kept - self.spec.stack + 1) and segments:
            raise UserError(f"the saved replay is not whole: it begins with transition {self.added}, which is too late")
        self._head.zero_()
        for segment in segments:
            if int(segment["start"]) != self.added:
                raise UserError(
                    f"the saved replay is not whole: transition {self.added} is followed by {int(segment['start'])}"
                )
            self._append(segment)
        if self.added != added:
            raise UserError(f"the saved replay is not whole: it ends before transition {self.added}, not {added}")
        self._added.fill_(added)
        if self._priorities is not None:
            self._priorities.load(state, whole=bool(segments))
        ages = state["ages"].to(self.device)
        self._put(self._base + self._head, state["frames"].to(self.device), ages)
        if segments:
            self._first.copy_(state["first"])
            self._last.copy_(state["last"])
        else:  # the frames before the waiting ones are lost: begin where no stack can reach back to them
            self._first.copy_(added + torch.where(ages > 0, self.spec.stack - 1, 0))
            self._last.fill_(added - 1)

    def _append(self, segment: dict[str, Tensor]) -> None:
        """Add the transitions of a segment, in parts that fit into the rings: no place is written twice at once."""
        longest = min(self._layout.starts, self._layout.slots // 2 - 1)
        row = torch.arange(self._head.numel(), device=self.device)[:, None]
        finals = torch.nonzero(segment["ends"] & TRUNCATED)[:, 1]  # in the order of the final frames
        for begin in range(0, segment["ends"].shape[1], longest):
            part = slice(begin, begin + longest)
            ends = segment["ends"][:, part].to(self.device)
            cut = ends & TRUNCATED > 0
            used = (1 + cut.to(torch.int64)).cumsum(dim=1)
            local = self._head[:, None] + used - 1 - cut.to(torch.int64)
            slot = self._slot(row, local)
            self._put(slot, segment["frames"][:, part].to(self.device), segment["ages"][:, part].to(self.device))
            self._actions[slot] = segment["actions"][:, part].to(self.device)
            self._rewards[slot] = segment["rewards"][:, part].to(self.device)
            self._ends[slot] = ends
            numbers = torch.arange(self.added, self.added + ends.shape[1], device=self.device)
            self._starts[:, numbers % self._layout.starts] = (local % self._layout.slots).to(torch.int32)
            final_frames = segment["final_frames"][(finals >= begin) & (finals < begin + longest)]
            ages = (self._ages[slot[cut]].to(torch.int64) + 1).clamp(max=self.spec.stack)
            self._put(self._slot(row, local + 1)[cut], final_frames.to(self.device), ages)
            self._head.copy_((self._head + used[:, -1]) % self._layout.slots)
            self.added += ends.shape[1]

    def _numbers(self, count: int) -> Tensor:
        # Kept: a compiler that makes the numbers itself takes 32 bits for them, and the random bits need 64.
        if len(self._counted) != count:
            self._counted = torch.arange(count, device=self.device)
        return self._counted

    def _slot(self, row: Tensor, local: Tensor) -> Tensor:
        return row * self._layout.slots + local % self._layout.slots

    def _put(self, slot: Tensor, frames: Tensor, ages: Tensor) -> None:
        flat = slot.reshape(-1)
        self._frames.index_copy_(0, flat, frames.reshape(-1, *self.spec.frame_shape))
        self._ages[flat] = ages.reshape(-1).to(torch.uint8)

    def _distance(self, transition: Tensor) -> Tensor:
        """From the transitions' slots to the newest; 0 for transitions that do not exist yet."""
        start = self._starts.gather(1, (transition % self._layout.starts)[:, None])[:, 0]
        distance = (self._head - start) % self._layout.slots
        return torch.where(transition < self._added, distance, 0)

    def _observations(self, row: Tensor, local: Tensor, after_a_step: bool = False) -> Tensor:
        age = self._ages[self._slot(row, local)].to(torch.int64)
        belongs = self._back <= age[..., None]
        if after_a_step:
            belongs &= age[..., None] > 0  # what follows a step is never a first frame: the game was over
        slots = self._slot(row[..., None], local[..., None] - self._back)
        frames = self._frames[torch.where(belongs, slots, self._nothing)]
        return frames.view(*row.shape, *self.spec.shape)
