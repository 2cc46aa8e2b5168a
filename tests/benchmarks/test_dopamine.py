"""Our DQN beside Dopamine's curves, from made-up run folders."""

import csv
import json

import numpy as np
import pytest
import scipy.stats

from benchmarks import dopamine
from gramian.core.statistics import mean_interval, welch
from tests.docs.pages import ROOT

EPISODE_FRAMES = 100_000
"""Of every episode that `write_run` makes: no iteration has an overshoot."""


def write_run(folder, game, seed, returns, *, state="done", frames=2_000_000, preset="dopamine", arm="dqn"):
    """A run folder whose episodes follow one another, one for each of the returns."""
    run = folder / "p000" / f"{game}-{arm}-s{seed}"
    run.mkdir(parents=True)
    (run / "config.toml").write_text(
        f'game = "{game}"\narm = "{arm}"\nseed = {seed}\npreset = "{preset}"\n\n[settings]\nframes = {frames}\n'
    )
    (run / "status.json").write_text(json.dumps({"state": state, "agent_steps": 0, "reason": ""}))
    record = {"git": {"commit": "abc"}, "hardware": {"device": "made up"}}
    (run / "provenance.json").write_text(json.dumps([record]))
    lines = [f"{EPISODE_FRAMES * at},{value}" for at, value in enumerate(returns, start=1)]
    (run / "episodes.csv").write_text("\n".join(["frames,raw_return", *lines]) + "\n")


def laid_beside(folder, shift=0.0, games=("pong",), seeds=range(5)):
    """Runs whose episodes return what Dopamine's runs did in that million frames, and ``shift`` more."""
    for game in games:
        published = dopamine.first_curve(game).returns
        for seed in seeds:
            write_run(folder, game, seed, [published[seed, at // 10] + shift for at in range(20)])
    return folder


def compared(*folders):
    return dopamine.compare(dopamine.read_runs(folders)[0])


def whole(*folders):
    return dopamine.whole_curves(dopamine.read_runs(folders)[0])


def dopamine_phases(lengths, returns):
    """Dopamine's own loop, as slow and as obvious: phases of a million frames, of whole episodes."""
    phases, episodes = [], list(zip(lengths, returns, strict=True))
    while episodes:
        step_count, sums = 0, []
        while step_count < 1_000_000 and episodes:
            length, value = episodes.pop(0)
            step_count += length
            sums.append(value)
        phases.append(sum(sums) / len(sums))
    return phases


@pytest.mark.parametrize("longest", [5_000, 108_000, 1_500_000])
def test_iterations_are_those_of_dopamines_loop(longest):
    generator = np.random.default_rng(longest)
    lengths = generator.integers(1, longest, 2 + 6_000_000 // longest)
    returns = generator.normal(size=len(lengths))
    found = dopamine.by_iteration(lengths.cumsum(), returns, stopped=True)
    assert [one.mean_return for one in found] == pytest.approx(dopamine_phases(lengths, returns))
    assert [one.million_frames for one in found] == list(range(1, len(found) + 1))
    assert sum(one.episodes for one in found) == len(lengths)


def test_episodes_at_the_same_frame_are_in_one_iteration_and_the_last_counts_only_at_the_end_of_a_run():
    frames, returns = np.array([1_000_000, 1_000_000, 1_990_000]), np.array([1.0, 3.0, 4.0])
    assert [one.mean_return for one in dopamine.by_iteration(frames, returns, stopped=True)] == [2.0, 4.0]
    assert len(dopamine.by_iteration(frames, returns, stopped=False)) == 1
    assert dopamine.by_iteration(frames[:0], returns[:0], stopped=True) == []


@pytest.mark.parametrize(("shift", "side"), [(0.0, ""), (30.0, "above"), (-30.0, "below")])
def test_runs_outside_the_range_of_dopamines_are_named(tmp_path, shift, side):
    folder = laid_beside(tmp_path, shift)
    rows = compared(folder)
    assert [(row.game, row.million_frames, row.outside) for row in rows] == [("pong", 1, side), ("pong", 2, side)]
    assert rows[-1].difference == pytest.approx(shift)
    assert rows[-1].improvement == pytest.approx(0.5 + np.sign(shift) / 2, abs=0.1)
    assert (rows[-1].difference_low > 0) == (shift > 0)
    page = dopamine.markdown(rows, whole(folder))
    assert ("**" in page) == (shift != 0)
    assert page.index("| Pong | 1–2 |") < page.index("| Pong | 1 |")
    if side:
        assert f"in 2 of 2 millions: Pong at 1 ({side}), Pong at 2 ({side}); of normally" in page
        assert "it would be outside in 0.3 on average." in page  # 2 · 13.8 %
        assert f"in 1 of 1 whole curve: Pong ({side}); of normally" in page
    else:
        assert "- Our mean is within the range of Dopamine's runs in every million; of" in page


def test_a_whole_curve_is_the_mean_over_the_millions_that_all_our_runs_have(tmp_path):
    published = dopamine.first_curve("pong").returns
    for seed, millions in enumerate([2, 1, 2]):
        returns = [0.0] * 10 + [1.0 + seed] * 10
        state = "done" if millions == 2 else "interrupted"
        write_run(tmp_path / "short", "pong", seed, returns[: 10 * millions], state=state)
        write_run(tmp_path / "long", "pong", seed, returns)
    (row,) = whole(tmp_path / "short")
    assert (row.million_frames, row.runs, row.mean) == (1, 3, 0.0)
    (row,) = whole(tmp_path / "long")
    assert (row.million_frames, row.runs, row.mean) == (2, 3, pytest.approx(1.0))
    assert row.dopamine_mean == pytest.approx(published[:, :2].mean())
    assert row.difference_low == pytest.approx(welch(np.array([0.5, 1.0, 1.5]), published[:, :2].mean(1))[1])
    write_run(tmp_path / "short", "pong", 3, [0.0], state="interrupted")
    assert whole(tmp_path / "short") == []


def test_the_committed_comparison_is_that_of_the_committed_runs(tmp_path, capsys):
    committed = ROOT / "results" / "dopamine"
    beside = ["--replaced", str(committed / "replaced-runs.csv"), "--later", str(committed / "later-runs.csv")]
    picture = tmp_path / "figures" / "curves.png"
    out = tmp_path / "out"
    assert dopamine.main([str(committed), *beside, "--out", str(out), "--figure", str(picture)]) == 0
    for name in (name for name in dopamine.FILES if not name.endswith(".png")):
        assert (out / name).read_text() == (committed / name).read_text(), name
    assert capsys.readouterr().out == (committed / "dopamine.md").read_text()
    assert picture.stat().st_size > 1_000


def test_spreads_that_differ_are_named():
    published = dopamine.first_curve("pong").returns

    def run(seed, *returns):
        iterations = [dopamine.Iteration(at, at, 1, value) for at, value in enumerate(returns, start=1)]
        return dopamine.Run("pong", seed, "done", "", "", iterations)

    (said,) = dopamine.spreads([run(seed, published[seed, 0] + 1, -15.0 + 9 * seed) for seed in range(5)])
    ours, theirs = np.array([-15.0 + 9 * seed for seed in range(5)]), published[:, 1]
    p = 2 * scipy.stats.f.sf(ours.var(ddof=1) / theirs.var(ddof=1), 4, 4)
    levene = scipy.stats.levene(ours, theirs, center="median").pvalue
    assert f"in 1 of 2 millions. By an F-test of the variances p is below 0.05 in Pong at 2 ({p:.2g})" in said
    assert said.endswith(f"by Levene's test about the median in Pong at 2 ({levene:.2g}).")
    assert dopamine.spreads([run(seed, -20.0) for seed in range(5)]) == []  # no variance


def test_runs_that_were_replaced_have_a_table_with_all_runs_of_their_games(tmp_path, capsys):
    laid_beside(tmp_path / "long", games=("asterix", "pong"))
    laid_beside(tmp_path / "short", shift=-30.0, seeds=range(2))
    assert dopamine.main([str(tmp_path / "short"), "--out", str(tmp_path / "out")]) == 0
    table = tmp_path / "out" / "dopamine-runs.csv"
    capsys.readouterr()
    assert dopamine.main([str(tmp_path / "long"), "--replaced", str(table)]) == 0
    _, after = capsys.readouterr().out.split("Together with the runs that they have replaced")
    (line,) = (line for line in after.splitlines() if line.startswith("| Pong"))
    assert "Asterix" not in after
    published = dopamine.first_curve("pong").returns[:, :2].mean(axis=1)
    ours = np.concatenate([published, published[:2] - 30])
    assert f"| {dopamine.shown(*mean_interval(ours))} (7) |" in line
    assert dopamine.main([str(tmp_path / "short"), "--replaced", str(table)]) == 2
    assert "pong, seed 0 has been replaced by itself" in capsys.readouterr().err


def later_table(folder, shift, millions=2):
    """Curves of Dopamine's first runs, shifted."""
    published = dopamine.first_curve("pong").returns
    lines = [f"Pong,{at + 1},{','.join(str(value + shift) for value in published[:, at])}" for at in range(millions)]
    path = folder / "later.csv"
    path.write_text("\n".join(["game,million_frames,run1,run2,run3,run4,run5", *lines]) + "\n")
    return path


def test_a_later_set_of_runs_has_a_table_beside_the_first_and_ours(tmp_path, capsys):
    folder = laid_beside(tmp_path / "runs", shift=20.0, games=("asterix", "pong"))
    assert dopamine.main([str(folder), "--later", str(later_table(tmp_path, 10.0, millions=1))]) == 0
    table = capsys.readouterr().out.partition("Dopamine's first set of runs")[2]
    (line,) = (line for line in table.splitlines() if line.startswith("| Pong"))  # the later set has one million
    assert "Asterix" not in table
    first = dopamine.first_curve("pong").returns[:, 0]
    ours, again = first + 20, first + 10
    _, million, own, *_, later, both, all_three = (cell.strip() for cell in line.strip("|").split("|"))
    assert (million, own) == ("1", f"{dopamine.number(ours.mean())} (5)")
    pairs = (again, first), (ours, again), (ours, np.concatenate([first, again]))
    assert [later, both, all_three] == [f"**{dopamine.shown(*welch(*pair))}**" for pair in pairs]
    assert "- Our mean is outside the range of both together in 1 of 1 million: Pong at 1 (above); of normally" in table


def test_the_figure_has_the_later_set_as_far_as_both_go(tmp_path):
    runs, _ = dopamine.read_runs([laid_beside(tmp_path / "runs", games=("asterix", "pong"))])
    later = dopamine.read_later(later_table(tmp_path, 1.0, millions=3))
    figure, without = (dopamine.draw(dopamine.compare(runs), runs, curves) for curves in (later, None))
    dotted = [[line for line in panel.lines if line.get_linestyle() == ":"] for panel in figure.axes]
    assert [len(lines) for lines in dotted] == [0, 1]
    published = dopamine.first_curve("pong").returns[:, :2].mean(axis=0)
    assert dotted[1][0].get_ydata() == pytest.approx(published + 1.0)
    labels = [{text.get_text() for text in one.legends[0].get_texts()} for one in (figure, without)]
    assert labels[0] - labels[1] == {"Dopamine's, later"}


@pytest.mark.parametrize(("ours", "theirs"), [(5, 5), (2, 5), (1, 3)])
def test_how_often_a_mean_is_outside_a_range_by_chance(ours, theirs):
    generator = np.random.default_rng(0)
    means, others = generator.normal(size=(200_000, ours)).mean(1), generator.normal(size=(200_000, theirs))
    strange = (means < others.min(1)) | (means > others.max(1))
    assert dopamine.chance_outside(ours, theirs) == pytest.approx(strange.mean(), abs=0.004)


def test_a_single_run_has_no_interval(tmp_path):
    row = compared(laid_beside(tmp_path, seeds=[0]))[0]
    page = dopamine.markdown([row], [])
    assert "[–, –]" in page
    assert "in the one million; of normally distributed runs" in page


def test_what_was_written_is_read_again(tmp_path):
    laid_beside(tmp_path / "a", seeds=range(3))
    laid_beside(tmp_path / "b", seeds=range(3, 5))
    first, second = tmp_path / "first", tmp_path / "second"
    assert dopamine.main([str(tmp_path / "a"), "--out", str(first)]) == 0
    assert dopamine.main([str(first), "--out", str(second)]) == 0
    for name in dopamine.FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    rows = list(csv.DictReader((first / "dopamine-runs.csv").read_text().splitlines()))
    assert (rows[0]["game"], rows[0]["commit"], rows[0]["episodes"]) == ("pong", "abc", "10")
    assert compared(first, tmp_path / "b") == compared(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (
            lambda folder: write_run(folder, "pong", 4, [-20.0] * 15, state="failed"),
            "Pong, seed 4: failed; counts for 1 m",
        ),
        (lambda folder: write_run(folder, "minatar", 0, [1.0] * 20), "Without a public curve: minatar."),
        (
            lambda folder: laid_beside(folder, games=("asterix",), seeds=range(5)),
            "Asterix: 5 runs, where other games have 3.",
        ),
        (lambda folder: write_run(folder, "pong", 7, [0.0] * 20, preset="author"), "Left aside: 1 run in `runs`"),
    ],
)
def test_what_is_missing_or_left_aside_is_said(tmp_path, capsys, write, words):
    folder = laid_beside(tmp_path / "runs", games=("pong", "seaquest"), seeds=range(3))
    write(folder)
    assert dopamine.main([str(folder)]) == 0
    assert f"- {words}" in capsys.readouterr().out


HEADER = "game,seed,state,commit,device,million_frames,end_frames,episodes,mean_return\n"
LATER = "game,million_frames,run1\n"
DAMAGED = [
    ("dopamine-runs.csv", "", "has no runs"),
    ("dopamine-runs.csv", HEADER + "pong,0,done,,,1,1000000,9,nan\n", "it must be finite"),
    ("dopamine-runs.csv", HEADER + "pong,0,done,,,one,1000000,9,1\n", "line 2 of"),
    ("dopamine-runs.csv", HEADER + "pong,0,done,,,1,1000000\n", "7 fields, where the heading has 9"),
    ("dopamine-runs.csv", HEADER + "pong,0,done,,,2,1000000,9,1\n", "has not each million_frames of pong, seed 0"),
    ("dopamine-runs.csv", HEADER + 2 * "pong,0,done,,,1,1000000,9,1\n", "has not each million_frames of pong, seed 0"),
    ("later.csv", "game,run1\nPong,1.0\n", "is no table of curves: "),
    ("later.csv", "game,million_frames,runner\nPong,1,1.0\n", "must have a finite return in every column"),
    ("later.csv", LATER + "Pong,1,many\n", "is no table of curves: "),
    ("later.csv", LATER + "Pong,1,inf\n", "must have a finite return in every column"),
    ("later.csv", LATER + "Pong,2,1.0\n", "has not each million_frames of pong"),
    ("later.csv", LATER + "Pong,1,1.0\npong,1,1.0\n", "has not each million_frames of pong"),
    ("later.csv", LATER + "Alien,1,1.0\n", "none of our games has later curves; those are of alien"),
]


@pytest.mark.parametrize(("name", "text", "words"), DAMAGED)
def test_a_damaged_table_is_one_line(tmp_path, capsys, name, text, words):
    folder = laid_beside(tmp_path / "runs")
    place = (tmp_path if name == "later.csv" else folder) / name
    place.write_text(text)
    assert dopamine.main([str(folder), *(["--later", str(place)] if name == "later.csv" else [])]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_run_that_is_there_twice_and_runs_without_a_million_are_refused(tmp_path, capsys):
    one, two = laid_beside(tmp_path / "a", seeds=[0, 1]), laid_beside(tmp_path / "b", seeds=[1])
    assert dopamine.main([str(one), str(two)]) == 2
    assert "pong, seed 1 is in" in capsys.readouterr().err
    write_run(tmp_path / "short", "pong", 0, [1.0], frames=100_000)
    assert dopamine.main([str(tmp_path / "short")]) == 2
    assert "has completed a million frames" in capsys.readouterr().err
