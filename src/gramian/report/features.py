"""The features of a study: in training, at its end, and as ``gramian analyze`` measured them."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from gramian.core.arms import order_arms
from gramian.core.errors import UserError
from gramian.core.files import files_below
from gramian.core.statistics import Array
from gramian.report.scores import last_mean
from gramian.representation import series
from gramian.representation.dynamics import GROWTH, growth
from gramian.representation.seeds import Mean, mean
from gramian.representation.series import Line, line
from gramian.representation.tables import (
    CORRELATION,
    Measure,
    Point,
    check_curves,
    is_analysis,
    read_curves,
    read_measures,
)
from gramian.study.store import CELL_SCHEMA, Study

POINTS = 60
"""Points of a curve of a metric."""
HELD = "held_out."
"""Before the names of measures on held-out states."""
LABELS = {
    "feature_norm": "feature norm, mean ‖φ‖",
    "feature_cross": "cross term, mean (φₙ·φₘ)²",
    "feature_std": "sum of the features' standard deviations",
    "grad_norm_body": "gradient norm, body",
    "grad_norm_head": "gradient norm, head",
    "td_error": "TD error, mean |δ|",
    "sparsity": "sparsity, share of φᵢ = 0",
    "penalty": "penalty without κ",
    "penalty_loss": "κ · penalty",
    "td_loss": "TD loss",
    "q": "mean Q(s, a)",
    "grad_norm_body_td": "gradient norm, body, TD part",
    "grad_norm_body_penalty": "gradient norm, body, penalty part",
    "held_out.effective_rank": "held out: effective rank",
    "held_out.srank": "held out: srank, δ = 0.01",
    "held_out.feature_rank": "held out: feature rank, ε = 0.01",
    "held_out.participation_ratio": "held out: participation ratio",
    "held_out.mean_abs_correlation": "held out: mean |correlation|",
    "held_out.dormant_share_0.025": "held out: dormant share, τ = 0.025",
}
"""Metrics that the report shows, in this order; ``sparsity`` is 1 - ``active_features``.

The first six are those of the paper's figure. The penalty has no gradient in the head, and the total loss is the sum of
two that are shown. Those of ``representation.csv`` are measured on held-out states.
"""
FIGURES = (*list(LABELS)[:7], "held_out.effective_rank", "held_out.mean_abs_correlation")
"""Metrics that become a figure of all games: the paper's six, sparsity, and two on held-out states."""
HELD_OUT = (
    "feature_norm", "cross_term", "std_sum", "sparsity", "mean_abs_correlation", "participation_ratio",
    "effective_rank", "srank", "feature_rank", "dormant_share", "dormant_share_0.025", "dead_share",
)  # fmt: skip
"""Columns of ``representation.csv`` that ``features.csv`` has as ``held_out_…``."""

Dynamics = dict[str, dict[str, dict[str, Line]]]
"""Game → metric → arm → line over frames."""
Growths = dict[str, dict[str, dict[str, Mean]]]
"""Game → arm → name → mean over seeds; the names are those of `gramian.representation.dynamics.GROWTH`."""


def dynamics(study: Study, horizon: dict[str, float]) -> Dynamics:
    """The metrics of all runs on a common grid of frames: mean and interval over seeds.

    ``horizon`` has the frames of a run of each game. A point is the mean of the rows that fall into its share of the
    frames; there is none where no seed has a finite value.
    """
    table = study.metrics
    if "active_features" in table.columns and "sparsity" not in table.columns:
        table = table.with_columns(sparsity=1.0 - pl.col("active_features"))
    held = study.held_out
    held = held.rename({name: HELD + name for name in held.columns if name not in ("frames", *CELL_SCHEMA)})
    found: Dynamics = {}
    for (game, metric, arm), rows in (group for part in (table, held) for group in _points(part, horizon)):
        width = horizon[game] / POINTS
        values = ((run, place * width, value) for run, place, value in rows.iter_rows())
        found.setdefault(game, {}).setdefault(metric, {})[arm] = line(values)
    return {game: {name: by[name] for name in LABELS if name in by} for game, by in found.items()}


def _points(table: pl.DataFrame, horizon: dict[str, float]) -> Iterator[tuple[tuple[str, str, str], pl.DataFrame]]:
    """Game, metric and arm, each with the means of its runs by bins: run, bin, value."""
    metrics = [name for name in LABELS if name in table.columns]
    if not metrics or "frames" not in table.columns or table.is_empty():
        return
    width = pl.col("game").replace_strict(horizon, return_dtype=pl.Float64) / POINTS
    bins = (pl.col("frames") / width).ceil().clip(1, POINTS).cast(pl.Int64)
    finite = [pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in metrics]
    points = (
        table.select(*CELL_SCHEMA, bins.alias("bin"), *finite)
        .group_by("game", "arm", "run", "bin", maintain_order=True)  # the same sums, so the same bytes
        .agg(pl.col(metrics).mean())
        .unpivot(metrics, index=["game", "arm", "run", "bin"], variable_name="metric")
        .drop_nulls("value")
    )
    for (game, metric, arm), rows in points.group_by("game", "metric", "arm", maintain_order=True):
        yield (str(game), str(metric), str(arm)), rows.select("run", "bin", "value")


def growths(features: pl.DataFrame | None) -> Growths:
    """How much the head's gradient grew in training, and the parts of the features and the TD error in it.

    ``features`` is the `feature_table`; runs that diverged are left out.
    """
    found: Growths = {}
    if features is not None and GROWTH[0] in features.columns:
        healthy = features.filter(pl.col("state") != "diverged")
        for (game, arm), rows in healthy.group_by("game", "arm", maintain_order=True):
            found.setdefault(str(game), {})[str(arm)] = {name: mean(rows[name].fill_null(math.nan)) for name in GROWTH}
    return found


def feature_table(study: Study) -> pl.DataFrame | None:
    """The rows of ``features.csv``: one for each run that has logs of its features; None where none has.

    ``frames`` are those of the last row of the log. Means over the last quarter of training: ``training_norm`` of ‖φ‖,
    which arms are matched by, ``training_std_sum`` of the sum of the features' standard deviations over a batch,
    ``training_active`` of the share of features that are not zero. ``growth_…`` is where the growth of the head's
    gradient comes from, and ``held_out_…`` are the last measures on held-out states.
    """
    if "feature_norm" not in study.metrics.columns or study.metrics.is_empty():
        return None
    logged = pl.DataFrame(
        [_of_log(str(run), rows) for (run,), rows in study.metrics.group_by("run", maintain_order=True)]
    )
    table = study.runs.select(*CELL_SCHEMA, "kappa", "state").join(logged, on="run", how="inner", maintain_order="left")
    measured = [name for name in HELD_OUT if name in study.held_out.columns]
    if measured:
        last = study.held_out.group_by("run", maintain_order=True).last()
        table = table.join(last.select("run", pl.col(measured).name.prefix("held_out_")), on="run", how="left")
    return table.sort("game", "arm", "seed")


def _of_log(run: str, rows: pl.DataFrame) -> dict[str, str | int | float]:
    """The columns of ``features.csv`` that ``metrics.csv`` of one run gives."""
    found: dict[str, str | int | float] = {"run": run}
    if "frames" in rows.columns:
        found["frames"] = int(rows["frames"].cast(pl.Int64).max() or 0)  # type: ignore[arg-type]
    logs = {"training_norm": "feature_norm", "training_std_sum": "feature_std", "training_active": "active_features"}
    for name, logged in logs.items():
        if logged in rows.columns:
            found[name] = last_mean(rows[logged].drop_nulls().to_list())
    if {"grad_norm_head", "td_error"} <= set(rows.columns):
        found |= growth({name: rows[name].to_numpy() for name in ("grad_norm_head", "feature_norm", "td_error")})
    return found


# ---- the trained features, brought to the size of a page -------------------------------------------------------------

ANALYSIS = "analysis"
"""Folder inside a study's that a report looks into."""
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
    """The correlations of one run's features, ordered by clustering; a cell of ``[k, k]`` is the mean of a block."""

    seed: int
    cells: Array
    varying: int
    features: int


@dataclass(frozen=True)
class Representation:
    """What the page shows of a study's trained features, each by game."""

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
    """The folder of a study's analysis: the one that is named, or the study's own, where it has one."""
    if given is not None and not is_analysis(given):
        raise UserError(f"'{given}' holds no analysis; name a folder that 'gramian analyze' has written")
    own = study / ANALYSIS
    return given or (own if is_analysis(own) else None)


def analyses_nearby(study: Path) -> list[Path]:
    """Analyses in the folders below a study's, or above it, where a report does not look for them.

    A folder with studies in it may have been named in place of one of them, or a part of a study in place of the whole.
    """
    below = [path.parent for path in files_below(study, MEASURES) if path.parent.name == ANALYSIS]
    above = [folder / ANALYSIS for folder in list(study.absolute().parents)[:LEVELS]]
    return below or [path for path in above if (path / MEASURES).exists()]


def read_representation(folder: Path, cells: Collection[tuple[str, str]]) -> Representation:
    """Read the tables that ``gramian analyze`` has written, of the games and arms in ``cells``.

    Raises
    ------
    UserError
        If a table cannot be read, or none of its runs is of the study.
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
    side = max(16, min(HEAT_SIDE, math.isqrt(HEAT_CELLS // sum(map(len, arms.values())))))
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
    """A square matrix as means of at most ``side`` × ``side`` blocks."""
    size = len(matrix)
    if size <= side:
        return matrix
    edges = np.arange(side) * size // side
    counts = np.diff([*edges, size])
    sums = np.add.reduceat(np.add.reduceat(matrix, edges, axis=0), edges, axis=1)
    return np.asarray(sums / np.outer(counts, counts))
