import polars as pl
import pytest

from gramian.core.errors import UserError
from gramian.core.parquet import read_table, write_table


def test_a_file_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    with pytest.raises(UserError, match="cannot read"):
        read_table(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="cannot read"):
        read_table(path)


def test_a_table_comes_back_bit_for_bit(tmp_path):
    table = pl.DataFrame(
        {"text": ["", None, "κ"], "truth": [True, False, None], "x": [float("nan"), -0.0, 0.1], "n": [None, 2**62, -1]}
    )
    write_table(tmp_path / "table.parquet", table)
    assert read_table(tmp_path / "table.parquet").equals(table)
    assert str(read_table(tmp_path / "table.parquet")["x"][1]) == "-0.0"
