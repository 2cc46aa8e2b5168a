"""The statistics of the study of 49 games, as its protocol has them."""

import re

import numpy as np
import pytest

from benchmarks import atari49
from benchmarks.atari49 import DQN, GRAM, NORM, games_table, median_curves, outcome, size_rows, summary
from benchmarks.power49 import Games
from gramian.core.games import find_game
from gramian.report.analysis import Options, analyse
from tests.report.studies import study


def made(games=49, seeds=(200,), better=40):
    """``gram`` learns twice what ``dqn`` does in ``better`` games and half in the others; ``norm`` as ``dqn`` + 1."""
    random = dict(zip(Games().names, [float(row) for row in _random()], strict=True))
    cells = {}
    for at, name in enumerate(Games().names[:games]):
        for arm, area in ((DQN, 10.0), (GRAM, 20.0 if at < better else 5.0), (NORM, 11.0)):
            cells |= {(find_game(name).name, arm, seed): [random[name] + area + seed / 1000] * 2 for seed in seeds}
    whole = study(cells)
    return whole, analyse(whole, Options(replicates=100))


def _random():
    from gramian.report.reference import paper_table

    return paper_table().sort("game")["random"]


def test_nothing_is_tested_before_all_games_have_the_first_seed():
    said = summary(*made(games=48))
    assert "Seed 200: 48 of 49 games." in said
    assert said.endswith("Nothing is tested before all 49 games have seed 200.\n")
    assert "sign test" not in said


def test_shares_are_exact_and_tests_are_corrected_for_two():
    said = summary(*made())
    assert "Missing" not in said
    assert "| gram (0.082) against dqn | 40-0-9 | 0.82 [0.68, 0.91] | 1.85e-05 |" in said
    assert "| gram (0.082) against norm (0.24) | 40-0-9 | 0.82 [0.68, 0.91] | 1.85e-05 |" in said
    assert "32 games that DQN has begun to learn (fixed beforehand):" in said


def test_a_second_seed_has_its_own_part():
    said = summary(*made(seeds=(200, 201)))
    assert [line for line in said.splitlines() if line.startswith("## ")] == ["## Seed 200", "## Means over both seeds"]


def test_sizes_by_hand():
    rows = dict(size_rows(np.full(10, 15.0), np.full(10, 10.0), np.random.default_rng(0)))
    assert rows["IQM over games, % of what DQN learns"] == "+50.0 [+50.0, +50.0]"
    assert rows["geometric mean of the ratio, 10 games"] == "×1.50 [1.50, 1.50]"
    assert rows["Wilcoxon's signed ranks of (g − d)/(|g| + |d|)"] == "p = 0.00195"


def test_areas_are_above_random_play_and_games_without_runs_are_empty():
    table = games_table(outcome(made(games=2)[1]))
    assert table.height == 49
    assert table["dqn"].drop_nulls().to_list() == pytest.approx([10.2, 10.2])
    assert table["gain_dqn"].drop_nulls().to_list() == pytest.approx([100 * 10 / 10.2] * 2)


def test_the_median_is_over_the_games_of_all_arms():
    panel = median_curves(made(games=3)[1])
    assert panel.title == "median of 3 games"
    assert set(panel.lines) == {DQN, GRAM, NORM}


@pytest.mark.slow
def test_the_command_works_on_what_there_is(tmp_path, capsys):
    assert atari49.main(["--out", str(tmp_path)]) == 0
    assert re.search(r"Seed 200: \d+ of 49 games\.", capsys.readouterr().out)
    names = {path.name for path in tmp_path.iterdir()}
    figures = {
        f"{name}.{kind}"
        for name in ("auc-gain-dqn", "auc-gain-norm", "median", "learning-curves")
        for kind in ("png", "svg")
    }
    assert names == figures | {"summary.md", "table.md", "table.tex", "games.csv"}
