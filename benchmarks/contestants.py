"""What ``benchmarks.training`` measures: programs that train DQN on the same workload, and emulators alone."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.core.arms import parse_arm
from gramian.core.games import Kind, find_game
from gramian.deep.training.config import Config, RunSpec, Settings, load_preset

if TYPE_CHECKING:
    from gymnasium.spaces import Space

FOREVER_FRAMES = 1 << 40
ACTIONS_DRAWN = 4096
"""Random actions that are drawn ahead for an emulator that runs alone."""


@dataclass(frozen=True)
class Workload:
    """What a contestant is to do: P runs of E environments for those that know populations, else one.

    The first ``prefill_agent_steps`` of each run are random; at ``capacity`` the whole replay has been touched.
    """

    contestant: str
    game: str
    preset: str
    runs: int
    envs_per_run: int
    capacity: int
    prefill_agent_steps: int
    device: str
    warm_up_s: float

    @property
    def settings(self) -> Settings:
        """The preset's, with the sizes of this workload, ε at its final value, and no end."""
        return replace(
            load_preset(self.preset),
            frames=FOREVER_FRAMES,
            envs_per_run=self.envs_per_run,
            replay_capacity=self.capacity,
            prefill_agent_steps=self.prefill_agent_steps,
            epsilon_decay_agent_steps=0,
        )

    @property
    def config(self) -> Config:
        """A population of DQN, one run for each seed."""
        settings, game, arm = self.settings, find_game(self.game), parse_arm("dqn", 0.0)
        return Config(self.preset, settings, tuple(RunSpec(game, arm, seed) for seed in range(self.runs)))

    def to_json(self) -> str:
        """One line.

        Examples
        --------
        >>> work = Workload("sb3", "pong", "author", 1, 1, 20_000, 20_000, "cpu", 1.0)
        >>> Workload(**json.loads(work.to_json())) == work
        True
        """
        return json.dumps(asdict(self))


class Contestant(Protocol):
    """What a process can hold."""

    def fill(self) -> None:
        """Take the random steps of the prefill."""

    def run(self, seconds: float) -> int:
        """Go on for so long; the number of agent steps taken, all runs together."""

    def updates(self) -> int:
        """Updates so far, all runs together."""


def repeated(step: Callable[[], object], seconds: float) -> int:
    """Call ``step`` for so long, once at least; the number of calls."""
    deadline, calls = time.perf_counter() + seconds, 0
    while calls == 0 or time.perf_counter() < deadline:
        step()
        calls += 1
    return calls


class StableBaselines:
    """Stable-Baselines3's DQN on one environment, logging off, through its own ``learn``."""

    def __init__(self, work: Workload) -> None:
        import torch
        from stable_baselines3 import DQN

        from benchmarks.peer_games import make_game
        from gramian.deep.training.trainer import FEATURES, NETWORKS

        settings, kind = work.settings, find_game(work.game).kind
        width = settings.features_dim or FEATURES[NETWORKS[kind]]
        torch.backends.cuda.matmul.allow_tf32 = settings.tf32  # as ours
        self._prefill = settings.prefill_agent_steps
        self._period = settings.update_period_agent_steps
        self.model = DQN(
            "CnnPolicy" if kind == "atari" else "MlpPolicy",
            make_game(work.game, settings, seed=0),
            learning_rate=settings.learning_rate,
            buffer_size=settings.replay_capacity,
            learning_starts=settings.prefill_agent_steps,
            batch_size=settings.batch_size,
            gamma=settings.gamma,
            train_freq=settings.update_period_agent_steps,
            target_update_interval=settings.target_period_agent_steps,
            exploration_initial_eps=settings.epsilon_final,
            exploration_final_eps=settings.epsilon_final,
            policy_kwargs={**_network(kind, width), "optimizer_kwargs": {"eps": settings.adam_epsilon}},
            seed=0,
            device=work.device,
        )

    def fill(self) -> None:
        """See `Contestant.fill`."""
        self.model.learn(self._prefill, log_interval=None)  # type: ignore[arg-type] # None is its way to log nothing

    def run(self, seconds: float) -> int:
        """See `Contestant.run`."""
        deadline, steps = time.perf_counter() + seconds, 0

        def goes_on(_locals: dict[str, Any], _globals: dict[str, Any]) -> bool:
            nonlocal steps
            steps += 1
            # an update follows the last step of each period: stop after the first step of a period, not before it
            return steps <= self._period or steps % self._period != 1 % self._period or time.perf_counter() < deadline

        self.model.learn(10**12, goes_on, log_interval=None, reset_num_timesteps=False)  # type: ignore[arg-type]
        return steps

    def updates(self) -> int:
        """See `Contestant.updates`."""
        return self.model._n_updates


def _network(kind: Kind, features_dim: int) -> dict[str, Any]:
    """Arguments of Stable-Baselines3's policy for the network of Mnih et al. 2015, or of Young & Tian 2019."""
    if kind == "atari":
        return {"net_arch": [], "features_extractor_kwargs": {"features_dim": features_dim}}
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    class Body(BaseFeaturesExtractor):
        def __init__(self, space: "Space[Any]", features_dim: int) -> None:
            super().__init__(space, features_dim)
            assert space.shape is not None
            planes, height, width = space.shape
            inputs = 16 * (height - 2) * (width - 2)
            convolution = nn.Conv2d(planes, 16, 3, 1)
            self.layers = nn.Sequential(
                convolution, nn.ReLU(), nn.Flatten(), nn.Linear(inputs, features_dim), nn.ReLU()
            )

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = self.layers(observations.float())
            return features

    return {
        "net_arch": [],
        "normalize_images": False,
        "features_extractor_class": Body,
        "features_extractor_kwargs": {"features_dim": features_dim},
    }


class Ours:
    """A population of this package."""

    def __init__(self, work: Workload) -> None:
        from gramian.deep.training.trainer import Trainer, make_environments

        self._prefill = work.prefill_agent_steps
        self._runs, self._steps = work.runs, work.runs * work.envs_per_run
        self.trainer = Trainer(work.config, make_environments(work.config, device=work.device), device=work.device)

    def fill(self) -> None:
        """See `Contestant.fill`."""
        while self.trainer.agent_steps < self._prefill:
            self.trainer.step()

    def run(self, seconds: float) -> int:
        """See `Contestant.run`."""
        return self._steps * repeated(self.trainer.step, seconds)

    def updates(self) -> int:
        """See `Contestant.updates`."""
        return self._runs * self.trainer.learner.updates


class Alone:
    """Environments with random actions and no learner.

    Parameters
    ----------
    step
        Takes actions of the given shape.
    shape
        Of the actions: one for each environment.
    action_count
        Of the game.
    """

    def __init__(self, step: Callable[[NDArray[np.int64]], object], shape: tuple[int, ...], action_count: int) -> None:
        self._act = step
        self._count = math.prod(shape)
        self._actions = np.random.default_rng(0).integers(0, action_count, (ACTIONS_DRAWN, *shape))
        self._taken = 0

    def fill(self) -> None:
        """See `Contestant.fill`; there is nothing to fill."""

    def run(self, seconds: float) -> int:
        """See `Contestant.run`."""
        return self._count * repeated(self._step, seconds)

    def updates(self) -> int:
        """See `Contestant.updates`."""
        return 0

    def _step(self) -> None:
        self._act(self._actions[self._taken % ACTIONS_DRAWN])
        self._taken += 1


def emulator(work: Workload) -> Alone:
    """ale-py's vector environment alone, or the package minatar's games one after the other."""
    from benchmarks.peer_games import MinAtarRules, atari_vector

    game, options, count = find_game(work.game), work.settings.environment, work.runs * work.envs_per_run
    if game.kind == "atari":
        vector = atari_vector(game, count, options.atari)
        vector.reset(seed=0)
        return Alone(vector.step, (count,), len(vector.ale.get_action_set()))
    games = [MinAtarRules(game, options.minatar, seed) for seed in range(count)]
    for one in games:
        one.reset()

    def step(actions: NDArray[np.int64]) -> None:
        for one, action in zip(games, actions, strict=True):
            if one.step(action)[2]:
                one.reset()

    return Alone(step, (count,), games[0].action_count)


class Entry(NamedTuple):
    """A contestant that can be asked for."""

    make: Callable[[Workload], Contestant]
    title: str
    needs: tuple[str, ...]
    """Modules without which it cannot run, beside the games' own."""
    populations: bool
    """Whether it takes P runs in one process; where it does not, P processes are started."""
    learns: bool


GAMES_NEED = {"atari": ("ale_py",), "minatar": ("minatar",)}
CONTESTANTS: dict[str, Entry] = {
    "sb3": Entry(StableBaselines, "Stable-Baselines3", ("stable_baselines3", "cv2"), populations=False, learns=True),
    "gramian": Entry(Ours, "gramian", (), populations=True, learns=True),
    "emulator": Entry(emulator, "emulator alone", (), populations=True, learns=False),
}
SB3_VALUES = {
    "loss": "huber",
    "layer_norm": False,
    "n_step": 1,
    "double_q": False,
    "weight_decay": 0.0,
    "max_grad_norm": 0.0,
}
"""The only values of some settings that Stable-Baselines3's DQN is measured with."""


def beyond_sb3(settings: Settings, kind: Kind) -> list[str]:
    """What of a preset `StableBaselines` does not implement: names and values.

    Examples
    --------
    >>> beyond_sb3(load_preset("nature"), "atari")
    []
    >>> beyond_sb3(load_preset("dopamine"), "atari")
    ['network dopamine', 'loss squared']
    """
    from gramian.deep.training.trainer import NETWORKS

    odd: dict[str, object] = {} if settings.network in ("auto", NETWORKS[kind]) else {"network": settings.network}
    odd |= {name: getattr(settings, name) for name, own in SB3_VALUES.items() if getattr(settings, name) != own}
    if kind == "atari":
        atari = settings.environment.atari
        names = ("fire_reset", "noop_after_life_loss", "clear_stack_after_life_loss")
        odd |= {name: True for name in names if getattr(atari, name)}
    if kind == "minatar" and settings.clip_rewards:
        odd["clip_rewards"] = True
    return [f"{name} {str(value).lower()}" for name, value in odd.items()]


def missing(contestant: str, kind: Kind) -> str:
    """Why a contestant cannot play games of a kind here; empty where it can."""
    absent = [module for module in (*CONTESTANTS[contestant].needs, *GAMES_NEED[kind]) if find_spec(module) is None]
    return f"{' and '.join(absent)} cannot be imported here" if absent else ""
