"""What the features of every run were like at the end of its training: what ``features.csv`` holds."""

import polars as pl

from gramian.study.norms import last_norm
from gramian.study.store import CELL_SCHEMA, Study

HELD_OUT = (
    "feature_norm", "cross_term", "std_sum", "sparsity", "mean_abs_correlation", "participation_ratio",
    "effective_rank", "srank", "feature_rank", "dormant_share", "dormant_share_0.025", "dead_share",
)  # fmt: skip
"""Columns of ``representation.csv`` that are taken over, as ``held_out_…``."""


def feature_table(study: Study) -> pl.DataFrame | None:
    """One row for each run that has logs of its features; None where none has.

    ``training_norm`` is the mean of ‖φ‖ over the last quarter of training, which arms are matched by; the columns
    ``held_out_…`` are the last measures on held-out states.

    Examples
    --------
    >>> cell = pl.DataFrame({"run": ["a"], "game": ["pong"], "arm": ["dqn"], "seed": [0]})
    >>> runs = cell.with_columns(kappa=pl.lit(0.0), state=pl.lit("done"))
    >>> metrics = pl.concat([cell.with_columns(feature_norm=pl.lit(norm)) for norm in (9.0, 9.0, 9.0, 4.0)])
    >>> feature_table(Study(runs, cell, metrics)).select("run", "training_norm").row(0)
    ('a', 4.0)
    """
    if "feature_norm" not in study.metrics.columns:
        return None
    norms = {
        str(run): last_norm(rows["feature_norm"].drop_nulls().to_list())
        for (run,), rows in study.metrics.group_by("run", maintain_order=True)
    }
    table = study.runs.select(*CELL_SCHEMA, "kappa", "state").filter(pl.col("run").is_in(list(norms)))
    table = table.with_columns(pl.Series("training_norm", [norms[run] for run in table["run"]], pl.Float64))
    measured = [name for name in HELD_OUT if name in study.held_out.columns]
    if measured:
        last = study.held_out.group_by("run", maintain_order=True).last()
        table = table.join(last.select("run", pl.col(measured).name.prefix("held_out_")), on="run", how="left")
    return table.sort("game", "arm", "seed")
