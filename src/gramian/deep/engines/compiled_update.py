"""Updates of MinAtar runs on a CPU, each as one call that needs no interpreter.

The kernels (`engines.kernels`) do what `RunUpdate` does operation by operation, for less: the pictures of MinAtar
are nearly empty, and nothing is allocated. Above all they leave the interpreter to others, so that a population acts in
one thread while it learns in another.
"""

import math
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from gramian.deep.agent.batch import Batch
from gramian.deep.agent.layout import Layout
from gramian.deep.agent.losses import Losses, Objective
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.agent.optimiser import Adam
from gramian.deep.agent.state import State
from gramian.deep.engines.backward import RunUpdate
from gramian.deep.engines.halves import HalvedUpdate
from gramian.deep.engines.rounding import RoundedUpdate
from gramian.deep.engines.winograd import fits as winograd_fits
from gramian.deep.engines.winograd_update import WinogradUpdate

_PLACES = 256
"""Rows and columns that a place in a picture has room for."""


def run_update(
    run: int, objective: Objective, adam: Adam, layout: Layout, state: State, *, bf16: bool = False
) -> RunUpdate:
    """What updates a run of a population on a CPU: compiled where there are kernels for it, else in torch.

    Atari's network is updated in halves; in float32 with ``bf16`` it rounds the factors of its products.

    There are kernels for MinAtar's network in float32, without normalisation, and for all penalties but ``dr3``.

    Examples
    --------
    >>> from gramian.deep.agent.arms import Arm
    >>> from gramian.deep.agent.learner import Learner, LearnerConfig
    >>> from gramian.deep.agent.networks import NetworkSpec
    >>> spec = NetworkSpec("minatar", (4, 10, 10), actions=6, features_dim=128)
    >>> learner = Learner(spec, LearnerConfig(), seeds=[0, 1], arms=[Arm("gram", 0.1), Arm("dr3", 0.1)])
    >>> [type(run).__name__ for run in learner.run_updates]
    ['CompiledUpdate', 'RunUpdate']
    """
    spec, arm = objective.spec, objective.arms.arms[run]
    if spec.sees_pictures:
        return _of_pictures(spec, state.online.dtype, bf16=bf16)(run, objective, adam, layout, state)
    fits = (
        spec.kind == "minatar"
        and not spec.layer_norm
        and max(spec.observation_shape[1:]) <= _PLACES
        and state.online.dtype == torch.float32
        and (arm.kind != "dr3" or arm.kappa == 0)
        and find_spec("numba") is not None  # MinAtar is not played without, but may be learnt from a file
    )
    return (CompiledUpdate if fits else RunUpdate)(run, objective, adam, layout, state)


def _of_pictures(spec: NetworkSpec, dtype: torch.dtype, *, bf16: bool) -> type[HalvedUpdate]:
    if bf16 and dtype == torch.float32:
        return RoundedUpdate
    return WinogradUpdate if winograd_fits(spec, dtype) else HalvedUpdate


class CompiledUpdate(RunUpdate):
    """A `RunUpdate` whose `update` is one call of a kernel. The kernels are loaded at the first one."""

    def __init__(self, run: int, objective: Objective, adam: Adam, layout: Layout, state: State) -> None:
        super().__init__(run, objective, adam, layout, state)
        own, arm = self._objective, objective.arms.arms[run]
        self._arm = arm
        self._legal = np.ones(own.spec.actions, np.bool_) if own.legal is None else own.legal.numpy().reshape(-1)
        self._learning_rate = adam.learning_rates[run].item()
        self._losses = np.zeros(2, np.float32)
        self._marks = state.diverged_at[run : run + 1].numpy()
        self._target_row = state.target[run]
        self._kernels: Any = None
        self._memory: Any = None

    def update(self, batch: Batch, number: int) -> Losses:
        """See :meth:`RunUpdate.update`."""
        self.learn(batch, number)
        td, penalty = torch.from_numpy(self._losses.copy()).unsqueeze(1)
        return self._objective.losses(td, penalty)

    def learn(self, batch: Batch, number: int) -> None:
        """The update, without its losses."""
        if self._kernels is None:
            self._load()
        kernels = self._kernels
        observations, actions, rewards, discounts, next_observations = (field.numpy()[self._run] for field in batch)
        samples = kernels.Samples(
            np.ascontiguousarray(observations),
            np.ascontiguousarray(actions),
            np.ascontiguousarray(rewards, np.float32),
            np.ascontiguousarray(discounts, np.float32),
            np.ascontiguousarray(next_observations),
        )
        if self._memory is None or len(self._memory.counts) != len(samples.actions):
            self._memory = kernels.memory(self._networks[0], samples.observations, self._loss.kind)
        kernels.update(
            samples,
            self._legal,
            self._loss,
            *self._networks,
            *self._moments,
            self._step(number),
            number,
            self._marks,
            self._memory,
            self._losses,
        )

    def _load(self) -> None:
        # numba comes with this module
        kernels = import_module("gramian.deep.engines.kernels.update")
        online, gradient, mean, square = self._rows
        objective, arm = self._objective, self._arm
        self._networks = [
            kernels.Network(row.numpy(), *(parameter.numpy() for parameter in parameters.values()))
            for row, parameters in (
                (online, self._online),
                (self._target_row, self._target),
                (gradient, self._gradient),
            )
        ]
        self._moments = mean.numpy(), square.numpy()
        kind = kernels.NONE if arm.kappa == 0 else kernels.penalties.KINDS[arm.kind]
        self._loss = kernels.Loss(
            kind, float(arm.kappa), arm.centered, objective.td_loss == "squared", objective.double_q
        )
        self._kernels = kernels

    def _step(self, number: int) -> Any:
        """The coefficients of Adam's ``number``-th step."""
        adam, rate = self._adam, self._learning_rate
        beta1, beta2 = adam.betas
        return self._kernels.Step(
            max_norm=math.inf if adam.max_grad_norm is None else float(adam.max_grad_norm),
            keep=1.0 - rate * adam.weight_decay,
            mean=1.0 - beta1,
            square_keep=float(beta2),
            square=1.0 - beta2,
            root=(1 - beta2**number) ** -0.5,
            epsilon=float(adam.epsilon),
            rate=rate / (1 - beta1**number),
        )
