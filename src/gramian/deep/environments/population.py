"""The environments of a population: P runs with E environments each, behind one interface."""

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.deep.environments.engine import Engine, Frames
from gramian.deep.environments.options import EnvironmentOptions, Flavour
from gramian.deep.games import Game
from gramian.deep.observations import ObservationSpec
from gramian.deep.streams import Stream, bits
from gramian.errors import UserError, unknown

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
    """The environments of one game."""

    engine: Engine
    rows: NDArray[np.intp]
    place: slice | NDArray[np.intp]
    """The rows again, as a slice where they are all of them, which is faster."""


class Environments:
    """P×E environments in lockstep.

    Episode number k of environment e of a run is seeded with ``bits(run seed, EPISODE, e, k)``, and it is a function
    of that seed and of the actions taken: it depends neither on P nor on the run's place in the population. Games
    never restart because a life is lost.

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
        How many processes play Atari; 0 takes one for each core that this process may use.

    Raises
    ------
    UserError
        If the games' observations differ.

    Examples
    --------
    >>> from gramian.deep.games import find_game
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
    ):
        if not games or len(games) != len(seeds):
            raise ValueError(f"a population needs a game and a seed for each run, not {len(games)} and {len(seeds)}")
        if envs_per_run < 1:
            raise UserError(f"envs_per_run = {envs_per_run} is too small; give 1 or more")
        if threads < 0:
            raise UserError(f"threads = {threads} is too small; give 0 for one thread a core, or their number")
        population, count = len(games), len(games) * envs_per_run
        self.shape = (population, envs_per_run)
        self._groups = _make_groups(games, envs_per_run, options or EnvironmentOptions(), threads or cores())
        self.observation = _common_observation(games, self._groups)
        self.frames_per_step = self._groups[0].engine.frames_per_step
        limits, actions = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for engine, rows, _ in self._groups:
            limits[rows], actions[rows] = engine.max_episode_steps, engine.actions
        self.actions: NDArray[np.int64] = actions.reshape(self.shape)[:, 0]
        """``[P]``: the number of actions of each run's game."""
        self._limits = limits
        self._action_counts = actions.astype(np.uint64)
        self._seeds = np.repeat(np.asarray(seeds, np.int64), envs_per_run)
        self._index = np.tile(np.arange(envs_per_run), population)
        self._everyone = np.arange(count)
        # the running episodes: their number, the steps so far and the actions taken
        self._episode = np.zeros(count, np.int64)
        self._length = np.zeros(count, np.int64)
        self._log = np.zeros((count, 256), np.uint8)
        # No running episode is longer than this, and none is truncated that is shorter than that.
        self._longest, self._shortest_limit = 0, int(limits.min())
        self._sent: NDArray[np.int64] | None = None
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
        self._episode[:] = 0
        self._length[:] = 0
        self._longest = 0
        self._clear_flags()
        self._started[:] = True
        self._start(self._everyone)
        return self._step

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take ``actions`` ``[P, E]``; an environment whose episode ends starts its next one at once."""
        self.send(actions)
        return self.recv()

    def send(self, actions: NDArray[np.integer]) -> None:
        """Begin to take ``actions`` ``[P, E]``, so that the caller can do other work before :meth:`recv`."""
        flat = np.ascontiguousarray(actions, np.int64).reshape(-1)
        if flat.shape != self._everyone.shape:
            raise ValueError(f"actions have shape {actions.shape}, not {self.shape}")
        if (flat.view(np.uint64) >= self._action_counts).any():  # which negative ones are too
            raise ValueError(f"actions {actions.tolist()} outside their games' ranges, below {self.actions.tolist()}")
        if self._sent is not None:
            raise RuntimeError("actions were sent before the outcome of those before was received")
        self._sent = flat
        for engine, _, place in self._groups:
            engine.send(flat[place])

    def recv(self) -> Step:
        """Wait for what the actions sent led to."""
        if self._sent is None:
            raise RuntimeError("no actions were sent")
        for engine, _, place in self._groups:
            outcome = engine.recv()
            self._frames[place] = outcome.frames
            self._rewards[place] = outcome.rewards
            self._terminated[place] = outcome.terminated
            self._life_lost[place] = outcome.life_lost
        self._record(self._sent)
        self._sent = None
        if self._longest < self._shortest_limit and not self._terminated.any():  # at most steps nothing ends
            self._started[:] = False
            self._truncated[:] = False
            return self._step
        self._life_lost &= ~self._terminated
        np.greater_equal(self._length, self._limits, out=self._truncated)
        self._truncated &= ~self._terminated
        np.logical_or(self._terminated, self._truncated, out=self._started)
        if self._truncated.any():
            self._final[self._truncated] = self._frames[self._truncated]
        (ended,) = np.nonzero(self._started)
        if ended.size:
            self._episode[ended] += 1
            self._length[ended] = 0
            self._start(ended)
        self._longest = int(self._length.max())
        return self._step

    def state(self) -> State:
        """Everything :meth:`restore` needs: the running episodes' numbers and actions, and the last step's outcome."""
        if self._sent is not None:
            raise RuntimeError("the state is undefined between send and recv")
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
        self._episode[:] = state["episode"]
        length = state["length"].astype(np.int64)
        actions = np.split(state["actions"].astype(np.uint8), np.cumsum(length)[:-1])
        self._reserve(int(length.max(initial=0)))
        for row, taken in zip(self._log, actions, strict=True):
            row[: taken.size] = taken
        self._length[:] = length
        self._longest = int(length.max(initial=0))
        alive = True
        for engine, rows, _ in self._groups:
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
        for engine, _, _ in self._groups:
            engine.close()

    def _start(self, which: NDArray[np.intp]) -> None:
        for engine, rows, _ in self._groups:
            members = np.flatnonzero(np.isin(rows, which, assume_unique=True))
            if members.size:
                self._frames[rows[members]] = engine.start(members, self._episode_seeds(rows[members]))

    def _episode_seeds(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        # 31 bits: the emulators' seeds are non-negative 32-bit integers
        random_bits = bits(self._seeds[rows], Stream.EPISODE, self._index[rows], self._episode[rows])
        return (random_bits >> np.uint64(33)).astype(np.int64)

    def _record(self, actions: NDArray[np.int64]) -> None:
        self._longest += 1
        self._reserve(self._longest)
        self._log[self._everyone, self._length] = actions
        self._length += 1

    def _reserve(self, steps: int) -> None:
        if steps > self._log.shape[1]:
            longer = max(steps, 2 * self._log.shape[1])
            self._log = np.pad(self._log, ((0, 0), (0, longer - self._log.shape[1])))

    def _clear_flags(self) -> None:
        for array in (self._rewards, self._terminated, self._life_lost, self._truncated):
            array[:] = 0


def make_engine(game: Game, count: int, options: EnvironmentOptions | None = None, threads: int = 1) -> Engine:
    """Emulators of ``count`` copies of one game, to be started by hand.

    Examples
    --------
    >>> from gramian.deep.games import find_game
    >>> make_engine(find_game("minatar/breakout"), count=2).observation.shape
    (4, 10, 10)
    """
    # each kind's emulator is imported when one of its games is played
    options = options or EnvironmentOptions()
    if game.kind == "atari":
        from gramian.deep.environments.atari import AtariEngine

        return AtariEngine(game.id, count, options.atari, threads)
    if game.kind == "minatar":
        from gramian.deep.environments.minatar import MinAtarEngine

        return MinAtarEngine(game.id, count, options.minatar)
    from gramian.deep.environments.cartpole import CartPoleEngine

    return CartPoleEngine(count, options.cartpole)


def find_flavours(game: Game) -> tuple[Flavour, ...]:
    """The modes and difficulties of an Atari game, the default one, in which runs are trained, first.

    Raises
    ------
    UserError
        If it is not an Atari game.

    Examples
    --------
    >>> from gramian.deep.games import find_game
    >>> [str(flavour) for flavour in find_flavours(find_game("seaquest"))]
    ['0:0', '0:1']
    """
    if game.kind != "atari":
        raise UserError(f"'{game.name}' has no modes; modes and difficulties are those of Atari games")
    from gramian.deep.environments.flavours import flavours

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
    from gramian.deep.environments.atari import AtariEngine

    # Setting a mode, be it the default one, lets some frames pass before the game begins, as the training does not.
    other = None if flavour == known[0] else flavour
    return AtariEngine(game.id, count, options.atari, min(count, cores()), flavour=other)


def _make_groups(
    games: Sequence[Game], envs_per_run: int, options: EnvironmentOptions, threads: int
) -> tuple[_Group, ...]:
    groups = []
    owners = [game for game in games for _ in range(envs_per_run)]
    for game in dict.fromkeys(games):
        rows = np.flatnonzero([owner == game for owner in owners])
        share = max(1, min(rows.size, round(threads * rows.size / len(owners))))
        place = slice(None) if rows.size == len(owners) else rows
        groups.append(_Group(make_engine(game, rows.size, options, share), rows, place))
    return tuple(groups)


def _common_observation(games: Sequence[Game], groups: Sequence[_Group]) -> ObservationSpec:
    names = [game.name for game in dict.fromkeys(games)]
    first = groups[0].engine.observation
    for name, (engine, _, _) in zip(names, groups, strict=True):
        if engine.observation != first:
            raise UserError(
                f"'{names[0]}' and '{name}' cannot share a population: their observations have shapes {first.shape} "
                f"and {engine.observation.shape}; train them in separate populations"
            )
    return first


def cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _crc32(frames: Frames) -> int:
    return zlib.crc32(frames.tobytes())
