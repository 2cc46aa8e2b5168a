"""Arms beside a control at their own feature norm."""

import csv
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from benchmarks.synthetic_study import write_study
from gramian.core.statistics import FEW_GAMES
from gramian.report import Options, build
from gramian.report.analysis import analyse
from gramian.report.differences import Between, equal_norm, interpolated
from gramian.report.figures import EQUAL_FIGURE, draw_figures, equal_norm_differences
from gramian.report.page.sections import equal_norm_section
from tests.report.studies import study

FAST = 100
GAME = "minatar/breakout"


def column(*values):
    return np.array(values, float)[:, None]


sizes = st.floats(0.1, 100.0)


@settings(deadline=None)
@given(st.lists(sizes, min_size=2, max_size=4, unique=True), st.floats(0.0, 1.0), st.floats(-5.0, 5.0), sizes)
def test_where_scores_are_linear_in_the_logarithm_of_the_norm_what_is_left_is_what_the_arm_adds(norms, at, gain, slope):
    seeds = np.array([0.0, 1.0, -2.0])  # of an effect that all arms of a seed share
    lowest, highest = min(norms), max(norms)
    own = float(np.clip(lowest ** (1 - at) * highest**at, lowest, highest))
    arms = {f"norm:{at}": norm for at, norm in enumerate(norms)}
    scores = {arm: column(*(seeds + slope * np.log(norm))) for arm, norm in arms.items()}
    scores["gram"] = column(*(seeds + slope * np.log(own) + gain))
    of_arms = {arm: column(norm, norm, norm) for arm, norm in {**arms, "gram": own}.items()}
    apart, (place,) = interpolated(scores, of_arms, "gram", list(arms))
    assert place is not None
    np.testing.assert_allclose(apart, gain, atol=1e-6 * (1 + slope * 10))


def test_the_two_nearest_controls_are_taken():
    norms = {"dqn": 9.0, "norm:0.1": 4.0, "norm:1.0": 1.0, "gram": 2.0}
    scores = {arm: column(0.0) for arm in norms}
    _, (place,) = interpolated(scores, {arm: column(norm) for arm, norm in norms.items()}, "gram", list(norms)[:3])
    assert place == Between("norm:1.0", "norm:0.1", pytest.approx(0.5))


@pytest.mark.parametrize(("own", "nearest"), [(0.96, "norm"), (9.4, "dqn"), (1.0, "norm")])
def test_norms_that_are_equal_or_nearly_are_those_of_one_control(own, nearest):
    norms = {"dqn": column(9.0), "norm": column(1.0), "gram": column(own)}
    scores = {"dqn": column(7.0), "norm": column(2.0), "gram": column(5.0)}
    apart, places = interpolated(scores, norms, "gram", ["dqn", "norm"])
    assert places == [Between(nearest, nearest, 0.0)]
    assert apart.item() == 5.0 - scores[nearest].item()


@pytest.mark.parametrize(
    ("own", "smallest"), [(0.5, 1.0), (0.94, 1.0), (9.6, 1.0), (10.0, 1.0), pytest.param(3.0, 0.0, id="all zero")]
)
def test_beyond_the_outermost_controls_nothing_is_said(own, smallest):
    norms = {"dqn": column(9.0), "norm": column(smallest), "gram": column(own)}
    apart, places = interpolated({arm: column(1.0) for arm in norms}, norms, "gram", ["dqn", "norm"])
    assert places == [None]
    assert np.isnan(apart).all()


def test_a_game_has_one_mixture_by_the_geometric_mean_of_its_seeds():
    norms = {"dqn": column(16.0, 16.0), "norm": column(1.0, 1.0), "gram": column(2.0, 8.0)}
    scores = {"dqn": column(1.0, 3.0), "norm": column(3.0, 5.0), "gram": column(0.0, 0.0)}
    apart, places = interpolated(scores, norms, "gram", ["dqn", "norm"])
    assert places == [Between("norm", "dqn", pytest.approx(0.5))]
    np.testing.assert_allclose(apart, column(-2.0, -4.0))


def of_features(cells):
    """A table of features by game, arm and seed; runs with an infinite norm have diverged."""
    rows = [(*cell, norm, "done" if np.isfinite(norm) else "diverged") for cell, norm in cells.items()]
    return pl.DataFrame(rows, ["game", "arm", "seed", "training_norm", "state"], orient="row")


def analysed(scores, norms):
    """An analysis of one game, its runs, and the table of its features."""
    found = study({(GAME, arm, seed): [score] for arm in scores for seed, score in enumerate(scores[arm])})
    runs = told(found.runs)
    features = of_features({(GAME, arm, seed): norm for arm in norms for seed, norm in enumerate(norms[arm])})
    return analyse(found, Options(replicates=FAST)), runs, features


def told(runs, uncentred=()):
    """Runs with what their arms are."""
    kinds = {arm: re.split("[: ]", arm)[0] for arm in runs["arm"].unique()}
    centred = {arm: kind != "dqn" and arm not in uncentred for arm, kind in kinds.items()}
    return runs.with_columns(kind=pl.col("arm").replace_strict(kinds), centered=pl.col("arm").replace_strict(centred))


NOWHERE = Path("no figures")
SCORES = {"dqn": [1.0, 2.0], "norm (matched)": [3.0, 4.0], "gram": [5.0, 9.0]}
NORMS = {"dqn": [9.0, 9.0], "norm (matched)": [1.0, 1.0], "gram": [3.0, 3.0]}


def test_a_study_is_laid_beside_its_own_controls():
    analysis, runs, features = analysed(SCORES, NORMS)
    found = equal_norm(analysis, runs, features)
    assert found.controls == ["dqn", "norm (matched)"]
    assert found.final.pairs["gram"][:, 0].tolist() == pytest.approx([3.0, 6.0])
    row = found.table(analysis.games).row(0, named=True)
    assert (row["smaller"], row["larger"], row["share"]) == ("norm (matched)", "dqn", pytest.approx(0.5))
    assert (row["smaller_norm"], row["larger_norm"], row["norm"]) == pytest.approx((1.0, 9.0, 3.0))
    assert row["final"] == pytest.approx(4.5)
    assert row["final_low"] < 4.5 < row["final_high"]
    assert "0.50 norm (matched), 0.50 dqn" in equal_norm_section(analysis, found, NOWHERE)


def test_games_are_put_together_where_an_arm_has_a_control_in_all_of_them():
    games = [GAME, "minatar/asterix"]
    arms = {"dqn": [5.0, 6.0], "norm:1.0": [7.0, 8.0], "gram:1.0": [9.0, 9.5], "gram:9.0": [9.0, 9.5]}
    norms = {"dqn": 9.0, "norm:1.0": 1.0, "gram:1.0": 3.0, "gram:9.0": 3.0}
    cells = [(game, arm, seed) for game in games for arm in arms for seed in (0, 1)]
    runs = study({cell: [arms[cell[1]][cell[2]]] for cell in cells})
    analysis = analyse(runs, Options(replicates=FAST))
    analysis.random[:] = 0.0
    features = of_features({cell: 0.1 if cell[:2] == (GAME, "gram:9.0") else norms[cell[1]] for cell in cells})
    found = equal_norm(analysis, told(runs.runs), features)
    _, means = found.judged(analysis.shown())
    whole = means["gram:1.0"]
    assert float(whole.estimate) == pytest.approx(100 * np.mean([9.0 - 6.0, 9.5 - 7.0]) / 5.5)
    assert np.isnan(means["gram:9.0"].estimate)
    *shown, last = (axes for axes in equal_norm_differences(analysis, found).axes if axes.axison)
    assert last.get_title() == "together, % of what dqn learns"
    assert [label.get_text() for label in shown[0].get_yticklabels()] == ["gram:1.0", "gram:9.0"]
    (mark,) = [line for line in last.get_lines() if line.get_marker() == "^"]  # the other one has no mean
    assert mark.get_xdata()[0] == pytest.approx(float(whole.estimate))
    assert "together, %" in equal_norm_section(analysis, found, NOWHERE)


def games_with(norms_of, games=2, seeds=None):
    """Arms `gram:1.0`, `gram:3.0` and `gram:9.0` between DQN and a norm penalty, where ``norms_of`` says so."""
    arms = {"dqn": 5.0, "norm:1.0": 7.0, "gram:1.0": 9.0, "gram:3.0": 9.0, "gram:9.0": 9.0}
    names = ["Asterix", "Breakout", "Pong", "Qbert", "Seaquest", "Freeway", "Boxing", "Amidar", "Alien", "Bowling",
             "Krull"][:games]  # fmt: skip
    seeds = seeds or {}
    cells = [(game, arm, seed) for game in names for arm in arms for seed in seeds.get(arm, (0, 1))]
    runs = study({cell: [arms[cell[1]] + 0.1 * cell[2]] for cell in cells})
    analysis = analyse(runs, Options(replicates=FAST))
    analysis.random[:] = 0.0
    sizes = {"dqn": 9.0, "norm:1.0": 1.0}
    features = of_features({cell: sizes.get(cell[1], norms_of(*cell[:2])) for cell in cells})
    return analysis, equal_norm(analysis, told(runs.runs), features)


def test_the_figure_has_the_arms_that_have_a_control_and_no_mean_where_none_has_one_in_all_games(tmp_path):
    analysis, found = games_with(lambda game, arm: 0.1 if arm == "gram:9.0" or game == "Asterix" else 3.0)
    shown = [axes for axes in equal_norm_differences(analysis, found).axes if axes.axison]
    assert [axes.get_title() for axes in shown] == ["Breakout (2 seeds)"]
    assert [label.get_text() for label in shown[0].get_yticklabels()] == ["gram:1.0", "gram:3.0"]
    (written,) = [path for path in draw_figures(analysis, {}, tmp_path, found) if path.name == f"{EQUAL_FIGURE}.png"]
    html = equal_norm_section(analysis, found, written.parent)
    assert "data:image/png" in html
    assert "Together" not in html
    assert ">gram:9.0<" not in html


def test_without_pairs_of_the_same_seed_there_is_no_figure_and_the_section_says_so(tmp_path):
    seeds = {f"gram:{kappa}": (2, 3) for kappa in ("1.0", "3.0", "9.0")}
    analysis, found = games_with(lambda *_: 3.0, seeds=seeds)
    assert not [path for path in draw_figures(analysis, {}, tmp_path, found) if path.stem == EQUAL_FIGURE]
    assert "in runs of the same seed" in equal_norm_section(analysis, found, tmp_path)


def test_of_many_games_there_is_a_table_and_no_figure(tmp_path):
    analysis, found = games_with(lambda *_: 3.0, games=FEW_GAMES + 1)
    assert not [path for path in draw_figures(analysis, {}, tmp_path, found) if path.stem == EQUAL_FIGURE]
    assert "together, %" in equal_norm_section(analysis, found, tmp_path)


@pytest.mark.parametrize("games", [1, 2, 5])
def test_the_words_below_a_figure_lie_within_it(games):
    analysis, found = games_with(lambda *_: 3.0, games=games)
    figure = equal_norm_differences(analysis, found)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (words,) = [text for text in figure.texts if "equal norm" in text.get_text()]
    box = words.get_window_extent(canvas.get_renderer())
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("lacking", ["dqn", "norm (matched)", "gram"])
def test_without_both_controls_and_another_arm_there_is_nothing_to_lay_beside(lacking):
    scores, norms = ({arm: own for arm, own in one.items() if arm != lacking} for one in (SCORES, NORMS))
    assert equal_norm(*analysed(scores, norms)) is None


def test_without_logs_of_the_features_there_is_none():
    assert equal_norm(*analysed(SCORES, NORMS)[:2], None) is None
    assert equal_norm_section(analysed(SCORES, NORMS)[0], None, NOWHERE) == ""


@pytest.mark.parametrize("other", ["norm (raw)", "norm:1.0 lr 0.001"])
def test_arms_that_differ_by_more_than_their_size_are_no_controls(other):
    scores, norms = ({**one, other: one["norm (matched)"]} for one in (SCORES, {**NORMS, "norm (matched)": [2.0, 2.0]}))
    analysis, runs, features = analysed(scores, norms)
    assert equal_norm(analysis, told(runs, ["norm (raw)"]), features).controls == ["dqn", "norm (matched)"]


@pytest.mark.parametrize("odd", [np.inf, 0.0])
def test_the_norms_of_runs_that_have_diverged_or_are_all_zero_do_not_count(odd):
    found = equal_norm(*analysed(SCORES, {**NORMS, "gram": [3.0, odd]}))
    assert found.norms["gram"][0] == pytest.approx(3.0)


def test_a_diverged_run_with_a_norm_of_before_does_not_count_either():
    analysis, runs, features = analysed(SCORES, {**NORMS, "gram": [3.0, 1e12]})
    diverged = pl.when(pl.col("training_norm") > 1e6).then(pl.lit("diverged")).otherwise("state")
    found = equal_norm(analysis, runs, features.with_columns(state=diverged))
    assert found.norms["gram"][0] == pytest.approx(3.0)


def test_the_table_has_every_arm_and_the_page_those_that_figures_show():
    kappas = [0.1 * at for at in range(1, 9)]
    scores = SCORES | {f"gram:{kappa:.1f}": [5.0, 9.0] for kappa in kappas}
    analysis, runs, features = analysed(scores, NORMS | {f"gram:{kappa:.1f}": [3.0, 3.0] for kappa in kappas})
    found = equal_norm(analysis, runs, features)
    shown = [arm for arm in analysis.shown() if arm.startswith("gram")]
    assert len(shown) < len(found.between) == 9
    html = equal_norm_section(analysis, found, NOWHERE)
    assert all((f">{arm}<" in html) == (arm in shown) for arm in found.between)


def test_the_report_has_a_section_and_a_table_of_it(tmp_path):
    arms = ["dqn", "gram", "norm (matched)"]
    write_study(tmp_path / "study", games=["Asterix", "Pong"], arms=arms, seeds=3, episodes=60, metric_rows=8,
                generator=np.random.default_rng(0))  # fmt: skip
    for path in (tmp_path / "study").rglob("metrics.csv"):
        size = {"dqn": 9.0, "gram": 2.0, "norm (matched)": 1.0}[
            next(arm for arm in arms[::-1] if arm.split()[0] in path.parent.name)
        ]
        rows = list(csv.DictReader(path.open()))
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows({**row, "feature_norm": size} for row in rows)
    build(tmp_path / "study", tmp_path / "report", Options(replicates=FAST))
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    section = re.search(r'<section id="equal-norm".*?</section>', page, re.DOTALL)
    assert "What the control is made of" in section[0]
    assert '<img src="data:image/png' in section[0]
    assert (tmp_path / "report" / "figures" / "differences-equal-norm.svg").is_file()
    rows = pl.read_csv(tmp_path / "report" / "equal_norm.csv")
    assert rows["arm"].to_list() == ["gram", "gram"]
    assert rows["share"].to_list() == pytest.approx([np.log(2) / np.log(9)] * 2)
