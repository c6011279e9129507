"""Programs of Flink's tests of SQL on streams: the same rows and changes, also when a job is rescaled in between.

Source: apache/flink, the files *TestPrograms.java for groups, ranks, deduplication, windows and joins of
flink-table-planner's tests (Apache-2.0). Rows that Flink writes before and behind a restore stand behind each other.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import pyarrow as pa
import pytest
from rescaled import rescaled

import workbench as wb
from workbench.operators.changelogs.row_kinds import KIND, NAMES

Row = tuple[Any, ...]
_DAY = dt.datetime(2020, 10, 10)
_LONG, _INT, _TEXT = pa.int64(), pa.int32(), pa.string()


def _at(second: int) -> dt.datetime:
    return _DAY + dt.timedelta(seconds=second)


def _table(columns: dict[str, pa.DataType], rows: Sequence[Row]) -> pa.Table:
    arrays = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), columns.values(), strict=True)]
    return pa.Table.from_arrays(arrays, names=list(columns))


_TIME = pa.timestamp("us")
_GROUPED = [(1, 1, "Hi"), (2, 2, "Hello"), (2, 2, "Hello World")]
_GROUPED += [(1, 1, "Hi Again!"), (2, 2, "Hello Again!"), (2, 2, "Hello World Again!")]
_DIFFERENT = [
    *((2, 3, "Hello World Like", 1), (3, 4, "Hello World Its nice", 2), (2, 2, "Hello World", 2), (1, 1, "Hello", 1)),
    *((5, 11, "GHI", 1), (3, 5, "ABC", 2), (4, 10, "FGH", 2), (4, 7, "CDE", 2), (5, 14, "JKL", 2), (4, 9, "EFG", 1)),
    *((5, 15, "KLM", 2), (5, 12, "HIJ", 3), (4, 8, "DEF", 1), (5, 13, "IJK", 3), (3, 6, "BCD", 3), (1, 1, "Hello", 1)),
    *((3, 5, "ABC", 2), (4, 10, "FGH", 2), (4, 7, "CDE", 2), (7, 7, "MNO", 7), (3, 6, "BCD", 3), (7, 7, "XYZ", 7)),
]
_RANKED = [(2, "a", 6), (4, "b", 8), (6, "c", 10), (1, "a", 5), (3, "b", 7), (5, "c", 9), (4, "d", 7)]
_ORDERS = [
    *((1, "terry", "pen"), (2, "alice", "pen"), (3, "bob", "pen"), (4, "bob", "apple"), (5, "fish", "apple")),
    *((6, "jerry", "pen"), (7, "larry", "apple"), (8, "bill", "banana"), (9, "carol", "apple")),
]
_WINDOWED = [
    *((1, 1, "Hi", "a"), (2, 2, "Comment#1", "a"), (3, 2, "Comment#1", "a"), (4, 5, None, "a"), (7, 3, "Hello", "b")),
    *((6, 6, "Hi", "b"), (8, 3, "Comment#2", "a"), (4, 5, "Hi", "a"), (16, 4, "Hi", "b"), (32, 7, None, None)),
    *((34, 1, "Comment#3", "b"), (40, 10, "Comment#4", "a"), (42, 11, "Comment#5", "d"), (43, 12, "Comment#6", "c")),
    (44, 13, "Comment#7", "d"),
]
_SOLD = [(1, 1), (2, 2), (4, 4), (5, 5), (3, 3), (7, 9), (10, 11)]
_SHIPPED = [(1, 2), (2, 5), (5, 6), (4, 15), (6, 15), (3, 15), (7, 16), (10, 16)]
_AMOUNTS = [(2, "Euro", 42), (1, "USD", 43), (50, "Yen", 44), (3, "Euro", 45), (1, "Euro", 58), (1, "USD", 58)]
_RATES = [("USD", 102, 41), ("Euro", 114, 41), ("Yen", 1, 41), ("Euro", 116, 45), ("Euro", 119, 47)]
_RATES += [("USD", 103, 58), ("Euro", 120, 59)]
_EMPLOYEES = [(None, 101, "Adam"), (1, 1, "Baker"), (2, 2, "Charlie"), (3, 2, "Don"), (7, 6, "Victor")]
_EMPLOYEES += [(4, 3, "Juliet"), (4, 4, "Helena"), (1, 1, "Ivana")]
_DEPARTMENTS = [(1, 1, 0, "Research"), (2, 2, 1, "Human Resources"), (2, 3, 2, "HR"), (3, 1, 2, "Sales")]
_DEPARTMENTS += [(2, 4, 3, "People Operations")]
_ALL_DEPARTMENTS = [(None, 102, 0, "Accounting"), *_DEPARTMENTS, (4, 2, 4, "Engineering")]
_ONE = [(1, 1, "Baker1"), (1, 2, "Baker2"), (1, 2, "Baker2"), (1, 5, "Baker3"), (2, 7, "Baker5"), (1, 9, "Baker6")]
_ONE += [(1, 8, "Baker8"), (3, 8, "Baker9"), (1, 1, "PostRestore")]
_OTHER = [(1, 1, "BakerBaker"), (2, 2, "HeHe"), (3, 2, "HeHe"), (2, 1, "PostRestoreRight")]

_DEPARTMENT = {"department_num": _INT, "b2": _LONG, "b3": _INT, "department_name": _TEXT}
TABLES = {
    "grouped": _table({"a": _INT, "b": _LONG, "c": _TEXT}, _GROUPED),
    "different": _table({"a": _INT, "b": _LONG, "d": _TEXT, "e": _LONG}, _DIFFERENT),
    "ranked": _table({"a": _INT, "b": _TEXT, "c": _INT}, [*_RANKED, (3, "e", 8)]),
    "counted": _table({"a": _INT, "b": _TEXT, "c": _INT}, [*_RANKED, (0, "a", 8)]),
    "orders": _table(
        {"id": _LONG, "user": _TEXT, "product": _TEXT, "t": _TIME}, [(*row, _at(row[0])) for row in _ORDERS]
    ),
    "windowed": _table(
        {"t": _TIME, "n": _INT, "comment": _TEXT, "name": _TEXT}, [(_at(row[0]), *row[1:]) for row in _WINDOWED]
    ),
    "sold": _table({"id": _INT, "t": _TIME}, [(row[0], _at(row[1])) for row in _SOLD]),
    "shipped": _table({"id": _INT, "t": _TIME}, [(row[0], _at(row[1])) for row in _SHIPPED]),
    "amounts": _table({"amount": _LONG, "currency": _TEXT, "t": _TIME}, [(*row[:2], _at(row[2])) for row in _AMOUNTS]),
    "rates": _table({"currency": _TEXT, "rate": _LONG, "t": _TIME}, [(*row[:2], _at(row[2])) for row in _RATES]),
    "employee": _table({"deptno": _INT, "salary": _LONG, "name": _TEXT}, _EMPLOYEES),
    "department": _table(_DEPARTMENT, _ALL_DEPARTMENTS),
    "named_department": _table(_DEPARTMENT, _DEPARTMENTS),
    "t1": _table({"a": _INT, "b": _LONG, "c": _TEXT}, _ONE),
    "t2": _table({"a": _INT, "b": _LONG, "c": _TEXT}, _OTHER),
}
_ROW_NUMBER = "SELECT {} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS n FROM {}) WHERE n {}"

CHANGES: dict[str, tuple[str, list[str]]] = {
    "groups": (
        """SELECT b, COUNT(*) AS cnt, AVG(a) FILTER (WHERE a > 1) AS avg_a, MIN(c) AS min_c FROM grouped GROUP BY b""",
        [
            *("+I 1 1 None Hi", "+I 2 1 2.0 Hello", "+U 2 2 2.0 Hello", "+U 1 2 None Hi", "+U 2 3 2.0 Hello"),
            "+U 2 4 2.0 Hello",
        ],
    ),
    "different values": (
        """SELECT e, COUNT(DISTINCT a) FILTER (WHERE b > 10) AS a1, COUNT(DISTINCT a) AS a2, COUNT(DISTINCT d) AS d
            FROM different GROUP BY e""",
        [
            *("+I 1 0 1 1", "+I 2 0 1 1", "+U 2 0 2 2", "+U 1 0 2 2", "+U 1 1 3 3", "+U 2 0 2 3", "+U 2 0 3 4"),
            *("+U 2 0 3 5", "+U 2 1 4 6", "+U 1 1 4 4", "+U 2 1 4 7", "+I 3 1 1 1", "+U 1 1 4 5", "+U 3 1 1 2"),
            *("+U 3 1 2 3", "+I 7 0 1 1", "+U 7 0 1 2"),
        ],
    ),
    "first by value": (
        _ROW_NUMBER.format("a, b, n", "b", "c", "ranked", "= 1"),
        [
            *("+I 2 a 1", "+I 4 b 1", "+I 6 c 1", "+U 1 a 1", "+U 3 b 1", "+U 5 c 1", "+I 4 d 1", "+I 3 e 1"),
        ],
    ),
    "ranks of counts": (
        """SELECT * FROM (SELECT a, b, n, ROW_NUMBER() OVER (PARTITION BY b ORDER BY n DESC, a ASC) AS place
            FROM (SELECT a, b, COUNT(*) AS n FROM counted GROUP BY a, b)) WHERE place <= 10""",
        [
            *("+I 2 a 1 1", "+I 4 b 1 1", "+I 6 c 1 1", "+U 1 a 1 1", "+I 2 a 1 2", "+U 3 b 1 1", "+I 4 b 1 2"),
            *("+U 5 c 1 1", "+I 6 c 1 2", "+I 4 d 1 1", "+U 0 a 1 1", "+U 1 a 1 2", "+I 2 a 1 3"),
        ],
    ),
    "first by time": (
        _ROW_NUMBER.format("id, user, product", "product", "t ASC", "orders", "= 1"),
        ["+I 1 terry pen", "+I 4 bob apple", "+I 8 bill banana"],
    ),
    "last by time": (
        _ROW_NUMBER.format("id, user, product", "product", "t DESC", "orders", "= 1"),
        [
            *("+I 1 terry pen", "+U 2 alice pen", "+U 3 bob pen", "+I 4 bob apple", "+U 5 fish apple"),
            *("+U 6 jerry pen", "+U 7 larry apple", "+I 8 bill banana", "+U 9 carol apple"),
        ],
    ),
}
"""By program: the query, and the changes of one record after the other, without the rows that are replaced."""
_KEYS = {
    **{"groups": (1,), "different values": (1,), "ranks of counts": (2, 4)},
    **{"first by value": (2,), "first by time": (3,), "last by time": (3,)},
}
"""By program, which words of a change name the row."""

_LEAST = """(SELECT MIN(salary) AS salary, deptno FROM employee GROUP BY deptno) AS v1
    JOIN (SELECT MIN(b2) AS b2, department_num FROM department GROUP BY department_num) AS v2"""
_BOTH = [
    *(("Baker", "Research"), ("Charlie", "Human Resources"), ("Charlie", "HR"), ("Don", "Sales")),
    *(("Helena", "Engineering"), ("Juliet", "Engineering"), ("Ivana", "Research"), ("Charlie", "People Operations")),
]
_LEFT, _RIGHT = [("Adam", None), ("Victor", None)], [(None, "Accounting")]
_NAMES = "SELECT name, department_name FROM employee {} department ON deptno = department_num"
ROWS: dict[str, tuple[str, list[Row]]] = {
    "times that are close": (
        """SELECT o.id, SECOND(s.t) AS s FROM sold AS o JOIN shipped AS s ON o.id = s.id
            WHERE o.t BETWEEN s.t - INTERVAL '5' SECOND AND s.t + INTERVAL '5' SECOND""",
        [(1, 2), (2, 5), (5, 6), (10, 16)],
    ),
    "versions": (
        """SELECT amount * r.rate AS n FROM amounts AS o
            JOIN rates FOR SYSTEM_TIME AS OF o.t AS r ON o.currency = r.currency""",
        [(102,), (228,), (348,), (50,), (103,), (119,)],
    ),
    "a comparison beside equal keys": (
        """SELECT t2.a, t2.c, t1.c AS c1 FROM
            (SELECT if(a = 3, CAST(NULL AS INT), a) AS a, b, c FROM t1) AS t1
            JOIN (SELECT if(a = 3, CAST(NULL AS INT), a) AS a, b, c FROM t2) AS t2 ON t1.a = t2.a AND t1.b > t2.b""",
        [
            *((1, "BakerBaker", "Baker2"), (1, "BakerBaker", "Baker2"), (1, "BakerBaker", "Baker3")),
            *((2, "HeHe", "Baker5"), (1, "BakerBaker", "Baker6"), (1, "BakerBaker", "Baker8")),
            (2, "PostRestoreRight", "Baker5"),
        ],
    ),
    "a condition on one side": (
        "SELECT name, department_name FROM employee, department WHERE salary = b2 AND salary < CAST(2 AS BIGINT)",
        [("Baker", "Research"), ("Baker", "Sales"), ("Ivana", "Sales"), ("Ivana", "Research")],
    ),
    "a key twice": (
        "SELECT deptno, department_num FROM employee JOIN department ON deptno = department_num AND deptno = b3",
        [(2, 2), (4, 4), (4, 4)],
    ),
    "a larger value": (
        f"{_NAMES.format('JOIN')} AND salary > b2",
        [("Don", "Sales"), ("Helena", "Engineering"), ("Juliet", "Engineering")],
    ),
    "groups by their keys": (
        f"SELECT deptno, department_num FROM {_LEAST} ON deptno = department_num",
        [(1, 1), (2, 2), (3, 3), (4, 4)],
    ),
    "groups by their values": (
        f"SELECT deptno, department_num FROM {_LEAST} ON salary = b2",
        [(1, 1), (2, 2), (3, 2), (1, 3), (3, 4), (2, 4)],
    ),
    "groups for some days": (
        f"SELECT /*+ STATE_TTL('v1' = '1d', 'v2' = '4d') */ deptno, department_num FROM {_LEAST} "
        "ON deptno = department_num",
        [(1, 1), (2, 2), (3, 3), (4, 4)],
    ),
    "full join": (_NAMES.format("FULL OUTER JOIN"), [*_BOTH, *_LEFT, *_RIGHT]),
    "left join": (_NAMES.format("LEFT JOIN"), [*_BOTH, *_LEFT]),
    "right join": (_NAMES.format("RIGHT OUTER JOIN"), [*_BOTH, *_RIGHT]),
    "IN": (
        "SELECT name FROM employee WHERE deptno IN (SELECT department_num FROM department)",
        [("Baker",), ("Charlie",), ("Don",), ("Helena",), ("Juliet",), ("Ivana",)],
    ),
    "NOT IN": (
        "SELECT name FROM employee WHERE deptno NOT IN (SELECT department_num FROM named_department)",
        [("Victor",), ("Juliet",), ("Helena",)],
    ),
}
"""By program: the query, and the rows that remain."""

_ABC = [("c", 1, 12, 1), ("d", 2, 24, 2), ("a", 1, 10, 1)]
_BN = [("b", 1, 1, 1), (None, 1, 7, 0)]
_A1, _A2, _A3, _B1, _B2 = ("a", 4, 10, 2), ("a", 1, 3, 1), ("a", 6, 18, 3), ("b", 2, 9, 2), ("b", 1, 4, 1)
WINDOWS: dict[str, list[tuple[int, int, list[Row]]]] = {
    "TUMBLE": [(0, 5, [_A1]), (5, 10, [_A2, _B1]), (15, 20, [_B2]), (30, 35, _BN), (40, 45, _ABC)],
    "HOP": [
        *((-5, 5, [_A1]), (0, 10, [_B1, _A3]), (5, 15, [_B1, _A2]), (10, 20, [_B2]), (15, 25, [_B2])),
        *((25, 35, _BN), (30, 40, _BN), (35, 45, _ABC), (40, 50, _ABC)),
    ],
    "CUMULATE": [
        *((0, 5, [_A1]), (0, 10, [_B1, _A3]), (0, 15, [_B1, _A3]), (15, 20, [_B2]), (15, 25, [_B2]), (15, 30, [_B2])),
        *((30, 35, _BN), (30, 40, _BN), (30, 45, [*_ABC, *_BN])),
    ],
    "TUMBLE, 1": [
        *((1, 6, [_A1]), (6, 11, [_B1, _A2]), (16, 21, [_B2]), (31, 36, _BN), (36, 41, _ABC[2:]), (41, 46, _ABC[:2])),
    ],
    "HOP, 1": [
        *((-4, 6, [_A1]), (1, 11, [_B1, _A3]), (6, 16, [_B1, _A2]), (11, 21, [_B2]), (16, 26, [_B2]), (26, 36, _BN)),
        *((31, 41, [_ABC[2], *_BN]), (36, 46, _ABC), (41, 51, _ABC[:2])),
    ],
    "CUMULATE, 1": [
        *((1, 6, [_A1]), (1, 11, [_B1, _A3]), (1, 16, [_B1, _A3]), (16, 21, [_B2]), (16, 26, [_B2]), (16, 31, [_B2])),
        *((31, 36, _BN), (31, 41, [_ABC[2], *_BN]), (31, 46, [*_ABC, *_BN])),
    ],
}
"""By function, with its offset in seconds: begin and end of each window, and its rows."""


def planned(query: str, rate: float | None = None) -> wb.Stream:
    watermarks = wb.watermarks.punctuated("t - INTERVAL '1' SECOND")
    streams = {
        name: wb.Stream.from_table(table, event_time="t", watermarks=watermarks, rate=rate)
        if "t" in table.column_names
        else wb.Stream.from_table(table, rate=rate)
        for name, table in TABLES.items()
        if name in query
    }
    return wb.sql(query, **streams)


def changes(query: str) -> list[str]:
    seen: list[str] = []

    def note(batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            kind = NAMES[row.pop(KIND, 0)]
            seen.append(" ".join([kind, *map(str, row.values())]))

    job = planned(query).sink_to(wb.CallbackSink(note)).run("changes", buffer_size=1)
    assert job.wait("60s") == "FINISHED"
    return seen


@pytest.mark.parametrize("program", CHANGES)
def test_the_changes_of_one_record_after_the_other(program: str) -> None:
    query, expected = CHANGES[program]
    assert [change for change in changes(query) if not change.startswith("-U")] == expected


@pytest.mark.parametrize("function", WINDOWS)
def test_the_rows_of_windows(function: str) -> None:
    name, _, offset = function.partition(", ")
    sizes = {"TUMBLE": (5,), "HOP": (5, 10), "CUMULATE": (5, 15)}[name] + ((int(offset),) if offset else ())
    intervals = "".join(f", INTERVAL '{size}' SECOND" for size in sizes)
    query = f"""SELECT name, window_start, window_end, COUNT(*) AS n, SUM(n) AS s, COUNT(DISTINCT comment) AS d
        FROM TABLE({name}(TABLE windowed, DESCRIPTOR(t){intervals})) GROUP BY name, window_start, window_end"""
    expected = [(row[0], _at(begin), _at(end), *row[1:]) for begin, end, rows in WINDOWS[function] for row in rows]
    found = [change.removeprefix("+I ").replace("+00:00", "") for change in changes(query)]
    assert Counter(found) == Counter(" ".join(map(str, row)) for row in expected)


def test_the_rows_that_remain_when_a_job_is_rescaled() -> None:
    programs = {name: planned(query, rate=2) for name, (query, _) in (CHANGES | ROWS).items()}
    pipeline = reduce(add, (stream.sink_to(wb.TableSink(name.replace(" ", "_"))) for name, stream in programs.items()))
    job = rescaled(pipeline, "programs", 3 * len(programs))
    for name, (_, rows) in ROWS.items():
        assert Counter(tuple(row.values()) for row in job.table(name.replace(" ", "_")).to_pylist()) == Counter(rows), (
            name
        )
    for name, (_, told) in CHANGES.items():
        last = {tuple(change.split()[at] for at in _KEYS[name]): change.partition(" ")[2] for change in told}
        found = [" ".join(map(str, row.values())) for row in job.table(name.replace(" ", "_")).to_pylist()]
        assert Counter(found) == Counter(last.values()), name
