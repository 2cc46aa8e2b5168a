import re
import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import polars as pl
import pytest

from benchmarks.synthetic_study import write_analysis, write_study
from gramian.cli.report import ImportOptions, ReportOptions, import_command, report_command
from gramian.core.errors import UserError
from gramian.report import Options, build
from gramian.report.build import LIST
from gramian.representation.dynamics import growth, read_columns
from gramian.study.store import write_import
from tests.report.conftest import HOSTILE
from tests.report.studies import invent, peaked, tuning
from tests.study.studies import planned_part

FIGURES = {"learning-curves", "median-and-iqm", "profiles", "auc-gain", "differences", "feature-norm",
           "feature-cross", "feature-std", "grad-norm-body", "grad-norm-head", "td-error", "sparsity",
           "features-Alien", "features-Pong", "features-Seaquest"}  # fmt: skip


def test_a_report_is_a_page_figures_and_tables(small_report):
    assert {path.name for path in small_report.iterdir()} == {
        "index.html", "figures", "features.csv", "scores.csv", "table.md", "table.tex", LIST,
    }  # fmt: skip
    assert {path.name for path in (small_report / "figures").iterdir()} == {
        f"{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")
    }


@pytest.mark.slow
def test_the_same_study_gives_the_same_bytes(small_study, small_report, tmp_path):
    build(small_study, tmp_path, Options(replicates=100, title="A small study"))
    for path in sorted(small_report.rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / path.relative_to(small_report)).read_bytes(), path.name


def test_scores_csv_has_every_run(small_report):
    scores = pl.read_csv(small_report / "scores.csv")
    assert scores.height == 3 * 3 * 3
    assert scores.columns[:8] == ["game", "arm", "seed", "run", "state", "frames", "episodes", "final_score"]


def test_features_csv_has_means_of_the_last_quarter_of_every_run_and_growths_of_its_gradient(small_study, small_report):
    features = pl.read_csv(small_report / "features.csv")
    assert features.height == 3 * 3 * 3
    assert (features["frames"] > 0).all()
    run = features.row(0, named=True)
    (log,) = small_study.rglob(f"{run['run']}/metrics.csv")
    logged = read_columns(log)
    last = slice(-max(1, round(len(logged["feature_norm"]) / 4)), None)
    for name, metric in (("training_norm", "feature_norm"), ("training_active", "active_features")):
        assert run[name] == pytest.approx(logged[metric][last].mean())
    expected = growth(logged)
    assert {name: run[name] for name in expected} == pytest.approx(expected)


def test_the_page_holds_everything_that_it_needs(small_report):
    page = (small_report / "index.html").read_text()
    assert "Content-Security-Policy" in page
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)  # plotly's own sources name addresses
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:)""", markup)
    assert "@import" not in markup
    assert "url(" not in markup
    assert page.count("plotly.js v") == 1


@pytest.mark.slow
def test_the_page_of_the_papers_size_is_below_15_mb(tmp_path):
    from gramian.report.analysis import analyse
    from gramian.report.features import dynamics, feature_table, growths, read_representation
    from gramian.report.page import Page
    from gramian.report.tables import score_table
    from gramian.study.store import read_study

    generator = np.random.default_rng(0)
    study = read_study(write_study(tmp_path / "study", episodes=300, metric_rows=80, generator=generator))
    analyzed = write_analysis(tmp_path / "analysis", games=49, generator=generator)
    analysis = analyse(study, Options(replicates=100))
    features = dynamics(study, dict(zip(analysis.games, analysis.horizon.tolist(), strict=True)))
    trained = read_representation(analyzed, set(study.runs.select("game", "arm").iter_rows()))
    grown = growths(feature_table(study))
    whole = Page("the paper's size", study, analysis, features, score_table(analysis), grown, trained)
    page = whole.html()
    assert (len(analysis.games), len(analysis.arms), len(analysis.seeds)) == (49, 3, 3)
    assert len(page.encode()) < 15e6


def test_a_hostile_name_is_text_in_every_file(hostile_report):
    page = (hostile_report / "index.html").read_text()
    assert "alert(1)" in page
    assert HOSTILE not in page
    assert "<img" not in page
    assert HOSTILE not in (hostile_report / "table.md").read_text()
    assert r"\textless{}script\textgreater{}" in (hostile_report / "table.tex").read_text()
    assert r"\$x\_1\$ \& \textless{}/style" in (hostile_report / "table.tex").read_text()
    for path in (hostile_report / "figures").glob("*.svg"):
        tree = ET.parse(path)
        assert not [node for node in tree.iter() if node.tag.endswith(("script", "img"))]


def test_markdown_rows_have_as_many_cells_as_the_heading(hostile_report, small_report):
    for report in (hostile_report, small_report):
        rows = [line for line in (report / "table.md").read_text().splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_the_scores_of_the_page_have_their_intervals_below_them(small_report):
    scores = section((small_report / "index.html").read_text(), "scores")
    cells = re.findall(r"<td data-value=[^>]*><span>([^<]*)</span> <span class=\"ends\">\[([^<]*)\]</span>", scores)
    assert len(cells) == 3 * 3
    for mean, ends in cells:
        low, high = (float(end.replace(",", "")) for end in ends.split(", "))
        assert low <= float(mean.replace(",", "")) <= high
    assert "±" not in scores


def test_the_tables_say_what_to_read_with_care(small_report):
    assert "At most 3 seeds a cell" in (small_report / "table.md").read_text()
    assert "% At most 3 seeds a cell" in (small_report / "table.tex").read_text()


def test_a_report_can_lie_inside_its_study_and_be_made_again(tmp_path):
    write_study(tmp_path, games=["Pong"], seeds=1, episodes=20, metric_rows=0, generator=np.random.default_rng(0))
    for _ in range(2):
        build(tmp_path, tmp_path / "report", Options(replicates=100))
    assert (tmp_path / "report" / "index.html").exists()


def test_a_study_without_metrics_has_no_feature_section(tmp_path):
    write_study(tmp_path, games=["Pong"], seeds=1, episodes=20, metric_rows=0, generator=np.random.default_rng(0))
    page = build(tmp_path, tmp_path / "report", Options(replicates=100)).read_text()
    assert 'id="features"' not in page
    assert not (tmp_path / "report" / "figures" / "feature-norm.png").exists()


def test_a_folder_without_runs_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(UserError, match="there is no run below"):
        build(tmp_path, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_an_output_that_is_a_file_is_refused(small_study, tmp_path):
    (tmp_path / "report").write_text("mine")
    with pytest.raises(UserError, match="it is a file"):
        build(small_study, tmp_path / "report")
    assert (tmp_path / "report").read_text() == "mine"


def test_an_imported_table_becomes_a_report(tmp_path, capsys):
    rows = [f"{arm},Pong,{seed},{at * 100},{at}" for arm in ("dqn", "ours") for seed in (0, 1) for at in range(1, 9)]
    (tmp_path / "theirs.csv").write_text("arm,game,seed,frames,return\n" + "\n".join(rows) + "\n")
    assert import_command(ImportOptions(table=tmp_path / "theirs.csv", out=tmp_path / "study")) == 0
    options = ReportOptions(folder=tmp_path / "study", out=tmp_path / "report", replicates=100)
    assert report_command(options) == 0
    assert "4 runs, 32 rows" in capsys.readouterr().err
    assert "theirs.csv" in (tmp_path / "report" / "index.html").read_text()


def test_a_study_without_games_of_the_paper_does_not_speak_of_it(tmp_path):
    (tmp_path / "theirs.csv").write_text("arm,game,seed,frames,return\ndqn,mine,0,100,1\nours,mine,0,100,2\n")
    import_command(ImportOptions(table=tmp_path / "theirs.csv", out=tmp_path / "study"))
    page = build(tmp_path / "study", tmp_path / "report", Options(replicates=100)).read_text()
    assert 'data-overlay="paper"' not in page
    assert "Open markers" not in page


def section(page, name):
    return page[page.index(f'<section id="{name}"') :].split("</section>")[0]


def report_on(tmp_path, finals):
    """The page of an imported study of Pong: one final score for each arm and seed."""
    rows = [f"{arm},Pong,{seed},1000,{score}" for (arm, seed), score in finals.items()]
    (tmp_path / "theirs.csv").write_text("arm,game,seed,frames,return\n" + "\n".join(rows) + "\n")
    write_import(tmp_path / "theirs.csv", tmp_path / "study", rows="points")
    return build(tmp_path / "study", tmp_path / "report", Options()).read_text()


def test_the_summary_counts_pairs_of_the_same_seed(tmp_path):
    levels = {0: -20, 1: -10, 2: 0, 3: 10}
    finals = {("dqn", seed): level for seed, level in levels.items()}
    finals |= {("ours", seed): level + (1 if seed else -1) for seed, level in levels.items()}
    page = report_on(tmp_path, finals)
    summary = section(page, "summary")
    assert "it wins 75 % [25, 100] of 4 pairs of the same game and seed." in summary.replace("\N{NO-BREAK SPACE}", " ")
    assert "P(improvement)" not in summary
    # of the 16 pairs of any seeds 6 + 3 are won
    assert '<td>ours</td><td class="number">0.562 [' in section(page, "overall")


def test_without_pairs_the_summary_compares_all_runs(tmp_path):
    finals = {("dqn", 0): 1, ("dqn", 1): 2, ("ours", 2): 3, ("ours", 3): 4}
    summary = section(report_on(tmp_path, finals), "summary")
    assert "there are no pairs of the same seed; a run of it beats one of dqn with probability 1.000 [" in summary


def test_a_report_that_mixes_presets_says_so_on_the_terminal_and_on_the_page(tmp_path, capsys):
    generator = np.random.default_rng(0)
    for part, game in (("a", "Pong"), ("b", "Alien")):
        write_study(tmp_path / part, games=[game], seeds=1, episodes=20, metric_rows=0, generator=generator)
    options = ReportOptions(folder=tmp_path, out=tmp_path / "report", replicates=100)
    assert report_command(options) == 0
    assert "mixed" not in capsys.readouterr().err
    for path in (tmp_path / "b").rglob("config.toml"):
        path.write_text(path.read_text().replace('preset = "author"', 'preset = "other"'))
    assert report_command(options) == 0
    said = "Runs of different presets are mixed: author, other."
    assert capsys.readouterr().err.splitlines()[0] == (
        f"gramian: {said[:-1]}; name the folder of one study, unless that is meant"
    )
    assert said in (tmp_path / "report" / "index.html").read_text()


def test_cells_that_are_in_no_part_of_the_study_are_said_on_the_terminal(tmp_path, capsys):
    text = tuning(("breakout", "freeway", "asterix"), ("seaquest",))
    for game in ("breakout", "freeway"):
        invent(tmp_path / game, text, peaked, plan=partial(planned_part, games=[f"minatar/{game}"]))
    assert report_command(ReportOptions(folder=tmp_path, out=tmp_path / "report", replicates=100)) == 0
    said = "in no part of the study: minatar/asterix (seeds 100, 101)"
    assert capsys.readouterr().err.splitlines()[0] == f"gramian: {said}"
    invent(tmp_path / "asterix", text, peaked, plan=partial(planned_part, games=["minatar/asterix"]))
    assert report_command(ReportOptions(folder=tmp_path, out=tmp_path / "report", replicates=100)) == 0
    assert "no part" not in capsys.readouterr().err


def test_a_report_on_points_does_not_speak_of_the_last_100_episodes(tmp_path):
    rows = "".join(f"{arm},mine,{s},{at},{at}\n" for arm in ("dqn", "a") for s in (0, 1) for at in (1, 2))
    (tmp_path / "theirs.csv").write_text("arm,game,seed,frames,return\n" + rows)
    write_import(tmp_path / "theirs.csv", tmp_path / "study", rows="points")
    build(tmp_path / "study", tmp_path / "report", Options(replicates=100))
    for name in ("index.html", "table.md", "table.tex"):
        text = (tmp_path / "report" / name).read_text()
        assert "last 100" not in text.split("<script>")[0]
        assert "ast point of the learning curve" in text
