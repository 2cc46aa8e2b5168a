"""The figures are drawn from the files of an analysis alone."""

import math

import numpy as np
import pytest

from gramian.errors import UserError
from gramian.palette import arm_styles
from gramian.representation.figures import draw, spectrum_figure
from gramian.representation.tables import Point, read_measures
from tests.representation.analyses import write_report


def test_each_game_has_its_figures(tmp_path):
    write_report(tmp_path)
    drawn = {path.name for path in draw(tmp_path)}
    kinds = ("sparsity", "dynamics", "growth", "correlation", "spectrum")
    assert drawn == {f"{kind}-{game}.png" for kind in kinds for game in ("pong", "minatar-breakout")}


@pytest.mark.parametrize("value", [0.0, math.nan, 1e-300, 1e300], ids=["zero", "nan", "tiny", "huge"])
@pytest.mark.filterwarnings("ignore")
def test_no_number_is_too_odd_to_be_drawn(tmp_path, value):
    write_report(tmp_path, games=("pong",), value=value)
    assert draw(tmp_path)


def test_an_arm_looks_as_in_the_study_that_the_analysis_belongs_to():
    study = ["dqn", "gram:0.01", "gram:0.1"]
    points = [Point("r", "pong", "gram:0.1", 0, "spectrum", x, 1.0) for x in (1, 2)]
    line, *_ = spectrum_figure(points, {"gram:0.1": arm_styles(study)["gram:0.1"]}).axes[0].get_lines()
    assert line.get_color() == arm_styles(study)["gram:0.1"].color


def test_figures_go_where_they_are_asked_for_in_the_formats_asked_for(tmp_path):
    (tmp_path / "from").mkdir()
    write_report(tmp_path / "from", games=("pong",))
    drawn = draw(tmp_path / "from", tmp_path / "to", formats=("png", "svg"))
    assert {path.suffix for path in drawn} == {".png", ".svg"}
    assert {path.parent for path in drawn} == {tmp_path / "to"}
    assert not list((tmp_path / "from").glob("*.png"))


def test_the_lines_are_means_over_seeds():
    points = [Point(f"dqn-s{seed}", "pong", "dqn", seed, "spectrum", x, seed + 1.0) for seed in (0, 1) for x in (1, 2)]
    line, *_ = spectrum_figure(points, arm_styles(["dqn"])).axes[0].get_lines()
    np.testing.assert_allclose(line.get_ydata(), [1.5, 1.5])


def test_a_table_of_another_kind_is_refused(tmp_path):
    (tmp_path / "measures.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match="has columns a, b; it must have run, game"):
        read_measures(tmp_path / "measures.csv")
