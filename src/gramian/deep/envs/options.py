"""The settings of the emulators. Each is set explicitly: the emulators' own defaults are those of no paper."""

from dataclasses import dataclass, field
from typing import NamedTuple

from gramian.core.errors import UserError

SCREEN_PIXELS = 84
"""Height and width of a grey Atari frame."""


@dataclass(frozen=True)
class AtariOptions:
    """How Atari is played: grey 84×84 frames, the pixelwise maximum of the last two frames of a skip.

    Attributes
    ----------
    frame_skip
        Frames that an action is held for: one agent step.
    stack
        Frames of an observation.
    sticky_probability
        Chance, at each frame, that the emulator repeats the action before instead of taking the new one.
    noop_max
        A game begins with 0 to ``noop_max`` frames of no-op, drawn from the episode's seed.
    fire_reset
        Press FIRE at the beginning of a game where the game has that button.
    full_actions
        All 18 actions instead of those the game responds to.
    max_episode_frames
        A game that has lasted so long (no-ops not counted) is truncated: 108,000 frames are 30 minutes.
    """

    frame_skip: int = 4
    stack: int = 4
    sticky_probability: float = 0.0
    noop_max: int = 0
    fire_reset: bool = False
    full_actions: bool = False
    max_episode_frames: int = 108_000

    def __post_init__(self) -> None:
        _at_least("frame_skip", self.frame_skip, 1)
        _at_least("stack", self.stack, 1)
        _probability("sticky_probability", self.sticky_probability)
        _at_least("noop_max", self.noop_max, 0)
        _at_least("max_episode_frames", self.max_episode_frames, 1)


class Flavour(NamedTuple):
    """A mode and a difficulty that ALE offers for a game."""

    mode: int
    difficulty: int

    def __str__(self) -> str:
        return f"{self.mode}:{self.difficulty}"


@dataclass(frozen=True)
class MinAtarOptions:
    """How MinAtar is played; the defaults are those of its authors, who set no time limit.

    Attributes
    ----------
    sticky_probability
        Chance that the action before is repeated instead of the new one.
    difficulty_ramping
        The game becomes harder with time.
    full_actions
        All 6 actions instead of those that have an effect in the game.
    max_episode_steps
        An episode that has lasted so long is truncated.
    """

    sticky_probability: float = 0.1
    difficulty_ramping: bool = True
    full_actions: bool = True
    max_episode_steps: int = 27_000

    def __post_init__(self) -> None:
        _probability("sticky_probability", self.sticky_probability)
        _at_least("max_episode_steps", self.max_episode_steps, 1)


@dataclass(frozen=True)
class CartPoleOptions:
    """How CartPole is played.

    Attributes
    ----------
    max_episode_steps
        An episode that has lasted so long is truncated; 500 is ``CartPole-v1``.
    """

    max_episode_steps: int = 500

    def __post_init__(self) -> None:
        _at_least("max_episode_steps", self.max_episode_steps, 1)


@dataclass(frozen=True)
class EnvironmentOptions:
    """The settings of every kind of game; a population reads those of its own kind."""

    atari: AtariOptions = field(default_factory=AtariOptions)
    minatar: MinAtarOptions = field(default_factory=MinAtarOptions)
    cartpole: CartPoleOptions = field(default_factory=CartPoleOptions)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UserError(f"{name} = {value} is too small; give {least} or more")


def _probability(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise UserError(f"{name} = {value} is not a probability below 1; give a number in [0, 1)")
