"""Where an interval lies makes the verdict."""

from pathlib import Path

import pytest

from gramian.claims import Number, Tables
from gramian.claims.rules import HARDEST_FIRST, VERDICTS, Rule, effect, equivalent, within
from gramian.claims.tables import Quantity, count, shown
from tests.claims.made import PARTS

TABLES = Tables(Path())
RULES = [part.rule for part in PARTS if isinstance(part.rule, Rule)]


def interval(low, high):
    return Quantity((), lambda _: Number((low + high) / 2, low, high))


def test_every_verdict_has_a_rank():
    assert set(HARDEST_FIRST) == set(VERDICTS)


@pytest.mark.parametrize(
    ("low", "high", "rises", "falls"),
    [
        (1, 3, "reproduced", "not reproduced"),
        (-1, 3, "undecided", "undecided"),
        (-3, -1, "not reproduced", "reproduced"),
        (0, 3, "undecided", "not reproduced"),  # 0 itself is on neither side
        (-3, 0, "not reproduced", "undecided"),
        (0, 0, "not reproduced", "not reproduced"),
    ],
)
def test_an_effect_is_undecided_where_its_interval_lies_only_in_part_on_the_papers_side(low, high, rises, falls):
    for direction, expected in (("rises", rises), ("falls", falls)):
        found = effect("gain", interval(low, high), direction).judge(TABLES)
        assert found.verdict == expected
        assert found.reason.endswith("the interval contains both outcomes") == (expected == "undecided")


def test_an_undecided_effect_is_not_confounded_whatever_the_control_has():
    for low, high in ((-3, -1), (-1, 3), (1, 3)):
        rule = effect("gain", interval(-1, 3), "rises", beyond=("gain less the control", interval(low, high)))
        assert rule.judge(TABLES).verdict == "undecided"
        assert len(rule.judge(TABLES).numbers) == 2


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.42, 0.58, "reproduced"),
        (0.4, 0.6, "reproduced"),
        (0.3, 0.7, "undecided"),
        (0.55, 0.7, "undecided"),  # there is a difference, and it may be small enough
        (0.6, 0.7, "undecided"),
        (0.61, 0.7, "not reproduced"),
        (0.3, 0.39, "not reproduced"),
    ],
)
def test_equivalence_is_undecided_where_the_interval_lies_only_in_part_within_the_margin(low, high, expected):
    assert equivalent("chance", interval(low, high), margin=0.1, null=0.5).judge(TABLES).verdict == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.9, 1.0, "reproduced"),
        (0.75, 1.0, "reproduced"),
        (0.5, 1.0, "undecided"),
        (0.3, 0.9, "undecided"),
        (0.6, 0.75, "not reproduced"),
        (0.3, 0.75, "not reproduced"),
    ],
)
def test_a_level_is_reproduced_where_the_interval_reaches_to_it_and_not_to_the_contrary(low, high, expected):
    found = within("share of games", interval(low, high), least=0.8, null=0.5).judge(TABLES)
    assert found.verdict == expected
    assert found.reason.endswith("the interval reaches to 0.5 too") == (expected == "undecided")


def test_every_level_but_three_names_its_contrary_and_not_one_that_meets_it():
    levels = [rule for rule in RULES if rule.claim.startswith(", where the claim is at")]
    assert {rule.label for rule in levels if rule.null is None} == {
        "largest relative difference in value",
        "largest relative difference in gradient",
        "distance ‖AᵀA − I‖_F/√d after learning, at the λ that keeps it smallest",
    }
    with pytest.raises(ValueError, match=r"the contrary 0\.9 of 'share' lies within the claim"):
        within("share", interval(0, 1), least=0.8, null=0.9)


def test_the_interval_of_a_difference_is_made_of_both_ends():
    assert str(Number(5.0, 2.0, 8.0) - Number(1.0, -3.0, 5.0)) == "4 [−1, 9]"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(-4513.2916, -4524.4, -4502.96), "−4,513 [−4,524, −4,503]"),
        (Number(0.5, 0.5, 0.5), "0.5"),
        (Number(0.647, -12.63, 14.94), "1 [−13, 15]"),
        (Number(0.12, 0.004, 0.24), "0.120 [0.004, 0.240]"),
        (Number(0.5, 0.4, 0.6, note="unpaired"), "0.50 [0.40, 0.60] (unpaired)"),
    ],
)
def test_a_number_has_as_many_digits_as_its_interval_allows(number, text):
    assert str(number) == text


def test_numbers_and_counts_are_written_as_people_read_them():
    numbers = {-4513.29: "−4,513", 0.0011608: "0.00116", 99.96: "100", 1e-15: "1e-15", 0.0: "0"}
    assert {number: shown(number) for number in numbers} == numbers
    assert [count(1, "processes"), count(1, "games"), count(1200, "agent steps")] == [
        "1 process", "1 game", "1,200 agent steps",
    ]  # fmt: skip
