"""Values of every type, written to PostgreSQL, SQLite and DuckDB and read back: they are equal, or refused by name."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from postgresql_server import running

import workbench as wb
from workbench.connectors.sql.sink import database_at
from workbench.connectors.sql.table import SqlTable
from workbench.connectors.sql.table_name import TableName
from workbench.errors import SinkError, SourceError

ENGINES = ("sqlite", "duckdb", "postgresql")
_TIME_FIRST = {"s": -62_135_596_800, "ms": -62_135_596_800_000, "us": -62_135_596_800_000_000}
_TIME_LAST = {"s": 253_402_300_799, "ms": 253_402_300_799_999, "us": 253_402_300_799_999_999}
ROUND: list[tuple[pa.DataType, list[Any]]] = [
    *(
        (kind, [0, -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1])
        for kind in map(pa.type_for_alias, ("int8", "int16", "int32", "int64"))
    ),
    *((kind, [0, 2**kind.bit_width - 1]) for kind in map(pa.type_for_alias, ("uint8", "uint16", "uint32"))),
    (pa.float32(), [0.1, -0.0, math.inf, -math.inf, 3.4e38]),
    (pa.float64(), [0.1, -0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 2.0**60, 1e20, 3.0]),
    (pa.float16(), [1.5, math.inf]),
    (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38)]),
    (pa.decimal128(38, 38), [Decimal("0." + "9" * 38)]),
    (pa.decimal128(10, 3), [Decimal("1.500"), Decimal("-0.001")]),
    (pa.string(), ["", "\U0001f600é", "1e5", "007", " x ", "\ufeffx", "\n\r", "'\"\\"]),
    (pa.large_string(), ["x"]),
    (pa.string_view(), ["x"]),
    (pa.dictionary(pa.int8(), pa.string()), ["x"]),
    (pa.binary(), [b"", b"\0\xff"]),
    (pa.large_binary(), [b"x"]),
    (pa.binary(3), [b"abc"]),
    (pa.bool_(), [True, False]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)]),
    (pa.date64(), [dt.date(2026, 1, 1)]),
    *((pa.timestamp(unit), [0, -1, _TIME_FIRST[unit], _TIME_LAST[unit]]) for unit in _TIME_FIRST),
    *((pa.timestamp(unit, "UTC"), [0, -1, _TIME_FIRST[unit], _TIME_LAST[unit]]) for unit in _TIME_FIRST),
    (pa.timestamp("us", "Europe/Berlin"), [0, -1, 1_774_747_800_000_000]),
    (pa.timestamp("ns"), [1_774_747_800_000_001_000]),
    (pa.timestamp("ns", "UTC"), [-1_000]),
    (pa.time32("s"), [0, 86_399]),
    (pa.time32("ms"), [1, 86_399_999]),
    (pa.time64("us"), [1, 86_399_999_999]),
    (pa.time64("ns"), [1_000]),
    *((pa.duration(unit), [0, 1, -1, 10**9]) for unit in ("s", "ms", "us")),
    (pa.duration("ns"), [1_000]),
]
"""Types and values that all three databases give back; times as their numbers."""
OWN: dict[str, list[tuple[pa.DataType, list[Any]]]] = {
    "sqlite": [
        (pa.timestamp("ns"), [1_774_747_800_000_000_001]),
        (pa.decimal256(50, 2), [Decimal("9" * 48 + ".99")]),
        (pa.string(), ["a\0b"]),
    ],
    "duckdb": [
        (pa.uint64(), [2**64 - 1]),
        (pa.float64(), [math.nan]),
        (pa.timestamp("ns"), [1_774_747_800_000_000_001]),
        (pa.decimal256(30, 2), [Decimal("1.50")]),
        (pa.string(), ["a\0b"]),
    ],
    "postgresql": [(pa.uint64(), [2**64 - 1]), (pa.float64(), [math.nan])],
}
"""Types and values that one database gives back."""
_NS = pa.timestamp("ns", "UTC")
REFUSED: list[tuple[str, pa.DataType, Any, str]] = [
    ("sqlite", pa.float64(), math.nan, r"'mark' has nan \(double\), which SQLite would store as null: replace it"),
    ("sqlite", pa.float32(), math.nan, "'mark' has nan"),
    ("sqlite", pa.timestamp("us"), 253_402_300_800_000_000, "'mark' has 10000-01-01 .* outside of SQLite's years"),
    ("sqlite", pa.date32(), -719_163, "'mark' has .*0000-12-31 .* outside of SQLite's years"),
    ("sqlite", pa.duration("ns"), 1, r"'mark' has 1 ns .*, which SQLite would change to duration\[us\]: CAST it"),
    ("duckdb", pa.duration("ns"), 1, "'mark' has 1 ns"),
    ("duckdb", _NS, 1, r"'mark' has 1970-01-01 00:00:00.000000001Z .*, which DuckDB would change to timestamp\[us"),
    ("duckdb", pa.time64("ns"), 1, "'mark' has 00:00:00.000000001"),
    ("postgresql", pa.timestamp("ns"), 1, "'mark' has 1970-01-01 00:00:00.000000001 .* PostgreSQL would change to"),
    ("postgresql", pa.time64("ns"), 1, "'mark' has 00:00:00.000000001"),
    ("postgresql", pa.duration("ns"), 1, "'mark' has 1 ns"),
    ("postgresql", pa.string(), "a\0b", "cannot write"),
]
"""Engines, types and values that it would change."""
_ODD_KINDS = [
    pa.list_(pa.int32()),
    pa.struct([("a", pa.int8())]),
    pa.map_(pa.string(), pa.int8()),
    pa.month_day_nano_interval(),
    pa.decimal256(50, 2),
    pa.uint64(),
    pa.decimal128(5, -2),
]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("values")
    with running() as server:
        yield {
            "postgresql": server.url,
            **{name: f"{name}:///{folder}/{name}.db" for name in ("sqlite", "duckdb")},
        }


def array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values, where times are given as their numbers."""
    if not pa.types.is_temporal(kind) or isinstance(values[0], dt.date):
        return pa.array(values, kind)
    return pa.array(values, pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)


def altered(url: str, *statements: str) -> None:
    with database_at(url).transaction("alter") as connection:
        for statement in statements:
            connection.execute(statement)


def stored(url: str, rows: pa.Table, create: bool = True) -> None:
    sink = wb.SqlSink(url, "odd")
    sink.check(rows.schema)
    table = SqlTable(database_at(url), "odd")
    if create:
        altered(url, "DROP TABLE IF EXISTS odd")
    table.prepare(rows.schema, create=create)
    with table.database.transaction("write") as connection:
        table.database.engine.insert(connection, table.place, rows, "")


def read(url: str, declared: pa.DataType, name: str = "mark", row: int = 1) -> Any:
    with closing(wb.SqlLookup(url, "odd", {name: declared}).open()) as rows:
        found = rows.find(row)
    assert found is not None
    return found[name]


@pytest.mark.parametrize("engine", ENGINES)
def test_values_are_read_back_as_they_were_written(urls: dict[str, str], engine: str) -> None:
    columns: dict[str, pa.Array] = {"id": pa.array([1])}
    for at, (kind, values) in enumerate([*ROUND, *OWN[engine]]):
        for number, value in enumerate(values):
            columns[f"mark {at} {number}"] = array([value], kind)
    rows = pa.table(columns)
    stored(urls[engine], rows)
    exact = [field for field in rows.schema if field.name != "id" and not pa.types.is_duration(field.type)]
    declared = exact if engine == "postgresql" else list(rows.schema)[1:]  # whose intervals have days
    with closing(wb.SqlLookup(urls[engine], "odd", pa.schema(declared)).open()) as opened:
        found = opened.find(1)
    assert found is not None
    for field in declared:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        given = columns[field.name].cast(kind)
        if pa.types.is_date64(kind) or pa.types.is_timestamp(kind) or not pa.types.is_floating(kind):
            assert pa.array([found[field.name]], kind).equals(given), field
        else:
            assert repr(found[field.name]) == repr(given[0].as_py()).replace(
                "-0.0", "0.0" if engine == "sqlite" else "-0.0"
            ), field


@pytest.mark.parametrize("engine", ENGINES)
def test_values_that_a_database_would_change_are_refused(urls: dict[str, str], engine: str) -> None:
    for _, kind, value, message in (case for case in REFUSED if case[0] == engine):
        rows = pa.table({"id": pa.array([1]), "mark": array([value], kind)})
        with pytest.raises(SinkError, match=message):
            stored(urls[engine], rows)


def test_types_without_a_column_type_are_refused_when_the_plan_is_made(urls: dict[str, str]) -> None:
    kept = {("postgresql", 4), ("postgresql", 5), ("duckdb", 5), ("sqlite", 4), ("sqlite", 6)}
    for engine in ENGINES:
        for at, kind in enumerate(_ODD_KINDS):
            schema, sink = pa.schema([("mark", kind)]), wb.SqlSink(urls[engine], "odd")
            if (engine, at) in kept:
                sink.check(schema)
                continue
            with pytest.raises(SinkError, match=f"{engine} has no column type for 'mark', which is"):
                sink.check(schema)


# columns that the workbench has not made -----------------------------------------------------------------------------

CHANGED: list[tuple[str, str, Any, pa.DataType, str | None]] = [
    ("sqlite", "NUMERIC", "1e5", pa.string(), "is NUM, which would change the value 1e5"),
    ("sqlite", "INTEGER", "007", pa.string(), "is INT, which would change the value 007"),
    ("sqlite", "INTEGER", "7", pa.string(), None),
    ("sqlite", "NUMERIC", Decimal("12345678901234567.89"), pa.decimal128(20, 2), "is NUM, .* 12345678901234567.89"),
    ("sqlite", "NUMERIC", Decimal("9.99"), pa.decimal128(20, 2), "would change the value 9.99"),
    ("sqlite", "NUMERIC", Decimal("1.50"), pa.decimal128(20, 2), None),
    ("sqlite", "REAL", 2**53 + 1, pa.int64(), "is REAL, which would change the value 9007199254740993"),
    ("sqlite", "REAL", 2**53, pa.int64(), None),
    ("sqlite", "TEXT", 0.1 + 0.2, pa.float64(), "is TEXT, which would change the value 0.30000000000000004"),
    ("sqlite", "TEXT", 7, pa.int64(), None),
    ("sqlite", "INTEGER", 1.0, pa.float64(), None),
    ("sqlite", "DATE", dt.date(2026, 3, 29), pa.date32(), None),
    ("duckdb", "DECIMAL(5, 2)", Decimal("1.5550"), pa.decimal128(10, 4), r"is DECIMAL\(5,2\), .* the value 1.5550"),
    ("duckdb", "DECIMAL(5, 2)", Decimal("1.5000"), pa.decimal128(10, 4), None),
    ("duckdb", "INTEGER", 1.5, pa.float64(), "is INTEGER, which would change the value 1.5"),
    ("duckdb", "DOUBLE", 2**53 + 1, pa.int64(), "is DOUBLE, .* 9007199254740993"),
    ("duckdb", "DATE", dt.datetime(2026, 3, 29, 1), pa.timestamp("us"), "is DATE, .* 2026-03-29 01:00:00"),
    ("duckdb", "TIMESTAMP_S", dt.datetime(2026, 3, 29, 1, 0, 0, 5), pa.timestamp("us"), "is TIMESTAMP_S, .*000005"),
    ("duckdb", "FLOAT", 0.1, pa.float64(), "is FLOAT, which would change the value 0.1"),
    ("duckdb", "INTEGER", "007", pa.string(), "is INTEGER, which would change the value 007"),
    ("duckdb", "VARCHAR", 7, pa.int64(), None),
    ("duckdb", "mood", "ok", pa.string(), None),
    ("duckdb", "JSON", '{"a":  1}', pa.string(), None),
    ("duckdb", "HUGEINT", 2**63 - 1, pa.int64(), None),
]
"""Engines, columns' types, values, their Arrow types, and the refusal; None: it is read back."""


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_value_that_a_column_would_change_is_refused(urls: dict[str, str], engine: str) -> None:
    database = database_at(urls[engine])
    cases = [case[1:] for case in CHANGED if case[0] == engine]
    with database.transaction("write") as connection:
        if engine == "duckdb":
            connection.execute("CREATE TYPE mood AS ENUM ('ok', 'sad')")
        for at, (kind, value, declared, message) in enumerate(cases):
            connection.execute(f"CREATE TABLE odd{at} (id BIGINT, mark {kind})")
            rows = pa.table({"id": pa.array([1]), "mark": pa.array([value], declared)})
            if message is None:
                database.engine.insert(connection, TableName(f"odd{at}"), rows, "")
                continue
            with pytest.raises(SinkError, match=message):
                database.engine.insert(connection, TableName(f"odd{at}"), rows, "")
            if engine == "sqlite":
                connection.execute("DROP TABLE temp.workbench_rows")
            assert connection.execute(f"SELECT * FROM odd{at}").fetchall() == []
    schema = {f"mark {at}": declared for at, (*_, declared, message) in enumerate(cases) if message is None}
    parts = ", ".join(f'(SELECT mark FROM odd{name[5:]}) AS "{name}"' for name in schema)
    altered(urls[engine], f"CREATE VIEW kept AS SELECT 1 AS id, {parts}")
    with closing(wb.SqlLookup(urls[engine], "kept", schema).open()) as opened:
        assert opened.find(1) == {f"mark {at}": case[1] for at, case in enumerate(cases) if case[3] is None}


READ: list[tuple[str, str, str, pa.DataType, Any]] = [
    ("sqlite", "", "5", pa.string(), "5"),
    ("sqlite", "", "'1.50'", pa.decimal128(5, 2), Decimal("1.50")),
    ("sqlite", "", "1.5", pa.decimal128(5, 2), Decimal("1.50")),
    ("sqlite", "", "'01:30:00.5'", pa.time64("us"), dt.time(1, 30, 0, 500_000)),
    ("sqlite", "", "'2026-03-29'", pa.timestamp("us"), dt.datetime(2026, 3, 29)),
    ("sqlite", "", "1", pa.bool_(), True),
    ("sqlite", "", "2.0", pa.int64(), 2),
    ("sqlite", "", "5", pa.decimal128(5, 2), Decimal(5)),
    ("duckdb", "HUGEINT", f"{2**127 - 1}", pa.string(), str(2**127 - 1)),
    ("duckdb", "HUGEINT", f"{10**20}", pa.decimal128(38, 0), Decimal(10**20)),
    ("duckdb", "UHUGEINT", f"{2**128 - 1}", pa.string(), str(2**128 - 1)),
    ("duckdb", "UHUGEINT", f"{2**64 - 1}", pa.uint64(), 2**64 - 1),
    ("duckdb", "BIGINT", "5", pa.decimal128(5, 2), Decimal(5)),
    ("duckdb", "DECIMAL(38, 10)", "1.5", pa.decimal128(38, 10), Decimal("1.5000000000")),
    ("duckdb", "DECIMAL(38, 10)", "1.5", pa.float64(), 1.5),
    ("duckdb", "ENUM('ok')", "'ok'", pa.string(), "ok"),
    ("duckdb", "TIMETZ", "'12:00:00+05:30'", pa.string(), "12:00:00+05:30"),
    ("duckdb", "TIME", "'24:00:00'", pa.string(), "24:00:00"),
    ("duckdb", "DATE", "'infinity'", pa.string(), "infinity"),
    ("duckdb", "TIMESTAMP_S", "'2026-03-29 01:30:00'", pa.timestamp("us"), dt.datetime(2026, 3, 29, 1, 30)),
    ("duckdb", "TIMESTAMPTZ", "'2026-03-29 01:30:00+02'", pa.string(), "2026-03-28 23:30:00+00"),
    ("duckdb", "BIT", "'101'", pa.string(), "101"),
    ("duckdb", "UNION(a INTEGER, b VARCHAR)", "1", pa.string(), "1"),
    ("duckdb", "INTERVAL", "INTERVAL '2 days 1 hour'", pa.duration("us"), dt.timedelta(days=2, hours=1)),
    ("duckdb", "INTERVAL", "INTERVAL '1 month'", pa.month_day_nano_interval(), pa.MonthDayNano([1, 0, 0])),
    ("duckdb", "UUID", "'6d1a6f5e-1c2b-4f3a-9d2b-0c1d2e3f4a5b'", pa.string(), "6d1a6f5e-1c2b-4f3a-9d2b-0c1d2e3f4a5b"),
    ("duckdb", "JSON", """'{"a":  1}'""", pa.string(), '{"a":  1}'),
    ("duckdb", "INTEGER[]", "[1, NULL]", pa.list_(pa.int32()), [1, None]),
    ("duckdb", "STRUCT(a INTEGER)", "{'a': 1}", pa.struct([("a", pa.int32())]), {"a": 1}),
    ("duckdb", "MAP(VARCHAR, INTEGER)", "MAP {'a': 1}", pa.map_(pa.string(), pa.int32()), [("a", 1)]),
    ("duckdb", "DATE[]", "['2026-03-29']", pa.string(), "[2026-03-29]"),
    ("duckdb", "INTEGER", "NULL", pa.string(), None),
]
"""Engines, columns' types, values in SQL, declared types, and the values in Python."""


def test_values_of_other_programs_are_read_exactly(urls: dict[str, str]) -> None:
    for engine in ("sqlite", "duckdb"):
        cases = [case[1:] for case in READ if case[0] == engine]
        columns = ", ".join(f"m{at} {kind}" for at, (kind, *_) in enumerate(cases))
        values = ", ".join(value for _, value, *_ in cases)
        altered(
            urls[engine],
            "DROP TABLE IF EXISTS odd",
            f"CREATE TABLE odd (id BIGINT, {columns})",
            f"INSERT INTO odd VALUES (1, {values})",
        )
        schema = pa.schema([(f"m{at}", declared) for at, (*_, declared, _) in enumerate(cases)])
        with closing(wb.SqlLookup(urls[engine], "odd", schema).open()) as rows:
            assert rows.find(1) == {f"m{at}": value for at, (*_, value) in enumerate(cases)}


@pytest.mark.parametrize(
    ("engine", "kind", "value", "declared", "message"),
    [
        ("sqlite", "INTEGER", "'abc'", pa.int64(), "'mark' does not fit int64 .*abc"),
        ("sqlite", "REAL", "9007199254740993", pa.int64(), None),  # SQLite's own REAL, rounded when it was stored
        ("sqlite", "", "9007199254740993", pa.float64(), "'mark' does not fit double .*9007199254740993"),
        ("sqlite", "NUMERIC", "'9.99'", pa.decimal128(10, 2), "'mark' does not fit decimal128"),
        ("sqlite", "", "0.1", pa.float32(), "'mark' does not fit float .*0.1"),
        ("sqlite", "", "1.5", pa.int64(), "'mark' does not fit int64 .*1.5"),
        ("sqlite", "", "2", pa.bool_(), "'mark' has 2, an integer .*, which is not a value of bool: declare another"),
        ("sqlite", "", "1774747800", pa.timestamp("us"), "'mark' has 1774747800, an integer .* CAST it in a view"),
        ("sqlite", "", "x'414243'", pa.string(), "'mark' has b'ABC', a BLOB"),
        ("sqlite", "", "'abc'", pa.binary(), "'mark' has 'abc', text"),
        ("sqlite", "", "CAST(x'ff' AS TEXT)", pa.string(), "Could not decode to UTF-8 column 'mark'"),
        ("sqlite", "", "'1e400'", pa.float64(), "'mark' does not fit double .*1e400"),
        ("sqlite", "", "'2026-03-29 01:30:00.0000005'", pa.timestamp("us"), "'mark' does not fit timestamp"),
        ("sqlite", "", "'01:30:00.0000005'", pa.time64("us"), "'mark' does not fit time64"),
        ("duckdb", "HUGEINT", f"{10**20}", pa.int64(), f"'mark' does not fit int64 .*{10**20}"),
        ("duckdb", "HUGEINT", f"{10**38}", pa.decimal128(38, 0), "'mark' does not fit decimal128"),
        ("duckdb", "DATE", "'infinity'", pa.date32(), "'mark' has infinity, which date32.* declare pyarrow.string"),
        ("duckdb", "TIMESTAMP", "'-infinity'", pa.timestamp("us"), "'mark' has -infinity"),
        ("duckdb", "TIMESTAMP_NS", "'infinity'", pa.timestamp("ns"), "'mark' has infinity"),
        ("duckdb", "TIMESTAMPTZ", "'infinity'", pa.timestamp("us", "UTC"), "'mark' has infinity"),
        ("duckdb", "TIMESTAMP_NS", "'2026-03-29 01:30:00.000000001'", pa.timestamp("us"), "'mark' does not fit timest"),
        ("duckdb", "TIME", "'24:00:00'", pa.time64("us"), "'mark' has 24:00:00"),
        ("duckdb", "TIMETZ", "'12:00:00+05'", pa.time64("us"), "'mark' is TIME WITH TIME ZONE, which cannot be read"),
        ("duckdb", "BIT", "'101'", pa.binary(), "'mark' is BIT, which cannot be read exactly as binary: declare pyarr"),
        ("duckdb", "INTERVAL", "INTERVAL '1 month'", pa.duration("us"), "'mark' has 1 month, months, whose length var"),
        ("duckdb", "INTERVAL", "INTERVAL '5000000 hours'", pa.month_day_nano_interval(), "'mark' has 5000000:00:00"),
        ("duckdb", "DOUBLE", "0.1", pa.float32(), "'mark' does not fit float .*0.1"),
        ("duckdb", "DOUBLE", "0.1", pa.decimal128(5, 2), "'mark' is DOUBLE, which cannot be read exactly as decimal"),
        ("duckdb", "INTEGER[]", "[1]", pa.list_(pa.int64()), r"'mark' is INTEGER\[\], which cannot be read exactly"),
        ("duckdb", "DATE[]", "['infinity']", pa.list_(pa.date32()), r"'mark' is DATE\[\]"),
        ("duckdb", "BLOB", "'a'", pa.string(), r"'mark' is BLOB, .* declare pyarrow.binary\(\)"),
        (
            "duckdb",
            "TIMESTAMP",
            "'12026-01-01'",
            pa.timestamp("us"),
            "'mark' has 12026-01-01 .* end with the year 9999",
        ),
    ],
)
def test_a_value_that_cannot_be_read_exactly_is_refused(
    urls: dict[str, str], engine: str, kind: str, value: str, declared: pa.DataType, message: str | None
) -> None:
    made = f"CREATE TABLE odd (id BIGINT, mark {kind})"
    altered(urls[engine], "DROP TABLE IF EXISTS odd", made, f"INSERT INTO odd VALUES (1, {value})")
    if message is None:
        assert read(urls[engine], declared) == 2**53
        return
    with pytest.raises(SourceError, match=message):
        read(urls[engine], declared)


_BERLIN = dt.datetime(2026, 3, 29, 3, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
_HALF = dt.datetime(2026, 3, 29, 1, 30, 0, 500_000)
KEYS: list[tuple[pa.DataType, Any]] = [
    (pa.timestamp("us"), _HALF),
    (pa.timestamp("ms"), _HALF),
    (pa.timestamp("s", "Europe/Berlin"), _BERLIN),
    (pa.date32(), dt.date(2026, 3, 29)),
    (pa.time64("us"), dt.time(1, 30)),
    (pa.duration("us"), dt.timedelta(days=-1, microseconds=1)),
    (pa.string(), "a'b"),
    (pa.binary(), b"\0"),
    (pa.int64(), -5),
    (pa.bool_(), True),
]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_key_is_found_as_it_was_written(urls: dict[str, str], engine: str) -> None:
    columns = {f"k{at}": pa.array([key], kind) for at, (kind, key) in enumerate(KEYS)}
    stored(urls[engine], pa.table({**columns, "mark": pa.array([7])}))
    lookup = wb.SqlLookup(urls[engine], "odd", {"mark": pa.int64()}, key=list(columns))
    with closing(lookup.open()) as rows:
        assert rows.find(*(key for _, key in KEYS)) == {"mark": 7}
    if engine == "duckdb":
        return
    with closing(wb.SqlLookup(urls[engine], "odd", {"mark": pa.int64()}, key="k8").open()) as rows:
        for key, name in ((Decimal("1.5"), r"Decimal\('1.5'\)"), (2**63, "9223372036854775808")):
            with pytest.raises(SourceError, match=f"'k8' of 'odd' cannot be compared with {name} .*: CAST it"):
                rows.find(key)
