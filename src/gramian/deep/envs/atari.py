"""Atari 2600 through ale-py, its consoles spread over processes, one for each core or fewer, or played in this one.

The processes play as told through shared memory, so that nothing is copied on the way and the order of events never
depends on who is faster. See `gramian.deep.envs.emulator`.
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.deep.agent.streams import Stream, bits, integers
from gramian.deep.envs import emulator
from gramian.deep.envs.emulator import ACT, DONE, SCREEN, START, Console, Waiter, carry_out, map_arrays
from gramian.deep.envs.engine import Engine, Frames, Outcome, check_patience
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.envs.options import SCREEN_PIXELS, AtariOptions, Flavour


class _Player(NamedTuple):
    """A process, and the pipes to and from it."""

    process: subprocess.Popen[bytes]
    orders: int
    answers: int


class AtariEngine(Engine):
    """``count`` copies of one Atari game.

    Parameters
    ----------
    game
        ALE's name.
    count
        The number of copies.
    threads
        How many processes play them.
    flavour
        Mode and difficulty; None is the game as it is switched on.
    colour
        Give the whole screen in colour ``[210, 160, 3]``, for people to look at; the game is the same.
    patience_s
        Seconds for which the processes stay awake when they wait for an order, and this one when it waits for them;
        see `gramian.deep.envs.emulator.Waiter`. It is for machines with a core for each of them and another
        one for this process. What happens in the games is the same.
    here
        No processes: this one plays, when it receives an outcome.
    compiled
        Make frames by a compiled kernel, where there is numba; see `gramian.deep.envs.emulator`.

    Raises
    ------
    UserError
        If the patience is negative or has no end.
    """

    def __init__(
        self,
        game: str,
        count: int,
        options: AtariOptions,
        threads: int,
        *,
        flavour: Flavour | None = None,
        colour: bool = False,
        patience_s: float = 0.0,
        here: bool = False,
        compiled: bool = False,
    ):
        check_patience(patience_s)
        self._noop_max = options.noop_max
        self.observation = ObservationSpec((*SCREEN, 3) if colour else (SCREEN_PIXELS,) * 2, np.uint8, options.stack)
        self.actions = action_count(game, options.full_actions)
        self.frames_per_step = options.frame_skip
        self.max_episode_steps = -(-options.max_episode_frames // options.frame_skip)
        settings = {
            "game": game,
            "frame_skip": options.frame_skip,
            "sticky_probability": options.sticky_probability,
            "fire_reset": options.fire_reset,
            "full_actions": options.full_actions,
            "flavour": flavour,
            "colour": colour,
            "compiled": compiled,
        }
        self._players = (
            _Here(count, settings) if here else _Processes(count, max(1, min(threads, count)), settings, patience_s)
        )
        self._arrays = self._players.arrays
        self._everyone = np.arange(count)
        self._lives = np.zeros(count, np.int64)

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Engine.start`."""
        arrays = self._arrays
        arrays["chosen"][:] = np.isin(self._everyone, which)
        arrays["seeds"][which] = seeds
        arrays["noops"][which] = integers(bits(seeds, Stream.EPISODE), self._noop_max + 1)
        self._players.order(START)
        self._players.wait()
        arrays["chosen"][:] = True
        self._lives[which] = arrays["lives"][which]
        return np.asarray(arrays["frames"][which])

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Engine.send`."""
        self._arrays["actions"][:] = actions
        self._players.order(ACT)

    def recv(self) -> Outcome:
        """See :meth:`Engine.recv`."""
        self._players.wait()
        arrays = self._arrays
        life_lost = arrays["lives"] < self._lives
        self._lives[:] = arrays["lives"]
        return Outcome(arrays["frames"], arrays["rewards"], arrays["over"], life_lost)

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Engine.replay`. All environments play at the same time."""
        self.start(self._everyone, seeds)
        lengths = np.array([len(taken) for taken in actions])
        alive = True
        for t in range(lengths.max(initial=0)):
            playing = lengths > t
            self._arrays["chosen"][:] = playing
            self._arrays["actions"][playing] = [taken[t] for taken in actions if len(taken) > t]
            self._players.order(ACT)
            self._players.wait()
            alive &= not self._arrays["over"][playing].any()
        self._arrays["chosen"][:] = True
        self._lives[:] = self._arrays["lives"]
        return self._arrays["frames"], alive

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        self._players.close()


class _Here:
    """``count`` consoles that are played in this process."""

    def __init__(self, count: int, settings: dict[str, Any]) -> None:
        size = map_arrays(None, count, settings["colour"])[1]
        self.arrays, _ = map_arrays(mmap.mmap(-1, size), count, settings["colour"])
        self._consoles = {i: Console(**settings) for i in range(count)}
        self._told: bytes | None = None

    def order(self, order: bytes) -> None:
        """Note what to do: whoever gives orders has something to do himself before he waits."""
        self._told = order

    def wait(self) -> None:
        """Do it."""
        if self._told is None:
            raise RuntimeError("nobody has told the consoles what to do")
        carry_out(self._told, self._consoles, self.arrays)
        self._told = None

    def close(self) -> None:
        """Put the consoles away."""
        self._consoles = {}


class _Processes:
    """Processes that play ``count`` consoles, ``step`` of them, so that each plays every ``step``-th one."""

    def __init__(self, count: int, step: int, settings: dict[str, Any], patience_s: float) -> None:
        size = map_arrays(None, count, settings["colour"])[1]
        with _anonymous_file() as memory:
            os.truncate(memory, size)
            self.arrays, _ = map_arrays(mmap.mmap(memory, size), count, settings["colour"])
            self.players = [_start(memory, count, first, step, settings, patience_s) for first in range(step)]
        self._waiter = Waiter([player.answers for player in self.players], patience_s)
        self._starting = True  # the first order waits for them: until then others, a GPU say, can start too

    def order(self, order: bytes) -> None:
        """Tell them what to do."""
        if self._starting:
            self._starting = False  # first: one who tries again after a failure is not to wait for what has come
            self.wait()
        for player in self.players:
            os.write(player.orders, order)

    def wait(self) -> None:
        """Wait until all have done it."""
        for player in self.players:
            if self._waiter.wait(player.answers) != DONE:
                raise RuntimeError(f"an emulator's process has ended by itself (exit code {player.process.wait()})")

    def close(self) -> None:
        """End them."""
        for player in self.players:
            os.close(player.orders)
        for player in self.players:
            player.process.wait()
            os.close(player.answers)
        self.players = []

    def __del__(self) -> None:
        """A process ends when its pipe is closed; nobody should have to wait for it who has not asked to."""
        for player in getattr(self, "players", ()):
            with contextlib.suppress(OSError):
                os.close(player.orders)


@cache
def action_count(game: str, full_actions: bool) -> int:
    """The number of actions of a game (by ALE's name).

    Examples
    --------
    >>> action_count("pong", full_actions=False)
    6
    """
    return Console(game, full_actions=full_actions).actions


@contextlib.contextmanager
def _anonymous_file() -> Iterator[int]:
    """A file without a name, in memory where the system has such files; it lasts as long as somebody uses it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("gramian")
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryFile() as file:
            yield file.fileno()


def _start(memory: int, count: int, first: int, step: int, settings: dict[str, object], patience_s: float) -> _Player:
    """Start the process that plays every ``step``-th console from ``first`` on."""
    orders_out, orders_in = os.pipe()
    answers_out, answers_in = os.pipe()
    told = {
        "memory": memory,
        "count": count,
        "first": first,
        "step": step,
        "settings": settings,
        "orders": orders_out,
        "answers": answers_in,
        "patience_s": patience_s,
    }
    process = subprocess.Popen(
        [sys.executable, "-P", emulator.__file__, json.dumps(told)],
        pass_fds=(memory, orders_out, answers_in),
        stdin=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    os.close(orders_out)
    os.close(answers_in)
    return _Player(process, orders_in, answers_out)
