"""Any text ends as a plan or as a QueryError: long ones, nested ones, and valid ones with words changed by chance."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

import workbench as wb

TIMES = pa.array([0, 1_000_000], pa.timestamp("us"))
ROWS = pa.table({"v": [1, 2], "k": ["a", "b"], "x": [1.5, 2.0], "ts": TIMES})
QUERIES = (
    "SELECT v, k FROM t WHERE v > 1 AND k LIKE 'a%' OR x IS NOT NULL",
    "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k HAVING COUNT(*) > 1",
    "SELECT window_start, AVG(x) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
    "GROUP BY window_start, window_end",
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS av, LAST(B.v) AS bv "
    "PATTERN (A B+) WITHIN INTERVAL '1' MINUTE DEFINE A AS v < 5, B AS v > A.v) AS m",
    "SELECT a.v, b.k FROM t a JOIN u b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '5' SECOND AND b.ts",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t) WHERE n <= 3",
    "SELECT v, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM t",
    "WITH w AS (SELECT v + 1 AS v FROM t) SELECT * FROM w UNION ALL SELECT v FROM u",
    "SELECT CASE WHEN v > 1 THEN 'a' ELSE NULL END AS c, CAST(v AS STRING) FROM t",
    "CREATE TEMPORARY VIEW w AS SELECT v, PROCTIME() AS p FROM t; SELECT COUNT(v) FROM "
    "TUMBLE(TABLE w, DESCRIPTOR(p), INTERVAL '1' MINUTE) GROUP BY window_start, window_end",
    "SELECT v FROM t WHERE v IN (SELECT v FROM u WHERE u.k = t.k) AND NOT EXISTS (SELECT 1 FROM u WHERE u.v = t.v)",
)
_WORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN ON AND OR NOT NULL CASE END AS OVER PARTITION WITH UNION ALL IN
EXISTS IS CAST INTERVAL ( ) , . * - = <> :: [ ] { ; ' " ` @ $ ? /* \0 1e400 99999999999999999999 1.5BD COUNT() SUM(
ROW_NUMBER() PROCTIME() TABLE LATERAL VALUES PIVOT USING(v) ARRAY<INT> x->y x=>1 DATE'1' RAND() INSERT CREATE DROP SET
EXPLAIN EMIT FINAL PATTERN DEFINE B+ {1,2} LAST(A.v,1) PREV(v) ABS() MAX(*) COUNT(v,k) t.* t.t.t.v p
"""
WORDS = _WORDS.split()
_TOKEN = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)


def planned(query: str) -> str:
    """The error for a query; empty: it can be planned."""
    rows = wb.Stream.from_table(ROWS, event_time="ts")
    try:
        wb.sql(query, t=rows, u=rows)
    except wb.errors.QueryError as error:
        said = error.message
    else:
        said = ""
    assert "fault of the workbench" not in said, query
    return said


def mutated(rng: random.Random) -> str:
    words = _TOKEN.findall(rng.choice(QUERIES))
    for _ in range(rng.choice((1, 1, 2))):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(5):
            case 0:
                words[at] = ""
            case 1:
                words[at] = f" {rng.choice(WORDS)} "
            case 2:
                words[at] += f" {rng.choice(WORDS)} "
            case 3:
                words[at], words[other] = words[other], words[at]
            case _:
                words[at] += "".join(words[other : other + 6])
    return "".join(words)


@pytest.mark.slow
def test_texts_changed_by_chance_end_as_a_plan_or_a_query_error(capfd: pytest.CaptureFixture[str]) -> None:
    plans = sum(not planned(mutated(random.Random(seed))) for seed in range(150))
    assert plans > 3
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        (f"SELECT {1_000 * '('}v{1_000 * ')'} AS s FROM t", "50 levels of brackets"),
        (f"SELECT {1_000 * 'ABS('}v{1_000 * ')'} AS s FROM t", "50 levels of brackets"),
        (f"SELECT {1_000 * '['} FROM t", "50 levels of brackets"),
        (f"SELECT {1_000 * 'CASE WHEN v > 1 THEN 1 ELSE '}0{1_000 * ' END'} AS c FROM t", "50 levels of brackets"),
        (f"{1_000 * 'SELECT * FROM ('}SELECT * FROM t{1_000 * ')'}", "50 levels of brackets"),
        (f"SELECT * FROM t WHERE {1_000 * 'NOT '}v > 1", "50 levels of brackets"),
        (f"SELECT {' + '.join(1_000 * 'v')} AS s FROM t", "100 terms of a sum"),
        (f"SELECT {' || '.join(1_000 * 'k')} AS s FROM t", "100 terms of a sum"),
        (" UNION ALL ".join(1_000 * ["SELECT v FROM t"]), "100 terms of a sum or a UNION"),
        (f"SELECT v{1_000 * '::INT'} AS s FROM t", "50 levels of brackets"),
        (f"SELECT CAST(v AS {1_000 * 'ARRAY<'}INT{1_000 * '>'}) AS s FROM t", "50 levels of brackets"),
        (
            f"SELECT * FROM t WHERE {' AND '.join(1_000 * ['v > 1'])}",
            "1,000 conditions of AND, more than the maximum of 500",
        ),
        (
            f"SELECT {', '.join(f'v AS c{at}' for at in range(1_000))} FROM t",
            "1,000 parts in a list, more than the maximum",
        ),
        (f"SELECT t.v FROM t {' '.join(f'JOIN t t{at} ON t.v = t{at}.v' for at in range(100))}", "joins 100 tables"),
        ("SELECT v FROM t -- " + 100_000 * "x", "more than the maximum of 100,000"),
    ],
)
def test_a_limit_that_a_text_exceeds_is_named(query: str, limit: str) -> None:
    assert limit in planned(query)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * FROM t WHERE {' AND '.join(f'v > {at}' for at in range(300))}",
        f"SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING {' OR '.join(f'COUNT(*) > {at}' for at in range(300))}",
        f"SELECT * FROM t WHERE v IN ({', '.join(map(str, range(5_000)))})",
        f"SELECT {' + '.join(99 * 'v')} AS s FROM t",
        " UNION ALL ".join(99 * ["SELECT v FROM t"]),
    ],
)
def test_long_texts_within_the_limits_are_planned(query: str) -> None:
    assert planned(query) == ""


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT COUNT() FROM t GROUP BY k", "COUNT takes one value or *"),
        ("SELEC v FROM t", "line 1, column 1: unknown statement 'SELEC': did you mean 'SELECT'?"),
        ("SELECT v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM t", "ROW_NUMBER() without a limit"),
        (
            "SELECT v FROM (SELECT *, PROCTIME() AS p FROM t) WHERE p IS NOT NULL",
            "p is processing time, PROCTIME(), which has no value in a row",
        ),
        (
            "SELECT a.v FROM (SELECT *, PROCTIME() AS p FROM t) a JOIN u ON a.v = u.v AND a.p > u.ts",
            "p is processing time, PROCTIME(), which has no value in a row",
        ),
        (
            "CREATE TEMPORARY VIEW x AS SELECT *, PROCTIME() AS p FROM t; SELECT * FROM x MATCH_RECOGNIZE "
            "(ORDER BY p MEASURES A.v AS v PATTERN (A) DEFINE A AS true)",
            "p is processing time, PROCTIME(), which has no value in a row",
        ),
    ],
)
def test_an_error_names_the_part_that_is_wrong(query: str, said: str) -> None:
    assert said in planned(query)


def test_a_column_of_processing_time_is_left_out_where_rows_are_emitted() -> None:
    rows = wb.Stream.from_table(ROWS, event_time="ts")
    view = "CREATE TEMPORARY VIEW x AS SELECT *, PROCTIME() AS p FROM t;"
    window = "TUMBLE(TABLE x, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
    assert sorted(wb.sql(f"{view} SELECT v FROM {window}", t=rows).collect()["v"].to_pylist()) == [1, 2]
    union = wb.sql(f"{view} SELECT v FROM x UNION ALL SELECT v FROM (SELECT v, PROCTIME() AS p FROM t)", t=rows)
    assert sorted(union.collect()["v"].to_pylist()) == [1, 1, 2, 2]
