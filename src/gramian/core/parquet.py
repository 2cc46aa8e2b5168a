"""Small Parquet files: every column in the narrowest type that holds its numbers, bit for bit."""

from pathlib import Path

import numpy as np
import polars as pl

from gramian.core.errors import UserError
from gramian.core.files import replacing

LEVEL = 22
"""Of zstd: it is written once and kept for good."""
NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Float32)


def narrow(column: pl.Series) -> pl.Series:
    """A column of numbers in the first type of `NARROW` that gives it back bit for bit; others as they are.

    NaN, infinities and -0.0 are kept, so that a column with one of them does not become one of whole numbers.

    Examples
    --------
    >>> [narrow(pl.Series([3.0, value])).dtype for value in (-4.0, 400.0, 0.5, 0.1, -0.0)]
    [Int8, Int16, Float32, Float64, Float32]
    """
    if column.dtype not in (pl.Int64, pl.Float64) or column.null_count() == len(column):
        return column
    values = column.drop_nulls().to_numpy()
    for kind in NARROW:
        narrowed = column.cast(kind, strict=False)
        if narrowed.null_count() == column.null_count():
            back = narrowed.drop_nulls().cast(column.dtype).to_numpy()
            if np.array_equal(back.view(np.int64), values.view(np.int64)):
                return narrowed
    return column


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Write a table, its columns `narrow`; either whole or not at all."""
    packed = table.select(narrow(column) for column in table.rechunk())
    with replacing(path) as temporary:
        packed.write_parquet(temporary, compression="zstd", compression_level=LEVEL, statistics=False)


def read_table(path: Path) -> pl.DataFrame:
    """Read a table, its columns as narrow as they were written.

    Raises
    ------
    UserError
        If it is not there, or is no Parquet file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.parquet"
    >>> write_table(path, pl.DataFrame({"return": [0.0, 9.0]}))
    >>> read_table(path)["return"].to_list()
    [0, 9]
    """
    try:
        return pl.read_parquet(path.read_bytes())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UserError(f"cannot read '{path}': {str(error).splitlines()[0]}") from error
