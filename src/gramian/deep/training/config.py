"""What a training run is made of: presets, their values, and the population that they are used for."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tyro

from gramian.core.arms import PLAIN, Arm, parse_arm
from gramian.core.errors import UserError, require, require_least, unknown
from gramian.core.games import Game, Kind, find_game
from gramian.core.typed import from_table
from gramian.deep.choices import TDLoss
from gramian.deep.envs.options import EnvironmentOptions
from gramian.deep.training.agents import AgentName, agent_parts, check_agent

_POSITIVE = (
    "frames",
    "n_step",
    "batch_size",
    "update_period_agent_steps",
    "envs_per_run",
    "representation_states",
    "target_period_agent_steps",
    "metrics_period_agent_steps",
    "checkpoint_period_agent_steps",
)
PRIORITIES = ("priority_exponent", "importance_exponent")
NetworkChoice = Literal["auto", "nature", "dopamine", "minatar", "mlp"]


@dataclass(frozen=True)
class Settings:
    """Every value that a preset sets. All runs of a population share them.

    A preset file holds the same names; its tables ``[environment.atari]``, ``[environment.minatar]``,
    ``[environment.cartpole]`` and ``[environment.gym]`` set the emulators.
    """

    frames: int = 20_000_000
    """Emulator frames of a run, the random ones at its beginning included; an agent step is ``frame_skip`` frames."""
    kappa: float = 10.24
    """κ of the arms that name none of their own."""

    agent: AgentName = "dqn"
    """dqn, c51, qr, iqn, rainbow (c51, 3 steps, prioritised) or full-rainbow (also double Q, dueling, noisy). One
    that is not the preset's sets all these settings, except those that are given too."""
    dueling: bool = False
    """A value and advantages instead of one value for each action."""
    noisy: bool = False
    """Gaussian noise in the dense layers; an evaluation has none."""
    atoms: int = 51
    """Of c51 and the rainbows."""
    v_min: float = 0.0
    """Least return that the atoms of c51 and the rainbows can stand for."""
    v_max: float = 0.0
    """Largest one; where both are 0 they are -10 and 10 for Atari, -100 and 100 for MinAtar and CartPole."""
    quantiles: int = 200
    """Of qr."""
    tau_samples: int = 64
    """Random quantiles of iqn that an update improves."""
    target_tau_samples: int = 64
    """Random quantiles of iqn's target."""
    acting_tau_samples: int = 32
    """Quantiles that iqn chooses an action by."""

    network: NetworkChoice = "auto"
    """``auto`` takes the one made for the game: nature for images, minatar for MinAtar, mlp for vectors. dopamine is
    Dopamine's reading of nature, with padded convolutions and other initial weights."""
    features_dim: int = 0
    """Width of the hidden layers; 0 takes the network's own: 512 for Atari, 128 minatar, 64 mlp. The features are the
    last hidden layer; of iqn what precedes it."""
    layer_norm: bool = False
    """Normalise the hidden layers before their rectifier."""
    tf32: bool = False
    """Let a GPU round the factors of its matrix products to TF32, those of penalties and measures excepted. An update
    of Atari's network takes half the time. A CPU does not know it."""

    gamma: float = 0.99
    """Discount of one agent step."""
    n_step: int = 1
    """Steps of reward before the target bootstraps."""
    double_q: bool = False
    """The online network chooses the action that the target network values."""
    loss: TDLoss = "huber"
    """TD loss of dqn, a mean over the batch."""
    learning_rate: float = 1e-4
    """Adam's."""
    adam_epsilon: float = 1.5e-4
    """Adam's."""
    weight_decay: float = 0.0
    """Decoupled, of all parameters."""
    max_grad_norm: float = 0.0
    """Largest norm of a run's gradient; 0 leaves it as it is."""

    batch_size: int = 32
    """Transitions of an update."""
    replay_capacity: int = 1_000_000
    """Transitions that are kept."""
    prioritized: bool = False
    """Sample transitions in proportion to their priority, (TD loss + 1e-10)^priority_exponent."""
    priority_exponent: float = 0.5
    """Of the TD loss in a priority; 0.5 is Dopamine's square root."""
    importance_exponent: float = 0.5
    """Importance weights are probability^-importance_exponent, divided by the batch's largest."""
    prefill_agent_steps: int = 50_000
    """Random actions before the first update."""
    update_period_agent_steps: int = 4
    """Agent steps between two updates."""
    target_period_agent_steps: int = 10_000
    """Agent steps between two copies to the target network: a multiple of the update period."""
    sequential: bool = False
    """Act, store and learn one after the other, which takes longer. Otherwise the actors go on while the learner is at
    work, with weights that lack the newest update, and those that have just fallen due."""

    epsilon_initial: float = 1.0
    """Share of random actions when the prefill is over."""
    epsilon_final: float = 0.02
    """Share of random actions from the end of the decay on."""
    epsilon_decay_agent_steps: int = 1_000_000
    """Length of the linear decay, counted from the end of the prefill."""

    terminal_on_life_loss: bool = True
    """A lost life ends the learner's episode; the game goes on."""
    clip_rewards: bool = True
    """The learner sees the sign of the reward; returns are raw all the same."""
    envs_per_run: int = 1
    """Environments that a run plays at once; 1 is the faithful setting."""

    metrics_period_agent_steps: int = 10_000
    """Agent steps between two rows of ``metrics.csv``."""
    representation_period_agent_steps: int = 250_000
    """Agent steps between two rows of ``representation.csv``; 0 for none."""
    representation_states: int = 2048
    """Held-out states on which the representation is measured."""
    checkpoint_period_agent_steps: int = 250_000
    """Agent steps between two checkpoints."""

    environment: Annotated[EnvironmentOptions, tyro.conf.arg(name="")] = field(default_factory=EnvironmentOptions)
    """Settings of the emulators."""

    def __post_init__(self) -> None:
        require_least(self, 1, *_POSITIVE)
        require_least(self, 0, "features_dim", "epsilon_decay_agent_steps", "representation_period_agent_steps")
        check_agent(vars(self))
        for name in ("epsilon_initial", "epsilon_final", "gamma"):
            require(0 <= getattr(self, name) <= 1, name, getattr(self, name), "between 0 and 1")
        for name in ("kappa", "learning_rate", "adam_epsilon", "weight_decay", "max_grad_norm", *PRIORITIES):
            _require_finite(name, getattr(self, name))
        least, period = self.n_step * self.envs_per_run, self.update_period_agent_steps
        for name, holds, right in (
            ("adam_epsilon", self.adam_epsilon > 0, "more than 0"),
            (
                "target_period_agent_steps",
                self.target_period_agent_steps % period == 0,
                f"a multiple of the update period {period}",
            ),
            (
                "prefill_agent_steps",
                self.prefill_agent_steps >= least,
                f"at least {least}, n_step for each environment, so that there is something to sample",
            ),
            ("replay_capacity", self.replay_capacity > least, f"more than {least}, n_step for each environment"),
        ):
            require(holds, name, getattr(self, name), right)


@dataclass(frozen=True)
class RunSpec:
    """One run: what it plays, with which penalty, from which seed.

    Examples
    --------
    >>> RunSpec(find_game("Seaquest"), Arm("gram", 10.24), seed=1).name
    'seaquest-gram-k10.24-s1'
    """

    game: Game
    arm: Arm
    seed: int
    learning_rate: float | None = None
    """Where it differs from the settings'."""
    label: str = ""
    """What tables and reports call its arm; the arm itself where empty."""
    variant: str = ""
    """What its population sets otherwise than the rest of its study, as ``layer-norm``."""
    agent: AgentName = "dqn"
    """That of the settings; `Config` fills it in."""

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0 to 2^63 - 1")
        if self.learning_rate is not None:
            _require_finite("learning_rate", self.learning_rate)
        require(re.fullmatch(r"[\w.+-]*", self.variant) is not None, "variant", repr(self.variant), "a folder's name")

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        rate = "" if self.learning_rate is None else f"-lr{self.learning_rate!r}"
        terms = (str(term).replace(":", "-k", 1).replace(":", "-") for term in self.arm.terms or (self.arm,))
        agent = [self.agent] if self.agent != "dqn" else []
        arm = ["+".join(terms)] if self.arm.kappa or self.arm.kind != PLAIN or not agent else []
        own = [self.variant] if self.variant else []
        return "-".join([re.sub("[/:]", "-", self.game.name), *agent, *arm, *own]) + f"{rate}-s{self.seed}"

    def to_mapping(self) -> dict[str, Any]:
        """What `from_mapping` needs."""
        optional = {
            "learning_rate": self.learning_rate,
            "label": self.label or None,
            "variant": self.variant or None,
        }
        given = {name: value for name, value in optional.items() if value is not None}
        return {"game": self.game.name, "arm": str(self.arm), "seed": self.seed, **given}

    @classmethod
    def from_mapping(cls, saved: Mapping[str, Any], settings: Settings) -> Self:
        """A run as ``population.json`` and ``config.toml`` describe it."""
        arm = parse_arm(saved["arm"], settings.kappa)
        optional = saved.get("learning_rate"), saved.get("label", ""), saved.get("variant", "")
        return cls(find_game(saved["game"]), arm, saved["seed"], *optional, settings.agent)


@dataclass(frozen=True)
class Config:
    """A population: its settings and its runs, whose order is fixed.

    Examples
    --------
    >>> config = Config("smoke", load_preset("smoke"), population(["minatar/breakout"], [Arm("dqn")], [0, 1]))
    >>> [run.name for run in config.runs]
    ['minatar-breakout-dqn-s0', 'minatar-breakout-dqn-s1']
    """

    preset: str
    settings: Settings
    runs: tuple[RunSpec, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", tuple(replace(run, agent=self.settings.agent) for run in self.runs))
        names = [run.name for run in self.runs]
        if not names:
            raise UserError("a population needs at least one run; name a game, an arm and a seed")
        if twice := sorted(name for name, count in Counter(names).items() if count > 1):
            raise UserError(f"run {twice[0]!r} stands twice in the population; name each arm and seed once")
        kinds = {run.game.kind for run in self.runs}
        if len(kinds) > 1:
            raise UserError(f"games of kinds {', '.join(sorted(kinds))} cannot share a population; train them apart")
        smallest = max(run.arm.minimum_batch_size for run in self.runs)
        require(self.settings.batch_size >= smallest, "batch_size", self.settings.batch_size, f"at least {smallest}")

    @cached_property
    def frames_per_agent_step(self) -> int:
        """Emulator frames that one action lasts."""
        return self.settings.environment.atari.frame_skip if self.runs[0].game.kind == "atari" else 1

    @cached_property
    def agent_steps(self) -> int:
        """Agent steps of each run: ``frames`` rounded up to whole steps of all its environments."""
        steps = -(-self.settings.frames // self.frames_per_agent_step)
        return -(-steps // self.settings.envs_per_run) * self.settings.envs_per_run


def population(games: Sequence[str], arms: Sequence[Arm], seeds: Sequence[int]) -> tuple[RunSpec, ...]:
    """Games × arms × seeds, in this order.

    Examples
    --------
    >>> [run.name for run in population(["pong"], [Arm("dqn"), Arm("gram", 0.5)], [7])]
    ['pong-dqn-s7', 'pong-gram-k0.5-s7']
    """
    return tuple(RunSpec(find_game(game), arm, seed) for game in games for arm in arms for seed in seeds)


def preset_names() -> list[str]:
    """The presets that the package ships.

    Examples
    --------
    >>> preset_names()[:4]
    ['author', 'cartpole', 'dopamine', 'dopamine-c51']
    """
    return sorted(entry.name.removesuffix(".toml") for entry in _PRESETS.iterdir() if entry.name.endswith(".toml"))


_PRESETS = files("gramian") / "presets"


def load_preset(name: str) -> Settings:
    """A shipped preset by its name, or one of your own by the path of its TOML file.

    A file may name a shipped preset as its ``base``; it then holds what differs.

    Raises
    ------
    UserError
        If there is none, or if it holds an unknown or ill-typed value.
    """
    values = _preset_values(name)
    if (base := values.pop("base", None)) is None:
        return settings_from(values, f"preset '{name}'")
    if base not in preset_names():
        raise unknown(f"base in preset '{name}':", str(base), preset_names())
    return settings_from(values, f"preset '{name}'", load_preset(base))


def check_preset(name: str, kind: Kind) -> None:
    """Refuse a preset that was made for other games: one that sets the emulators of other kinds and not of this one."""
    load_preset(name)  # complains first of a table that no emulator has
    kinds = _preset_kinds(name)
    if kinds and kind not in kinds:
        fitting = [preset for preset in preset_names() if kind in _preset_kinds(preset)]
        choice = " or ".join((", ".join(fitting[:-1]), fitting[-1])) if len(fitting) > 1 else fitting[0]
        raise UserError(
            f"preset '{name}' is for games of {' and '.join(sorted(kinds))}, not of {kind}; choose {choice}"
        )


def _preset_kinds(name: str) -> set[str]:
    values = _preset_values(name)
    emulators = values.get("environment", {})
    inherited = _preset_kinds(values["base"]) if "base" in values else set[str]()
    return inherited | set(emulators) if isinstance(emulators, Mapping) else inherited


def _preset_values(name: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot read preset '{name}': {(error.strerror or str(error)).lower()}") from error
    elif name in preset_names():
        text = (_PRESETS / f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise unknown("preset", name, preset_names())
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"preset '{name}' is not valid TOML: {error}") from error


def settings_from(values: Mapping[str, Any], where: str, base: Settings | None = None) -> Settings:
    """Settings with ``values``, as a TOML file nests them, in place of ``base``'s.

    Raises
    ------
    UserError
        For a key that does not exist, naming the nearest one, and for a value of the wrong type.
    """
    if "bf16" in values:  # an option of earlier versions, false unless it was asked for
        if values["bf16"]:
            raise UserError(f"bf16 in {where} is {values['bf16']}; updates in bfloat16 were removed: omit bf16")
        values = {key: value for key, value in values.items() if key != "bf16"}
    base = base or Settings()
    if (agent := values.get("agent", base.agent)) != base.agent:
        base = replace(base, **agent_parts(str(agent)))
    return from_table(Settings, values, where, base)


def to_mapping(config: Config, run: RunSpec) -> dict[str, Any]:
    """The content of a run's ``config.toml``: everything that is needed to make it again."""
    return {**run.to_mapping(), "preset": config.preset, "settings": asdict(config.settings)}


def _require_finite(name: str, value: float) -> None:
    require(math.isfinite(value) and value >= 0, name, value, "a finite number, 0 or more")
