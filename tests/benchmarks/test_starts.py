"""Games that begin from a saved state and games that begin with a reset, at random."""

import csv

import numpy as np
import pytest

pytest.importorskip("ale_py")

from benchmarks import starts
from gramian.core import statistics
from gramian.deep.envs.emulator import Console
from tests.benchmarks.refusals import refusal

pytestmark = pytest.mark.slow


def test_a_reset_console_keeps_what_a_game_has_left_in_its_memory_and_a_saved_one_does_not():
    saved, reset = (starts.play("kung_fu_master", kind, 0, 2) for kind in (Console, starts.ResetConsole))
    assert saved.bytes_changed == 0
    assert reset.bytes_changed > 0
    assert len(saved.returns) == len(saved.lengths) == 2


def test_a_block_is_a_function_of_its_seed_and_its_way_to_begin():
    first, again, other, reset = (
        starts.play("pong", kind, seed, 1)
        for kind, seed in ((Console, 0), (Console, 0), (Console, 1), (starts.ResetConsole, 0))
    )
    assert first == again
    assert len({tuple(block.lengths) for block in (first, other, reset)}) == 3


def test_the_table_has_what_was_played(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(starts, "MOST_AGENT_STEPS", 50)
    monkeypatch.setattr(starts, "BLOCK_EPISODES", 2)
    monkeypatch.setattr(starts, "ProcessPoolExecutor", InThisProcess)
    assert starts.main(["breakout", "pong", "--episodes", "5", "--out", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert page == (tmp_path / "starts.md").read_text()
    assert "| Breakout | 5 |" in page
    rows = list(csv.DictReader((tmp_path / "starts.csv").read_text().splitlines()))
    assert [(row["game"], row["episodes"]) for row in rows] == [("breakout", "5"), ("pong", "5")]
    blocks = [starts.play("breakout", Console, seed, size) for seed, size in enumerate((2, 2, 1))]
    returns = [value for block in blocks for value in block.returns]
    assert float(rows[0]["saved"]) == pytest.approx(np.mean(returns))
    assert float(rows[0]["saved_agent_steps"]) <= 50
    reset = [starts.play("breakout", starts.ResetConsole, seed, size) for seed, size in enumerate((2, 2, 1))]
    others = np.array([value for block in reset for value in block.returns])
    found = [float(rows[0][name]) for name in ("reset", "reset_low", "reset_high")]
    assert found == pytest.approx(statistics.mean_interval(others))
    found = [float(rows[0][name]) for name in ("difference", "difference_low", "difference_high")]
    assert found == pytest.approx(statistics.welch(np.array(returns), others))
    assert float(rows[0]["difference"]) == pytest.approx(float(rows[0]["saved"]) - float(rows[0]["reset"]))


@pytest.mark.parametrize(("low", "share"), [(1.0, "−25.0"), (-1.0, "–")])
def test_a_difference_is_a_share_of_a_return_that_is_told_apart_from_nothing(low, share):
    row = starts.Row("freeway", 5, 1.5, 1.0, 2.0, 9.0, 2.0, low, 3.0, 9.0, -0.5, -1.0, 0.0, 1)
    assert f"| {share} | 1 |" in starts.markdown([row])


class InThisProcess:
    """An executor that carries everything out at once, so that what a test changes is changed there too."""

    def __init__(self, _):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *arguments):
        value = function(*arguments)
        return type("Done", (), {"result": lambda _: value})()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["minatar/breakout"], "minatar/breakout is no Atari game"),
        (["nosuch"], "nosuch"),
        (["pong", "--episodes", "1"], "give a whole number from 2"),
    ],
)
def test_what_cannot_be_played_is_one_line(capsys, arguments, words):
    assert words in refusal(starts, arguments, capsys)
