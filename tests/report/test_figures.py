"""Figures with many arms stay whole."""

import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from benchmarks.synthetic_study import write_study
from gramian.core.arms import arm_styles
from gramian.report import Options, figures
from gramian.report.analysis import analyse
from gramian.report.features import dynamics
from gramian.study.store import read_study

ARMS = ["dqn", "decor", "gram", "gram-unbiased", "norm", "norm (matched)", "cross"]


def changed(analysis, **values):
    """A copy with other attributes."""
    other = copy.copy(analysis)
    vars(other).update(values)
    return other


@pytest.fixture(scope="module")
def seven_arms(tmp_path_factory):
    """Seven arms on five games, as the evidence on MinAtar has them."""
    folder = tmp_path_factory.mktemp("seven")
    games = ["Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"]
    write_study(folder, games=games, arms=ARMS, seeds=2, episodes=30, metric_rows=0, generator=np.random.default_rng(0))
    return analyse(read_study(folder), Options(replicates=100))


def test_the_legend_of_many_arms_lies_within_the_figure_and_above_its_panels(seven_arms):
    figure = figures.learning_curves(seven_arms)
    FigureCanvasAgg(figure).draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= max(axes.title.get_window_extent().y1 for axes in figure.axes if axes.get_visible())


def test_each_of_many_arms_has_its_own_panels_beside_the_baseline(seven_arms):
    panels, styles = figures.learning_curves(seven_arms).axes, arm_styles(ARMS)
    assert [axes.get_title() for axes in panels[:6]] == ARMS[1:]
    assert [axes.get_ylabel().split() for axes in panels[::6]] == [[game, "(2", "seeds)"] for game in seven_arms.games]
    assert len(panels) == 30
    for at, axes in enumerate(panels):
        game, arm = divmod(at, 6)
        pair = [line for line in axes.get_lines() if line.get_linewidth() == 1.1]
        for line, name in zip(pair, ("dqn", ARMS[1 + arm]), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), seven_arms.curve_intervals[name].estimate[:, game])
            assert line.get_color() == styles[name].color
        assert axes.get_ylim() == panels[6 * game].get_ylim()


@pytest.mark.parametrize(("arms", "games", "panels"), [(5, 1, 1), (6, 1, 5), (6, 10, 50), (6, 11, 11)])
def test_few_arms_and_those_of_many_games_share_a_panel(tmp_path, arms, games, panels):
    generator = np.random.default_rng(0)
    write_study(tmp_path, games=games, arms=ARMS[:arms], seeds=1, episodes=8, metric_rows=0, generator=generator)
    analysis = analyse(read_study(tmp_path), Options(replicates=100))
    assert sum(axes.axison for axes in figures.learning_curves(analysis).axes) == panels


def test_many_arms_without_the_baseline_share_a_panel(seven_arms):
    analysis = changed(seven_arms, arms=ARMS[1:])
    assert len([axes for axes in figures.learning_curves(analysis).axes if axes.axison]) == 5


def test_long_names_of_arms_do_not_run_into_each_other(tmp_path):
    arms = ["dqn", *(f"gram-unbiased:{kappa}:uncentered" for kappa in (0.001, 0.002, 0.003, 0.004, 0.005, 0.006))]
    generator = np.random.default_rng(0)
    write_study(tmp_path, games=["Pong"], arms=arms, seeds=1, episodes=8, metric_rows=0, generator=generator)
    analysis = changed(analyse(read_study(tmp_path), Options(replicates=100)), sweep=None)
    figure = figures.learning_curves(analysis)
    FigureCanvasAgg(figure).draw()
    boxes = [axes.title.get_window_extent() for axes in figure.axes]
    assert len(boxes) == 6
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_the_axes_of_a_games_features_have_plain_numbers(tmp_path):
    generator = np.random.default_rng(0)
    write_study(tmp_path, games=["Pong"], arms=ARMS, seeds=2, episodes=30, metric_rows=20, generator=generator)
    study = read_study(tmp_path)
    analysis = analyse(study, Options(replicates=100))
    figure = figures.game_features(analysis, dynamics(study, {"Pong": float(analysis.horizon[0])}), "Pong")
    FigureCanvasAgg(figure).draw()
    labels = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels(which="both")]
    assert any(labels)
    assert not [label for label in labels if "$" in label]


@pytest.mark.parametrize("name", ["learning_curves", "metric_grid", "game_features"])
def test_an_axis_of_frames_has_ticks_from_its_begin_to_its_end(tmp_path, name):
    generator = np.random.default_rng(0)
    write_study(tmp_path, games=["Pong"], frames=4_000_000, seeds=2, episodes=30, metric_rows=50, generator=generator)
    study = read_study(tmp_path)
    analysis = analyse(study, Options(replicates=100))
    found = dynamics(study, {"Pong": float(analysis.horizon[0])})
    more = {"learning_curves": (), "metric_grid": (found, "feature_norm"), "game_features": (found, "Pong")}[name]
    figure = getattr(figures, name)(analysis, *more)
    FigureCanvasAgg(figure).draw()
    for axes in (axes for axes in figure.axes if axes.axison):
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1M", "2M", "3M", "4M"]
        assert axes.get_xlim()[1] < 4.3e6


@given(st.floats(1, 1e10))
def test_ticks_of_frames_are_even_few_and_come_near_to_the_end(end):
    ticks = np.array(figures.frame_ticks(end))
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 5
    assert np.allclose(np.diff(ticks), ticks[1])
    assert 0.65 * end < ticks[-1] <= 1.05 * end


def test_gains_of_many_arms_stand_in_rows_and_have_one_scale(seven_arms):
    figure = figures.auc_gains(seven_arms)
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 6
    assert len({axes.get_xlim() for axes in shown}) == 1
    assert figure.get_figwidth() < 12


def lines_of(axes):
    """What each arm's mark lies at, in the order of the arms."""
    return [line.get_xdata()[0] for line in axes.get_lines() if len(line.get_xdata()) == 1 and line.get_marker() != "|"]


def test_differences_have_a_panel_for_each_game_and_a_line_for_each_arm(seven_arms):
    figure = figures.differences(seven_arms, "dqn")
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown[:2]] == ["Asterix (2 seeds)", "Breakout (2 seeds)"]
    assert [label.get_text() for label in shown[0].get_yticklabels()] == ARMS[1:]
    expected = [float(seven_arms.comparisons[arm].difference.estimate[0]) for arm in ARMS[1:]]
    np.testing.assert_allclose(lines_of(shown[0]), expected)


def test_differences_to_the_control_are_drawn_with_the_games_together(seven_arms):
    assert seven_arms.control == "norm (matched)"
    figure = figures.differences(seven_arms, seven_arms.control)
    first, *_, last = (axes for axes in figure.axes if axes.axison)
    assert last.get_title() == "together, % of what dqn learns"
    arms = [label.get_text() for label in first.get_yticklabels()]
    assert arms == [arm for arm in ARMS if arm != "norm (matched)"]
    learned = np.nanmean(seven_arms.final["dqn"], axis=0) - seven_arms.random
    percent = 100 * (seven_arms.final["gram"] - seven_arms.final["norm (matched)"]) / learned
    assert lines_of(last)[arms.index("gram")] == pytest.approx(percent[:, learned > 0].mean(0).mean())


def study_of(folder, seeds, metric_rows=0):
    """Pong with two arms."""
    generator = np.random.default_rng(0)
    arms = ["dqn", "gram"]
    write_study(
        folder, games=["Pong"], arms=arms, seeds=seeds, episodes=30, metric_rows=metric_rows, generator=generator
    )
    study = read_study(folder)
    return study, analyse(study, Options(replicates=100))


@pytest.mark.parametrize(("seeds", "circles"), [(3, 3), (4, 0)])
def test_few_seeds_stand_in_the_place_of_an_interval(tmp_path, seeds, circles):
    _, analysis = study_of(tmp_path, seeds)
    (axes,) = figures.differences(analysis, "dqn").axes
    drawn = [line.get_xdata() for line in axes.get_lines() if line.get_marker() == "o"]
    assert sum(map(len, drawn)) == circles
    if circles:
        np.testing.assert_allclose(drawn[0], (analysis.final["gram"] - analysis.final["dqn"])[:, 0])
    bars = [bar for bar in axes.collections for segment in bar.get_segments() if np.ptp(segment[:, 0]) > 0]
    assert bool(bars) == (not circles)


@pytest.mark.parametrize(("seeds", "hollow"), [(1, True), (2, False)])
def test_a_difference_of_one_seed_is_hollow_and_said_to_be_one(tmp_path, seeds, hollow):
    _, analysis = study_of(tmp_path, seeds)
    (axes,) = figures.differences(analysis, "dqn").axes
    (mark,) = [line for line in axes.get_lines() if line.get_marker() == "^"]
    assert (mark.get_markerfacecolor() == "none") == hollow
    assert axes.get_title() == ("Pong (1 seed)" if hollow else "Pong (2 seeds)")


def test_bars_of_differences_are_students_intervals(tmp_path):
    _, analysis = study_of(tmp_path, 6)
    (axes,) = figures.differences(analysis, "dqn").axes
    pairs = (analysis.final["gram"] - analysis.final["dqn"])[:, 0]
    ends = scipy.stats.ttest_1samp(pairs, 0).confidence_interval()
    (bar,) = [segment for bars in axes.collections for segment in bars.get_segments()]
    np.testing.assert_allclose(bar[:, 0], [ends.low, ends.high])


@pytest.mark.parametrize(("seeds", "lines", "bands"), [(1, 0, 0), (3, 6, 0), (4, 0, 2)])
def test_curves_of_few_seeds_have_thin_lines_in_the_place_of_bands(tmp_path, seeds, lines, bands):
    study, analysis = study_of(tmp_path, seeds, metric_rows=20)
    found = dynamics(study, {"Pong": float(analysis.horizon[0])})
    for axes in (
        figures.learning_curves(analysis).axes[0],
        figures.metric_grid(analysis, found, "feature_norm").axes[0],
    ):
        thin, thick = ([line for line in axes.get_lines() if (line.get_linewidth() < 0.8) is is_thin]
                       for is_thin in (True, False))  # fmt: skip
        assert (len(thin), len(axes.collections)) == (lines, bands)
        # of the same colour and with the same dashes as their arm's mean
        looks = [{(line.get_color(), line.is_dashed()) for line in own} for own in (thin, thick)]
        assert looks[0] <= looks[1]


@pytest.mark.parametrize(("norm", "scale"), [(None, "log"), (0.0, "linear")])
def test_feature_norms_are_compared_by_ratios_unless_one_is_0(tmp_path, norm, scale):
    study, analysis = study_of(tmp_path, 2, metric_rows=20)
    if norm is not None:
        study = replace(study, metrics=study.metrics.with_columns(feature_norm=pl.lit(norm)))
    found = dynamics(study, {"Pong": float(analysis.horizon[0])})
    axes = figures.metric_grid(analysis, found, "feature_norm").axes[0]
    assert axes.get_yscale() == scale
    assert scale == "log" or axes.get_ylim()[0] == 0


@pytest.mark.parametrize(("frames", "marked"), [(4_000_000, False), (20_000_000, True)])
def test_the_papers_scores_stand_beside_runs_of_the_papers_length_alone(seven_arms, frames, marked):
    analysis = changed(seven_arms, horizon=np.full(len(seven_arms.games), float(frames)))
    legend = [text.get_text() for text in figures.learning_curves(analysis).legends[0].get_texts()]
    assert ("paper, final" in legend) == marked
    assert "Dopamine DQN (Adam)" in legend
