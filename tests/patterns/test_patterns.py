"""Patterns as chains of stages: documented facts of Flink's CEP, measures, time, errors and memory.

What follows what was read in apache/flink, docs/content/docs/libs/cep.md (Apache-2.0).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pattern_runs import PatternRun

import workbench as wb
from workbench.errors import PlanError, WorkbenchError
from workbench.operators.matching.planning import match_stages


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


def test_what_takes_too_long_goes_to_a_side_output() -> None:
    pattern = A.followed_by("b", is_a("b")).within("3s")
    found = rows("a1 c a2 b1 c c c").key_by("key").match(pattern, first="a.x", last="b.x")
    # a1 at second 0 and b1 at second 3: the time is over.
    assert found.collect().to_pylist() == [{"key": "k", "first": "a2", "last": "b1"}]
    assert found.side_output("timed_out").collect().to_pylist() == [{"key": "k", "first": "a1", "last": None}]


def test_a_row_that_does_not_come_in_time_ends_a_pattern() -> None:
    pattern = A.not_followed_by("b", is_a("b")).within("3s")
    assert matches("a1 b a2 c c c c a3", pattern) == ["a2", "a3"]


def test_a_match_is_never_late_behind() -> None:
    # b+ is certain only at the row behind it, after watermarks have passed the match's last row.
    pattern = A.next("b", is_a("b")).one_or_more().consecutive().greedy().next("c", is_a("c")).after_match("past_last")
    found = rows("a b1 b2 c a b1 c").key_by("key").match(pattern, n="COUNT(*)")
    counted = found.window(wb.tumbling("2s")).aggregate(n=wb.sum("n")).collect().to_pylist()
    assert [row["n"] for row in counted] == [4, 3]


def test_next_waits_for_the_rows_that_it_reads() -> None:
    pattern = wb.pattern("peak", "n > PREV(n) AND n > NEXT(n)")
    assert matches("x1 x5 x3 x4 x2 x9", pattern) == ["x4", "x5"]


def test_measures_are_about_the_rows_bound() -> None:
    pattern = A.followed_by("b", is_a("b")).times(3)
    found = (
        rows("a1 b2 c b3 b7")
        .key_by("key")
        .match(
            pattern,
            first="FIRST(b.n)",
            second="FIRST(b.n, 1)",
            before="LAST(b.n, 1)",
            row_before="PREV(LAST(b.n))",
            count="COUNT(*)",
            total="SUM(b.n)",
            mean="AVG(b.n)",
            spread="MAX(b.n) - MIN(b.n)",
            none="LAST(b.n, 9)",
        )
    )
    [row] = found.collect().to_pylist()
    expected = {"first": 2, "second": 3, "before": 3, "row_before": 3, "count": 4, "total": 12}
    assert row == {"key": "k", **expected, "mean": 4.0, "spread": 5, "none": None}


def test_too_many_partial_matches_are_an_error_that_names_the_key() -> None:
    pattern = A.followed_by_any("b", is_a("b")).one_or_more().allow_combinations().followed_by("c", is_a("c"))
    text = "a " + " ".join(f"b{n}" for n in range(12))
    with pytest.raises(WorkbenchError, match="key 'k' has more than 100 partial matches of a followed by any b"):
        matches(text, pattern, partials_max=100)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: A.next("a"), "two stages are named 'a'"),
        (lambda: A.next("not a name"), "a stage is named by 'not a name'"),
        (lambda: A.times(3, 2), "allows no row"),
        (lambda: A.greedy(), "greedy needs a stage that repeats"),
        (lambda: A.until("n > 1"), "until needs a stage without a largest number"),
        (lambda: A.consecutive(), "consecutive needs a stage that repeats"),
        (lambda: A.one_or_more().times(2), "already repeats"),
        (lambda: A.optional().not_followed_by("b"), "cannot follow the optional stage"),
        (lambda: A.not_next("b").optional(), "not defined for a stage that must not come"),
        (lambda: A.next("b", "n >"), "cannot be read"),
        (lambda: A.within("0s"), "within is 0"),
        (lambda: A.after_match("to_first", "z"), "unknown stage 'z'"),
        (lambda: A.after_match("past_last", "a"), "takes no stage"),
        (lambda: wb.pattern(A, "n > 1"), "a group has no condition of its own"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make()


@pytest.mark.parametrize(
    ("pattern", "measures", "message"),
    [
        (A.not_followed_by("b"), {"n": "COUNT(*)"}, "so a match is never certain: add within"),
        (A.next("b", "m > 1"), {"n": "COUNT(*)"}, "the condition of 'b': unknown column 'm'"),
        (A.next("b", "n"), {"n": "COUNT(*)"}, "has the type int64: compare it with a value"),
        (A, {"n": "z.n"}, "the measure 'n': unknown variable 'z'"),
        (A, {"n": "a.n + a.x"}, "the measure 'n'"),
        (A, {"key": "a.n"}, "two output columns are named 'key'"),
        ("a b", {"n": "COUNT(*)"}, "pass a pattern"),
    ],
)
def test_what_does_not_fit_the_columns_is_refused_before_the_run(pattern: Any, measures: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        rows("a").key_by("key").match(pattern, **measures)


def test_a_checkpoint_of_another_pattern_is_refused() -> None:
    schema = pa.schema({"key": pa.string(), "n": pa.int64()})
    runs = []
    for condition in ("n > 1", "n > 2"):
        pattern = wb.pattern("a", condition).next(f"b{condition[-1]}")
        spec = match_stages(pattern, {"n": "a.n"}, ("key",), schema, "one", 100, None)
        runs.append(PatternRun(spec, schema, ["key"]))
    runs[0].feed(pa.record_batch([["k"], [5]], schema=schema), [1])
    runs[0].watermark(5)
    saved = runs[0].subtasks[0].snapshot(1)
    with pytest.raises(WorkbenchError, match="belongs to the pattern a next b1, but the pattern is now a next b2"):
        runs[1].subtasks[0].restore([saved])
