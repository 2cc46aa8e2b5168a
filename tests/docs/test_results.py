"""The tables of the page of results, from made-up tables and from none."""

import importlib.util

import pytest

from tests.docs.pages import ROOT

ARMS = {"dqn": 1.0, "gram": 2.0, "norm (matched)": 2.5}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The module that writes the tables, with a folder of its own for what it reads and writes."""
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "docs" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(module, "DOCS", tmp_path / "docs")
    (tmp_path / "docs" / "tables").mkdir(parents=True)
    return module


def write_scores(results):
    folder = results.RESULTS / "minatar"
    folder.mkdir(parents=True)
    lines = ["game,arm,seed,state,final_score,auc"]
    for game in ("minatar/breakout", "minatar/freeway"):
        for arm, mean in ARMS.items():
            lines += [f"{game},{arm},{seed},done,{mean + 0.1 * seed},{mean + 0.2 * seed}" for seed in range(4)]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")


def test_every_table_that_the_page_includes_is_made(results):
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert {f'--8<-- "docs/tables/results-{name}.md"' for name in results.tables()} == {
        line for line in page.splitlines() if line.startswith("--8<--")
    }


def test_a_table_without_results_says_what_it_awaits(results):
    results.main()
    text = (results.DOCS / "tables" / "results-minatar-scores.md").read_text()
    assert text == "*Not yet run: awaits `results/minatar/scores.csv`.*\n"


def test_scores_are_means_with_intervals_over_seeds(results):
    write_scores(results)
    lines = results.scores("minatar").splitlines()
    assert lines[0] == "| arm (4 seeds) | MinAtar Breakout | MinAtar Freeway |"
    assert lines[3].startswith("| `gram` | 2.15 [2.")


def test_differences_are_of_pairs_of_the_same_seed(results):
    write_scores(results)
    (line,) = [line for line in results.against("minatar", "norm (matched)").splitlines() if "`gram`" in line]
    # the seeds differ by as much as they are worth: of pairs, no spread is left
    assert line.count("**−0.500 [−0.500, −0.500]**") == 2
    assert line.endswith("| 0 [0, 0] | 0 [0, 0] |")


def test_the_committed_tables_are_those_of_the_committed_results(results, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", ROOT / "results")
    monkeypatch.setattr(results, "DOCS", ROOT / "docs")
    for name, make in results.tables().items():
        assert make() == (ROOT / "docs" / "tables" / f"results-{name}.md").read_text(encoding="utf-8"), name
