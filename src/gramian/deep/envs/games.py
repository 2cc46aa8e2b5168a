"""What the emulators of many copies of one game offer, and how they are made."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.core.errors import UserError, unknown
from gramian.core.games import Game
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.envs.options import EnvironmentOptions, Flavour

Frames = NDArray[np.uint8] | NDArray[np.float32]


class Outcome(NamedTuple):
    """What one action of each of the n copies led to. No copy has been reset. The next call overwrites the arrays."""

    frames: Frames
    """``[n, *frame_shape]``: the newest frames."""
    rewards: NDArray[np.float32]
    """``[n]``, raw."""
    terminated: NDArray[np.bool_]
    """``[n]``: the game is over."""
    life_lost: NDArray[np.bool_]
    """``[n]``: a life was lost."""


class Games(Protocol):
    """n copies of one game. An episode is a function of its seed and its actions, and it never ends by time."""

    observation: ObservationSpec
    actions: int
    frames_per_step: int
    max_episode_steps: int

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """Start new episodes in the copies ``which``, one seed each; give their first frames."""

    def send(self, actions: NDArray[np.int64]) -> None:
        """Begin to carry out ``actions`` ``[n]``."""

    def recv(self) -> Outcome:
        """Wait for what the actions sent led to."""

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """Start episode ``seeds[i]`` in copy i and take ``actions[i]``; gives the frames, and whether no game ended."""

    def close(self) -> None:
        """Release what the emulator holds."""


def make_games(
    game: Game,
    count: int,
    options: EnvironmentOptions | None = None,
    threads: int = 1,
    *,
    here: bool = False,
    spin_s: float = 0.0,
    flavour: Flavour | None = None,
) -> Games:
    """``count`` copies of one game, to be started by hand; all after the options is for `AtariGames` alone.

    ``threads`` processes play, or this one in :meth:`Games.recv` if ``here``.
    """
    # each kind's emulator is imported when one of its games is played
    options = options or EnvironmentOptions()
    if flavour is not None:
        if flavour not in (known := find_flavours(game)):
            raise unknown(f"mode of '{game.name}':", str(flavour), map(str, known))
        # Setting a mode, be it the default one, lets some frames pass before the game begins.
        flavour = None if flavour == known[0] else flavour
    if game.kind == "atari":
        from gramian.deep.envs.atari import AtariGames

        processes = 0 if here else max(1, min(threads, count))
        return AtariGames(game.id, count, options.atari, processes, spin_s=spin_s, flavour=flavour)
    if game.kind == "minatar":
        from gramian.deep.envs.minatar import MinAtarGames

        return MinAtarGames(game.id, count, options.minatar)
    from gramian.deep.envs.gym import GymGames

    limits = {"cartpole": options.cartpole.max_episode_steps, "gym": options.gym.max_episode_steps}
    return GymGames(game.id, count, limits[game.kind])


def find_flavours(game: Game) -> tuple[Flavour, ...]:
    """The modes and difficulties of an Atari game, the default one, in which runs are trained, first.

    Sources: Machado et al., JAIR 2018; Farebrother, Machado & Bowling, arXiv 1810.00123.
    """
    if game.kind != "atari":
        raise UserError(f"'{game.name}' has no modes; modes and difficulties are those of Atari games")
    from gramian.deep.envs.emulator import flavours

    return tuple(Flavour(*flavour) for flavour in flavours(game.id))
