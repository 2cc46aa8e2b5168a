"""The settings of the emulators. Each is set explicitly: the emulators' own defaults are those of no paper."""

from dataclasses import dataclass, field
from typing import NamedTuple

from gramian.core.errors import require, require_least

SCREEN_PIXELS = 84
"""Height and width of a grey Atari frame."""


@dataclass(frozen=True)
class AtariOptions:
    """How Atari is played: grey 84×84 frames, the pixelwise maximum of the last two frames of a skip."""

    frame_skip: int = 4
    """Frames that an action is held for: one agent step."""
    stack: int = 4
    """Frames of an observation."""
    sticky_probability: float = 0.0
    """Chance, at each frame, that the emulator repeats the action before instead of taking the new one."""
    noop_max: int = 0
    """A game begins with 0 to ``noop_max`` frames of no-op, drawn from the episode's seed."""
    fire_reset: bool = False
    """A game that has the button FIRE begins with a step of it and a step of the action after it."""
    noop_after_life_loss: bool = False
    """A lost life is followed by a step of no-op, whose reward does not count; not so the last one, nor a loss within
    that step."""
    clear_stack_after_life_loss: bool = False
    """Zeros stand before the frame that follows a lost life, as before the first one of a game."""
    full_actions: bool = False
    """All 18 actions instead of those the game responds to."""
    max_episode_frames: int = 108_000
    """A game that has lasted so long (no-ops not counted) is truncated: 108,000 frames are 30 minutes."""

    def __post_init__(self) -> None:
        require_least(self, 1, "frame_skip", "stack", "max_episode_frames")
        require_least(self, 0, "noop_max")
        _check_probability(self.sticky_probability)


class Flavour(NamedTuple):
    """A mode and a difficulty that ALE offers for a game."""

    mode: int
    difficulty: int

    def __str__(self) -> str:
        return f"{self.mode}:{self.difficulty}"


@dataclass(frozen=True)
class MinAtarOptions:
    """How MinAtar is played; the defaults are those of its authors, who set no time limit."""

    sticky_probability: float = 0.1
    """Chance that the action before is repeated instead of the new one."""
    difficulty_ramping: bool = True
    """The game becomes harder with time."""
    full_actions: bool = True
    """All 6 actions instead of those that have an effect in the game."""
    max_episode_steps: int = 27_000
    """An episode that has lasted so long is truncated."""

    def __post_init__(self) -> None:
        require_least(self, 1, "max_episode_steps")
        _check_probability(self.sticky_probability)


@dataclass(frozen=True)
class CartPoleOptions:
    """How CartPole is played."""

    max_episode_steps: int = 500
    """An episode that has lasted so long is truncated; 500 is ``CartPole-v1``."""

    def __post_init__(self) -> None:
        require_least(self, 1, "max_episode_steps")


@dataclass(frozen=True)
class GymOptions:
    """How Gymnasium's environments are played."""

    max_episode_steps: int = 0
    """An episode that has lasted so long is truncated; 0 takes the environment's own limit, or 27,000."""

    def __post_init__(self) -> None:
        require_least(self, 0, "max_episode_steps")


@dataclass(frozen=True)
class EnvironmentOptions:
    """The settings of every kind of game; a population reads those of its own kind."""

    atari: AtariOptions = field(default_factory=AtariOptions)
    minatar: MinAtarOptions = field(default_factory=MinAtarOptions)
    cartpole: CartPoleOptions = field(default_factory=CartPoleOptions)
    gym: GymOptions = field(default_factory=GymOptions)


def _check_probability(value: float) -> None:
    require(0 <= value < 1, "sticky_probability", value, "in [0, 1)")
