"""The figures are drawn from the files of an analysis alone."""

import math

import numpy as np
import pytest

from gramian.errors import UserError
from gramian.palette import arm_styles
from gramian.representation.dynamics import DYNAMICS, GROWTH
from gramian.representation.figures import draw, spectrum_figure
from gramian.representation.streaming import MEASURES
from gramian.representation.tables import Measure, Moment, Point, read_measures, write

D = 6
ARMS = ("dqn", "gram:0.1", "gram:10.24")


def write_report(folder, games=("pong", "minatar/breakout"), value=1.0):
    """An analysis of three arms and two seeds in which every number is ``value``."""
    measures, curves, dynamics = [], [], []
    (folder / "correlation").mkdir()
    for game in games:
        for arm in ARMS:
            for seed in (0, 1):
                run = f"{game.replace('/', '-')}-{arm.replace(':', '-k')}-s{seed}"
                key = (run, game, arm, seed)
                measures += [Measure(*key, 100, name, value) for name in (*MEASURES, *GROWTH)]
                curves += [Point(*key, "sparsity", x, value) for x in (0.0, 1.0)]
                curves += [Point(*key, "active_per_state", x, value) for x in range(D + 1)]
                curves += [Point(*key, "active_per_feature", x, value) for x in range(D)]
                curves += [Point(*key, "spectrum", x, value) for x in range(1, D + 1)]
                dynamics += [Moment(*key, frame, name, value) for frame in (100, 200) for name in DYNAMICS]
                np.save(folder / "correlation" / f"{run}.npy", np.full((D, D), value, np.float32))
    write(folder / "measures.csv", measures)
    write(folder / "curves.csv", curves)
    write(folder / "dynamics.csv", dynamics)


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
