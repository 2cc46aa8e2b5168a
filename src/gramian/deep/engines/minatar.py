"""The engine of MinAtar on a CPU: acting and updates are calls of kernels for each run.

The kernels are here because MinAtar trains 3 times as fast with them: its pictures are nearly empty, and a kernel
leaves the interpreter to the other threads, so that a population acts while it learns.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner
from gramian.deep.engines.kernels import update as kernels
from gramian.deep.engines.plain import PlainEngine
from gramian.deep.envs.observations import FrameStack
from gramian.deep.replay import Replay


class MinAtarEngine(PlainEngine):
    """A `PlainEngine` whose runs act and learn by kernels; a penalty of next states learns by the plain update."""

    def __init__(
        self,
        learner: Learner,
        replay: Replay,
        stack: FrameStack,
        batch_size: int,
        parts: Sequence[slice] = (),
        threads: int = 0,
    ) -> None:
        super().__init__(learner, replay, stack, batch_size, parts, threads)
        updates = [RunUpdate(learner, run) for run in range(len(learner.seeds))]
        self._updates = {run: update for run, update in enumerate(updates) if update.possible}
        self._actors = networks(learner, self._acting)
        self._pictures = stack.observations.numpy()
        self._workspace = kernels.workspace(self._actors[0], self._pictures[0])
        self._legal = legal_actions(learner)
        self._best = np.zeros(stack.environments, np.int64)

    def _greedy(self, runs: slice, agent_step: int) -> NDArray[np.int64]:  # noqa: ARG002 - other heads draw numbers
        for run in range(len(self._actors))[runs]:
            kernels.act(self._pictures[run], self._actors[run], self._legal[run], self._workspace, self._best[run])
        return self._best[runs]

    def _update_block(self, block: int, batch: Batch, number: int) -> None:
        if block in self._updates:
            self._updates[block].learn(batch, number)
        else:
            super()._update_block(block, batch, number)


class RunUpdate:
    """The update of one run by kernels: `gramian.deep.agent.learner.update` in place."""

    def __init__(self, learner: Learner, run: int) -> None:
        row = slice(run, run + 1)
        objective, adam, state = learner.objective.select(row), learner.adam, learner.state.select(row)
        self._run, self._adam, self._objective = run, adam, objective
        self.possible = not any(group.kind.next_features for group in objective.arms.groups)
        """Whether its penalties are of the states alone."""
        self._online, self._target, self._gradient = (
            networks(learner, rows)[0] for rows in (state.online, state.target, torch.zeros_like(state.online))
        )
        self._moments = state.mean[0].numpy(), state.square[0].numpy()
        self._updates = state.updates
        self._counters = state.updates.numpy(), state.diverged_at.numpy()
        self._rate = adam.learning_rates[run].item()
        self._legal = legal_actions(learner)[run]
        self._squared, self._double_q = objective.td_loss == "squared", objective.double_q
        self._workspace: kernels.Workspace | None = None

    def learn(self, batch: Batch, number: int) -> tuple[float, float]:
        """The ``number``-th update, on the run's part of a batch of all runs; gives the TD loss and κ · penalty."""
        observations, actions, rewards, discounts, next_observations = (
            field.numpy()[self._run] for field in batch.tensors
        )
        samples = kernels.Samples(
            np.ascontiguousarray(observations),
            np.ascontiguousarray(actions),
            np.ascontiguousarray(rewards, np.float32),
            np.ascontiguousarray(discounts, np.float32),
            np.ascontiguousarray(next_observations),
        )
        if self._workspace is None or len(self._workspace.counts) != len(samples.actions):
            self._workspace = kernels.workspace(self._online, samples.observations)
        kernels.evaluate(samples, self._double_q, self._online, self._target, self._workspace)
        penalty = self._penalise(self._workspace.features, self._workspace.next_features)
        td = kernels.update(
            samples,
            self._legal,
            self._squared,
            self._double_q,
            self._online,
            self._gradient,
            *self._moments,
            self._step(number),
            number,
            *self._counters,
            self._workspace,
        )
        return float(td), penalty

    def _penalise(self, features: NDArray[np.float32], gradient: NDArray[np.float32]) -> float:
        """κ · penalty; its gradient is written to ``gradient`` ``[B, d]``."""
        gradient[:] = 0
        penalty, kappas = 0.0, self._objective.arms.kappas
        for group in self._objective.arms.groups:
            found = self._objective.arms.gradient(group, torch.from_numpy(features)[None], self._updates[:, None])
            kappa = kappas if group.shares is None else kappas * group.shares
            torch.from_numpy(gradient).addcmul_(found.gradient[0], kappa)
            penalty += float(found.value * kappa)
        return penalty

    def _step(self, number: int) -> kernels.Step:
        """The coefficients of Adam's ``number``-th step."""
        adam, rate = self._adam, self._rate
        beta1, beta2 = adam.betas
        return kernels.Step(
            max_norm=math.inf if adam.max_grad_norm is None else float(adam.max_grad_norm),
            keep=1.0 - rate * adam.weight_decay,
            mean=1.0 - beta1,
            square_keep=float(beta2),
            square=1.0 - beta2,
            root=(1 - beta2**number) ** -0.5,
            epsilon=float(adam.epsilon),
            rate=rate / (1 - beta1**number),
        )


def networks(learner: Learner, rows: Tensor) -> list[kernels.Network]:
    """The parameters ``[P, N]`` of each run, as the kernels take them, sharing their memory."""
    views = learner.layout.views(rows)
    return [
        kernels.Network(row.numpy(), *(parameter[run].numpy() for parameter in views.values()))
        for run, row in enumerate(rows)
    ]


def legal_actions(learner: Learner) -> NDArray[np.bool_]:
    """Which actions each run has, ``[P, A]``."""
    return np.arange(learner.spec.actions) < learner.action_counts.numpy()
