"""Which κ: the score of every penalty against κ, where a study has a grid of it, and the κ of equal feature norm.

**By score.** A run scores (return − lowest)/(highest − lowest), where lowest and highest are the means over seeds of
the worst and the best arm of its game: every game counts the same. An arm scores the mean over games of the mean over
runs. Of each penalty the κ with the highest score is taken, the smallest of equals.

**By norm.** Penalties that shrink features (``norm``, ``cross``, ``l2``) may help or harm by the shrinking alone, and
at equal κ they shrink differently. They are also compared at the κ where the mean feature norm (``feature_norm`` of
``metrics.csv``) is the same, interpolated in a grid of κ.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
import polars as pl

from gramian.core import statistics
from gramian.core.arms import kind_of
from gramian.core.statistics import Array, Interval
from gramian.report.scores import Scores, last_mean
from gramian.study.store import Study

FEWEST_KAPPAS = 3
"""κ of one penalty that make a grid."""


@dataclass(frozen=True)
class Setting:
    """One κ of a penalty."""

    arm: str
    kappa: float
    score: Interval
    """By final score; see `find_sweep`."""
    auc: Interval
    """By area under the learning curve."""
    runs: int
    """Finished, in the games of the sweep."""
    norm: float
    """Mean feature norm at the end of training; NaN where the runs have none."""


@dataclass(frozen=True)
class Penalty:
    """A penalty with its grid of κ, by rising κ."""

    name: str
    settings: list[Setting]

    @property
    def centered(self) -> bool:
        """Whether it is drawn with the centred ones; those that know no centring are too."""
        return "uncentered" not in self.name

    @property
    def chosen(self) -> Setting:
        """The κ with the highest score; the smallest of equals."""
        return max(self.settings, key=lambda setting: (float(setting.score.estimate), -setting.kappa))

    @property
    def chosen_by_auc(self) -> Setting:
        """The κ with the largest area under the learning curve; the smallest of equals."""
        return max(self.settings, key=lambda setting: (float(setting.auc.estimate), -setting.kappa))

    @property
    def at_edge(self) -> bool:
        """Whether the best κ is the first or the last of the grid: a better one may lie outside."""
        return self.chosen.kappa in (self.settings[0].kappa, self.settings[-1].kappa)

    @property
    def indistinct(self) -> list[float]:
        """κ whose score lies within the interval of the chosen one's: the choice among them is not settled."""
        low = float(self.chosen.score.low)
        return [setting.kappa for setting in self.settings if float(setting.score.estimate) >= low]


@dataclass(frozen=True)
class Matched:
    """A penalty beside a reference, at the κ that leaves features of the same mean norm."""

    penalty: str
    """``gram``, ``gram:uncentered``, ``l2``, …"""
    norms: Mapping[float, float]
    """Of its grid, by κ."""
    target: float
    """The norm of the reference."""
    score: float = math.nan
    """Between those of the neighbouring κ, linear in log κ; NaN where there is no κ, or no score."""

    @property
    def kappa(self) -> float | None:
        """None where the grid does not reach that norm."""
        return matched_kappa(self.norms, self.target)

    @property
    def nearest(self) -> float:
        """The κ of the grid whose norm is nearest, by ratio."""
        return min(self.norms, key=lambda kappa: abs(math.log(self.norms[kappa] / self.target)))

    @property
    def reach(self) -> tuple[float, float]:
        """The smallest and the largest norm of the grid; NaN where none is known."""
        return min(self.norms.values(), default=math.nan), max(self.norms.values(), default=math.nan)


@dataclass(frozen=True)
class Sweep:
    """The choice of κ."""

    games: list[int]
    """Where every arm of the sweep has a finished run: the score is over these."""
    baseline: Interval | None
    """Score of the arm without a penalty; None where the study has none."""
    baseline_auc: Interval | None
    baseline_norm: float
    """Its mean feature norm at the end of training; NaN where its runs have none."""
    penalties: list[Penalty]
    reference: Setting | None
    """The arm that `matched` is matched to: the chosen κ of the first penalty; None where norms are unknown."""
    matched: list[Matched]

    @property
    def grids_agree(self) -> bool:
        """Whether every penalty was tried at the same κ, with the same number of finished runs at each."""
        efforts = {tuple((s.kappa, s.runs) for s in penalty.settings) for penalty in self.penalties}
        return len(efforts) == 1


def find_sweep(
    study: Study, tables: Scores, baseline: str, replicates: int, generator: np.random.Generator
) -> Sweep | None:
    """Score every κ of every penalty that has a grid; None where none has.

    Scores have a bootstrap interval over seeds; the baseline is scored beside.
    """
    kappas = {
        arm: float(kappa)
        for arm, kappa in study.runs.select("arm", "kappa").unique().iter_rows()
        if kappa is not None and kappa > 0
    }
    grids = grids_of({arm: kappas[arm] for arm in tables.arms if arm in kappas})
    if not grids:
        return None
    members = [*([baseline] if baseline in tables.arms else []), *(arm for own in grids.values() for arm in own)]
    games = counting_games(_means(tables.final), members)
    if not games:
        return None
    finals, aucs = (within_range(by_arm, _means(by_arm), members, games) for by_arm in (tables.final, tables.auc))
    norms = feature_norms(study)

    def interval(scores: Array) -> Interval:
        return statistics.bootstrap(statistics.mean_score, scores, generator, replicates=replicates)

    def setting(arm: str) -> Setting:
        finished = int(np.isfinite(finals[arm]).sum())
        scores = interval(finals[arm]), interval(aucs[arm])
        return Setting(arm, kappas[arm], *scores, finished, norms.get(arm, math.nan))

    penalties = [Penalty(name, [setting(arm) for arm in own]) for name, own in grids.items()]
    first = next((penalty for penalty in penalties if kind_of(penalty.name) == "gram"), penalties[0])
    reference = first.chosen if first.chosen.norm > 0 else None
    return Sweep(
        games,
        interval(finals[baseline]) if baseline in finals else None,
        interval(aucs[baseline]) if baseline in aucs else None,
        norms.get(baseline, math.nan),
        penalties,
        reference,
        [] if reference is None else [_matched(p, reference.norm) for p in penalties if p is not first],
    )


def _means(scores: Mapping[str, Array]) -> dict[str, Array]:
    return {arm: statistics.mean_over_runs(own) for arm, own in scores.items()}


def run_norms(study: Study) -> dict[str, float]:
    """Mean feature norm of each run over the last quarter of its log; none where it has logged none."""
    if "feature_norm" not in study.metrics.columns:
        return {}
    logged = study.metrics.select("run", "feature_norm").drop_nulls().group_by("run", maintain_order=True).all()
    return {str(run): last_mean(norms) for run, norms in logged.iter_rows()}


def feature_norms(study: Study, games: Collection[str] | None = None) -> dict[str, float]:
    """Geometric mean over the runs of an arm of their norms, in all games or in some, so that no game prevails.

    NaN where a run is not done, or its norm is unknown or zero.
    """
    own = run_norms(study)
    found: dict[str, list[float]] = {}
    for run, game, arm, state in study.runs.select("run", "game", "arm", "state").iter_rows():
        if games is None or game in games:
            found.setdefault(arm, []).append(own.get(run, math.nan) if state == "done" else math.nan)
    return {
        arm: math.exp(fmean(map(math.log, norms))) if all(norm > 0 for norm in norms) else math.nan
        for arm, norms in found.items()
    }


def penalty_of(arm: str) -> str:
    """An arm without its κ: what a grid of κ is a grid of. A combination has no grid and stands for itself."""
    if "+" in kind_of(arm):
        return arm
    head, *rest = arm.split(" ", maxsplit=1)
    kind, *options = head.split(":")
    return " ".join([":".join([kind, *options[1:]]), *rest])


def matched_kappa(norms: Mapping[float, float], target: float) -> float | None:
    """The smallest κ > 0 at which the norm is ``target``, linear in logarithms; None where the grid misses it."""
    grid = sorted(norms.items())
    wanted = math.log10(target)
    if grid and grid[0][1] == target:
        return grid[0][0]
    for (left, left_norm), (right, right_norm) in pairwise(grid):
        low, high = math.log10(left_norm), math.log10(right_norm)
        if low != high and min(low, high) <= wanted <= max(low, high):
            share = (wanted - low) / (high - low)
            return float(10 ** ((1 - share) * math.log10(left) + share * math.log10(right)))
    return None


def grids_of(kappas: Mapping[str, float]) -> dict[str, list[str]]:
    """Arms of each penalty that has a grid of κ, by rising κ; ``kappas`` are those of the arms, 0 for none."""
    found: dict[str, list[str]] = {}
    for arm, kappa in kappas.items():
        if kappa > 0:
            found.setdefault(penalty_of(arm), []).append(arm)
    return {name: sorted(own, key=kappas.__getitem__) for name, own in found.items() if len(own) >= FEWEST_KAPPAS}


def counting_games(means: Mapping[str, Array], arms: Sequence[str]) -> list[int]:
    """Games with a score of every arm, which are not all the same; ``means`` over runs ``[G]`` are by arm."""
    stacked = np.stack([means[arm] for arm in arms])
    known = np.isfinite(stacked).all(0)
    differ = np.where(known, np.ptp(np.where(np.isfinite(stacked), stacked, 0.0), axis=0), 0.0) > 0
    return [int(at) for at in np.flatnonzero(known & differ)]


def within_range(
    scores: Mapping[str, Array], means: Mapping[str, Array], arms: Sequence[str], games: Sequence[int]
) -> dict[str, Array]:
    """Scores of runs ``[S, G]``, by arm, as shares of the range between the worst and the best arm of each game."""
    chosen = list(games)
    stacked = np.stack([means[arm][chosen] for arm in arms])
    low, span = stacked.min(0), np.ptp(stacked, axis=0)
    return {arm: (scores[arm][:, chosen] - low) / np.where(span > 0, span, np.nan) for arm in arms}


def _matched(penalty: Penalty, norm: float) -> Matched:
    norms = {setting.kappa: setting.norm for setting in penalty.settings if setting.norm > 0}
    kappa = matched_kappa(norms, norm)
    grid = [math.log(setting.kappa) for setting in penalty.settings]
    scores = [float(setting.score.estimate) for setting in penalty.settings]
    score = math.nan if kappa is None else float(np.interp(math.log(kappa), grid, scores))
    return Matched(penalty.name, norms, norm, score)


def sweep_table(sweep: Sweep, baseline: str) -> pl.DataFrame:
    """One row for each κ of each penalty, and one for the arm without: what ``kappa.csv`` holds."""
    rows = [
        {
            "penalty": penalty.name, "kappa": setting.kappa, "arm": setting.arm, "runs": setting.runs,
            "score": _known(setting.score.estimate), "score_low": _known(setting.score.low),
            "score_high": _known(setting.score.high), "auc_score": _known(setting.auc.estimate),
            "auc_score_low": _known(setting.auc.low), "auc_score_high": _known(setting.auc.high),
            "feature_norm": _known(setting.norm), "chosen": setting is penalty.chosen,
            "chosen_by_auc": setting is penalty.chosen_by_auc,
        }
        for penalty in sweep.penalties
        for setting in penalty.settings
    ]  # fmt: skip
    if sweep.baseline is not None and sweep.baseline_auc is not None:
        ends = [*sweep.baseline, *sweep.baseline_auc]
        names = [f"{kind}{end}" for kind in ("score", "auc_score") for end in ("", "_low", "_high")]
        empty = dict.fromkeys(rows[0])
        known = dict(zip(names, map(_known, ends), strict=True)) | {"feature_norm": _known(sweep.baseline_norm)}
        rows.append(empty | known | {"penalty": baseline, "arm": baseline, "chosen": False, "chosen_by_auc": False})
    return pl.DataFrame(rows, infer_schema_length=None)


def _known(value: Array | float) -> float | None:
    return float(value) if math.isfinite(value) else None
