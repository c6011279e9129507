"""Values that Avro's types or the columns' types would change: refused with the column and the value."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest

from workbench.connectors.messages.avro import AvroMessages
from workbench.errors import SettingError, SinkError

NOON = dt.datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=dt.UTC)
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
UUID_TEXT = {"type": "string", "logicalType": "uuid"}


def messages(kind: Any) -> AvroMessages:
    return AvroMessages(json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": kind}]}))


def read(avro: Any, value: Any, kind: pa.DataType) -> Any:
    out = io.BytesIO()
    form = messages(avro)
    fastavro.schemaless_writer(out, form.schema, {"x": value})
    return form.decode([out.getvalue()], pa.schema({"x": kind})).to_pylist()[0]["x"]


def write(avro: Any, value: Any, kind: pa.DataType) -> Any:
    form = messages(avro)
    (content,) = form.encode(pa.record_batch({"x": pa.array([value], kind)}))
    return fastavro.schemaless_reader(io.BytesIO(content), form.schema, None)["x"]


@pytest.mark.parametrize(
    ("avro", "value", "kind"),
    [
        ("double", 1.5, pa.int64()),
        (["null", "double"], 1.5, pa.int64()),
        ({"type": "array", "items": "double"}, [1.0, 1.5], pa.list_(pa.int64())),
        (MONEY, Decimal("1.25"), pa.int64()),
        (MONEY, Decimal("1.25"), pa.decimal128(10, 1)),
        ("double", 1e300, pa.float32()),
        ("long", 2**53 + 1, pa.float64()),
        ("long", 2**40, pa.int32()),
        ("long", -1, pa.uint64()),
        ("int", 2**40, pa.int64()),  # its writer has broken the schema
        ({"type": "array", "items": ["null", "int"]}, [None, 2**40], pa.list_(pa.int64())),
        (MICROS, NOON, pa.timestamp("ms")),
        (MICROS, NOON, pa.date32()),
        ({"type": "long", "logicalType": "time-micros"}, NOON.time(), pa.time32("ms")),
        (["long", "string"], 5, pa.string()),
    ],
)
def test_what_a_column_cannot_hold(avro: Any, value: Any, kind: pa.DataType) -> None:
    if avro == {"type": "array", "items": ["null", "int"]}:
        wire = io.BytesIO()
        wide = {
            "type": "record",
            "name": "r",
            "fields": [{"name": "x", "type": {"type": "array", "items": ["null", "long"]}}],
        }
        fastavro.schemaless_writer(wire, wide, {"x": value})
        with pytest.raises(ValueError, match="the column 'x' has an 'int' of more than 32 bits"):
            messages(avro).decode([wire.getvalue()], pa.schema({"x": kind}))
        return
    with pytest.raises(ValueError, match=r"the column 'x' (is|has) "):
        read(avro, value, kind)


@pytest.mark.parametrize(
    ("avro", "value", "kind", "expected"),
    [
        ("double", 1.0, pa.int64(), 1),
        ("double", float("inf"), pa.float32(), float("inf")),
        ("float", 0.5, pa.float64(), 0.5),
        ("int", -(2**31), pa.int64(), -(2**31)),
        ("long", 5, pa.timestamp("us"), dt.datetime(1970, 1, 1, 0, 0, 0, 5)),
        (MICROS, NOON, pa.timestamp("us", "+02:00"), NOON),
        (MICROS, NOON.replace(hour=0, microsecond=0), pa.date32(), dt.date(2024, 1, 1)),
        (MONEY, Decimal("1.20"), pa.decimal128(10, 1), Decimal("1.2")),
        (UUID_TEXT, UUID(int=5), pa.string(), str(UUID(int=5))),
        ({"type": "map", "values": "int"}, {"a": 1}, pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        (["null", "string"], None, pa.string(), None),
    ],
)
def test_what_a_column_holds(avro: Any, value: Any, kind: pa.DataType, expected: Any) -> None:
    assert read(avro, value, kind) == expected


@pytest.mark.parametrize(
    ("avro", "value", "kind"),
    [
        ("int", 2**40, pa.int64()),
        ("int", 2**31, pa.uint32()),
        (["null", "int"], 2**40, pa.int64()),
        ({"type": "array", "items": "int"}, [2**40], pa.list_(pa.int64())),
        ("long", 1.5, pa.float64()),
        ("long", 2**63, pa.uint64()),
        ("float", 2**24 + 1, pa.int64()),
        ("float", 1e300, pa.float64()),
        ("double", 2**53 + 1, pa.int64()),
        ("boolean", 5, pa.int64()),
        (MILLIS, NOON, pa.timestamp("us", "UTC")),
        (DATE, NOON, pa.timestamp("us", "UTC")),
        (MONEY, Decimal("1.255"), pa.decimal128(10, 3)),
        ("string", 5, pa.int64()),
        ({"type": "enum", "name": "e", "symbols": ["a"]}, "b", pa.string()),
        ("int", None, pa.int64()),
    ],
)
def test_what_a_field_cannot_hold(avro: Any, value: Any, kind: pa.DataType) -> None:
    with pytest.raises(SinkError, match=r"(the column 'x' has|the row \{'x': ).*cast the column, or change the"):
        write(avro, value, kind)


@pytest.mark.parametrize(
    ("avro", "value", "kind"),
    [
        ("int", 2**31 - 1, pa.int64()),
        ("long", -(2**63), pa.int64()),
        ("double", 2**53, pa.int64()),
        ("float", 0.5, pa.float64()),
        (MICROS, NOON, pa.timestamp("us", "UTC")),
        (MILLIS, NOON.replace(microsecond=5_000), pa.timestamp("us", "UTC")),
        (["null", "string"], None, pa.string()),
    ],
)
def test_what_a_field_holds(avro: Any, value: Any, kind: pa.DataType) -> None:
    assert write(avro, value, kind) == value


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "record", "name": "e", "fields": [{"name": "x", "type": "null"}]}},
        ["null", {"type": "map", "values": {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}}],
    ],
)
def test_an_array_whose_values_take_no_bytes_is_refused(kind: Any) -> None:
    """A message of six bytes would hold a thousand million of them."""
    with pytest.raises(SettingError, match="whose values take no bytes"):
        AvroMessages(json.dumps({"type": "record", "name": "m", "fields": [{"name": "a", "type": kind}]}))
    several = {"type": "array", "items": ["null", "int"]}
    AvroMessages(json.dumps({"type": "record", "name": "m", "fields": [{"name": "a", "type": several}]}))
