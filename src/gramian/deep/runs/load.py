"""A trained run, loaded from its folder to act, to be evaluated or to be looked into."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gramian.core.errors import UserError
from gramian.core.files import find_export
from gramian.deep.agent.networks import NetworkSpec, Output, Parameters, body, forward, parameter_shapes
from gramian.deep.agent.streams import Stream, bits, integers, uniform
from gramian.deep.envs import make_games
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.training.checkpoint import read_weights
from gramian.deep.training.config import Config, RunSpec, settings_from
from gramian.deep.training.memory import pick_device
from gramian.deep.training.trainer import network_spec

CONFIG = "config.toml"


@dataclass
class Run:
    """What a run has learned so far. `load_run` makes it."""

    folder: Path
    """Where it lies."""
    config: Config
    """What it was trained with; a population of this run alone."""
    agent_steps: int
    """When the weights were saved."""
    network: NetworkSpec
    parameters: Parameters
    observation: ObservationSpec
    """What it sees: ``observation.shape`` is the shape of one observation, frames stacked."""
    actions: int
    """Number A of the actions of its game."""
    _acted: int = 0

    @property
    def spec(self) -> RunSpec:
        """Game, arm and seed."""
        return self.config.runs[0]

    @property
    def features_dim(self) -> int:
        """Number d of features."""
        return self.network.body_outputs

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(iter(self.parameters.values())).device

    @property
    def finite(self) -> bool:
        """Whether all weights are finite numbers; those of a run that diverged may not be."""
        return all(bool(tensor.isfinite().all()) for tensor in self.parameters.values())

    def act(self, observation: ArrayLike | Tensor, epsilon: float = 0.0) -> int:
        """The action for one observation: with probability ε any, each as likely, else the best one.

        The random choices are a function of the run's seed and of the number of calls before.

        Parameters
        ----------
        observation
            ``[*observation.shape]``.
        """
        check_epsilon(epsilon)
        draw = bits(self.spec.seed, Stream.EVALUATE, -1, self._acted)  # seeds of evaluations are 0 or more
        self._acted += 1
        values = self.q_values(self._tensor(observation, self.observation.shape)[None])
        return int(integers(draw, self.actions)) if float(uniform(draw)) < epsilon else int(values.argmax())

    def q_values(self, observations: ArrayLike | Tensor) -> Tensor:
        """Q(s, ·) for a batch of observations ``[n, *observation.shape]``: ``[n, A]``."""
        return self.forward(observations).values[0, :, : self.actions]

    def features(self, observations: ArrayLike | Tensor) -> Tensor:
        """φ(s), what the penalty sees, for a batch ``[n, *observation.shape]``: ``[n, d]``."""
        with torch.no_grad():
            return body(self.network, self.parameters, self._batch(observations))[0]

    @torch.no_grad()
    def forward(self, observations: ArrayLike | Tensor) -> Output:
        """Values ``[1, n, A']`` and features ``[1, n, d]`` of a batch; A' ≥ A where the head serves other games too.

        They are functions of the observations: noisy layers have no noise, and an implicit head has fixed τ.
        """
        legal = torch.arange(self.network.actions, device=self.device) < self.actions
        return forward(self.network, self.parameters, self._batch(observations), legal=legal.view(1, 1, -1))

    def _batch(self, observations: ArrayLike | Tensor) -> Tensor:
        return self._tensor(observations, (None, *self.observation.shape))[None]

    def _tensor(self, values: ArrayLike | Tensor, shape: tuple[int | None, ...]) -> Tensor:
        tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
        if tensor.dim() != len(shape) or any(w not in (None, g) for w, g in zip(shape, tensor.shape, strict=True)):
            wanted = ", ".join("n" if size is None else str(size) for size in shape)
            raise UserError(f"the observation has shape {list(tensor.shape)}; run '{self.spec.name}' sees [{wanted}]")
        return tensor.to(self.device)


def load_run(path: Path | str, device: str = "cpu") -> Run:
    """Load a run from its folder ``OUT/<run>``, with the newest weights that it has saved.

    Loading runs no code: the weights are safetensors.

    Parameters
    ----------
    path
        The run's folder.
    device
        ``cpu``, ``cuda`` or ``auto``.

    Raises
    ------
    UserError
        If the folder is not a run's, if it holds no checkpoint yet, or if what it holds is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from gramian.deep import Arm, Config, load_preset, population, train
    >>> config = Config("tiny", load_preset("tiny"), population(["cartpole"], [Arm("dqn")], [0]))
    >>> run = load_run(train(config, tempfile.mkdtemp()) / "cartpole-dqn-s0")
    >>> run.act([0.0, 0.1, 0.0, -0.1]) in (0, 1)
    True
    >>> run.q_values(np.zeros((5, 4))).shape, run.features(np.zeros((5, 4))).shape
    (torch.Size([5, 2]), torch.Size([5, 16]))
    """
    folder = Path(path)
    config = read_run(folder)
    agent_steps, saved = read_weights(folder)
    place = pick_device(device)
    game = config.runs[0].game
    games = make_games(game, 1, config.settings.environment, here=True)
    observation, actions = games.observation, games.actions
    games.close()
    prefix = "online."
    parameters = {
        name.removeprefix(prefix): tensor.to(place) for name, tensor in saved.items() if name.startswith(prefix)
    }
    # In a population of several games the head is as wide as the one with the most actions needs.
    network = network_spec(config, observation, actions)
    last = f"{list(network.dense_layers)[-1]}.bias"
    width = parameters[last].shape[-1] // network.head.outputs if last in parameters else actions
    network = replace(network, actions=max(width, actions))
    wanted = {name: (1, *shape) for name, shape in parameter_shapes(network).items()}
    if {name: tuple(tensor.shape) for name, tensor in parameters.items()} != wanted:
        raise UserError(f"the weights in '{folder}' do not fit its {CONFIG}; one of them belongs to another run")
    return Run(folder, config, agent_steps, network, parameters, observation, actions)


def read_run(folder: Path) -> Config:
    """What the run in ``folder`` was trained with, from its ``config.toml``."""
    path = folder / CONFIG
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"'{folder}' is not the folder of a run{_where_runs_are(folder)}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error
    missing = [name for name in ("game", "arm", "seed", "preset", "settings") if name not in values]
    if missing:
        raise UserError(f"'{path}' is not that of a run: it lacks {missing[0]!r}")
    try:
        settings = settings_from(values["settings"], f"'{path}'")
        return Config(values["preset"], settings, (RunSpec.from_mapping(values, settings),))
    except (AttributeError, TypeError) as error:
        raise UserError(f"'{path}' holds a value of the wrong type: {error}") from error


def _where_runs_are(folder: Path) -> str:
    if (export := find_export(folder)) is not None:
        return f": '{export}' is an export of a study, without weights; name the run where it was trained"
    names = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
    if not names:
        return "; name a folder OUT/<run> that 'gramian train' has written"
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f", but holds runs; name one of them: {', '.join(str(folder / name) for name in names[:4])}{more}"


def check_epsilon(epsilon: float) -> None:
    """Make sure that a share of random actions is one."""
    if not 0 <= epsilon <= 1:
        raise UserError(f"epsilon is {epsilon}; it must be between 0 and 1")
