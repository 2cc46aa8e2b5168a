"""Atari 2600 through ale-py's vector environment.

An episode must be a function of its seed and its actions. A plain reset does not give that: in a dozen games the
console's memory survives it. A seeded reset does, as it loads the cartridge again, but this costs as much as some
three hundred agent steps, while all other environments of the same vector environment wait. Every environment
therefore has two emulators, vector environments of size one: while it plays with one, the other gets its next episode
ready in the background, whose seed is known in advance.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from gramian.deep.environments.engine import Engine, Frames, Outcome
from gramian.deep.environments.options import SCREEN_PIXELS, AtariOptions
from gramian.deep.observations import ObservationSpec

# Time limits are counted outside: at its own limit the emulator stops inside the frame skip and gives a frame that is
# pooled with one of the step before. It adds one to its limit, so that this must stay below the largest int.
_NO_LIMIT = 2**30
COLOUR_SCREEN = (210, 160)
"""Height and width of the screen of every game of the paper."""

_FULL_STRENGTH = np.ones(1, np.float32)


class _Ready(NamedTuple):
    """An emulator at the beginning of an episode."""

    env: AtariVectorEnv
    frame: NDArray[np.uint8]
    lives: int


class AtariEngine(Engine):
    """``count`` copies of one Atari game, each stepped by a C++ thread of its own.

    The emulator cannot be told not to reset a finished game by itself at the next action; here every finished game is
    replaced, before that action is sent, by the next episode, so that this never happens.

    Parameters
    ----------
    game
        ALE's name.
    count
        The number of copies.
    threads
        How many episodes are got ready at once.
    colour
        Give the whole screen in colour ``[210, 160, 3]``, for people to look at; the game is the same.
    """

    def __init__(self, game: str, count: int, options: AtariOptions, threads: int, *, colour: bool = False):
        self._game, self._options, self._colour = game, options, colour
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="gramian-atari")
        self._playing = [self._make() for _ in range(count)]
        self._next: list[Future[_Ready] | None] = [None] * count
        self._next_seed = np.full(count, -1, np.int64)
        self._lives = np.zeros(count, np.int64)
        self.observation = ObservationSpec(
            (*COLOUR_SCREEN, 3) if colour else (SCREEN_PIXELS, SCREEN_PIXELS), np.uint8, options.stack
        )
        self._frames = np.zeros((count, *self.observation.frame_shape), np.uint8)
        self.actions = len(self._playing[0].ale.get_action_set())
        self.frames_per_step = options.frame_skip
        self.max_episode_steps = -(-options.max_episode_frames // options.frame_skip)

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Engine.start`."""
        members = list(zip(which.tolist(), seeds.tolist(), strict=True))
        futures: list[Future[_Ready]] = []
        for i, seed in members:
            prepared = self._next[i]
            if prepared is None or self._next_seed[i] != seed:
                futures.append(self._pool.submit(_begin, self._playing[i], seed))
            else:
                futures.append(prepared)
        for (i, _), future in zip(members, futures, strict=True):
            ready = future.result()
            if future is self._next[i]:  # the emulator that has played is the one to prepare next
                self._next[i] = _done(_Ready(self._playing[i], ready.frame, 0))
                self._next_seed[i] = -1
            self._playing[i], self._frames[i], self._lives[i] = ready
        return self._frames[which]

    def prepare(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> None:
        """See :meth:`Engine.prepare`."""
        for i, seed in zip(which.tolist(), seeds.tolist(), strict=True):
            if self._next_seed[i] != seed:
                self._next[i] = self._pool.submit(self._begin_next, self._next[i], seed)
                self._next_seed[i] = seed

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Engine.send`."""
        for i, env in enumerate(self._playing):
            env.ale.send(actions[i : i + 1], _FULL_STRENGTH)

    def recv(self) -> Outcome:
        """See :meth:`Engine.recv`."""
        count = len(self._playing)
        rewards, terminated = np.zeros(count, np.float32), np.zeros(count, np.bool_)
        lives = np.zeros(count, np.int64)
        for i, env in enumerate(self._playing):
            frames, rewards[i : i + 1], terminated[i : i + 1], _, info = env.ale.recv()
            self._frames[i] = frames[0, 0]
            lives[i : i + 1] = info["lives"]
        life_lost = lives < self._lives
        self._lives = lives
        return Outcome(self._frames, rewards, terminated, life_lost)

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Engine.replay`. All environments play at the same time."""
        self.start(np.arange(len(self._playing)), seeds)
        scripts = [taken.astype(np.int64) for taken in actions]
        alive = True
        for t in range(max(map(len, scripts), default=0)):
            members = [i for i, script in enumerate(scripts) if t < len(script)]
            for i in members:
                self._playing[i].ale.send(scripts[i][t : t + 1], _FULL_STRENGTH)
            for i in members:
                frames, _, terminated, _, info = self._playing[i].ale.recv()
                alive &= not terminated[0]
                self._frames[i] = frames[0, 0]
                self._lives[i] = info["lives"][0]
        return self._frames, alive

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        self._pool.shutdown(cancel_futures=True)
        self._next.clear()
        self._playing.clear()

    def _begin_next(self, before: Future[_Ready] | None, seed: int) -> _Ready:
        # the one before was submitted earlier to the same queue, so that waiting for it always ends
        return _begin(before.result().env if before else self._make(), seed)

    def _make(self) -> AtariVectorEnv:
        options = self._options
        height, width = COLOUR_SCREEN if self._colour else (SCREEN_PIXELS, SCREEN_PIXELS)
        return AtariVectorEnv(
            self._game,
            1,
            batch_size=1,
            num_threads=1,
            thread_affinity_offset=-1,
            max_num_frames_per_episode=_NO_LIMIT,
            repeat_action_probability=options.sticky_probability,
            full_action_space=options.full_actions,
            continuous=False,
            continuous_action_threshold=0.5,  # has no effect on discrete actions
            autoreset_mode=AutoresetMode.NEXT_STEP,
            img_height=height,
            img_width=width,
            grayscale=not self._colour,
            stack_num=1,  # stacks are built from the newest frames, where they are needed
            frameskip=options.frame_skip,
            maxpool=True,
            noop_max=options.noop_max + 1 if options.noop_max else 0,  # the emulator draws below its maximum
            episodic_life=False,
            life_loss_info=False,
            reward_clipping=False,
            use_fire_reset=options.fire_reset,
        )


def _begin(env: AtariVectorEnv, seed: int) -> _Ready:
    frames, info = env.reset(seed=np.array([seed], np.int64))
    return _Ready(env, frames[0, 0], int(info["lives"][0]))


def _done(ready: _Ready) -> Future[_Ready]:
    future: Future[_Ready] = Future()
    future.set_result(ready)
    return future
