"""The plain engine: torch, operation by operation, on any device. It is the oracle of the other engines."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np
from numpy.typing import NDArray

from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner
from gramian.deep.agent.streams import Stream, bits, further, integers, uniform
from gramian.deep.engines.engine import Engine, joined, joined_finals
from gramian.deep.envs.observations import FrameStack
from gramian.deep.replay import Outcome, Replay

_BLOCK_STEPS = 256
"""Steps whose random numbers are made at once: one call for all of them costs about as much as one call for one."""


class PlainEngine(Engine):
    """A population whose learner works in ``threads`` threads of its own, or with 0 in the thread that calls.

    Threads pay where single operations are long, since torch releases the interpreter lock in each of them.
    """

    def __init__(
        self,
        learner: Learner,
        replay: Replay,
        stack: FrameStack,
        batch_size: int,
        parts: Sequence[slice] = (),
        threads: int = 0,
    ) -> None:
        super().__init__(learner, replay, stack, batch_size, parts)
        self._batch, self._next_batch = (replay.empty_batch(batch_size) for _ in range(2))
        self._keys = bits(learner.seeds.cpu().numpy()[:, None], Stream.EXPLORE)
        self._environments = np.arange(stack.environments[1])
        self._action_counts = learner.action_counts.cpu().numpy()
        self._random_block = -1
        self._chosen: dict[int, NDArray[np.int64]] = {}
        self._pool = ThreadPoolExecutor(threads, "gramian-learner") if threads else None
        self._shares = [range(len(learner.blocks))[first :: max(threads, 1)] for first in range(max(threads, 1))]
        self._learning: list[Future[None]] = []

    def act(self, epsilon: float, agent_step: int, part: int = 0) -> None:
        """See `Engine.act`: the actions of `Learner.act`, whose random numbers are made on the host."""
        runs = self._parts[part]
        block, place = divmod(agent_step, _BLOCK_STEPS)
        if block != self._random_block:
            steps = np.arange(block * _BLOCK_STEPS, (block + 1) * _BLOCK_STEPS)
            random_bits = further(self._keys, steps[:, None, None], self._environments)
            self._chances, self._choices = uniform(random_bits), integers(random_bits, self._action_counts)
            self._random_block = block
        actions, explores = self._choices[place, runs], self._chances[place, runs] < epsilon
        # where all explore, as in a prefill, no network is needed
        self._chosen[part] = actions if explores.all() else np.where(explores, actions, self._greedy(runs, agent_step))

    def _greedy(self, runs: slice, agent_step: int) -> NDArray[np.int64]:
        """The best actions of some runs in the current observations, ``[P, E]``."""
        return self._learner.greedy(self._stack.observations[runs], agent_step, self._acting, runs).cpu().numpy()

    def chosen(self, part: int = 0) -> NDArray[np.int64]:
        """See `Engine.chosen`."""
        return self._chosen[part]

    def _observe(self, part: int) -> None:
        fields, device = self._transitions[part].fields, self._stack.frames.device
        self._stack.push(fields.frames.to(device), fields.started.to(device), self._parts[part])

    def store(self) -> None:
        """See `Engine.store`."""
        device = self._replay.device
        finals = joined_finals(self._transitions).to(device) if any(self._cut) else None
        self._replay.add(Outcome(*(field.to(device) for field in joined(self._transitions))), finals)

    def draw(self) -> None:
        """See `Engine.draw`."""
        if self._replay.prioritized:
            self.synchronize()
        # Otherwise the learner may still be at work on the other batch.
        self._replay.draw(self._seeds, self.updates, self._next_batch)
        self.sync_actor_weights()
        self._batch, self._next_batch = self._next_batch, self._batch

    def learn(self) -> None:
        """See `Engine.learn`. With threads it returns before the update is done."""
        device, number = self._learner.seeds.device, self._learner.updates + 1
        batch = self._batch.map(lambda field: field.to(device))
        if self._pool is None:
            self.learn_share(self._shares[0], batch, number)
            self._learner.count_update()
        else:
            self._learning = [self._pool.submit(self.learn_share, share, batch, number) for share in self._shares]

    def learn_share(self, blocks: Sequence[int], batch: Batch, number: int) -> None:
        """The ``number``-th update of some of `Learner.blocks`, in the thread that calls."""
        for block in blocks:
            self._update_block(block, batch, number)

    def _update_block(self, block: int, batch: Batch, number: int) -> None:  # noqa: ARG002 - other engines count
        """The ``number``-th update of one of `Learner.blocks`."""
        losses = self._learner.update_block(block, batch)
        self._replay.record_losses(losses.samples, self._learner.blocks[block])

    def sync_actor_weights(self) -> None:
        """See `Engine.sync_actor_weights`."""
        self.synchronize()
        self._acting.copy_(self._learner.state.online)

    @property
    def updates(self) -> int:
        """See `Engine.updates`."""
        return self._learner.updates + bool(self._learning)

    def synchronize(self) -> None:
        """See `Engine.synchronize`."""
        if self._learning:
            wait(self._learning)
            for task in self._learning:
                task.result()
            self._learning = []
            self._learner.count_update()

    def close(self) -> None:
        """See `Engine.close`."""
        try:
            super().close()
        finally:
            if self._pool is not None:
                self._pool.shutdown()
