"""MinAtar: five small games [1]_, written here as compiled kernels that play as the package of its authors does.

References
----------
.. [1] K. Young, T. Tian, *MinAtar: an Atari-inspired testbed for thorough and reproducible reinforcement learning
   experiments*, arXiv 1903.03176.
"""

from collections.abc import Sequence
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from gramian.deep.envs.games import Frames, Games, Outcome
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.envs.options import MinAtarOptions


class MinAtarGames(Games):
    """``count`` copies of one MinAtar game, stepped in one call of a kernel, which is compiled at its first start.

    With the same seed and actions an episode equals that of the package ``minatar`` bit for bit, except that the
    package's sticky actions may repeat the last action of the episode before: here every episode begins with no-op.
    """

    def __init__(self, game: str, count: int, options: MinAtarOptions):
        # numba comes with these modules: only MinAtar needs it
        rules = import_module(f"gramian.deep.envs.minatar_games.{game}")
        rows = import_module("gramian.deep.envs.minatar_games.rows")
        mersenne = import_module("gramian.deep.envs.minatar_games.mersenne")
        self._play = rules.play
        self._sticky = options.sticky_probability
        self._table = np.arange(6) if options.full_actions else np.array(rules.ACTIONS)
        self._states = np.zeros((count, rules.SIZE), np.int64)
        self._states[:, rows.RAMPING] = options.difficulty_ramping
        self._randoms = np.zeros((count, mersenne.ROW_SIZE), np.uint32)
        self._frames = np.zeros((count, rules.CHANNELS, rows.CELLS, rows.CELLS), np.uint8)
        self._rewards = np.zeros(count, np.float32)
        self._over, self._no_life_lost = np.zeros((2, count), np.bool_)
        self._everyone = np.arange(count)
        self._go_on = _turns(self._everyone, -1, 1)
        self._sent = np.zeros(count, np.int64)
        self.observation = ObservationSpec(self._frames.shape[1:], np.uint8, 1)
        self.actions = self._table.size
        self.frames_per_step = 1
        self.max_episode_steps = options.max_episode_steps

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Games.start`."""
        self._run(_turns(which, seeds, 0), self._sent[:0])
        return self._frames[which]

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Games.send`; the work is done by :meth:`recv`."""
        self._sent = self._table[actions]

    def recv(self) -> Outcome:
        """See :meth:`Games.recv`; the arrays are the same ones every time."""
        self._run(self._go_on, self._sent)
        return Outcome(self._frames, self._rewards, self._over, self._no_life_lost)

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Games.replay`."""
        lengths = np.array([taken.size for taken in actions])
        self._run(_turns(self._everyone, seeds, lengths), self._table[np.concatenate(actions)])
        return self._frames, not self._over.any()

    def close(self) -> None:
        """See :meth:`Games.close`; there is nothing to release."""

    def _run(self, turns: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
        self._play(self._states, self._randoms, self._frames, turns, actions, self._sticky, self._rewards, self._over)


def _turns(
    which: NDArray[np.intp], seeds: NDArray[np.int64] | int, counts: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    turns = np.empty((which.size, 3), np.int64)
    turns[:, 0], turns[:, 1], turns[:, 2] = which, seeds, counts
    return turns
