"""The tables and formulas of the linear pages; tests/docs/test_results.py compares the committed ones."""

import xml.etree.ElementTree as ET

import pytest

from docs import linear


def test_a_statement_that_fails_in_some_processes_is_named(monkeypatch):
    verdicts = {"a": ["holds"] * 3, "b": ["does not hold"] * 3, "c": ["holds", "does not hold", "holds"]}
    rows = [
        {"proposition": "1", "statement": statement, "verdict": verdict, "process": str(process)}
        for statement, found in verdicts.items()
        for process, verdict in enumerate(found)
    ]
    monkeypatch.setattr(linear, "rows", lambda _: rows)
    (line,) = linear.verdicts().splitlines()[2:]
    assert line == "| 1 | 1 hold in all 3 cases tried | b (3 of 3); c (1 of 3) |"


def test_a_block_of_latex_becomes_mathml():
    pytest.importorskip("latex2mathml")
    from docs.mathml import formula

    found = ET.fromstring(formula(r"(w - w^\ast)^\top \Sigma (w - w^\ast)"))
    names = {element.tag.rpartition("}")[2] for element in found.iter()}
    assert {"math", "msup", "mi", "mo"} <= names
