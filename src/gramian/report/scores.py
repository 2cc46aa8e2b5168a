"""Every run's learning curve, final score and area under the curve, as arrays by game and seed."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import polars as pl

from gramian.core import statistics
from gramian.core.statistics import Array
from gramian.report import reference
from gramian.report.reference import HumanTable
from gramian.study.store import Study

POINTS = 200
"""Points of a learning curve."""
FEWEST_RANDOM_EPISODES = 10
"""Episodes of a run's own prefill that make a random score."""
FINISHED = ("done", "diverged")
"""Runs that count: a diverged one counts as random play from there on."""


def last_mean(logged: Sequence[float]) -> float:
    """Mean of the last quarter of what a run has logged; NaN where there is nothing."""
    return fmean(logged[-max(1, round(len(logged) / 4)) :]) if logged else math.nan


def frame_grid(horizon: float) -> Array:
    """Frames of the points of a learning curve ``[K]``."""
    return np.asarray(horizon * np.arange(1, POINTS + 1) / POINTS)


class Scores:
    """The arrays of a study: what is known of each game, and of each run of each arm. NaN where something is missing.

    Attributes
    ----------
    arms, games, seeds
        What was run: A arms, G games and S seeds.
    horizon, random, human
        Frames of a run, and the scores of random play and of a human, of each game ``[G]``.
    final, auc
        Of each finished run ``[S, G]``, by arm.
    curves
        Of all runs ``[S, G, K]``, by arm, as far as they have come.
    table
        One row for each run.
    random_from_prefill
        Games whose random score was measured from the runs themselves.
    not_numbers
        Episodes that are left out, as their return is not finite.
    unscored, short
        Names of finished runs without a score, and of those with fewer episodes than a score is the mean of.
    """

    def __init__(self, study: Study, table: HumanTable, arms: list[str], games: list[str], seeds: list[int]) -> None:
        self.arms, self.games, self.seeds = arms, games, seeds
        published = [reference.random_and_human(game, table) for game in games]
        self.random = np.array([np.nan if both is None else both[0] for both in published])
        self.human = np.array([np.nan if both is None else both[1] for both in published])
        self.random_from_prefill: list[int] = []
        finite = study.episodes.filter(pl.col("return").is_finite())
        self.not_numbers = study.episodes.height - finite.height
        by_run = _episodes_by_run(study, finite)
        self.horizon = np.zeros(len(games))
        for (game,), rows in study.runs.group_by("game"):
            targets = rows["frames_target"].drop_nulls().to_list()
            ends = [by_run[name][0][-1] for name in rows["run"] if len(by_run[name][0])]
            self.horizon[games.index(str(game))] = max(targets or ends or [1])
        for at, game in enumerate(games):
            if np.isnan(self.random[at]):
                played = _random_play(study, game, by_run)
                if len(played) >= FEWEST_RANDOM_EPISODES:
                    self.random[at] = played.mean()
                    self.random_from_prefill.append(at)
        shape = (len(seeds), len(games))
        self.final = {arm: np.full(shape, np.nan) for arm in arms}
        self.auc = {arm: np.full(shape, np.nan) for arm in arms}
        self.curves = {arm: np.full((*shape, POINTS), np.nan) for arm in arms}
        self.unscored: list[str] = []
        self.short: list[str] = []
        scored = [run | self._score(run, *by_run[run["run"]]) for run in study.runs.iter_rows(named=True)]
        self.table = pl.DataFrame(scored, infer_schema_length=None).select(
            "game", "arm", "seed", "run", "state", "frames", "episodes", "final_score", "auc", "random", "human",
            "human_normalised",
        ).sort("game", "arm", "seed")  # fmt: skip

    def _score(self, run: dict[str, object], frames: Array, returns: Array) -> dict[str, object]:
        arm, window, state = str(run["arm"]), int(str(run["window"])), run["state"]
        game, seed = self.games.index(str(run["game"])), self.seeds.index(int(str(run["seed"])))
        grid = frame_grid(self.horizon[game])
        curve = statistics.learning_curve(frames, returns, grid, window)
        final = auc = float("nan")
        end = frames[-1] if len(frames) else 0
        if state == "diverged":
            # It plays no better than at random with weights that are not numbers; leaving it out would flatter the arm.
            curve[grid > end] = self.random[game]
            final = float(self.random[game])
        elif state == "done":
            final = statistics.final_score(returns, window)
            if len(returns) < window:
                self.short.append(str(run["run"]))
        else:
            curve[grid > end] = np.nan
        if state in FINISHED:
            auc = float(statistics.area_under_curve(curve, grid))
            if not np.isfinite(final):
                self.unscored.append(str(run["run"]))
        self.curves[arm][seed, game] = curve
        self.final[arm][seed, game] = final
        self.auc[arm][seed, game] = auc
        normalised = float(statistics.human_normalised(final, self.random[game], self.human[game]))
        numbers = {
            "final_score": final, "auc": auc, "random": float(self.random[game]), "human": float(self.human[game]),
            "human_normalised": normalised,
        }  # fmt: skip
        known = {name: value if np.isfinite(value) else None for name, value in numbers.items()}
        return {"frames": int(end), "episodes": len(returns), **known}

    def normalised(self, arm: str, games: list[int]) -> Array:
        """Human-normalised final scores ``[S, len(games)]``."""
        return statistics.human_normalised(self.final[arm][:, games], self.random[games], self.human[games])


def _episodes_by_run(study: Study, episodes: pl.DataFrame) -> dict[str, tuple[Array, Array]]:
    found: dict[str, tuple[Array, Array]] = {name: (np.zeros(0), np.zeros(0)) for name in study.runs["run"]}
    for (name,), rows in episodes.select("run", "frames", "return").group_by("run", maintain_order=True):
        found[str(name)] = (rows["frames"].to_numpy().astype(float), rows["return"].to_numpy())
    return found


def _random_play(study: Study, game: str, by_run: dict[str, tuple[Array, Array]]) -> Array:
    """Returns of the episodes that ended while the runs of a game still acted at random to fill their memory."""
    played = [np.zeros(0)]
    for name in study.runs.filter(pl.col("game") == game)["run"]:
        prefill = study.settings.get(name, {}).get("prefill_agent_steps", 0)
        frames, returns = by_run[name]
        played.append(returns[frames <= prefill])
    return np.concatenate(played)
