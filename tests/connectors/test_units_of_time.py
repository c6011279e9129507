"""Times as numbers: in JSON with a unit they are exact, without one they are refused with the way out; int64 event
times that can hardly be microseconds are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats_server
import pyarrow as pa
import pytest
import redis_server

import workbench as wb
from workbench.connectors.files.json_lines import parse_json
from workbench.connectors.files.line_parser import parse_lines
from workbench.connectors.named.connector import Declared
from workbench.connectors.named.names import named_source
from workbench.connectors.redis.entries import records
from workbench.connectors.redis.lookup import RedisRows

NEW_YEAR = 1_767_225_600
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def written(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("unit", UNITS)
def test_numbers_in_json_are_times_of_the_unit(tmp_path: Path, unit: Any) -> None:
    path = written(tmp_path, {"t": NEW_YEAR * UNITS[unit], "seen": "2026-01-01T00:00:00Z"}, {"t": None})
    schema = {"t": pa.timestamp("us", "UTC"), "seen": pa.timestamp("us", "UTC"), "day": pa.date32()}
    for on_error in ("fail", "dead_letter"):
        stream = wb.Stream.from_files(path, schema, unit=unit, event_time="t", on_error=on_error)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        assert stream.collect().to_pylist() == [
            {"t": at, "seen": at, "day": None},
            {"t": None, "seen": None, "day": None},
        ]
    options = f"'connector' = 'filesystem', 'path' = '{path}', 'unit' = '{unit}'"
    declared = f"CREATE TABLE read (t TIMESTAMP(6)) WITH ({options})"
    assert wb.sql(f"{declared}; SELECT t FROM read WHERE t IS NOT NULL").collect().num_rows == 1


def test_a_conversion_is_exact_or_refused() -> None:
    line, kind = b'{"t": 9007199254740993}\n', pa.timestamp("ns")
    assert parse_json(line, pa.schema([("t", kind)]), "us")["t"].cast(pa.int64()).to_pylist() == [9007199254740993000]
    for text, unit in [(b'{"t": 1500}', "ms"), (b'{"t": 1.5}', "s"), (b'{"t": true}', "s"), (b'{"t": "x"}', "s")]:
        with pytest.raises(pa.ArrowInvalid):
            parse_json(text + b"\n", pa.schema([("t", pa.timestamp("s"))]), unit)  # type: ignore[arg-type]
    with pytest.raises(pa.ArrowInvalid):
        parse_json(b'{"t": 9007199254740993}\n', pa.schema([("t", kind)]), "s")
    lines = parse_lines([b'{"t": 5}'], "json", pa.schema([("t", pa.timestamp("ms"))]), "a sender", "s")
    assert lines["t"].cast(pa.int64()).to_pylist() == [5_000]


def test_a_number_without_a_unit_is_refused_with_the_way_to_say_it(tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.timestamp("ms"))])
    path = written(tmp_path, {"t": NEW_YEAR * 1_000})
    with pytest.raises(wb.errors.WorkbenchError, match=r"the column 't' is a timestamp, .* unit='ms'") as refused:
        wb.Stream.from_files(path, schema).collect()
    assert "declare the types" not in str(refused.value)
    with pytest.raises(wb.errors.WorkbenchError, match="unit='ms'") as refused:
        parse_lines([b'{"t": 5}'], "json", schema, "a sender")
    assert "declare other types" not in str(refused.value)


def test_a_unit_that_does_not_exist_or_has_no_use_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"t": 1})
    with pytest.raises(wb.errors.SettingError, match="unknown unit of time 'millis'"):
        wb.Stream.from_files(path, unit="millis")  # type: ignore[arg-type]
    with pytest.raises(wb.errors.SettingError, match="the format is 'csv'"):
        wb.Stream.from_socket("localhost", 9, {"t": pa.int64()}, format="csv", unit="ms")


SCHEMA = {"t": pa.timestamp("us", "UTC")}
MESSAGES: dict[str, Any] = {
    "KafkaSource": ("localhost:1", "a"),
    "NatsSource": ("nats://localhost:1", "a"),
    "RedisSource": ("redis://localhost:1", "a"),
    "ServerEventSource": ("http://localhost:1",),
    "WebSocketSource": ("ws://localhost:1",),
    "MqttSource": ("mqtt://localhost:1",),
}
NAMED = {
    "KafkaSource": {"connector": "kafka", "servers": "localhost:1", "topic": "a"},
    "NatsSource": {"connector": "nats", "url": "nats://localhost:1", "stream": "a"},
    "RedisSource": {"connector": "redis", "url": "redis://localhost:1", "stream": "a"},
    "ServerEventSource": {"connector": "sse", "url": "http://localhost:1"},
    "WebSocketSource": {"connector": "websocket", "url": "ws://localhost:1"},
    "MqttSource": {"connector": "mqtt", "url": "mqtt://localhost:1", "topic": "a"},
}


def decoded(source: Any, value: bytes) -> list[Any]:
    """The times of a message."""
    schema = pa.schema(SCHEMA)
    if isinstance(source, wb.RedisSource):
        return list(records([(b"1-0", {b"t": value})], schema, source.unit)["t"].to_pylist())
    form = source.rows.format if isinstance(source, wb.KafkaSource) else source.message_format
    text = value if value.isdigit() else b'"%b"' % value
    times: list[Any] = form.decode([b'{"t": %b}' % text], schema)["t"].to_pylist()
    return times


@pytest.mark.parametrize("kind", MESSAGES)
def test_numbers_in_messages_are_times_of_the_unit(kind: str) -> None:
    def made(**how: Any) -> Any:
        return getattr(wb, kind)(*MESSAGES[kind], SCHEMA, **how)

    for unit, count in UNITS.items():
        named = named_source({**NAMED[kind], "unit": unit}, Declared("read", pa.schema(SCHEMA)))
        for source in (made(unit=unit), named):
            assert decoded(source, b"%d" % (NEW_YEAR * count)) == [datetime(2026, 1, 1, tzinfo=UTC)]
            assert decoded(source, b"2026-01-01T00:00:00Z") == [datetime(2026, 1, 1, tzinfo=UTC)]
    with pytest.raises(pa.ArrowInvalid, match=r"(would lose|would change|truncat|lose data|out of bounds)"):
        decoded(made(unit="ns"), b"1")
    with pytest.raises(pa.ArrowInvalid, match=r"column 't' is a timestamp, .* with unit='ms'.* at the source"):
        decoded(made(), b"5")
    with pytest.raises(wb.errors.SettingError, match="unknown unit of time 'millis'"):
        made(unit="millis")
    if kind != "RedisSource":
        with pytest.raises(wb.errors.SettingError, match="unit='ms' is of numbers in JSON, and the format is 'csv'"):
            made(unit="ms", format="csv")


@pytest.mark.slow
def test_numbers_of_brokers_are_times_of_the_unit() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with nats_server.running() as server:
        server.stream("times")
        server.send("times", [b'{"t": %d}' % (NEW_YEAR * 1_000), b'{"t": "2026-01-01T00:00:00Z"}', b'{"t": 1.5}'])
        source = wb.NatsSource(server.url, "times", SCHEMA, event_time="t", unit="ms", bounded=True)
        with pytest.raises(wb.errors.WorkbenchError, match="is not a record of these columns"):
            wb.Stream.from_source(source).collect()
        lenient = wb.NatsSource(
            server.url, "times", SCHEMA, event_time="t", unit="ms", bounded=True, on_error="dead_letter"
        )
        assert wb.Stream.from_source(lenient).collect().to_pylist() == [{"t": at}, {"t": at}]
    with redis_server.running() as place, redis_server.client_of(place) as client:
        client.xadd("times", {"t": NEW_YEAR * 1_000})
        client.xadd("times", {"t": "2026-01-01T00:00:00Z"})
        for on_error in ("fail", "dead_letter"):
            entries = wb.RedisSource(place.url, "times", SCHEMA, unit="ms", bounded=True, on_error=on_error)
            assert wb.Stream.from_source(entries).collect().to_pylist() == [{"t": at}, {"t": at}]
        client.hset("days:1", "t", str(NEW_YEAR))
        rows = RedisRows(wb.RedisLookup(place.url, "days", SCHEMA, unit="s"))
        assert rows.find(1) == {"t": at}
        rows.close()


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_int64_event_times_of_another_unit_are_refused(tmp_path: Path, unit: str) -> None:
    numbers = [NEW_YEAR * UNITS[unit] + n for n in range(3)]
    with pytest.raises(wb.errors.PlanError, match=rf"'stamp' is int64, .*pa\.timestamp\(unit='{unit}'\)"):
        wb.Stream.from_table(pa.table({"stamp": numbers}), event_time="stamp")
    path = written(tmp_path, *({"stamp": n} for n in numbers))
    with pytest.raises(wb.errors.WorkbenchError, match=f"unit='{unit}'"):
        wb.Stream.from_files(path, {"stamp": pa.int64()}, event_time="stamp").collect()


@pytest.mark.parametrize("numbers", [[], [None], [5_000_000], [0, NEW_YEAR * 1_000], [NEW_YEAR * 1_000_000]])
def test_other_int64_event_times_pass(numbers: list[int | None]) -> None:
    table = pa.table({"stamp": pa.array(numbers, pa.int64())})
    assert wb.Stream.from_table(table, event_time="stamp").collect().num_rows == len(numbers)


def test_a_time_without_an_offset_in_csv_is_refused_with_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("stamp\n2026-01-01 00:00:00\n")
    with pytest.raises(wb.errors.WorkbenchError, match=r"zone offset in .*: write one, such as Z") as refused:
        wb.Stream.from_files(path, {"stamp": pa.timestamp("us", "UTC")}).collect()
    assert "assume_timezone" not in str(refused.value)
