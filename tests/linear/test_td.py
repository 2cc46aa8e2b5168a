import csv

import numpy as np
import pytest

from gramian.cli import main
from gramian.linear.kernels import Weights
from gramian.linear.learner import ESTIMATORS, Arm
from gramian.linear.mdp import ERROR_CAP, evaluate, random_process
from gramian.linear.td import TD, compute
from tests.linear.oracle import DenseLearner

LAM = 0.1
ARMS = [Arm("plain"), Arm("plain", "single", LAM)] + [
    Arm(form, estimator, 0.0 if estimator == "none" else LAM, projected)
    for form in ("reduced", "full")
    for estimator in ESTIMATORS
    for projected in (False, True)
]


def run(arm, alpha=0.02, steps=200):
    process = random_process(6, 3, seed=1)
    samples = process.sample(np.random.default_rng(0), steps)
    weights = Weights(np.eye(3), np.ones(3), np.ones(3), np.zeros((3, 3)))
    record, errors = np.array([0, 7, steps]), np.empty(3)
    rule = arm.rule(arm.alpha(alpha, 3))
    evaluate(*samples, process.gamma, rule, weights, process.C, process.td_fixed_point(), record, errors)
    return process, samples, record, errors


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_the_kernel_is_td_0_with_dense_matrices(arm):
    process, samples, record, errors = run(arm)
    slow, curve = DenseLearner(arm, np.eye(3), alpha=0.02), []
    for n in range(201):
        values = np.array([slow.value(phi) for phi in process.phi])  # of every state, not by the weights
        curve.append(process.mu @ (values - process.phi @ process.td_fixed_point()) ** 2)
        if n < 200:
            phi, reward, following, second = (part[n] for part in samples)
            slow.q_step(phi, reward, [following], process.gamma, second if arm.two_samples else None)
    np.testing.assert_allclose(errors, np.array(curve)[record], atol=1e-10)


def test_a_diverged_run_is_capped():
    assert run(Arm("reduced"), alpha=50.0)[3].tolist()[1:] == [ERROR_CAP, ERROR_CAP]


def test_learning_approaches_the_solution_and_lambda_0_is_plain_learning_at_alpha_d(tmp_path):
    results = compute(TD(out=tmp_path, runs=12, steps=3000, threads=2))
    by_label = {case.label: results.errors[c] for c, case in enumerate(results.cases) if case.arm.lam == 0}
    assert (results.errors[:, 0] == 1).all()
    np.testing.assert_allclose(by_label["A, λ = 0"], by_label["plain, α·d"], rtol=1e-6)
    assert by_label["plain, α·d"][-1].mean() < 0.3
    again = compute(TD(out=tmp_path / "one", runs=12, steps=3000, threads=1))
    np.testing.assert_allclose(results.errors, again.errors, rtol=1e-9)


def test_the_command_writes_tables_and_a_figure(tmp_path, capsys):
    assert main(["td", "--runs", "2", "--steps", "100", "--out", str(tmp_path)]) == 0
    assert "(θ, A), two-sample" in capsys.readouterr().out
    with (tmp_path / "td_summary.csv").open(encoding="utf-8") as stream:
        rows = {(row["arm"], row["lambda"]): row for row in csv.DictReader(stream)}
    assert float(rows["plain, α·d", "0"]["area_minus_control_mean"]) == 0
    assert (tmp_path / "td.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gamma", "1"], "gamma is 1; it must lie in [0, 1)"),
        (["--features", "1"], "features is 1; with 12 states it must lie in 2 to 12"),
        (["--steps", "0"], "steps is 0"),
        (["--lambdas", "0"], "λ = 0 is always run as a control"),
    ],
)
def test_bad_input_gets_one_line_and_writes_nothing(tmp_path, capsys, options, message):
    assert main(["td", "--out", str(tmp_path / "out"), *options]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
