"""The tables of contestants on the page about speed, and what stands below them."""

import pytest

pytest.importorskip("gymnasium")

from docs.speed import TABLES, with_differences

PAGE = """## DQN on Breakout

| contestant | runs |
| --- | ---: |
| plain loop, 4 processes | 4 |
| gramian | 4 |

Not the same for all:

- what was said before

| contestant | runs | act |
| --- | ---: | ---: |
| Stable-Baselines3 | 1 | 7 |
"""


@pytest.mark.parametrize("kind", TABLES)
def test_below_the_table_stands_what_is_not_the_same(kind):
    text = TABLES[kind].read_text(encoding="utf-8")
    assert text == with_differences(text, kind), "the list has changed; run: python -m docs.speed"
    assert "one or two updates old" in text


def test_the_first_table_of_a_page_is_kept_and_its_contestants_are_found():
    made = with_differences(PAGE, "minatar")
    assert made.startswith(
        "| contestant | runs |\n| --- | ---: |\n| plain loop, 4 processes | 4 |\n| gramian | 4 |\n\n"
    )
    assert "one process for each run" in made
    assert "clips the norm" not in made  # Stable-Baselines3 stands in the second table alone
    assert "said before" not in made
