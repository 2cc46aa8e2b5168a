"""What ``gramian analyze`` writes, with numbers of one's choice."""

import numpy as np

from gramian.representation.dynamics import DYNAMICS, GROWTH
from gramian.representation.measures import MEASURES
from gramian.representation.tables import Measure, Moment, Point, write

D = 6
ARMS = ("dqn", "gram:0.1", "gram:10.24")


def write_report(folder, games=("pong", "minatar/breakout"), arms=ARMS, value=1.0):
    """An analysis of two seeds in which every number is ``value``."""
    measures, curves, dynamics = [], [], []
    (folder / "correlation").mkdir(parents=True)
    for game in games:
        for arm in arms:
            for seed in (0, 1):
                run = f"{game.replace('/', '-')}-{arm.replace(':', '-k')}-s{seed}"
                key = (run, game, arm, seed)
                measures += [Measure(*key, 100, name, value) for name in (*MEASURES, *GROWTH)]
                curves += [Point(*key, "sparsity", x, value) for x in (0.0, 1.0)]
                curves += [Point(*key, "active_per_state", x, value) for x in range(D + 1)]
                curves += [Point(*key, "active_per_feature", x, value) for x in range(D)]
                curves += [Point(*key, "spectrum", x, value) for x in range(1, D + 1)]
                dynamics += [Moment(*key, frame, name, value) for frame in (100, 200) for name in DYNAMICS]
                np.save(folder / "correlation" / f"{run}.npy", np.full((D, D), value, np.float32))
    write(folder / "measures.csv", measures)
    write(folder / "curves.csv", curves)
    write(folder / "dynamics.csv", dynamics)
