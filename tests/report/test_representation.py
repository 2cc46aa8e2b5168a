"""The analysis of a study's features in its report."""

import json
import re
import shutil
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.synthetic_study import write_study
from gramian.cli import main
from gramian.core.errors import UserError
from gramian.report import Options, build
from gramian.report.features import HEAT_CELLS, blocks, read_representation
from gramian.representation.dynamics import GROWTH
from gramian.representation.series import measure_texts
from gramian.representation.tables import Measure
from tests.representation.analyses import write_report

FIGURES = ("sparsity", "dynamics", "growth", "correlation", "spectrum")


def data(page, name):
    found = re.search(rf'<script type="application/json" id="data-{name}">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


@pytest.mark.slow
def test_figures_of_the_analysis_lie_beside_those_of_the_study(analyzed_report):
    drawn = {path.name for path in (analyzed_report / "figures" / "representation").iterdir()}
    games = ("Alien", "Pong")
    assert drawn == {f"{name}-{game}.{suffix}" for name in FIGURES for game in games for suffix in ("png", "svg")}


def test_the_page_has_histograms_sparsity_spectrum_correlations_and_measures(analyzed_report):
    alien, pong, seaquest = data((analyzed_report / "index.html").read_text(), "representation")
    assert [panel["title"].split(":")[0].split(" (")[0] for panel in pong["panels"]] == [
        "active features of a state", "activity of a feature", "sparsity", "eigenvalues of the covariance",
        "variance held by the first eigenvalues",
    ]  # fmt: skip
    assert set(pong["heat"]) == {"0", "1", "2"}
    assert dict(pong["measures"])["effective_rank"] == ["0.5 ± 0"] * 3
    assert alien is not None
    assert seaquest is None


def test_growth_of_the_heads_gradient_needs_no_analysis(small_report):
    page = (small_report / "index.html").read_text()
    assert len(data(page, "growth")[0]["0"]["m"]) == 3
    assert 'id="growth-figure"' in page
    assert 'id="representation"' not in page


def test_an_analysis_elsewhere_is_named(small_study, tmp_path):
    write_report(tmp_path / "elsewhere", games=("Pong",), arms=("dqn",))
    page = build(small_study, tmp_path / "report", Options(replicates=100), analysis_folder=tmp_path / "elsewhere")
    assert 'id="representation"' in page.read_text()


@pytest.mark.parametrize(
    ("games", "complaint"), [((), "holds no analysis; name a folder"), (("hero",), "is of other runs than the study's")]
)
def test_what_is_no_analysis_of_the_study_is_refused_and_nothing_is_written(small_study, tmp_path, games, complaint):
    if games:
        write_report(tmp_path / "elsewhere", games=games)
    with pytest.raises(UserError, match=complaint):
        build(small_study, tmp_path / "report", analysis_folder=tmp_path / "elsewhere")
    assert not (tmp_path / "report").exists()


def test_a_run_that_diverged_is_named_and_in_no_mean(small_study, tmp_path):
    folder = tmp_path / "analysis"
    write_report(folder, games=("Pong",), arms=("dqn", "gram:10.24"), value=0.5)
    text = (folder / "measures.csv").read_text()
    lines = [re.sub(r"[^,]+$", "nan", line) if line.startswith("Pong-dqn-s0,") else line for line in text.splitlines()]
    (folder / "measures.csv").write_text("\n".join(lines) + "\n")
    page = build(small_study, tmp_path / "report", Options(replicates=100), analysis_folder=folder).read_text()
    assert "Diverged, and in no mean: Pong-dqn-s0." in page


def test_the_table_of_measures_has_the_shares_of_the_figure():
    growths = {0: (0.01, 1.0, 0.5), 1: (0.03, 1.0, 0.5)}
    rows = [
        Measure(f"pong-{arm}-s{seed}", "pong", arm, seed, 1, name, size * number)
        for arm, size in (("dqn", 100.0), ("gram", 1.0))
        for seed, numbers in growths.items()
        for name, number in zip(GROWTH, (*numbers, 1 / numbers[0] / size, 0.5 / numbers[0] / size), strict=True)
    ]
    texts = measure_texts(rows, ["dqn", "gram"])
    assert texts["growth_share_feature_norm"] == ["50", "–"]  # 100 over the mean of 1 and 3; hardly any growth
    assert texts["growth_share_td_error"] == ["25", "–"]


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("measures.csv", lambda text: text.replace(",1.0\n", ",abc\n", 1), r"row 1 of .*: value is 'abc'; it must be"),
        (
            "curves.csv",
            lambda text: text.replace(",0,sparsity", ",zero,sparsity", 1),
            "seed is 'zero'; it must be a whole",
        ),
        (
            "curves.csv",
            lambda text: text.splitlines()[0] + "\n",
            "not whole: run 'Pong-dqn-s0' has no curve 'sparsity'",
        ),
        ("dynamics.csv", lambda text: text.replace(",1.0\n", "\n", 1), "row 1 of .* has 6 cells; it must have 7"),
        ("correlation/Pong-dqn-s0.npy", None, r"cannot read '.*correlation/Pong-dqn-s0.npy'"),
    ],
)
def test_a_damaged_analysis_is_refused_and_nothing_is_written(small_study, tmp_path, name, spoil, message):
    path = tmp_path / "analysis" / name
    write_report(tmp_path / "analysis", games=("Pong",), arms=("dqn",))
    path.write_text(spoil(path.read_text()) if spoil else "")
    with pytest.raises(UserError, match=message):
        build(small_study, tmp_path / "report", Options(replicates=100), analysis_folder=tmp_path / "analysis")
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("name", ["measures.csv", "curves.csv", "dynamics.csv", "correlation"])
@pytest.mark.parametrize("command", ["report", "export"])
def test_a_lost_part_of_an_analysis_is_named_and_nothing_is_written(small_study, tmp_path, capsys, name, command):
    study, out = tmp_path / "study", tmp_path / "out"
    shutil.copytree(small_study, study)
    write_report(study / "analysis", games=("Pong",), arms=("dqn",))
    lost = study / "analysis" / name
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    assert main(["study", command, str(study), "--out", str(out)]) == 2
    said = f"the analysis '{study}/analysis' is not whole, missing: {name}; analyze the runs again, or remove what"
    assert capsys.readouterr().err == f"gramian: {said} is left of it\n"
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("reported", ["", "study/populations/0/pong-dqn-s0"], ids=["the folder above", "a run"])
def test_an_analysis_that_lies_elsewhere_is_pointed_at_and_the_report_is_made(tmp_path, capsys, reported):
    study = tmp_path / "study"
    write_study(study, games=["Pong"], seeds=2, episodes=20, metric_rows=0, generator=np.random.default_rng(0))
    write_report(study / "analysis", games=("Pong",), arms=("dqn", "gram:10.24"))
    folder, out = tmp_path / reported, tmp_path / "report"
    options = ["--out", str(out), "--replicates", "100"]
    assert main(["study", "report", str(folder), *options]) == 0
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == (
        f"gramian: the report has no trained features: there is no analysis in '{folder / 'analysis'}', but in "
        f"'{study / 'analysis'}'; name it with --analysis, or report its study"
    )
    assert last == f"report in {out / 'index.html'}"
    assert 'id="representation"' not in (out / "index.html").read_text()
    assert main(["study", "report", str(folder), *options, "--analysis", str(study / "analysis")]) == 0
    assert "trained features" not in capsys.readouterr().err
    assert 'id="representation"' in (out / "index.html").read_text()


def test_a_study_that_was_never_analyzed_is_reported_without_a_word_of_it(small_study, tmp_path, recwarn):
    build(small_study, tmp_path / "report", Options(replicates=100))
    assert not recwarn


def test_a_lost_matrix_is_one_line(tmp_path):
    write_report(tmp_path / "analysis", games=("pong",), arms=("dqn",))
    shutil.rmtree(tmp_path / "analysis" / "correlation")
    with pytest.raises(UserError, match=r"cannot read '.*s0\.npy'.*; analyze the runs again"):
        read_representation(tmp_path / "analysis", {("pong", "dqn")})


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, np.nan], ids=["zero", "nan"])
@pytest.mark.filterwarnings("ignore")
def test_features_that_are_all_zero_or_nan_have_their_section_too(small_study, tmp_path, value):
    write_report(tmp_path / "analysis", games=("Pong",), arms=("dqn", "gram:10.24"), value=value)
    page = build(small_study, tmp_path / "report", Options(replicates=100), analysis_folder=tmp_path / "analysis")
    assert 'id="representation"' in page.read_text()


def test_blocks_are_means_whatever_the_sizes_are():
    matrix = np.random.default_rng(0).normal(size=(7, 7))
    edges = [0, 2, 4, 7]
    expected = [[matrix[a:b, c:d].mean() for c, d in pairwise(edges)] for a, b in pairwise(edges)]
    np.testing.assert_allclose(blocks(matrix, 3), expected)


def test_heat_maps_of_a_study_of_the_papers_size_fit_the_page():
    side = int((HEAT_CELLS / (49 * 3)) ** 0.5)
    assert 49 * 3 * side**2 * 4 / 3 < 1.5e6
    assert side > 80
