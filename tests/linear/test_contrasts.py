"""The numbers of the tables, computed again from the steps of every run and by other means."""

import csv

import numpy as np
import pytest

from gramian.cli.linear import mountain_car_command as mountain_car
from gramian.linear.mountain_car import MountainCar

SIZES = (0.05, 0.5, 1.2)
EPISODES = {"all": 12, "late": 10}
LAMBDAS = {
    "plain, α·d": (0.0,),
    "plain, same α as A": (0.0,),
    "A, λ = 0": (0.0,),
    "(θ, A), λ = 0": (0.0,),
    "A, single-sample": (0.01, 0.1, 1.0),
    "A, two-sample": (0.1, 1.0, 3.0),
    "A, norm alone": (0.1, 1.0, 3.0),
    "A, two-sample norm": (0.1, 1.0, 3.0),
    "plain, α·d, shrinkage": (0.1, 1.0, 3.0),
    "(θ, A), single-sample": (0.02, 0.2),
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A sweep whose families have different λ."""
    out = tmp_path_factory.mktemp("mountain-car")
    options = MountainCar(
        out=out,
        threads=1,
        runs=4,
        episodes=EPISODES["all"],
        most_steps=3000,
        step_sizes=SIZES,
        lambdas=LAMBDAS["A, single-sample"],
        control_lambdas=LAMBDAS["A, norm alone"],
        full_lambdas=LAMBDAS["(θ, A), single-sample"],
        tiles=3,
        copies=(1,),
        costly=False,
    )
    assert mountain_car(options) == 0
    return out


def rows_of(path):
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def steps(done):
    """Steps per episode of every run, by span and arm, λ and place of the step size."""
    found = {}
    for row in rows_of(done / "mountain_car_runs.csv"):
        mine = [int(row[str(n)]) / EPISODES[row["span"]] for n in range(4)]
        places = found.setdefault((row["span"], row["arm"], float(row["lambda"])), [])
        places.append(mine)
    return found


def cells(steps, arm, lambdas, span="all"):
    return {(lam, i): steps[span, arm, lam][i] for lam in lambdas for i in range(len(SIZES))}


def at_its_best(steps, arm, lambdas, span):
    """Choose with two runs by all episodes, judge with the other two by those of ``span``."""
    found = []
    for chosen, judge in (((0, 1), (2, 3)), ((2, 3), (0, 1))):
        by_all, by_span = cells(steps, arm, lambdas), cells(steps, arm, lambdas, span)
        best = min(by_all, key=lambda cell: sum(by_all[cell][n] for n in chosen))
        found.append(np.mean([by_span[best][n] for n in judge]))
    return np.mean(found)


CONTRASTS = [
    ("the paper's pairing: same α", "A, single-sample", "plain, same α as A"),
    ("of that, step size alone", "plain, α·d", "plain, same α as A"),
    ("what remains at matched step size", "A, single-sample", "plain, α·d"),
    ("unbiased estimator at matched step size", "A, two-sample", "plain, α·d"),
    ("norm penalty at matched step size", "A, norm alone", "plain, α·d"),
    ("shrinkage of values at matched step size", "plain, α·d, shrinkage", "plain, α·d"),
    ("beyond the norm penalty", "A, single-sample", "A, norm alone"),
    ("beyond the norm penalty, unbiased", "A, two-sample", "A, norm alone"),
    ("beyond the norm penalty of two samples", "A, two-sample", "A, two-sample norm"),
    ("what the bias does", "A, single-sample", "A, two-sample"),
    ("full form without the term", "(θ, A), λ = 0", "plain, α·d"),
    ("the term in the full form", "(θ, A), single-sample", "(θ, A), λ = 0"),
]


def compared(first, second):
    """The λ of each arm: those that both have, or all of them against an arm without λ."""
    one, other = LAMBDAS[first], LAMBDAS[second]
    if other == (0.0,):
        return one, other
    both = tuple(lam for lam in one if lam in other)
    return both, both


def test_every_contrast_is_asked_once(done):
    found = [(r["question"], r["first"], r["second"]) for r in rows_of(done / "mountain_car_contrasts.csv")]
    assert found == CONTRASTS


@pytest.mark.parametrize(("question", "first", "second"), CONTRASTS)
@pytest.mark.parametrize(("column", "span"), [("difference", "all"), ("late", "late")])
def test_a_difference_is_between_cells_chosen_on_the_other_half(done, steps, question, first, second, column, span):
    (row,) = [r for r in rows_of(done / "mountain_car_contrasts.csv") if r["question"] == question]
    one, other = compared(first, second)
    expected = at_its_best(steps, first, one, span) - at_its_best(steps, second, other, span)
    assert float(row[column]) == pytest.approx(expected)


@pytest.mark.parametrize(("question", "first", "second"), CONTRASTS)
def test_a_ratio_is_the_geometric_mean_over_equal_settings(done, steps, question, first, second):
    (row,) = [r for r in rows_of(done / "mountain_car_contrasts.csv") if r["question"] == question]
    one, other = compared(first, second)
    product, count = 1.0, 0
    for lam in one:
        for i in range(len(SIZES)):
            beside = lam if other == one else 0.0
            product *= np.mean(steps["all", first, lam][i]) / np.mean(steps["all", second, beside][i])
            count += 1
    assert float(row["ratio"]) == pytest.approx(product ** (1 / count))
    assert float(row["ratio_low"]) <= float(row["ratio"]) <= float(row["ratio_high"])


def share(curve):
    """By brute force: how many of very many step sizes lie within 10 % of the best."""
    dense = np.interp(np.linspace(SIZES[0], SIZES[-1], 200_001), SIZES, curve)
    return np.mean(dense <= 1.1 * min(curve))


def test_shares_of_the_step_size_range(done, steps):
    means = {key[1:]: np.mean(cells, axis=1) for key, cells in steps.items() if key[0] == "all"}
    rows = rows_of(done / "mountain_car_summary.csv")
    assert len(rows) == len(means)
    for row in rows:
        mine = share(means[row["arm"], float(row["lambda"])])
        assert float(row["share_own"]) == pytest.approx(mine, abs=1e-4)
        assert float(row["share_against_zero"]) == pytest.approx(mine - share(means["A, λ = 0", 0.0]), abs=1e-4)
    assert any(float(row["share_against_zero"]) != 0 for row in rows)  # or its sign would not have been seen


@pytest.mark.parametrize(
    ("span", "column", "episodes"), [("all", "steps_mean", EPISODES["all"]), ("late", "late_mean", EPISODES["late"])]
)
def test_the_means_can_be_computed_again_from_the_table_of_runs(done, span, column, episodes):
    rows, runs = rows_of(done / "mountain_car.csv"), rows_of(done / "mountain_car_runs.csv")
    for row, totals in zip(rows, (r for r in runs if r["span"] == span), strict=True):
        steps = [int(totals[str(n)]) / episodes for n in range(int(row["runs"]))]
        assert np.mean(steps) == pytest.approx(float(row[column]))
