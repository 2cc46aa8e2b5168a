import signal
import time
from dataclasses import replace

import pytest

from gramian.cli import demo as commands
from gramian.cli import main
from gramian.core.files import locked
from gramian.demo import differences, steps
from gramian.demo.differences import Difference, Experiment, kept, paired
from gramian.demo.sizes import Sizes
from gramian.study.plan import read_plan
from gramian.study.spec import load_study
from gramian.study.status import attempts
from tests.demos import start_demo, tiny_sizes
from tests.study.studies import environment, events

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def workers_import_what_we_import(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of a demo that has been run, its sizes, and what it said."""
    folder = tmp_path_factory.mktemp("a folder")
    sizes = tiny_sizes(folder)
    process = start_demo(folder / "demo", sizes)
    said = process.communicate()
    assert process.returncode == 0, said[1]
    return folder / "demo", sizes, said


def test_it_ends_with_a_table_a_word_on_noise_and_the_path_of_the_page(done):
    folder, _, (out, _) = done
    lines = out.splitlines()
    assert [line for line in lines[:-1] if len(line) > 80] == []
    for start in ("Regression, ρ = 0.99", "Mountain Car", "CartPole, gram:0.1 minus dqn: 2 seeds"):
        assert any(line.startswith(start) for line in lines)
    assert lines[-5].startswith("With so few seeds, ")
    assert lines[-1] == f"The page: {folder / 'index.html'}"


def test_it_shows_progress_of_every_step(done):
    _, _, (_, err) = done
    for step in range(1, 6):
        assert f"{step} of 5: " in err
    for line in ("regression: 1 of 1 blocks (100%)", "Tiny demo: 1,200 of 1,200 agent steps (100%)"):
        assert line in err


def test_the_page_is_a_studys_report_with_the_other_experiments_in_it(done):
    page = (done[0] / "index.html").read_text(encoding="utf-8")
    for heading in ("What you see here", "In short", "Learning curves", "Regression", "Mountain Car"):
        assert f">{heading}</h2>" in page
    assert page.count('<img src="data:image/png;base64,') == 4
    assert "It was not tuned" in page
    assert "Range of 2 seeds: " in page  # beside the scores of the game
    assert (done[0] / "scores.csv").exists()
    assert (done[0] / "study" / "analysis" / "summary.md").exists()


def test_a_second_demo_does_nothing_again(done, monkeypatch, capsys):
    folder, sizes, _ = done
    monkeypatch.setattr(commands, "SIZES", sizes)
    kept_files = [*folder.rglob("*.npz"), *folder.rglob("demo.json"), *folder.rglob("*.safetensors")]
    before = {path: path.stat().st_mtime_ns for path in kept_files}
    page = (folder / "index.html").read_bytes()
    assert main(["demo", "--out", str(folder)]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept_files} == before
    assert all(events(folder / "study", name) == ["started", "finished"] for name in ("p000", "p001"))
    assert (folder / "index.html").read_bytes() == page
    assert "agent steps (100%), took 0 s" in capsys.readouterr().err


def test_a_folder_of_a_demo_of_another_size_is_refused_in_one_line(done, monkeypatch, capsys):
    monkeypatch.setattr(commands, "SIZES", replace(done[1], regression_runs=5))
    assert main(["demo", "--out", str(done[0])]) == 2
    (complaint,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("gramian: "))
    assert "holds results with runs 4, not 5; name another --out" in complaint


def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path):
    sizes = tiny_sizes(tmp_path, frames=8_000)
    study = tmp_path / "demo" / "study"
    process = start_demo(tmp_path / "demo", sizes)
    while process.poll() is None and not list(study.glob("populations/p00*/checkpoints/*.json")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said.splitlines()[-1] == (
        "gramian: interrupted; what is done is kept, and the same command goes on from there"
    )
    assert "Traceback" not in said
    assert not (tmp_path / "demo" / "index.html").exists()
    past = [attempt.event for population in read_plan(study).populations for attempt in attempts(study, population.id)]
    assert "interrupted" in past

    again = start_demo(tmp_path / "demo", sizes)
    _, said = again.communicate()
    assert again.returncode == 0, said
    assert "regression: " not in said  # it was done
    assert (tmp_path / "demo" / "index.html").exists()


def test_two_demos_in_one_folder_are_refused(done, capsys):
    with locked(done[0] / "lock"):
        assert main(["demo", "--out", str(done[0])]) == 2
    assert "another process is at work in" in capsys.readouterr().err


def test_the_shipped_study_is_two_arms_and_two_seeds_of_one_game():
    spec = load_study(Sizes().study)
    assert (spec.games, spec.seeds, [arm.kind for arm in spec.arms]) == (("minatar/breakout",), (0, 1), ["dqn", "gram"])


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ([2.0, 3.0], [1.0, 1.0], "within noise"),  # two seeds that agree well
        ([2.0, 3.0, 2.5, 2.4], [1.0, 1.1, 1.0, 0.9], "clear"),
        ([2.0], [1.0], "no interval"),
        ([2.0, float("nan")], [1.0, 1.0], "no interval"),
    ],
)
def test_verdicts(one, other, verdict):
    assert paired("score", one, other).verdict == verdict


def test_what_is_kept_is_done_again_for_another_key_or_where_the_file_is_cut_short(tmp_path):
    calls = []

    def work():
        calls.append(1)
        return Experiment("title", (Difference("score", 1.0, float("nan"), 2.0),), "levels")

    path = tmp_path / "demo.json"
    first = kept(path, {"sizes": (1, 2)}, work)
    assert str(kept(path, {"sizes": (1, 2)}, work)) == str(first)
    assert len(calls) == 1
    kept(path, {"sizes": (1, 3)}, work)
    path.write_text(path.read_text(encoding="utf-8")[:40], encoding="utf-8")
    kept(path, {"sizes": (1, 3)}, work)
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("low", "high"), [(-1234.5, -1234.5), (-1234.51, -1234.5), (-0.0011612, -0.0011611), (-0.11612, -0.11611)]
)
def test_every_line_of_the_table_fits_80_columns(low, high):
    widest = Difference("x" * 32, low, low, high)
    assert max(map(len, differences.text([Experiment("title", (widest,))]).splitlines())) <= 80


def test_a_narrow_interval_is_shown_with_the_digits_that_tell_its_ends_apart():
    assert Difference("error", 0.11612, 0.11577, 0.11648).interval == "[0.1158, 0.1165]"
    assert Difference("error", 0.5, 0.5, 0.5).interval == "[0.5, 0.5]"
    assert Difference("error", 0.5, float("nan"), float("nan")).interval == "[–, –]"


def test_what_is_left_at_the_matched_step_size_is_not_put_down_to_decorrelation_alone():
    assert "shrinking" in steps.TELLS[steps.REMAINS]
    assert "decorrelation" not in steps.TELLS[steps.PAIRING]
