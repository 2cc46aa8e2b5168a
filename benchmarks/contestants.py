"""What ``benchmarks.training`` measures: programs that train DQN on the same workload, and emulators alone."""

import json
import math
import time
from collections.abc import Callable, Mapping
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

    from benchmarks.peer_games import MinAtarRules

FOREVER_FRAMES = 1 << 40
ACTIONS_DRAWN = 4096
"""Random actions that are drawn ahead for an emulator that runs alone."""


@dataclass(frozen=True)
class Workload:
    """What a contestant is to do.

    Attributes
    ----------
    contestant
        A key of `CONTESTANTS`.
    game, preset
        By their names.
    runs
        P, for contestants that know populations.
    arms
        Given to the runs in turn.
    envs_per_run
        E, for contestants that know populations.
    capacity
        Transitions in the replay of each run.
    prefill_agent_steps
        Random agent steps of each run before it learns; at ``capacity`` the whole memory has been touched.
    device
        Of the networks.
    warm_up_s
        Seconds of training before the first measurement.
    emulator_threads
        Of ale-py's vector environment where it is alone; 0 for its own choice, one for each environment and no more
        than the machine has cores.
    cores
        For the emulators of this package beside a learner; 0 for all.
    """

    contestant: str
    game: str
    preset: str
    runs: int
    arms: tuple[str, ...]
    envs_per_run: int
    capacity: int
    prefill_agent_steps: int
    device: str
    warm_up_s: float
    emulator_threads: int = 0
    cores: int = 0

    @property
    def settings(self) -> Settings:
        """The preset's, with the sizes of this workload, an ε that stays at its final value, and no end."""
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
        """The population: arms in turn, the seed going up when all have had theirs."""
        settings, game = self.settings, find_game(self.game)
        arms = [parse_arm(arm, settings.kappa) for arm in self.arms]
        runs = (RunSpec(game, arms[i % len(arms)], seed=i // len(arms)) for i in range(self.runs))
        return Config(self.preset, settings, tuple(runs))

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(line: str) -> "Workload":
        """What `to_json` wrote.

        Examples
        --------
        >>> work = Workload("plain", "pong", "author", 1, ("dqn",), 1, 20_000, 20_000, "cpu", 1.0)
        >>> Workload.from_json(work.to_json()) == work
        True
        """
        values = json.loads(line)
        return Workload(**(values | {"arms": tuple(values["arms"])}))


class Part(NamedTuple):
    """A method whose time a profile counts under ``name``."""

    name: str
    owner: object
    method: str


class Contestant(Protocol):
    """What a process can hold."""

    def fill(self) -> None:
        """Take the random steps of the prefill."""

    def run(self, seconds: float) -> int:
        """Go on for so long; the number of agent steps taken, all runs together."""

    def updates(self) -> int:
        """Updates so far, all runs together."""

    def parts(self) -> list[Part]:
        """What an agent step is made of."""


def repeated(step: Callable[[], object], seconds: float) -> int:
    """Call ``step`` for so long, once at least; the number of calls."""
    deadline, calls = time.perf_counter() + seconds, 0
    while calls == 0 or time.perf_counter() < deadline:
        step()
        calls += 1
    return calls


class StableBaselines:
    """Stable-Baselines3's DQN on one environment, logging off, through its own ``learn``."""

    def __init__(self, work: Workload, *, lean: bool) -> None:
        from stable_baselines3 import DQN

        from benchmarks.peer_games import make_game

        settings = work.settings
        atari = find_game(work.game).kind == "atari"
        network = (_nature_policy if atari else _minatar_policy)(_features_dim(work))
        _round_as_told(settings)
        self._prefill = settings.prefill_agent_steps
        self._period = settings.update_period_agent_steps
        self.model = DQN(
            "CnnPolicy" if atari else "MlpPolicy",
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
            optimize_memory_usage=lean,
            # its lean buffer cannot tell time limits from ends
            replay_buffer_kwargs={"handle_timeout_termination": False} if lean else None,
            policy_kwargs={**network, "optimizer_kwargs": {"eps": settings.adam_epsilon}},
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

    def parts(self) -> list[Part]:
        """See `Contestant.parts`."""
        return [
            Part("act", self.model, "_sample_action"),
            Part("environment", self.model.env, "step"),
            Part("store", self.model, "_store_transition"),
            Part("sample", self.model.replay_buffer, "sample"),
            Part("update", self.model, "train"),
        ]


def _features_dim(work: Workload) -> int:
    """Width of the features: the preset's, or the network's own where it names none."""
    from gramian.deep.training.trainer import FEATURES, NETWORKS

    return work.settings.features_dim or FEATURES[NETWORKS[find_game(work.game).kind]]


def _round_as_told(settings: Settings) -> None:
    """Let a GPU round a peer's products as it rounds ours."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = settings.tf32


def _nature_policy(features_dim: int) -> dict[str, Any]:
    return {"net_arch": [], "features_extractor_kwargs": {"features_dim": features_dim}}


def _minatar_policy(features_dim: int) -> dict[str, Any]:
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    from benchmarks.plain_dqn import body

    class Body(BaseFeaturesExtractor):
        def __init__(self, space: "Space[Any]", features_dim: int) -> None:
            super().__init__(space, features_dim)
            assert space.shape is not None
            self.layers = body(space.shape, features_dim)

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = self.layers(observations)
            return features

    return {
        "net_arch": [],
        "normalize_images": False,
        "features_extractor_class": Body,
        "features_extractor_kwargs": {"features_dim": features_dim},
    }


class Plain:
    """The plain loop of ``benchmarks.plain_dqn``."""

    def __init__(self, work: Workload) -> None:
        import torch

        from benchmarks.peer_games import make_game
        from benchmarks.plain_dqn import PlainDQN

        settings = work.settings
        _round_as_told(settings)
        self.agent = PlainDQN(
            make_game(work.game, settings, seed=0), settings, _features_dim(work), 0, torch.device(work.device)
        )

    def fill(self) -> None:
        """See `Contestant.fill`."""
        for _ in range(self.agent.settings.prefill_agent_steps):
            self.agent.step()

    def run(self, seconds: float) -> int:
        """See `Contestant.run`."""
        return repeated(self.agent.step, seconds)

    def updates(self) -> int:
        """See `Contestant.updates`."""
        return self.agent.updates

    def parts(self) -> list[Part]:
        """See `Contestant.parts`."""
        return [
            Part("act", self.agent, "act"),
            Part("environment", self.agent.env, "step"),
            Part("environment", self.agent.env, "reset"),
            Part("store", self.agent.ring, "add"),
            Part("sample", self.agent.ring, "sample"),
            Part("update", self.agent, "update"),
        ]


class Ours:
    """A population of this package, its products rounded to bfloat16 where that is asked for."""

    def __init__(self, work: Workload, *, bf16: bool = False) -> None:
        from gramian.deep.training.trainer import Trainer, make_environments

        config = replace(work.config, settings=replace(work.settings, bf16=bf16))
        self._prefill = config.settings.prefill_agent_steps
        self._steps = work.runs * work.envs_per_run
        self._runs = work.runs
        environments = make_environments(config, work.cores, work.device)
        self.trainer = Trainer(config, environments, device=work.device)

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

    def parts(self) -> list[Part]:
        """See `Contestant.parts`."""
        environments, pipeline = self.trainer.environments, self.trainer.pipeline
        runs = self.trainer.learner.run_updates  # on a CPU; in threads of their own, where there are any
        return [
            *(Part("act", pipeline, method) for method in ("act", "chosen")),
            Part("environment", environments, "send"),
            Part("environment", environments, "recv"),
            *(Part("store", pipeline, method) for method in ("observe", "store")),
            Part("sample", pipeline, "draw"),
            Part("wait", pipeline, "settle"),
            Part("update", pipeline, "learn"),
            *(Part("update", run, method) for run in runs for method in ("update", "learn", "work")),
        ]


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

    def parts(self) -> list[Part]:
        """See `Contestant.parts`."""
        return []

    def _step(self) -> None:
        self._act(self._actions[self._taken % ACTIONS_DRAWN])
        self._taken += 1


def our_environments(work: Workload) -> Alone:
    """The package's environments alone."""
    from gramian.deep.training.trainer import make_environments

    environments = make_environments(work.config, device=work.device)
    environments.reset()
    return Alone(environments.step, environments.shape, int(environments.actions[0]))


def emulator(work: Workload) -> Alone:
    """ale-py's vector environment alone, or MinAtar's own environments one after the other."""
    game, options = find_game(work.game), work.settings.environment
    count = work.runs * work.envs_per_run
    if game.kind == "atari":
        from ale_py.vector_env import AtariVectorEnv

        from benchmarks.peer_games import atari_options

        vector = AtariVectorEnv(game.id, count, num_threads=work.emulator_threads, **atari_options(options.atari))
        vector.reset(seed=0)
        return Alone(vector.step, (count,), len(vector.ale.get_action_set()))
    from benchmarks.peer_games import MinAtarRules

    games = [MinAtarRules(game, options.minatar, seed) for seed in range(count)]
    for one in games:
        one.reset()
    return Alone(lambda actions: _step_each(games, actions), (count,), games[0].action_count)


def _step_each(games: "list[MinAtarRules]", actions: NDArray[np.int64]) -> None:
    for game, action in zip(games, actions, strict=True):
        if game.step(action)[2]:
            game.reset()


class Entry(NamedTuple):
    """A contestant that can be asked for."""

    make: Callable[[Workload], Contestant]
    title: str
    needs: Mapping[str, tuple[str, ...]]
    """Modules without which it cannot run, for each kind of game that it can play."""
    populations: bool
    """Whether it takes P runs in one process; where it does not, P processes are started."""
    learns: bool


_GAMES = {"atari": ("ale_py", "gymnasium"), "minatar": ("minatar", "gymnasium")}
_SB3_GAMES = {"atari": ("stable_baselines3", "ale_py", "cv2"), "minatar": ("stable_baselines3", "minatar")}
CONTESTANTS: dict[str, Entry] = {
    "sb3": Entry(lambda work: StableBaselines(work, lean=False), "Stable-Baselines3", _SB3_GAMES, False, True),
    "sb3-lean": Entry(
        lambda work: StableBaselines(work, lean=True),
        "Stable-Baselines3, optimize_memory_usage",
        _SB3_GAMES,
        False,
        True,
    ),
    "plain": Entry(Plain, "plain loop", _GAMES, False, True),
    "gramian": Entry(Ours, "gramian", _GAMES, True, True),
    "gramian-bf16": Entry(lambda work: Ours(work, bf16=True), "gramian, bf16", {"atari": _GAMES["atari"]}, True, True),
    "emulator": Entry(emulator, "emulator alone", _GAMES, True, False),
    "environments": Entry(our_environments, "gramian's environments alone", _GAMES, True, False),
}


OURS = ("gramian", "gramian-bf16")
"""Contestants that learn and are ours."""
ON_REQUEST = ("gramian-bf16",)
"""Contestants that take part where they are named."""
PEERS = ("sb3", "sb3-lean", "plain")
"""Contestants that learn and are not ours."""
PEER_VALUES = {
    "loss": "huber",
    "layer_norm": False,
    "n_step": 1,
    "double_q": False,
    "weight_decay": 0.0,
    "max_grad_norm": 0.0,
}
"""The only values of some settings that the peers know."""


def beyond_peers(settings: Settings, kind: Kind) -> list[str]:
    """What of a preset the peers do not implement: names and values.

    Examples
    --------
    >>> beyond_peers(load_preset("author"), "atari")
    []
    >>> beyond_peers(load_preset("dopamine"), "atari")
    ['network dopamine', 'loss squared']
    """
    from gramian.deep.training.trainer import NETWORKS

    odd: dict[str, object] = {} if settings.network in ("auto", NETWORKS[kind]) else {"network": settings.network}
    odd |= {name: getattr(settings, name) for name, own in PEER_VALUES.items() if getattr(settings, name) != own}
    if kind == "atari" and settings.environment.atari.fire_reset:
        odd["fire_reset"] = True
    if kind == "minatar" and settings.clip_rewards:
        odd["clip_rewards"] = True
    return [f"{name} {str(value).lower()}" for name, value in odd.items()]


def missing(contestant: str, kind: str) -> str:
    """Why a contestant cannot play games of a kind here; empty where it can.

    Examples
    --------
    >>> missing("gramian", "cartpole")
    'it plays atari and minatar games only'
    """
    needs = CONTESTANTS[contestant].needs
    if kind not in needs:
        return f"it plays {' and '.join(needs)} games only"
    absent = [module for module in needs[kind] if find_spec(module) is None]
    return f"{' and '.join(absent)} cannot be imported here" if absent else ""
