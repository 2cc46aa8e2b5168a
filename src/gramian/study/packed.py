"""The tables of an exported study: a JSON head and a few Parquet files. Reads files and knows no learner.

| file | content |
| --- | --- |
| ``export.json`` | format, SHA-256 of each table, of the files beside them and of itself, settings and provenance |
| ``runs.parquet`` | a row for each run, with the places of its settings and its provenance in the head |
| ``episodes.parquet`` | place of the run in ``runs``, frames since the episode before, return |
| ``metrics.parquet``, ``held_out.parquet`` | place of the run in ``runs``, and the columns of its logs |

Running frames grow and do not compress; the lengths of episodes do. Game, arm and seed of a row are those of its run.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gramian.core.files import EXPORT
from gramian.core.parquet import read_table, write_table
from gramian.study.heads import SUFFIX, TABLES, check_file, damaged, read_head, write_head

LOGS = TABLES[1:]
CELL = ("run", "game", "arm", "seed")
"""Columns of a log that its run has too."""
PLACE = "at"
"""Row of the run in ``runs``."""
NOTES = ("settings", "provenance")

Notes = Mapping[str, Any]


def write_packed(
    folder: Path,
    runs: pl.DataFrame,
    logs: Mapping[str, pl.DataFrame],
    notes: Mapping[str, Notes],
    beside: Sequence[str] = (),
) -> Path:
    """Write the tables of a study, the head last; give its path.

    Parameters
    ----------
    folder
        Where to; it is there already.
    runs
        One row for each run; their names, in ``run``, are different ones.
    logs
        The tables of `LOGS`, each with the columns of `CELL`; ``episodes`` has ``frames`` and ``return`` besides.
    notes
        ``settings`` and ``provenance``, by the name of the run.
    beside
        Names of files in ``folder`` without which the tables are not whole.

    Examples
    --------
    >>> import tempfile
    >>> runs = pl.DataFrame({"run": ["a", "b"], "game": "pong", "arm": "dqn", "seed": [0, 1]})
    >>> episodes = runs.with_columns(frames=pl.Series([3000, 2000]), **{"return": pl.Series([-21.0, -20.0])})
    >>> logs = {"episodes": episodes, "metrics": runs.clear(), "held_out": runs.clear()}
    >>> notes = {"settings": {"a": {"n_step": 1}, "b": {"n_step": 1}}, "provenance": {}}
    >>> packed = Packed(write_packed(Path(tempfile.mkdtemp()), runs, logs, notes))
    >>> packed.log("episodes").rows()
    [('a', 'pong', 'dqn', 0, 3000, -21), ('b', 'pong', 'dqn', 1, 2000, -20)]
    >>> packed.notes("settings"), packed.notes("provenance")
    ({'a': {'n_step': 1}, 'b': {'n_step': 1}}, {})
    """
    head: dict[str, Any] = {"runs": runs.height}
    places = pl.DataFrame({"run": runs["run"], PLACE: pl.Series(range(runs.height), dtype=pl.Int64)})
    tables = {"runs": runs}
    for name in NOTES:
        texts = {run: json.dumps(value, default=str) for run, value in notes[name].items()}
        different = {text: place for place, text in enumerate(dict.fromkeys(texts.values()))}
        head[name] = [json.loads(text) for text in different]
        own = [different[texts[run]] if run in texts else None for run in runs["run"]]
        tables["runs"] = tables["runs"].with_columns(pl.Series(name, own, dtype=pl.Int64))
    for name in LOGS:
        log = logs[name].join(places, on="run", how="left", maintain_order="left")
        tables[name] = log.select(PLACE, pl.all().exclude(PLACE, *CELL))
    tables["episodes"] = tables["episodes"].select(
        PLACE, length=pl.col("frames") - pl.col("frames").shift(1).over(PLACE).fill_null(0), **{"return": "return"}
    )
    for name, table in tables.items():
        write_table(folder / f"{name}{SUFFIX}", table)
    write_head(folder / EXPORT, tables=[f"{name}{SUFFIX}" for name in tables], beside=beside, **head)
    return folder / EXPORT


class Packed:
    """The tables that `write_packed` has written; each is read when it is asked for.

    Parameters
    ----------
    head
        Path of ``export.json``.

    Raises
    ------
    UserError
        If the head is damaged or of another format, or if a file that was written with it is missing or not as it was;
        later, if a table is not the one that was written.
    """

    def __init__(self, head: Path) -> None:
        self.folder = head.parent
        self._head = read_head(head)

    def runs(self) -> pl.DataFrame:
        """A row for each run, as it was given to `write_packed`."""
        return self._table("runs").drop(NOTES)

    def notes(self, name: str) -> dict[str, Any]:
        """``settings`` or ``provenance`` of the runs that have it, by their names."""
        try:
            there = self._table("runs").select("run", name).drop_nulls()
            return {run: self._head[name][place] for run, place in there.iter_rows()}
        except (KeyError, LookupError, TypeError, pl.exceptions.PolarsError) as error:
            raise damaged(self.folder / EXPORT, error) from error

    def log(self, name: str) -> pl.DataFrame:
        """A table of `LOGS` as it was given to `write_packed`, but with narrower types."""
        try:
            packed = self._table(name)
            cells = self._table("runs").select(CELL)
            log = packed.select(
                *(cells[column].gather(packed[PLACE]).alias(column) for column in CELL), pl.all().exclude(PLACE)
            )
            if name == "episodes":
                frames = pl.col("length").cast(pl.Int64).cum_sum().over("run").alias("frames")
                log = log.select(*CELL, frames, "return")
        except pl.exceptions.PolarsError as error:
            raise damaged(self.folder / f"{name}{SUFFIX}", error) from error
        return log

    def _table(self, name: str) -> pl.DataFrame:
        path = self.folder / f"{name}{SUFFIX}"
        try:
            sha256 = self._head["files"][path.name]
        except (KeyError, TypeError) as error:
            raise damaged(path, error) from error
        check_file(path, sha256)
        return read_table(path)
