"""The environments of a population: P runs with E environments each, behind one interface."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.core.cores import cores
from gramian.core.errors import UserError, unknown
from gramian.core.games import Game
from gramian.deep.agent.streams import Stream, bits
from gramian.deep.envs.engine import Engine, Frames, check_patience
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.envs.options import EnvironmentOptions, Flavour

State = dict[str, NDArray[np.generic]]
"""What :meth:`Environments.restore` needs, as named arrays."""


@dataclass(frozen=True)
class Step:
    """What the last actions led to. All arrays are ``[P, E, …]``.

    They belong to the environments, which overwrite them in place at the next step: copy what you keep.

    Attributes
    ----------
    frames
        The newest frame of the observation to act on next; after an episode's end the first of the next episode.
    started
        bool: that frame is the first of an episode.
    rewards
        float32, raw.
    terminated
        bool: the game is over.
    life_lost
        bool: a life was lost and the game was not over.
    truncated
        bool: the time limit ended the episode, which a learner must not take for an end of the game.
    final_frames
        Where ``truncated``: the newest frame of the ended episode's last observation. Elsewhere without meaning.
    """

    frames: Frames
    started: NDArray[np.bool_]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    life_lost: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    final_frames: Frames


class _Group(NamedTuple):
    """The environments of one game within a part."""

    engine: Engine
    rows: NDArray[np.intp]
    place: slice | NDArray[np.intp]
    """The rows again, as a slice where they follow one another, which is faster."""
    inside: slice | NDArray[np.intp]
    """The same, counted from the first row of the part."""


class _Part:
    """Runs that take their actions together."""

    def __init__(self, runs: slice, envs_per_run: int, groups: tuple[_Group, ...]) -> None:
        self.runs = runs
        self.rows = slice(runs.start * envs_per_run, runs.stop * envs_per_run)
        self.groups = groups
        self.everyone = np.arange(self.rows.start, self.rows.stop)
        self.sent: NDArray[np.int64] | None = None
        """The actions that are being carried out."""
        self.longest = 0
        """No running episode is longer."""


class Environments:
    """P×E environments in lockstep.

    Episode number k of environment e of a run is seeded with ``bits(run seed, EPISODE, e, k)``, and it is a function
    of that seed and of the actions taken: it depends neither on P nor on the run's place in the population. Games
    never restart because a life is lost.

    The runs can be divided into parts, so that the environments of one part play while somebody thinks about the
    actions of another; what happens in them is the same.

    Parameters
    ----------
    games
        The game of each of the P runs. The games may have different numbers of actions, but their observations must
        have the same shape.
    seeds
        The seed of each run.
    envs_per_run
        E.
    threads
        How many processes play the Atari games of a part; 0 takes one for each core that this process may use.
    here
        No processes: Atari is played in this one, when it receives an outcome. What happens in the games is the same.
    compiled
        Make the frames of Atari by a compiled kernel, where there is numba: a tenth of a console's time less, and
        half a second more for each process until it is there, and 0.1 GB. They are the same frames.
    parts
        Into how many parts to divide the runs, at most one for each run.
    patience_s
        Seconds for which the processes that play Atari stay awake when they wait, and this one when it waits for them;
        see `gramian.deep.envs.atari.AtariEngine`. Other games are played in this process, and nobody waits.

    Raises
    ------
    UserError
        If the games' observations differ, or a number is out of its range.

    Examples
    --------
    >>> from gramian.core.games import find_game
    >>> environments = Environments([find_game("cartpole")] * 3, seeds=[0, 1, 2], envs_per_run=2)
    >>> environments.reset().frames.shape
    (3, 2, 4)
    >>> environments.step(np.zeros((3, 2), np.int64)).rewards.tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        games: Sequence[Game],
        seeds: Sequence[int],
        envs_per_run: int = 1,
        options: EnvironmentOptions | None = None,
        threads: int = 0,
        parts: int = 1,
        patience_s: float = 0.0,
        *,
        here: bool = False,
        compiled: bool = False,
    ):
        if not games or len(games) != len(seeds):
            raise ValueError(f"a population needs a game and a seed for each run, not {len(games)} and {len(seeds)}")
        if envs_per_run < 1:
            raise UserError(f"envs_per_run = {envs_per_run} is too small; give 1 or more")
        if threads < 0:
            raise UserError(f"threads = {threads} is too small; give 0 for one thread a core, or their number")
        check_patience(patience_s)
        if not 1 <= parts <= len(games):
            raise ValueError(f"{len(games)} runs cannot be divided into {parts} parts")
        population, count = len(games), len(games) * envs_per_run
        self.shape = (population, envs_per_run)
        self.here = here or all(game.kind != "atari" for game in games)
        """Whether it is this process that plays, and only when it receives an outcome."""
        options, threads = options or EnvironmentOptions(), threads or cores()
        bounds = [population * number // parts for number in range(parts + 1)]
        self._parts = [
            _Part(
                slice(*runs),
                envs_per_run,
                _make_groups(
                    games, slice(*runs), envs_per_run, options, threads, patience_s, here=here, compiled=compiled
                ),
            )
            for runs in pairwise(bounds)
        ]
        self.parts = tuple(part.runs for part in self._parts)
        """The runs of each part."""
        self._groups = [group for part in self._parts for group in part.groups]
        self.observation = _common_observation(
            [games[group.rows[0] // envs_per_run] for group in self._groups], self._groups
        )
        self.frames_per_step = self._groups[0].engine.frames_per_step
        limits, actions = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for engine, rows, *_ in self._groups:
            limits[rows], actions[rows] = engine.max_episode_steps, engine.actions
        self.actions: NDArray[np.int64] = actions.reshape(self.shape)[:, 0]
        """``[P]``: the number of actions of each run's game."""
        self._limits = limits
        self._action_counts = actions.astype(np.uint64)
        self._seeds = np.repeat(np.asarray(seeds, np.int64), envs_per_run)
        self._index = np.tile(np.arange(envs_per_run), population)
        # the running episodes: their number, the steps so far and the actions taken
        self._episode = np.zeros(count, np.int64)
        self._length = np.zeros(count, np.int64)
        self._log = np.zeros((count, 256), np.uint8)
        self._shortest_limit = int(limits.min())  # no episode is truncated that is shorter
        self._frames: Frames = np.zeros((count, *self.observation.frame_shape), self.observation.dtype)
        self._final: Frames = np.zeros_like(self._frames)
        self._rewards = np.zeros(count, np.float32)
        self._started, self._terminated, self._life_lost, self._truncated = np.zeros((4, count), np.bool_)
        framed = (*self.shape, *self.observation.frame_shape)
        self._step = Step(
            frames=self._frames.reshape(framed),
            started=self._started.reshape(self.shape),
            rewards=self._rewards.reshape(self.shape),
            terminated=self._terminated.reshape(self.shape),
            life_lost=self._life_lost.reshape(self.shape),
            truncated=self._truncated.reshape(self.shape),
            final_frames=self._final.reshape(framed),
        )

    def reset(self) -> Step:
        """Start episode 0 of every environment."""
        self._forget_sent()
        self._episode[:] = 0
        self._length[:] = 0
        self._clear_flags()
        self._started[:] = True
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
            group.engine.send(flat[group.inside])

    def recv(self, part: int = 0) -> Step:
        """Wait for what the actions sent led to. What the step says of the other parts is as it was."""
        own = self._parts[part]
        if own.sent is None:
            raise RuntimeError("no actions were sent")
        for engine, _, place, _ in own.groups:
            outcome = engine.recv()
            self._frames[place] = outcome.frames
            self._rewards[place] = outcome.rewards
            self._terminated[place] = outcome.terminated
            self._life_lost[place] = outcome.life_lost
        self._record(own, own.sent)
        own.sent = None
        started, terminated = self._started[own.rows], self._terminated[own.rows]
        life_lost, truncated = self._life_lost[own.rows], self._truncated[own.rows]
        if own.longest < self._shortest_limit and not np.count_nonzero(terminated):  # at most steps nothing ends
            started[:] = False
            truncated[:] = False
            return self._step
        life_lost &= ~terminated
        np.greater_equal(self._length[own.rows], self._limits[own.rows], out=truncated)
        truncated &= ~terminated
        np.logical_or(terminated, truncated, out=started)
        if truncated.any():
            self._final[own.rows][truncated] = self._frames[own.rows][truncated]
        (ended,) = np.nonzero(started)
        if ended.size:
            ended += own.rows.start
            self._episode[ended] += 1
            self._length[ended] = 0
            self._start(own, ended)
        own.longest = int(self._length[own.rows].max())
        return self._step

    def state(self) -> State:
        """Everything :meth:`restore` needs: the running episodes' numbers and actions, and the last step's outcome.

        Actions that were sent and not yet received are no part of it: they have to be sent again.
        """
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
        """Bring all environments to where they were at :meth:`state`, by playing their running episodes again.

        Gives the step as it was then.

        Raises
        ------
        UserError
            If the state belongs to other environments, or if the emulator plays differently now.
        """
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
        for engine, rows, *_ in self._groups:
            self._frames[rows], lived = engine.replay(self._episode_seeds(rows), [actions[i] for i in rows])
            alive &= lived
        self._rewards[:] = state["rewards"]
        self._started[:], self._terminated[:], self._life_lost[:], self._truncated[:] = state["flags"]
        self._final[self._truncated] = state["final_frames"]
        if not alive or _crc32(self._frames) != int(state["frames_crc32"][0]):
            raise UserError(
                "the running episodes do not come out as they were saved: the games' settings or the version of the "
                "emulator have changed; resume with those of the saved run"
            )
        return self._step

    def close(self) -> None:
        """Stop the emulators."""
        for engine, *_ in self._groups:
            engine.close()

    def _start(self, part: _Part, which: NDArray[np.intp]) -> None:
        for engine, rows, *_ in part.groups:
            members = np.flatnonzero(np.isin(rows, which, assume_unique=True))
            if members.size:
                self._frames[rows[members]] = engine.start(members, self._episode_seeds(rows[members]))

    def _forget_sent(self) -> None:
        for part in self._parts:
            if part.sent is not None:
                for engine, *_ in part.groups:
                    engine.recv()
                part.sent = None

    def _episode_seeds(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        # 31 bits: the emulators' seeds are non-negative 32-bit integers
        random_bits = bits(self._seeds[rows], Stream.EPISODE, self._index[rows], self._episode[rows])
        return (random_bits >> np.uint64(33)).astype(np.int64)

    def _record(self, part: _Part, actions: NDArray[np.int64]) -> None:
        part.longest += 1
        self._reserve(part.longest)
        length = self._length[part.rows]
        self._log[part.everyone, length] = actions
        length += 1

    def _reserve(self, steps: int) -> None:
        if steps > self._log.shape[1]:
            longer = max(steps, 2 * self._log.shape[1])
            self._log = np.pad(self._log, ((0, 0), (0, longer - self._log.shape[1])))

    def _clear_flags(self) -> None:
        for array in (self._rewards, self._terminated, self._life_lost, self._truncated):
            array[:] = 0


def make_engine(
    game: Game,
    count: int,
    options: EnvironmentOptions | None = None,
    threads: int = 1,
    patience_s: float = 0.0,
    *,
    here: bool = False,
    compiled: bool = False,
) -> Engine:
    """Emulators of ``count`` copies of one game, to be started by hand; the last four are for Atari alone.

    Examples
    --------
    >>> from gramian.core.games import find_game
    >>> make_engine(find_game("minatar/breakout"), count=2).observation.shape
    (4, 10, 10)
    """
    # each kind's emulator is imported when one of its games is played
    options = options or EnvironmentOptions()
    if game.kind == "atari":
        from gramian.deep.envs.atari import AtariEngine

        return AtariEngine(game.id, count, options.atari, threads, patience_s=patience_s, here=here, compiled=compiled)
    if game.kind == "minatar":
        from gramian.deep.envs.minatar import MinAtarEngine

        return MinAtarEngine(game.id, count, options.minatar)
    from gramian.deep.envs.cartpole import CartPoleEngine

    return CartPoleEngine(count, options.cartpole)


def find_flavours(game: Game) -> tuple[Flavour, ...]:
    """The modes and difficulties of an Atari game, the default one, in which runs are trained, first.

    Raises
    ------
    UserError
        If it is not an Atari game.

    Examples
    --------
    >>> from gramian.core.games import find_game
    >>> [str(flavour) for flavour in find_flavours(find_game("seaquest"))]
    ['0:0', '0:1']
    """
    if game.kind != "atari":
        raise UserError(f"'{game.name}' has no modes; modes and difficulties are those of Atari games")
    from gramian.deep.envs.flavours import flavours

    return flavours(game.id)


def make_flavour_engine(game: Game, count: int, options: EnvironmentOptions, flavour: Flavour) -> Engine:
    """Emulators of ``count`` copies of an Atari game in another flavour, to be started by hand.

    Raises
    ------
    UserError
        If the game does not have that flavour.
    """
    if flavour not in (known := find_flavours(game)):
        raise unknown(f"mode of '{game.name}':", str(flavour), map(str, known))
    from gramian.deep.envs.atari import AtariEngine

    # Setting a mode, be it the default one, lets some frames pass before the game begins, as the training does not.
    other = None if flavour == known[0] else flavour
    return AtariEngine(game.id, count, options.atari, min(count, cores()), flavour=other)


def _make_groups(
    games: Sequence[Game],
    runs: slice,
    envs_per_run: int,
    options: EnvironmentOptions,
    threads: int,
    patience_s: float,
    *,
    here: bool,
    compiled: bool,
) -> tuple[_Group, ...]:
    groups = []
    owners = np.repeat(np.arange(runs.start, runs.stop), envs_per_run)
    first = runs.start * envs_per_run
    for game in dict.fromkeys(games[runs]):
        rows = first + np.flatnonzero([games[owner] == game for owner in owners])
        share = max(1, min(rows.size, round(threads * rows.size / len(owners))))
        engine = make_engine(game, rows.size, options, share, patience_s, here=here, compiled=compiled)
        groups.append(_Group(engine, rows, _as_slice(rows), _as_slice(rows - first)))
    return tuple(groups)


def _as_slice(rows: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """The rows as a slice where they follow one another."""
    begin, end = int(rows[0]), int(rows[-1]) + 1
    return slice(begin, end) if end - begin == rows.size else rows


def _common_observation(games: Sequence[Game], groups: Sequence[_Group]) -> ObservationSpec:
    first = groups[0].engine.observation
    for game, (engine, *_) in zip(games, groups, strict=True):
        if engine.observation != first:
            raise UserError(
                f"'{games[0].name}' and '{game.name}' cannot share a population: their observations have shapes "
                f"{first.shape} and {engine.observation.shape}; train them in separate populations"
            )
    return first


def _crc32(frames: Frames) -> int:
    return zlib.crc32(frames.tobytes())
