"""A study cut at a number of frames is the study as it was then."""

import polars as pl
import pytest

from gramian.core.errors import UserError
from gramian.report.analysis import Options, analyse
from gramian.study.store import first_frames, read_study
from tests.study.studies import make_run


def write_run(folder, arm, seed, state, frames, reason=""):
    episodes = "".join(f"{at},{at / 100}\n" for at in range(50, frames + 1, 50))
    metrics = "".join(f"{at},{at}\n" for at in range(100, frames + 1, 100))
    make_run(
        folder / f"pong-{arm.replace(':', '-k')}-s{seed}", arm=arm, seed=seed, settings="frames = 1000",
        episodes=f"frames,raw_return\n{episodes}", metrics=f"frames,feature_norm\n{metrics}",
        status={"state": state, "agent_steps": frames // 4, "reason": reason},
    )  # fmt: skip


@pytest.fixture
def study(tmp_path):
    write_run(tmp_path, "dqn", 0, "done", 1000)
    write_run(tmp_path, "dqn", 1, "interrupted", 900)
    write_run(tmp_path, "gram:0.1", 0, "diverged", 940, "not finite at update 3")
    write_run(tmp_path, "gram:0.1", 1, "interrupted", 700)
    return read_study(tmp_path)


def test_a_run_that_has_come_so_far_is_done_whatever_became_of_it(study):
    cut = first_frames(study, 900)
    states = dict(cut.runs.select("run", "state").iter_rows())
    assert states == {
        "pong-dqn-s0": "done",
        "pong-dqn-s1": "done",
        "pong-gram-k0.1-s0": "done",
        "pong-gram-k0.1-s1": "interrupted",
    }
    assert cut.runs["frames_target"].to_list() == [900] * 4
    assert cut.runs["reason"].to_list() == [""] * 4


def test_nothing_later_is_seen(study):
    cut = first_frames(study, 900)
    assert cut.episodes["frames"].max() == 900
    assert cut.metrics["frames"].max() == 900
    assert study.episodes["frames"].max() == 1000  # the study itself is as it was
    before = study.episodes.filter(pl.col("frames") <= 900)
    assert cut.episodes.equals(before)


def test_runs_that_end_before_keep_their_state_and_diverged_ones_theirs(study):
    states = dict(first_frames(study, 950).runs.select("run", "state").iter_rows())
    assert states["pong-gram-k0.1-s0"] == "diverged"
    assert states["pong-dqn-s1"] == "interrupted"


def test_a_report_of_the_first_frames_says_so_and_scores_them(study):
    whole, cut = (
        analyse(study if not n else first_frames(study, n), Options(replicates=100, frames=n)) for n in (0, 900)
    )
    assert whole.cautions[0] != cut.cautions[0] == "Of every run the first 900 frames are looked at, and no others."
    scores = cut.table.filter(pl.col("arm") == "dqn")["final_score"].to_list()
    assert scores == [pytest.approx(sum(at / 100 for at in range(50, 901, 50)) / 18)] * 2


@pytest.mark.parametrize(
    ("frames", "line"), [(2000, "no run has 2,000 frames; the longest has 1,000"), (0, "at least 1")]
)
def test_frames_that_no_run_has_are_refused(study, frames, line):
    with pytest.raises(UserError, match=line):
        first_frames(study, frames)
