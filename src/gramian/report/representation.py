"""What ``gramian analyze`` found of a study's features, brought to the size of a page."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gramian.core.arms import order_arms
from gramian.core.errors import UserError
from gramian.core.files import files_below
from gramian.core.statistics import Array
from gramian.representation import series
from gramian.representation.series import Line
from gramian.representation.tables import (
    CORRELATION,
    Measure,
    Point,
    check_curves,
    is_analysis,
    read_curves,
    read_measures,
)

ANALYSIS = "analysis"
"""Folder inside a study's that a report looks into by itself."""
MEASURES = "measures.csv"
LEVELS = 3
"""From the folder of a run up to that of its study."""
HEAT_CELLS = 1_000_000
"""Cells of all heat maps of a page together."""
HEAT_SIDE = 128
"""Cells of one heat map's side, at most."""
SPECTRUM_POINTS = 48
"""Points of a spectrum's line, evenly spaced in the logarithm of their number."""


class Heat(NamedTuple):
    """The correlations of one run's features, ordered by clustering; a cell is the mean of a block."""

    seed: int
    cells: Array
    """``[k, k]``."""
    varying: int
    features: int


@dataclass(frozen=True)
class Representation:
    """What the page shows of a study's features, each by game."""

    folder: Path
    arms: dict[str, list[str]]
    measures: dict[str, dict[str, list[str]]]
    """Game → measure → a text for each of ``arms``."""
    lines: dict[str, dict[str, dict[str, Line]]]
    """Game → ``states``, ``features``, ``sparsity``, ``eigenvalues`` or ``variance`` → arm."""
    heats: dict[str, dict[str, Heat]]
    """Game → arm."""
    unmeasured: list[str]
    """Runs that diverged: they are in no mean."""


def find_analysis(study: Path, given: Path | None) -> Path | None:
    """The folder of a study's analysis: the one that is named, or the study's own, where it has one.

    Raises
    ------
    UserError
        If the named one holds no analysis, or if the analysis is not whole.
    """
    if given is not None and not is_analysis(given):
        raise UserError(f"'{given}' holds no analysis; name a folder that 'gramian analyze' has written")
    own = study / ANALYSIS
    return given or (own if is_analysis(own) else None)


def analyses_nearby(study: Path) -> list[Path]:
    """Analyses that lie where a report does not look for them: in the folders below a study's, or above it.

    A folder with studies in it may have been named in place of one of them, or a part of a study in place of the whole.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "study" / "analysis").mkdir(parents=True)
    >>> _ = (folder / "study" / "analysis" / "measures.csv").write_text("")
    >>> [path.relative_to(folder).as_posix() for path in analyses_nearby(folder)]
    ['study/analysis']
    >>> analyses_nearby(folder / "study" / "populations" / "p000") == analyses_nearby(folder)
    True
    """
    below = [path.parent for path in files_below(study, MEASURES) if path.parent.name == ANALYSIS]
    above = [folder / ANALYSIS for folder in list(study.absolute().parents)[:LEVELS]]
    return below or [path for path in above if (path / MEASURES).exists()]


def read_representation(folder: Path, cells: Collection[tuple[str, str]]) -> Representation:
    """Read the tables of an analysis.

    Parameters
    ----------
    folder
        Written by ``gramian analyze``.
    cells
        Game and arm of the study's runs; what the analysis has besides is left out.

    Raises
    ------
    UserError
        If a table cannot be read, or if none of its runs is of the study.
    """
    every = read_measures(folder / MEASURES)
    measures = [row for row in every if (row.game, row.arm) in cells]
    if not measures:
        of = f"game '{every[0].game}' and arm '{every[0].arm}'" if every else "no run"
        raise UserError(f"the analysis in '{folder}' is of other runs than the study's ({of}); analyze this study's")
    curves = [row for row in read_curves(folder / "curves.csv") if (row.game, row.arm) in cells]
    check_curves(folder, measures, curves)
    games = list(dict.fromkeys(row.game for row in measures))
    arms = {game: order_arms(row.arm for row in measures if row.game == game) for game in games}
    maps = sum(map(len, arms.values()))
    side = max(16, min(HEAT_SIDE, math.isqrt(HEAT_CELLS // maps)))
    found = Representation(folder, arms, {}, {}, {}, series.unmeasured(measures))
    for game in games:
        own = [row for row in measures if row.game == game]
        points = [row for row in curves if row.game == game]
        found.measures[game] = series.measure_texts(own, arms[game])
        found.lines[game] = _lines(points, arms[game])
        found.heats[game] = {arm: _heat(own, arm, folder / CORRELATION, side) for arm in arms[game]}
    return found


def _lines(points: list[Point], arms: list[str]) -> dict[str, dict[str, Line]]:
    return {
        "states": {arm: series.active_of_states(points, arm) for arm in arms},
        "features": {arm: series.activity_of_features(points, arm) for arm in arms},
        "sparsity": {arm: series.sparsity(points, arm) for arm in arms},
        "eigenvalues": {arm: _thinned(series.spectrum(points, arm)) for arm in arms},
        "variance": {arm: _thinned(series.held_variance(points, arm)) for arm in arms},
    }


def _thinned(line: Line) -> Line:
    if len(line.x) <= SPECTRUM_POINTS:
        return line
    at = np.unique(np.geomspace(1, len(line.x), SPECTRUM_POINTS).round().astype(int)) - 1
    return Line(line.x[at], line.mean[at], line.low[at], line.high[at], line.runs[:, at])


def _heat(measures: list[Measure], arm: str, folder: Path, side: int) -> Heat:
    found = series.first_correlation(measures, arm, folder)
    return Heat(found.seed, blocks(found.matrix, side), len(found.matrix), found.features)


def blocks(matrix: Array, side: int) -> Array:
    """A square matrix as means of at most ``side`` × ``side`` blocks.

    Examples
    --------
    >>> blocks(np.arange(16.0).reshape(4, 4), 2).tolist()
    [[2.5, 4.5], [10.5, 12.5]]
    """
    size = len(matrix)
    if size <= side:
        return matrix
    edges = np.arange(side) * size // side
    counts = np.diff([*edges, size])
    sums = np.add.reduceat(np.add.reduceat(matrix, edges, axis=0), edges, axis=1)
    return np.asarray(sums / np.outer(counts, counts))
