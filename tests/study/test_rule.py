"""Rules that choose a κ, and the texts of a study: pure functions, by hand examples."""

import math
from pathlib import Path

import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.study import rule
from gramian.study.cost import Hardware, Share, divide
from gramian.study.local import worker_environments
from gramian.study.manifest import cells_text, joined_title, planned_cells
from gramian.study.worker import not_stopped, one_line

RUNS = [{"game": "pong", "arm": "gram:0.1", "label": "gram", "seed": 0}]
GOES_ON = "its population goes on from its last checkpoint"
CPU = Hardware("cpu", "CPU", 8, 1, 32 * 10**9, 8)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (rule.penalty_of("gram:10.24"), "gram"),
        (rule.penalty_of("gram:1.0:uncentered"), "gram:uncentered"),
        (rule.penalty_of("l2:3.0 lr 0.001"), "l2 lr 0.001"),
        (rule.last_mean([9.0, 9.0, 9.0, 4.0]), 4.0),
        (rule.mean_norm([1.0, 4.0]), pytest.approx(2.0)),
        (rule.mean_norm([1.0, 0.0]), pytest.approx(math.nan, nan_ok=True)),
        (rule.matched_kappa({0.1: 8.0, 10.0: 2.0}, target=4.0), 1.0),
        (rule.matched_kappa({0.1: 8.0, 10.0: 2.0}, target=9.0), None),
        (rule.grids({"dqn": 0, "gram:1": 1, "gram:0.1": 0.1, "gram:9": 9, "l2:1": 1}),
         {"gram": ["gram:0.1", "gram:1", "gram:9"]}),
        (rule.best_kappa([(10.0, 0.5), (0.1, 0.5), (1.0, 0.2)]), 0.1),
        (joined_title(["Four games", "Four games", "Four games: one arm more"]), "Four games"),
        (joined_title(["Pong 1", "Pong 10"]), "Pong 1; Pong 10"),
        (cells_text([("pong", "dqn", 0), ("pong", "gram", 0), ("pong", "gram", 1), ("qbert", "dqn", 2)]),
         "pong (seeds 0, 1), qbert (seed 2)"),
        (planned_cells({"populations": [{"id": "p000", "runs": RUNS}]}, Path("plan.json")),
         {"p000": [("pong", "gram", 0)]}),
        (not_stopped(1, 600.0), f"gramian: killing 1 worker that did not stop within 10 minutes; {GOES_ON}"),
        (one_line(RuntimeError("the GPU\nfell off the bus")), "RuntimeError: the GPU fell off the bus"),
        (one_line(UserError("no")), "no"),
        (worker_environments(CPU, workers=2, torch_threads=1), [{"OMP_NUM_THREADS": "1"}] * 2),
        (divide(CPU, run_bytes=7_100_000_000), Share(at_once=3, largest=1)),
    ],
)  # fmt: skip
def test_by_hand(found, expected):
    assert found == expected


def test_games_count_where_all_arms_have_a_score_and_differ():
    means = {"dqn": np.array([1.0, 5.0, 2.0]), "gram": np.array([2.0, 5.0, np.nan])}
    assert rule.counting_games(means, ["dqn", "gram"]) == [0]


def test_scores_are_shares_of_the_range_of_their_game():
    scores = {"dqn": np.array([[1.0], [3.0]]), "gram": np.array([[4.0], [4.0]])}
    shares = rule.within_range(scores, {arm: own.mean(0) for arm, own in scores.items()}, ["dqn", "gram"], [0])
    assert shares["dqn"].tolist() == [[-0.5], [0.5]]
