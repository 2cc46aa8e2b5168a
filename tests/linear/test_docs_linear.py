import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "linear.py"))


@pytest.mark.parametrize("name", SCRIPT["TABLES"])
def test_the_page_shows_the_results_as_they_are(name):
    stored = (DOCS / "tables" / f"linear-{name}.md").read_text(encoding="utf-8")
    assert stored == SCRIPT["TABLES"][name](), "a result has changed; run: python docs/linear.py"


@pytest.mark.parametrize("name", SCRIPT["TABLES"])
def test_the_page_includes_every_table(name):
    assert f'--8<-- "docs/tables/linear-{name}.md"' in (DOCS / "linear.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("451.24", "451"),
        ("-4136.2", "−4,136"),
        ("0.01234", "0.0123"),
        ("4.1", "4.10"),
        ("0", "0.00"),
        ("2.1e-15", "2.10e−15"),
    ],
)
def test_numbers_have_three_digits(value, shown):
    assert SCRIPT["number"](value) == shown


def test_differences_carry_their_sign():
    assert SCRIPT["number"]("3.5", sign=True) == "+3.50"
