"""Atari in another flavour: a mode and a difficulty that ALE offers for a game [1]_ [2]_.

The vector environment plays the default flavour alone. This one steps Gymnasium's single environments, with the same
preprocessing written out here: on the default flavour it gives the same frames.

References
----------
.. [1] M. C. Machado et al., *Revisiting the Arcade Learning Environment*, JAIR 2018.
.. [2] J. Farebrother, M. C. Machado, M. Bowling, *Generalization and regularization in DQN*, arXiv 1810.00123.
"""

from collections.abc import Sequence
from functools import cache

import ale_py
import numpy as np
from ale_py.env import AtariEnv
from numpy.typing import NDArray

from gramian.deep.environments.engine import Engine, Frames, Outcome
from gramian.deep.environments.options import SCREEN_PIXELS, AtariOptions, Flavour
from gramian.deep.observations import ObservationSpec
from gramian.deep.streams import Stream, bits, integers

NOOP = 0


def flavours(game: str) -> tuple[Flavour, ...]:
    """Every flavour that ALE offers for a game (by ALE's name), the default one first: that of the training.

    Examples
    --------
    >>> flavours("freeway")[:3]
    (Flavour(mode=0, difficulty=0), Flavour(mode=0, difficulty=1), Flavour(mode=1, difficulty=0))
    """
    env = _make(game, AtariOptions(), None)
    offered = [Flavour(m, d) for m in env.ale.getAvailableModes() for d in env.ale.getAvailableDifficulties()]
    env.close()
    return tuple(offered)  # ALE takes the first mode and the first difficulty where none is set


class FlavourEngine(Engine):
    """``count`` copies of one Atari game in one flavour, stepped one after the other.

    Parameters
    ----------
    game
        ALE's name.
    count
        The number of copies.
    flavour
        One of `flavours`.
    """

    def __init__(self, game: str, count: int, options: AtariOptions, flavour: Flavour):
        self._options = options
        # Setting a mode, be it the default one, lets some frames pass before the game begins, as the training does not.
        other = None if flavour == flavours(game)[0] else flavour
        self._envs = [_make(game, options, other) for _ in range(count)]
        self._fire = next((i for i, action in enumerate(self._envs[0].get_action_meanings()) if action == "FIRE"), None)
        self._lives = np.zeros(count, np.int64)
        self._sent: list[int] = []
        self.observation = ObservationSpec((SCREEN_PIXELS, SCREEN_PIXELS), np.uint8, options.stack)
        self._frames = np.zeros((count, SCREEN_PIXELS, SCREEN_PIXELS), np.uint8)
        self.actions = len(self._envs[0].get_action_meanings())
        self.frames_per_step = options.frame_skip
        self.max_episode_steps = -(-options.max_episode_frames // options.frame_skip)

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Engine.start`."""
        for i, seed in zip(which.tolist(), seeds.tolist(), strict=True):
            env = self._envs[i]
            screen, info = env.reset(seed=seed)
            presses = [NOOP] * int(integers(bits(seed, Stream.EPISODE), self._options.noop_max + 1))
            if self._options.fire_reset and self._fire is not None:
                presses.append(self._fire)
            for press in presses:
                screen, _, over, _, info = env.step(press)
                if over:
                    screen, info = env.reset()
            self._frames[i] = shrink(screen)
            self._lives[i] = info["lives"]
        return self._frames[which]

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Engine.send`; the work is done by :meth:`recv`."""
        self._sent = actions.tolist()

    def recv(self) -> Outcome:
        """See :meth:`Engine.recv`."""
        count = len(self._envs)
        rewards, terminated, life_lost = (
            np.zeros(count, np.float32),
            np.zeros(count, np.bool_),
            np.zeros(count, np.bool_),
        )
        for i, action in enumerate(self._sent):
            rewards[i], terminated[i], life_lost[i] = self._act(i, action)
        return Outcome(self._frames, rewards, terminated, life_lost)

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Engine.replay`."""
        self.start(np.arange(len(self._envs)), seeds)
        ended = [self._act(i, action)[1] for i, taken in enumerate(actions) for action in taken.tolist()]
        return self._frames, not any(ended)

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        for env in self._envs:
            env.close()

    def _act(self, i: int, action: int) -> tuple[float, bool, bool]:
        """Hold an action for a frame skip: reward, game over, life lost."""
        reward, screens, over, lives = 0.0, [], False, 0
        for _ in range(self._options.frame_skip):
            screen, gained, over, _, info = self._envs[i].step(action)
            reward += float(gained)
            screens.append(screen)
            lives = info["lives"]
            if over:
                break
        self._frames[i] = shrink(np.maximum.reduce(screens[-2:]))
        lost = lives < self._lives[i]
        self._lives[i] = lives
        return reward, over, bool(lost)


def shrink(screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A grey screen averaged over areas to 84×84, as OpenCV's ``INTER_AREA`` does.

    Examples
    --------
    >>> shrink(np.full((210, 160), 7, np.uint8)).shape
    (84, 84)
    """
    # One term after the other in float32, rows within columns, as OpenCV adds them up: the same to the last bit.
    columns, shares = _areas(screen.shape[1])
    narrow = sum(share * screen[:, column] for column, share in zip(columns, shares, strict=True))
    rows, shares = _areas(screen.shape[0])
    grey = sum(share[:, None] * narrow[row] for row, share in zip(rows, shares, strict=True))
    return np.asarray(np.rint(grey), np.uint8)


@cache
def _areas(size: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """``[k, 84]`` each: the pixels, of ``size``, under each of 84 areas of equal width, and their shares in it."""
    scale = size / SCREEN_PIXELS
    begin = np.arange(SCREEN_PIXELS) * scale
    pixels = np.floor(begin + 1e-9).astype(np.intp) + np.arange(int(np.ceil(scale)) + 1)[:, None]
    overlap = np.minimum(pixels + 1, begin + scale) - np.maximum(pixels, begin)
    return np.minimum(pixels, size - 1), np.where(overlap > 1e-9, overlap / scale, 0).astype(np.float32)


def _make(game: str, options: AtariOptions, flavour: Flavour | None) -> AtariEnv:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return AtariEnv(
        game,
        mode=None if flavour is None else flavour.mode,
        difficulty=None if flavour is None else flavour.difficulty,
        obs_type="grayscale",
        frameskip=1,  # the skip is ours, to pool its last two frames
        repeat_action_probability=options.sticky_probability,
        full_action_space=options.full_actions,
    )
