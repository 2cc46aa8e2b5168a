"""The environments of a population: P runs with E environments each, behind one interface."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.core.cores import cores
from gramian.core.errors import UserError, require
from gramian.core.games import Game
from gramian.deep.agent.streams import Stream, bits, game_seeds
from gramian.deep.envs.games import Frames, Games, make_games
from gramian.deep.envs.options import EnvironmentOptions

State = dict[str, NDArray[np.generic]]
"""What :meth:`Environments.restore` needs, as named arrays."""


@dataclass(frozen=True)
class Step:
    """What the last actions led to. All arrays are ``[P, E, …]``; the next step overwrites them."""

    frames: Frames
    """The newest frame of the observation to act on next; after an episode's end the first of the next episode."""
    started: NDArray[np.bool_]
    """That frame is the first of an episode."""
    cleared: NDArray[np.bool_]
    """Zeros stand before that frame: it is the first of an episode, or of a life where the game's options say so."""
    rewards: NDArray[np.float32]
    """Raw."""
    terminated: NDArray[np.bool_]
    """The game is over."""
    life_lost: NDArray[np.bool_]
    """A life was lost and the game was not over."""
    truncated: NDArray[np.bool_]
    """The time limit ended the episode, which a learner must not take for an end of the game."""
    final_frames: Frames
    """Where ``truncated``: the newest frame of the ended episode's last observation. Elsewhere without meaning."""


class _Group(NamedTuple):
    """The environments of one game within a part."""

    games: Games
    rows: NDArray[np.intp]
    place: slice | NDArray[np.intp]
    """The rows again, as a slice where they follow one another, which is faster."""
    inside: slice | NDArray[np.intp]
    """The same, counted from the first row of the part."""


class _Part:
    """Runs that take their actions together."""

    def __init__(self, runs: slice, envs_per_run: int, groups: list[_Group]) -> None:
        self.runs, self.groups = runs, groups
        self.rows = slice(runs.start * envs_per_run, runs.stop * envs_per_run)
        self.everyone = np.arange(self.rows.start, self.rows.stop)
        self.sent: NDArray[np.int64] | None = None
        """The actions that are being carried out."""
        self.longest = 0
        """No running episode is longer."""


class Environments:
    """P×E environments in lockstep; the games of all runs have observations of the same shape.

    Episode k of environment e of a run is seeded with ``bits(run seed, EPISODE, e, k)``. It is a function of that seed
    and of its actions alone, whatever P is. Games never restart because a life is lost. The runs can be divided into
    ``parts``, so that one plays while actions are chosen for another; the episodes are the same.

    ``threads`` processes play the Atari games of a part (0: one a core), or this process in `recv` if ``here``. All
    spin for ``spin_s`` seconds before they sleep.
    """

    def __init__(
        self,
        games: Sequence[Game],
        seeds: Sequence[int],
        envs_per_run: int = 1,
        options: EnvironmentOptions | None = None,
        threads: int = 0,
        parts: int = 1,
        spin_s: float = 0.0,
        *,
        here: bool = False,
    ):
        if not games or len(games) != len(seeds):
            raise ValueError(f"a population needs a game and a seed for each run, not {len(games)} and {len(seeds)}")
        require(envs_per_run >= 1, "envs_per_run", envs_per_run, "at least 1")
        require(threads >= 0, "threads", threads, "at least 0, which is one a core")
        require(0 <= spin_s < math.inf, "spin_s", spin_s, "a finite number of seconds, at least 0")
        if not 1 <= parts <= len(games):
            raise ValueError(f"{len(games)} runs cannot be divided into {parts} parts")
        population, count = len(games), len(games) * envs_per_run
        self.shape = (population, envs_per_run)
        self.here = here or all(game.kind != "atari" for game in games)
        """Whether this process plays, and only in `recv`."""
        threads = threads or cores()
        self._parts = []
        for begin, end in pairwise(population * number // parts for number in range(parts + 1)):
            groups = []
            owners = np.repeat(np.arange(begin, end), envs_per_run)
            for game in dict.fromkeys(games[number] for number in range(begin, end)):
                inside = np.flatnonzero([games[owner] == game for owner in owners.tolist()])
                share = max(1, round(threads * inside.size / len(owners)))
                copies = make_games(game, inside.size, options, share, here=here, spin_s=spin_s)
                rows = begin * envs_per_run + inside
                groups.append(_Group(copies, rows, _as_slice(rows), _as_slice(inside)))
            self._parts.append(_Part(slice(begin, end), envs_per_run, groups))
        self.parts = tuple(part.runs for part in self._parts)
        """The runs of each part."""
        self._groups = [group for part in self._parts for group in part.groups]
        self.observation = self._groups[0].games.observation
        for copies, rows, *_ in self._groups:
            if copies.observation != self.observation:
                other = games[int(rows[0]) // envs_per_run].name
                raise UserError(
                    f"'{games[0].name}' and '{other}' cannot share a population: their observations have shapes "
                    f"{self.observation.shape} and {copies.observation.shape}; train them in separate populations"
                )
        self._limits, actions = np.zeros((2, count), np.int64)
        for copies, rows, *_ in self._groups:
            self._limits[rows], actions[rows] = copies.max_episode_steps, copies.actions
        self.actions: NDArray[np.int64] = actions.reshape(self.shape)[:, 0]
        """``[P]``: the number of actions of each run's game."""
        self._action_counts = actions.astype(np.uint64)
        self._seeds = np.repeat(np.asarray(seeds, np.int64), envs_per_run)
        self._index = np.tile(np.arange(envs_per_run), population)
        # the running episodes: their number, the steps so far and the actions taken
        self._episode, self._length = np.zeros((2, count), np.int64)
        self._log = np.zeros((count, 256), np.uint8)
        self._shortest_limit = int(self._limits.min())  # no episode is truncated that is shorter
        self._frames: Frames = np.zeros((count, *self.observation.frame_shape), self.observation.dtype)
        self._final: Frames = np.zeros_like(self._frames)
        self._rewards = np.zeros(count, np.float32)
        self._started, self._cleared, self._terminated, self._life_lost, self._truncated = np.zeros((5, count), bool)
        framed = (*self.shape, *self.observation.frame_shape)
        self._step = Step(
            frames=self._frames.reshape(framed),
            started=self._started.reshape(self.shape),
            cleared=self._cleared.reshape(self.shape),
            rewards=self._rewards.reshape(self.shape),
            terminated=self._terminated.reshape(self.shape),
            life_lost=self._life_lost.reshape(self.shape),
            truncated=self._truncated.reshape(self.shape),
            final_frames=self._final.reshape(framed),
        )

    def reset(self) -> Step:
        """Start episode 0 of every environment."""
        self._forget_sent()
        for array in (self._episode, self._length, self._rewards, self._terminated, self._life_lost, self._truncated):
            array[:] = 0
        self._started[:] = self._cleared[:] = True
        for part in self._parts:
            part.longest = 0
            self._start(part, part.everyone)
        return self._step

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take ``actions`` ``[P, E]``; an environment whose episode ends starts its next one at once."""
        if actions.shape != self.shape:
            raise ValueError(f"actions have shape {actions.shape}, not {self.shape}")
        for number, runs in enumerate(self.parts):
            self.send(actions[runs], number)
        for number in range(len(self.parts)):
            self.recv(number)
        return self._step

    def send(self, actions: NDArray[np.integer], part: int = 0) -> None:
        """Begin to take the actions ``[runs of the part, E]``, so that the caller can do other work before `recv`."""
        own = self._parts[part]
        flat = np.ascontiguousarray(actions, np.int64).reshape(-1)
        if flat.shape != own.everyone.shape:
            raise ValueError(
                f"actions have shape {actions.shape}, not {(len(own.everyone) // self.shape[1], self.shape[1])}"
            )
        if np.count_nonzero(flat.view(np.uint64) >= self._action_counts[own.rows]):  # which negative ones are too
            counts = self.actions[own.runs].tolist()
            raise ValueError(f"actions {actions.tolist()} outside their games' ranges, below {counts}")
        if own.sent is not None:
            raise RuntimeError("actions were sent before the outcome of those before was received")
        own.sent = flat.copy()
        for group in own.groups:
            group.games.send(flat[group.inside])

    def recv(self, part: int = 0) -> Step:
        """Wait for what the actions sent led to. What the step says of the other parts does not change."""
        own = self._parts[part]
        if own.sent is None:
            raise RuntimeError("no actions were sent")
        for games, _, place, _ in own.groups:
            outcome = games.recv()
            self._frames[place] = outcome.frames
            self._rewards[place] = outcome.rewards
            self._terminated[place] = outcome.terminated
            self._life_lost[place] = outcome.life_lost
        own.longest += 1
        self._reserve(own.longest)
        length = self._length[own.rows]
        self._log[own.everyone, length] = own.sent
        length += 1
        own.sent = None
        started, terminated = self._started[own.rows], self._terminated[own.rows]
        life_lost, truncated = self._life_lost[own.rows], self._truncated[own.rows]
        if own.longest < self._shortest_limit and not np.count_nonzero(terminated):  # at most steps nothing ends
            started[:] = False
            truncated[:] = False
            self._cleared[own.rows] = life_lost & self.observation.per_life
            return self._step
        life_lost &= ~terminated
        np.greater_equal(length, self._limits[own.rows], out=truncated)
        truncated &= ~terminated
        np.logical_or(terminated, truncated, out=started)
        self._cleared[own.rows] = started | (life_lost & self.observation.per_life)
        if truncated.any():
            self._final[own.rows][truncated] = self._frames[own.rows][truncated]
        (ended,) = np.nonzero(started)
        if ended.size:
            ended += own.rows.start
            self._episode[ended] += 1
            self._length[ended] = 0
            self._start(own, ended)
        own.longest = int(length.max())
        return self._step

    def state(self) -> State:
        """Everything :meth:`restore` needs; actions that were sent and not received have to be sent again."""
        return {
            "episode": self._episode.copy(),
            "length": self._length.copy(),
            "actions": np.concatenate([row[:n] for row, n in zip(self._log, self._length, strict=True)]),
            "rewards": self._rewards.copy(),
            "flags": np.stack([self._started, self._terminated, self._life_lost, self._truncated]),
            "final_frames": self._final[self._truncated],
            "frames_crc32": np.array([_crc32(self._frames)], np.int64),
        }

    def restore(self, state: State) -> Step:
        """Go to where :meth:`state` was taken by playing the running episodes again; gives that step."""
        if state["episode"].shape != self._episode.shape:
            raise UserError(
                f"the saved environments are {state['episode'].size} and these are {self._episode.size}; "
                "resume with the settings of the saved run"
            )
        self._forget_sent()
        self._episode[:] = state["episode"]
        length = state["length"].astype(np.int64)
        actions = np.split(state["actions"].astype(np.uint8), np.cumsum(length)[:-1])
        self._reserve(int(length.max(initial=0)))
        for row, taken in zip(self._log, actions, strict=True):
            row[: taken.size] = taken
        self._length[:] = length
        for part in self._parts:
            part.longest = int(length[part.rows].max())
        alive = True
        for games, rows, *_ in self._groups:
            self._frames[rows], lived = games.replay(self._episode_seeds(rows), [actions[i] for i in rows])
            alive &= lived
        self._rewards[:] = state["rewards"]
        self._started[:], self._terminated[:], self._life_lost[:], self._truncated[:] = state["flags"]
        self._cleared[:] = self._started | (self._life_lost & self.observation.per_life)
        self._final[self._truncated] = state["final_frames"]
        if not alive or _crc32(self._frames) != int(state["frames_crc32"][0]):
            raise UserError(
                "the running episodes do not come out as they were saved: the games' settings or the version of the "
                "emulator have changed; resume with those of the saved run"
            )
        return self._step

    def close(self) -> None:
        """Stop the emulators."""
        for group in self._groups:
            group.games.close()

    def _start(self, part: _Part, which: NDArray[np.intp]) -> None:
        for games, rows, *_ in part.groups:
            members = np.flatnonzero(np.isin(rows, which, assume_unique=True))
            if members.size:
                self._frames[rows[members]] = games.start(members, self._episode_seeds(rows[members]))

    def _forget_sent(self) -> None:
        for part in self._parts:
            if part.sent is not None:
                for group in part.groups:
                    group.games.recv()
                part.sent = None

    def _episode_seeds(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        return game_seeds(bits(self._seeds[rows], Stream.EPISODE, self._index[rows], self._episode[rows]))

    def _reserve(self, steps: int) -> None:
        """Make room for the actions of an episode of so many steps."""
        if steps > self._log.shape[1]:
            longer = max(steps, 2 * self._log.shape[1])
            self._log = np.pad(self._log, ((0, 0), (0, longer - self._log.shape[1])))


def _as_slice(rows: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """The rows as a slice where they follow one another."""
    begin, end = int(rows[0]), int(rows[-1]) + 1
    return slice(begin, end) if end - begin == rows.size else rows


def _crc32(frames: Frames) -> int:
    return zlib.crc32(frames.tobytes())
