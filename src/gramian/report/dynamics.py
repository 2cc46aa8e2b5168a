"""The features while they were learned: ``metrics.csv`` and ``representation.csv``, by game and arm."""

from collections.abc import Iterator

import polars as pl

from gramian.representation.dynamics import growth
from gramian.representation.seeds import Mean, means
from gramian.representation.series import Line, line
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
"""Metrics that the report shows, in this order, where the runs have them; ``sparsity`` is 1 - ``active_features``.

The first six are those of the paper's figure. The penalty has no gradient in the head, and the total loss is the sum of
two that are shown. Those of ``representation.csv`` are measured on held-out states.
"""
FIGURES = (*list(LABELS)[:7], "held_out.effective_rank", "held_out.mean_abs_correlation")
"""Metrics that become a figure of all games: the paper's six, sparsity, and two on held-out states."""


Dynamics = dict[str, dict[str, dict[str, Line]]]
"""Game → metric → arm → line over frames."""


def dynamics(study: Study, horizon: dict[str, float]) -> Dynamics:
    """Bring the metrics of all runs onto a common grid of frames, and take mean and interval over seeds.

    Parameters
    ----------
    study
        Its ``metrics`` and ``held_out`` may be empty; where both are, the result is empty too.
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


Growths = dict[str, dict[str, dict[str, Mean]]]
"""Game → arm → name → mean over seeds; the names are those of `gramian.representation.dynamics.GROWTH`."""


def growths(study: Study) -> Growths:
    """How much the head's gradient grew in training, and what part of it the features and the TD error account for.

    Empty for runs without metrics; runs that diverged are left out. See `gramian.representation.dynamics.growth`.
    """
    table = study.metrics
    if not {"grad_norm_head", "feature_norm", "td_error"} <= set(table.columns):
        return {}
    found: dict[str, dict[str, list[tuple[str, float]]]] = {}
    diverged = study.runs.filter(state="diverged")["run"].to_list()
    healthy = table.filter(~pl.col("run").is_in(diverged))
    for (game, arm, _), rows in healthy.group_by("game", "arm", "run", maintain_order=True):
        columns = {name: rows[name].to_numpy() for name in ("grad_norm_head", "feature_norm", "td_error")}
        found.setdefault(str(game), {}).setdefault(str(arm), []).extend(growth(columns).items())
    return {game: {arm: means(pairs) for arm, pairs in by_arm.items()} for game, by_arm in found.items()}
