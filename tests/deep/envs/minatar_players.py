"""Players that get far: they try plans on copies of the game, whose chance they know, and take the best."""

from importlib import import_module

import numpy as np

from gramian.deep.envs.minatar_games.mersenne import ROW_SIZE
from gramian.deep.envs.minatar_games.rows import CELLS, RAMPING


class Copies:
    """``count`` copies of a game, played through its kernel alone."""

    def __init__(self, id_, count, sticky=0.0, ramping=True):
        self.rules = import_module(f"gramian.deep.envs.minatar_games.{id_}")
        self.count, self.sticky = count, sticky
        self.states = np.zeros((count, self.rules.SIZE), np.int64)
        self.states[:, RAMPING] = ramping
        self.randoms = np.zeros((count, ROW_SIZE), np.uint32)
        self.frames = np.zeros((count, self.rules.CHANNELS, CELLS, CELLS), np.uint8)
        self.rewards, self.over = np.zeros(count, np.float32), np.zeros(count, np.bool_)

    def play(self, actions, seeds=-1):
        """Take ``actions`` ``[count, steps]``, in new episodes if there are seeds."""
        turns = np.zeros((self.count, 3), np.int64)
        turns[:, 0], turns[:, 1], turns[:, 2] = np.arange(self.count), seeds, actions.shape[1]
        arrays = (self.states, self.randoms, self.frames, turns, actions.reshape(-1))
        self.rules.play(*arrays, self.sticky, self.rewards, self.over)


class Planner:
    """Chooses the first action of the best of many random plans and of the rest of the plan before."""

    def __init__(self, game, id_, seed, allowed=range(6), value=None, plans=40, depth=25):
        self.game, self.value = game, value
        self.allowed = np.array(allowed)
        self.copies = Copies(id_, plans, game.sticky)
        self.random = np.random.default_rng(seed)
        self.plan = self.random.choice(self.allowed, depth)

    def action(self):
        copies, depth = self.copies, self.plan.size
        copies.states[:], copies.randoms[:] = self.game.states, self.game.randoms
        plans = self.random.choice(self.allowed, (copies.count, depth))
        # half of the plans do one thing for a while
        runs = np.sort(self.random.integers(0, depth, (copies.count // 2, depth)), 1)
        plans[: runs.shape[0]] = np.take_along_axis(plans[: runs.shape[0]], runs, 1)
        plans[0, :-1] = self.plan[1:]
        copies.play(plans)
        worth = copies.rewards - 1000.0 * copies.over
        if self.value is not None:
            worth += self.value(copies.states)
        self.plan = plans[np.argmax(worth)]
        return int(self.plan[0])
