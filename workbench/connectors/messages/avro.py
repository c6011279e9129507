"""Avro messages, with the package ``fastavro``."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from workbench.arguments import text_of
from workbench.errors import PlanError, SettingError
from workbench.packages import needed
from workbench.raised import message_of


@dataclass(frozen=True, slots=True)
class AvroMessages:
    """One Avro datum per message, without a container; reader and writer agree on the schema.

    Attributes:
        text: the schema, as JSON.
        schema: the parsed schema.

    Raises:
        SettingError: it is not an Avro schema.
        MissingPackageError: the package fastavro is not installed.
    """

    text: str
    schema: Any = field(init=False, repr=False, compare=False)

    several = False

    def __post_init__(self) -> None:
        avro = needed("fastavro", "reading Avro")
        try:
            parsed = avro.parse_schema(json.loads(text_of(self.text, "avro_schema", '{"type": "record", ...}')))
        except (ValueError, KeyError, TypeError, avro.schema.SchemaParseException) as error:
            raise SettingError(f"avro_schema is not an Avro schema: {message_of(error)}") from None
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise SettingError("avro_schema is not a record: write {'type': 'record', 'fields': [...]} as JSON")
        object.__setattr__(self, "schema", parsed)

    def check(self, schema: pa.Schema) -> None:
        has = {each["name"] for each in self.schema["fields"]}
        if missing := [name for name in schema.names if name not in has]:
            raise PlanError(f"avro_schema has no field {missing[0]!r}, but {', '.join(sorted(has))}")

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        avro = needed("fastavro", "reading Avro")
        rows = []
        for value in values:
            stream = io.BytesIO(value)
            try:
                rows.append(avro.schemaless_reader(stream, self.schema, None))
            except Exception as error:
                raise ValueError(f"it is not an Avro record of this schema: {message_of(error)}") from error
            if stream.tell() != len(value):
                raise ValueError(f"it has {len(value) - stream.tell()} bytes after the Avro record")
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        avro = needed("fastavro", "writing Avro")
        made = []
        for row in rows.to_pylist():
            stream = io.BytesIO()
            avro.schemaless_writer(stream, self.schema, row)
            made.append(stream.getvalue())
        return made
