"""Looks up rows in hashes of a Redis server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from workbench.arguments import text_of
from workbench.connectors.contract.calls import Calls, RemoteRows
from workbench.connectors.contract.secrets import cause_of
from workbench.connectors.files.json_times import TimeUnit, check_unit
from workbench.connectors.redis.entries import records
from workbench.connectors.redis.server import RedisServer
from workbench.connectors.redis.store import name_of
from workbench.connectors.redis.values import check_values, written_rows
from workbench.errors import PlanError, SettingError, SourceError, unknown
from workbench.expressions import ColumnName, column_name
from workbench.operators.functions.lookup_table import LookupTable, OpenTable
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller
from workbench.raised import first_line_of


@dataclass(frozen=True, init=False)
class RedisLookup(LookupTable):
    """Looks up rows in hashes of a Redis server, for `Stream.lookup_async`.

    It reads the format that a `RedisSink` with an `upsert_key` writes: a hash for each key (``campaign:7``) or, with
    `value`, one hash with the values by key. While the server is unreachable, or does not answer for 2 s, a call is
    retried for 10 s, as a sink does.

    Source: E6 looks up campaigns in Redis; Flink's lookup join.

    Args:
        url: ``redis://[user:password@]host:port/database``, ``rediss://`` for TLS, or ``unix://path``; ``${NAME}`` in
            it is an environment variable.
        key: the key of the hashes, without the looked-up part.
        schema: names and types of the columns to add; a missing field is null. Values are text, such as ``7``, or raw
            bytes for ``pa.binary()``.
        value: the column of the schema that one hash holds by key; None: each row has a separate hash.
        unit: what numbers in columns of timestamps count, as for `RedisSource`.

    Raises:
        SettingError: the URL, key or unit is invalid.
        PlanError: a column does not exist.
        MissingPackageError: the package redis is not installed.
        SourceError: while running: no connection, or a value that does not fit its column.

    Example::

        campaigns = wb.RedisLookup("redis://localhost:6379", "campaigns", {"campaign": pa.string()}, value="campaign")
        views.lookup_async(campaigns, key="ad", cache="10min")
    """

    url: str = field(repr=False)
    key: str
    schema: pa.Schema = field(repr=False)
    value: str | None
    unit: TimeUnit | None

    def __init__(
        self,
        url: str,
        key: str,
        schema: SchemaLike,
        *,
        value: ColumnName | None = None,
        unit: TimeUnit | None = None,
    ) -> None:
        RedisServer(url)
        if not text_of(key, "key", "campaign"):
            raise SettingError("key is '': write the key of hashes, such as 'campaign'")
        columns = declared_schema(schema, "the look-up", caller())
        name = None if value is None else column_name(value, "value")
        if name is not None and columns.names != [name]:
            raise PlanError(unknown("column", name, columns.names) if name not in columns.names else _ONE_VALUE)
        check_values(columns, f"the hash {key!r}")
        check_unit(unit)
        for attribute, given in (("url", url), ("key", key), ("schema", columns), ("value", name), ("unit", unit)):
            object.__setattr__(self, attribute, given)

    @cached_property
    def server(self) -> RedisServer:
        """The server of the hashes."""
        return RedisServer(self.url)

    def describe(self) -> str:
        return f"{self.key} of {self.server}"

    def open(self) -> OpenTable:
        return RedisRows(self)


class RedisRows(RemoteRows):
    """The client has a connection for each thread that calls."""

    def __init__(self, lookup: RedisLookup) -> None:
        server = lookup.server
        self._lookup = lookup
        self._client = server.connect()
        super().__init__(Calls(str(server), server.errors, lambda error: server.fact(error) * server.may_return(error)))

    def find(self, *key: Any) -> Mapping[str, Any] | None:
        lookup, server = self._lookup, self._lookup.server
        columns = {str(at): [value] for at, value in enumerate(key)}
        name = name_of(written_rows(pa.table(columns))[0], list(columns))
        try:
            fields = self.calls.repeated(lambda: self._fields(name))
        except server.errors as error:
            raise server.error(error, f"look up rows in {lookup.key!r}", SourceError) from cause_of(error, server.url)
        return self._row(fields, name)

    def close(self) -> None:
        with suppress(self._lookup.server.errors):
            self._client.close()

    def _fields(self, name: bytes) -> Mapping[bytes, bytes]:
        lookup = self._lookup
        if lookup.value is None:
            fields: Mapping[bytes, bytes] = self._client.hgetall(b"%s:%s" % (lookup.key.encode(), name))
            return fields
        value = self._client.hget(lookup.key, name)
        return {} if value is None else {lookup.value.encode(): value}

    def _row(self, fields: Mapping[bytes, bytes], name: bytes) -> Mapping[str, Any] | None:
        lookup = self._lookup
        try:
            row: Mapping[str, Any] = records([(b"", fields)], lookup.schema, lookup.unit).to_pylist()[0]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            shown = name.decode("utf-8", "replace")[:60]
            raise SourceError(
                f"the row {shown!r} in {lookup.key!r} of {lookup.server} does not fit these columns: "
                f"{first_line_of(error)}; declare other types"
            ) from error
        return row if fields else None


_ONE_VALUE = "with value=, a hash holds one column: remove the other columns"
