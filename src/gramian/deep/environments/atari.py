"""Atari 2600 through ale-py's vector environment."""

from collections.abc import Sequence

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from gramian.deep.environments.engine import Frames, Outcome
from gramian.deep.environments.options import SCREEN_PIXELS, AtariOptions
from gramian.deep.observations import ObservationSpec

# Time limits are counted outside: at its own limit the emulator stops inside the frame skip and gives a frame that is
# pooled with one of the step before. It adds one to its limit, so that this must stay below the largest int.
_NO_LIMIT = 2**30
COLOUR_SCREEN = (210, 160)
"""Height and width of the screen of every game of the paper."""


class AtariEngine:
    """``count`` copies of one Atari game, stepped by C++ threads.

    The emulator cannot be told not to reset a finished game by itself at the next action; here every finished game is
    started anew, with the seed of its next episode, before that action is sent, so that this never happens.

    Parameters
    ----------
    game
        ALE's name.
    count
        The number of copies.
    threads
        The number of threads that step them.
    colour
        Give the whole screen in colour ``[210, 160, 3]``, for people to look at; the game is the same.
    """

    def __init__(self, game: str, count: int, options: AtariOptions, threads: int, *, colour: bool = False):
        height, width = COLOUR_SCREEN if colour else (SCREEN_PIXELS, SCREEN_PIXELS)
        self._env = AtariVectorEnv(
            game,
            count,
            batch_size=count,
            num_threads=threads,
            thread_affinity_offset=-1,
            max_num_frames_per_episode=_NO_LIMIT,
            repeat_action_probability=options.sticky_probability,
            full_action_space=options.full_actions,
            continuous=False,
            autoreset_mode=AutoresetMode.NEXT_STEP,
            img_height=height,
            img_width=width,
            grayscale=not colour,
            stack_num=1,  # stacks are built from the newest frames, where they are needed
            frameskip=options.frame_skip,
            maxpool=True,
            noop_max=options.noop_max + 1 if options.noop_max else 0,  # the emulator draws below its maximum
            episodic_life=False,
            life_loss_info=False,
            reward_clipping=False,
            use_fire_reset=options.fire_reset,
        )
        self._count = count
        self._lives = np.zeros(count, np.int64)
        self._fresh = True
        self.observation = ObservationSpec((height, width, 3) if colour else (height, width), np.uint8, options.stack)
        self.actions = len(self._env.ale.get_action_set())
        self.frames_per_step = options.frame_skip
        self.max_episode_steps = -(-options.max_episode_frames // options.frame_skip)

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Engine.start`."""
        if self._fresh and which.size < self._count:
            self._env.reset(seed=np.zeros(self._count, np.int64))  # a reset of some needs one of all before it
        self._fresh = False
        mask = np.zeros(self._count, np.bool_)
        mask[which] = True
        order = np.argsort(which)  # the emulator takes the seeds in the order of its environments
        frames, info = self._env.reset(seed=seeds[order], options={"reset_mask": mask})
        self._lives[which] = info["lives"][which]
        return np.asarray(frames[which, 0])

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Engine.send`."""
        self._env.send(actions)

    def recv(self) -> Outcome:
        """See :meth:`Engine.recv`."""
        frames, rewards, terminated, _, info = self._env.recv()
        lives = info["lives"].astype(np.int64)
        life_lost = lives < self._lives
        self._lives = lives
        return Outcome(frames[:, 0], rewards.astype(np.float32), terminated, life_lost)

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Engine.replay`.

        All environments step together, so the longest episode begins first and all come to their ends at once; an
        environment that waits for its beginning plays no-ops in a game that is thrown away.
        """
        lengths = np.array([len(taken) for taken in actions])
        longest = int(lengths.max(initial=0))
        begins = longest - lengths
        script = np.zeros((longest, self._count), np.int64)
        for i, taken in enumerate(actions):
            script[begins[i] :, i] = taken
        frames = self.start(np.arange(self._count), seeds)
        alive = True
        for t in range(longest):
            (beginning,) = np.nonzero(begins == t)
            if t and beginning.size:
                self.start(beginning, seeds[beginning])
            self.send(script[t])
            outcome = self.recv()
            frames = outcome.frames
            alive &= not (outcome.terminated & (begins <= t)).any()
        (beginning,) = np.nonzero(lengths == 0)
        if longest and beginning.size:
            frames = frames.copy()
            frames[beginning] = self.start(beginning, seeds[beginning])
        return frames, alive

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        del self._env
