"""From a study's tables to every number that the report shows."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from gramian.core import statistics
from gramian.core.arms import CONTROL, order_arms
from gramian.core.errors import UserError, require_least, unknown
from gramian.core.statistics import Array, Count, Interval
from gramian.report import reference
from gramian.report.cautions import find_cautions
from gramian.report.reference import HumanTable
from gramian.report.scores import Scores, frame_grid
from gramian.report.sweep import find_sweep
from gramian.study.manifest import Planned
from gramian.study.store import WINDOW_EPISODES, Study

MOST_IN_A_PANEL = 5
"""Learning curves in one panel: the bands of more hide the lines."""
MOST_SHOWN = 8
"""Arms that a figure shows at once, unless its reader asks for more."""


@dataclass(frozen=True)
class Options:
    """How a study is reported."""

    human: HumanTable = "atari-57"
    """Table of human and random scores that Atari scores are normalised with."""
    baseline: str = "dqn"
    """Arm that the others are compared with."""
    control: str = ""
    """Arm that they are compared with besides, in a section of its own; 'norm (matched)', where the study has it."""
    replicates: int = statistics.REPLICATES
    """Bootstrap replicates."""
    seed: int = 0
    """Of the bootstrap."""
    title: str = ""
    """Of the page; the study's own, or the name of its folder, where empty."""
    frames: int = 0
    """Look at the first so many frames of every run; a run that has come so far counts as done. 0 for all of them."""

    def __post_init__(self) -> None:
        require_least(self, 100, "replicates")
        require_least(self, 0, "seed", "frames")


@dataclass(frozen=True)
class Aggregate:
    """Human-normalised final scores of one arm over the games that every arm has finished runs of."""

    median: Interval
    mean: Interval
    iqm: Interval
    optimality_gap: Interval
    profile: Interval
    """``[T]`` at `Analysis.thresholds`."""
    median_curve: Interval
    """``[K]``."""
    iqm_curve: Interval
    """``[K]``."""


@dataclass(frozen=True)
class Comparison:
    """One arm against the baseline, over the games that both have finished runs of."""

    games: int
    final: Count
    """By mean final score."""
    final_p: float
    auc: Count
    """By mean area under the learning curve."""
    auc_p: float
    gain: Interval
    """AUC gain of each game ``[G]``, by pairs of the same seed where every game has two."""
    paired: bool
    """Whether ``gain``'s intervals draw seeds for both arms together."""
    improvement: Interval
    """Probability of improvement, by final score."""
    pairs: int
    """Pairs of finished runs of the same game and seed."""
    paired_improvement: Interval
    """Share of pairs that the arm wins, by final score."""
    difference: Interval
    """Mean difference in final score over pairs of the same seed, of each game ``[G]``, with Student's intervals."""


class Analysis(Scores):
    """Everything that the report shows: the scores of a study's runs, and what is made of them.

    Attributes
    ----------
    options, control
        The options, and the arm that the others are compared with besides the baseline; empty where there is none.
    final_intervals, curve_intervals
        Mean over seeds of the final score ``[G]``, and of the learning curve ``[K, G]``, by arm.
    common
        Games that the aggregates are over: with a human score, and a finished run of every arm that has any.
    thresholds, aggregates, comparisons
        τ of the performance profiles, and the numbers by arm.
    missing
        Runs that did not finish: run, game, arm, seed, state, reason.
    sweep
        The choice of κ, where a penalty has a grid of it.
    windows
        Rows that a score is the mean of: 100 of episodes, 1 of a table whose rows are means already.
    cautions
        What a reader has to know before the numbers: too few seeds, missing cells, mixed settings.
    """

    def __init__(self, study: Study, options: Options, planned: Planned) -> None:
        runs = study.runs
        _no_duplicates(runs)
        arms = order_arms(runs["arm"].to_list(), options.baseline)
        if options.baseline not in arms and options.baseline != Options.baseline:
            raise unknown("baseline arm", options.baseline, arms)
        games = sorted(runs["game"].unique().to_list(), key=lambda game: (reference.title(game).lower(), game))
        self.options, self.control = options, _control(options, arms)
        super().__init__(study, options.human, arms, games, sorted(runs["seed"].unique().to_list()))
        generator = np.random.default_rng(options.seed)
        self.final_intervals = {arm: _mean_final(self.final[arm], options) for arm in arms}
        self.curve_intervals = {
            arm: statistics.curve_interval(statistics.mean_over_runs, self.curves[arm], generator, by_game=True)
            for arm in arms
        }
        finished = [arm for arm in arms if np.isfinite(self.final[arm]).any()]
        self.common = _common_games(self, finished)
        self.thresholds = _thresholds(self)
        self.aggregates = {arm: _aggregate(self, arm, generator) for arm in (finished if self.common else ())}
        others = [arm for arm in arms if arm != options.baseline] if options.baseline in arms else []
        self.comparisons = {arm: _compare(self, arm, generator) for arm in others}
        self.missing = _missing(runs, planned)
        of_sweep = np.random.default_rng([options.seed, 1])
        self.sweep = find_sweep(study, self, options.baseline, options.replicates, of_sweep)
        self.windows = tuple(sorted(runs["window"].unique().to_list()))
        self.cautions = find_cautions(study, self)

    def by_kind_of_rows(self, episodes: str, points: str, both: str) -> str:
        """The words for a study of episodes, of points of learning curves, or of both."""
        return both if len(self.windows) > 1 else points if self.windows == (1,) else episodes

    @property
    def score_words(self) -> str:
        """What a final score is."""
        episodes, points = f"mean return of the last {WINDOW_EPISODES} training episodes", "the learning curve"
        return self.by_kind_of_rows(episodes, f"last point of {points}", f"{episodes}, or last point of {points}")

    @property
    def axis_words(self) -> str:
        """What the vertical axis of a learning curve is."""
        return self.by_kind_of_rows(f"mean return of the last {WINDOW_EPISODES} episodes", "return", "return")

    def grid(self, game: int) -> Array:
        """Frames of the points of a game's curves ``[K]``."""
        return frame_grid(self.horizon[game])

    def shown(self) -> list[str]:
        """Arms that figures begin with: all where they are few, else the baseline and the chosen κ of each penalty."""
        if len(self.arms) <= MOST_SHOWN or self.sweep is None:
            return self.arms[:MOST_SHOWN]
        chosen = {penalty.chosen.arm for penalty in self.sweep.penalties} | {self.options.baseline}
        return [arm for arm in self.arms if arm in chosen][:MOST_SHOWN]

    def curves_by_arm(self) -> bool:
        """Whether every arm has panels of its own in the figure of learning curves."""
        return self.options.baseline in (shown := self.shown()) and by_arm(len(shown), len(self.games))

    def has_baseline(self) -> bool:
        """Whether the study has the arm that the others are compared with."""
        return self.options.baseline in self.arms


def by_arm(arms: int, games: int) -> bool:
    """Whether the figure of learning curves has a panel for each arm in every game, the baseline beside it.

    Of many arms in one panel the bands hide the lines; of many games there is no room for so many panels.
    """
    return arms > MOST_IN_A_PANEL and games <= statistics.FEW_GAMES


def analyse(study: Study, options: Options, planned: Planned | None = None) -> Analysis:
    """Compute every number of the report of a study; cells of ``planned`` that were not run are reported as missing.

    Raises
    ------
    UserError
        If two runs are of the same game, arm and seed, or if the baseline or the control named is not an arm of the
        study, or both are one.
    """
    return Analysis(study, options, planned or Planned())


def _control(options: Options, arms: list[str]) -> str:
    """The arm that the others are compared with besides; empty where there is none."""
    if not options.control:
        return CONTROL if CONTROL in arms and options.baseline != CONTROL else ""
    if options.control not in arms:
        raise unknown("control arm", options.control, arms)
    if options.control == options.baseline:
        raise UserError(f"the control arm is '{options.control}', the baseline; name another arm of the two")
    return options.control


def _common_games(tables: Scores, finished: list[str]) -> list[int]:
    complete = [np.isfinite(tables.final[arm]).any(0) for arm in finished]
    both = np.logical_and.reduce([np.isfinite(tables.human), *complete])
    return [int(game) for game in np.flatnonzero(both)] if finished else []


def _thresholds(found: Analysis) -> Array:
    """τ from 0 to the human score at least, and to where a tenth of the runs of the best arm is left at most."""
    normalised = [found.normalised(arm, found.common) for arm in found.arms]
    best = [float(np.nanquantile(scores, 0.9)) for scores in normalised if np.isfinite(scores).any()]
    return np.linspace(0.0, min(max([1.0, *best]), 8.0), 81)


def _aggregate(found: Analysis, arm: str, generator: np.random.Generator) -> Aggregate:
    games, replicates = found.common, found.options.replicates
    finished = np.isfinite(found.final[arm][:, games])
    curves = statistics.human_normalised(
        np.where(finished[..., None], found.curves[arm][:, games], np.nan),
        found.random[games, None],
        found.human[games, None],
    )
    scores = found.normalised(arm, games)
    interval = partial(statistics.bootstrap, scores=scores, generator=generator, replicates=replicates)
    return Aggregate(
        median=interval(statistics.median_score),
        mean=interval(statistics.mean_score),
        iqm=interval(statistics.interquartile_mean),
        optimality_gap=interval(statistics.optimality_gap),
        profile=interval(lambda drawn: statistics.performance_profile(drawn, found.thresholds)),
        median_curve=statistics.curve_interval(statistics.median_score, curves, generator),
        iqm_curve=statistics.curve_interval(statistics.interquartile_mean, curves, generator),
    )


def _mean_final(scores: Array, options: Options) -> Interval:
    # a generator of its own: what is drawn for one arm does not depend on the others
    generator = np.random.default_rng(options.seed)
    return statistics.bootstrap(
        statistics.mean_over_runs, scores, generator, by_game=True, replicates=options.replicates
    )


def _compare(found: Analysis, arm: str, generator: np.random.Generator) -> Comparison:
    options = found.options
    final, base_final = found.final[arm], found.final[options.baseline]
    auc, base_auc = found.auc[arm], found.auc[options.baseline]
    pairs = np.isfinite(final) & np.isfinite(base_final)
    both = np.isfinite(final).any(0) & np.isfinite(base_final).any(0)
    by_final = statistics.count_games(statistics.mean_over_runs(final), statistics.mean_over_runs(base_final))
    by_auc = statistics.count_games(statistics.mean_over_runs(auc), statistics.mean_over_runs(base_auc))
    # Pair only where pairing loses no run: elsewhere the estimate would not be that of the bars' own means.
    paired = bool((np.isfinite(final) == np.isfinite(base_final))[:, both].all())
    interval = partial(statistics.bootstrap_pair, generator=generator, replicates=options.replicates)
    # a generator of its own, as for mean scores: the same share in every table of these pairs
    by_seed = partial(interval, generator=np.random.default_rng(options.seed), paired=True)
    return Comparison(
        games=int(both.sum()),
        final=by_final,
        final_p=statistics.sign_test(by_final),
        auc=by_auc,
        auc_p=statistics.sign_test(by_auc),
        gain=interval(lambda x, y: statistics.auc_gain(x, y, found.random), auc, base_auc, paired=paired, by_game=True),
        paired=paired,
        improvement=interval(statistics.probability_of_improvement, final, base_final, paired=False),
        pairs=int(pairs.sum()),
        paired_improvement=by_seed(statistics.paired_improvement, final, base_final),
        difference=statistics.student_by_game(final - base_final),
    )


def _no_duplicates(runs: pl.DataFrame) -> None:
    twice = runs.filter(pl.struct("game", "arm", "seed").is_duplicated()).sort("game", "arm", "seed")
    if twice.height:
        first, second = twice.head(2).iter_rows(named=True)
        raise UserError(
            f"game {first['game']!r}, arm {first['arm']!r}, seed {first['seed']} is there twice: "
            f"'{first['folder']}' and '{second['folder']}'; report them apart"
        )


def _missing(runs: pl.DataFrame, planned: Planned) -> pl.DataFrame:
    columns = ["run", "game", "arm", "seed", "state", "reason"]
    unfinished = runs.filter(pl.col("state") != "done").select(columns)
    rows = [(*row[:-1], row[-1] or planned.cells.get((row[1], row[2], row[3]), "")) for row in unfinished.iter_rows()]
    there = set(runs.select("game", "arm", "seed").iter_rows())
    absent = [cell for cell in planned.cells if cell not in there]
    rows += [("", *cell, "planned", planned.cells[cell] or "not begun") for cell in absent]
    return pl.DataFrame(rows, schema=unfinished.schema, orient="row").sort("game", "arm", "seed")
