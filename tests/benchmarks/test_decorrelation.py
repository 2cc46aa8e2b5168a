"""The protocol of the study ``decorrelation`` on made-up tables."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.stats

from benchmarks import decorrelation
from benchmarks.decorrelation import (
    Outcome,
    analyse,
    association,
    changes,
    chosen,
    dose_table,
    doses,
    effect_tables,
    joint_test,
)
from gramian.core.arms import PLAIN, kind_of
from gramian.core.errors import UserError
from gramian.core.statistics import ratios, standard_error, student
from gramian.study.manifest import Planned
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


# ---- the analysis ----------------------------------------------------------------------------------------------------

DOSES = {"norm": (0.001, 0.22, 8.0), "isotropy": (0.0001, 0.0025, 0.3), "correlation": (0.1, 0.2), "gram": (0.3, 0.4)}
CELLS = {
    PLAIN: 0.0,
    "isotropy:0.0001": -5.0,
    "isotropy:0.0025": -20.0,
    "norm:0.001": 10.0,
    "norm:0.001+isotropy:0.0001": 10.0 - 5.0 + 1.0,
    "norm:0.001+isotropy:0.0025": 10.0 - 20.0 + 2.0,
    "norm:0.22": 30.0,
    "norm:0.22+isotropy:0.0001": 30.0 - 5.0 + 3.0,
    "norm:0.22+isotropy:0.0025": 30.0 - 20.0 + 4.0,
}
"""Cells of the factorial, and by how many percent of what the plain agent learns they learn more."""
EFFECTS = {
    "shrinkage: norm 0.001": 10 + (1 + 2) / 3,
    "shrinkage: norm 0.22": 30 + (3 + 4) / 3,
    "decorrelation: isotropy 0.0001": -5 + (1 + 3) / 3,
    "decorrelation: isotropy 0.0025": -20 + (2 + 4) / 3,
    "interaction: norm 0.001 with isotropy 0.0001": 1,
    "interaction: norm 0.001 with isotropy 0.0025": 2,
    "interaction: norm 0.22 with isotropy 0.0001": 3,
    "interaction: norm 0.22 with isotropy 0.0025": 4,
}


def found(noise=0.0, seeds=10, games=5, scale=(1.0, 8.0, 3.0, 20.0, 0.5)):
    """A study whose cells have known effects, with noise of the blocks and of the runs; games differ in scale."""
    generator = np.random.default_rng(0)
    block = noise * generator.normal(size=(seeds, games))
    areas = {
        arm: np.array(scale)[:games] * (1 + more / 100 + block + noise * generator.normal(size=(seeds, games)))
        for arm, more in CELLS.items()
    }
    features = {name: {arm: generator.normal(size=(seeds, games)) for arm in CELLS} for name in decorrelation.FEATURES}
    names = [f"game {at}" for at in range(games)]
    return Outcome(names, [*range(seeds)], [], True, {"area": areas, "final": areas}, features)


def test_known_effects_are_recovered():
    exact, tests = effect_tables(found(noise=1e-9), "area")
    assert exact["name"].to_list() == [*EFFECTS]
    assert exact["value"].to_list() == pytest.approx([*EFFECTS.values()])
    assert tests["effect"].to_list() == ["shrinkage", "decorrelation", "interaction"]
    noisy, _ = effect_tables(found(noise=0.02), "area")
    assert (noisy["low"] < exact["value"]).all()
    assert (exact["value"] < noisy["high"]).all()


def test_estimates_are_those_of_least_squares_with_a_column_for_each_block():
    made = found(noise=0.3, seeds=4, games=3)
    design, y = [], []
    for at, arm in enumerate(CELLS):
        percent = 100 * made.scores["area"][arm] / made.scores["area"][PLAIN].mean(0)
        for seed, game in np.ndindex(4, 3):
            a, b = divmod(at, 3)
            norm, isotropy = np.eye(3)[a][1:], np.eye(3)[b][1:]
            design.append([*np.eye(12)[seed * 3 + game], *norm, *isotropy, *np.outer(norm, isotropy).ravel()])
            y.append(percent[seed, game])
    beta = np.linalg.lstsq(np.array(design), np.array(y))[0][12:]
    pairs = beta[4:].reshape(2, 2)
    expected = [*(beta[:2] + pairs.sum(1) / 3), *(beta[2:4] + pairs.sum(0) / 3), *beta[4:]]
    assert effect_tables(made, "area")[0]["value"].to_list() == pytest.approx(expected)


def test_a_joint_test_of_one_contrast_in_one_game_is_students_and_of_several_hotellings():
    values = np.random.default_rng(1).normal(0.5, size=(3, 12, 2))
    f, count, last, p = joint_test(values[:1, :, :1])
    plain = scipy.stats.ttest_1samp(values[0, :, 0], 0)
    assert (f, count, last, p) == pytest.approx((plain.statistic**2, 1, 11, plain.pvalue))
    mean = values[:, :, 0].mean(1)
    squared = 12 * mean @ np.linalg.inv(np.cov(values[:, :, 0])) @ mean
    assert joint_test(values[:, :, :1])[:3] == pytest.approx((squared * 9 / (3 * 11), 3, 9))
    # of one contrast in games that do not share a variance: the square of Student's t with Satterthwaite's freedom
    values[0, :, 1] *= 9
    error, freedom = standard_error(values[0])
    assert joint_test(values[:1])[:3] == pytest.approx(((values[0].mean() / error) ** 2, 1, freedom))


def test_an_interval_has_the_error_of_the_denominator():
    made = found(noise=0.1)
    rows = dose_table(made, "area")
    areas = made.scores["area"]
    by_game = 100 * ratios(areas["norm:0.22"] - areas[PLAIN], areas[PLAIN])
    row = rows.row(by_predicate=pl.col("name") == "norm:0.22", named=True)
    assert (row["value"], row["low"], row["high"]) == pytest.approx([float(end) for end in student(by_game)])
    assert row["game 1"] == pytest.approx(100 * areas["norm:0.22"][:, 1].mean() / areas[PLAIN][:, 1].mean())


def test_an_association_is_that_of_a_statistic_while_the_other_is_held_fixed():
    made = found()
    norm, ratio = made.features["log_norm"], made.features["log_ratio"]
    for arm in CELLS:
        ratio[arm] += norm[arm]  # they go together; the score follows the norm alone
        made.scores["area"][arm] = 1 + 0.25 * norm[arm]
    plain = made.scores["area"][PLAIN].mean(0)
    spread = np.std(np.stack([*norm.values()]), axis=(0, 1))
    slopes = association(made, [*CELLS], "log_ratio")
    assert slopes[0] == pytest.approx(np.tile(25 * spread / plain, (10, 1)))
    assert slopes[1] == pytest.approx(0, abs=1e-9)


def made_study(seeds, left_out=()):
    """A study of all arms with made-up features and scores above random play, without some runs."""
    arms = [
        PLAIN,
        *(f"{kind}:{kappa}" for kind, kappas in DOSES.items() for kappa in kappas),
        *(arm for arm in CELLS if "+" in arm),
    ]
    generator = np.random.default_rng(2)
    cells = {
        (game, arm, seed): [*np.zeros(10), *(1 + generator.random(10))]
        for game, arm, seed in product(("minatar/asterix", "minatar/freeway"), arms, range(seeds))
        if (game, arm, seed) not in left_out
    }
    made = study(cells)
    names = ("feature_norm", "participation_ratio", "mean_abs_correlation")
    held_out = made.runs.select("run", "game", "arm", "seed").with_columns(
        pl.lit(float(HORIZON)).alias("frames"),
        *(pl.Series(name, 1 + generator.random(made.runs.height)) for name in names),
    )
    settings = {run: {"prefill_agent_steps": HORIZON // 2} for run in made.runs["run"]}
    kinds = made.runs.with_columns(kind=pl.Series([kind_of(arm) for arm in made.runs["arm"]]))
    return replace(made, runs=kinds, held_out=held_out, settings=settings)


def test_of_an_unfinished_study_the_complete_seeds_are_shown_without_a_test(tmp_path):
    planned = Planned(cells={("minatar/asterix", PLAIN, 7): ""})
    whole = made_study(3)
    said = analyse(made_study(3, {("minatar/freeway", "norm:0.22", 1)}), planned, tmp_path, fewest=3)
    assert "Complete seeds: 0, 2.\n" in said
    assert "- seed 1: 1 run missing\n- seed 7: 1 run missing\n" in said
    assert "no verdict" in said
    assert "F(" not in said
    assert pl.read_csv(tmp_path / "effects-area.csv")["p"].null_count() == 8
    assert "no verdict" not in analyse(whole, Planned(), tmp_path, fewest=3)
    assert pl.read_csv(tmp_path / "effects-area.csv")["p"].null_count() == 0
    assert pl.read_csv(tmp_path / "effects-final.csv")["p"].null_count() == 8
    assert pl.read_csv(tmp_path / "tests-area.csv")["df"].to_list() == [2, 2, 4]
    figures = {f"{name}.{kind}" for name in ("doses", "measured") for kind in ("png", "svg")}
    assert figures <= {path.name for path in tmp_path.iterdir()}


def test_a_part_without_a_factorial_has_its_doses_alone(tmp_path):
    made = made_study(3)
    few = pl.col("arm").is_in([PLAIN, "norm:0.22"])
    analyse(replace(made, runs=made.runs.filter(few)), Planned(), tmp_path, fewest=3)
    assert {path.name for path in tmp_path.iterdir()} == {"summary.md", "doses-area.csv", "doses-final.csv"}


def test_the_command_refuses_in_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        decorrelation.main(["analyse", str(tmp_path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "benchmarks.decorrelation: analyse needs --out FOLDER\n"
    assert decorrelation.main(["doses", str(tmp_path / "none")]) == 2
