"""Tables are read whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.core.csv_tables import read_rows
from gramian.core.errors import UserError

TABLE = "game,arm,seed,final_score\npong,dqn,0,12.5\npong,gram,0,13.75\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def read(folder, text):
    path = folder / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return read_rows(path)


fields = st.text(st.characters(codec="utf-8", exclude_characters='",\r\n'), min_size=1)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(fields, min_size=width, max_size=width), min_size=1)))
def test_a_whole_table_is_read_as_it_was_written(folder, rows):
    names = [f"column{at}" for at in range(len(rows[0]))]
    text = "".join(",".join(row) + "\n" for row in (names, *rows))
    assert [list(row.values()) for row in read(folder, text)] == rows


def test_ends_of_lines_in_quotes_belong_to_their_field(folder):
    assert read(folder, 'arm,note\n"dqn","one\ntwo"\n') == [{"arm": "dqn", "note": "one\ntwo"}]


@pytest.mark.parametrize("end", range(1, len(TABLE)))
def test_a_table_that_ends_in_the_middle_of_a_line_is_damaged(end, folder):
    if TABLE[end - 1] == "\n":
        assert len(read(folder, TABLE[:end])) == TABLE[:end].count("\n") - 1
        return
    line = TABLE[:end].count("\n") + 1
    with pytest.raises(UserError, match=rf"line {line} of the table '.*scores.csv' does not end with a newline"):
        read(folder, TABLE[:end])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("pong,dqn,0", "has 3 fields, where the heading has 4"),
        ("pong", "has 1 field, where the heading has 4"),
        ("pong,dqn,0,12.5,13", "has 5 fields, where the heading has 4"),
        ('pong,dqn,0,"12"5', "is no row of a CSV table .*"),
    ],
)
def test_a_row_of_too_few_or_too_many_fields_is_named(row, complaint, folder):
    with pytest.raises(UserError, match=rf"line 2 of the table '.*scores.csv' {complaint}; the table is damaged"):
        read(folder, TABLE.replace("pong,dqn,0,12.5", row))


def test_a_table_that_is_no_text_is_damaged(folder):
    (folder / "scores.csv").write_bytes(b"game\n\xff\n")
    with pytest.raises(
        UserError, match=r"line 2 of the table '.*scores.csv' is no text in UTF-8; the table is damaged"
    ):
        read_rows(folder / "scores.csv")


def test_ends_of_lines_may_be_those_of_other_systems(folder):
    (folder / "scores.csv").write_bytes(TABLE.replace("\n", "\r\n").encode())
    assert read_rows(folder / "scores.csv") == read(folder, TABLE)


def test_a_table_that_cannot_be_read_is_named(folder):
    with pytest.raises(UserError, match=r"cannot read the table '.*': is a directory"):
        read_rows(folder)
