"""Values of every type of PostgreSQL, read by a source and by a look-up: exactly, or refused by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from postgresql_server import PostgresProcess, running
from source_readers import readers

import workbench as wb
from workbench.connectors.contract.base import Fetched
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.sink import database_at
from workbench.connectors.sql.table import SqlTable
from workbench.errors import SinkError, SourceError

UUID = "6d1a6f5e-1c2b-4f3a-9d2b-0c1d2e3f4a5b"
DAY, INSTANT, NAIVE = pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running() as server:
        server.query("CREATE TYPE mood AS ENUM ('ok', 'sad')")
        server.query("CREATE TYPE pair AS (a INTEGER, b TEXT)")
        server.query("CREATE DOMAIN price AS NUMERIC(8, 3)")
        server.query("CREATE DOMAIN bill AS price")
        yield server


def read(server: PostgresProcess, kind: str, value: str, declared: pa.DataType) -> Any:
    """The value as a source reads it, which must be what a look-up finds."""
    server.query("DROP TABLE IF EXISTS odd")
    server.query(f"CREATE TABLE odd (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, mark {kind})")
    server.query(f"INSERT INTO odd (mark) VALUES ({value})")
    (reader,) = readers(wb.SqlSource(server.url, "odd", {"id": pa.int64(), "mark": declared}), 1)
    try:
        fetched = reader.poll(9)
    finally:
        reader.close()
    assert isinstance(fetched, Fetched)
    column = fetched.records.batch.column("mark")
    with closing(wb.SqlLookup(server.url, "odd", {"mark": declared}).open()) as rows:
        assert pa.array([rows.find(1)["mark"]], declared).equals(column)  # type: ignore[index]
    return column.to_pylist()[0]


EXACT: list[tuple[str, str, pa.DataType, Any]] = [
    ("uuid", f"'{UUID}'", pa.string(), UUID),
    ("uuid", "'41424344-4546-4748-494a-4b4c4d4e4f50'", pa.string(), "41424344-4546-4748-494a-4b4c4d4e4f50"),
    ("inet", "'10.0.0.1'", pa.string(), "10.0.0.1"),
    ("inet", "'10.0.0.1/8'", pa.string(), "10.0.0.1/8"),
    ("cidr", "'10.0.0.0/8'", pa.string(), "10.0.0.0/8"),
    ("macaddr", "'08:00:2b:01:02:03'", pa.string(), "08:00:2b:01:02:03"),
    ("bit(4)", "B'0100'", pa.string(), "0100"),
    ("bit varying", "B'01000001'", pa.string(), "01000001"),
    ("oid", "4294967295", pa.int64(), 4294967295),
    ("oid", "4294967295", pa.string(), "4294967295"),
    ("money", "12.34", pa.decimal128(10, 2), Decimal("12.34")),
    ("money", "12.34", pa.string(), "$12.34"),
    ("numeric", "'12345678901234567890.5'", pa.decimal128(38, 2), Decimal("12345678901234567890.50")),
    ("numeric", "'NaN'", pa.string(), "NaN"),
    ("numeric", "'-Infinity'", pa.float64(), float("-inf")),
    ("numeric(30, 0)", "9007199254740993", pa.int64(), 9007199254740993),
    ("bill", "1.5", pa.decimal128(8, 3), Decimal("1.500")),
    ("float8", "'-Infinity'", pa.float64(), float("-inf")),
    ("interval", "'1 mon 2 days 03:00'", pa.string(), "1 mon 2 days 03:00:00"),
    ("timetz", "'10:00+02'", pa.string(), "10:00:00+02"),
    ("timestamptz", "'infinity'", pa.string(), "infinity"),
    ("timestamptz", "'2026-03-29 01:30+02'", pa.string(), "2026-03-28 23:30:00+00"),
    ("timestamptz", "'2026-03-29 01:30+02'", INSTANT, dt.datetime(2026, 3, 28, 23, 30, tzinfo=dt.UTC)),
    ("date", "'0001-01-01'", DAY, dt.date(1, 1, 1)),
    ("date", "'9999-12-31'", DAY, dt.date(9999, 12, 31)),
    ("int4range", "'[1,5)'", pa.string(), "[1,5)"),
    ("int4multirange", "'{[1,5)}'", pa.string(), "{[1,5)}"),
    ("integer[]", "'{1,NULL,3}'", pa.list_(pa.int32()), [1, None, 3]),
    ("integer[]", "'{{1,2},{3,4}}'", pa.string(), "{{1,2},{3,4}}"),
    ("numeric[]", "'{1.5}'", pa.string(), "{1.5}"),
    ("mood", "'ok'", pa.string(), "ok"),
    ("pair", "'(1,a)'", pa.string(), "(1,a)"),
    ("json", """'{"a":  1}'""", pa.string(), '{"a":  1}'),
    ("jsonb", """'{"a":1}'""", pa.string(), '{"a": 1}'),
    ("xml", "'<a/>'", pa.string(), "<a/>"),
    ("bytea", r"'\x00ff'", pa.binary(), b"\x00\xff"),
    ("char(4)", "'ab'", pa.string(), "ab  "),
    ('"char"', "'x'", pa.string(), "x"),
    ("name", "'x'", pa.string(), "x"),
    ("boolean", "true", pa.bool_(), True),
    ("boolean", "true", pa.string(), "true"),
    ("time", "'24:00'", pa.string(), "24:00:00"),
    ("point", "'(1,2)'", pa.string(), "(1,2)"),
    ("uuid", "NULL", pa.string(), None),
    ("inet", "NULL", pa.string(), None),
]
"""Types and values in SQL, declared types, and the values in Python."""


def test_values_are_read_exactly_by_a_source_and_a_look_up(server: PostgresProcess) -> None:
    names = [f"mark {at}" for at in range(len(EXACT))]
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, *_) in zip(names, EXACT, strict=True))
    server.query(f"CREATE TABLE exact (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {columns})")
    server.query(f"INSERT INTO exact VALUES (DEFAULT, {', '.join(value for _, value, *_ in EXACT)})")
    schema = pa.schema([("id", pa.int64()), *zip(names, (declared for _, _, declared, _ in EXACT), strict=True)])
    (reader,) = readers(wb.SqlSource(server.url, "exact", schema), 1)
    fetched = reader.poll(9)
    reader.close()
    assert isinstance(fetched, Fetched)
    expected = dict(zip(names, (value for *_, value in EXACT), strict=True))
    assert fetched.records.batch.to_pylist() == [{"id": 1, **expected}]
    with closing(wb.SqlLookup(server.url, "exact", schema).open()) as rows:
        assert rows.find(1) == {"id": 1, **expected}


@pytest.mark.parametrize(
    ("kind", "value", "declared", "message"),
    [
        ("timestamptz", "'infinity'", INSTANT, r"'mark' has infinity, .* \(odd, id 1\)"),
        ("timestamp", "'-infinity'", NAIVE, "'mark' has infinity"),
        ("timestamp", "'294276-12-31'", NAIVE, "'mark' has infinity, -infinity or a time after the year 294246"),
        ("date", "'infinity'", DAY, "'mark' has infinity"),
        ("date", "'-infinity'", DAY, "'mark' has infinity"),
        ("time", "'24:00'", pa.time64("us"), "'mark' has 24:00"),
        ("money", "12.34", pa.int64(), "'mark' is money, which cannot be read exactly as int64"),
        ("money", "12.34", pa.float64(), "'mark' is money"),
        ("oid", "1", pa.int32(), None),
        ("oid", "4294967295", pa.int32(), "'mark' does not fit int32 .*4294967295"),
        ("uuid", f"'{UUID}'", pa.int64(), "'mark' is uuid"),
        ("interval", "'1 mon'", pa.duration("us"), "'mark' is interval, .* CAST"),
        ("timetz", "'10:00+02'", pa.time64("us"), "'mark' is time with time zone"),
        ("numeric", "'NaN'", pa.decimal128(10, 2), "'mark' does not fit decimal128.10, 2. .*NaN"),
        ("numeric", "1.555", pa.decimal128(10, 2), "'mark' does not fit decimal128"),
        ("numeric", "1e40::numeric", pa.decimal128(38, 0), "'mark' does not fit decimal128"),
        ("numeric", "1.5", pa.int64(), "'mark' does not fit int64 .*1.5"),
        ("integer[]", "'{{1,2},{3,4}}'", pa.list_(pa.int32()), "'mark' has an array of several dimensions"),
        ("numeric[]", "'{1.5}'", pa.list_(pa.float64()), r"'mark' is numeric\[\]"),
        ("timestamp[]", "'{infinity}'", pa.list_(NAIVE), "'mark' is timestamp without time zone"),
        ("bytea", r"'\x41'", pa.string(), "'mark' is bytea"),
        ("integer", "2", pa.bool_(), "'mark' is integer"),
        ("double precision", "0.1", pa.decimal128(10, 2), "'mark' is double precision"),
        ("double precision", "1.5", pa.int64(), "'mark' does not fit int64"),
        ("timestamp", "'2026-03-29 01:30'", DAY, "'mark' is timestamp without time zone"),
        ("timestamp", "'2026-03-29 01:30:00.000001'", pa.timestamp("ms"), "'mark' does not fit"),
        ("pair", "'(1,a)'", pa.struct({"a": pa.int32()}), "'mark' is pair"),
        ("text", "'abc'", pa.int64(), "'mark' does not fit int64 .*abc"),
    ],
)
def test_a_value_that_its_declared_type_does_not_have_is_refused_by_name(
    server: PostgresProcess, kind: str, value: str, declared: pa.DataType, message: str | None
) -> None:
    if message is None:
        assert read(server, kind, value, declared) == 1
        return
    with pytest.raises(SourceError, match=message):
        read(server, kind, value, declared)
    with (
        closing(wb.SqlLookup(server.url, "odd", {"mark": declared}).open()) as rows,
        pytest.raises(SourceError, match=message.partition(" .*")[0]),
    ):
        rows.find(1)


def test_a_lookup_by_keys_that_arrow_has_not(server: PostgresProcess) -> None:
    server.query("CREATE TABLE kinds (ident uuid, mark mood, n INTEGER)")
    server.query(f"INSERT INTO kinds VALUES ('{UUID}', 'ok', 1), ('{UUID}', 'sad', 2)")
    with closing(wb.SqlLookup(server.url, "kinds", {"n": pa.int64()}, key=["ident", "mark"]).open()) as rows:
        assert rows.find(UUID, "sad") == {"n": 2}
        assert rows.find(UUID.upper(), "ok") == {"n": 1}
        with pytest.raises(SourceError, match="invalid input syntax for type uuid"):
            rows.find("none", "ok")


def stored(server: PostgresProcess, kind: str, values: pa.Array) -> list[Any]:
    """What a table with a column of this type holds of these values, which a sink writes."""
    server.query("DROP TABLE IF EXISTS given")
    server.query(f"CREATE TABLE given (mark {kind})")
    table = SqlTable(database_at(server.url), "given")
    schema = pa.schema([("mark", values.type)])
    table.prepare(schema, create=False)
    with table.database.transaction("write") as connection:
        PostgreSQL().insert(connection, table.place, pa.table([values], schema=schema), "")
    return [mark for (mark,) in server.query("SELECT mark::text FROM given")]


def test_rows_are_stored_as_they_are_in_columns_of_other_types(server: PostgresProcess) -> None:
    text = pa.string()
    for kind, value, declared, expected in (
        ("uuid", UUID, text, UUID),
        ("jsonb", '{"a": 1}', text, '{"a": 1}'),
        ("json", '{"a":  1}', text, '{"a":  1}'),
        ("mood", "ok", text, "ok"),
        ("inet", "10.0.0.1", text, "10.0.0.1/32"),
        ("integer[]", "{1,2}", text, "{1,2}"),
        ("bill", Decimal("1.500"), pa.decimal128(10, 3), "1.500"),
        ("numeric(5, 2)", Decimal("1.5000"), pa.decimal128(10, 4), "1.50"),
        ("integer", 7, pa.int64(), "7"),
        ("varchar(3)", "abc", text, "abc"),
        ("double precision", 7, pa.int64(), "7"),
        ("oid", 4294967295, pa.int64(), "4294967295"),
    ):
        found = stored(server, kind, pa.array([value, None], declared))
        assert found == [expected, None], kind


@pytest.mark.parametrize(
    ("kind", "value", "declared", "message"),
    [
        (
            "numeric(5, 2)",
            Decimal("1.5550"),
            pa.decimal128(10, 4),
            r"\"mark\" .* is numeric\(5,2\), .* value 1.5550",
        ),
        ("bill", Decimal("1.5555"), pa.decimal128(10, 4), r"is bill, .* the value 1.5555"),
        ("numeric(5, 2)", "1.555", pa.string(), r"is numeric\(5,2\), .* the value 1.555"),
        ("integer", 1.5, pa.float64(), "is integer, .* the value 1.5"),
        ("real", 0.1, pa.float64(), "is real, .* the value 0.1"),
        ("double precision", 2**53 + 1, pa.int64(), "is double precision, .* the value 9007199254740993"),
        ("date", dt.datetime(2026, 3, 29, 1), NAIVE, "is date, .* 2026-03-29 01:00:00"),
        ("timestamp(0)", dt.datetime(2026, 3, 29, 1, 0, 0, 5), NAIVE, r"is timestamp\(0\) without time zone"),
        ("name", "x" * 64, pa.string(), "is name, .* x{64} "),
        ('"char"', "abc", pa.string(), 'is "char", .* the value abc'),
        ("char(4)", "ab ", pa.string(), r"is character\(4\), .* the value ab "),
        ("varchar(3)", "abcd", pa.string(), r"is character varying\(3\), .* the value abcd"),
        ("integer", 2**40, pa.int64(), "out of range"),
        ("money", 12, pa.int64(), None),
        ("uuid", "none", pa.string(), "invalid input syntax for type uuid"),
        ("jsonb", "{", pa.string(), "invalid input syntax for type json"),
        ("mood", "none", pa.string(), "invalid input value for enum mood"),
        ("numeric", float("nan"), pa.float64(), None),
    ],
)
def test_a_value_that_a_column_would_change_is_refused(
    server: PostgresProcess, kind: str, value: Any, declared: pa.DataType, message: str | None
) -> None:
    if message is None:
        assert stored(server, kind, pa.array([value], declared)) == [{"money": "$12.00", "numeric": "NaN"}[kind]]
        return
    with pytest.raises(SinkError, match=message):
        stored(server, kind, pa.array([value], declared))
    assert server.query("SELECT * FROM given") == []
