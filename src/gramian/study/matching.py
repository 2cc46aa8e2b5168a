"""The κ at which one penalty leaves features as large as another one does.

Penalties that shrink features (``norm``, ``cross``, ``l2``) may help or harm by the shrinking alone. At equal κ they
shrink differently, so they are also compared at the κ where the mean feature norm, ``feature_norm`` of
``metrics.csv``, is the same. A study with a grid of κ gives that κ by interpolation.
"""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from gramian.deep.arms import Arm, parse_arm
from gramian.errors import UserError, unknown
from gramian.study.plan import POPULATIONS, Plan
from gramian.study.work import run_state

LAST_SHARE = 0.25
"""Share of a run, from its end, that its mean feature norm is taken over."""


@dataclass(frozen=True)
class Match:
    """A penalty, and the κ at which it leaves features of the norm that was asked for."""

    penalty: str
    """``gram``, ``gram:uncentered``, ``l2``, …"""
    kappa: float | None
    """None where the grid does not reach that norm."""
    smallest_norm: float
    largest_norm: float


def feature_norms(study: Path, plan: Plan) -> dict[Arm, float]:
    """Mean feature norm of each arm at the end of training: over games and seeds of log ‖φ‖, so that no game prevails.

    Only runs that are done count, and an arm counts only where all its runs are done.

    Returns
    -------
    dict
        exp(mean log feature norm) by arm.
    """
    logs: dict[Arm, list[float]] = {}
    for population in plan.populations:
        for run in population.runs:
            state, *_ = run_state(study, population, run.name)
            path = study / POPULATIONS / population.id / run.name / "metrics.csv"
            norm = _last_norm(path) if state == "done" else math.nan
            logs.setdefault(run.arm, []).append(math.log(norm) if norm > 0 else math.nan)
    means = {arm: math.exp(fmean(values)) for arm, values in logs.items()}
    return {arm: norm for arm, norm in means.items() if math.isfinite(norm)}


def _last_norm(path: Path) -> float:
    with path.open(encoding="utf-8", newline="") as file:
        norms = [float(row["feature_norm"]) for row in csv.DictReader(file)]
    return fmean(norms[-max(1, round(LAST_SHARE * len(norms))) :]) if norms else math.nan


def matched_kappa(norms: Mapping[float, float], target: float) -> float | None:
    """The κ at which the norm is ``target``: linear between neighbours of the grid, in log κ and log norm.

    Parameters
    ----------
    norms
        Feature norm by κ, for κ > 0.
    target
        The norm that is wanted.

    Returns
    -------
    float or None
        The smallest such κ; None where the grid does not reach the target.

    Examples
    --------
    >>> matched_kappa({0.1: 8.0, 10.0: 2.0}, target=4.0)
    1.0
    >>> matched_kappa({0.1: 8.0, 10.0: 2.0}, target=9.0) is None
    True
    """
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


def match(study: Path, plan: Plan, arm: str) -> tuple[float, list[Match]]:
    """Match every penalty of a study to one of its arms.

    Parameters
    ----------
    study, plan
        The study.
    arm
        As ``gram:10`` or ``gram:10:uncentered``; it must be one of the study's.

    Returns
    -------
    tuple
        The arm's feature norm, and a `Match` for each other penalty.

    Raises
    ------
    UserError
        If the study has no such arm, or if its runs are not done.
    """
    wanted = parse_arm(arm, plan.settings.kappa)
    arms = {run.arm for population in plan.populations for run in population.runs}
    if wanted not in arms:
        raise unknown("arm of this study", str(wanted), map(str, arms))
    norms = feature_norms(study, plan)
    if wanted not in norms:
        raise UserError(f"arm '{wanted}' has runs in '{study}' that are not done; finish them first")
    grids: dict[str, dict[float, float]] = {}
    for other, norm in norms.items():
        if other.kappa > 0 and _penalty(other) != _penalty(wanted):
            grids.setdefault(_penalty(other), {})[other.kappa] = norm
    return norms[wanted], [
        Match(penalty, matched_kappa(grid, norms[wanted]), min(grid.values()), max(grid.values()))
        for penalty, grid in grids.items()
    ]


def _penalty(arm: Arm) -> str:
    kind, _, rest = str(arm).partition(":")
    return ":".join([kind, *rest.split(":")[1:]])
