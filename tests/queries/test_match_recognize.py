"""MATCH_RECOGNIZE: the results that Flink's documentation prints, the standard's rules, and errors with caret.

Tables and results of the first tests: apache/flink, docs/content/docs/dev/table/sql/queries/match_recognize.md
(Apache-2.0).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pattern_runs import PatternRun

import workbench as wb
from workbench.errors import QueryError


def ticker(prices: Sequence[int], *, taxes: Sequence[int] | None = None, step: int = 1) -> wb.Stream:
    """Prices of ACME, `step` seconds apart, from 10:00 on."""
    begin = int(dt.datetime(2011, 4, 1, 10, tzinfo=dt.UTC).timestamp())
    times = pa.array([(begin + step * at) * 10**6 for at in range(len(prices))], pa.timestamp("us"))
    columns = {"symbol": ["ACME"] * len(prices), "rowtime": times, "price": prices, "tax": taxes or [1] * len(prices)}
    return wb.Stream.from_table(pa.table(columns), event_time="rowtime")


def recognized(clauses: str, stream: wb.Stream, select: str = "*") -> list[tuple[object, ...]]:
    query = f"""
        SELECT {select} FROM Ticker MATCH_RECOGNIZE (
            PARTITION BY symbol ORDER BY rowtime {clauses}
        ) AS T
    """
    rows = wb.sql(query, Ticker=stream).collect().to_pylist()
    return [tuple(v.strftime("%H:%M:%S") if isinstance(v, dt.datetime) else v for v in row.values()) for row in rows]


def test_a_falling_price_is_found() -> None:
    clauses = """
        MEASURES START_ROW.rowtime AS start_tstamp, LAST(PRICE_DOWN.rowtime) AS bottom_tstamp,
            LAST(PRICE_UP.rowtime) AS end_tstamp
        ONE ROW PER MATCH
        AFTER MATCH SKIP TO LAST PRICE_UP
        PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
        DEFINE
            PRICE_DOWN AS
                (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) OR
                    PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
            PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)
    """
    prices = ticker([12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19])
    assert recognized(clauses, prices) == [("ACME", "10:00:04", "10:00:07", "10:00:08")]


def test_conditions_can_be_about_aggregates() -> None:
    clauses = """
        MEASURES FIRST(A.rowtime) AS start_tstamp, LAST(A.rowtime) AS end_tstamp, AVG(A.price) AS avgPrice
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A+ B)
        DEFINE A AS AVG(A.price) < 15
    """
    prices = ticker([12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30])
    assert recognized(clauses, prices) == [
        ("ACME", "10:00:00", "10:00:03", 14.5),
        ("ACME", "10:00:05", "10:00:10", 13.5),
    ]


@pytest.mark.parametrize(("quantifier", "expected"), [("*", [16]), ("*?", [13, 16])])
def test_quantifiers_are_greedy_or_reluctant(quantifier: str, expected: list[int]) -> None:
    clauses = f"""
        MEASURES C.price AS lastPrice
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A B{quantifier} C)
        DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12
    """
    assert [row[1] for row in recognized(clauses, ticker([10, 11, 12, 13, 14, 16]))] == expected


def test_a_match_takes_less_time_than_within() -> None:
    """The example of Flink's page, which shows the drop of 14 in exactly an hour; its code lets that one time out."""
    clauses = """
        MEASURES C.rowtime AS dropTime, A.price - C.price AS dropDiff
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A B* C) WITHIN INTERVAL '1' HOUR
        DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10
    """
    prices = ticker([20, 17, 18, 11, 14, 9, 15, 14, 24, 1, 19], step=1_200)
    assert recognized(clauses, prices) == [("ACME", "13:00:00", 13)]


def test_one_row_holds_the_keys_and_the_measures() -> None:
    clauses = """
        MEASURES FIRST(A.price) AS startPrice, LAST(A.price) AS topPrice, B.price AS lastPrice
        ONE ROW PER MATCH
        PATTERN (A+ B)
        DEFINE A AS LAST(A.price, 1) IS NULL OR A.price > LAST(A.price, 1), B AS B.price < LAST(A.price)
    """
    assert recognized(clauses, ticker([10, 12, 13, 11])) == [("ACME", 10, 13, 11)]


@pytest.mark.parametrize(
    "define",
    [
        "B AS B.price > A.price AND SUM(price) < 100 AND SUM(B.price) < 80",
        "B AS (LAST(B.price, 1) IS NULL OR B.price > LAST(B.price, 1)) AND "
        "(LAST(B.price, 2) IS NULL OR B.price > 2 * LAST(B.price, 2))",
    ],
)
def test_conditions_navigate_among_the_rows_bound_before(define: str) -> None:
    clauses = f"MEASURES LAST(B.price) AS last PATTERN (A B+) DEFINE A AS A.price >= 10, {define}"
    assert recognized(clauses, ticker([10, 15, 20, 31, 35]))[0] == ("ACME", 31)


@pytest.mark.parametrize(("prices", "expected"), [([10, 15, 20], [15, 20]), ([10, 20], [None, 20])])
def test_a_plain_name_is_that_of_the_last_row_of_all(prices: list[int], expected: list[int | None]) -> None:
    clauses = """
        MEASURES B.price AS b, C.price AS c PATTERN (A B? C) DEFINE B AS B.price < 20, C AS LAST(price, 1) < C.price
    """
    assert recognized(clauses, ticker(prices)) == [("ACME", *expected)]


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ("PAST LAST ROW", [(26, 0, 3), (17, 4, 6)]),
        ("TO NEXT ROW", [(26, 0, 3), (24, 1, 4), (25, 2, 5), (22, 3, 6), (17, 4, 6)]),
        ("TO LAST A", [(26, 0, 3), (25, 2, 5), (17, 4, 6)]),
    ],
)
def test_a_match_decides_where_the_next_one_begins(skip: str, expected: list[tuple[int, int, int]]) -> None:
    query = f"""
        SELECT * FROM Ticker MATCH_RECOGNIZE (
            PARTITION BY symbol ORDER BY rowtime
            MEASURES SUM(A.price) AS sumPrice, FIRST(rowtime) AS startTime, LAST(rowtime) AS endTime
            ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN (A+ C) DEFINE A AS SUM(A.price) < 30
        )
    """
    prices = [7, 9, 10, 5, 10, 7, 14]
    rows = ticker(prices)
    run = PatternRun(wb.sql(query, Ticker=rows)._end.node.spec, rows.schema, ["symbol"])
    times = pa.array(range(len(prices)), pa.timestamp("us"))
    run.feed(pa.record_batch([["ACME"] * 7, times, prices, prices], schema=rows.schema), range(len(prices)))
    run.watermark(len(prices))  # the page shows what is certain while more rows may come
    found = [(row["sumPrice"], row["startTime"].microsecond, row["endTime"].microsecond) for row in run.out.rows[""]]
    assert found == expected


def test_a_match_that_would_begin_again_at_its_first_row_is_an_error() -> None:
    clauses = "MEASURES COUNT(*) AS n AFTER MATCH SKIP TO FIRST A PATTERN (A+ C) DEFINE A AS SUM(A.price) < 30"
    with pytest.raises(wb.errors.QueryError, match=r"every match begins there(.|\n)*\^"):
        recognized(clauses, ticker([7, 9, 10, 5]))
    with pytest.raises(wb.errors.WorkbenchError, match="a match of key 'ACME' begins there"):  # B may come first or not
        recognized(clauses.replace("FIRST A PATTERN (A+ C)", "LAST A PATTERN ((A | C) A* C)"), ticker([7, 9, 10, 5]))


# Trino ------------------------------------------------------------------------------------------------------------

# Rows, patterns and results: trinodb/trino, core/trino-main/src/test/java/io/trino/sql/query/
# TestRowPatternMatching.java (Apache-2.0). A row is the number of the match, RUNNING LAST(value) and CLASSIFIER().
_NOTHING = [(1, None, None), (2, None, None), (3, None, None), (4, None, None)]
_EACH = [(1, 80, "B"), (2, 70, "B"), (3, 70, "B")]
_EACH_BUT_FIRST = [(1, None, None), (2, 80, "B"), (3, 70, "B"), (4, 70, "B")]
_TOGETHER = [(1, 80, "B"), (1, 70, "B"), (1, 70, "B")]
_TOGETHER_BUT_FIRST = [(1, None, None), (2, 80, "B"), (2, 70, "B"), (2, 70, "B")]
_LE = "B AS B.value <= PREV(B.value)"


@pytest.mark.parametrize(
    ("pattern", "define", "expected"),
    [
        ("() | A", "A AS true", _NOTHING),
        (
            "A B C",
            "B AS B.value < PREV(B.value), C AS C.value = PREV(C.value)",
            [(1, 80, "A"), (1, 70, "B"), (1, 70, "C")],
        ),
        (
            "B | C | A",
            "B AS B.value < PREV(B.value), C AS C.value <= PREV(C.value)",
            [(1, 90, "A"), (2, 80, "B"), (3, 70, "B"), (4, 70, "C")],
        ),
        ("PERMUTE(B, C)", "B AS B.value < PREV(B.value), C AS C.value < PREV(C.value)", [(1, 80, "B"), (1, 70, "C")]),
        (
            "((A) (B (C)))",
            "B AS B.value < PREV(B.value), C AS C.value = PREV(C.value)",
            [(1, 80, "A"), (1, 70, "B"), (1, 70, "C")],
        ),
        ("B*", _LE, _TOGETHER_BUT_FIRST),
        ("B*?", _LE, _NOTHING),
        ("B+", _LE, _TOGETHER),
        ("B+?", _LE, _EACH),
        ("B?", _LE, _EACH_BUT_FIRST),
        ("B??", _LE, _NOTHING),
        ("B{,}", _LE, _TOGETHER_BUT_FIRST),
        ("B{,}?", _LE, _NOTHING),
        ("B{1,}", _LE, _TOGETHER),
        ("B{1,}?", _LE, _EACH),
        ("B{2,}", _LE, _TOGETHER),
        ("B{2,}?", _LE, [(1, 80, "B"), (1, 70, "B")]),
        ("B{5,}", _LE, []),
        ("B{5,}?", _LE, []),
        ("B{,1}", _LE, _EACH_BUT_FIRST),
        ("B{,1}?", _LE, _NOTHING),
        ("B{,2}", _LE, [(1, None, None), (2, 80, "B"), (2, 70, "B"), (3, 70, "B")]),
        ("B{,2}?", _LE, _NOTHING),
        ("B{,5}", _LE, _TOGETHER_BUT_FIRST),
        ("B{,5}?", _LE, _NOTHING),
        ("B{1,1}", _LE, _EACH),
        ("B{1,1}?", _LE, _EACH),
    ],
)
def test_patterns_match_as_in_trino(pattern: str, define: str, expected: list[tuple[object, ...]]) -> None:
    assert trino([90, 80, 70, 70], f"PATTERN ({pattern}) DEFINE {define}") == expected


def test_all_rows_of_a_match_are_told_as_in_trino() -> None:
    found = trino(
        [90, 80, 70, 80, 90, 50, 40, 60],
        "PATTERN (A B+ C+) DEFINE B AS B.value < PREV (B.value), C AS C.value > PREV (C.value)",
    )
    first = [(1, 90, "A"), (1, 80, "B"), (1, 70, "B"), (1, 80, "C"), (1, 90, "C")]
    assert found == [*first, (2, 50, "A"), (2, 40, "B"), (2, 60, "C")]


def numbered(values: Sequence[int]) -> wb.Stream:
    ids = pa.array([1_000_000 * (at + 1) for at in range(len(values))], pa.timestamp("us"))
    return wb.Stream.from_table(pa.table({"id": ids, "value": values}), event_time="id")


def trino(
    values: Sequence[int], clauses: str, mode: str = "ALL ROWS PER MATCH", skip: str = "PAST LAST ROW"
) -> list[tuple[object, ...]]:
    query = f"""
        SELECT m.match, m.val, m.label FROM t MATCH_RECOGNIZE (
            ORDER BY id
            MEASURES MATCH_NUMBER() AS match, RUNNING LAST(value) AS val, CLASSIFIER() AS label
            {mode} AFTER MATCH SKIP {skip} {clauses}
        ) AS m
    """
    return [tuple(row.values()) for row in wb.sql(query, t=numbered(values)).collect().to_pylist()]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("()* | B", _NOTHING),
        ("()+ | B", _NOTHING),
        ("(){5,} | B", _NOTHING),
        ("B | ()*", [(1, None, None), (2, 80, "B"), (3, 70, "B"), (4, None, None)]),
        ("(B ()*)*", [(1, None, None), (2, 80, "B"), (2, 70, "B"), (3, None, None)]),
        ("(B ()*)*?", _NOTHING),
    ],
)
def test_empty_repetitions_end_as_in_trino(pattern: str, expected: list[tuple[object, ...]]) -> None:
    assert trino([90, 80, 70, 70], f"PATTERN ({pattern}) DEFINE B AS B.value < PREV(B.value)") == expected


@pytest.mark.parametrize(
    ("mode", "pattern", "expected"),
    [
        ("ONE ROW PER MATCH", "B*", [(1, None, None), (2, 70, "B"), (3, None, None)]),
        ("", "B*", [(1, None, None), (2, 70, "B"), (3, None, None)]),
        ("ONE ROW PER MATCH", "B+", [(1, 70, "B")]),
        ("ALL ROWS PER MATCH", "B*", [(1, None, None), (2, 80, "B"), (2, 70, "B"), (3, None, None)]),
        ("ALL ROWS PER MATCH", "B+", [(1, 80, "B"), (1, 70, "B")]),
        ("ALL ROWS PER MATCH SHOW EMPTY MATCHES", "B*", [(1, None, None), (2, 80, "B"), (2, 70, "B"), (3, None, None)]),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "B*", [(2, 80, "B"), (2, 70, "B")]),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "B+", [(1, 80, "B"), (1, 70, "B")]),
    ],
)
def test_rows_per_match_are_as_in_trino(mode: str, pattern: str, expected: list[tuple[object, ...]]) -> None:
    assert trino([90, 80, 70, 70], f"PATTERN ({pattern}) DEFINE B AS B.value < PREV(B.value)", mode) == expected


_FIRST_MATCH = [(1, 90, "A"), (1, 80, "B"), (1, 70, "B"), (1, 80, "C")]
_FROM_ROW_4 = [(2, 80, "A"), (2, 70, "B"), (2, 80, "C")]


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ("PAST LAST ROW", _FIRST_MATCH),
        (
            "TO NEXT ROW",
            [*_FIRST_MATCH, (2, 80, "A"), (2, 70, "B"), (2, 80, "C"), (3, 80, "A"), (3, 70, "B"), (3, 80, "C")],
        ),
        ("TO FIRST C", [*_FIRST_MATCH, *_FROM_ROW_4]),
        ("TO LAST B", [*_FIRST_MATCH, *_FROM_ROW_4]),
        ("TO B", [*_FIRST_MATCH, *_FROM_ROW_4]),
        ("TO U", [*_FIRST_MATCH, *_FROM_ROW_4]),
        ("TO A", "begins there"),
        ("TO D", "has no such row"),
    ],
)
def test_matches_go_on_as_in_trino(skip: str, expected: list[tuple[object, ...]] | str) -> None:
    clauses = """
        PATTERN (A B+ C+ D?) SUBSET U = (C, D)
        DEFINE B AS B.value < PREV (B.value), C AS C.value > PREV (C.value), D AS false
    """
    values = [90, 80, 70, 80, 70, 80]
    if isinstance(expected, str):
        with pytest.raises(wb.errors.WorkbenchError, match=expected):
            trino(values, clauses, skip=skip)
    else:
        assert trino(values, clauses, skip=skip) == expected


@pytest.mark.parametrize(
    ("values", "clauses", "measures", "expected"),
    [
        ([1, 1], "PATTERN ((A | B)* X) DEFINE X AS value = A.value", ("CLASSIFIER()",), [("A",), ("X",)]),
        ([1, 1], "PATTERN ((A | B)* X) DEFINE X AS value = B.value", ("CLASSIFIER()",), [("B",), ("X",)]),
        (
            [1, 2, 3, 4, 5, 6],
            "PATTERN ((A | B)* X) DEFINE X AS value = PREV(LAST(A.value), 3) + FIRST(A.value) + PREV(LAST(B.value), 2)",
            ("CLASSIFIER()", "PREV(LAST(A.value), 3) + FIRST(A.value) + PREV(LAST(B.value), 2)"),
            [("B", None), ("A", None), ("A", None), ("A", None), ("B", 6), ("X", 6)],
        ),
        (
            [90, 80, 70, 80],
            "PATTERN ((L | H) A) SUBSET U = (L, H), W = (A, L, H) "
            "DEFINE A AS A.value = 80, L AS L.value < 80, H AS H.value > 80",
            ("MATCH_NUMBER()", "RUNNING LAST(value)", "CLASSIFIER(U)", "CLASSIFIER(W)"),
            [(1, 90, "H", "H"), (1, 80, "H", "A"), (2, 70, "L", "L"), (2, 80, "L", "A")],
        ),
        *(
            ([10, 20, 30], "PATTERN (A+) DEFINE A AS true", (measure,), [(value,) for value in expected])
            for measure, expected in [
                ("value", (10, 20, 30)),
                ("LAST(value)", (10, 20, 30)),
                ("RUNNING LAST(value)", (10, 20, 30)),
                ("FINAL LAST(value)", (30, 30, 30)),
                ("FIRST(value)", (10, 10, 10)),
                ("RUNNING FIRST(value)", (10, 10, 10)),
                ("FINAL FIRST(value)", (10, 10, 10)),
                ("FINAL LAST(value, 2)", (10, 10, 10)),
                ("LAST(value, 10)", (None, None, None)),
                ("FIRST(value, 10)", (None, None, None)),
            ]
        ),
    ],
)
def test_rows_are_referred_to_as_in_trino(
    values: list[int], clauses: str, measures: tuple[str, ...], expected: list[tuple[object, ...]]
) -> None:
    named = ", ".join(f"{measure} AS m{at}" for at, measure in enumerate(measures))
    query = f"""
        SELECT {", ".join(f"m{at}" for at in range(len(measures)))}
        FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES {named} ALL ROWS PER MATCH {clauses})
    """
    assert [tuple(row.values()) for row in wb.sql(query, t=numbered(values)).collect().to_pylist()] == expected


# errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clauses", "message", "caret"),
    [
        ("MEASURES COUNT(*) AS n PATTERN () DEFINE A AS true", "the pattern is empty", ")"),
        ("MEASURES COUNT(*) AS n PATTERN (A (B) DEFINE A AS true", "Expecting|is expected|not closed|parenthes", None),
        ("MEASURES COUNT(*) AS n PATTERN (A ** B)", "a quantifier follows another one", "*"),
        (
            "MEASURES COUNT(*) AS n PATTERN (A B) DEFINE C AS true",
            "the pattern lacks it: unknown variable 'C'",
            "C AS true",
        ),
        ("MEASURES A.prise AS n PATTERN (A B)", "unknown column 'prise': did you mean 'price'", "A.prise"),
        ("MEASURES X.price AS n PATTERN (A B)", "unknown variable 'X'", "X.price"),
        ("MEASURES A.price PATTERN (A B)", "a measure must have the form LAST(A.price) AS price: add AS", "A.price"),
        ("MEASURES AVG(A.price * B.tax) AS n PATTERN (A B)", "rows of A and B: name one variable", "A.price * B.tax"),
        (
            "MEASURES COUNT(*) AS n PATTERN (A B) DEFINE A AS A.price",
            "the condition of A has the type int64",
            "A.price",
        ),
        ("MEASURES COUNT(*) AS n AFTER MATCH SKIP TO FIRST X PATTERN (A B)", "unknown variable 'X'", "TO FIRST X"),
        ("MEASURES COUNT(*) AS n PATTERN (A B) SUBSET A = (B)", "'A' is already the name of a variable", "A = (B)"),
        ("MEASURES COUNT(*) AS n PATTERN (A B) WITHIN INTERVAL '-1' SECOND", "WITHIN is not positive", None),
        ("MEASURES COUNT(*) AS n DEFINE A AS true", "MATCH_RECOGNIZE has no PATTERN", "MATCH_RECOGNIZE"),
        ("MEASURES COUNT(*) AS n PATTERN (A B$)", "$ is not supported", "$"),
        (
            "MEASURES MEDIAN(A.price) AS n PATTERN (A B)",
            "the aggregates are COUNT, SUM, AVG, MIN and MAX",
            "MEDIAN(A.price)",
        ),
    ],
)
def test_errors_name_the_line_and_the_place(clauses: str, message: str, caret: str | None) -> None:
    with pytest.raises(QueryError) as raised:
        recognized(clauses, ticker([1, 2]))
    assert any(part in str(raised.value) for part in message.split("|"))
    if caret is not None:
        line, marks = raised.value.excerpt.splitlines()
        at = marks.index("^")
        assert line[at : at + marks.count("^")].strip() == caret or line[at:].startswith(caret[:1])


def test_rows_are_matched_in_the_order_of_event_time_alone() -> None:
    for order, message in (
        ("price", "and this is not the event time"),
        ("rowtime DESC", "and this is not the event time"),
        ("rowtime, price", "rows with equal times"),
    ):
        query = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY {order} MEASURES COUNT(*) AS n PATTERN (A))"
        with pytest.raises(QueryError, match=message):
            wb.sql(query, t=ticker([1]))


def test_a_changelog_is_refused() -> None:
    latest = ticker([1, 2]).key_by("symbol").latest_by()
    counts = ticker([1, 2]).group_by("symbol").aggregate(rowtime=wb.max("rowtime"))
    for changing in (latest, counts):
        with pytest.raises(QueryError, match="MATCH_RECOGNIZE cannot follow a changelog"):
            wb.sql("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY rowtime MEASURES COUNT(*) AS n PATTERN (A))", t=changing)
    with pytest.raises(wb.errors.PlanError, match="match cannot follow a changelog"):
        latest.key_by("symbol").match(wb.pattern("a"), n="COUNT(*)")
