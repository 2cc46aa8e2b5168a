"""Small Parquet files."""

from pathlib import Path

import polars as pl

from gramian.core.errors import UserError
from gramian.core.files import replacing


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Write a table, whole or not at all, as small as zstd can make it: narrower types would not help."""
    with replacing(path) as temporary:
        table.rechunk().write_parquet(temporary, compression="zstd", compression_level=22, statistics=False)


def read_table(path: Path) -> pl.DataFrame:
    """Read a table."""
    try:
        return pl.read_parquet(path.read_bytes())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UserError(f"cannot read '{path}': {str(error).splitlines()[0]}") from error
