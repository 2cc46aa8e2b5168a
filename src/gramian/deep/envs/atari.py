"""Atari 2600 through ale-py, its consoles spread over processes or played in this one.

The processes receive their orders through pipes and share memory with this one, so that nothing is copied, and the
order of events never depends on which process is faster. See `gramian.deep.envs.emulator`.
"""

import contextlib
import json
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gramian.core.errors import WorkFailed
from gramian.deep.agent.streams import Stream, bits, integers
from gramian.deep.envs import emulator
from gramian.deep.envs.emulator import ACT, DONE, SCREEN, START, Console, carry_out, map_arrays, read_byte
from gramian.deep.envs.games import Frames, Games, Outcome
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.envs.options import SCREEN_PIXELS, AtariOptions, Flavour


class AtariGames(Games):
    """``count`` copies of one Atari game, played by ``processes`` processes, or in `recv` where there are none.

    ``colour`` gives the whole screen ``[210, 160, 3]``, for people to look at. All spin for ``spin_s`` before they
    sleep.
    """

    def __init__(
        self,
        game: str,
        count: int,
        options: AtariOptions,
        processes: int = 0,
        *,
        flavour: Flavour | None = None,
        colour: bool = False,
        spin_s: float = 0.0,
    ):
        self._noop_max, self._spin_s = options.noop_max, spin_s
        frame = (*SCREEN, 3) if colour else (SCREEN_PIXELS,) * 2
        self.observation = ObservationSpec(frame, np.uint8, options.stack, options.clear_stack_after_life_loss)
        self.actions = action_count(game, options.full_actions)
        self.frames_per_step = options.frame_skip
        self.max_episode_steps = -(-options.max_episode_frames // options.frame_skip)
        settings: dict[str, object] = {
            "game": game,
            "frame_skip": options.frame_skip,
            "sticky_probability": options.sticky_probability,
            "fire_reset": options.fire_reset,
            "noop_after_life_loss": options.noop_after_life_loss,
            "full_actions": options.full_actions,
            "flavour": flavour,
            "colour": colour,
        }
        with _anonymous_file() as memory:
            size = map_arrays(None, count, colour)[1]
            os.truncate(memory, size)
            self._arrays, _ = map_arrays(mmap.mmap(memory, size), count, colour)
            self._players = [_Player(memory, count, first, processes, settings, spin_s) for first in range(processes)]
        self._consoles = {} if processes else {i: Console(**settings) for i in range(count)}  # type: ignore[arg-type]
        self._order: bytes | None = None
        self._everyone = np.arange(count)

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Games.start`."""
        arrays = self._arrays
        arrays["chosen"][:] = np.isin(self._everyone, which)
        arrays["seeds"][which] = seeds
        arrays["noops"][which] = integers(bits(seeds, Stream.EPISODE), self._noop_max + 1)
        self._tell(START)
        self._wait()
        arrays["chosen"][:] = True
        return np.asarray(arrays["frames"][which])

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Games.send`."""
        self._arrays["actions"][:] = actions
        self._tell(ACT)

    def recv(self) -> Outcome:
        """See :meth:`Games.recv`."""
        self._wait()
        arrays = self._arrays
        return Outcome(arrays["frames"], arrays["rewards"], arrays["over"], arrays["life_lost"])

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Games.replay`. All copies play at the same time."""
        self.start(self._everyone, seeds)
        lengths = np.array([len(taken) for taken in actions])
        alive = True
        for t in range(lengths.max(initial=0)):
            playing = lengths > t
            self._arrays["chosen"][:] = playing
            self._arrays["actions"][playing] = [taken[t] for taken in actions if len(taken) > t]
            self._tell(ACT)
            self._wait()
            alive &= not self._arrays["over"][playing].any()
        self._arrays["chosen"][:] = True
        return self._arrays["frames"], alive

    def close(self) -> None:
        """See :meth:`Games.close`."""
        for player in self._players:
            player.dismiss()
        for player in self._players:
            player.process.wait()
        self._players, self._consoles = [], {}

    def _tell(self, order: bytes) -> None:
        """Give an order to the processes, or note it for `_wait` where this process plays."""
        self._order = order
        for player in self._players:
            player.tell(order)

    def _wait(self) -> None:
        """Carry out the order, or wait until every process has."""
        if self._order is None:
            raise RuntimeError("the consoles have no order to carry out")
        order, self._order = self._order, None
        carry_out(order, self._consoles, self._arrays)
        for player in self._players:
            player.wait(self._spin_s)


class _Player:
    """A process that plays every ``step``-th console from ``first`` on, and the pipes to and from it."""

    def __init__(
        self, memory: int, count: int, first: int, step: int, settings: dict[str, object], spin_s: float
    ) -> None:
        theirs_in, self._orders = os.pipe()
        self._answers, theirs_out = os.pipe()
        told = {"memory": memory, "count": count, "first": first, "step": step, "settings": settings}
        told |= {"orders": theirs_in, "answers": theirs_out, "spin_s": spin_s}
        self._game = settings["game"]
        self.process = subprocess.Popen(
            [sys.executable, "-P", emulator.__file__, json.dumps(told)],
            pass_fds=(memory, theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def tell(self, order: bytes) -> None:
        try:
            os.write(self._orders, order)
        except BrokenPipeError:
            raise self._ended() from None

    def wait(self, spin_s: float) -> None:
        if read_byte(self._answers, spin_s) != DONE:
            raise self._ended()

    def _ended(self) -> WorkFailed:
        code = self.process.wait()
        return WorkFailed(f"emulator process {self.process.pid} ({self._game}) ended by itself (exit code {code})")

    def dismiss(self) -> None:
        """Close the pipes, whereupon the process ends."""
        for pipe in (self._orders, self._answers):
            if pipe >= 0:
                os.close(pipe)
        self._orders = self._answers = -1

    def __del__(self) -> None:
        self.dismiss()


@cache
def action_count(game: str, full_actions: bool) -> int:
    """The number of actions of a game (by ALE's name)."""
    return Console(game, full_actions=full_actions).actions


@contextlib.contextmanager
def _anonymous_file() -> Iterator[int]:
    """A file without a name, in memory where the system has such files; it lasts as long as it is mapped."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("gramian")
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryFile() as file:
            yield file.fileno()
