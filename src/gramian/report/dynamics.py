"""What the learner's features looked like while it learned: the columns of ``metrics.csv``, by game and arm."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from gramian.report.statistics import Array
from gramian.study.store import CELL_SCHEMA, Study

POINTS = 60
"""Points of a curve of a metric."""

LABELS = {
    "feature_norm": "feature norm, mean ‖φ‖",
    "feature_cross": "cross term, mean (φₙ·φₘ)²",
    "feature_std": "sum of the features' standard deviations",
    "sparsity": "sparsity, share of φᵢ = 0",
    "penalty": "penalty without κ",
    "penalty_loss": "κ · penalty",
    "td_loss": "TD loss",
    "td_error": "TD error, mean |δ|",
    "q": "mean Q(s, a)",
    "grad_norm_body": "gradient norm, body",
    "grad_norm_body_td": "gradient norm, body, TD part",
    "grad_norm_body_penalty": "gradient norm, body, penalty part",
    "grad_norm_head": "gradient norm, head",
}
"""Metrics that the report shows, in this order, where the runs have them; ``sparsity`` is 1 - ``active_features``.

The penalty has no gradient in the head, and the total loss is the sum of two that are shown.
"""
FEATURE_METRICS = ("feature_norm", "feature_cross", "feature_std", "sparsity")
"""The paper's feature dynamics, and sparsity."""


@dataclass(frozen=True)
class Series:
    """One metric of one arm on one game: over frames ``[K]``, the mean over seeds and their range."""

    frames: Array
    mean: Array
    low: Array
    high: Array


Dynamics = dict[str, dict[str, dict[str, Series]]]
"""Game → metric → arm → series."""


def dynamics(study: Study, horizon: dict[str, float]) -> Dynamics:
    """Bring the metrics of all runs onto a common grid of frames, and take mean and range over seeds.

    Parameters
    ----------
    study
        Its ``metrics`` may be empty: the result is then empty too.
    horizon
        Frames of a run of each game.

    Returns
    -------
    Dynamics
        A point is the mean of the rows that fall into its share of the frames; where no seed has a finite value there
        is none.
    """
    table = study.metrics
    if "active_features" in table.columns and "sparsity" not in table.columns:
        table = table.with_columns(sparsity=1.0 - pl.col("active_features"))
    metrics = [name for name in LABELS if name in table.columns]
    if not metrics or "frames" not in table.columns or table.is_empty():
        return {}
    width = pl.col("game").replace_strict(horizon, return_dtype=pl.Float64) / POINTS
    bins = (pl.col("frames") / width).ceil().clip(1, POINTS).cast(pl.Int64)
    finite = [pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in metrics]
    points = (
        table.select(*CELL_SCHEMA, bins.alias("bin"), *finite)
        .group_by("game", "arm", "run", "bin", maintain_order=True)  # the same sums, so the same bytes
        .agg(pl.col(metrics).mean())
        .unpivot(metrics, index=["game", "arm", "run", "bin"], variable_name="metric")
        .drop_nulls("value")
        .group_by("game", "metric", "arm", "bin", maintain_order=True)
        .agg(mean=pl.col("value").mean(), low=pl.col("value").min(), high=pl.col("value").max())
        .sort("bin", maintain_order=True)
    )
    found: Dynamics = {}
    for (game, metric, arm), rows in points.group_by("game", "metric", "arm", maintain_order=True):
        frames = rows["bin"].to_numpy() * (horizon[str(game)] / POINTS)
        ends = (np.asarray(rows[name].to_numpy(), float) for name in ("mean", "low", "high"))
        found.setdefault(str(game), {}).setdefault(str(metric), {})[str(arm)] = Series(frames, *ends)
    return {game: {name: by[name] for name in LABELS if name in by} for game, by in found.items()}
