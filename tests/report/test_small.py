"""The small form of the page: pictures in place of what a script draws."""

import re
import shutil

import numpy as np
import pytest

from benchmarks.synthetic_study import write_study
from gramian.cli.report import ReportOptions, report_command
from gramian.report import Options, build
from tests.representation.analyses import write_report

pytestmark = pytest.mark.slow


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
