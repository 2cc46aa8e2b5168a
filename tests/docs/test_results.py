"""The tables of the page of results, from made-up tables and from none."""

import csv
import importlib.util
import shutil

import numpy as np
import pytest
import scipy.stats
from PIL import Image

from gramian.claims.seeds import scores
from gramian.claims.tables import Tables
from gramian.core import statistics
from gramian.core.errors import UserError
from gramian.study.store import write_import
from tests.docs.pages import ROOT

ARMS = {"dqn": 1.0, "gram": 2.0, "norm (matched)": 2.5}
ON_ATARI = {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 1.5, "norm (0.1)": 1.25}
SIZES_ON_ATARI = {"dqn": 27.0, "gram (0.082)": 3.0, "norm (matched)": 1.0, "norm (0.1)": 9.0}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The module that writes the tables, with a folder of its own for what it reads and writes."""
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "docs" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(module, "DOCS", tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    for page in module.PAGES:
        shutil.copy(ROOT / "docs" / page, tmp_path / "docs")
    return module


def texts(results, folder):
    return [(folder / page).read_text(encoding="utf-8") for page in results.PAGES]


def write_scores(results, study="minatar", games=("minatar/breakout", "minatar/freeway"), arms=ARMS, seeds=6):
    folder = results.RESULTS / study
    folder.mkdir(parents=True)
    lines = ["game,arm,seed,state,final_score,auc,random"]
    for game in games:
        for arm, mean in arms.items():
            lines += [f"{game},{arm},{seed},done,{mean + 0.1 * seed},{mean + 0.2 * seed},0.25" for seed in range(seeds)]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")


def breakout_runs(results, returns, folder=""):
    """Runs of Breakout by seed, with a mean return for each million."""
    header = "game,seed,state,commit,device,million_frames,end_frames,episodes,mean_return"
    lines = [
        f"breakout,{seed},done,abc,GPU,{million},{million}000000,9,{value}"
        for seed, values in returns.items()
        for million, value in enumerate(values, start=1)
    ]
    place = results.RESULTS / "dopamine" / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "dopamine-runs.csv").write_text("\n".join([header, *lines]) + "\n")


def test_breakout_s_third_million_is_compared_with_both_sets_of_dopamine_s_and_with_our_own(results):
    breakout_runs(results, {seed: [1.0, 5.0, 10.0 + seed, 99.0] for seed in range(10)})
    breakout_runs(results, {seed: [1.5, 5.5, seed] for seed in range(20, 25)}, "again")
    assert results.breakout().startswith(results.AWAITED)
    breakout_runs(results, {seed: [2.0, 6.0, 20.0 + seed] for seed in range(10, 20)}, "sequential")
    later = ["breakout,1,1.0,3.0", "breakout,2,5.0,7.0", "breakout,3,14.0,16.0"]
    text = "\n".join(["game,million_frames,run1,run2", *later]) + "\n"
    (results.RESULTS / "dopamine" / "later-runs.csv").write_text(text)
    names, *cells = columns(results.breakout()).values()
    found = dict(zip(names, zip(*cells, strict=True), strict=True))
    assert found["Dopamine's later"][:2] == ("2", "2.00 [−10.7, 14.7]")
    for name, mean in (("0 to 4", "12.0"), ("5 to 9", "17.0"), ("20 to 24", "22.0")):
        assert found[f"ours, seeds {name}"][3].startswith(f"{mean} [")
    for name, mean in (("10 to 14", "32.0"), ("15 to 19", "37.0")):
        assert found[f"ours, `sequential`, seeds {name}"][3].startswith(f"{mean} [")
    first = results.reference.dopamine_curve("breakout").returns[:, 2]
    both = np.array([*first, 14.0, 16.0])
    usual, waiting = np.array([*range(10, 20), *range(20, 25)], float), np.arange(30.0, 40.0)
    for name, values in (("ours, all 15", usual), ("ours, `sequential`, all 10", waiting)):
        value, low, high = statistics.welch(values, both)
        assert found[name][0] == str(len(values))
        assert found[name][4].strip("*") == results.shown(value, low, high)
        assert found[name][4].startswith("**") == (low > 0 or high < 0)
    own = statistics.welch(waiting, usual)
    assert found["ours, `sequential`, all 10"][5] == f"**{results.shown(*own)}**"
    assert found["Dopamine's first"][4:] == ("–", "–")


def test_a_table_without_results_says_what_it_awaits(results, capsys):
    before = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    results.main()
    page = (results.DOCS / "results.md").read_text(encoding="utf-8")
    awaited = "*Not yet run: awaits `results/minatar/scores.csv`.*"
    assert f"<!-- minatar-scores -->\n\n{awaited}\n\n<!-- end of minatar-scores -->\n" in page
    around = results.PLACE.split(before)  # the text, and between its pieces the names of the tables
    assert results.PLACE.split(page) == around
    assert "results.py: minatar-scores: Not yet run: awaits `results/minatar/scores.csv`.\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: text.rindex(",")] + "\n", "scores.csv' has 6 fields, where the heading has 7"),
        (
            lambda text: text.replace("final_score", "score"),
            "cannot be made: a table of the results lacks 'final_score'",
        ),
    ],
)
def test_a_damaged_table_is_named_and_the_page_left_as_it_was(results, damage, message):
    write_scores(results)
    scores = results.RESULTS / "minatar" / "scores.csv"
    scores.write_text(damage(scores.read_text()))
    with pytest.raises(UserError, match=message):
        results.main()
    assert texts(results, results.DOCS) == texts(results, ROOT / "docs")


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        (["", ""], "no place for the table 'scores'"),
        (
            ["<!-- scores -->\n<!-- end of scores -->\n", "<!-- more -->\n<!-- end of more -->\n"],
            "a place for the table 'more'",
        ),
    ],
)
def test_the_pages_must_have_a_place_for_each_table(results, pages, message):
    with pytest.raises(UserError, match=message):
        results.filled(pages, {"scores": lambda: "| a |\n"})


def test_the_table_beside_dopamines_has_its_figure_below_it_where_there_is_one(results):
    folder = results.RESULTS / "dopamine"
    folder.mkdir(parents=True)
    (folder / "dopamine.md").write_text("| game |\n")
    assert results.dopamine() == "| game |\n"
    picture = results.DOCS / "figures" / "results" / "dopamine-curves.png"
    picture.parent.mkdir(parents=True)
    picture.touch()
    assert "](figures/results/dopamine-curves.png)" in results.dopamine()


@pytest.mark.parametrize("study", ["minatar", "atari"])
def test_the_tables_of_a_report_are_taken_and_its_figures_with_the_names_of_the_page(results, tmp_path, study, capsys):
    for drawn in results.report_figures(study).values():
        path = tmp_path / "report" / "figures" / f"{drawn}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), "orange").save(path)
    for name in ("scores.csv", "features.csv"):
        (tmp_path / "report" / name).write_text("game,arm,seed,state\n")
    write_scores(results, study)
    results.main([f"--{study}", str(tmp_path / "report")])
    assert f"the report of {study} has 0 runs, the results had 36" in capsys.readouterr().err
    assert (results.RESULTS / study / "features.csv").read_text() == "game,arm,seed,state\n"
    taken = sorted(path.name for path in (results.DOCS / "figures" / "results").iterdir())
    assert taken == sorted(f"{study}-{name}.png" for name in results.report_figures(study))
    assert all(
        f"({path})" in results.figures(study) + results.feature_figures(study)
        for path in (f"figures/results/{name}" for name in taken)
    )


def drawn(results, study, *names):
    folder = results.DOCS / "figures" / "results"
    folder.mkdir(parents=True)
    for name in names:
        (folder / f"{study}-{name}.png").touch()


def test_a_figure_has_a_caption_with_its_seeds_and_what_its_band_is(results):
    write_scores(results)
    drawn(results, "minatar", "learning-curves", "differences")
    first, caption, second, words = results.figures("minatar").strip().split("\n\n")
    assert first == "![Learning curves](figures/results/minatar-learning-curves.png)"
    assert caption.endswith("mean over 6 seeds; band: 95 % bootstrap interval over seeds.*")
    assert second.startswith("![Final score less that of DQN]")
    assert "mean over 6 seeds; bars: Student's 95 % interval." in words


@pytest.mark.parametrize(("arms", "apart"), [(5, False), (6, True)])
def test_the_caption_of_learning_curves_says_where_each_arm_has_its_own_panels(results, arms, apart):
    folder = results.RESULTS / "minatar"
    folder.mkdir(parents=True)
    rows = [f"run{arm},minatar/breakout,arm{arm},0" for arm in range(arms)]
    (folder / "scores.csv").write_text("\n".join(["run,game,arm,seed", *rows, ""]))
    drawn(results, "minatar", "learning-curves")
    assert ("Learning curves, each arm beside DQN (dashed): mean" in results.figures("minatar")) == apart


def test_captions_of_few_seeds_name_no_interval_but_of_all_games_together(results):
    write_scores(results, "atari", ["qbert"], seeds=2)
    drawn(results, "atari", "learning-curves", "against-control")
    captions = results.figures("atari")
    assert "mean over 2 seeds; thin lines: the single seeds" in captions
    assert "less that of `norm (matched)`" in captions
    assert "mean over 2 seeds; small circles: the single seeds." in captions
    assert captions.count("95 %") == captions.count("of what DQN learns in each, with Student's 95 % interval") == 1


def test_scores_are_means_with_intervals_over_seeds(results):
    write_scores(results)
    lines = results.scores("minatar").splitlines()
    assert lines[0] == "| arm (6 seeds) | Breakout | Freeway |"
    assert lines[3].startswith("| `gram` | 2.25 [2.")


def columns(text):
    """A table by its columns: the cells under each heading."""
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines()]
    return {heading: [row[at] for row in rows[2:]] for at, heading in enumerate(rows[0])}


def test_differences_are_of_pairs_of_the_same_seed(results):
    write_scores(results)
    found = columns(results.against("minatar", "norm (matched)"))["`gram`"]
    # the seeds differ by as much as they are worth: of pairs, no spread is left
    assert found[:2] == ["**−0.500 [−0.500,\u00a0−0.500]**"] * 2
    assert found[3:] == ["0 [0,\u00a00]"] * 2


def test_differences_of_a_few_seeds_have_students_interval_and_their_wins_are_counted(results):
    folder = results.RESULTS / "atari"
    folder.mkdir(parents=True)
    scores = {"dqn": ([100.0, 200.0, 300.0], [4.0]), "gram": ([150.0, 260.0, 290.0], [5.0])}
    lines = ["game,arm,seed,state,final_score,auc,random"]
    for arm, games in scores.items():
        for game, found in zip(("qbert", "seaquest"), games, strict=True):
            lines += [f"{game},{arm},{seed},done,{score},{-score},0" for seed, score in enumerate(found)]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    found = dict(zip(*columns(results.against("atari", "dqn")).values(), strict=True))
    ends = scipy.stats.ttest_1samp([50.0, 60.0, -10.0], 0).confidence_interval()
    assert found["Qbert"] == f"+33.3 [−{-ends.low:.1f},\u00a0+{ends.high:.0f}]"
    assert found["Seaquest"] == "+1.00"  # of one seed no interval is known
    assert found["together, %"] == "+20.8"  # the mean of 33.3 of 200 and 1 of 4
    assert (found["pairs won"], found["pairs won by area"]) == ("3 of 4", "1 of 4")
    assert results.scores("atari").startswith("| arm (1 to 3 seeds) | Qbert | Seaquest |")


def test_differences_by_area_have_the_control_beside_dqn(results):
    write_scores(results, "atari", ["qbert"], {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 2.5}, seeds=2)
    found = columns(results.by_area("atari"))
    assert list(found) == [
        "area",
        "`gram (0.082)` less `dqn`",
        "`norm (matched)` less `dqn`",
        "`gram (0.082)` less `norm (matched)`",
    ]
    # 0.5 less, and in percent of 1.05, DQN's final score, less 0.25
    wanted = ["**−0.500 [−0.500,\u00a0−0.500]**", "**−62.5 [−62.5,\u00a0−62.5]**", "0 of 2"]
    assert found["`gram (0.082)` less `norm (matched)`"] == wanted


def test_scores_at_earlier_moments_are_of_the_episodes_until_then(results, tmp_path):
    arms = {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 2.5}
    write_scores(results, "atari", ["qbert"], arms, seeds=2)
    lines = ["arm,game,seed,frames,return"]
    for arm, score in arms.items():  # in the second half every arm has the same
        for seed in range(2):
            lines += [f"{arm},qbert,{seed},{frames},{score}" for frames in range(1_000, 101_000, 1_000)]
            lines += [f"{arm},qbert,{seed},{frames},1" for frames in range(101_000, 201_000, 1_000)]
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    write_import(tmp_path / "theirs.csv", results.RESULTS / "atari" / "study")
    found = columns(results.moments("atari", (100_000, 200_000)))
    assert found["frames"] == ["0.1M", "0.2M"]
    # 1 in percent of DQN's 1 less 0.25
    assert found["`gram (0.082)` less `dqn`"] == ["**+133 [+133,\u00a0+133]**", "0 [0,\u00a00]"]
    assert found["`gram (0.082)` less `norm (matched)`"] == ["**−66.7 [−66.7,\u00a0−66.7]**", "0 [0,\u00a00]"]
    # halfway between norm (matched) and DQN by norm, 1.75 before the end
    write_sizes(results, {"dqn": 9.0, "gram (0.082)": 3.0, "norm (matched)": 1.0})
    found = columns(results.moments("atari", (100_000, 200_000)))
    assert found["`gram (0.082)` at equal ‖φ‖"] == ["**+33.3 [+33.3,\u00a0+33.3]**", "0 [0,\u00a00]"]


@pytest.mark.parametrize("lacks", ["study", "scores.csv"])
@pytest.mark.parametrize("name", ["atari-moments", "atari-twice"])
def test_a_table_of_other_runs_than_those_of_the_scores_is_not_made(results, name, lacks):
    shutil.copytree(ROOT / "results" / "atari", results.RESULTS / "atari")
    scores = results.RESULTS / "atari" / "scores.csv"
    if lacks == "study":
        shutil.rmtree(results.RESULTS / "atari" / "study" / "qbert-s2")
    else:
        scores.write_text("".join(row for row in scores.open() if not row.startswith("qbert,norm (matched),2,")))
    message = rf"'.*{lacks}' has no run of 'qbert', arm '.*', seed 2, which '.*' has; make it again"
    with pytest.raises(UserError, match=message):
        results.tables()[name]()


def test_a_grid_of_kappas_that_lacks_a_game_is_not_shown(results):
    shutil.copytree(ROOT / "results" / "atari" / "kappa", results.RESULTS / "atari" / "kappa")
    shutil.rmtree(results.RESULTS / "atari" / "kappa" / "breakout")
    message = "has the games space_invaders; it must have breakout, space_invaders"
    with pytest.raises(UserError, match=message):
        results.tuned("atari")


def test_a_grid_of_kappas_has_the_score_of_each_run_and_what_is_chosen(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "TUNED", ("qbert",))
    arms = {"dqn": 1.0, "gram:0.1": 2.0, "gram:1": 3.0, "gram:10": 1.5}
    lines = ["arm,game,seed,frames,return"]
    for arm, score in arms.items():  # by area the smallest κ, which is as good from the beginning, is the best
        for frames in range(1_000, 301_000, 1_000):
            early = 9.0 if arm == "gram:0.1" and frames <= 200_000 else 1.0
            lines += [f"{arm},qbert,{seed},{frames},{score + seed if frames > 200_000 else early}" for seed in range(2)]
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    write_import(tmp_path / "theirs.csv", results.RESULTS / "atari" / "kappa")
    found = columns(results.tuned("atari"))
    assert found["arm"] == ["`dqn`", "`gram`, κ = 0.1", "`gram`, κ = 1", "`gram`, κ = 10"]
    assert found["Qbert, seeds 0, 1"] == ["1.00, 2.00", "2.00, 3.00", "3.00, 4.00", "1.50, 2.50"]
    assert found["score"] == ["0", "0.500", "1.00", "0.250"]
    assert found["chosen by"] == ["–", "area", "score", "–"]


def test_the_share_of_each_game_stands_beside_the_mean_with_and_without_the_largest(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    path = results.RESULTS / "atari" / "scores.csv"
    path.write_text(path.read_text().replace("qbert,gram (0.082),0,done,2.0", "qbert,gram (0.082),0,done,4.0"))
    assert results.shares("atari").startswith(results.AWAITED)
    write_sizes(results, SIZES_ON_ATARI)
    by_score, by_area = map(columns, results.shares("atari").split("\n\n"))
    assert by_score.pop("score of `gram (0.082)`, %") == ["Asterix", "Qbert", "together", "without Qbert"]
    # DQN learns 1.05 less 0.25 in either game; the control is halfway between the two norm penalties
    assert {name: [float(cell.strip("*").split()[0]) for cell in cells] for name, cells in by_score.items()} == {
        "over DQN": [125.0, 250.0, 188.0, 125.0],
        "over `norm (matched)`": [62.5, 188.0, 125.0, 62.5],
        "over `norm (0.1)`": [93.8, 219.0, 156.0, 93.8],
        "at equal ‖φ‖": [78.1, 203.0, 141.0, 78.1],
    }
    assert next(iter(by_area)) == "area of `gram (0.082)`, %"


def write_sizes(results, sizes, study="atari"):
    """Feature norms by arm, the same in all runs, and standard deviations that are half of them."""
    with (results.RESULTS / study / "scores.csv").open() as stream:
        runs = list(csv.DictReader(stream))
    lines = ["game,arm,seed,state,training_norm,training_std_sum,held_out_std_sum"]
    for run in runs:
        size = sizes[run["arm"]]
        lines.append(f"{run['game']},{run['arm']},{run['seed']},done,{size},{size / 2},{size / 3}")
    (results.RESULTS / study / "features.csv").write_text("\n".join(lines) + "\n")


def test_an_arm_stands_beside_a_control_at_equal_norm_and_at_equal_spread(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    write_sizes(results, SIZES_ON_ATARI)
    found = columns(results.equal_sizes("atari", "gram (0.082)", ["training_norm", "training_std_sum"]))
    assert found["`gram (0.082)`, %"][:3] == ["Asterix", "Qbert", "together"]
    for size in ("‖φ‖", "Σσ"):
        assert found[f"control at equal {size}"][:2] == ["0.50 norm (matched), 0.50 norm (0.1)"] * 2
        # halfway between 1.5 and 1.25 of scores, over the 0.8 that DQN learns
        assert [cell.strip("*").split()[0] for cell in found[f"score at equal {size}"]] == ["+78.1"] * 4


def test_arms_without_a_control_at_their_size_have_no_mean_over_the_games(results):
    arms = {"dqn": 1.0, "gram": 2.0, "decor": 2.0, "cross": 2.0, "norm": 1.5}
    write_scores(results, "minatar", ["minatar/asterix", "minatar/breakout"], arms, seeds=2)
    assert results.equal_sizes_as_one("minatar", ["gram", "decor"]).startswith(results.AWAITED)
    write_sizes(results, {"dqn": 9.0, "gram": 3.0, "decor": 3.0, "cross": 0.5, "norm": 1.0}, "minatar")
    found = columns(results.equal_sizes_as_one("minatar", ["gram", "decor"]))
    assert found["game"] == ["Asterix", "Breakout", "together, %"]
    for size in ("‖φ‖", "Σσ", "Σσ, held out"):
        game, _, together = (cell.strip("*").split()[0] for cell in found[f"score at equal {size}"])
        assert (game, together) == ("+0.750", "+93.8")
    assert columns(results.equal_sizes_as_one("minatar", ["cross"]))["score at equal ‖φ‖"] == ["–"] * 3


def test_a_game_without_a_control_is_not_the_largest_one(results):
    titles, pairs = ["Asterix", "Qbert", "Pong"], np.array([[np.nan, 1.0, -3.0], [np.nan, 1.0, -3.0]])
    assert list(results.parts_of(titles, pairs)) == [*titles, "together", "without Pong"]


def test_scores_and_features_of_other_runs_are_refused(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    write_sizes(results, SIZES_ON_ATARI)
    path = results.RESULTS / "atari" / "features.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "qbert" not in line))
    with pytest.raises(UserError, match="are not of the same runs"):
        results.shares("atari")


def test_the_size_of_a_run_that_diverged_does_not_count(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    write_sizes(results, SIZES_ON_ATARI)
    before = results.shares("atari")
    path = results.RESULTS / "atari" / "features.csv"
    path.write_text(path.read_text().replace("asterix,norm (0.1),0,done,9.0,", "asterix,norm (0.1),0,diverged,1e30,"))
    assert "diverged" in path.read_text()
    assert results.shares("atari") == before


def test_the_middle_control_is_laid_beside_a_line_between_the_outer_ones(results):
    arms = {"dqn": 1.0, "gram": 2.0, "norm": 1.5, "norm (matched)": 2.25}
    for study in ("minatar", "minatar/first"):
        write_scores(results, study, ["minatar/asterix", "minatar/breakout"], arms, seeds=2)
        assert results.straight("minatar/first", "minatar").startswith(results.AWAITED)
        write_sizes(results, {"dqn": 9.0, "gram": 2.0, "norm": 1.0, "norm (matched)": 3.0}, study)
    found = columns(results.straight("minatar/first", "minatar"))
    for which in ("first set", "main set", "mean of both"):
        cells = [cell.strip("*").split()[0] for cell in found[f"score, {which}"]]
        assert cells == ["+1.00", "+1.00", "+125"]
    assert found["game, the one between"][0] == "Asterix, `norm (matched)`, 50\N{NO-BREAK SPACE}%"


def test_the_middle_control_of_one_set_of_runs_has_no_other_set_beside_it(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    write_sizes(results, SIZES_ON_ATARI)
    found = columns(results.straight("atari"))
    assert list(found) == ["game, the one between", "score", "area"]
    assert found["game, the one between"][0] == "Asterix, `norm (0.1)`, 67\N{NO-BREAK SPACE}%"
    # two thirds of the way from 1.5 to 1
    assert found["score"][0].strip("*").split()[0] == "+0.083"


def test_the_share_of_a_control_is_shown_without_each_seed(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    write_sizes(results, SIZES_ON_ATARI)
    path = results.RESULTS / "atari" / "features.csv"
    path.write_text(path.read_text().replace("asterix,norm (0.1),0,done,9.0,", "asterix,norm (0.1),0,done,27.0,"))
    path.write_text(path.read_text().replace("qbert,gram (0.082),0,done,3.0,", "qbert,gram (0.082),0,done,0.1,"))
    path.write_text(path.read_text().replace("qbert,gram (0.082),1,done,3.0,", "qbert,gram (0.082),1,done,0.1,"))
    found = columns(results.mixtures("atari", "gram (0.082)", ["training_norm"]))
    assert found["`gram (0.082)`"] == ["Asterix, ‖φ‖", "Qbert, ‖φ‖", "together, %, ‖φ‖"]
    # log 3 of log 27 and of log 9, and of their mean; features smaller than those of all have no control
    assert found["share of the larger control"] == ["0.40", "–", ""]
    assert found["without each seed"] == ["0.50, 0.33", "–", ""]
    # 2 less what lies between 1.5 and 1.25
    assert found["with the least shares"][0].strip("*").startswith("+0.583 ")
    assert found["with the most"][0].strip("*").startswith("+0.625 ")
    assert found["score"][-1] == "–"  # Qbert has no control


def test_arms_at_equal_size_are_shown_in_both_sets(results):
    arms = {"dqn": 1.0, "gram": 2.0, "decor": 2.0, "gram-unbiased": 3.0, "norm (matched)": 1.5}
    sizes = {"dqn": 9.0, "gram": 3.0, "decor": 3.0, "gram-unbiased": 3.0, "norm (matched)": 1.0}
    for study, above in (("minatar", 0.0), ("minatar/first", 1.0)):
        own = arms | {"gram": arms["gram"] + above, "decor": arms["decor"] + above}
        write_scores(results, study, ["minatar/asterix", "minatar/freeway"], own, seeds=2)
        write_sizes(results, sizes, study)
    found = columns(results.equal_in_both_sets("minatar", "minatar/first", "Freeway"))
    first, main, both = (found[f"Freeway, {which}"][0] for which in ("first set", "main set", "mean of both"))
    assert [cell.strip("*").split()[0] for cell in (first, main, both)] == ["+1.75", "+0.750", "+1.25"]


def test_a_game_of_one_seed_is_put_together_with_the_others_without_an_interval(results):
    arms = {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 2.5}
    write_scores(results, "atari", ["asterix", "qbert"], arms, seeds=2)
    path = results.RESULTS / "atari" / "scores.csv"
    rows = path.read_text().splitlines()
    path.write_text("\n".join(row for row in rows if not row.startswith("qbert") or ",1,done" not in row) + "\n")
    for found in (columns(results.against("atari", "dqn")), columns(results.by_area("atari"))):
        names = next(iter(found.values()))
        assert names[2:4] == ["together, %", "together but Qbert, %"]
        alone = next(cells for name, cells in found.items() if name.startswith("`gram"))
        assert "[" not in alone[2]
        assert "[" in alone[3]


def test_runs_that_were_made_twice_are_compared_at_the_frames_of_the_first_time(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "EARLIER_FRAMES", 100_000)
    arms = {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 2.5}
    (results.RESULTS / "atari" / "first").mkdir(parents=True)
    rows = ["game,arm,seed,state,final_score,auc,random"]
    rows += [
        f"{game},{arm},2,done,{10 * score},{score},0" for game in ("asterix", "qbert") for arm, score in arms.items()
    ]
    (results.RESULTS / "atari" / "first" / "scores.csv").write_text("\n".join(rows) + "\n")
    lines = ["arm,game,seed,frames,return"]
    for arm, score in arms.items():  # what comes later, and another seed, do not count
        lines += [f"{arm},asterix,2,{frames},{score}" for frames in range(1_000, 101_000, 1_000)]
        lines += [f"{arm},asterix,2,{frames},1" for frames in range(101_000, 201_000, 1_000)]
        lines += [f"{arm},asterix,0,{frames},7" for frames in range(1_000, 201_000, 1_000)]
    known = ["game,arm,seed", *(f"asterix,{arm},{seed}" for arm in arms for seed in (0, 2))]
    (results.RESULTS / "atari" / "scores.csv").write_text("\n".join(known) + "\n")
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    write_import(tmp_path / "theirs.csv", results.RESULTS / "atari" / "study")
    found = columns(results.twice("atari", "atari/first"))
    assert found["seed 2, 0.1M frames"][0] == "Asterix, `gram (0.082)` less `dqn`"
    assert found["final score, first time"][0] == "+10.0"
    assert found["final score, second time"] == ["+1.00", "+1.50", "−0.500", "–", "–", "–"]
    assert found["area, first time"][0] == found["area, second time"][0] == "+1.00"


def write_spread(results, spread):
    """Scores of ten seeds whose differences to DQN are not the same."""
    folder = results.RESULTS / "minatar"
    folder.mkdir(parents=True)
    lines = ["game,arm,seed,state,final_score,auc,random,training_norm"]
    for seed, more in enumerate(spread):
        lines += [f"minatar/freeway,dqn,{seed},done,{seed},1,0,{seed}"]
        lines += [f"minatar/freeway,gram,{seed},done,{seed + more},1,0,{seed + more}"]
    for name in ("scores.csv", "features.csv"):
        (folder / name).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("table", ["scores", "features"])
def test_differences_of_many_seeds_have_students_interval_too(results, table):
    spread = [0.5, 1.5, 4.0, -1.0, 2.5, 3.0, 0.0, 6.0, 1.0, 2.0]
    write_spread(results, spread)
    ends = scipy.stats.ttest_1samp(spread, 0).confidence_interval()
    if table == "scores":
        found = columns(results.against("minatar", "dqn"))["`gram`"][0]
    else:
        found = columns(results.feature_differences("minatar"))["‖φ‖ in training"][0]
    assert found == f"**+1.95 [+{ends.low:.3f},\u00a0+{ends.high:.2f}]**"


def test_a_difference_that_the_bootstrap_alone_tells_from_0_is_not_bold(results):
    spread = [3.2, 3.2, 3.2, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    write_spread(results, spread)
    drawn = np.random.default_rng(0).choice(spread, (2_000, 10)).mean(axis=1)
    assert np.quantile(drawn, 0.025) > 0
    assert "**" not in columns(results.against("minatar", "dqn"))["`gram`"][0]


def test_games_are_put_together_in_percent_of_what_dqn_learns(results):
    write_scores(results)
    found = columns(results.against("minatar", "dqn"))
    # of 1.25 on average, 0.25 is what random play has: a difference of 1 is all that DQN learns
    assert found["`gram`"][found["less `dqn`"].index("together, %")] == "**+100 [+100,\u00a0+100]**"


def test_some_arms_alone_can_be_compared(results):
    write_scores(results)
    assert list(columns(results.against("minatar", "gram", ["dqn"]))) == ["less `gram`", "`dqn`"]


def test_what_can_be_detected_is_what_a_t_test_finds_four_times_of_five(results):
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(10, 1))
    least = results.detectable(noise * 2.0 / noise.std(ddof=1))
    trials = generator.normal(least, 2.0, size=(4_000, 10))
    assert np.mean(scipy.stats.ttest_1samp(trials, 0, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.03)


def test_both_sets_of_runs_stand_side_by_side(results):
    write_scores(results)
    write_scores(results, "minatar/first", arms=ARMS | {"gram": 4.0})
    found = columns(results.repeated("minatar", "minatar/first"))
    assert found["game, arm"][:2] == ["Breakout, `gram`", "Breakout, `norm (matched)`"]
    assert found["less `dqn`, first set"][0] == "**+3.00 [+3.00,\u00a0+3.00]**"
    assert found["less `dqn`, main set"][0] == "**+1.00 [+1.00,\u00a0+1.00]**"
    assert found["less `norm (matched)`, main set"][1] == "–"


def test_both_sets_of_runs_are_compared_by_area_too(results):
    arms = ARMS | {"decor": 2.0, "gram-unbiased": 3.0}
    write_scores(results, games=["minatar/freeway"], arms=arms)
    write_scores(results, "minatar/first", ["minatar/freeway"], arms)
    found = columns(results.repeated_area("minatar", "minatar/first"))
    assert found["game, arm"][:2] == ["Freeway, `gram` and `decor`", "Freeway, `gram-unbiased`"]
    rows = results.read(results.RESULTS / "minatar" / "scores.csv")
    areas = {arm: float(next(row["auc"] for row in rows if row["arm"] == arm)) for arm in arms}
    assert found["less `dqn`, main set"][1].startswith(f"**+{areas['gram-unbiased'] - areas['dqn']:.2f} ")


def test_two_sets_of_runs_are_put_together_seed_by_seed(results):
    arms = ARMS | {"decor": 2.0}
    write_scores(results, games=["minatar/freeway"], arms=arms)
    write_scores(results, "minatar/first", ["minatar/freeway"], arms | {"gram": 4.0})
    found = columns(results.repeated_both("minatar", "minatar/first"))
    # gram and decor are 4 and 2 in the first runs, 2 and 2 in the others; dqn is 1, and has learned 1
    assert found["less `dqn`, mean of both"] == [
        "**+1.50 [+1.50,\u00a0+1.50]**",
        "**+150 [+150,\u00a0+150]**",
    ]


def test_a_set_of_runs_that_is_not_there_is_awaited(results):
    write_scores(results)
    awaited = "*Not yet run: awaits `results/minatar/first/scores.csv`, `results/minatar/scores.csv`.*\n"
    assert results.repeated("minatar", "minatar/first") == awaited
    assert results.repeated_both("minatar", "minatar/first") == awaited


def test_measures_of_trained_agents_stand_by_arm_and_as_differences_of_pairs(results):
    folder = results.RESULTS / "minatar"
    folder.mkdir(parents=True)
    lines = ["run,game,arm,seed,agent_steps,measure,value"]
    for measure in results.MEASURES:
        lines += [
            f"r,minatar/seaquest,{arm},{seed},9,{measure},{mean + seed}"
            for arm, mean in ARMS.items()
            for seed in range(4)
        ]
    (folder / "measures.csv").write_text("\n".join(lines) + "\n")
    found = columns(results.measures("minatar", "minatar/seaquest"))
    by_line = dict(zip(found["Seaquest, 4 seeds"], found["effective rank"], strict=True))
    assert by_line["`gram`"].startswith("3.50 [")
    # the seeds differ by as much as they are worth: of pairs, no spread is left
    assert by_line["`gram` less `dqn`"] == "**+1.00 [+1.00,\u00a0+1.00]**"


def test_a_pilot_shows_how_far_each_arm_is_from_the_norm_of_gram(results):
    (results.RESULTS / "atari").mkdir(parents=True)
    norms = {
        ("pong", "gram (0.082)"): 1,
        ("pong", "norm (0.5)"): 2,
        ("qbert", "gram (0.082)"): 4,
        ("qbert", "norm (0.5)"): 2,
    }
    lines = [f"{game},{arm},100,done,{norm}" for (game, arm), norm in norms.items()]
    (results.RESULTS / "atari" / "pilot.csv").write_text(
        "\n".join(["game,arm,seed,state,training_norm", *lines]) + "\n"
    )
    found = results.pilot("atari").splitlines()
    assert found[0] == "| arm | Pong | Qbert | geometric mean | sum of squared log-ratios |"
    assert found[3] == "| `norm (0.5)` | 2.00 (× 2.00) | 2.00 (× 0.50) | 2.00 (× 1.00) | 0.961 |"


def test_the_table_of_norms_ranks_the_arms_means(results):
    write_scores(results)
    lines = ["game,arm,seed,state,training_norm"]
    for game in ("minatar/breakout", "minatar/freeway"):
        lines += [f"{game},{arm},{seed},done,{9 - mean}" for arm, mean in ARMS.items() for seed in range(4)]
    (results.RESULTS / "minatar" / "features.csv").write_text("\n".join(lines) + "\n")
    assert results.norms("minatar", "minatar/first").splitlines()[2] == "| Breakout | – | −1.00 |"


def test_features_are_compared_by_pairs(results):
    folder = results.RESULTS / "minatar"
    folder.mkdir(parents=True)
    lines = ["game,arm,seed,state,training_norm"]
    lines += [f"minatar/freeway,{arm},{seed},done,{mean + seed}" for arm, mean in ARMS.items() for seed in range(4)]
    (folder / "features.csv").write_text("\n".join(lines) + "\n")
    first, second = results.feature_differences("minatar").split("\n\n")
    assert columns(first)["‖φ‖ in training"] == ["**+1.00 [+1.00,\u00a0+1.00]**"]
    assert next(iter(columns(second))) == "`gram` less `norm (matched)`"
    assert columns(second)["‖φ‖ in training"] == ["**−0.500 [−0.500,\u00a0−0.500]**"]


def test_a_damaged_table_is_refused(results):
    write_scores(results)
    path = results.RESULTS / "minatar" / "scores.csv"
    path.write_text(path.read_text()[:-3])
    with pytest.raises(UserError, match=r"line 37 of the table '.*scores.csv' does not end with a newline"):
        results.scores("minatar")


def test_the_page_of_claims_has_the_differences_of_all_games_together(results, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", ROOT / "results")
    (line,) = [line for line in results.by_area("atari").splitlines() if line.startswith("| together, % |")]
    for cell, (arm, other) in zip(
        line.strip("| ").split(" | ")[1:],
        results.with_control(["dqn", "gram", results.CHOSEN, "norm (0.1)", "norm (matched)"]),
        strict=True,
    ):
        found = scores("atari/scores.csv", arm, other, "area_difference").number(Tables(ROOT / "results"))
        assert cell == results.interval_text(results.Interval(found.value, found.low, found.high), sign=True)


def test_the_committed_tables_are_those_of_the_committed_results(results, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", ROOT / "results")
    monkeypatch.setattr(results, "DOCS", ROOT / "docs")
    pages = texts(results, ROOT / "docs")
    assert results.filled(pages, results.tables()) == pages
