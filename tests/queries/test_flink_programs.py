"""Programs of Flink's tests of MATCH_RECOGNIZE: the same rows and matches, with a restore where Flink has one.

Source: apache/flink, MatchRecognizeTestPrograms.java of flink-table-planner's tests (Apache-2.0). Rows that
Flink orders by their arrival have a second of event time each.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pattern_runs import PatternRun

import workbench as wb
from workbench.operators.matching.match import MatchRows

SECOND = 1_000_000
_FALLS = """PATTERN (DOWN{2,} UP) DEFINE
    DOWN AS price < LAST(DOWN.price, 1) OR LAST(DOWN.price, 1) IS NULL,
    UP AS price > LAST(DOWN.price)"""
_RISES = """PATTERN (A+ B) DEFINE
    A AS LAST(A.degrees, 1) IS NULL OR A.degrees > LAST(A.degrees, 1),
    B AS B.degrees < LAST(A.degrees)"""


def found(
    clauses: str, names: str, before: list[tuple[Any, ...]], behind: list[tuple[Any, ...]], keys: tuple[str, ...] = ()
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The matches before a restore, and those behind it; the last value of a row is its second."""
    columns = names.split()
    times = [row[-1] for row in (*before, *behind)]
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=False)) for row in (*before, *behind)])
    table = table.append_column("t", pa.array([second * SECOND for second in times], pa.timestamp("us")))
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    query = f"SELECT * FROM r MATCH_RECOGNIZE ({by}ORDER BY t {clauses}) AS m"
    node = wb.sql(query, r=wb.Stream.from_table(table, event_time="t"))._end.node
    while not isinstance(node.spec, MatchRows):
        node = node.inputs[0].node
    schema = node.inputs[0].schema
    run = PatternRun(node.spec, schema, keys, 2 if keys else 1)
    batch = table.select(schema.names).to_batches()[0]
    parts: list[list[tuple[Any, ...]]] = []
    for begin, end in ((0, len(before)), (len(before), len(times))):
        for at in range(begin, end):
            run.feed(batch.slice(at, 1), [times[at] * SECOND])
            run.watermark(max(times[: at + 1]) * SECOND - 2 * SECOND)
        told = sum(map(len, parts))
        parts.append([tuple(row.values()) for row in run.out.rows.get("", [])][told:])
        if not begin:
            run.restore(3 if keys else 1)
    run.watermark()
    parts[1] = [tuple(row.values()) for row in run.out.rows.get("", [])][len(parts[0]) :]
    return parts[0], parts[1]


def test_three_letters() -> None:
    letters = [*"azbcdabcab", "c"]
    rows = [(number, letter, number) for number, letter in enumerate(letters, 1)]
    clauses = """MEASURES A.id AS a, B.id AS b, C.id AS c PATTERN (A B C)
        DEFINE A AS name = 'a', B AS name = 'b', C AS name = 'c'"""
    first, second = found(clauses, "id name", rows[:10], [*rows[10:], (12, "x", 14)])
    assert [*first, *second] == [(6, 7, 8), (9, 10, 11)]


def test_a_fall_of_two_symbols() -> None:
    before = [("ACME", 19, 1), ("BETA", 18, 2), ("ACME", 17, 3), ("ACME", 13, 4), ("BETA", 16, 5), ("ACME", 20, 6)]
    clauses = f"""MEASURES FIRST(DOWN.price) AS f, LAST(DOWN.price) AS l, FIRST(DOWN.price, 5) AS n
        ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW {_FALLS}"""
    first, second = found(clauses, "symbol price", before, [("BETA", 22, 7)], ("symbol",))
    assert sorted([*first, *second]) == [("ACME", 19, 13, None), ("BETA", 18, 16, None)]


def test_rows_out_of_order_and_late_ones() -> None:
    before = [(10, 1), (8, 1), (9, 1), (7, 4), (8, 7), (5, 6), (3, 12), (4, 8), (4, 16), (7, 32), (5, 34)]
    behind = [(9, 33), (3, 41), (11, 42), (12, 43), (13, 44)]
    clauses = f"""MEASURES FIRST(DOWN.price) AS f, LAST(DOWN.price) AS l, UP.price AS u
        ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW {_FALLS}"""
    assert found(clauses, "price", before, behind) == ([(10, 8, 9), (7, 5, 8)], [(9, 3, 11)])


@pytest.mark.parametrize(
    ("skip", "first", "second"),
    [
        ("TO FIRST B", [(100, 106), (105, 107), (101, 101)], [(100, 111)]),
        ("TO LAST B", [(100, 106), (105, 107), (101, 101)], [(100, 111)]),
        (
            "TO NEXT ROW",
            [(100, 106), (102, 106), (104, 106), (106, 106), (105, 107), (107, 107), (101, 101)],
            [(100, 111), (110, 111), (111, 111)],
        ),
        ("PAST LAST ROW", [(100, 106), (107, 107)], [(100, 111)]),
    ],
)
def test_where_to_go_on_behind_a_match(skip: str, first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    degrees = [100, 102, 104, 106, 105, 107, 101, 100, 110, 111, 99]
    rows = [(1, value, second) for second, value in enumerate(degrees, 1)]
    clauses = f"""MEASURES FIRST(A.degrees) AS f, LAST(A.degrees) AS l ONE ROW PER MATCH
        AFTER MATCH SKIP {skip} {_RISES}"""
    told = found(clauses, "vehicle degrees", rows[:8], rows[8:], ("vehicle",))
    assert [row[1:] for part in told for row in part] == [*first, *second]
