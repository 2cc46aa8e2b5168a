"""The verdicts follow the tables: other numbers give other verdicts, and without a table there is none."""

import re

import pytest

from gramian.claims import Tables, details, judge, page
from gramian.claims.rules import SAMPLED, VERDICTS, Statements
from gramian.core.errors import UserError
from tests.claims.made import CLAIMS, PARTS, ROOT, committed, verdict

PROPOSITIONS = [f"proposition-{number}" for number in range(1, 7)]
LINEAR = [claim for claim in CLAIMS.values() if not any(part.awaited for part in claim.parts)]
THEORY, CONTRASTS = "linear/theory.csv", "linear/mountain_car_contrasts.csv"
REGRESSION, EQUALITY, COST = "linear/regression_summary.csv", "cost/equality.csv", "cost/penalties.csv"
SINGLE = "A, single-sample (the paper)"


@pytest.fixture
def results():
    return committed()


def ends(names, *numbers):
    return dict(zip(names, map(str, numbers), strict=True))


def test_the_committed_page_is_what_the_tables_give_now():
    tables = Tables(ROOT / "results")
    entries = [judge(claim, tables) for claim in CLAIMS.values()]
    table, written = ((ROOT / "docs" / name).read_text("utf-8") for name in ("claims.md", "claims-details.md"))
    assert table == page(entries, "claims-details.md"), "run: gramian claims"
    assert written == details(entries), "run: gramian claims"
    assert "not due to decorrelation" not in written
    assert "**ρ = 0.99: " in written  # symbols stay small at the beginning of a sentence


def test_every_claim_that_the_paper_makes_is_in_the_ledger():
    assert list(CLAIMS) == [
        *PROPOSITIONS, "regression", "mountain-car-gain", "mountain-car-correlation", "mountain-car-sensitivity",
        "close-to-orthogonal", "gram-is-decor", "linear-cost", "gram-scores-like-decor", "forty-of-49", "median-score",
        "denser-features", "falling-terms", "gradient-growth",
    ]  # fmt: skip


def test_no_label_of_a_number_leans_on_another_row(results):
    entries = [judge(claim, results) for claim in CLAIMS.values()]
    labels = [label for entry in entries for found in entry.judgements for label, _ in found.numbers]
    labels += [label for entry in entries for label, _ in entry.beside] + [
        label for part in PARTS for label in part.also
    ]
    for label in {*labels} - {"runs behind it"}:
        assert not re.match(r"(the same|that|this|those|it|its|of|what|so|with)\b", label), label


@pytest.mark.parametrize("claim", PROPOSITIONS)
def test_a_proposition_stands_or_falls_with_its_statements(claim, results):
    rule = CLAIMS[claim].parts[0].rule
    statements = [rule.rows(results, statement)[0].text("statement") for statement in rule.claimed]
    for statement in statements:
        results.edit(THEORY, {"statement": statement}, verdict="holds")
    assert verdict(claim, results) == "reproduced"
    results.edit(THEORY, {"statement": statements[0], "process": 3}, verdict="does not hold")
    assert verdict(claim, results) == "false as stated"


@pytest.mark.parametrize(
    ("pairing", "beyond", "expected", "ending"),
    [
        ((-100, -120, -80), (-30, -50, -10), "reproduced", ""),
        ((-100, -120, -80), (-30, -70, 10), "confounded", "no difference from the control detected"),
        ((-100, -120, -80), (30, 10, 50), "confounded", "on the other side of 0: the control shows more of it"),
        ((-100, -220, 20), (-30, -50, -10), "undecided", "and the interval contains both outcomes"),
        ((100, 80, 120), (-30, -50, -10), "not reproduced", "the claim is that it is below 0"),
    ],
)
def test_mountain_car_needs_a_gain_and_one_beyond_the_control(pairing, beyond, expected, ending, results):
    for question, numbers in (("the paper's pairing: same α", pairing), ("beyond the norm penalty", beyond)):
        fields = ends(("difference", "low", "high"), *numbers)
        results.edit(CONTRASTS, {"copies": "1", "question": question}, **fields)
    (found,) = judge(CLAIMS["mountain-car-gain"], results).judgements
    assert found.verdict == expected
    assert found.reason.endswith(ending)


def test_a_difference_that_was_not_found_is_not_read_as_none():
    assert "no proof that there is none" in VERDICTS["confounded"]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((-300, -310, -290), "confounded"),  # the control has it as well, in this table
        ((-100, -110, -90), "undecided"),
        ((-10, -20, 0), "not reproduced"),
    ],
)
def test_the_gain_with_copies_must_exceed_that_without(numbers, expected, results):
    for copies, found in (("0", (-100, -110, -90)), ("1", numbers)):
        fields = ends(("difference", "low", "high"), *found)
        results.edit(CONTRASTS, {"copies": copies, "question": "what remains at matched step size"}, **fields)
    assert verdict("mountain-car-correlation", results) == expected


@pytest.mark.parametrize(
    ("against_zero", "control", "expected"),
    [
        ((0.6, 0.55, 0.65), (0.3, 0.28, 0.32), "reproduced"),
        ((0.6, 0.55, 0.65), (0.9, 0.88, 0.92), "confounded"),
        ((0.6, -0.05, 0.65), (0.9, 0.88, 0.92), "undecided"),
        ((-0.2, -0.3, -0.1), (0.9, 0.88, 0.92), "not reproduced"),
    ],
)
def test_the_range_of_step_sizes_must_widen(against_zero, control, expected, results):
    single = "A, single-sample"
    shares = ((single, "share_against_zero", against_zero), (single, "share_own", (0.9, 0.88, 0.92)))
    for arm, name, numbers in (*shares, ("A, norm alone", "share_own", control)):
        fields = ends((name, f"{name}_low", f"{name}_high"), *numbers)
        results.edit("linear/mountain_car_summary.csv", {"copies": "1", "arm": arm}, **fields)
    assert verdict("mountain-car-sensitivity", results) == expected


def test_the_regression_is_judged_at_the_matched_step_size_and_for_both_inputs(results):
    better = {"area_minus_control_mean": "-0.0005", "area_minus_control_se": "0.00001"}
    results.edit(REGRESSION, {"arm": SINGLE, "rho": 0.99}, **better)
    assert verdict("regression", results) == "confounded"
    results.edit(REGRESSION, {"arm": SINGLE, "rho": 0}, **better)
    assert verdict("regression", results) == "reproduced"
    results.edit(REGRESSION, {"arm": SINGLE, "rho": 0}, area_mean="0.9")
    assert verdict("regression", results) == "not reproduced"


def test_the_forms_must_be_equal_to_rounding(results):
    results.edit(EQUALITY, {"case": "offset", "n": 4}, gradient_difference="1e-3")
    assert verdict("gram-is-decor", results) == "not reproduced"


@pytest.mark.parametrize(
    ("forms", "power", "expected"),
    [(("gram",), 1.7, "not reproduced"), (("gram", "covariance"), 0.9, "confounded")],
)
def test_a_cost_that_grows_faster_than_the_features_or_like_the_covariances_is_no_gain(forms, power, expected, results):
    def cost(row):
        changed = row.fields["form"] in forms and row.fields["axis"] == "d"
        return row.fields | ({"microseconds": row.number("d") ** power} if changed else {})

    results.put(COST, [cost(row) for row in results.rows(COST)])
    assert verdict("linear-cost", results) == expected


@pytest.mark.parametrize("claim", LINEAR, ids=lambda claim: claim.id)
def test_no_verdict_without_its_table(claim, results):
    for name in claim.parts[0].tables:
        results.hidden = {name}
        with pytest.raises(UserError, match=rf"there is no table '.*{name}'; no verdict without a table"):
            judge(claim, results)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_no_verdict_from_an_empty_table(claim, results):
    name = claim.parts[0].tables[0]
    results.put(name, [])
    with pytest.raises(UserError, match=rf"the table '.*{name}' has no rows"):
        judge(claim, results)


def test_a_table_without_a_column_or_with_words_for_numbers_is_refused(results):
    results.edit(CONTRASTS, {"copies": "1", "question": "beyond the norm penalty"}, low="a lot")
    with pytest.raises(UserError, match=r"'a lot' in column low of the table .* is not a number"):
        verdict("mountain-car-gain", results)
    results.put(CONTRASTS, [{k: v for k, v in row.fields.items() if k != "low"} for row in results.rows(CONTRASTS)])
    with pytest.raises(UserError, match="has no column low; it has copies, question"):
        verdict("mountain-car-gain", results)
    results.put(THEORY, [{k: v for k, v in row.fields.items() if k != "verdict"} for row in results.rows(THEORY)])
    with pytest.raises(UserError, match="has no column verdict"):
        verdict("proposition-1", results)


@pytest.mark.parametrize(
    ("claim", "name", "columns"),
    [
        ("mountain-car-gain", CONTRASTS, ("difference", "low", "high")),
        ("mountain-car-gain", CONTRASTS, ("low",)),
        ("mountain-car-correlation", CONTRASTS, ("high",)),
        ("regression", REGRESSION, ("area_mean",)),
        ("regression", REGRESSION, ("area_minus_control_se",)),
        ("gram-is-decor", EQUALITY, ("value_difference",)),
        ("gram-is-decor", EQUALITY, ("gradient_difference",)),
        ("linear-cost", COST, ("microseconds",)),
    ],
)
@pytest.mark.parametrize("content", ["", "nan", "inf"])
def test_no_verdict_from_fields_that_hold_no_number(claim, name, columns, content, results):
    results.edit(name, {}, **dict.fromkeys(columns, content))
    with pytest.raises(UserError, match=rf"{name}' has {content or 'nothing'} in column {columns[0]}, where a verdict"):
        verdict(claim, results)


@pytest.mark.parametrize("opinion", ["", "Holds", "perhaps"])
def test_a_statement_holds_or_does_not_hold(opinion, results):
    results.edit(THEORY, {"process": 3}, verdict=opinion)
    for claim in PROPOSITIONS:
        with pytest.raises(
            UserError, match=f"has '{opinion}' in column verdict; it must be 'holds' or 'does not hold'"
        ):
            verdict(claim, results)


def test_an_interval_upside_down_and_a_standard_error_below_zero_are_refused(results):
    results.edit(CONTRASTS, {"copies": 1, "question": "beyond the norm penalty"}, low="5", high="3")
    with pytest.raises(UserError, match="an interval from 5 to 3 for difference; its low end must not be above its h"):
        verdict("mountain-car-gain", results)
    results.edit(REGRESSION, {}, area_minus_control_se="-1e-6")
    with pytest.raises(UserError, match=r"has a standard error of -0\.001 for area_minus_control_mean"):
        verdict("regression", results)


def test_a_cost_of_nothing_has_no_slope(results):
    results.edit(COST, {"device": "cpu", "axis": "d", "form": "gram"}, microseconds="0")
    with pytest.raises(UserError, match="must be above 0 for a slope"):
        verdict("linear-cost", results)


def test_a_number_that_decides_nothing_may_be_missing(results):
    results.edit(EQUALITY, {}, value_difference_variance="")
    found = judge(CLAIMS["gram-is-decor"], results)
    assert found.verdict == "reproduced"
    assert found.judgements[0].numbers[-1][1] == "–"


@pytest.mark.parametrize(
    ("claim", "name", "fits", "reason"),
    [
        *((name, THEORY, lambda row: row.text("process") == "0", "1 process, where a verdict takes 5")
          for name in PROPOSITIONS),
        ("gram-is-decor", EQUALITY, lambda row: row.text("case") == "random", "24 cases, where a verdict takes 100"),
        ("linear-cost", COST, lambda row: row.text("axis") == "n" or row.number("d") <= 4096,
         "4 sizes, where a verdict takes 5"),
    ],
)  # fmt: skip
def test_a_small_table_gives_numbers_and_no_verdict(claim, name, fits, reason, results):
    found = judge(CLAIMS[claim], results.keep(name, fits))
    assert (found.verdict, found.judgements[0].reason) == ("not run in full", reason)
    assert found.judgements[0].numbers
    assert "1 processes" not in details([found])


@pytest.mark.parametrize(("claim", "name"), [("regression", REGRESSION), ("mountain-car-gain", CONTRASTS)])
def test_few_runs_give_no_verdict(claim, name, results):
    found = judge(CLAIMS[claim], results.edit(name, {}, runs="20"))
    assert found.verdict == "not run in full"
    assert found.judgements[0].reason.startswith("20 runs, where a verdict takes ")


def test_what_a_claim_needs_is_counted_and_what_it_remarks_is_a_verdict():
    for part in PARTS:
        sampled = getattr(getattr(part.rule, "value", None), "sample", None) is not None
        assert set(part.needs) - (set(SAMPLED) if sampled else set()) == set(part.counted), part.setting
    for claim in CLAIMS.values():
        assert set(claim.remarks) <= set(VERDICTS)


def test_dots_in_a_statement_stand_for_any_words_of_one_statement(results):
    fitting = Statements(THEORY, ["θe₁ᵀ is…with one feature left"])
    assert fitting.judge(results).verdict == "reproduced"
    for pattern, message in (
        ("h is Lipschitz…", "fits 2 statements"),
        ("h is smooth", "has no statement 'h is smooth'"),
    ):
        with pytest.raises(UserError, match=message):
            Statements(THEORY, [pattern]).judge(results)


def test_a_claim_of_the_papers_setting_alone_has_no_rows_below_it(results):
    written = page([judge(CLAIMS["proposition-1"], results)], "claims-details.md")
    assert "| ↳ " not in written
    assert "holds in all 5 cases tried" in written
