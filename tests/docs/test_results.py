"""The tables of the pages of results: those that are committed, and some from made-up tables."""

import shutil

import numpy as np
import pytest
import scipy.stats
from PIL import Image

from docs import results as page
from gramian.claims import seeds
from gramian.claims.tables import Tables
from gramian.core.errors import UserError
from gramian.core.statistics import welch
from gramian.study.store import write_import
from tests.docs.pages import ROOT

ARMS = {"dqn": 1.0, "gram": 2.0, "norm (matched)": 2.5}
ON_ATARI = {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 1.5, "norm (0.1)": 1.25}
SIZES_ON_ATARI = {"dqn": 27.0, "gram (0.082)": 3.0, "norm (matched)": 1.0, "norm (0.1)": 9.0}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The module that writes the tables, with a folder of its own for what it reads and writes."""
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "DOCS", tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    for name in page.PAGES:
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    return page


def texts(folder):
    return [(folder / name).read_text(encoding="utf-8") for name in page.PAGES]


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


def write_sizes(results, sizes, study="atari"):
    """Sizes of the features of the runs of a study, by arm."""
    lines = [
        f"{run['game']},{run['arm']},{run['seed']},done,{sizes[run['arm']]},{sizes[run['arm']]},{sizes[run['arm']]}"
        for run in results.rows_of(study, "scores")
    ]
    header = "game,arm,seed,state,training_norm,training_std_sum,held_out_std_sum"
    write_table(results, study, "features", header, lines)


def columns(text):
    """A table by its columns: the cells under each heading."""
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines()]
    return {heading: [row[at] for row in rows[2:]] for at, heading in enumerate(rows[0])}


def estimates(cells):
    """The numbers of cells without their intervals."""
    return [cell.strip("*").split()[0] for cell in cells]


def test_the_committed_tables_are_those_of_the_committed_results():
    pages = texts(ROOT / "docs")
    assert page.filled(pages, page.tables()) == pages


def test_the_page_of_claims_has_the_differences_of_all_games_together():
    (line,) = [line for line in page.by_area("atari").splitlines() if line.startswith("| together, % |")]
    for cell, (arm, other) in zip(
        line.strip("| ").split(" | ")[1:],
        page.with_control(["dqn", "gram", page.CHOSEN, "norm (0.1)", "norm (matched)"]),
        strict=True,
    ):
        found = seeds.scores("atari/scores.csv", arm, other, "area_difference").number(Tables(ROOT / "results"))
        assert cell == page.interval_text(page.Interval(found.value, found.low, found.high), sign=True)


def test_differences_are_of_pairs_of_the_same_seed(results):
    write_scores(results)
    assert results.scores("minatar").splitlines()[3].startswith("| `gram` | 2.25 [2.")
    found = columns(results.against("minatar", "norm (matched)"))["`gram`"]
    assert found[:2] == ["**−0.500 [−0.500,\u00a0−0.500]**"] * 2
    assert found[3:] == ["0 [0,\u00a00]"] * 2
    assert list(columns(results.against("minatar", "gram", ["dqn"]))) == ["less `gram`", "`dqn`"]


def test_differences_of_a_few_seeds_have_students_interval_and_their_wins_are_counted(results):
    scores = {"dqn": ([100.0, 200.0, 300.0], [4.0]), "gram": ([150.0, 260.0, 290.0], [5.0])}
    lines = [
        f"{game},{arm},{seed},done,{score},{-score},0"
        for arm, games in scores.items()
        for game, found in zip(("qbert", "seaquest"), games, strict=True)
        for seed, score in enumerate(found)
    ]
    write_table(results, "atari", "scores", "game,arm,seed,state,final_score,auc,random", lines)
    found = dict(zip(*columns(results.against("atari", "dqn")).values(), strict=True))
    ends = scipy.stats.ttest_1samp([50.0, 60.0, -10.0], 0).confidence_interval()
    assert found["Qbert"] == f"+33.3 [−{-ends.low:.1f},\u00a0+{ends.high:.0f}]"
    assert found["Seaquest"] == "+1.00"  # of one seed no interval is known
    assert found["together, %"] == "+20.8"  # the mean of 33.3 of 200 and 1 of 4
    assert found["together but Seaquest, %"].startswith("+16.7 [")
    assert (found["pairs won"], found["pairs won by area"]) == ("3 of 4", "1 of 4")
    assert results.scores("atari").startswith("| arm (1 to 3 seeds) | Qbert | Seaquest |")


def test_a_difference_that_the_bootstrap_alone_tells_from_0_is_not_bold(results):
    spread = [3.2, 3.2, 3.2, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    drawn = np.random.default_rng(0).choice(spread, (2_000, 10)).mean(axis=1)
    assert np.quantile(drawn, 0.025) > 0
    assert "**" not in results.difference(np.array(spread)[:, None])


def test_what_can_be_detected_is_what_a_t_test_finds_four_times_of_five(results):
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(10, 1))
    least = results.detectable(noise * 2.0 / noise.std(ddof=1))
    trials = generator.normal(least, 2.0, size=(4_000, 10))
    assert np.mean(scipy.stats.ttest_1samp(trials, 0, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.03)


def test_two_sets_of_runs_are_put_together_seed_by_seed(results):
    arms = ARMS | {"decor": 2.0}
    write_scores(results, games=["minatar/freeway"], arms=arms)
    write_scores(results, "minatar/first", ["minatar/freeway"], arms | {"gram": 4.0})
    # gram and decor are 4 and 2 in the first runs, 2 and 2 in the others; dqn is 1, and has learned 1
    found = columns(results.in_both_sets({"": results.PENALISED}))
    assert estimates(found["less `dqn`, mean of both"]) == ["+1.50", "+150"]
    found = columns(results.in_both_sets({}))
    at = found["game, arm"].index("Freeway, `gram`")
    assert estimates(found[f"less `dqn`, {which}"][at] for which in results.SETS) == ["+3.00", "+1.00", "+2.00"]
    assert "–" in found["less `norm (matched)`, main set"]


def test_scores_at_earlier_moments_are_of_the_episodes_until_then(results, tmp_path):
    arms = {"dqn": 1.0, "gram (0.082)": 2.0, "norm (matched)": 2.5}
    write_scores(results, "atari", ["qbert"], arms, seeds=2)
    # by norm, gram lies halfway between norm (matched) and DQN
    write_sizes(results, {"dqn": 9.0, "gram (0.082)": 3.0, "norm (matched)": 1.0})
    lines = ["arm,game,seed,frames,return"]
    for arm, score in arms.items():  # in the second half every arm has the same
        for seed in range(2):
            lines += [f"{arm},qbert,{seed},{frames},{score}" for frames in range(1_000, 101_000, 1_000)]
            lines += [f"{arm},qbert,{seed},{frames},1" for frames in range(101_000, 201_000, 1_000)]
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    write_import(tmp_path / "theirs.csv", results.RESULTS / "atari" / "study")
    found = columns(results.moments("atari", (100_000, 200_000)))
    assert found["frames"] == ["0.1M", "0.2M"]
    # 1 in percent of DQN's 1 minus 0.25
    assert estimates(found["`gram (0.082)` less `dqn`"]) == ["+133", "0"]
    assert estimates(found["`gram (0.082)` less `norm (matched)`"]) == ["−66.7", "0"]
    assert estimates(found["`gram (0.082)` at equal ‖φ‖"]) == ["+33.3", "0"]


def test_runs_that_were_made_twice_are_compared_at_the_frames_of_the_first_time(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "EARLIER_FRAMES", 100_000)
    arms = {"dqn": 1.0, "gram (0.082)": 2.0}
    rows = [f"asterix,{arm},2,done,{10 * score},{score},0" for arm, score in arms.items()]
    write_table(results, "atari/first", "scores", "game,arm,seed,state,final_score,auc,random", rows)
    lines = ["arm,game,seed,frames,return"]
    for arm, score in arms.items():  # what comes later, and another seed, do not count
        lines += [f"{arm},asterix,2,{frames},{score}" for frames in range(1_000, 101_000, 1_000)]
        lines += [f"{arm},asterix,2,{frames},1" for frames in range(101_000, 201_000, 1_000)]
        lines += [f"{arm},asterix,0,{frames},7" for frames in range(1_000, 201_000, 1_000)]
    known = [f"asterix,{arm},{seed}" for arm in arms for seed in (0, 2)]
    write_table(results, "atari", "scores", "game,arm,seed", known)
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    write_import(tmp_path / "theirs.csv", results.RESULTS / "atari" / "study")
    found = columns(results.twice("atari", "atari/first"))
    assert found["seed 2, 0.1M frames"] == ["Asterix, `gram (0.082)` less `dqn`"]
    assert found["final score, first time"] == ["+10.0"]
    assert found["final score, second time"] == found["area, second time"] == found["area, first time"] == ["+1.00"]


@pytest.mark.parametrize("lacks", ["study", "scores.csv"])
def test_a_table_of_other_runs_than_those_of_the_scores_is_not_made(results, lacks, tmp_path):
    write_scores(results, "atari", ["qbert"], {"dqn": 1.0}, seeds=2 if lacks == "study" else 1)
    lines = [
        f"dqn,qbert,{seed},{frames},1" for seed in range(1 if lacks == "study" else 2) for frames in (1_000, 2_000)
    ]
    (tmp_path / "theirs.csv").write_text("\n".join(["arm,game,seed,frames,return", *lines]) + "\n")
    write_import(tmp_path / "theirs.csv", results.RESULTS / "atari" / "study")
    message = rf"'.*{lacks}' has no run of 'qbert', arm 'dqn', seed 1, which '.*' has; make it again"
    with pytest.raises(UserError, match=message):
        results.exported("atari")


def test_a_grid_of_kappas_has_the_score_of_each_run_and_what_is_chosen(results, tmp_path, monkeypatch):
    arms = {"dqn": 1.0, "gram:0.1": 2.0, "gram:1": 3.0, "gram:10": 1.5}
    lines = ["arm,game,seed,frames,return"]
    for arm, score in arms.items():  # by area the smallest κ, which is as good from the beginning, is the best
        for frames in range(1_000, 301_000, 1_000):
            early = 9.0 if arm == "gram:0.1" and frames <= 200_000 else 1.0
            lines += [f"{arm},qbert,{seed},{frames},{score + seed if frames > 200_000 else early}" for seed in range(2)]
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    write_import(tmp_path / "theirs.csv", results.RESULTS / "atari" / "kappa")
    with pytest.raises(UserError, match="has the games qbert; it must have breakout, space_invaders"):
        results.tuned("atari")
    monkeypatch.setattr(results, "TUNED", ("qbert",))
    found = columns(results.tuned("atari"))
    assert found["arm"] == ["`dqn`", "`gram`, κ = 0.1", "`gram`, κ = 1", "`gram`, κ = 10"]
    assert found["Qbert, seeds 0, 1"] == ["1.00, 2.00", "2.00, 3.00", "3.00, 4.00", "1.50, 2.50"]
    assert found["score"] == ["0", "0.500", "1.00", "0.250"]
    assert found["chosen by"] == ["–", "area", "score", "–"]


def on_atari(results):
    write_scores(results, "atari", ["asterix", "qbert"], ON_ATARI, seeds=2)
    write_sizes(results, SIZES_ON_ATARI)


def test_an_arm_stands_beside_a_control_at_equal_size(results):
    on_atari(results)
    found = columns(results.equal_sizes("atari", "gram (0.082)", ["training_norm", "training_std_sum"]))
    assert found["`gram (0.082)`, %"][:3] == ["Asterix", "Qbert", "together"]
    for size in ("‖φ‖", "Σσ"):
        assert found[f"control at equal {size}"][:2] == ["0.50 norm (matched), 0.50 norm (0.1)"] * 2
        # halfway between 1.5 and 1.25 of scores, over the 0.8 that DQN learns
        assert estimates(found[f"score at equal {size}"]) == ["+78.1"] * 4
    by_score = columns(results.shares("atari").split("\n\n")[0])
    by_score.pop("score of `gram (0.082)`, %")
    assert {name: estimates(cells) for name, cells in by_score.items()} == {
        "over DQN": ["+125"] * 4,
        "over `norm (matched)`": ["+62.5"] * 4,
        "over `norm (0.1)`": ["+93.8"] * 4,
        "at equal ‖φ‖": ["+78.1"] * 4,
    }


def test_the_size_of_a_run_that_diverged_does_not_count_and_sizes_of_other_runs_are_refused(results):
    on_atari(results)
    before = results.shares("atari")
    path = results.RESULTS / "atari" / "features.csv"
    path.write_text(path.read_text().replace("asterix,norm (0.1),0,done,9.0,", "asterix,norm (0.1),0,diverged,1e30,"))
    assert "diverged" in path.read_text()
    assert results.shares("atari") == before
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "qbert" not in line))
    with pytest.raises(UserError, match="are not of the same runs"):
        results.shares("atari")


def test_arms_without_a_control_at_their_size_have_no_mean_over_the_games(results):
    arms = {"dqn": 1.0, "gram": 2.0, "decor": 2.0, "cross": 2.0, "norm": 1.5}
    write_scores(results, "minatar", ["minatar/asterix", "minatar/breakout"], arms, seeds=2)
    write_sizes(results, {"dqn": 9.0, "gram": 3.0, "decor": 3.0, "cross": 0.5, "norm": 1.0}, "minatar")
    found = columns(results.equal_sizes_as_one("minatar", ["gram", "decor"]))
    assert estimates(found["score at equal Σσ, held out"]) == ["+0.750", "+0.750", "+93.8"]
    assert columns(results.equal_sizes_as_one("minatar", ["cross"]))["score at equal ‖φ‖"] == ["–"] * 3
    pairs = np.array([[np.nan, 1.0, -3.0], [np.nan, 1.0, -3.0]])
    assert [*results.parts_of(["Asterix", "Qbert", "Pong"], pairs)][-1] == "without Pong"


def test_the_middle_control_is_laid_beside_a_line_between_the_outer_ones(results):
    on_atari(results)
    found = columns(results.straight("atari"))
    assert list(found) == ["game, the one between", "score", "area"]
    assert found["game, the one between"][0] == "Asterix, `norm (0.1)`, 67\N{NO-BREAK SPACE}%"
    # two thirds of the way from 1.5 to 1
    assert estimates(found["score"])[0] == "+0.083"


def test_the_share_of_a_control_is_shown_without_each_seed(results):
    on_atari(results)
    path = results.RESULTS / "atari" / "features.csv"
    text = path.read_text().replace("asterix,norm (0.1),0,done,9.0,", "asterix,norm (0.1),0,done,27.0,")
    for seed in range(2):
        text = text.replace(f"qbert,gram (0.082),{seed},done,3.0,", f"qbert,gram (0.082),{seed},done,0.1,")
    path.write_text(text)
    found = columns(results.mixtures("atari", "gram (0.082)", ["training_norm"]))
    # log 3 of log 27 and of log 9, and of their mean; features smaller than those of all have no control
    assert found["share of the larger control"] == ["0.40", "–", ""]
    assert found["without each seed"] == ["0.50, 0.33", "–", ""]
    # 2 minus what lies between 1.5 and 1.25
    assert found["with the least shares"][0].strip("*").startswith("+0.583 ")
    assert found["with the most"][0].strip("*").startswith("+0.625 ")
    assert found["score"][-1] == "–"  # Qbert has no control


def test_a_pilot_shows_how_far_each_arm_is_from_the_norm_of_gram(results):
    runs = [
        ("pong", "gram (0.082)", 1),
        ("pong", "norm (0.5)", 2),
        ("qbert", "gram (0.082)", 4),
        ("qbert", "norm (0.5)", 2),
    ]
    lines = [f"{game},{arm},100,done,{norm}" for game, arm, norm in runs]
    write_table(results, "atari", "pilot", "game,arm,seed,state,training_norm", lines)
    found = results.pilot("atari").splitlines()
    assert found[0] == "| arm | Pong | Qbert | geometric mean | sum of squared log-ratios |"
    assert found[3] == "| `norm (0.5)` | 2.00 (× 2.00) | 2.00 (× 0.50) | 2.00 (× 1.00) | 0.961 |"


def test_the_table_of_norms_ranks_the_arms_means(results):
    for study, sign in (("minatar", -1), ("minatar/first", 1)):
        write_scores(results, study)
        write_sizes(results, {arm: 9 + sign * mean for arm, mean in ARMS.items()}, study)
    assert results.norms().splitlines()[2] == "| Breakout | 1.00 | −1.00 |"


def breakout_runs(results, returns, folder=""):
    """Runs of Breakout by seed, with a mean return for each million."""
    lines = [
        f"breakout,{seed},done,abc,GPU,{million},{million}000000,9,{value}"
        for seed, values in returns.items()
        for million, value in enumerate(values, start=1)
    ]
    header = "game,seed,state,commit,device,million_frames,end_frames,episodes,mean_return"
    write_table(results, f"dopamine/{folder}", "dopamine-runs", header, lines)


def test_breakouts_third_million_is_compared_with_both_sets_of_dopamines_and_with_our_own(results):
    breakout_runs(results, {seed: [1.0, 5.0, 10.0 + seed, 99.0] for seed in range(10)})
    breakout_runs(results, {seed: [1.5, 5.5, seed] for seed in range(20, 25)}, "again")
    breakout_runs(results, {seed: [2.0, 6.0, 20.0 + seed] for seed in range(10, 20)}, "sequential")
    later = ["breakout,1,1.0,3.0", "breakout,2,5.0,7.0", "breakout,3,14.0,16.0"]
    write_table(results, "dopamine", "later-runs", "game,million_frames,run1,run2", later)
    names, *cells = columns(results.breakout()).values()
    found = dict(zip(names, zip(*cells, strict=True), strict=True))
    assert found["Dopamine's later"][:2] == ("2", "2.00 [−10.7, 14.7]")
    assert found["ours, seeds 20 to 24"][3].startswith("22.0 [")
    assert found["ours, `sequential`, seeds 15 to 19"][3].startswith("37.0 [")
    both = np.array([*results.reference.dopamine_curve("breakout").returns[:, 2], 14.0, 16.0])
    usual, waiting = np.array([*range(10, 20), *range(20, 25)], float), np.arange(30.0, 40.0)
    for name, values in (("ours, all 15", usual), ("ours, `sequential`, all 10", waiting)):
        assert found[name][0] == str(len(values))
        assert found[name][4].strip("*") == results.shown(*welch(values, both))
    assert found["ours, `sequential`, all 10"][5] == f"**{results.shown(*welch(waiting, usual))}**"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: text.rindex(",")] + "\n", "scores.csv' has 6 fields, where the heading has 7"),
        (lambda text: text[:-3], r"line 37 of the table '.*scores.csv' does not end with a newline"),
        (lambda text: text.replace("final_score", "score"), "a table of the results lacks 'final_score'"),
    ],
)
def test_a_damaged_table_is_named_and_the_page_left_as_it_was(results, damage, message, monkeypatch):
    made = {name: (lambda: results.scores("minatar")) for name in results.tables()}
    monkeypatch.setattr(results, "tables", lambda: made)
    write_scores(results)
    scores = results.RESULTS / "minatar" / "scores.csv"
    scores.write_text(damage(scores.read_text()))
    with pytest.raises(UserError, match=message):
        results.main()
    assert texts(results.DOCS) == texts(ROOT / "docs")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "no place for the table 'scores'"),
        ("<!-- more -->\n<!-- end of more -->\n", "a place for the table 'more'"),
    ],
)
def test_the_pages_must_have_a_place_for_each_table(results, place, message):
    with pytest.raises(UserError, match=message):
        results.filled([place], {"scores": lambda: "| a |\n"} if not place else {})


@pytest.mark.parametrize("study", ["minatar", "atari"])
def test_the_tables_of_a_report_are_taken_and_its_figures_with_the_names_of_the_page(results, tmp_path, study, capsys):
    for drawn in results.report_figures(study).values():
        path = tmp_path / "report" / "figures" / f"{drawn}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), "orange").save(path)
    for name in ("scores.csv", "features.csv"):
        (tmp_path / "report" / name).write_text("game,arm,seed,state\n")
    write_scores(results, study)
    results.take_report(tmp_path / "report", study)
    assert f"the report of {study} has 0 runs, the results had 36" in capsys.readouterr().err
    assert (results.RESULTS / study / "features.csv").read_text() == "game,arm,seed,state\n"
    taken = sorted(path.name for path in (results.DOCS / "figures" / "results").iterdir())
    assert taken == sorted(f"{study}-{name}.png" for name in results.report_figures(study))
    assert all(f"(figures/results/{name})" in "".join(texts(ROOT / "docs")) for name in taken)
