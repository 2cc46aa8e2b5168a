"""What the pages say agrees with what it is taken from."""

import csv
import re

import pytest
import yaml

from gramian import __version__
from tests.docs.pages import ROOT


def rows(path):
    return list(csv.DictReader((ROOT / path).read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize(("name", "device"), [("penalties", "cpu"), ("penalties", "cuda"), ("iqn", "cpu")])
def test_the_table_of_costs_is_the_one_on_the_page(name, device):
    page = (ROOT / "docs" / "tables" / f"{name}-{device}.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in page.splitlines() if line[:1] == "|"]
    times = {tuple(line[:4]) for line in lines}
    for axis in ("d", "n"):
        table = [row for row in rows(f"results/cost/{name}.csv") if (row["device"], row["axis"]) == (device, axis)]
        for size in {row[axis] for row in table}:
            found = {row["form"]: f"{float(row['microseconds']):,.0f}" for row in table if row[axis] == size}
            shown = [found.get(form, "not run") for form in ("covariance", "gram", "unbiased")]
            assert (f"{int(size):,}", *shown) in times


def test_citation_and_changelog_are_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Mavrin", "Graves", "Chan"]
    newest = re.search(r"^## (\S+?),", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest[1] == __version__
