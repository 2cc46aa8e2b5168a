import math

import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.representation.dynamics import GROWTH, growth, read_columns


def test_growth_is_shared_out_in_logarithms_of_the_ends():
    norm, error = np.geomspace(1, 100, 50), np.geomspace(2, 20, 50)
    found = growth({"grad_norm_head": norm * error * 3, "feature_norm": norm, "td_error": error})
    assert found["growth_share_feature_norm"] == pytest.approx(2 / 3)
    assert found["growth_share_td_error"] == pytest.approx(1 / 3)
    # five rows at each end: 45 of the 49 steps lie between their middles
    assert found["growth_log_feature_norm"] == pytest.approx(math.log(100) * 45 / 49)


def test_what_neither_explains_is_left_over():
    found = growth({"grad_norm_head": [1, 8], "feature_norm": [1, 2], "td_error": [1, 1]})
    assert found["growth_share_feature_norm"] + found["growth_share_td_error"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("bad", [0.0, math.nan, -1.0, math.inf])
def test_rows_without_a_logarithm_are_left_out(bad):
    whole = {"grad_norm_head": [1, 8], "feature_norm": [1, 4], "td_error": [1, 2]}
    holed = {name: [values[0], bad, values[1]] for name, values in whole.items()}
    assert growth(holed) == growth(whole)


def test_too_few_rows_or_no_growth_give_nan():
    names = ("grad_norm_head", "feature_norm", "td_error")
    alone, still = (growth(dict.fromkeys(names, values)) for values in ([1], [2, 2]))
    assert all(math.isnan(value) for value in alone.values())
    assert [still[name] for name in GROWTH[:3]] == [0, 0, 0]
    assert math.isnan(still["growth_share_td_error"])


def test_logs_are_read_by_columns_without_a_line_that_is_being_written(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("frames,q\n1,2.5\n2,nan\n3,4", encoding="utf-8")
    columns = read_columns(path)
    assert columns["frames"].tolist() == [1, 2]
    assert math.isnan(columns["q"][1])
    path.write_text("frames,q\n", encoding="utf-8")
    assert read_columns(path)["q"].tolist() == []


@pytest.mark.parametrize(
    ("text", "message"), [(None, "there is no .*metrics.csv"), ("q\nabc\n", "cannot read .*metrics")]
)
def test_a_damaged_or_missing_log_is_named(tmp_path, text, message):
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_columns(tmp_path / "metrics.csv")
