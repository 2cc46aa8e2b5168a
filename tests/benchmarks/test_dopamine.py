"""Our DQN beside Dopamine's curves, from made-up run folders."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

from benchmarks import dopamine
from gramian.core import statistics
from gramian.report import reference
from tests.docs.pages import ROOT

FRAMES = 2_000_000
EPISODE_FRAMES = 100_000
"""Of every episode that `write_run` makes: no iteration has an overshoot."""


def write_run(folder, game, seed, returns, *, state="done", frames=FRAMES, preset="dopamine", arm="dqn"):
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
        published = reference.dopamine_curve(game).returns
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


def test_an_episode_that_crosses_the_end_of_a_million_belongs_to_it():
    frames, returns = np.array([900_000, 1_050_000, 2_040_000, 2_060_000]), np.array([1.0, 3.0, 5.0, 9.0])
    found = dopamine.by_iteration(frames, returns, stopped=True)
    assert [(one.end_frames, one.mean_return) for one in found] == [(1_050_000, 2.0), (2_060_000, 7.0)]


def test_episodes_that_end_at_the_same_frame_are_in_the_same_iteration():
    found = dopamine.by_iteration(np.array([1_000_000, 1_000_000, 2_000_000]), np.array([1.0, 3.0, 4.0]), stopped=True)
    assert [one.mean_return for one in found] == [2.0, 4.0]


def test_only_a_run_at_its_end_has_an_iteration_that_is_not_complete():
    frames, returns = np.array([1_000_000, 1_990_000]), np.array([1.0, 2.0])
    assert len(dopamine.by_iteration(frames, returns, stopped=True)) == 2
    assert len(dopamine.by_iteration(frames, returns, stopped=False)) == 1
    assert dopamine.by_iteration(frames[:0], returns[:0], stopped=True) == []


def test_runs_like_dopamines_do_not_differ(tmp_path):
    folder = laid_beside(tmp_path, games=("asterix", "pong"))
    rows = compared(folder)
    assert [(row.game, row.million_frames) for row in rows] == [
        ("asterix", 1), ("asterix", 2), ("pong", 1), ("pong", 2),
    ]  # fmt: skip
    for row in rows:
        assert row.difference == pytest.approx(0.0)
        assert row.difference_low < 0 < row.difference_high
        assert row.improvement == pytest.approx(0.5, abs=0.1)  # rounding makes some ties wins
        assert row.outside == ""
    page = dopamine.markdown(rows, whole(folder))
    assert "- Our mean is within the range of Dopamine's runs in every whole curve; of" in page
    assert "- Our mean is within the range of Dopamine's runs in every million; of" in page
    assert page.index("| Asterix | 1–2 |") < page.index("| Pong | 1–2 |") < page.index("| Asterix | 1 |")
    assert page.index("whole curve") < page.index("every million")


@pytest.mark.parametrize(("shift", "side"), [(30.0, "above"), (-30.0, "below")])
def test_runs_outside_the_range_of_dopamines_are_named(tmp_path, shift, side):
    folder = laid_beside(tmp_path, shift)
    rows = compared(folder)
    assert rows[-1].difference == pytest.approx(shift)
    assert rows[-1].improvement == (shift > 0)
    assert (rows[-1].difference_low > 0) == (shift > 0)
    assert rows[-1].outside == side
    page = dopamine.markdown(rows, whole(folder))
    assert f"in 2 of 2 millions: Pong at 1 ({side}), Pong at 2 ({side}); of normally" in page
    assert "it would be outside in 0.3 on average." in page  # 2 · 13.8 %
    assert f"in 1 of 1 whole curve: Pong ({side}); of normally" in page


def test_a_whole_curve_is_the_mean_over_the_millions_that_all_our_runs_have(tmp_path):
    published = reference.dopamine_curve("pong").returns
    for seed, millions in enumerate([2, 1, 2]):
        returns = [0.0] * 10 + [1.0 + seed] * 10
        state = "done" if millions == 2 else "interrupted"
        write_run(tmp_path / "short", "pong", seed, returns[: 10 * millions], state=state)
        write_run(tmp_path / "long", "pong", seed, returns)
    (row,) = whole(tmp_path / "short")
    assert (row.million_frames, row.runs, row.mean) == (1, 3, 0.0)
    assert "| Pong | 1 |" in dopamine.markdown([], [row])
    assert row.dopamine_mean == pytest.approx(published[:, 0].mean())
    (row,) = whole(tmp_path / "long")
    assert (row.million_frames, row.runs, row.mean) == (2, 3, pytest.approx(1.0))
    assert row.dopamine_mean == pytest.approx(published[:, :2].mean())
    assert row.difference_low == pytest.approx(statistics.welch(np.array([0.5, 1.0, 1.5]), published[:, :2].mean(1))[1])
    assert "| Pong | 1–2 |" in dopamine.markdown(compared(tmp_path / "long"), [row])


def test_a_game_in_which_a_run_has_no_million_yet_has_no_whole_curve(tmp_path):
    laid_beside(tmp_path, seeds=range(2))
    write_run(tmp_path, "pong", 2, [0.0], state="interrupted")
    assert whole(tmp_path) == []
    rows = compared(tmp_path)
    assert len(rows) == 2
    assert "curve" not in dopamine.markdown(rows, [])


def test_a_run_of_dopamines_that_lacks_a_million_is_not_in_a_whole_curve_and_none_goes_beyond_theirs(
    tmp_path, monkeypatch
):
    returns = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    monkeypatch.setattr(reference, "dopamine_curve", lambda _: SimpleNamespace(returns=returns))
    for seed in range(2):
        write_run(tmp_path, "pong", seed, [0.0] * 30, frames=3_000_000)
    (row,) = whole(tmp_path)
    assert (row.million_frames, row.dopamine_runs, row.dopamine_mean) == (2, 2, pytest.approx(3.5))


def test_the_committed_comparison_is_that_of_the_committed_runs(tmp_path, capsys):
    committed = ROOT / "results" / "dopamine"
    beside = ["--replaced", str(committed / "replaced-runs.csv"), "--later", str(committed / "later-runs.csv")]
    assert dopamine.main([str(committed), *beside, "--out", str(tmp_path / "out")]) == 0
    for name in (name for name in dopamine.FILES if not name.endswith(".png")):
        assert (tmp_path / "out" / name).read_text() == (committed / name).read_text(), name
    assert capsys.readouterr().out == (committed / "dopamine.md").read_text()


def test_spreads_that_differ_are_named():
    published = reference.dopamine_curve("pong").returns

    def run(seed, *returns):
        iterations = [dopamine.Iteration(at, at, 1, value) for at, value in enumerate(returns, start=1)]
        return dopamine.Run("pong", seed, "done", "", "", iterations)

    alike = [run(seed, published[seed, 0] + 1, -15.0 + 9 * seed) for seed in range(5)]
    (said,) = dopamine.spreads(alike)
    ours, theirs = np.array([-15.0 + 9 * seed for seed in range(5)]), published[:, 1]
    p = 2 * scipy.stats.f.sf(ours.var(ddof=1) / theirs.var(ddof=1), 4, 4)
    levene = scipy.stats.levene(ours, theirs, center="median").pvalue
    assert 0 < p < 0.05
    assert 0 < levene < 0.05
    assert said == (
        "Our runs are further apart than Dopamine's in 1 of 2 millions. By an F-test of the variances p is below 0.05 "
        f"in Pong at 2 ({p:.2g}); by Levene's test about the median in Pong at 2 ({levene:.2g})."
    )
    (said,) = dopamine.spreads([run(seed, published[seed, 0] + 1) for seed in range(5)])
    assert said.endswith("p is below 0.05 in none; by Levene's test about the median in none.")
    assert dopamine.spreads(alike[:1]) == []
    assert dopamine.spreads([run(seed, -20.0) for seed in range(5)]) == []  # no variance


def test_a_run_that_has_been_replaced_by_itself_is_refused(tmp_path, capsys):
    laid_beside(tmp_path / "runs")
    assert dopamine.main([str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    again = ["--replaced", str(tmp_path / "out" / "dopamine-runs.csv")]
    assert dopamine.main([str(tmp_path / "runs"), *again]) == 2
    assert "pong, seed 0 has been replaced by itself" in capsys.readouterr().err


def test_runs_that_were_replaced_have_a_table_with_all_runs_of_their_games(tmp_path, capsys):
    laid_beside(tmp_path / "long", games=("asterix", "pong"))
    laid_beside(tmp_path / "short", shift=-30.0, games=("pong",), seeds=range(2))
    assert dopamine.main([str(tmp_path / "short"), "--out", str(tmp_path / "out")]) == 0
    table = tmp_path / "out" / "dopamine-runs.csv"
    table.write_text("".join(line for line in table.read_text().splitlines(keepends=True) if ",2,200" not in line))
    capsys.readouterr()
    assert dopamine.main([str(tmp_path / "long"), "--replaced", str(table)]) == 0
    before, after = capsys.readouterr().out.split("Together with the runs that they have replaced")
    assert dopamine.main([str(tmp_path / "long")]) == 0
    assert before.rstrip() + "\n" == capsys.readouterr().out
    (line,) = (line for line in after.splitlines() if line.startswith("| Pong"))
    assert "Asterix" not in after
    ours = np.concatenate([published := reference.dopamine_curve("pong").returns[:, 0], published[:2] - 30])
    _, millions, mean, *_ = (cell.strip() for cell in line.strip("|").split("|"))
    assert millions == "1"
    assert mean == f"{dopamine.shown(*statistics.mean_interval(ours))} (7)"
    assert dopamine.main([str(tmp_path / "long"), "--replaced", str(tmp_path / "none.csv")]) == 2
    assert "cannot read" in capsys.readouterr().err


def later_table(folder, shift, game="Pong", millions=2):
    """Curves of Dopamine's first runs, shifted."""
    published = reference.dopamine_curve(game).returns
    lines = [f"{game},{at + 1},{','.join(str(value + shift) for value in published[:, at])}" for at in range(millions)]
    path = folder / "later.csv"
    path.write_text("\n".join(["game,million_frames,run1,run2,run3,run4,run5", *lines]) + "\n")
    return path


def test_a_later_set_of_runs_has_a_table_beside_the_first_and_ours(tmp_path, capsys):
    laid_beside(tmp_path / "runs", shift=20.0, games=("asterix", "pong"))
    assert dopamine.main([str(tmp_path / "runs")]) == 0
    alone = capsys.readouterr().out
    later = ["--later", str(later_table(tmp_path, 10.0, millions=1))]
    assert dopamine.main([str(tmp_path / "runs"), *later, "--out", str(tmp_path / "out")]) == 0
    page = capsys.readouterr().out
    assert page.startswith(alone.rstrip())
    table = page.removeprefix(alone.rstrip())
    (line,) = (line for line in table.splitlines() if line.startswith("| Pong"))  # the later set has one million
    assert "Asterix" not in table
    first = reference.dopamine_curve("pong").returns[:, 0]
    ours, again = first + 20, first + 10
    _, million, own, beside, later_range, *differences = (cell.strip() for cell in line.strip("|").split("|"))
    assert (million, own) == ("1", f"{dopamine.number(ours.mean())} (5)")
    for cell, values in ((beside, first), (later_range, again)):
        mean, least, most = (dopamine.number(value) for value in (values.mean(), values.min(), values.max()))
        assert cell == f"{mean}, {least} to {most}"
    pairs = (again, first), (ours, again), (ours, np.concatenate([first, again]))
    assert differences == [f"**{dopamine.shown(*statistics.welch(*pair))}**" for pair in pairs]
    for said in (
        "The later mean is outside the range of the first runs in 1 of 1 million: Pong at 1 (above)",
        "Our mean is outside the range of the later runs in 1 of 1 million: Pong at 1 (above)",
        "Our mean is outside the range of both together in 1 of 1 million: Pong at 1 (above)",
    ):
        assert f"- {said}; of normally" in table


def test_only_a_difference_whose_interval_excludes_0_is_bold(tmp_path):
    page = dopamine.markdown(compared(laid_beside(tmp_path)), [])
    assert "**" not in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read"),
        ("", "is no table of curves"),
        ("game,million_frames,run1\nPong,1,1.0,2.0\n", "is no table of curves"),
        ("game,run1\nPong,1.0\n", "has no column million_frames"),
        ("million_frames,run1\n1,1.0\n", "has no column game"),
        ("game,million_frames,run2\nPong,1,1.0\n", "has no column run1"),
        ("game,million_frames,run1\n", "has no curves"),
        ("game,million_frames,run1\nPong,1,many\n", "column run1 of"),
        ("game,million_frames,run1,run2\nPong,1,1.0,\nPong,2,1.0,2.0\n", "column run2 of"),
        ("game,million_frames,run1\nPong,1,nan\n", "column run1 of"),
        ("game,million_frames,run1\nPong,1,inf\n", "column run1 of"),
        ("game,million_frames,run1\nPong,2,1.0\n", "has not each million_frames of Pong"),
        ("game,million_frames,run1\nPong,,1.0\nPong,1,1.0\n", "has not each million_frames of Pong"),
        ("game,million_frames,run1\nPong,1,1.0\npong,1,1.0\n", "has one game as 'Pong' and as 'pong'"),
        ("game,million_frames,run1\nAlien,1,1.0\n", "none of our games has later curves; those are of alien"),
    ],
)
def test_later_curves_that_are_none_are_refused_in_a_line(tmp_path, capsys, text, said):
    laid_beside(tmp_path / "runs")
    path = tmp_path / "later.csv"
    if text is not None:
        path.write_text(text)
    assert dopamine.main([str(tmp_path / "runs"), "--later", str(path), "--out", str(tmp_path / "out")]) == 2
    output = capsys.readouterr()
    assert said in output.err
    assert output.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_column_that_is_no_run_is_left_aside(tmp_path):
    path = tmp_path / "later.csv"
    path.write_text("game,million_frames,run1,runner\nPong,1,1.0,fast\n")
    assert dopamine.read_later(path)["pong"].returns.tolist() == [[1.0]]


@pytest.mark.parametrize("millions", [1, 3])
def test_the_figure_has_the_later_set_as_far_as_both_go(tmp_path, monkeypatch, millions):
    folder = laid_beside(tmp_path / "runs", games=("asterix", "pong"))
    drawn, draw = [], dopamine.draw
    monkeypatch.setattr(dopamine, "draw", lambda *given: drawn.append(draw(*given)) or drawn[-1])
    later = ["--later", str(later_table(tmp_path, 1.0, millions=millions))]
    for given in (later, []):
        assert dopamine.main([str(folder), *given, "--out", str(tmp_path / "out")]) == 0
    figure, without = drawn
    dotted = [[line for line in panel.lines if line.get_linestyle() == ":"] for panel in figure.axes]
    assert [len(lines) for lines in dotted] == [0, 1]
    published = reference.dopamine_curve("pong").returns[:, : min(millions, 2)].mean(axis=0)
    assert dotted[1][0].get_xdata().tolist() == list(range(1, len(published) + 1))
    assert dotted[1][0].get_ydata() == pytest.approx(published + 1.0)
    labels = [{text.get_text() for text in one.legends[0].get_texts()} for one in (figure, without)]
    assert labels[0] - labels[1] == {"Dopamine's, later"}


def test_a_written_run_with_a_gap_is_refused(tmp_path, capsys):
    laid_beside(tmp_path / "runs")
    assert dopamine.main([str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    table = tmp_path / "out" / "dopamine-runs.csv"
    header, first, *others = table.read_text().splitlines(keepends=True)
    table.write_text("".join([header, *others]))
    capsys.readouterr()
    assert dopamine.main([str(tmp_path / "out")]) == 2
    assert "has million_frames 2 of pong, seed 0, and not 1 before it" in capsys.readouterr().err
    table.write_text("".join([header, *others, first]))
    assert len(compared(tmp_path / "out")) == 2


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
    assert f"outside in {dopamine.chance_outside(1, 5):.1f} on average" in page
    assert dopamine.chance_outside(1, 5) != pytest.approx(dopamine.chance_outside(5, 1), abs=0.1)


def test_games_and_seeds_may_lie_in_several_folders(tmp_path):
    whole = compared(laid_beside(tmp_path / "whole", games=("asterix", "pong")))
    parts = [
        laid_beside(tmp_path / "a", games=("pong",), seeds=[0, 3]),
        laid_beside(tmp_path / "b", games=("pong",), seeds=[1, 2, 4]),
        laid_beside(tmp_path / "c", games=("asterix",)),
    ]
    assert compared(*parts) == whole


def test_what_was_written_is_read_again(tmp_path, capsys):
    laid_beside(tmp_path / "a", seeds=range(3))
    laid_beside(tmp_path / "b", seeds=range(3, 5))
    first, second = tmp_path / "first", tmp_path / "second"
    assert dopamine.main([str(tmp_path / "a"), "--out", str(first)]) == 0
    assert dopamine.main([str(first), "--out", str(second)]) == 0
    for name in dopamine.FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    for name, rows in (("dopamine.csv", compared(first)), ("dopamine-whole.csv", whole(first))):
        written = list(csv.DictReader((first / name).read_text().splitlines()))
        assert [(row["million_frames"], float(row["difference"])) for row in written] == [
            (str(row.million_frames), row.difference) for row in rows
        ]
    assert compared(first, tmp_path / "b") == compared(tmp_path / "a", tmp_path / "b")
    capsys.readouterr()
    text = (first / "dopamine-runs.csv").read_text()
    (first / "dopamine-runs.csv").write_text(text.replace("1,1000000", "one,1000000", 1))
    assert dopamine.main([str(first)]) == 2
    assert "line 2 of" in capsys.readouterr().err


def test_a_run_that_is_there_twice_is_refused(tmp_path, capsys):
    one, two = laid_beside(tmp_path / "a", seeds=[0, 1]), laid_beside(tmp_path / "b", seeds=[1])
    assert dopamine.main([str(one), str(two)]) == 2
    assert "pong, seed 1 is in" in capsys.readouterr().err


@pytest.mark.parametrize("state", ["running", "interrupted", "diverged", "failed"])
def test_a_run_that_is_not_at_its_end_counts_as_far_as_it_is_complete_and_is_named(tmp_path, capsys, state):
    laid_beside(tmp_path, seeds=range(4))
    write_run(tmp_path, "pong", 4, [-20.0] * 15, state=state)
    assert [row.runs for row in compared(tmp_path)] == [5, 4]
    assert dopamine.main([str(tmp_path)]) == 0
    assert f"- Pong, seed 4: {state}; counts for 1 million frames." in capsys.readouterr().out


def test_runs_of_a_game_that_ended_alike_are_named_together(tmp_path, capsys):
    laid_beside(tmp_path, seeds=range(3))
    for seed in (3, 4):
        write_run(tmp_path, "pong", seed, [-20.0] * 15, state="interrupted")
    assert dopamine.main([str(tmp_path)]) == 0
    assert "- Pong, seeds 3, 4: interrupted; count for 1 million frames." in capsys.readouterr().out


def test_games_with_fewer_runs_or_without_a_curve_are_named(tmp_path, capsys):
    laid_beside(tmp_path, games=("asterix",))
    laid_beside(tmp_path, games=("pong",), seeds=[0, 1, 2])
    write_run(tmp_path, "minatar", 0, [1.0] * 20)
    assert dopamine.main([str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "- Pong: 3 runs, where other games have 5." in page
    assert "Asterix:" not in page
    assert "- Without a public curve: minatar." in page


def test_a_game_with_more_runs_than_most_is_named(tmp_path, capsys):
    laid_beside(tmp_path, games=("asterix", "pong"), seeds=range(3))
    laid_beside(tmp_path, games=("seaquest",))
    assert dopamine.main([str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "- Seaquest: 5 runs, where other games have 3." in page
    assert page.count("where other games have") == 1


def test_runs_of_other_arms_and_presets_are_left_aside(tmp_path, capsys):
    laid_beside(tmp_path, seeds=[0, 1])
    write_run(tmp_path, "pong", 7, [0.0] * 20, preset="author")
    write_run(tmp_path, "pong", 8, [0.0] * 20, arm="gram")
    assert dopamine.main([str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "(2)" in page
    assert "Left aside: 2 runs" in page


def test_more_frames_than_the_public_curves_have_are_left_out(tmp_path):
    write_run(tmp_path, "pong", 0, [0.0] * 220, frames=22_000_000)
    assert compared(tmp_path)[-1].million_frames == 20


def test_table_runs_and_figure_are_written(tmp_path, capsys):
    laid_beside(tmp_path / "study", games=("asterix", "breakout", "freeway", "pong"))
    picture = tmp_path / "figures" / "curves.png"
    out = tmp_path / "out"
    assert dopamine.main([str(tmp_path / "study"), "--out", str(out), "--figure", str(picture)]) == 0
    rows = compared(tmp_path / "study")
    with (out / "dopamine.csv").open() as file:
        assert [float(row["mean"]) for row in csv.DictReader(file)] == pytest.approx([row.mean for row in rows])
    with (out / "dopamine-runs.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == 4 * 5 * 2
    assert (runs[0]["game"], runs[0]["commit"], runs[0]["episodes"]) == ("asterix", "abc", "10")
    assert (out / "dopamine.md").read_text() == capsys.readouterr().out
    assert picture.stat().st_size > 1_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no folder 'nowhere'"),
        (["short"], "has completed a million frames"),
        (["short", "--figure", "x.png"], "name their folder by --out"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "short", "pong", 0, [1.0], frames=100_000)
    assert dopamine.main(arguments) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("benchmarks.dopamine: ")
    assert words in line
    assert captured.out == ""


COLUMNS = b"game,seed,state,commit,device,million_frames,end_frames,episodes,mean_return\n"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (b"\xff\xfe", ["is no table of runs: 'utf-8' codec can't decode"]),
        (b"", ["has no runs"]),
        (COLUMNS, ["has no runs"]),
        (COLUMNS + b"pong,0,done,,,1,1000000,9,nan\n", ["line 2 of", "its mean_return is 'nan', not a finite number"]),
        (COLUMNS + b"pong,0,done,,,1,1000000,9,inf\n", ["line 2 of", "its mean_return is 'inf'"]),
        (COLUMNS + b"pong,0,done,,,1,1000000,9,x\n", ["line 2 of", "its mean_return is 'x'"]),
        (
            COLUMNS + b"pong,0,done,,,0,1000000,9,1\n",
            ["line 2 of", "its million_frames is '0', not a whole number from 1"],
        ),
        (COLUMNS + b"pong,0,done,,,-3,1000000,9,1\n", ["line 2 of", "its million_frames is '-3'"]),
        (COLUMNS + b"pong,-1,done,,,1,1000000,9,1\n", ["line 2 of", "its seed is '-1', not a whole number from 0 on"]),
        (COLUMNS + b"pong,0,done,,,1,1000000,0,1\n", ["line 2 of", "its episodes is '0'"]),
        (COLUMNS + b"pong,0,done,,,1,1000000\n", ["line 2 of", "it has no episodes"]),
        (COLUMNS + b"pong,0,done,,,1,1000000,9,1,7\n", ["line 2 of", "it has more cells than columns"]),
        (b"game,seed\npong,0\n", ["line 2 of", "it has no state"]),
        (
            COLUMNS + b"pong,0,done,,,1,1000000,9,1\npong,1,done,,,1,1000000,9,1\npong,0,done,,,1,1000000,9,1\n",
            ["line 4 of", "is the iteration of line 2 again: pong, seed 0, million_frames 1; leave one"],
        ),
    ],
)
def test_a_damaged_table_of_runs_is_refused_with_its_line(tmp_path, capsys, table, words):
    (tmp_path / "dopamine-runs.csv").write_bytes(table)
    assert dopamine.main([str(tmp_path)]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("benchmarks.dopamine: ")
    assert f"'{tmp_path / 'dopamine-runs.csv'}'" in line
    for part in words:
        assert part in line
    assert captured.out == ""


def test_a_folder_in_the_place_of_a_table_of_runs_is_refused(tmp_path, capsys):
    (tmp_path / "dopamine-runs.csv").mkdir()
    assert dopamine.main([str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"benchmarks.dopamine: cannot read '{tmp_path / 'dopamine-runs.csv'}': is a directory"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (["--figure", "folder"], "it is a folder"),
        (["--figure", "curves.pdf"], "let its name end in .png"),
        (["--figure", "file/curves.png"], "it is a file"),
        (["--out", "file"], "it is a file"),
    ],
)
def test_places_are_checked_before_anything_is_read(tmp_path, monkeypatch, capsys, place, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(dopamine, "read_runs")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stopped:
        dopamine.main(["study", "--out", "out", *place])
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert words in line
    assert captured.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_in_the_place_of_a_table_is_found_before_anything_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.delattr(dopamine, "read_runs")
    (tmp_path / "dopamine.csv").mkdir()
    assert dopamine.main(["study", "--out", str(tmp_path)]) == 2
    assert "it is a folder; name a file" in capsys.readouterr().err


def test_a_study_that_cannot_be_read_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert dopamine.main(["nowhere", "--out", "out"]) == 2
    assert list(tmp_path.iterdir()) == []
