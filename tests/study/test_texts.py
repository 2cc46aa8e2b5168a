"""The texts of a study: pure functions, by hand examples."""

from pathlib import Path

import pytest

from gramian.core.errors import UserError
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
