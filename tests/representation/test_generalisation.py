"""`gramian evaluate --modes`: trained runs in modes and difficulties that they have not seen."""

import csv

import pytest

from gramian.cli import main
from gramian.core.arms import Arm
from gramian.deep.envs import Flavour
from gramian.representation.generalisation import FlavourGame, flavour_table, scores
from tests.deep.trained import train_small

ATARI = {"atari": {"max_episode_frames": 80}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    arms = (Arm("dqn"), Arm("gram", 0.1))
    return train_small(tmp_path_factory.mktemp("runs"), ["pong"], arms, frames=400, **ATARI)


def game(arm, seed, mode, raw_return, episode=0):
    return FlavourGame(f"{arm}-s{seed}", "pong", arm, seed, 1, 0.0, mode, 0, int(mode == 0), episode, raw_return, 9, 0)


@pytest.mark.slow
def test_every_flavour_is_played_and_the_trainings_comes_first(runs, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--modes", "all", "--episodes", "2", "--out", str(out)]
    assert main(["evaluate", *map(str, runs), *arguments]) == 0
    with (out / "flavours.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # two modes of four difficulties, two arms, two games
    assert len(rows) == 2 * 4 * 2 * 2
    assert {(row["mode"], row["difficulty"]) for row in rows if row["trained"] == "1"} == {("0", "0")}
    table = capsys.readouterr().out
    assert table.index("| 0:0 (training) |") < table.index("| 1:3 |") < table.index("| mean of the unseen |")
    assert (out / "flavours.md").read_text(encoding="utf-8") in table
    assert (out / "flavours-pong.png").read_bytes().startswith(b"\x89PNG")


def test_single_modes_can_be_named(runs, tmp_path):
    assert main(["evaluate", str(runs[0]), "--modes", "1:0", "--episodes", "1", "--out", str(tmp_path)]) == 0
    assert len((tmp_path / "flavours.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2


def test_scores_are_means_over_games_and_then_over_seeds():
    rows = [game("dqn", 0, 0, 1.0), game("dqn", 0, 0, 3.0, 1), game("dqn", 1, 0, 6.0), game("dqn", 0, 1, 4.0)]
    found = scores(rows)["dqn"]
    assert found[Flavour(0, 0)][:2] == (4.0, 2.0)
    assert found[Flavour(1, 0)].value == 4.0


def test_one_seed_has_the_standard_error_of_its_games():
    found = scores([game("dqn", 0, 0, 1.0), game("dqn", 0, 0, 3.0, 1)])["dqn"]
    assert found[Flavour(0, 0)][:2] == (2.0, 1.0)


def test_the_table_has_a_column_for_each_arm():
    text = flavour_table([game(arm, 0, mode, 2.0 + mode) for arm in ("gram:1", "dqn") for mode in (0, 1, 2)])
    assert "| mode:difficulty | dqn | gram:1 |" in text
    assert "| mean of the unseen | 3.5 | 3.5 |" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{run}", "--modes", "9:9"], "unknown mode of 'pong': '9:9'"),
        (["{run}", "{run}", "--modes", "all"], "--out is missing"),
        (["{run}", "{run}", "--modes", "all", "--out", "{out}"], "given twice"),
        (["{run}", "{run}"], "with --modes alone"),
        (["{run}", "--modes", "all", "--record", "{out}.mp4"], "--record makes no video of other modes"),
        (["{run}", "--modes", "all", "--episodes", "0", "--out", "{out}"], "episodes is 0"),
    ],
)
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(runs, tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    arguments = [argument.format(run=runs[0], out=out) for argument in arguments]
    assert main(["evaluate", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not out.exists()


def test_a_game_without_modes_is_refused(tmp_path, capsys):
    (run,) = train_small(tmp_path / "runs", ["cartpole"])
    capsys.readouterr()
    assert main(["evaluate", str(run), "--modes", "all"]) == 2
    assert "'cartpole' has no modes" in capsys.readouterr().err
