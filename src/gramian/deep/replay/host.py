"""A replay in the memory of the host, on numpy: every number is that of `gramian.deep.replay.device.Replay`.

It exists because the arrays of a small population are so short that calling an operation costs more than carrying it
out, and numpy's calls cost a third of torch's. Beside a GPU it is ordinary memory too, and only the batches are
page-locked: the host gathers the frames of a batch into one block anyway.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from gramian.deep.agent.batch import Batch
from gramian.deep.agent.streams import Stream, bits, further, integers
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay.device import TERMINAL, TRUNCATED, Outcome, Replay
from gramian.deep.replay.priorities import Exponents

Integers = NDArray[np.int64]
PIECE_BYTES = 1 << 20
"""Fewest bytes of a batch that a thread gathers: about ten times the cost of handing them over."""


class HostReplay(Replay):
    """A :class:`Replay` on the CPU: the same memory, written and read through numpy.

    Parameters
    ----------
    threads
        Threads that gather the frames of a large batch. More than one is for a learner on a GPU, beside which cores are
        idle: the frames of a dozen runs of Atari are 20 MB, which take one thread as long as three agent steps.
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
        threads: int = 1,
    ):
        sizes = spec, population, envs_per_run, capacity
        super().__init__(*sizes, n_step=n_step, gamma=gamma, exponents=exponents, pinned=pinned)
        self._threads = threads
        self._helpers = ThreadPoolExecutor(threads, "gramian-replay") if threads > 1 else None
        # views of the tensors' memory
        self._pixels = self._frames.view(len(self._frames), -1).numpy()
        self._action, self._reward, self._end, self._age = (
            tensor.numpy() for tensor in (self._actions, self._rewards, self._ends, self._ages)
        )
        self._start, self._origin, self._newest = (tensor.numpy() for tensor in (self._starts, self._base, self._head))
        self._oldest, self._youngest = self._first.numpy(), self._last.numpy()
        self._power, self._behind = self._powers.numpy(), self._back.numpy()
        self._following = self._ahead.numpy()
        self._run = np.arange(population)[:, None]
        # Only final frames, which take slots of their own, can make the ring too short for the capacity.
        self._finals = False
        self._keys: dict[Stream, tuple[Tensor, NDArray[np.uint64]]] = {}

    def load(self, state: dict[str, Tensor], segments: Sequence[dict[str, Tensor]]) -> None:
        """See `Replay.load`."""
        super().load(state, segments)
        self._finals = True

    def write(self, outcome: Outcome, final_frames: Tensor | None = None) -> None:
        """See `Replay.write`."""
        layout, head = self._layout, self._newest
        actions, rewards, over, cut, started, frames = (
            field.numpy().reshape(len(head), *field.shape[2:]) for field in outcome
        )
        slot = self._origin + head
        self._action[slot] = actions
        self._reward[slot] = rewards
        self._end[slot] = over * TERMINAL + cut * TRUNCATED
        self._start[:, self.added % layout.starts] = head
        age = np.minimum(self._age[slot] + np.uint8(1), np.uint8(self.spec.stack))
        head += 1
        head[head == layout.slots] = 0
        if cut.any():
            if final_frames is None:
                raise ValueError("a game was truncated, and its last frame is not given")
            self._finals = True
            slot = (self._origin + head)[cut]
            self._pixels[slot] = final_frames.numpy().reshape(len(head), -1)[cut]
            self._age[slot] = age[cut]
            head[cut] += 1
            head[head == layout.slots] = 0
        slot = self._origin + head
        self._pixels[slot] = frames.reshape(len(head), -1)
        self._age[slot] = age * ~started

        number = self.added
        before = None if self._priorities is None else (self._first.clone(), self._last.clone())
        np.maximum(self._youngest, number + 1 - self.n_step, out=self._youngest)
        self._youngest[over | cut] = number
        np.maximum(self._oldest, number + 1 - layout.kept, out=self._oldest)
        if self._finals:
            everyone = np.arange(len(head))
            for _ in range(2):  # a step takes two slots at most
                distance = (head - self._start[everyone, self._oldest % layout.starts]) % layout.slots
                self._oldest += (distance > layout.reach) & (self._oldest <= number)
        if self._priorities is not None and before is not None:
            self._priorities.move(number, before, (self._first, self._last))

    def indices(
        self, seeds: Tensor, counter: int | Tensor, batch_size: int, stream: Stream = Stream.REPLAY
    ) -> tuple[Tensor, Tensor]:
        """See `Replay.indices`."""
        if self._priorities is not None:
            return super().indices(seeds, counter, batch_size, stream)
        known = self._keys.get(stream)
        if known is None or known[0] is not seeds:
            known = self._keys[stream] = seeds, bits(seeds.numpy()[:, None], stream)
        random_bits = further(known[1], int(counter), np.arange(batch_size))
        first = self._oldest.reshape(self.shape)
        counts = np.maximum(self._youngest.reshape(self.shape) - first + 1, 0)
        ends = counts.cumsum(axis=1)
        drawn = integers(random_bits, ends[:, -1:])
        if self.shape[1] == 1:
            return from_numpy(np.zeros_like(drawn)), from_numpy(drawn + first)
        environment = (drawn[:, :, None] >= ends[:, None, :]).sum(axis=2)
        rank = drawn - np.take_along_axis(ends - counts, environment, axis=1)
        return from_numpy(environment), from_numpy(rank + np.take_along_axis(first, environment, axis=1))

    def fetch(self, environments: Tensor, transitions: Tensor, out: Batch | None = None) -> Batch:
        """See `Replay.fetch`."""
        row, transition = self._run * self.shape[1] + environments.numpy(), transitions.numpy()
        slots, origin = self._layout.slots, row * self._layout.slots
        start = self._start[row, transition % self._layout.starts].astype(np.int64)
        steps = origin[..., None] + (start[..., None] + self._following) % slots
        ends = self._end[steps]
        ended = ends > 0
        counted = ended.cumsum(axis=-1) - ended == 0  # an end cuts off the steps after it
        length = counted.sum(axis=-1)
        terminal = (counted & (ends & TERMINAL > 0)).any(axis=-1)
        batch = out if out is not None else self.empty_batch(row.shape[1])
        batch.actions.numpy()[:] = self._action[steps[..., 0]]
        batch.rewards.numpy()[:] = np.where(counted, self._reward[steps] * self._power[:-1], 0).sum(axis=-1)
        batch.discounts.numpy()[:] = np.where(terminal, 0, self._power[length])
        if self._priorities is not None and batch.weights is not None:
            batch.weights.copy_(self._priorities.weights(environments, transitions))
        begun = self._take(self._wanted(origin, start), batch.observations)
        begun += self._take(self._wanted(origin, start + length, after_a_step=True), batch.next_observations)
        wait(begun)
        for piece in begun:
            piece.result()
        return batch

    def _wanted(self, origin: Integers, local: Integers, after_a_step: bool = False) -> Integers:
        """The slots of the frames of the observations that end with the given slots, one after the other."""
        slots = self._layout.slots
        age = self._age[origin + local % slots][..., None]
        belongs = self._behind <= age
        if after_a_step:
            belongs &= age > 0  # what follows a step is never a first frame: the game was over
        places = origin[..., None] + (local[..., None] - self._behind) % slots
        return np.where(belongs, places, self._nothing).reshape(-1)

    def _take(self, wanted: Integers, place: Tensor) -> list[Future[object]]:
        """Write the wanted frames into ``place``, or begin to, in several threads, where there is enough for each."""
        out = place.numpy().reshape(wanted.size, -1)
        pieces = min(self._threads, out.nbytes // PIECE_BYTES)
        if self._helpers is None or pieces < 2:
            # with "clip" numpy writes into `out` itself; no place is out of range
            self._pixels.take(wanted, axis=0, out=out, mode="clip")
            return []
        parts = [slice(*ends) for ends in pairwise(wanted.size * number // pieces for number in range(pieces + 1))]
        return [self._helpers.submit(self._pixels.take, wanted[part], 0, out[part], "clip") for part in parts]
