"""A report in the folder of an earlier one."""

import json

import numpy as np
import pytest

from benchmarks.synthetic_study import write_study
from gramian.report import Options, build
from gramian.report.build import LIST, replace_earlier
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
