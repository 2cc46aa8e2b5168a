import csv

import numpy as np

from gramian.cli import main
from gramian.linear.td import TD, compute


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
