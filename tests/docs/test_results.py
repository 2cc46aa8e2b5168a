"""The numbers of the pages: those that are committed, and some from made-up tables."""

import re

import numpy as np
import pytest
import scipy.stats

from docs import figures
from docs import results as page
from gramian.core.errors import UserError

ARMS = {"dqn": 1.0, "gram": 2.0, "norm (matched)": 2.5}
ON_ATARI = {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 1.5, "norm (0.1)": 1.25}
SIZES_ON_ATARI = {"dqn": 27.0, "gram (0.082)": 3.0, "norm (matched)": 1.0, "norm (0.1)": 9.0}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The module that writes the numbers, with a folder of its own for what it reads."""
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    return page


def write_table(results, study, name, header, lines):
    folder = results.RESULTS / study
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")


def write_scores(results, study="minatar", games=("minatar/breakout", "minatar/freeway"), arms=ARMS, seeds=6):
    """Scores that differ by seed as much as the seeds are worth: of pairs, no spread is left."""
    lines = [
        f"{game},{arm},{seed},done,{mean + 0.1 * seed},{mean + 0.2 * seed},0.25"
        for game in games
        for arm, mean in arms.items()
        for seed in range(seeds)
    ]
    write_table(results, study, "scores", "game,arm,seed,state,final_score,auc,random", lines)


def on_atari(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    lines = [
        f"{run['game']},{run['arm']},{run['seed']},done,{SIZES_ON_ATARI[run['arm']]}"
        for run in results.rows_of("atari", "scores")
    ]
    write_table(results, "atari", "features", "game,arm,seed,state,training_norm", lines)


def columns(text):
    """A table by its columns: the cells under each heading."""
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines()]
    return {heading: [row[at] for row in rows[2:]] for at, heading in enumerate(rows[0])}


def estimates(cells):
    """The numbers of cells without their intervals."""
    return [cell.strip("*").split()[0] for cell in cells]


def test_the_committed_pages_are_those_of_the_committed_results():
    stale = [str(path) for path, text in page.pages().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "a result has changed; run: python -m docs.results"


def test_everything_that_is_made_stands_in_a_page():
    texts = "".join(path.read_text(encoding="utf-8") for path in page.pages())
    assert [name for name in page.MAKERS if not re.search(rf"<!-- {name}( [^>]*)? -->", texts)] == []


def test_no_number_begins_a_line():
    """A comment there begins a block of HTML and breaks the paragraph."""
    texts = [path.read_text(encoding="utf-8") for path in page.pages()]
    assert [found for text in texts for found in re.findall(r"^ *<!-- .+? -->.+$", text, re.MULTILINE)] == []


@pytest.mark.parametrize("name", ["findings", "dopamine"])
def test_a_figure_is_drawn_for_both_grounds(name):
    drawn = [figures.DRAWN[name](dark=dark) for dark in (False, True)]
    assert all(axes.lines for figure in drawn for axes in figure.axes)


def test_every_figure_is_there_for_both_grounds():
    names = {f"{name}{ground}.svg" for name in figures.DRAWN for ground in ("", "-dark")}
    assert names == {path.name for path in figures.FIGURES.glob("*.svg")}


def test_differences_are_of_pairs_of_the_same_seed(results):
    write_scores(results)
    found = columns(results.against("minatar", "norm (matched)", "final_score"))["`gram`"]
    assert found[:2] == ["**−0.50 [−0.50,\u00a0−0.50]**"] * 2


def test_a_percentage_has_the_error_of_its_denominator(results):
    scores = {"dqn": [2.0, 4.0, 6.0], "gram": [4.0, 5.0, 9.0]}
    lines = [f"qbert,{arm},{seed},done,{score},0,1" for arm, own in scores.items() for seed, score in enumerate(own)]
    write_table(results, "atari", "scores", "game,arm,seed,state,final_score,auc,random", lines)
    # the mean gain 2 of the 3 that DQN learns; delta method by hand
    gains, learned = np.array([2.0, 1.0, 3.0]), np.array([1.0, 3.0, 5.0])
    error = np.std((gains - 2 / 3 * learned) / 3, ddof=1) / np.sqrt(3)
    low = 100 * (2 / 3 - scipy.stats.t.ppf(0.975, 2) * error)
    value, below, _ = results.student(results.gain("atari", ["gram"], "dqn", "final_score"))
    assert (value, below) == pytest.approx((200 / 3, low))


def test_a_difference_is_bold_where_it_differs_from_0_after_holms_correction(results):
    pairs = np.arange(5.0)[:, None]
    p = scipy.stats.ttest_1samp(pairs[:, 0], 0).pvalue
    assert results.p_value(pairs) == pytest.approx(p)
    assert 0.025 < p < 0.05
    noise = np.array([[-1.0], [1.0], [0.5], [-0.5], [0.1]])
    assert "**" in results.differences(["", ""], {"alone": [pairs]})
    assert "**" not in results.differences(["", "", ""], {"of two": [pairs, noise]})


def test_an_arm_stands_beside_a_control_at_equal_size(results):
    on_atari(results)
    found = columns(results.atari("final_score"))
    # 2 minus what lies halfway between 1.5 and 1.25, over the 0.8 that DQN learns
    expected = {"over DQN, %": "+125", "over `norm` κ=0.5, %": "+62", "over `norm` κ=0.1, %": "+94"}
    assert {name: estimates(found[name])[-1] for name in expected} == expected
    assert estimates(found["at equal ‖φ‖, %"]) == ["+78"] * 3


def test_features_of_a_run_that_diverged_do_not_count_and_those_of_other_runs_are_refused(results):
    on_atari(results)
    before = results.atari("final_score")
    path = results.RESULTS / "atari" / "features.csv"
    path.write_text(path.read_text().replace("asterix,norm (0.1),0,done,9.0", "asterix,norm (0.1),0,diverged,1e30"))
    assert "diverged" in path.read_text()
    assert results.atari("final_score") == before
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "qbert" not in line))
    with pytest.raises(UserError, match="are not of the same runs"):
        results.atari("final_score")


def test_a_share_of_games_has_an_exact_interval(results):
    on_atari(results)
    ends = scipy.stats.binomtest(2, 2).proportion_ci(method="exact")
    assert results.atari_share("auc", "gram (0.082)") == f"2 of 2 games [{ends.low:.2f}, 1.00]"


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(page, "MAKERS", {"one": lambda *words: "-".join(words), "two": lambda: "| b |\n"})


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<!-- one a "b c" -->old<!-- end --> rest', '<!-- one a "b c" -->a-b c<!-- end --> rest'),
        ("<!-- two -->\n<!-- end -->\n", "<!-- two -->\n\n| b |\n\n<!-- end -->\n"),
        ("<!-- a remark --> <!-- one x --><!-- end -->", "<!-- a remark --> <!-- one x -->x<!-- end -->"),
    ],
)
def test_a_number_and_a_table_stand_between_their_comments(text, expected):
    assert page.filled(text) == page.filled(expected) == expected


@pytest.mark.usefixtures("made")
def test_a_place_that_names_nothing_is_refused():
    with pytest.raises(UserError, match="a page has a place for 'three'; there are one, two"):
        page.filled("<!-- three --><!-- end -->")


def test_a_table_that_lacks_a_column_is_named(results):
    write_table(results, "minatar", "scores", "game,arm,seed,state", ["pong,dqn,0,done"])
    with pytest.raises(UserError, match="'scores minatar' cannot be made: a table of the results lacks 'final_score'"):
        page.filled("<!-- scores minatar --><!-- end -->")


def test_the_range_of_a_feature_is_of_the_means_of_the_games(results):
    on_atari(results)
    lines = [
        f"{game},{arm},{seed},done,{value + seed}"
        for game, gap in (("asterix", 2.0), ("qbert", -0.5))
        for arm, value in (("dqn", 1.0), ("gram (0.082)", 1.0 + gap))
        for seed in range(2)
    ]
    write_table(results, "atari", "features", "game,arm,seed,state,held_out_sparsity", lines)
    assert results.feature_range("atari", "held_out_sparsity", "dqn") == "−0.50 to +2.0"


def test_the_scores_of_tuning_are_those_of_both_folds(results):
    for fold, score in (("a", 0.18), ("b", 0.039)):
        lines = [f"gram,10.24,{score}", "gram,0.08192,0.9", "dqn,,0.5"]
        write_table(results, "minatar", f"kappa-{fold}", "penalty,kappa,score", lines)
    assert results.tuning_scores("gram", "10.24") == "0.18 and 0.039"
    assert results.tuning_scores("dqn") == "0.50 and 0.50"
