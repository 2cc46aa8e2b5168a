"""What the features of every run were like at the end of its training: what ``features.csv`` holds."""

import polars as pl

from gramian.representation.dynamics import GROWTH, growth
from gramian.study.rule import last_mean
from gramian.study.store import CELL_SCHEMA, Study

HELD_OUT = (
    "feature_norm", "cross_term", "std_sum", "sparsity", "mean_abs_correlation", "participation_ratio",
    "effective_rank", "srank", "feature_rank", "dormant_share", "dormant_share_0.025", "dead_share",
)  # fmt: skip
"""Columns of ``representation.csv`` that are taken over, as ``held_out_…``."""


def feature_table(study: Study) -> pl.DataFrame | None:
    """One row for each run that has logs of its features; None where none has.

    ``frames`` are those of the last row of the log. ``training_norm`` is the mean of ‖φ‖ over the last quarter of
    training, which arms are matched by, ``training_std_sum`` that of the sum of the features' standard deviations over
    a batch, ``training_active`` that of the share of features that are not zero; ``growth_…`` is where the growth of
    the head's gradient comes from (`gramian.representation.dynamics.growth`), and the columns ``held_out_…`` are the
    last measures on held-out states.

    Examples
    --------
    >>> cell = pl.DataFrame({"run": ["a"], "game": ["pong"], "arm": ["dqn"], "seed": [0]})
    >>> runs = cell.with_columns(kappa=pl.lit(0.0), state=pl.lit("done"))
    >>> metrics = pl.concat([cell.with_columns(feature_norm=pl.lit(norm)) for norm in (9.0, 9.0, 9.0, 4.0)])
    >>> feature_table(Study(runs, cell, metrics)).select("run", "training_norm").row(0)
    ('a', 4.0)
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
    """What ``metrics.csv`` of one run says; what it does not know is left out."""
    found: dict[str, str | int | float] = {"run": run}
    if "frames" in rows.columns:
        found["frames"] = int(rows["frames"].cast(pl.Int64).max() or 0)  # type: ignore[arg-type]
    found["training_norm"] = last_mean(rows["feature_norm"].drop_nulls().to_list())
    for name, logged in (("training_std_sum", "feature_std"), ("training_active", "active_features")):
        if logged in rows.columns:
            found[name] = last_mean(rows[logged].drop_nulls().to_list())
    if {"grad_norm_head", "td_error"} <= set(rows.columns):
        columns = {name: rows[name].to_numpy() for name in ("grad_norm_head", "feature_norm", "td_error")}
        found |= {name: growth(columns)[name] for name in GROWTH}
    return found
