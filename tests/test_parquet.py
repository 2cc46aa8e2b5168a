import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.core.errors import UserError
from gramian.core.parquet import narrow, read_table, write_table

FLOATS = st.floats(width=64) | st.floats(width=32) | st.integers(-40_000, 40_000).map(float) | st.none()
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200) | st.none()


def bits(column):
    """Nulls as None, floats as they are written down: NaN is NaN, and -0.0 is not 0.0."""
    return [None if value is None else repr(value) for value in column]


@given(values=st.lists(FLOATS, max_size=6))
def test_floats_come_back_bit_for_bit(values):
    column = pl.Series("a", values, dtype=pl.Float64)
    assert bits(narrow(column).cast(pl.Float64)) == bits(column)


@given(values=st.lists(WHOLE, max_size=6))
def test_whole_numbers_come_back(values):
    column = pl.Series("a", values, dtype=pl.Int64)
    assert narrow(column).cast(pl.Int64).to_list() == values


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1.0, None], pl.Int8), ([300.0], pl.Int16), ([float("nan"), 0.5], pl.Float32), ([2.0**40], pl.Int64),
     ([2.0**40, 0.5], pl.Float32), ([1e-300], pl.Float64), ([None], pl.Float64)],
)  # fmt: skip
def test_a_column_has_the_narrowest_type_that_holds_it(values, kind):
    assert narrow(pl.Series(values, dtype=pl.Float64)).dtype == kind


def test_a_file_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    with pytest.raises(UserError, match="cannot read"):
        read_table(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="cannot read"):
        read_table(path)


def test_texts_and_truths_are_kept_as_they_are(tmp_path):
    table = pl.DataFrame({"text": ["", None, "κ"], "truth": [True, False, None]})
    write_table(tmp_path / "table.parquet", table)
    assert read_table(tmp_path / "table.parquet").equals(table)
