"""Quoted values of CSV with line ends: whole, cut, or with a stray quote. Python's csv module writes them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from workbench.connectors.contract.base import Exhausted, Fetched
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.files.quoted_lines import QuotedLines
from workbench.connectors.messages.message_format import CsvMessages
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext

COLUMNS = pa.schema({"a": pa.string(), "b": pa.string()})
VALUES = st.text(st.sampled_from('x",\n '), max_size=4)
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=12)


def read(
    path: Path, on_error: Any = "fail", max_records: int = 3, columns: Any = COLUMNS
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Rows, and the texts of dead letters."""
    rows, letters = [], []
    reader = FileSource(path, columns, on_error=on_error).create()
    reader.open(OperatorContext(uid="files", subtask=0))
    while not isinstance(polled := reader.poll(max_records), Exhausted):
        assert isinstance(polled, Fetched)
        rows += [tuple(row.values()) for row in polled.records.batch.to_pylist()]
        letters += [] if polled.dead_letters is None else polled.dead_letters.batch["record"].to_pylist()
    reader.close()
    return rows, letters


def written(rows: list[tuple[str, str]], quoting: Any) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator="\n").writerows([("a", "b"), *rows])
    return text.getvalue()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), block=st.sampled_from([16, 40, 1 << 20]))
def test_values_with_line_ends_are_read(
    rows: list[tuple[str, str]], quoting: Any, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(written(rows, quoting))
    for module in ("csv_format", "lenient_files"):
        monkeypatch.setattr(f"workbench.connectors.files.{module}.BLOCK_BYTES", block)
    assert read(path) == (rows, [])
    assert read(path, "dead_letter") == (rows, [])


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, cut=st.integers(1, 60), block=st.sampled_from([16, 1 << 20]))
def test_a_file_that_ends_within_quotes_is_refused(
    rows: list[tuple[str, str]], cut: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = written(rows, csv.QUOTE_ALL)
    text = text[: max(len('"a","b"\n'), len(text) - cut)]
    path = tmp_path / "a.csv"
    path.write_text(text)
    monkeypatch.setattr("workbench.connectors.files.csv_format.BLOCK_BYTES", block)
    if text.count('"') % 2:  # each quote begins or ends a value
        with pytest.raises(SourceError, match=r"a\.csv cannot be read: .*quote is not closed"):
            read(path)
    elif text.endswith("\n"):
        found = read(path)[0]
        assert found == rows[: len(found)]


def test_rows_before_an_open_quote_are_given_and_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 300_000 + '3,"x\n4,5\n')
    reader = FileSource(path, COLUMNS).create()
    reader.open(OperatorContext(uid="files", subtask=0))
    found: list[str] = []
    with pytest.raises(SourceError, match="ends within a quoted value"):
        _read_into(found, reader)
    assert set(found) == {"2"}
    assert len(found) > 200_000
    reader.close()


def _read_into(found: list[str], reader: Any) -> None:
    while isinstance(fetched := reader.poll(100_000), Fetched):
        found += fetched.records.batch["b"].to_pylist()


@pytest.mark.parametrize(
    ("text", "rows", "letters"),
    [
        ('1,"x\n7,8\ny"\n3,4\n', [("1", "x\n7,8\ny"), ("3", "4")], []),
        ('1,"x\n7,8\n3,4\n', [("7", "8"), ("3", "4")], ['1,"x']),  # nothing ends it
        ('1,"x\n7,8\n"y",4\n', [("7", "8"), ("y", "4")], ['1,"x']),  # a quote that begins a value ends none
        ('1,"x\n7,8\ny" z\n3,4\n', [("3", "4")], ['1,"x\n7,8\ny" z']),  # pieces of one value
        ('"x\n7,8\n1,2"\n3,4\n', [("3", "4")], ['"x\n7,8\n1,2"']),  # too few columns
        ('1,5" pipe\n3,4\n', [("1", '5" pipe'), ("3", "4")], []),
        ('1,"x', [], ['1,"x']),
        ('1,"a ""b""\n"" c"\r\n3,4\r\n', [("1", 'a "b"\n" c'), ("3", "4")], []),
    ],
)
def test_pieces_of_a_value_are_no_rows(text: str, rows: Any, letters: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + text.encode())
    for max_records in (1, 2, 100):
        assert read(path, "dead_letter", max_records) == (rows, letters)


def test_a_header_with_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf"a",b,"c\nd"\n1,2,3\n4,5\n')
    assert read(path, "dead_letter") == ([("1", "2")], ["4,5"])


def test_the_end_of_a_value_is_not_sought_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.connectors.files.quoted_lines._HELD_MAX", 10)
    lines = QuotedLines(",")
    assert lines.add([b'1,"x', b"2,3"]) == []
    assert lines.add([b"44,5"]) == [b'1,"x', b"2,3", b"44,5"]


def test_messages_that_end_within_quotes() -> None:
    messages = CsvMessages()
    assert messages.decode([b'1,"x\ny"', b"3,4"], COLUMNS).to_pylist() == [
        {"a": "1", "b": "x\ny"},
        {"a": "3", "b": "4"},
    ]
    for values in ([b'1,"x'], [b'1,"x', b"3,4"], [b'1,"x', b'3,y"'], [b"3,4", b'1,"x']):
        with pytest.raises((ValueError, SourceError), match=r"quote is not closed|records instead of"):
            messages.decode(values, COLUMNS)


def test_a_number_that_is_none_is_not_null(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,n\n1.5,1\nNaN,2\n,3\nNA,NA\n-inf,5\n")
    source = FileSource(path)
    assert source.schema == pa.schema({"x": pa.float64(), "n": pa.int64()})
    assert [str(row) for row in read(path, columns=None)[0]] == [
        "(1.5, 1)",
        "(nan, 2)",
        "(None, 3)",
        "(None, None)",
        "(-inf, 5)",
    ]
    path.write_text("n\n1\nNaN\n")
    with pytest.raises(SourceError, match=r"In the column 'n': .*invalid value 'NaN'"):
        read(path, columns=pa.schema({"n": pa.int64()}))


def test_the_column_of_a_dead_letter_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,x\n")
    reader = FileSource(path, pa.schema({"b": pa.int64()}), on_error="dead_letter").create()
    reader.open(OperatorContext(uid="files", subtask=0))
    polled = reader.poll(9)
    assert isinstance(polled, Fetched)
    assert polled.dead_letters is not None
    (error,) = polled.dead_letters.batch["error"].to_pylist()
    assert "In the column 'b': " in error
    assert "invalid value 'x'" in error
    reader.close()


def test_the_mark_of_the_end_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n\0end of the text\n3,4\n")
    with pytest.raises(SourceError, match="has the characters"):
        read(path)
