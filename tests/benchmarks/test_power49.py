"""The simulated power of the study of 49 games."""

import numpy as np
import polars as pl

from benchmarks import power49
from gramian.study.spec import load_study


def test_the_table_is_written_and_the_same_seed_gives_the_same(tmp_path, capsys):
    assert power49.main(["--replicates", "20", "--out", str(tmp_path / "out")]) == 0
    written = (tmp_path / "out" / "power.csv").read_text()
    assert written == capsys.readouterr().out
    assert power49.main(["--replicates", "20"]) == 0
    assert written == capsys.readouterr().out
    table = pl.read_csv(written.encode())
    assert table.height == len(power49.SCENARIOS) * len(power49.DESIGNS)
    assert table.select(pl.col("share", "sign_test", "wilcoxon", "begun_wilcoxon").is_between(0, 1)).to_numpy().all()


def test_games_without_a_difference_are_left_out():
    differences = np.array([[0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, -6.0]])
    assert power49.sign_test(differences) == power49.sign_test(differences[:, 2:])
    assert power49.wilcoxon(differences) == power49.wilcoxon(differences[:, 2:])


def test_the_games_are_run_in_the_order_that_the_protocol_names():
    names = sorted(load_study("paper").games)
    assert list(load_study("atari49").games) == list(np.random.default_rng(20261118).permutation(names))
