"""``gramian study match``: the κ at which each penalty of a study leaves features as large as one of its arms does."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from gramian.core.arms import Arm, parse_arm
from gramian.core.errors import UserError, unknown
from gramian.study.norms import last_mean, matched_kappa, mean_norm, penalty_of
from gramian.study.whole import WholeStudy


@dataclass(frozen=True)
class Match:
    """A penalty, and the κ at which it leaves features of the norm that was asked for."""

    penalty: str
    """``gram``, ``gram:uncentered``, ``l2``, …"""
    kappa: float | None
    """None where the grid does not reach that norm."""
    nearest_kappa: float
    """The κ of the grid whose norm is nearest, by ratio."""
    nearest_norm: float
    smallest_norm: float
    largest_norm: float


def feature_norms(study: WholeStudy, games: Collection[str] | None = None) -> dict[Arm, float]:
    """Mean feature norm of each arm at the end of training, see `gramian.study.norms`; of all games or of some.

    Only runs that are done count, and an arm counts only where all its runs are done.
    """
    norms: dict[Arm, list[float]] = {}
    for run in study.runs:
        if games is None or run.spec.game.name in games:
            norm = last_mean(run.feature_norms()) if run.state[0] == "done" else math.nan
            norms.setdefault(run.spec.arm, []).append(norm)
    means = {arm: mean_norm(values) for arm, values in norms.items()}
    return {arm: norm for arm, norm in means.items() if math.isfinite(norm)}


def games_of(study: WholeStudy, arm: str) -> list[str]:
    """The games that an arm of a study plays, by name; none where the study has no such arm."""
    wanted = parse_arm(arm, study.plan.settings.kappa)
    return sorted({run.spec.game.name for run in study.runs if run.spec.arm == wanted})


def match(study: WholeStudy, arm: str, games: Collection[str] | None = None) -> tuple[float, list[Match]]:
    """Match every penalty of a study to one of its arms.

    Parameters
    ----------
    study
        The study.
    arm
        As ``gram:10`` or ``gram:10:uncentered``; it must be one of the study's.
    games
        Names of the games whose runs are looked at; all where it is None.

    Returns
    -------
    tuple
        The arm's feature norm, and a `Match` for each other penalty.

    Raises
    ------
    UserError
        If the study has no such arm, or if its runs are not done.
    """
    wanted = parse_arm(arm, study.plan.settings.kappa)
    arms = {run.spec.arm for run in study.runs}
    if wanted not in arms:
        raise unknown("arm of this study", str(wanted), map(str, arms), _nearest(wanted, arms))
    norms = feature_norms(study, games)
    if wanted not in norms:
        raise UserError(f"arm '{wanted}' has runs in '{study.folder}' that are not done; finish them first")
    grids: dict[str, dict[float, float]] = {}
    for other, norm in norms.items():
        penalty = penalty_of(str(other))
        if other.kappa > 0 and penalty != penalty_of(str(wanted)):
            grids.setdefault(penalty, {})[other.kappa] = norm
    return norms[wanted], [_match(penalty, grid, norms[wanted]) for penalty, grid in grids.items()]


def _nearest(wanted: Arm, arms: Collection[Arm]) -> str:
    """The arm of the same penalty whose κ is nearest, by ratio; empty where there is none."""
    alike = [arm for arm in arms if penalty_of(str(arm)) == penalty_of(str(wanted)) and arm.kappa > 0]
    if not alike or wanted.kappa <= 0:
        return ""
    return str(min(alike, key=lambda arm: (abs(math.log(arm.kappa / wanted.kappa)), arm.kappa)))


def _match(penalty: str, grid: dict[float, float], wanted: float) -> Match:
    nearest = min(grid, key=lambda kappa: abs(math.log(grid[kappa] / wanted)))
    kappa = matched_kappa(grid, wanted)
    return Match(penalty, kappa, nearest, grid[nearest], min(grid.values()), max(grid.values()))
