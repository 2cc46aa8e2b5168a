"""What can 49 Atari games with one or two seeds show? A simulation of the study ``atari49``, made before it.

    python -m benchmarks.power49 --out FOLDER

A run's outcome is its learned area: the mean return over its frames (``--millions``), minus random play's.

- ``dqn`` in a game: normal, with mean and standard deviation of the five public runs of Dopamine's DQN.
- ``gram``: the same standard deviation, about that mean multiplied by 1 + e. The game's effect e is that of the
  paper's table, (gram − dqn)/(dqn − random), within ±1; 0 where the paper's ``dqn`` is no better than random play. A
  game whose mean is below random play's has nothing to multiply.
- Scenarios: the paper's effects (``full``), half of each (``half``), the same with a sign drawn at random for each game
  and study (``half of the games``), and 5 % in every game (``five percent``).
- Designs: 49 games and one seed, 25 games drawn at random and two seeds, 49 games and two seeds.

Tests are two-sided at 5 %: the exact sign test, and Wilcoxon's signed ranks with the normal approximation. ``wilcoxon``
ranks differences in units of the human score minus random play's. The columns ``begun_…`` have the games alone that
Dopamine's DQN has begun to learn: its mean learned area is more than two standard deviations of its runs. There
``begun_wilcoxon`` ranks (gram − dqn)/(|gram| + |dqn|) of the learned areas, which has the order of their log ratio.
"""

import math
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.command_line import Parser, exit_code, new_folder, whole
from gramian.core.errors import UserError
from gramian.core.files import replace_text

Floats = NDArray[np.float64]
Rng = np.random.Generator
SEED = 20261118
MILLIONS = 4
LEVEL = 0.05
DESIGNS = ((49, 1), (25, 2), (49, 2))
"""Games and seeds."""
SCENARIOS: dict[str, Callable[[Floats, Rng], Floats]] = {
    "full": lambda effects, _: effects,
    "half": lambda effects, _: effects / 2,
    "half of the games": lambda effects, rng: effects * rng.choice([-1.0, 1.0], effects.shape),
    "five percent": lambda effects, _: np.full_like(effects, 0.05),
}


class Games:
    """What the simulation knows of the games.

    Parameters
    ----------
    millions
        Million frames of a run.

    Attributes
    ----------
    learned
        Mean learned area of Dopamine's DQN ``[G]``, at least 0.
    deviation
        Standard deviation of its runs ``[G]``.
    effects
        Of the paper's table ``[G]``.
    unit
        Human score minus random play's ``[G]``.
    begun
        Whether Dopamine's DQN has begun to learn the game ``[G]``.
    names
        Of the games.
    """

    def __init__(self, millions: int = MILLIONS) -> None:
        data = files("gramian") / "data"
        table = pl.read_csv((data / "atari49.csv").read_bytes()).sort("game")
        public = pl.read_csv((data / "dopamine_cnn_agents_20M.csv").read_bytes())
        dqn = public.filter(pl.col("agent") == "DQN", pl.col("million_frames") <= millions)
        areas = dqn.group_by("game").agg(pl.col(f"run{run}").mean() for run in range(1, 6)).sort("game")
        if areas["game"].to_list() != table["game"].to_list():
            raise UserError("the public runs and the paper's table have different games")
        runs = areas.drop("game").to_numpy() - table["random"].to_numpy()[:, None]
        paper = table["paper_dqn"].to_numpy() - table["paper_random"].to_numpy()
        gain = table["paper_gram"].to_numpy() - table["paper_dqn"].to_numpy()
        self.learned: Floats = np.maximum(runs.mean(1), 0.0)
        self.deviation: Floats = runs.std(1, ddof=1)
        self.effects: Floats = np.where(paper > 0, np.clip(gain / np.where(paper > 0, paper, 1.0), -1, 1), 0.0)
        self.unit: Floats = table["human"].to_numpy() - table["random"].to_numpy()
        self.begun = runs.mean(1) > 2 * self.deviation
        self.names: list[str] = table["game"].to_list()

    def areas(self, effects: Floats, seeds: int, rng: Rng) -> tuple[Floats, Floats]:
        """Learned areas of ``dqn`` and ``gram``, means over seeds: one study for each row of ``effects [R, G]``."""
        noise = rng.standard_normal((2, *effects.shape)) * self.deviation / math.sqrt(seeds)
        return self.learned + noise[0], self.learned * (1 + effects) + noise[1]


def sign_test(differences: Floats) -> Floats:
    """P-values of the exact sign test, one for each row; games without a difference are left out.

    Examples
    --------
    >>> sign_test(np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, -4.0, -5.0, -6.0]]))
    array([0.03125, 1.     ])
    """
    wins, losses = (differences > 0).sum(1), (differences < 0).sum(1)
    return np.array(
        [
            min(1.0, 2 * sum(math.comb(n, k) for k in range(least + 1)) / 2**n)
            for least, n in zip(np.minimum(wins, losses).tolist(), (wins + losses).tolist(), strict=True)
        ]
    )


def wilcoxon(differences: Floats) -> Floats:
    """P-values of Wilcoxon's signed ranks by the normal approximation, one for each row; as `sign_test` without zeros.

    Examples
    --------
    >>> wilcoxon(np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, -3.0, -4.0, 5.0, -6.0]])).round(3)
    array([0.028, 0.6  ])
    """
    n = (differences != 0).sum(1)
    ranks = np.abs(differences).argsort(1).argsort(1) + 1.0 - (differences.shape[1] - n)[:, None]
    total = (np.sign(differences) * ranks).sum(1)
    deviation = np.sqrt(n * (n + 1) * (2 * n + 1) / 6)
    return np.array([math.erfc(abs(z) / math.sqrt(2)) for z in (total / np.maximum(deviation, 1.0)).tolist()])


def simulate(games: Games, replicates: int, seed: int) -> pl.DataFrame:
    """One row for each scenario and design: the share of games won, with its 95 % range over studies, and the power."""
    rows = []
    for at, (scenario, changed) in enumerate(SCENARIOS.items()):
        for number, (count, seeds) in enumerate(DESIGNS):
            rng = np.random.default_rng([seed, at, number])
            dqn, gram = games.areas(changed(np.tile(games.effects, (replicates, 1)), rng), seeds, rng)
            played = rng.permuted(np.tile(np.arange(dqn.shape[1]) < count, (replicates, 1)), axis=1)
            found = np.where(played, gram - dqn, 0.0)
            begun = np.where(games.begun, found, 0.0)
            share = (found > 0).sum(1) / count
            low, high = np.quantile(share, [0.025, 0.975])
            columns = {
                "share": share.mean(),
                "share_low": low,
                "share_high": high,
                "sign_test": (sign_test(found) < LEVEL).mean(),
                "wilcoxon": (wilcoxon(found / games.unit) < LEVEL).mean(),
                "begun_share": (begun > 0).sum() / (begun != 0).sum(),
                "begun_sign_test": (sign_test(begun) < LEVEL).mean(),
                "begun_wilcoxon": (wilcoxon(begun / (np.abs(dqn) + np.abs(gram))) < LEVEL).mean(),
            }
            rounded = {name: round(float(value), 3) for name, value in columns.items()}
            rows.append({"scenario": scenario, "games": count, "seeds": seeds, **rounded, "replicates": replicates})
    return pl.DataFrame(rows)


def simulated(arguments: Sequence[str] | None) -> None:
    """Print the table, and write it where a folder is named."""
    parser = Parser("power49", __doc__)
    parser.add_argument("--replicates", type=whole(1, 10**6), default=10_000, help="simulated studies of each kind")
    parser.add_argument("--millions", type=whole(1, 20), default=MILLIONS, help="million frames of a run")
    parser.add_argument("--seed", type=whole(0, 2**32 - 1), default=SEED)
    parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="write power.csv into it")
    options = parser.parse_args(arguments)
    table = simulate(Games(options.millions), options.replicates, options.seed).write_csv()
    print(table, end="")
    if options.out:
        replace_text(options.out / "power.csv", table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("power49", lambda: simulated(arguments))


if __name__ == "__main__":
    sys.exit(main())
