"""Our agents beside Dopamine's curves, from made-up run folders."""

import csv

import pytest
import scipy.stats

from benchmarks import parity
from gramian.report import reference
from tests.benchmarks.test_dopamine import write_run


def laid_beside(folder, preset, shift=0.0, seeds=range(5)):
    """Runs of Pong whose episodes return what Dopamine's did in that million frames, and ``shift`` more."""
    published = reference.dopamine_curve("pong", parity.AGENTS[preset]).returns
    for seed in seeds:
        returns = [published[seed, at // 10] + shift for at in range(30)]
        write_run(folder, "pong", seed, returns, frames=3_000_000, preset=preset)
    return folder


def test_agents_that_agree_and_one_that_differs_are_said(tmp_path, capsys):
    same = laid_beside(tmp_path / "c51", "dopamine-c51")
    other = laid_beside(tmp_path / "rainbow", "dopamine-rainbow", shift=30.0)
    write_run(tmp_path / "c51", "pong", 9, [0.0] * 30, preset="author")  # is left aside
    assert parity.main([str(same), str(other), "--out", str(tmp_path / "out")]) == 0
    page = capsys.readouterr().out
    assert page == (tmp_path / "out" / "parity.md").read_text()
    assert page.endswith("two neighbouring millions: in Rainbow in Pong at 1 and 2, Rainbow in Pong at 2 and 3.\n")
    rows = list(csv.DictReader((tmp_path / "out" / "parity.csv").read_text().splitlines()))
    assert [(row["agent"], row["million_frames"]) for row in rows] == [
        (agent, str(million)) for agent in ("C51", "Rainbow") for million in (1, 2, 3)
    ]
    theirs = reference.dopamine_curve("pong", "Rainbow").returns[:, 1]
    assert float(rows[4]["difference"]) == pytest.approx(30.0)
    assert float(rows[4]["t"]) == pytest.approx(scipy.stats.ttest_ind(theirs + 30, theirs, equal_var=False).statistic)
    assert float(rows[0]["t"]) == pytest.approx(0.0, abs=1e-9)


def test_a_difference_in_a_single_million_is_not_systematic():
    rows = [
        parity.Row("C51", "pong", million, 5, 0, 5, 0, 0, 0, 0, 0, 0, t) for million, t in ((1, 4), (2, -4), (3, 1))
    ]
    assert parity.systematic(rows) == []


def test_runs_that_are_there_twice_or_have_no_million_are_refused(tmp_path, capsys):
    one, two = (laid_beside(tmp_path / name, "dopamine-iqn", seeds=[0]) for name in ("a", "b"))
    assert parity.main([str(one), str(two)]) == 2
    assert "IQN in pong, seed 0 is there twice" in capsys.readouterr().err
    write_run(tmp_path / "short", "pong", 0, [1.0], frames=100_000, preset="dopamine-iqn")
    assert parity.main([str(tmp_path / "short")]) == 2
    assert "has completed a million frames" in capsys.readouterr().err
