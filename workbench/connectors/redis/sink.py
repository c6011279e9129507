"""A sink to a Redis stream, or to hashes by key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from workbench.arguments import as_given, text_of, whole_number
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import Place, SinkContext
from workbench.connectors.contract.upsert_key import changes_key, check_upsert_key, upsert_key_of
from workbench.connectors.epochs.owner import PlaceOwner
from workbench.connectors.epochs.row_sink import RowSink
from workbench.connectors.redis.server import RedisServer
from workbench.connectors.redis.store import RedisStore
from workbench.errors import PlanError, SettingError, unknown
from workbench.expressions import ColumnName, column_name
from workbench.operators.changelogs.row_kinds import plain_schema
from workbench.operators.contract.base import Operator


@dataclass(frozen=True, init=False)
class RedisSink(RowSink):
    """Writes rows to a Redis stream, or the latest row of each key to hashes.

    Without `upsert_key`, each row becomes an entry of a stream, exactly once: the rows since the last barrier are part
    of the checkpoint, and when it is complete, they are added in one transaction together with its number (hash
    ``KEY:workbench``). Rows therefore appear with each checkpoint. `RedisSource` can read them.

    With `upsert_key`, a row replaces the row with the same key: each row is a hash ``KEY:value`` or, with `value`, a
    field of a single hash ``KEY``. Rows are written as they arrive, at least once a second and before each checkpoint.
    After a failure they are written again, so readers can see an earlier value for a while; then every key has its
    correct value. The input must be partitioned by the keys. Rows of a changelog are replaced and deleted by its key;
    what was written since the checkpoint is taken back first (fields of the hash ``KEY:workbench``).

    Only one job at a time can write to a key. When the server is unreachable, an operation is retried for 10 s with
    growing pauses; then the task fails, and the restart strategy decides. If the server loses writes in a crash
    (without ``appendfsync always``), rows are lost.

    Source: E6: current counts are written to Redis; D1: exactly once by a transaction together with its number.

    Args:
        url: ``redis://[user:password@]host:port/database``, ``rediss://`` for TLS, or ``unix://path``; the password is
            masked wherever the URL is shown.
        key: the key of the stream or hash, or the prefix of the keys of the rows' hashes.
        upsert_key: columns, as ``"campaign"`` or ``col("campaign")``; values must not be null. The texts of several
            columns are separated by ``:``.
        value: with `upsert_key`, the column whose values one hash holds by key; other columns are not written.
        max_length: the approximate number of entries that the stream keeps; None: all.

    Raises:
        SettingError: the URL, key or a number is invalid, or arguments exclude each other.
        ExpressionError: a key is a computed expression.
        MissingPackageError: the package redis is not installed.

    Example::

        counts.sink_to(wb.RedisSink("redis://localhost:6379", "counts", upsert_key="campaign", value="n"))
    """

    url: str = field(repr=False)
    key: str
    upsert_key: tuple[str, ...]
    value: str | None
    max_length: int | None
    kind: ClassVar[str] = "redis"

    def __init__(
        self,
        url: str,
        key: str,
        *,
        upsert_key: ColumnName | Sequence[ColumnName] = (),
        value: ColumnName | None = None,
        max_length: int | None = None,
    ) -> None:
        RedisServer(url)
        if not text_of(key, "key", "counts"):
            raise SettingError("key is '': write the key of a stream or a hash, such as 'counts'")
        columns = upsert_key_of(upsert_key)
        value_column = None if value is None else column_name(value, "value")
        if value_column is not None and not columns:
            raise SettingError(f"value is {value_column!r} without upsert_key: also name the key columns")
        if max_length is not None and columns:
            raise SettingError(
                f"max_length is {as_given(max_length)}, but hashes have no length: remove it, or remove upsert_key"
            )
        values = {
            "url": url,
            "key": key,
            "upsert_key": columns,
            "value": value_column,
            "max_length": None if max_length is None else whole_number(max_length, "max_length"),
        }
        for name, given in values.items():
            object.__setattr__(self, name, given)

    @property
    def name(self) -> str:
        """The name of the sink in graphs: its key."""
        return self.key

    @cached_property
    def target(self) -> RedisStore:
        """The key at its server."""
        return RedisStore(RedisServer(self.url), self.key, self.upsert_key, self.value, self.max_length)

    def check(self, schema: pa.Schema) -> None:
        """Reject columns that Redis cannot store; nothing is written.

        Raises:
            PlanError: a key column is unknown or invalid.
            SinkError: a column's type cannot be stored as text.
        """
        schema = plain_schema(schema)
        check_upsert_key(self.upsert_key, schema, self.key)
        if self.value is not None and self.value not in schema.names:
            raise PlanError(unknown("column", self.value, schema.names))
        self.target.check(schema)

    def for_changes(self, key: tuple[str, ...] | None, schema: pa.Schema) -> RedisSink:
        """Hashes whose rows are replaced and deleted by the key of the changelog.

        Raises:
            PlanError: without `upsert_key`, whose stream only adds entries, or with another key than the changelog's.
        """
        if not self.upsert_key:
            raise PlanError(
                f"the stream {self.key!r} only adds entries, but results change with later records: give the sink "
                f"upsert_key={list(key) if key else '...'}, so that it writes hashes, or aggregate in a window"
            )
        changes_key(self.upsert_key, key, self.key)
        return self

    def place(self) -> Place:
        """The key at the server."""
        return Place(str(self.target.server), self.key)

    def hold(self, context: SinkContext) -> PlaceOwner:
        """Acquire the key for the job."""
        return PlaceOwner(self.target, context)

    def committed(self) -> Iterable[object]:
        """The rows at the server, as fields and values."""
        return self.target.rows()

    def describe(self) -> str:
        by = f" by {', '.join(self.upsert_key)}" if self.upsert_key else ""
        return f"{self.key} of {self.target.server}{by}"

    def create(self, schema: pa.Schema) -> Operator:
        target = replace(self.target, attempts=Attempts(server=str(self.target.server)))
        return self._written_by(target, schema, creates_table=True)
