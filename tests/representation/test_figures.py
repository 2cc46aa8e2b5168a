"""The figures are drawn from the files of an analysis alone."""

import math

import numpy as np
import pytest
import scipy.stats
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gramian.core.arms import arm_styles
from gramian.core.errors import UserError
from gramian.representation.figures import draw, sparsity_figure, spectrum_figure
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


def test_figures_go_where_they_are_asked_for_and_are_the_same_bytes_again(tmp_path):
    (tmp_path / "from").mkdir()
    write_report(tmp_path / "from", games=("pong",))
    first, second = (draw(tmp_path / "from", tmp_path / name, formats=("png", "svg")) for name in ("first", "second"))
    assert {(path.suffix, path.parent.name) for path in first} == {(".png", "first"), (".svg", "first")}
    assert not list((tmp_path / "from").glob("*.png"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_lines_are_means_over_seeds():
    points = [Point(f"dqn-s{seed}", "pong", "dqn", seed, "spectrum", x, seed + 1.0) for seed in (0, 1) for x in (1, 2)]
    line, *_ = spectrum_figure(points, arm_styles(["dqn"])).axes[0].get_lines()
    np.testing.assert_allclose(line.get_ydata(), [1.5, 1.5])


def test_a_table_of_another_kind_is_refused(tmp_path):
    (tmp_path / "measures.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match="has columns a, b; it must have run, game"):
        read_measures(tmp_path / "measures.csv")


def spectra(seeds):
    """Eigenvalues of a few seeds: 1 and 0.01, the second a little larger with each seed."""
    return [
        Point(f"dqn-s{seed}", "pong", "dqn", seed, "spectrum", x, value)
        for seed in range(seeds)
        for x, value in ((1, 1.0), (2, 0.01 * (1 + seed)))
    ]


@pytest.mark.parametrize(("seeds", "lines", "bands"), [(1, 1, 0), (3, 4, 0), (4, 1, 1)])
def test_few_seeds_are_thin_lines_in_the_place_of_a_band(seeds, lines, bands):
    axes = spectrum_figure(spectra(seeds), arm_styles(["dqn"])).axes[0]
    assert (len(axes.get_lines()), len(axes.collections)) == (lines, bands)


def test_a_band_is_the_interval_of_the_bootstrap_over_seeds():
    (band,) = spectrum_figure(spectra(10), arm_styles(["dqn"])).axes[0].collections
    values = 0.01 * np.arange(1, 11)
    ends = scipy.stats.bootstrap(
        (values,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    at_second = band.get_paths()[0].vertices[:, 1][np.isclose(band.get_paths()[0].vertices[:, 0], 2)]
    np.testing.assert_allclose([at_second.min(), at_second.max()], [ends.low, ends.high], rtol=0.06)


def test_the_axis_of_eigenvalues_ends_where_they_do():
    axes = spectrum_figure(spectra(1), arm_styles(["dqn"])).axes[0]
    assert axes.get_ylim() == pytest.approx((0.01 / 3, 3.0))


def test_legends_lie_below_the_panels():
    figure = spectrum_figure(spectra(2), arm_styles(["dqn"]))
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert legend.get_window_extent().y1 <= min(axes.get_tightbbox().y0 for axes in figure.axes)
    assert not any(axes.get_legend() for axes in figure.axes)


def test_histograms_of_many_arms_are_those_of_the_first_of_gram_and_of_the_control():
    arms = ["dqn", "decor", "gram", "gram-unbiased", "norm", "norm (matched)", "cross"]
    points = [
        Point(arm, "pong", arm, 0, curve, x, 1.0)
        for arm in arms
        for curve, xs in (("active_per_state", (0, 1)), ("active_per_feature", (0,)), ("sparsity", (0, 1)))
        for x in xs
    ]
    figure = sparsity_figure(points, arm_styles(arms))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["dqn", "gram", "norm (matched)"]
    assert "3 of 7 arms" in figure.get_suptitle()


def test_a_figure_has_the_games_title(tmp_path, monkeypatch):
    write_report(tmp_path, games=("minatar/breakout",))
    titles = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: (titles.append(self.get_suptitle()), path.touch()))
    draw(tmp_path)
    assert titles
    assert all(title.startswith("MinAtar Breakout: ") for title in titles)
