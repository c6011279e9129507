"""Avro messages, with the package ``fastavro``."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from workbench.arguments import text_of
from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded
from workbench.connectors.files.record_limit import check_sizes
from workbench.connectors.messages.avro_growth import (
    EmptyItemsError,
    Growth,
    LimitedBytes,
    RecursiveSchemaError,
    growth_of,
    may_exceed,
)
from workbench.connectors.messages.message_format import check_kinds
from workbench.connectors.messages.same_value import is_same, is_uuid
from workbench.errors import PlanError, SettingError, SinkError
from workbench.packages import needed
from workbench.raised import message_of, shown


@dataclass(frozen=True, slots=True)
class AvroMessages:
    """One Avro datum per message, without a container; reader and writer agree on the schema.

    Attributes:
        text: the schema, as JSON.
        schema: the parsed schema.
        growth: how much memory its records take.

    Raises:
        SettingError: it is not an Avro schema, or one whose messages could take any amount of memory.
        MissingPackageError: the package fastavro is not installed.
    """

    text: str
    schema: Any = field(init=False, repr=False, compare=False)
    growth: Growth = field(init=False, repr=False, compare=False)

    several = False

    def __post_init__(self) -> None:
        avro = needed("fastavro", "reading Avro")
        try:
            parsed = avro.parse_schema(json.loads(text_of(self.text, "avro_schema", '{"type": "record", ...}')))
        except (ValueError, KeyError, TypeError, avro.schema.SchemaParseException) as error:
            raise SettingError(f"avro_schema is not an Avro schema: {message_of(error)}") from None
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise SettingError("avro_schema is not a record: write {'type': 'record', 'fields': [...]} as JSON")
        try:
            growth = growth_of(parsed)
        except EmptyItemsError:
            raise SettingError(
                "avro_schema has an array whose values take no bytes, such as 'null', so that a few bytes could "
                "hold any number of them: count them in a field 'long' instead"
            ) from None
        except RecursiveSchemaError as error:
            raise SettingError(
                f"avro_schema has the record {str(error)!r} within itself, so that a message could nest it any number "
                "of times: write it as an array of records, or as 'bytes' with a schema of their own"
            ) from None
        object.__setattr__(self, "schema", parsed)
        object.__setattr__(self, "growth", growth)

    def check(self, schema: pa.Schema) -> None:
        has = {each["name"] for each in self.schema["fields"]}
        if missing := [name for name in schema.names if name not in has]:
            raise PlanError(f"avro_schema has no field {missing[0]!r}, but {', '.join(sorted(has))}")
        check_kinds(schema)

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        check_sizes(values)
        limited = may_exceed(sum(map(len, values)), len(values), self.growth)
        if limited and len(values) > 1:
            raise ValueError("decode them one by one")
        avro = needed("fastavro", "reading Avro")
        rows = []
        for value in values:
            stream = LimitedBytes(value, self.growth) if limited else io.BytesIO(value)
            try:
                rows.append(avro.schemaless_reader(stream, self.schema, None))
            except Exception as error:
                raise ValueError(f"it is not an Avro record of this schema: {message_of(error)}") from error
            if stream.tell() != len(value):
                raise ValueError(f"it has {len(value) - stream.tell()} bytes after the Avro record")
        kinds = self._kinds()
        return pa.RecordBatch.from_arrays([_column(rows, item, kinds[item.name]) for item in schema], schema=schema)

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        avro = needed("fastavro", "writing Avro")
        kinds = self._kinds()
        narrowed = [item.name for item in rows.schema if not _holds(kinds[item.name], item.type)]
        made = []
        for row in rows.to_pylist():
            stream = io.BytesIO()
            try:
                avro.schemaless_writer(stream, self.schema, row)
            except (TypeError, ValueError, OverflowError, LookupError, AttributeError) as error:
                raise SinkError(
                    f"the row {shown(row)} is no record of avro_schema: {message_of(error)}; "
                    "cast the column, or change the schema"
                ) from error
            content = stream.getvalue()
            if narrowed:
                again = avro.schemaless_reader(io.BytesIO(content), self.schema, None)
                for name in narrowed:
                    if not is_same(row[name], again[name]) or _is_beyond_int(kinds[name], row[name]):
                        raise SinkError(
                            f"the column {name!r} has {shown(row[name])}, which the type {shown(kinds[name])} of its "
                            "field does not hold: cast the column, or change the field in avro_schema"
                        )
            made.append(content)
        return made

    def _kinds(self) -> dict[str, Any]:
        """The Avro type of each field."""
        return {each["name"]: each["type"] for each in self.schema["fields"]}


def _column(rows: Sequence[dict[str, Any]], item: pa.Field, field: Any) -> pa.Array:
    """The values of a column, none of which the conversion to its type has changed.

    Raises:
        ValueError: names the column and the value.
    """
    kind = decoded(item.type)
    values = [row.get(item.name) for row in rows]
    if any(is_text(kind) for is_text in TEXT):
        values = [str(value) if is_uuid(value) else value for value in values]
    if "'int'" in repr(field) and any(_is_beyond_int(field, value) for value in values):
        raise ValueError(f"the column {item.name!r} has an 'int' of more than 32 bits")
    try:
        made = pa.array(values, item.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"the column {item.name!r} is {item.type}, and {message_of(error)}") from None
    if pa.types.is_integer(kind):
        exact = set(map(type, values)) <= {int, type(None)}
    else:
        exact = pa.types.is_float64(kind) or any(is_exact(kind) for is_exact in (*TEXT, *BYTES, *_EXACT))
    if not exact:
        for given, found in zip(values, made.to_pylist(), strict=True):
            if not is_same(given, found):
                raise ValueError(
                    f"the column {item.name!r} is {item.type}, which would change {shown(given)} to {shown(found)}: "
                    "declare another type"
                )
    return made


_EXACT = (pa.types.is_boolean, pa.types.is_decimal)
"""Types to which Arrow converts no value that it would change."""

_HELD: Mapping[str, Sequence[pa.DataType]] = {
    "int": (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()),
    "long": (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    "float": (pa.float32(),),
    "double": (pa.float32(), pa.float64()),
    "boolean": (pa.bool_(),),
    "string": (pa.string(), pa.large_string()),
    "bytes": (pa.binary(), pa.large_binary()),
}
"""By Avro type, the types whose values it holds unchanged."""


def _is_beyond_int(field: Any, value: Any) -> bool:
    """Whether a value has an Avro ``int`` of more than 32 bits, which the package reads and writes all the same."""
    if isinstance(field, list):
        parts = [part for part in field if part != "null"]
        return value is not None and len(parts) == 1 and _is_beyond_int(parts[0], value)
    if isinstance(field, dict):
        kind = field.get("type")
        if kind == "array":
            return any(_is_beyond_int(field["items"], each) for each in value)
        if kind == "map":
            return any(_is_beyond_int(field["values"], each) for each in dict(value).values())
        if kind == "record":
            return any(_is_beyond_int(each["type"], value.get(each["name"])) for each in field["fields"])
        return "logicalType" not in field and _is_beyond_int(kind, value)
    return field == "int" and isinstance(value, int) and not -(2**31) <= value < 2**31


def _holds(field: Any, kind: pa.DataType) -> bool:
    """Whether a field of Avro certainly holds all values of a type; if not, each value has to be checked."""
    if isinstance(field, list):
        parts = [part for part in field if part != "null"]
        return len(parts) == 1 and _holds(parts[0], kind)
    if isinstance(field, dict) and "logicalType" not in field:
        return _holds(field.get("type"), kind)
    return isinstance(field, str) and decoded(kind) in _HELD.get(field, ())
