"""Reports in the folder of an earlier one, with sections of others, and without scripts."""

import base64
import json
import re
import shutil

import numpy as np
import pytest

from benchmarks.synthetic_study import write_study
from gramian.cli.report import ReportOptions, report_command
from gramian.report import Options, build
from gramian.report.build import LIST, replace_earlier
from gramian.report.page.html import Section, picture
from tests.representation.analyses import write_report

pytestmark = pytest.mark.slow


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """One of Pong with logs and an analysis, one of Alien without."""
    folder = tmp_path_factory.mktemp("studies")
    generator = np.random.default_rng(0)
    write_study(folder / "pong", games=["Pong"], seeds=2, episodes=20, metric_rows=8, generator=generator)
    write_report(folder / "pong" / "analysis", games=("Pong",), arms=("dqn", "gram:10.24"))
    write_study(folder / "alien", games=["Alien"], seeds=2, episodes=20, metric_rows=0, generator=generator)
    return folder


def test_what_an_earlier_report_wrote_and_this_one_does_not_is_removed(studies, tmp_path):
    fast = Options(replicates=100)
    build(studies / "pong", tmp_path / "report", fast)
    before = files(tmp_path / "report")
    assert {"features.csv", "figures/features-Pong.png", "figures/representation/sparsity-Pong.svg"} <= before
    mine = ("figures/mine.png", "figures/representation/mine.svg", "notes.md")
    for name in mine:
        (tmp_path / "report" / name).write_text("mine")
    (tmp_path / "report" / "figures" / "td-error.png").write_text("changed")
    build(studies / "alien", tmp_path / "report", fast)
    build(studies / "alien", tmp_path / "alone", fast)
    assert files(tmp_path / "report") == files(tmp_path / "alone") | {*mine, "figures/td-error.png"}
    for name in files(tmp_path / "alone"):
        assert (tmp_path / "report" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name


def test_a_folder_that_is_left_empty_goes_too(studies, tmp_path):
    build(studies / "pong", tmp_path, Options(replicates=100))
    build(studies / "alien", tmp_path, Options(replicates=100))
    assert not (tmp_path / "figures" / "representation").exists()


def test_the_list_has_every_file_but_the_page_and_itself(small_report):
    noted = json.loads((small_report / LIST).read_text())["files"]
    assert set(noted) == files(small_report) - {"index.html", LIST}


@pytest.mark.parametrize("place", ["../mine.txt", "/mine.txt", "folder", "link.txt"])
def test_a_list_removes_nothing_outside_of_the_report_and_nothing_but_files(tmp_path, place):
    report = tmp_path / "report"
    (report / "folder").mkdir(parents=True)
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (report / "link.txt").symlink_to(mine)
    (report / "own.txt").write_text("mine")
    replace_earlier(report, [report / "own.txt"])
    noted = json.loads((report / LIST).read_text())
    (digest,) = noted["files"].values()
    named = str(tmp_path / "mine.txt") if place.startswith("/") else place
    (report / LIST).write_text(json.dumps(noted | {"files": {named: digest}}))
    assert replace_earlier(report, [report / "own.txt"]) == []
    assert mine.read_text() == "mine"
    assert {path.name for path in report.iterdir()} == {"folder", "link.txt", "own.txt", LIST}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "files": 3}', '{"format": 2, "files": {"a": "b"}}']
)
def test_a_list_that_cannot_be_read_removes_nothing(tmp_path, text):
    (tmp_path / LIST).write_text(text)
    (tmp_path / "a").write_text("mine")
    assert replace_earlier(tmp_path, []) == []
    assert (tmp_path / "a").exists()


def test_sections_of_others_stand_before_the_studys_and_after_its_results(small_study, tmp_path):
    before, after = Section("mine", "Mine <first>", "<p>one</p>"), Section("later", "Mine later", "<p>two</p>")
    page = build(small_study, tmp_path, Options(replicates=100), before=[before], after=[after]).read_text("utf-8")
    order = [page.index(f'<section id="{name}"') for name in ("mine", "summary", "features", "later", "run")]
    assert order == sorted(order)
    assert "Mine &lt;first&gt;</a>" in page
    assert "<p>one</p></section>" in page


def test_a_picture_lies_in_the_page_with_its_words_escaped(tmp_path):
    (tmp_path / "a.png").write_bytes(b"picture")
    html = picture(tmp_path / "a.png", 'less < "more"')
    assert base64.b64encode(b"picture").decode() in html
    assert 'alt="less &lt; &quot;more&quot;"' in html


@pytest.fixture(scope="module")
def small_form(small_study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small-form")
    shutil.copytree(small_study, folder / "study")
    write_report(folder / "study" / "analysis", games=("Alien",), arms=("dqn", "gram:10.24"), value=0.5)
    report_command(ReportOptions(folder=folder / "study", out=folder / "report", replicates=100, small=True))
    return folder / "report"


def test_it_has_no_script_and_nothing_to_press(small_form):
    page = (small_form / "index.html").read_text()
    assert not re.search(r"<(script|button|select|input|noscript)\b", page)
    assert len(page.encode()) < 2_000_000


def test_the_figures_that_the_report_draws_are_pictures_in_it(small_form):
    page = (small_form / "index.html").read_text()
    overall = {"learning-curves", "differences", "median-and-iqm", "profiles", "auc-gain"}
    drawn = {path.stem for path in (small_form / "figures").glob("*.png")}
    features = {f"features-{game}" for game in ("Alien", "Pong", "Seaquest")}
    trained = ("sparsity", "correlation", "spectrum")
    assert overall | features <= drawn
    assert page.count("data:image/png;base64,") == len(overall) + len(features) + len(trained)


def test_every_link_of_its_contents_leads_to_a_section(small_form):
    page = (small_form / "index.html").read_text()
    linked = re.findall(r'<li><a href="#([\w-]+)"', page)
    assert set(linked) == set(re.findall(r'<section id="([\w-]+)"', page))
    assert {"curves", "gains", "scores", "features", "representation", "run"} <= set(linked)


def test_the_choice_of_kappa_is_a_picture_too(tmp_path):
    arms = ["dqn", *(f"gram:{kappa}" for kappa in ("0.1", "1.0", "10.0"))]
    generator = np.random.default_rng(0)
    write_study(tmp_path / "study", games=["Pong"], arms=arms, seeds=2, episodes=40, metric_rows=8, generator=generator)
    page = build(tmp_path / "study", tmp_path / "report", Options(replicates=100), small=True).read_text()
    section = page[page.index('<section id="kappa"') :].split("</section>")[0]
    assert "data:image/png;base64," in section
    assert "kappa-figure" not in section


def test_a_page_of_the_first_frames_says_in_its_head_how_far_the_runs_are_looked_at(small_study, tmp_path):
    options = ReportOptions(folder=small_study, out=tmp_path, replicates=100, small=True, frames=1_000)
    report_command(options)
    (header,) = re.findall(r"<header.*?</header>", (tmp_path / "index.html").read_text(), re.DOTALL)
    assert "27 of 27 runs have come to 1,000 frames, up to which they are looked at" in header
    assert "finished" not in header
