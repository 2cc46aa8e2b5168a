"""Tables are read whole or not at all."""

import pytest

from gramian.cli import main
from tests.claims.test_paper import results as results


@pytest.mark.parametrize("missing", [1, 3, 40])
@pytest.mark.parametrize("name", ["atari/scores.csv", "linear/theory.csv"])
def test_the_command_refuses_a_table_that_is_cut_off_and_writes_nothing(name, missing, results, tmp_path, capsys):
    out = tmp_path / "claims.md"
    whole = (results / name).read_bytes()
    (results / name).write_bytes(whole[:-missing])
    assert main(["claims", "--results", str(results), "--out", str(out)]) == 2
    complaint = capsys.readouterr().err
    line = whole[:-missing].count(b"\n") + 1
    assert f"line {line} of the table '{results / name}' does not end with a newline" in complaint
    assert complaint.count("\n") == 1
    assert not out.exists()
