"""Scripts of several statements: declared tables, views and INSERT INTO, run as one job."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.errors import QueryError

SECOND = 1_000_000
TABLE = pa.table(
    {
        "k": [1, 1, 2, 1],
        "v": [10, 20, 30, 40],
        "ts": pa.array([0, 5 * SECOND, 11 * SECOND, 12 * SECOND], pa.timestamp("us")),
    }
)


def numbers() -> wb.Stream:
    return wb.Stream.from_table(TABLE, event_time="ts", out_of_orderness="5s")


def test_a_script_reads_and_writes_declared_tables_in_one_job(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    pipeline = wb.sql_script(f"""
        CREATE TABLE bid (
            k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
        ) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/rows.parquet');
        CREATE TABLE totals (k BIGINT, total DOUBLE, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'memory');
        CREATE TABLE sizes (n BIGINT, e TIMESTAMP(3)) WITH ('connector' = 'memory');
        CREATE TEMPORARY VIEW dear AS SELECT k, v FROM bid WHERE v > 10;
        INSERT INTO totals SELECT k, SUM(v) FROM dear GROUP BY k;
        INSERT INTO sizes (e, n) SELECT window_end, COUNT(*) FROM TUMBLE(bid, ts, INTERVAL '10' SECOND)
            GROUP BY window_start, window_end;
    """)
    job = pipeline.run("script", parallelism=2)
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table("totals").to_pylist(), key=str) == [{"k": 1, "total": 60.0}, {"k": 2, "total": 30.0}]
    assert sorted(job.table("sizes")["n"].to_pylist()) == [2, 2]
    assert job.table("sizes").column_names == ["n", "e"]


def test_a_script_writes_to_a_sink_that_is_passed() -> None:
    job = wb.sql_script("INSERT INTO out SELECT v FROM n WHERE v > 20", n=numbers(), out=wb.TableSink("large")).run("s")
    assert job.wait("60s") == "FINISHED"
    assert job.table("large")["v"].to_pylist() == [30, 40]


def test_several_statements_write_to_one_table() -> None:
    script = """
        CREATE TABLE t (k BIGINT, v DOUBLE) WITH ('connector' = 'memory');
        INSERT INTO t SELECT k, v FROM n WHERE v > 20;
        INSERT INTO passed SELECT k AS key FROM n;
        INSERT INTO t (v, k) SELECT SUM(v), k + 100 FROM n GROUP BY k + 100;
        INSERT INTO passed SELECT CAST(9.0 AS DOUBLE) FROM n WHERE k = 2;
        INSERT INTO t SELECT 0, 1 FROM n WHERE k = 2;
    """
    job = wb.sql_script(script, n=numbers(), passed=wb.TableSink("passed")).run("several", parallelism=2)
    assert job.wait("60s") == "FINISHED"
    rows = [tuple(row.values()) for row in job.table("t").to_pylist()]
    assert sorted(rows) == [(0, 1.0), (1, 40.0), (2, 30.0), (101, 70.0), (102, 30.0)]
    assert sorted(job.table("passed")["key"].to_pylist()) == [1.0, 1.0, 1.0, 2.0, 9.0]


def test_columns_are_computed_where_a_table_is_declared(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text("".join(f'{{"k": {k}, "at": {at}}}\n' for k, at in ((1, 0), (1, 7), (2, 11))))
    declared = f"""CREATE TABLE seen (
            k BIGINT, later AS ts + INTERVAL '1' SECOND, at BIGINT COMMENT 'in seconds', ts AS CAST(at AS TIMESTAMP),
            p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
        ) COMMENT 'what was seen' WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/rows.json');"""
    with pytest.raises(QueryError, match="unknown column 'ts'"):
        wb.sql(f"{declared} SELECT * FROM seen")
    declared = declared.replace("later AS ts + INTERVAL '1' SECOND, ", "")
    assert wb.sql(f"{declared} SELECT * FROM SEEN").columns == ["k", "at", "ts"]
    counted = wb.sql(f"""{declared} SELECT window_end, COUNT(*) AS n FROM TUMBLE(seen, ts, INTERVAL '10' SECOND)
        GROUP BY window_start, window_end""")
    assert sorted((row["window_end"].second, row["n"]) for row in counted.collect().to_pylist()) == [(10, 2), (20, 1)]
    counted = wb.sql(f"""{declared} SELECT COUNT(*) AS n FROM TUMBLE(seen, p, INTERVAL '10' SECOND)
        GROUP BY window_start, window_end""")
    assert sum(counted.collect()["n"].to_pylist()) == 3


@pytest.mark.parametrize(
    "script",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT v FROM n; INSERT INTO T SELECT k FROM n; END;",
        "BEGIN STATEMENT SET; INSERT INTO t SELECT v FROM n; INSERT INTO t SELECT k FROM n; END;",
        "WITH m AS (SELECT v FROM n) INSERT INTO t SELECT v FROM m; "
        "INSERT INTO t WITH m AS (SELECT k FROM n) SELECT * FROM m",
        "CREATE TABLE IF NOT EXISTS t (a STRING) WITH ('connector' = 'print'); CREATE VIEW w AS SELECT v FROM n;"
        "CREATE OR REPLACE VIEW w AS SELECT v FROM n UNION ALL SELECT k FROM n; INSERT INTO t SELECT v FROM w",
    ],
)
def test_forms_of_a_script(script: str) -> None:
    declared = "CREATE TABLE t (v BIGINT) WITH ('connector' = 'memory'); "
    job = wb.sql_script(declared + script, n=numbers()).run("forms")
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table("t")["v"].to_pylist()) == [1, 1, 1, 2, 10, 20, 30, 40]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("INSERT INTO x SELECT v FROM n", "unknown table 'x': Valid: out; declare it with CREATE TABLE x"),
        (
            "CREATE TABLE a (v BIGINT) WITH ('connector' = 'memry'); INSERT INTO a SELECT v FROM n",
            "did you mean 'memory'",
        ),
        ("CREATE TABLE a (v INT, k INT) WITH ('connector' = 'memory'); INSERT INTO a SELECT v FROM n", "takes 2"),
        ("CREATE TABLE a (v INT) WITH ('connector' = 'memory'); INSERT INTO a (w) SELECT v FROM n", "no column 'w'"),
        ("CREATE TABLE a (v INT, k INT) WITH ('connector' = 'memory'); INSERT INTO a (v) SELECT v FROM n", "lacks the"),
        ("CREATE TABLE a (v BINARY) WITH ('connector' = 'memory')", "valid are boolean"),
        ("CREATE TABLE a (v BIGINT, WATERMARK FOR v AS 3) WITH ('connector' = 'memory')", "write WATERMARK FOR v"),
        ("CREATE TABLE a (v BIGINT, WATERMARK FOR w AS w) WITH ('connector' = 'memory')", "no column 'w'"),
        (
            "CREATE TABLE a (v BIGINT) WITH ('connector' = 'memory');"
            "CREATE TABLE b (v BIGINT) WITH ('connector' = 'print'); INSERT INTO b SELECT v FROM a",
            "cannot be read",
        ),
        (
            "CREATE TABLE a (n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out');"
            "INSERT INTO a SELECT COUNT(*) FROM n",
            "only adds rows",
        ),
        (
            "INSERT INTO out SELECT v FROM n; INSERT INTO out SELECT k, v FROM n",
            "two INSERT INTO one table have 1 and 2",
        ),
        ("INSERT OVERWRITE out SELECT v FROM n", "use INSERT INTO"),
        ("INSERT INTO a.out SELECT v FROM n", "unknown table 'a.out'"),
        (
            "CREATE TABLE a (v BIGINT) WITH ('connector' = 'memory'); INSERT INTO a SELECT 'x' FROM n",
            "query gives string",
        ),
        ("CREATE TABLE a (v TIMESTAMP) WITH ('connector' = 'memory'); INSERT INTO a SELECT v FROM n", "gives bigint"),
        ("CREATE TABLE a (v INT, v INT) WITH ('connector' = 'memory')", "two columns are named 'v'"),
        ("CREATE TABLE a.b (v INT) WITH ('connector' = 'memory')", "leave out the part before the dot"),
        (
            "CREATE TABLE a (v INT) PARTITIONED BY (v) WITH ('connector' = 'memory')",
            "PARTITIONED BY (v) is not supported",
        ),
        ("CREATE TABLE a (v INT) WITH ('connector' = 'memory', 'connector' = 'print')", "'connector' is given twice"),
        ("CREATE TABLE a (v INT) WITH ('x' = 'y'); CREATE TABLE a (v INT) WITH ('x' = 'y')", "'a' is declared twice"),
        ("CREATE VIEW w AS SELECT v FROM n; CREATE VIEW w AS SELECT k FROM n", "two views are named 'w'"),
        ("EXPLAIN INSERT INTO out SELECT v FROM n", "EXPLAIN has no effect here"),
        ("SELECT v FROM n", "the script writes nothing"),
    ],
)
def test_an_error_says_what_to_do(script: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        wb.sql_script(script, n=numbers(), out=wb.TableSink("out"))
    assert message in str(raised.value)


def test_insert_into_is_no_stream() -> None:
    with pytest.raises(QueryError, match=r"use wb\.sql_script"):
        wb.sql("INSERT INTO out SELECT v FROM n", n=numbers(), out=wb.TableSink("out"))  # type: ignore[arg-type]


def test_windows_of_the_clock_and_tables_as_of_now() -> None:
    counted = wb.sql(
        """CREATE VIEW b AS SELECT *, PROCTIME() AS p FROM n;
        SELECT k, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(p), INTERVAL '10' SECOND))
        GROUP BY k, window_start, window_end""",
        n=numbers(),
    )
    assert sum(counted.collect()["c"].to_pylist()) == 4
    side = pa.table({"key": [0, 1], "value": ["even", "odd"]})
    named = wb.sql(
        """SELECT v, side.value FROM (SELECT *, PROCTIME() AS p FROM n) AS b
        JOIN side FOR SYSTEM_TIME AS OF b.p AS side ON mod(b.k, 2) = side.key""",
        n=numbers(),
        side=side,
    )
    assert sorted(named.collect().to_pylist(), key=str)[0] == {"v": 10, "value": "odd"}
    with pytest.raises(QueryError, match="no processing-time window"):
        wb.sql(
            "SELECT v, window_end FROM TUMBLE((SELECT *, PROCTIME() AS p FROM n) AS b, p, INTERVAL '1' SECOND)",
            n=numbers(),
        )
