"""Tables in schemas and with any name, written by a sink and read by look-ups and sources; names are untrusted text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from databases import query
from postgresql_server import PostgresProcess, running
from source_readers import readers

import workbench as wb
from workbench.connectors.contract.base import Fetched
from workbench.connectors.contract.runs import Runs
from workbench.connectors.epochs.row_store import Epoch
from workbench.errors import PlanError, SinkError, SourceError

NAMES = {
    "app.orders": "app.orders",
    "Orders": '"Orders"',
    '"x""; DROP TABLE app.orders; --"': '"x""; DROP TABLE app.orders; --"',
    '"a.b"': '"a.b"',
    'app."it\'s ${NAME} ü"': 'app."it\'s ${NAME} ü"',
}
"""Names for the sink, and in SQL."""
ROWS = pa.table({"id": [1, 2, 1], "city": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running() as server:
        server.query("CREATE SCHEMA app")
        yield server


@pytest.fixture
def urls(server: PostgresProcess, tmp_path: Any) -> dict[str, str]:
    found = {"postgresql": server.url, **{name: f"{name}:///{tmp_path}/{name}.db" for name in ("sqlite", "duckdb")}}
    query(found["duckdb"], "CREATE SCHEMA app")
    return found


def visible(urls: dict[str, str], server: PostgresProcess, engine: str, table: str) -> list[tuple[Any, ...]]:
    sql = f"SELECT * FROM {table} ORDER BY id, city"
    return server.query(sql) if engine == "postgresql" else query(urls[engine], sql)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgresql", "duckdb", "sqlite"])
def test_rows_go_to_the_table_of_this_name(urls: dict[str, str], server: PostgresProcess, engine: str) -> None:
    names = {name: sql for name, sql in NAMES.items() if engine != "sqlite" or not name.startswith("app.")}
    if engine == "sqlite":
        names["main.others"] = "others"
    for name, sql in names.items():
        target = wb.SqlSink(urls[engine], name).target
        with target.database.kept():
            target.prepare(ROWS.schema, create=True)
            for _ in range(2):
                target.commit("job/sink", Runs("run"), [Epoch(1, 0, ROWS)], "run")
        assert visible(urls, server, engine, sql) == [(1, "a"), (1, "c"), (2, "b")], name
        with closing(wb.SqlLookup(urls[engine], name, {"city": pa.string()}).open()) as rows:
            assert rows.find(2) == {"city": "b"}


def test_a_job_appends_to_a_table_of_a_schema(urls: dict[str, str]) -> None:
    pipeline = wb.Stream.from_table(ROWS).sink_to(wb.SqlSink(urls["duckdb"], 'app."late ""orders"""'))
    assert pipeline.run("appends").wait("60s") == "FINISHED"
    with pytest.raises(SinkError, match="already holds rows of 'appends/"):
        pipeline.run("appends")
    assert query(urls["duckdb"], "SELECT table_name FROM workbench_owners") == []
    assert query(urls["duckdb"], "SELECT table_name FROM workbench_commits") == [('app."late ""orders"""',)]


@pytest.mark.parametrize("engine", ["postgresql", "duckdb"])
def test_rows_of_a_schema_are_replaced_and_deleted(urls: dict[str, str], server: PostgresProcess, engine: str) -> None:
    url, name = urls[engine], 'app."latest ""ones"""'
    stream = wb.Stream.from_table(ROWS)
    sink = wb.SqlSink(url, name, upsert_key="id")
    assert stream.sink_to(sink).run("upserts").wait("60s") == "FINISHED"
    assert visible(urls, server, engine, name) == [(1, "c"), (2, "b")]
    sink.target.remove(pa.table({"id": [2]}), "")
    assert list(sink.committed()) == [(1, "c")]


def test_one_table_has_one_owner_by_all_of_its_names(urls: dict[str, str]) -> None:
    stream = wb.Stream.from_table(ROWS)
    for engine, usual in (("postgresql", "public"), ("duckdb", "main"), ("sqlite", "main")):
        one, same = wb.SqlSink(urls[engine], "orders"), wb.SqlSink(urls[engine], f'{usual}."orders"')
        assert one.place() == same.place() != wb.SqlSink(urls[engine], "app.orders").place()
        with pytest.raises(PlanError, match="two sinks write to"):
            (stream.sink_to(one) + stream.sink_to(same)).run("twice")


def test_a_schema_that_does_not_exist_is_named(urls: dict[str, str]) -> None:
    for engine, message in (
        ("postgresql", 'schema "nowhere" does not exist; check its name, or create it first'),
        ("duckdb", "nowhere.* does not exist"),
        ("sqlite", "unknown database"),
    ):
        sink = wb.SqlSink(urls[engine], "nowhere.orders")
        with pytest.raises(SinkError, match=message):
            sink.target.prepare(ROWS.schema, create=True)
        with closing(wb.SqlLookup(urls[engine], "nowhere.orders", {"city": pa.string()}).open()) as rows:
            if engine != "sqlite":  # whose file does not exist
                with pytest.raises(SourceError, match=r"cannot look up rows in 'nowhere\.orders'"):
                    rows.find(1)


def test_views_and_quoted_names_are_looked_up_and_read(urls: dict[str, str], server: PostgresProcess) -> None:
    server.query('CREATE TABLE app."the ""ids"""  (id BIGINT PRIMARY KEY, city TEXT)')
    server.query('INSERT INTO app."the ""ids""" VALUES (1, \'a\')')
    server.query('CREATE VIEW app.seen AS SELECT id, city FROM app."the ""ids"""')
    query(urls["duckdb"], "CREATE VIEW app.seen AS SELECT 1 AS id, 'a' AS city")
    for engine in ("postgresql", "duckdb"):
        with closing(wb.SqlLookup(urls[engine], "app.seen", {"city": pa.string()}).open()) as rows:
            assert rows.find(1) == {"city": "a"}
    source = wb.SqlSource(server.url, 'app."the ""ids"""', {"id": pa.int64(), "city": pa.string()}, settle="0s")
    (reader,) = readers(source, 1)
    fetched = reader.poll(9)
    reader.close()
    assert isinstance(fetched, Fetched)
    assert fetched.records.batch.to_pylist() == [{"id": 1, "city": "a"}]
