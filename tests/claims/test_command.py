"""``gramian claims`` with tables on the disk."""

import pytest

from gramian.cli import main
from tests.claims.made import PARTS, ROOT

READ = sorted({"linear/regression.csv", *(name for part in PARTS for name in part.tables)})
DEEP = sorted({name for part in PARTS if part.awaited for name in part.tables})
CONTRASTS = "linear/mountain_car_contrasts.csv"


@pytest.fixture
def results(tmp_path):
    """The committed tables that claims read, by links to them."""
    for name in READ:
        (tmp_path / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "results" / name).symlink_to(ROOT / "results" / name)
    return tmp_path / "results"


def refused(results, out, capsys):
    """The one line that the command says where it writes nothing."""
    assert main(["claims", "--results", str(results), "--out", str(out)]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert not out.exists()
    return complaint


@pytest.mark.parametrize("missing", [1, 3, 40])
@pytest.mark.parametrize("name", ["atari/scores.csv", "linear/theory.csv"])
def test_a_table_that_is_cut_off_is_refused(name, missing, results, tmp_path, capsys):
    cut = (results / name).read_bytes()[:-missing]
    (results / name).unlink()
    (results / name).write_bytes(cut)
    line = cut.count(b"\n") + 1
    said = f"line {line} of the table '{results / name}' does not end with a newline"
    assert said in refused(results, tmp_path / "claims.md", capsys)


def test_the_command_writes_the_page_and_refuses_without_leaving_one(results, tmp_path, capsys):
    out = tmp_path / "docs" / "claims.md"
    assert main(["claims", "--results", str(results), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "false as stated  Proposition 6" in printed
    assert "\n  undecided        five MinAtar games, 1M frames\n" in printed
    assert out.read_text().startswith("# The claims of the paper")
    assert out.with_name("claims-details.md").read_text().startswith("# The claims in detail")
    out.unlink()
    (results / CONTRASTS).unlink()
    assert "no verdict without a table" in refused(results, out, capsys)
    assert "name the folder of the tables: --results FOLDER" in refused(tmp_path / "nowhere", out, capsys)


@pytest.mark.parametrize("name", DEEP)
def test_the_command_does_without_a_table_of_deep_runs(name, results, tmp_path, capsys):
    (results / name).unlink()
    assert main(["claims", "--results", str(results), "--out", str(tmp_path / "claims.md")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("not run in full  ") + printed.count("not yet run      ") == 6
    assert f"| `results/{name}` | awaited |" in (tmp_path / "claims-details.md").read_text()
