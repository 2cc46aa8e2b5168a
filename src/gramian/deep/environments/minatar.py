"""MinAtar: five small games [1]_ in pure Python.

References
----------
.. [1] K. Young, T. Tian, *MinAtar: an Atari-inspired testbed for thorough and reproducible reinforcement learning
   experiments*, arXiv 1903.03176.
"""

from collections.abc import Sequence
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from gramian.deep.environments.engine import Engine, Frames, Outcome
from gramian.deep.environments.options import MinAtarOptions
from gramian.deep.observations import ObservationSpec


class _Rules(Protocol):
    """The part of a MinAtar game that is used here."""

    random: np.random.RandomState

    def act(self, a: int) -> tuple[float, bool]: ...
    def state(self) -> NDArray[np.bool_]: ...
    def reset(self) -> None: ...
    def state_shape(self) -> list[int]: ...
    def minimal_action_set(self) -> list[int]: ...


class MinAtarEngine(Engine):
    """``count`` copies of one MinAtar game, stepped one after the other.

    MinAtar's own wrapper keeps the action before across a reset, and its sticky actions may repeat it in the next
    episode. Here every episode begins with no-op as the action before, so that it is a function of its seed and its
    actions. One random generator serves the game and the sticky actions, as it does in the wrapper.
    """

    def __init__(self, game: str, count: int, options: MinAtarOptions):
        self._games = [_new_game(game, options.difficulty_ramping) for _ in range(count)]
        self._sticky = options.sticky_probability
        self._table = list(range(6)) if options.full_actions else self._games[0].minimal_action_set()
        self._before = [0] * count
        self._sent: list[int] = []
        height, width, channels = self._games[0].state_shape()
        self.observation = ObservationSpec((channels, height, width), np.uint8, 1)
        self._frames = np.zeros((count, channels, height, width), np.uint8)
        self.actions = len(self._table)
        self.frames_per_step = 1
        self.max_episode_steps = options.max_episode_steps

    def start(self, which: NDArray[np.intp], seeds: NDArray[np.int64]) -> Frames:
        """See :meth:`Engine.start`."""
        for i, seed in zip(which.tolist(), seeds.tolist(), strict=True):
            game = self._games[i]
            game.random = np.random.RandomState(seed)
            game.reset()
            self._before[i] = 0
            self._frames[i] = game.state().transpose(2, 0, 1)
        return self._frames[which]

    def send(self, actions: NDArray[np.int64]) -> None:
        """See :meth:`Engine.send`; the work is done by :meth:`recv`."""
        self._sent = actions.tolist()

    def recv(self) -> Outcome:
        """See :meth:`Engine.recv`."""
        rewards = np.zeros(len(self._games), np.float32)
        terminated = np.zeros(len(self._games), np.bool_)
        for i, action in enumerate(self._sent):
            rewards[i], terminated[i] = self._act(i, action)
            self._frames[i] = self._games[i].state().transpose(2, 0, 1)
        return Outcome(self._frames, rewards, terminated, np.zeros(len(self._games), np.bool_))

    def replay(self, seeds: NDArray[np.int64], actions: Sequence[NDArray[np.uint8]]) -> tuple[Frames, bool]:
        """See :meth:`Engine.replay`."""
        self.start(np.arange(len(self._games)), seeds)
        alive = True
        for i, (game, taken) in enumerate(zip(self._games, actions, strict=True)):
            for action in taken.tolist():
                _, over = self._act(i, action)
                alive &= not over
            self._frames[i] = game.state().transpose(2, 0, 1)
        return self._frames, alive

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        self._games.clear()

    def _act(self, i: int, action: int) -> tuple[float, bool]:
        game = self._games[i]
        taken = self._before[i] if game.random.rand() < self._sticky else self._table[action]
        self._before[i] = taken
        return game.act(taken)


def _new_game(name: str, ramping: bool) -> _Rules:
    # The package itself imports matplotlib and seaborn to draw, and warns where they are missing. The rules of a game
    # are one file that needs numpy alone.
    package = find_spec("minatar")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("MinAtar's games are not installed", name="minatar")
    file = Path(next(iter(package.submodule_search_locations))) / "environments" / f"{name}.py"
    spec = spec_from_file_location(f"minatar_rules_{name}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("_Rules", module.Env(ramping=ramping))
