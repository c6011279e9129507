"""Patterns as chains of stages: documented facts of Flink's CEP, measures, time, errors and memory.

What follows what was read in apache/flink, docs/content/docs/libs/cep.md (Apache-2.0).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import workbench as wb


def rows(text: str) -> wb.Stream:
    """One row per word, a second apart."""
    words = text.split()
    times = pa.array(range(len(words)), pa.timestamp("s"))
    numbers = [int("".join(filter(str.isdigit, word)) or 0) for word in words]
    return wb.Stream.from_table(
        pa.table({"t": times, "key": ["k"] * len(words), "x": words, "n": numbers}), event_time="t"
    )


def is_a(letter: str) -> str:
    return f"x LIKE '{letter}%'"


def matches(text: str, pattern: wb.types.Pattern, **settings: Any) -> list[str]:
    found: dict[int, list[str]] = {}
    stream = rows(text).key_by("key").match(pattern, rows="all", match="MATCH_NUMBER()", **settings)
    for row in stream.collect().to_pylist():
        found.setdefault(row["match"], []).append(row["x"])
    return sorted(" ".join(words) for words in found.values())


A = wb.pattern("a", is_a("a"))


@pytest.mark.parametrize(
    ("method", "expected"),
    [("next", []), ("followed_by", ["a b1"]), ("followed_by_any", ["a b1", "a b2"])],
)
def test_contiguity_says_which_rows_may_stand_between(method: str, expected: list[str]) -> None:
    assert matches("a c b1 b2", getattr(A, method)("b", is_a("b"))) == expected


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("consecutive", ["c a1 a2 a3 b", "c a1 a2 b", "c a1 b"]),
        ("relaxed", ["c a1 a2 a3 a4 b", "c a1 a2 a3 b", "c a1 a2 b", "c a1 b"]),
        (
            "allow_combinations",
            [
                *("c a1 a2 a3 a4 b", "c a1 a2 a3 b", "c a1 a2 a4 b", "c a1 a2 b", "c a1 a3 a4 b", "c a1 a3 b"),
                *("c a1 a4 b", "c a1 b"),
            ],
        ),
    ],
)
def test_rows_of_a_stage_follow_each_other_as_said(inner: str, expected: list[str]) -> None:
    loop = wb.pattern("c", is_a("c")).followed_by("a", is_a("a")).one_or_more()
    if inner != "relaxed":
        loop = getattr(loop, inner)()
    assert matches("c d a1 a2 a3 d a4 b", loop.followed_by("b", is_a("b"))) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (("nowhere",), ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        (("next_row",), ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        (("past_last",), ["b1 b2 b3 c"]),
        (("to_first", "b"), ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        (("to_last", "b"), ["b1 b2 b3 c", "b3 c"]),
    ],
)
def test_a_match_ends_others_as_said(after: tuple[Any, ...], expected: list[str]) -> None:
    pattern = wb.pattern("b", is_a("b")).one_or_more().next("c", is_a("c"))
    assert matches("b1 b2 b3 c", pattern.after_match(*after)) == expected
