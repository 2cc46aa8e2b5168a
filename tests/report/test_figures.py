"""Figures with many arms stay whole."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from benchmarks.synthetic_study import write_study
from gramian.report import Options, figures
from gramian.report.analysis import analyse
from gramian.report.dynamics import dynamics
from gramian.study.store import read_study

ARMS = ["dqn", "decor", "gram", "gram-unbiased", "norm", "norm (matched)", "cross"]


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


def test_gains_of_many_arms_stand_in_rows_and_have_one_scale(seven_arms):
    figure = figures.auc_gains(seven_arms)
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 6
    assert len({axes.get_xlim() for axes in shown}) == 1
    assert figure.get_figwidth() < 12


def test_differences_have_a_panel_for_each_game_and_a_line_for_each_arm(seven_arms):
    figure = figures.differences(seven_arms)
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 5
    assert [label.get_text() for label in shown[0].get_yticklabels()] == ARMS[1:]
    drawn = [line.get_xdata()[0] for line in shown[0].get_lines() if line.get_marker() in "s^Dx*+"]
    expected = [float(seven_arms.comparisons[arm].difference.estimate[0]) for arm in ARMS[1:]]
    assert [value for value in expected if not any(np.isclose(value, found) for found in drawn)] == []


@pytest.mark.parametrize(("seeds", "circles"), [(3, 3), (4, 0)])
def test_few_seeds_stand_in_the_place_of_an_interval(tmp_path, seeds, circles):
    generator = np.random.default_rng(0)
    write_study(
        tmp_path, games=["Pong"], arms=["dqn", "gram"], seeds=seeds, episodes=30, metric_rows=0, generator=generator
    )
    analysis = analyse(read_study(tmp_path), Options(replicates=100))
    (axes,) = figures.differences(analysis).axes
    drawn = [line.get_xdata() for line in axes.get_lines() if line.get_marker() == "o"]
    assert sum(map(len, drawn)) == circles
    if circles:
        np.testing.assert_allclose(drawn[0], (analysis.final["gram"] - analysis.final["dqn"])[:, 0])
    bars = [bar for bar in axes.collections for segment in bar.get_segments() if np.ptp(segment[:, 0]) > 0]
    assert bool(bars) == (not circles)


@pytest.mark.parametrize(("frames", "marked"), [(4_000_000, False), (20_000_000, True)])
def test_the_papers_scores_stand_beside_runs_of_the_papers_length_alone(seven_arms, frames, marked):
    analysis = replace(seven_arms, horizon=np.full(len(seven_arms.games), float(frames)))
    legend = [text.get_text() for text in figures.learning_curves(analysis).legends[0].get_texts()]
    assert ("paper, final" in legend) == marked
    assert "Dopamine DQN (Adam)" in legend
