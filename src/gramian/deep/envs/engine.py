"""What an emulator of many copies of one game must offer."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.core.errors import UserError
from gramian.deep.envs.observations import ObservationSpec

Frames = NDArray[np.uint8] | NDArray[np.float32]


class Outcome(NamedTuple):
    """What one action of each of the n environments led to. No environment has been reset.

    Attributes
    ----------
    frames
        ``[n, *frame_shape]``: the newest frames.
    rewards
        ``[n]``, raw.
    terminated
        ``[n]``, bool: the game is over.
    life_lost
        ``[n]``, bool: a life was lost.
    """

    frames: Frames
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    life_lost: NDArray[np.bool_]


class Engine(Protocol):
    """n environments of one game. An episode is a function of its seed and its actions, and it never ends by time."""

    observation: ObservationSpec
    actions: int
    frames_per_step: int
    max_episode_steps: int

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """Start new episodes in the environments ``which``, one seed each; give their first frames."""

    def send(self, actions: NDArray[np.int64]) -> None:
        """Begin to carry out ``actions`` ``[n]``."""

    def recv(self) -> Outcome:
        """Wait for what the actions sent led to."""

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """Start episode ``seeds[i]`` in environment i and take ``actions[i]``, for all of them.

        Gives the newest frames and whether no game ended on the way, as it must be for actions of a running episode.
        """

    def close(self) -> None:
        """Release what the emulator holds."""


def check_patience(patience_s: float) -> None:
    """Refuse a time to stay awake that is none, or that has no end.

    Examples
    --------
    >>> check_patience(-1.0)
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: patience_s = -1.0 is no time to stay awake; give a finite number of seconds, 0 or more
    """  # noqa: E501
    if not 0 <= patience_s < math.inf:
        raise UserError(
            f"patience_s = {patience_s} is no time to stay awake; give a finite number of seconds, 0 or more"
        )
