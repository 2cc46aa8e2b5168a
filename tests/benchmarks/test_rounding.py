"""Learning with products rounded to bfloat16 beside learning in float32."""

import csv

import numpy as np
import pytest
import torch

pytest.importorskip("ale_py")

from benchmarks import rounding
from gramian.core import statistics
from gramian.core.games import find_game
from gramian.deep.training.heldout import held_out_states


@pytest.fixture(scope="module")
def populations():
    """Runs of two updates in both ways, and in float32 once more."""
    game = find_game("breakout")
    states = held_out_states(game, rounding.load_preset("author").environment, 8)

    def learned(*, bf16):
        return rounding.learn(game, "gram", (0, 1), rounding.settings_for(2, 64, bf16=bf16), states)

    return learned(bf16=False), learned(bf16=True), learned(bf16=False)


def test_runs_differ_by_their_rounding_alone(populations):
    exact, rounded, again = populations
    assert exact.losses == again.losses
    assert torch.equal(exact.values, again.values)
    assert exact.losses != rounded.losses
    assert exact.losses == pytest.approx(rounded.losses, rel=0.2)
    assert exact.values.shape == (2, 8, 4)
    apart, between = (exact.values - rounded.values).abs().max(), (exact.values[0] - exact.values[1]).abs().max()
    assert 0 < apart < 0.2 * between


def test_all_play_is_random_and_the_replay_holds_all_of_it():
    settings = rounding.settings_for(3, 64, bf16=True)
    assert (settings.epsilon_initial, settings.epsilon_final) == (1.0, 1.0)
    assert settings.replay_capacity == 64 + 3 * settings.update_period_agent_steps == settings.frames // 4
    assert settings.target_period_agent_steps == 500 * settings.update_period_agent_steps
    assert settings.bf16


def test_a_row_has_the_distances_of_its_seed():
    waves = torch.tensor([1.0, -1.0]).expand(4, 2)
    exact = rounding.Learned([1.0, 2.0, 4.0], torch.stack([waves, 3 + waves, 5 + waves]))
    rounded = rounding.Learned([1.5, 2.0, 2.0], exact.values + torch.tensor([1.0, 0.0, -2.0]).view(3, 1, 1))
    rows = rounding.compare("pong", "dqn", (7, 8, 9), 10, exact, rounded)
    assert [(row.seed, row.loss_float32, row.loss_bf16) for row in rows] == [
        (7, 1.0, 1.5),
        (8, 2.0, 2.0),
        (9, 4.0, 2.0),
    ]
    assert [row.spread for row in rows] == [1.0, 1.0, 1.0]
    assert [row.rms_apart for row in rows] == [1.0, 0.0, 2.0]
    assert [row.rms_apart_seeds for row in rows] == [4.0, 2.5, 3.5]
    mean, low, high = statistics.mean_interval(np.array([50.0, 0.0, -50.0]))
    lines = rounding.markdown(rows).splitlines()
    assert lines[6] == f"| with another seed, in float32, by | {1000 / 3:.3g} % |"
    assert lines[3] == f"| with bfloat16 it is higher by, seed by seed | {mean:.3g} [−{-low:.3g}, {high:.3g}] % |"
    assert lines[5].endswith(f"of the deviation | {100:.3g} [−{148:.3g}, {348:.3g}] % |")


def test_the_table_is_written_and_printed(tmp_path, capsys):
    asked = ["breakout", "--seeds", "2", "--updates", "1", "--replay", "64", "--out", str(tmp_path)]
    assert rounding.main(asked) == 0
    said = capsys.readouterr()
    assert said.out == (tmp_path / "rounding.md").read_text()
    assert said.err == "float32: 2 runs of 1 updates\nbfloat16: 2 runs of 1 updates\n"
    rows = list(csv.DictReader((tmp_path / "rounding.csv").read_text().splitlines()))
    assert [(row["game"], row["arm"], row["seed"], row["updates"]) for row in rows] == [
        ("breakout", "dqn", "0", "1"), ("breakout", "dqn", "1", "1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["minatar/breakout"], "minatar/breakout is no Atari game; only their networks are rounded"),
        (["breakout", "--arm", "grammar"], "grammar"),
        (["nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, words):
    assert rounding.main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_too_few_seeds_are_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        rounding.main(["breakout", "--seeds", "1"])
    assert ended.value.code == 2
    assert "whole number from 2" in capsys.readouterr().err
