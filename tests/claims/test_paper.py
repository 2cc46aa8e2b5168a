"""The verdicts follow the tables: other numbers give other verdicts, and without a table there is none."""

import csv
import re
import shutil
from pathlib import Path

import pytest

from gramian.claims import Tables, claims, judge, page
from gramian.claims.rules import SAMPLED, VERDICTS, Statements
from gramian.cli import main
from gramian.core.errors import UserError

ROOT = Path(__file__).parents[2]
CLAIMS = {claim.id: claim for claim in claims()}
READ = sorted({"linear/regression.csv", *(name for claim in claims() for name in claim.tables)})


@pytest.fixture
def results(tmp_path):
    """The committed tables that claims read, to be changed."""
    for name in READ:
        (tmp_path / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "results" / name, tmp_path / "results" / name)
    return tmp_path / "results"


def edit(path, where, changes):
    """Change fields in the rows that fit."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    fitting = [row for row in rows if all(row[column] == value for column, value in where.items())]
    assert fitting
    for row in fitting:
        row.update(changes)
    write(path, rows)


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def verdict(claim, results):
    return judge(CLAIMS[claim], Tables(results)).verdict


def test_the_committed_page_is_what_the_tables_give_now():
    tables = Tables(ROOT / "results")
    written = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert written == page([judge(claim, tables) for claim in CLAIMS.values()]), "run: gramian claims"


def test_every_claim_that_the_paper_makes_is_in_the_ledger():
    assert list(CLAIMS) == [
        *(f"proposition-{number}" for number in range(1, 7)),
        "regression", "mountain-car-gain", "mountain-car-correlation", "mountain-car-sensitivity",
        "close-to-orthogonal", "gram-is-decor", "linear-cost", "gram-scores-like-decor", "forty-of-49", "median-score",
        "denser-features", "falling-terms", "gradient-growth",
    ]  # fmt: skip


def test_no_label_of_a_number_leans_on_another_row(results):
    entries = [judge(claim, Tables(results)) for claim in CLAIMS.values()]
    shown = [label for entry in entries for found in entry.judgements for label, _ in found.numbers]
    shown += [label for entry in entries for label, _ in entry.beside]
    parts = [part for claim in CLAIMS.values() for part in claim.parts]
    named = [label for part in parts for label in part.also]
    named += [getattr(part.rule, name, "") for part in parts for name in ("label", "beyond_label")]
    for label in {*shown, *named} - {"runs behind it"}:
        assert not re.match(r"(the same|that|this|those|it|its|of|what|so|with)\b", label), label


@pytest.mark.parametrize("claim", [f"proposition-{number}" for number in range(1, 7)])
def test_a_proposition_stands_or_falls_with_its_statements(claim, results):
    table = results / "linear" / "theory.csv"
    rule = CLAIMS[claim].parts[0].rule
    statements = [rule.rows(Tables(results), statement)[0]["statement"] for statement in rule.claimed]
    for statement in statements:
        edit(table, {"statement": statement}, {"verdict": "holds"})
    assert verdict(claim, results) == "reproduced"
    edit(table, {"statement": statements[0], "process": "3"}, {"verdict": "does not hold"})
    assert verdict(claim, results) == "false as stated"


CONTRASTS = "linear/mountain_car_contrasts.csv"


@pytest.mark.parametrize(
    ("pairing", "beyond", "expected", "ending"),
    [
        ((-100, -120, -80), (-30, -50, -10), "reproduced", ""),
        (
            (-100, -120, -80),
            (-30, -70, 10),
            "confounded",
            "no difference from the control detected",
        ),
        ((-100, -120, -80), (30, 10, 50), "confounded", "on the other side of 0: the control shows more of it"),
        ((-100, -220, 20), (-30, -50, -10), "undecided", "and the interval contains both outcomes"),
        ((100, 80, 120), (-30, -50, -10), "not reproduced", "the claim is that it is below 0"),
    ],
)
def test_mountain_car_needs_a_gain_and_one_beyond_the_control(pairing, beyond, expected, ending, results):
    for question, numbers in (("the paper's pairing: same α", pairing), ("beyond the norm penalty", beyond)):
        fields = dict(zip(("difference", "low", "high"), map(str, numbers), strict=True))
        edit(results / CONTRASTS, {"copies": "1", "question": question}, fields)
    (found,) = judge(CLAIMS["mountain-car-gain"], Tables(results)).judgements
    assert found.verdict == expected
    assert found.reason.endswith(ending)


def test_no_page_reads_a_difference_that_was_not_found_as_none():
    assert "no proof that there is none" in VERDICTS["confounded"]
    assert "not due to decorrelation" not in page([judge(claim, Tables(ROOT / "results")) for claim in CLAIMS.values()])


def test_the_gain_with_copies_must_exceed_that_without(results):
    def remains(copies, *numbers):
        fields = dict(zip(("difference", "low", "high"), map(str, numbers), strict=True))
        edit(results / CONTRASTS, {"copies": copies, "question": "what remains at matched step size"}, fields)

    remains("0", -100, -110, -90)
    remains("1", -300, -310, -290)
    assert verdict("mountain-car-correlation", results) == "confounded"  # the control has it as well, in this table
    remains("1", -100, -110, -90)
    assert verdict("mountain-car-correlation", results) == "undecided"
    remains("1", -10, -20, 0)
    assert verdict("mountain-car-correlation", results) == "not reproduced"


def test_the_range_of_step_sizes_must_widen(results):
    def share(arm, name, *numbers):
        fields = dict(zip((name, f"{name}_low", f"{name}_high"), numbers, strict=True))
        edit(results / "linear/mountain_car_summary.csv", {"copies": "1", "arm": arm}, fields)

    share("A, single-sample", "share_against_zero", "0.6", "0.55", "0.65")
    share("A, single-sample", "share_own", "0.9", "0.88", "0.92")
    share("A, norm alone", "share_own", "0.3", "0.28", "0.32")
    assert verdict("mountain-car-sensitivity", results) == "reproduced"
    share("A, norm alone", "share_own", "0.9", "0.88", "0.92")
    assert verdict("mountain-car-sensitivity", results) == "confounded"
    share("A, single-sample", "share_against_zero", "0.6", "-0.05", "0.65")
    assert verdict("mountain-car-sensitivity", results) == "undecided"
    share("A, single-sample", "share_against_zero", "-0.2", "-0.3", "-0.1")
    assert verdict("mountain-car-sensitivity", results) == "not reproduced"


def test_the_regression_is_judged_at_the_matched_step_size_and_for_both_inputs(results):
    table, arm = results / "linear/regression_summary.csv", "A, single-sample (the paper)"
    better = {"area_minus_control_mean": "-0.0005", "area_minus_control_se": "0.00001"}
    edit(table, {"arm": arm, "rho": "0.99"}, better)
    assert verdict("regression", results) == "confounded"
    edit(table, {"arm": arm, "rho": "0"}, better)
    assert verdict("regression", results) == "reproduced"
    edit(table, {"arm": arm, "rho": "0"}, {"area_mean": "0.9"})
    assert verdict("regression", results) == "not reproduced"


def test_the_forms_must_be_equal_to_rounding(results):
    edit(results / "cost/equality.csv", {"case": "offset", "n": "4"}, {"gradient_difference": "1e-3"})
    assert verdict("gram-is-decor", results) == "not reproduced"


def test_a_cost_that_grows_faster_than_the_features_is_not_linear(results):
    table = results / "cost/penalties.csv"
    rows = list(csv.DictReader(table.read_text().splitlines()))
    for row in rows:
        if row["form"] == "gram" and row["axis"] == "d":
            row["microseconds"] = str(float(row["d"]) ** 1.7)
    write(table, rows)
    assert verdict("linear-cost", results) == "not reproduced"
    for row in rows:
        if row["form"] in ("gram", "covariance") and row["axis"] == "d":
            row["microseconds"] = str(float(row["d"]) ** 0.9)
    write(table, rows)
    assert verdict("linear-cost", results) == "confounded"


LINEAR = [claim for claim in CLAIMS.values() if not any(part.awaited for part in claim.parts)]


@pytest.mark.parametrize("claim", LINEAR, ids=lambda claim: claim.id)
def test_no_verdict_without_its_table(claim, results):
    for name in claim.parts[0].tables:
        (results / name).rename(results / "hidden")
        with pytest.raises(UserError, match=rf"there is no table '.*{name}'; no verdict without a table"):
            judge(claim, Tables(results))
        (results / "hidden").rename(results / name)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_no_verdict_from_an_empty_table(claim, results):
    name = claim.parts[0].tables[0]
    (results / name).parent.mkdir(exist_ok=True)
    (results / name).write_text("arm,game,seed\n")
    with pytest.raises(UserError, match=rf"the table '.*{name}' has no rows"):
        judge(claim, Tables(results))


def test_a_table_without_a_column_or_with_words_for_numbers_is_refused(results):
    path = results / CONTRASTS
    edit(path, {"copies": "1", "question": "beyond the norm penalty"}, {"low": "a lot"})
    with pytest.raises(UserError, match=r"'a lot' in column low of the table .* is no number"):
        verdict("mountain-car-gain", results)
    path.write_text(path.read_text().replace(",low,", ",least,", 1))
    with pytest.raises(UserError, match="has no column low; it has copies, question"):
        verdict("mountain-car-gain", results)


EMPTIED = [
    ("mountain-car-gain", CONTRASTS, ("difference", "low", "high")),
    ("mountain-car-gain", CONTRASTS, ("low",)),
    ("mountain-car-correlation", CONTRASTS, ("high",)),
    ("regression", "linear/regression_summary.csv", ("area_mean",)),
    ("regression", "linear/regression_summary.csv", ("area_minus_control_se",)),
    ("gram-is-decor", "cost/equality.csv", ("value_difference",)),
    ("gram-is-decor", "cost/equality.csv", ("gradient_difference",)),
    ("linear-cost", "cost/penalties.csv", ("microseconds",)),
]


@pytest.mark.parametrize(("claim", "name", "columns"), EMPTIED)
@pytest.mark.parametrize("content", ["", "nan", "inf"])
def test_no_verdict_from_fields_that_hold_no_number(claim, name, columns, content, results):
    edit(results / name, {}, dict.fromkeys(columns, content))
    with pytest.raises(UserError, match=rf"{name}' has {content or 'nothing'} in column {columns[0]}, where a verdict"):
        verdict(claim, results)


@pytest.mark.parametrize("opinion", ["", "Holds", "perhaps"])
@pytest.mark.parametrize("claim", [f"proposition-{number}" for number in range(1, 7)])
def test_a_statement_holds_or_does_not_hold(claim, opinion, results):
    edit(results / "linear/theory.csv", {"process": "3"}, {"verdict": opinion})
    with pytest.raises(UserError, match=f"has '{opinion}' in column verdict; it must be 'holds' or 'does not hold'"):
        verdict(claim, results)


def test_an_interval_upside_down_is_refused_in_one_line(results, tmp_path, capsys):
    edit(results / CONTRASTS, {"copies": "1", "question": "beyond the norm penalty"}, {"low": "5", "high": "3"})
    assert main(["claims", "--results", str(results), "--out", str(tmp_path / "claims.md")]) == 2
    complaint = capsys.readouterr().err
    assert "has an interval from 5 to 3 for difference; its low end must not be above its high end" in complaint
    assert complaint.count("\n") == 1


def test_a_standard_error_below_zero_is_refused(results):
    edit(results / "linear/regression_summary.csv", {}, {"area_minus_control_se": "-1e-6"})
    with pytest.raises(UserError, match=r"has a standard error of -0\.001 for area_minus_control_mean"):
        verdict("regression", results)


def test_a_number_that_decides_nothing_may_be_missing(results):
    edit(results / "cost/equality.csv", {}, {"value_difference_variance": ""})
    found = judge(CLAIMS["gram-is-decor"], Tables(results))
    assert found.verdict == "reproduced"
    assert found.judgements[0].numbers[-1][1] == "–"


@pytest.mark.parametrize(
    ("claim", "name", "keep", "reason"),
    [
        *(
            (f"proposition-{number}", "linear/theory.csv", {"process": "0"}, "1 process, where a verdict takes 5")
            for number in range(1, 7)
        ),
        ("gram-is-decor", "cost/equality.csv", {"case": "random"}, "24 cases, where a verdict takes 100"),
    ],
)
def test_a_small_table_gives_numbers_and_no_verdict(claim, name, keep, reason, results):
    rows = list(csv.DictReader((results / name).read_text(encoding="utf-8").splitlines()))
    write(results / name, [row for row in rows if all(row[column] == value for column, value in keep.items())])
    found = judge(CLAIMS[claim], Tables(results))
    assert (found.verdict, found.judgements[0].reason) == ("not run in full", reason)
    assert found.judgements[0].numbers
    assert "1 processes" not in page([found])


@pytest.mark.parametrize(
    ("claim", "name"), [("regression", "linear/regression_summary.csv"), ("mountain-car-gain", CONTRASTS)]
)
def test_few_runs_give_no_verdict(claim, name, results):
    edit(results / name, {}, {"runs": "20"})
    found = judge(CLAIMS[claim], Tables(results))
    assert found.verdict == "not run in full"
    assert found.judgements[0].reason.startswith("20 runs, where a verdict takes ")


def test_a_slope_over_few_sizes_gives_no_verdict(results):
    rows = list(csv.DictReader((results / "cost/penalties.csv").read_text(encoding="utf-8").splitlines()))
    write(results / "cost/penalties.csv", [row for row in rows if row["axis"] == "n" or int(row["d"]) <= 4096])
    found = judge(CLAIMS["linear-cost"], Tables(results)).judgements[0]
    assert (found.verdict, found.reason) == ("not run in full", "4 sizes, where a verdict takes 5")


def test_symbols_stay_small_at_the_beginning_of_a_sentence():
    text = page([judge(CLAIMS["regression"], Tables(ROOT / "results"))])
    assert "**ρ = 0.99: " in text


def test_a_table_of_statements_without_their_verdicts_is_refused(results):
    path = results / "linear" / "theory.csv"
    path.write_text(path.read_text().replace("verdict", "opinion", 1))
    with pytest.raises(UserError, match="has no column verdict"):
        verdict("proposition-1", results)


def test_a_cost_of_nothing_has_no_slope(results):
    edit(results / "cost/penalties.csv", {"device": "cpu", "axis": "d", "form": "gram"}, {"microseconds": "0"})
    with pytest.raises(UserError, match="must be above 0 for a slope"):
        verdict("linear-cost", results)


def test_the_command_writes_the_page_and_refuses_without_leaving_one(results, tmp_path, capsys):
    out = tmp_path / "docs" / "claims.md"
    assert main(["claims", "--results", str(results), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "false as stated  Proposition 6" in printed
    assert "\n  undecided        five MinAtar games, 1M frames\n" in printed
    assert out.read_text().startswith("# The claims of the paper")
    out.unlink()
    (results / CONTRASTS).unlink()
    assert main(["claims", "--results", str(results), "--out", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()
    assert main(["claims", "--results", str(tmp_path / "nowhere")]) == 2
    assert "name the folder of the tables: --results FOLDER" in capsys.readouterr().err


def test_what_a_claim_needs_is_counted_and_what_it_remarks_is_a_verdict():
    for claim in CLAIMS.values():
        assert set(claim.remarks) <= set(VERDICTS)
        for part in claim.parts:
            sampled = getattr(getattr(part.rule, "value", None), "sample", None) is not None
            assert set(part.needs) - (set(SAMPLED) if sampled else set()) == set(part.counted), part.setting


def test_dots_in_a_statement_stand_for_any_words_of_one_statement(results):
    fitting = Statements("linear/theory.csv", ["θe₁ᵀ is…with one feature left"])
    assert fitting.judge(Tables(results)).verdict == "reproduced"
    with pytest.raises(UserError, match="'h is Lipschitz…' fits 2 statements"):
        Statements("linear/theory.csv", ["h is Lipschitz…"]).judge(Tables(results))
    with pytest.raises(UserError, match="has no statement 'h is smooth'"):
        Statements("linear/theory.csv", ["h is smooth"]).judge(Tables(results))


def test_a_claim_of_the_papers_setting_alone_has_no_rows_below_it():
    written = page([judge(CLAIMS["proposition-1"], Tables(ROOT / "results"))])
    assert "| ↳ " not in written
    assert "In smaller settings" not in written


DEEP = sorted({name for claim in CLAIMS.values() for part in claim.parts if part.awaited for name in part.tables})


@pytest.mark.parametrize("name", DEEP)
def test_the_command_does_without_a_table_of_deep_runs(name, results, tmp_path, capsys):
    (results / name).unlink()
    assert main(["claims", "--results", str(results), "--out", str(tmp_path / "claims.md")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("not run in full  ") + printed.count("not yet run      ") == 6
    assert f"| `results/{name}` | awaited |" in (tmp_path / "claims.md").read_text()
