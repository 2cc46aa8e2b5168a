"""The protocol of the study ``decorrelation`` on made-up tables."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.decorrelation import changes, chosen, doses
from gramian.core.errors import UserError
from gramian.study.spec import load_study
from tests.report.studies import HORIZON, study

RESULTS = Path(__file__).parents[2] / "results" / "decorrelation"
GRID = 10.0 ** np.arange(6)


def pilot(norms, ratios, games=("pong", "qbert")):
    """``none`` with statistics of 1, and doses 1, 10, 100, … of both penalties with these; scores that tell nothing."""
    arms = {"dqn": ("dqn", 0.0, 1.0, 1.0)}
    for kind, values in (("norm", norms), ("isotropy", ratios)):
        for kappa, value in zip(GRID, values, strict=False):
            norm, ratio = (value, 1.0) if kind == "norm" else (1.0, value)
            arms[f"{kind}:{kappa}"] = (kind, kappa, norm, ratio)
    cells = {(game, arm, 400): [1.0, 2.0] for game in games for arm in arms}
    made = study(cells)
    columns = [
        pl.Series(name, [arms[arm][at] for arm in made.runs["arm"]]) for at, name in enumerate(("kind", "kappa"))
    ]
    rows = []
    for game, arm, seed in cells:
        own = {"run": f"{game}-{arm}-s{seed}", "game": game, "arm": arm, "seed": seed}
        _, _, norm, ratio = arms[arm]
        for share, factor in ((0.5, 1000.0), (0.75, 0.5), (1.0, 2.0)):  # half of the frames are still the first half
            rows.append(
                own | {"frames": share * HORIZON, "feature_norm": factor * norm, "participation_ratio": factor * ratio}
            )
    return replace(made, runs=made.runs.with_columns(columns), held_out=pl.DataFrame(rows))


def test_a_change_is_that_of_the_mean_logarithm_in_the_last_half_against_none():
    made = pilot(norms=[0.5, 0.25], ratios=[2.0, 8.0])
    for penalty, expected in (("norm", [2.0, 4.0]), ("isotropy", [2.0, 8.0])):
        kappas, change = changes(made, penalty)
        assert kappas.tolist() == [1.0, 10.0]
        assert np.exp(change) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "reached", "doses_of_grid"),
    [
        ([0.0, 0.0, 0.0, 1.0, 2.0, 2.0], (10**2.2, 10**3.0), (100, 1000)),
        ([1.0, 2.0, 4.0, 8.0, 16.0, 20.0], (10**1.0, 10**3.25), (10, 1000)),
        ([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], (0.2, 1.0), None),  # both on the lowest dose
        ([0.0, 0.0, 9.0, 10.0, 10.0, 10.0], (10 ** (1 + 1 / 9), 10 ** (1 + 5 / 9)), (10, 100)),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 10.0], (10**4.0, 10 ** (4 + 4 / 9)), (10**3, 10**4)),  # the same dose twice
        ([-1.0, 0.0, 9.0, 3.0, 10.0, 9.0], (10 ** (1 + 1 / 9), 10 ** (1 + 5 / 9)), (10, 100)),  # the first time counts
        ([0.0, 2.0, 9.0, 20.0, 20.0, 18.0], (10.0, 10 ** (2 + 1 / 11)), (10, 100)),
    ],
)
def test_weak_and_medium_by_hand(change, reached, doses_of_grid):
    change = np.array(change)
    if doses_of_grid is None:
        with pytest.raises(UserError, match="weak and medium are both the lowest dose, 1"):
            chosen(GRID, change)
        return
    found = chosen(GRID, change)
    assert [found[name][0] for name in ("weak", "medium")] == pytest.approx(reached)
    assert tuple(found[name][1] for name in ("weak", "medium")) == doses_of_grid


def test_a_pilot_that_lacks_a_run_is_refused():
    made = pilot(norms=[0.5, 0.25], ratios=[2.0, 8.0])
    lacking = replace(
        made, held_out=made.held_out.filter(~((pl.col("game") == "pong") & (pl.col("arm") == "norm:1.0")))
    )
    with pytest.raises(UserError, match="the pilot of 'norm' is not whole"):
        doses(lacking)


def test_the_order_of_the_blocks_is_that_of_the_protocol():
    readme = (RESULTS / "README.md").read_text()
    games = sorted(name.removeprefix("minatar/") for name in load_study("decorrelation").games)
    generator = np.random.default_rng(20261119)
    for seed in load_study("decorrelation").seeds:
        assert f"| {seed} | {', '.join(generator.permutation(games))} |" in readme
