"""Tables are read whole or not at all."""

import shutil

import pytest

from gramian.cli import main
from tests.claims.test_ledger import ROOT


@pytest.mark.parametrize("missing", [1, 3, 40])
@pytest.mark.parametrize("name", ["atari/scores.csv", "linear/theory.csv"])
def test_the_command_refuses_a_table_that_is_cut_off_and_writes_nothing(name, missing, tmp_path, capsys):
    results, out = tmp_path / "results", tmp_path / "claims.md"
    shutil.copytree(ROOT / "results", results, ignore=shutil.ignore_patterns("study"))
    whole = (results / name).read_bytes()
    (results / name).write_bytes(whole[:-missing])
    assert main(["claims", "--results", str(results), "--out", str(out)]) == 2
    complaint = capsys.readouterr().err
    line = whole[:-missing].count(b"\n") + 1
    assert f"line {line} of the table '{results / name}' does not end with a newline" in complaint
    assert complaint.count("\n") == 1
    assert not out.exists()
