"""Look-ups in PostgreSQL and Redis: real servers, which may be unreachable for a while."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import postgresql_server
import pyarrow as pa
import pytest
import redis_server
from waiting import until

import workbench as wb
from workbench.errors import PlanError, QueryError, SettingError, SourceError

VIEWS = pa.table({"n": [0, 1, 2, 3], "ad": [7, 8, 7, None]})
NAMES = {"name": pa.string(), "budget": pa.int32()}
FOUND = [("shoes", 5), (None, None), ("shoes", 5), (None, None)]


@pytest.fixture(scope="module")
def redis() -> Iterator[redis_server.RedisProcess]:
    with redis_server.running() as server:
        rows = pa.table({"ad": [7, 9], "name": ["shoes", "hats"], "budget": [5, None]})
        sink = wb.RedisSink(server.url, "ad", upsert_key="ad")
        counts = wb.RedisSink(server.url, "counts", upsert_key="ad", value="budget")
        stream = wb.Stream.from_table(rows)
        assert (stream.sink_to(sink) + stream.sink_to(counts)).run("fills").wait("60s") == "FINISHED"
        yield server


@pytest.fixture(scope="module")
def postgresql() -> Iterator[postgresql_server.PostgresProcess]:
    with postgresql_server.running() as server:
        server.query("CREATE TABLE ads (ad INTEGER, shop TEXT, name TEXT, budget INTEGER)")
        server.query("INSERT INTO ads VALUES (7, 'a', 'shoes', 5), (9, 'a', 'hats', NULL), (9, 'b', 'caps', 1)")
        yield server


def found(lookup: Any, stream: wb.Stream | None = None, **how: Any) -> list[tuple[Any, ...]]:
    rows = (stream or wb.Stream.from_table(VIEWS)).lookup_async(lookup, key=how.pop("key", "ad"), **how).collect()
    return [tuple(row.values())[2:] for row in sorted(rows.to_pylist(), key=lambda row: row["n"])]


def test_rows_that_a_sink_has_written_to_redis(redis: redis_server.RedisProcess) -> None:
    lookup = wb.RedisLookup(redis.url, "ad", NAMES)
    assert found(lookup) == FOUND
    assert found(lookup, how="inner", cache="1h", concurrency=1) == [FOUND[0], FOUND[2]]
    counts = wb.RedisLookup(redis.url, "counts", {"budget": pa.int64()}, value="budget")
    assert found(counts) == [(5,), (None,), (5,), (None,)]


def test_rows_of_postgresql(postgresql: postgresql_server.PostgresProcess) -> None:
    assert found(wb.SqlLookup(postgresql.url, "ads", NAMES, key="ad")) == FOUND
    two = wb.SqlLookup(postgresql.url, "ads", NAMES, key=["ad", "shop"])
    shops = wb.Stream.from_table(pa.table({"n": [9, 9], "shop": ["b", "c"]}))
    assert found(two, shops, key=["n", "shop"]) == [("caps", 1), (None, None)]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_rows_of_a_database_file(engine: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    url = f"{engine}:///{tmp_path / 'ads.db'}"
    since = dt.datetime(2026, 3, 29, 1, 30)
    rows = pa.table({"ad": [7, 9, 9], "name": ["shoes", "hats", "caps"], "since": [since] * 3})
    assert wb.Stream.from_table(rows).sink_to(wb.SqlSink(url, "ads")).run("fills").wait("60s") == "FINISHED"
    lookup = wb.SqlLookup(url, "ads", {"name": pa.string(), "since": pa.timestamp("us")}, key="ad")
    shoes = ("shoes", since)
    assert found(lookup) == [shoes, (None, None), shoes, (None, None)]
    assert joined(url, more=", 'cache' = '1h'", columns="name STRING") == [
        (0, 7, "shoes"),
        (1, None, None),
        (2, 7, "shoes"),
        (3, None, None),
    ]
    for refused, message in (
        (wb.SqlLookup(url, "nowhere", NAMES), "cannot look up rows in 'nowhere' of .*"),
        (wb.SqlLookup(f"{engine}:///{tmp_path / 'none.db'}", "ads", NAMES, key="ad"), "does not exist"),
        (wb.SqlLookup(url, "ads", {"name": pa.int64()}, key="ad"), "the column 'name' does not fit int64 .*shoes"),
    ):
        with pytest.raises(SourceError, match=message), closing(refused.open()) as opened:
            opened.find(7)
    with pytest.raises(SourceError, match="has several rows with ad = 9"), closing(lookup.open()) as opened:
        opened.find(9)
    assert not (tmp_path / "none.db").exists()


JOINED = """
    CREATE TABLE ads (ad INT, {columns}) WITH ('connector' = 'sql', 'url' = '{url}'{more});
    SELECT v.n, a.ad, {taken} FROM views AS v {kind} JOIN ads FOR SYSTEM_TIME AS OF v.p AS a ON {on}
"""


def joined(
    url: str, kind: str = "LEFT", on: str = "v.ad = a.ad", more: str = "", columns: str = "name STRING, budget INT"
) -> list[tuple[Any, ...]]:
    views = wb.sql("SELECT *, PROCTIME() AS p FROM views", views=wb.Stream.from_table(VIEWS))
    taken = ", ".join(f"a.{column.split()[0]}" for column in columns.split(", "))
    query = JOINED.format(url=url, kind=kind, on=on, more=more, columns=columns, taken=taken)
    return sorted(tuple(row.values()) for row in wb.sql(query, views=views).collect().to_pylist())


def test_a_lookup_join_in_sql(postgresql: postgresql_server.PostgresProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    password = urlsplit(postgresql.url).password or ""
    monkeypatch.setenv("ADS_PASSWORD", password)
    url = postgresql.url.replace(password, "${ADS_PASSWORD}")
    none = (None, None, None)
    shoes = (7, "shoes", 5)
    assert joined(url) == [(0, *shoes), (1, *none), (2, *shoes), (3, *none)]
    assert joined(url, "INNER", "a.ad = v.ad", ", 'cache' = '1h'") == [(0, *shoes), (2, *shoes)]
    assert joined(url, "", "a.ad = v.ad - 1 AND v.n < a.budget") == [(1, *shoes)]


@pytest.mark.parametrize(
    ("kind", "on", "message"),
    [
        ("LEFT", "v.ad = a.ad AND a.budget > 3", "supports only equalities in ON"),
        ("FULL", "v.ad = a.ad", "would need all rows of the table"),
        ("", "v.ad < a.ad", "needs a key"),
        ("", "v.ad = a.ad + 1", "compares columns of the table"),
    ],
)
def test_a_lookup_join_that_cannot_be_is_refused(kind: str, on: str, message: str) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(QueryError, match=message):
        joined("postgresql://localhost/shop", kind, on)


@pytest.mark.parametrize("name", ["redis", "postgresql"])
def test_a_server_that_comes_back_answers_later(name: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(name)
    table = {"redis": lambda: wb.RedisLookup(server.url, "ad", NAMES)}.get(
        name, lambda: wb.SqlLookup(server.url, "ads", NAMES, key="ad")
    )()
    rows = table.open()
    assert rows.find(7) == {"name": "shoes", "budget": 5}
    server.stop()
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(rows.find(7)))
    asking.start()
    until(lambda: rows.outage is not None and rows.outage.attempts > 1)
    assert rows.outage is not None
    assert "pa55word" not in str(rows.outage)
    assert not answers
    server.start()
    until(lambda: not asking.is_alive())
    assert answers == [{"name": "shoes", "budget": 5}]
    assert rows.outage is None
    rows.close()


def test_what_cannot_be_looked_up_is_a_sentence(
    redis: redis_server.RedisProcess, postgresql: postgresql_server.PostgresProcess
) -> None:
    for lookup, message in (
        (
            wb.SqlLookup(postgresql.url, "nowhere", NAMES),
            r"cannot look up rows in 'nowhere' of .*exist; check its name",
        ),
        (
            wb.SqlLookup(postgresql.url, "ads", {"name": pa.int64()}, key="ad"),
            "the column 'name' does not fit int64 .*shoes",
        ),
        (wb.SqlLookup(postgresql.url, "ads", NAMES, key="shop"), "has several rows with shop = 'a'"),
        (
            wb.RedisLookup(redis.url, "ad", {"name": pa.int64()}),
            "the row '7' in 'ad' of .* does not fit these columns",
        ),
    ):
        rows = lookup.open()
        with pytest.raises(SourceError, match=message) as raised:
            rows.find("a" if "shop" in str(lookup) else 7)
        assert "pa55word" not in str(raised.value)
        rows.close()


@pytest.mark.parametrize("name", ["redis", "sql"])
def test_an_address_without_a_server_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("redis" if name == "redis" else "adbc_driver_postgresql")
    monkeypatch.setattr("workbench.connectors.contract.attempts.WAIT_S", 0.0)
    made: Any = {
        "redis": lambda: wb.RedisLookup("redis://127.0.0.1:1", "ad", NAMES),
        "sql": lambda: wb.SqlLookup("postgresql://127.0.0.1:1/d", "ads", NAMES, key="ad"),
    }
    rows = made[name]().open()
    with pytest.raises(SourceError, match=r"(no connection to redis|rows in 'ads' of).*127.*refused.*; start"):
        rows.find(7)
    rows.close()


def test_arguments_that_cannot_be_meant_are_refused() -> None:
    pytest.importorskip("redis")
    pytest.importorskip("adbc_driver_postgresql")
    stream = wb.Stream.from_table(VIEWS)
    table = wb.SqlLookup("postgresql://h/d", "ads", NAMES, key=["ad", "shop"])
    with pytest.raises(PlanError, match="looked up by ad, shop, and 1 key columns are given"):
        stream.lookup_async(table, key="ad")
    with pytest.raises(SettingError, match="the table declares its columns itself"):
        stream.lookup_async(table, key=["ad", "n"], schema=NAMES)
    with pytest.raises(SettingError, match="schema is missing: declare the columns"):
        stream.lookup_async(lambda ad: None, key="ad")
    with pytest.raises(SettingError, match=r"'mysql://h/d' cannot be used: write sqlite:///.* or postgresql://"):
        wb.SqlLookup("mysql://h/d", "ads", NAMES)
    with pytest.raises(SettingError, match="table is ''"):
        wb.SqlLookup("postgresql://h/d", "", NAMES)
    with pytest.raises(SettingError, match="key is ''"):
        wb.RedisLookup("redis://h", "", NAMES)
    with pytest.raises(PlanError, match="remove the other columns"):
        wb.RedisLookup("redis://h", "a", NAMES, value="name")
