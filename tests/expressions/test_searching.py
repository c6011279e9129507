"""Searching for a literal before matching a regular expression does not change the result."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.expressions import col, compile_expression
from workbench.expressions.evaluation.searching import contains, matches, required_literal

few = st.text("ab é", max_size=150)
texts = st.lists(st.one_of(st.none(), few), max_size=40)


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("error [0-9]{3}", "error "),
        ("plain", "plain"),
        (r"^a\.b$", "a.b"),
        ("ab+cd", "ab"),
        ("ab?cd", "cd"),
        ("abc*", "ab"),
        ("abc{0,2}de", "ab"),
        ("a+?bc", "bc"),
        ("(no)yes", "yes"),
        ("(a|b)*after", "after"),
        ("[]x]tail", "tail"),
        (r"\d+ lines", " lines"),
        ("a.b", "a"),
        ("naïve", "naïve"),
        ("a|b", ""),
        ("(?i)error", ""),
        (r"\x41bc", ""),
        (r"\Qa*b\E", ""),
        ("[[:alpha:]]bc", ""),
        ("[a", ""),
        ("", ""),
        (".*", ""),
    ],
)
def test_the_literal_that_every_match_contains(pattern: str, literal: str) -> None:
    assert required_literal(pattern) == literal


pieces = st.sampled_from(
    ["a", "b", " ", "é", "a*", "b?", "b+", "a{2}", "[ab]", "(ab)", "(a|b)", ".", "^", "$", r"\.", "|"]
)


@given(parts=st.lists(pieces, max_size=6), rows=texts)
@example(parts=["a", "b+"], rows=["ab", "a", None])
def test_a_pattern_matches_the_same_rows(parts: list[str], rows: list[str | None]) -> None:
    pattern = "".join(parts)
    column = pa.array(rows, pa.string())
    literal = required_literal(pattern)
    expected = pc.match_substring_regex(column, pattern)
    assert matches(pattern, literal)(column).equals(expected)
    for row in rows:
        if row is not None and "\n" not in row and (found := re.search(pattern, row)):
            assert literal in found.group()


@given(literal=st.text("ab é", min_size=1, max_size=8), rows=texts, skipped=st.integers(0, 3))
@example(literal="ab", rows=["a", "b"], skipped=0)  # not across two rows
@example(literal="b", rows=["a" * 63 + "b", "a" * 64 + "b", "", "b"], skipped=0)
@example(literal="é", rows=["x" * 70, None, "é"], skipped=1)
def test_a_literal_is_found_where_python_finds_it(literal: str, rows: list[str | None], skipped: int) -> None:
    column = pa.array(rows, pa.string()).slice(skipped)
    found = contains(literal)(column).to_pylist()
    assert found == [None if row is None else literal in row for row in rows[skipped:]]


def test_every_literal_is_found_wherever_it_stands() -> None:
    for length in (1, 2, 3, 4, 5, 9):
        literal = "abcdefghi"[:length]
        rows = ["-" * before + literal + "-" * (140 - before) for before in range(140)]
        assert contains(literal)(pa.array(rows)).true_count == len(rows)
        assert contains(literal + "!")(pa.array(rows)).true_count == 0


def test_expressions_use_it() -> None:
    batch = pa.record_batch({"line": ["error 12", "error 123", None, "an ERROR 123", "50%"]})
    for condition, expected in [
        ("line RLIKE 'error [0-9]{3}'", [False, True, None, False, False]),
        ("line LIKE '%error%'", [True, True, None, False, False]),
        ("line ILIKE '%error%'", [True, True, None, True, False]),
        (r"line LIKE '%\\%'", [False, False, None, False, True]),
        ("'an error' RLIKE 'err'", [True] * 5),
    ]:
        assert compile_expression(condition, batch.schema)(batch).to_pylist() == expected
    assert compile_expression(col("line").contains("R 1"), batch.schema)(batch).to_pylist() == [
        *(False, False, None, True, False)
    ]


words = st.one_of(st.none(), st.sampled_from(["view", "click", "", "é"]))


@given(rows=st.lists(words, max_size=30), skipped=st.integers(0, 2), extra=st.booleans())
def test_a_dictionary_gives_what_plain_text_gives(rows: list[str | None], skipped: int, extra: bool) -> None:
    plain = pa.array(rows, pa.string())
    encoded = plain.dictionary_encode()
    if extra:  # values that no row has, one of them null
        values = pa.array([*encoded.dictionary.to_pylist(), None, "unused"], pa.string())
        encoded = pa.DictionaryArray.from_arrays(encoded.indices, values)
    for text in (
        *("word = 'view'", "'view' < word", "word IS NULL", "coalesce(word, 'none')", "length(word)", "NOT word = ''"),
        *("word RLIKE 'i.w'", "CAST(word AS int)", "word IN ('view', 'click')", "concat(word, '!')", "word <=> NULL"),
    ):
        values = []
        for column in (plain, encoded):
            batch = pa.RecordBatch.from_arrays([column.slice(skipped)], names=["word"])
            values.append(compile_expression(text, batch.schema)(batch).to_pylist())
        assert values[0] == values[1], text


def test_a_costly_default_is_computed_for_the_rest_alone() -> None:
    words = ["ab", None, "cd", "xb"] * 50
    batch = pa.RecordBatch.from_pydict({"n": list(range(200)), "word": words})
    for least in (-1, 0, 60, 190, 300):  # none of the rows needs the default, few, most, all
        group = "regexp_extract(word, '(a|x)(b)', 2)"
        text = f"CASE WHEN n > {least} THEN 'large' WHEN word = 'cd' THEN NULL ELSE {group} END"
        expected = [
            "large" if n > least else None if word in ("cd", None) else "b"
            for n, word in zip(range(200), words, strict=True)
        ]
        assert compile_expression(text, batch.schema)(batch).to_pylist() == expected
    coded = batch.set_column(1, "word", batch.column("word").dictionary_encode())
    assert compile_expression(text, coded.schema)(coded).to_pylist() == expected


def test_a_costly_side_is_computed_for_the_rows_that_the_other_leaves_open() -> None:
    words = ["ab", None, "cd", "xb", "ab"] * 40
    numbers = [None if n % 7 == 0 else n for n in range(200)]
    batch = pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64()), "word": words})
    matching = {"ab": True, "xb": True, "cd": False, None: None}
    for least in (-1, 0, 60, 190, 300):  # the other side decides all rows, most, few or none
        for word, decisive in (("OR", True), ("AND", False)):
            for text in (f"n > {least} {word} word RLIKE '(a|x)b'", f"word RLIKE '(a|x)b' {word} n > {least}"):
                expected = []
                for n, one in zip(numbers, words, strict=True):
                    sides = (None if n is None else n > least), matching[one]
                    expected.append(decisive if decisive in sides else None if None in sides else not decisive)
                assert compile_expression(text, batch.schema)(batch).to_pylist() == expected, text


def test_a_call_that_stands_twice_is_computed_once_for_each_batch() -> None:
    schema = pa.schema({"word": pa.string(), "n": pa.int64()})
    text = "CASE upper(word) WHEN 'A' THEN 1 WHEN 'B' THEN 2 ELSE length(upper(word)) END"
    compiled = compile_expression(text, schema)
    for words, expected in ((["a", "b", "ccc"], [1, 2, 3]), (["b", None, "a"], [2, None, 1]), ([], [])):
        batch = pa.RecordBatch.from_pydict({"word": words, "n": [0] * len(words)}, schema)
        assert compiled(batch).to_pylist() == expected
    condition = compile_expression("upper(word) = 'A' OR upper(word) RLIKE 'B+'", schema)
    batch = pa.RecordBatch.from_pydict({"word": ["a", "xb", "c", None] * 5, "n": [0] * 20}, schema)
    assert condition(batch).to_pylist() == [True, True, False, None] * 5


def test_whether_a_group_is_found_is_told_without_it() -> None:
    batch = pa.RecordBatch.from_pydict({"s": ["k=1", "k=", "x", None, ""]})
    found = compile_expression("regexp_extract(s, '(?:k|j)(=)([0-9]*)', 2)", batch.schema)(batch)
    assert found.to_pylist() == ["1", "", None, None, None]
    for text, expected in (
        ("IS NOT NULL", [True, True, False, False, False]),
        ("IS NULL", [False, False, True, True, True]),
    ):
        told = compile_expression(f"regexp_extract(s, '(?:k|j)(=)([0-9]*)', 2) {text}", batch.schema)(batch)
        assert told.to_pylist() == expected
    whole = compile_expression("regexp_extract(s, '(k)=([0-9])', 0)", batch.schema)(batch)
    assert whole.to_pylist() == ["k=1", None, None, None, None]
