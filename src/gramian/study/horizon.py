"""The first part of a study: every run looked at up to the same number of frames."""

from dataclasses import replace

import polars as pl

from gramian.core.errors import UserError
from gramian.study.store import Study


def first_frames(study: Study, frames: int) -> Study:
    r"""A study as it was when each of its runs had seen ``frames`` frames.

    A run that has come so far is done, whatever became of it later; one that has not keeps its state. Progress is read
    from the logs. Settings and provenance are those of the whole runs.

    Raises
    ------
    UserError
        If no run has come so far.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.study.store import import_csv
    >>> path = Path(tempfile.mkdtemp()) / "theirs.csv"
    >>> _ = path.write_text("arm,game,seed,frames,return\nours,Pong,0,4000,-20\nours,Pong,0,8000,-19\n")
    >>> first_frames(import_csv(path), 5000).episodes["return"].to_list()
    [-20.0]
    """
    if frames < 1:
        raise UserError(f"frames is {frames}; it must be at least 1")
    logs = [study.episodes, study.metrics, study.held_out]
    known = [log.select("run", pl.col("frames").cast(pl.Int64)) for log in logs if "frames" in log.columns]
    reached = pl.concat(known).group_by("run").agg(reached=pl.col("frames").max())
    runs = study.runs.join(reached, on="run", how="left", maintain_order="left")
    arrived = pl.col("reached").fill_null(0) >= frames
    if not runs.select(arrived.any()).item():
        most = max(runs["reached"].drop_nulls().to_list(), default=0)
        raise UserError(f"no run has {frames:,} frames; the longest has {most:,}")
    runs = runs.with_columns(
        state=pl.when(arrived).then(pl.lit("done")).otherwise("state"),
        reason=pl.when(arrived).then(pl.lit("")).otherwise("reason"),
        frames_target=pl.min_horizontal(pl.col("frames_target").fill_null(frames), pl.lit(frames)),
    ).drop("reached")
    cut = [log.filter(pl.col("frames") <= frames) if "frames" in log.columns else log for log in logs]
    return replace(study, runs=runs, episodes=cut[0], metrics=cut[1], held_out=cut[2])
