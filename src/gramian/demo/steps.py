"""The steps of the demo. Each leaves its files in a folder and does nothing again that is there already."""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from gramian.core.cores import cores
from gramian.core.csv_tables import read_rows
from gramian.core.errors import WorkFailed
from gramian.demo.differences import Difference, Experiment, paired, short
from gramian.demo.sizes import Sizes
from gramian.linear import contrasts, curves, mountain_car, regression
from gramian.report.reference import title as game_title
from gramian.report.scores import Scores
from gramian.representation.analysis import analyze
from gramian.representation.tables import Measure, read_measures
from gramian.study.local import LocalExecutor
from gramian.study.manifest import PLAN, POPULATIONS
from gramian.study.plan import Plan, check_same, make_plan, read_plan, write_plan
from gramian.study.run import run_study
from gramian.study.spec import parse_study, read_study_text
from gramian.study.status import unfinished
from gramian.study.store import read_study

RHO = 0.99
"""The correlation of the regression that the table is about; the figures have the other."""
POPULATION = 2
"""Runs of a population: fixed, because a float32 result depends on it."""
PAIRING, STEP_SIZE, REMAINS, BEYOND = (
    "decorrelated minus plain, same α",
    "plain at α·d minus plain at α",
    "decorrelated minus plain at α·d",
    "decorrelated minus norm alone",
)
TELLS: Mapping[str, str] = {
    PAIRING: "the paper's pairing: the term and a larger step together",
    STEP_SIZE: "the larger step alone",
    REMAINS: "the term (decorrelation and shrinking), at matched step size",
    BEYOND: "decorrelation, beyond shrinking the features",
}
"""What the linear differences are the effect of."""
QUESTIONS: Mapping[str, str] = {
    PAIRING: "the paper's pairing: same α",
    STEP_SIZE: "of that, step size alone",
    REMAINS: "what remains at matched step size",
    BEYOND: "beyond the norm penalty",
}
"""What `gramian.linear.contrasts` calls them."""
MEASURES: Mapping[str, str] = {
    "feature_norm": "feature norm, mean ‖φ‖",
    "sparsity": "sparsity, share of φᵢ = 0",
    "mean_abs_correlation": "mean |correlation| of features",
    "effective_rank": "effective rank",
    "dormant_share_0.025": "share of dormant features",
}
"""Of the trained features, and what the table calls them."""


def do_regression(folder: Path, sizes: Sizes) -> Experiment:
    """The paper's regression with its controls: error over all steps, mean over runs."""
    from gramian.linear.figures import write_regression_figures

    options = regression.Regression(
        out=folder, runs=sizes.regression_runs, steps=sizes.regression_steps, rhos=(0.0, RHO)
    )
    results = regression.compute(options)
    curves.write_tables(results)
    write_regression_figures(folder)
    areas = 1000 * results.areas[options.rhos.index(RHO)]  # [case, run]
    index = {(case.label, case.arm.lam): c for c, case in enumerate(results.cases)}
    same, matched = areas[index["plain, α", 0.0]], areas[curves.MATCHED]
    # its best λ, as on Mountain Car: what is left of the effect is then no matter of a bad choice
    lam, paper = min(
        ((lam, areas[index["A, single-sample (the paper)", lam]]) for lam in options.lambdas),
        key=lambda pair: float(pair[1].mean()),
    )
    pairs = {PAIRING: (paper, same), STEP_SIZE: (matched, same), REMAINS: (paper, matched)}
    return Experiment(
        f"Regression, ρ = {RHO:g}, best λ {lam:g}: error × 1,000 (less is better), {options.runs:,} runs",
        tuple(paired(what, *pair, TELLS[what]) for what, pair in pairs.items()),
        f"plain at α {short(same.mean())}, plain at α·d {short(matched.mean())}, decorrelated {short(paper.mean())}",
    )


def do_mountain_car(folder: Path, sizes: Sizes) -> Experiment:
    """A reduced sweep of step size and λ on Mountain Car, with its controls: steps per episode at each arm's best."""
    from gramian.linear.figures import write_mountain_car_figures

    options = mountain_car.MountainCar(
        out=folder,
        runs=sizes.car_runs,
        episodes=sizes.car_episodes,
        most_steps=sizes.car_most_steps,
        step_sizes=sizes.car_step_sizes,
        lambdas=sizes.car_lambdas,
        control_lambdas=sizes.car_control_lambdas,
        costly=False,
    )
    contrasts.write_tables(mountain_car.compute(options))
    write_mountain_car_figures(folder)
    summary, compared = (read_rows(folder / f"mountain_car_{name}.csv") for name in ("summary", "contrasts"))
    found = {row["question"]: row for row in compared if row["copies"] == "1"}

    def best(label: str) -> str:
        return short(min(float(row["steps"]) for row in summary if (row["copies"], row["arm"]) == ("1", label)))

    def difference(what: str) -> Difference:
        value, low, high = (float(found[QUESTIONS[what]][column]) for column in ("difference", "low", "high"))
        return Difference(what, value, low, high, TELLS[what])

    return Experiment(
        f"Mountain Car, features copied: steps an episode (fewer are better), {options.runs} runs",
        tuple(difference(what) for what in QUESTIONS),
        f"plain at α·d {best('plain, α·d')}, decorrelated {best('A, single-sample')}, "
        f"norm alone {best('A, norm alone')}",
    )


def do_training(folder: Path, sizes: Sizes) -> Plan:
    """Train what is not trained of the study, on the CPU, over two cores at most.

    Raises
    ------
    WorkFailed
        If a population could not be trained.
    """
    text, base = read_study_text(sizes.study)
    spec = parse_study(text, f"study '{sizes.study}'", base)
    if (folder / PLAN).exists():
        plan = read_plan(folder)
        check_same(folder, plan, spec)
    else:
        plan = make_plan(spec, largest=POPULATION, device="cpu", torch_threads=1, checkpoint_replay=True)
        write_plan(folder, plan, text)
    pending = len(unfinished(folder, plan))
    environments = [{"OMP_NUM_THREADS": str(plan.torch_threads)}] * max(1, min(cores(), pending))
    executor = LocalExecutor(environments, retries=1, emulator_threads=1)
    try:
        failures = run_study(folder.resolve(), plan, executor)
    except KeyboardInterrupt:
        print("stopping; what is being trained is saved first", file=sys.stderr)
        raise
    finally:
        executor.close()
    if failures:
        raise WorkFailed(f"training failed: {failures[0].reason}; the same command tries it again")
    return plan


def do_analysis(folder: Path, study: Path, plan: Plan, sizes: Sizes) -> Experiment:
    """Measure the features of the trained runs, and compare them and the scores, by pairs of the same seed."""
    torch.set_num_threads(1)  # the networks are small
    runs = [
        study / POPULATIONS / population.id / run.name for population in plan.populations for run in population.runs
    ]
    analyze(runs, folder, states=sizes.states)
    return compare(study, read_measures(folder / "measures.csv"))


def compare(study: Path, measures: list[Measure]) -> Experiment:
    """Scores and features of a study of one game and two arms: the penalised arm minus the first, by seed."""
    table = read_study(study)
    (game,) = table.runs["game"].unique().to_list()
    first, second = sorted(table.runs["arm"].unique().to_list(), key=lambda arm: (not arm.startswith("dqn"), arm))
    seeds = sorted(table.runs["seed"].unique().to_list())
    scores = Scores(table, "atari-57", [first, second], [game], seeds)

    def of(arm: str, name: str) -> list[float]:
        found = {row.seed: row.value for row in measures if (row.arm, row.measure) == (arm, name)}
        return [found[seed] for seed in seeds]

    rows = [
        paired("final score", scores.final[second][:, 0], scores.final[first][:, 0]),
        paired("area under the learning curve", scores.auc[second][:, 0], scores.auc[first][:, 0]),
        *(paired(label, of(second, name), of(first, name)) for name, label in MEASURES.items()),
    ]
    final = {arm: short(float(np.mean(scores.final[arm][:, 0]))) for arm in (first, second)}
    return Experiment(
        f"{game_title(game)}, {second} minus {first}: {len(seeds)} seeds, {int(scores.horizon[0]):,} frames",
        tuple(rows),
        f"score of random play {short(float(scores.random[0]))}, {first} {final[first]}, {second} {final[second]}",
    )
