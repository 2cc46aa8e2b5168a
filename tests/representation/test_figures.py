"""The figures are drawn from the files of an analysis alone."""

import math

import numpy as np
import pytest

from gramian.errors import UserError
from gramian.representation.dynamics import DYNAMICS, GROWTH
from gramian.representation.figures import draw, spectrum_figure, styles_of
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


def test_arms_of_one_kind_have_one_colour_and_different_lines():
    styles = styles_of(reversed(ARMS))
    assert next(iter(styles)) == "dqn"
    assert styles["gram:0.1"].colour == styles["gram:10.24"].colour != styles["dqn"].colour
    assert styles["gram:0.1"].line != styles["gram:10.24"].line


def test_the_lines_are_means_over_seeds():
    points = [Point(f"dqn-s{seed}", "pong", "dqn", seed, "spectrum", x, seed + 1.0) for seed in (0, 1) for x in (1, 2)]
    line, *_ = spectrum_figure(points).axes[0].get_lines()
    np.testing.assert_allclose(line.get_ydata(), [1.5, 1.5])


def test_a_table_of_another_kind_is_refused(tmp_path):
    (tmp_path / "measures.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match="has columns a, b; it must have run, game"):
        read_measures(tmp_path / "measures.csv")
