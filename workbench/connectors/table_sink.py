"""A sink that keeps the committed rows in the job, exactly once.

The rows between two barriers are an *epoch*, named after the checkpoint that ends it. ``snapshot`` pre-commits the
epoch's rows and ``notify_complete`` makes them visible in `Tables`. With a folder on disk the rows of an epoch are an
Arrow file, and the snapshot lists the files that are committed once its checkpoint is complete: a restore loads exactly
those and deletes the others. Without a folder the pending rows travel in the snapshot itself, and committed ones live
as long as the process.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from workbench.connectors.base import Guarantee
from workbench.connectors.deferred import Deferred
from workbench.connectors.part_files import PartFile, make_folder, read_verified
from workbench.connectors.tables import Tables, last_per_key
from workbench.elements import Records
from workbench.errors import CheckpointError, PlanError, SettingError, SinkError, unknown
from workbench.operators.base import Json, Operator, OperatorContext, Output, Snapshot

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_PENDING_ROWS_MAX = 65_536
"""An upsert sink reduces its pending rows to the latest per key when they pass this number."""


@dataclass(frozen=True, slots=True)
class TableSink:
    """Keeps committed rows in the job: ``job.table(name)``.

    Args:
        name: of the table: letters, digits, ``_``, ``-`` and ``.``, not starting with a dot.
        upsert: key columns; with them the table keeps only the latest row of each key. The input must be partitioned by
            these columns, so that the rows of a key arrive in order at one subtask.

    Raises:
        SettingError: the name has other characters.

    Example:
        >>> TableSink("delays", upsert=["origin"]).describe()
        'delays by origin'
    """

    name: str
    upsert: Sequence[str] = ()
    kind: ClassVar[str] = "sink"
    guarantee: ClassVar[Guarantee] = "exactly-once"

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise SettingError(
                f"the table name {self.name!r} cannot be used: write letters, digits, '_', '-' and '.',"
                " not starting with a dot"
            )
        keys = (self.upsert,) if isinstance(self.upsert, str) else tuple(self.upsert)
        object.__setattr__(self, "upsert", keys)

    def check(self, schema: pa.Schema) -> None:
        """Refuse key columns that do not exist or cannot be compared.

        Raises:
            PlanError: unknown key column, or one of a nested type.
        """
        for key in self.upsert:
            if key not in schema.names:
                raise PlanError(unknown("column", key, schema.names))
            if pa.types.is_nested(schema.field(key).type):
                raise PlanError(
                    f"the table {self.name!r} cannot be keyed by {key!r} of type {schema.field(key).type}:"
                    " use a plain column"
                )

    def describe(self) -> str:
        return f"{self.name} by {', '.join(self.upsert)}" if self.upsert else self.name

    def create(self, schema: pa.Schema) -> Operator:
        return _TableSinkLogic(self, schema)


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one epoch of one subtask, pre-committed or committed; without a folder there is no file."""

    epoch: int
    subtask: int
    rows: int
    file: PartFile | None

    def to_json(self) -> Json:
        """The snapshot's line for this part; writes the file first, so it may take a while."""
        sha256 = self.file.write() if self.file is not None else None
        name = self.file.path.name if self.file is not None else None
        return {"epoch": self.epoch, "subtask": self.subtask, "rows": self.rows, "file": name, "sha256": sha256}


class _TableSinkLogic(Operator):
    def __init__(self, spec: TableSink, schema: pa.Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._batch_rows = 0
        self._reduce_at = _PENDING_ROWS_MAX
        self._parts: list[_Part] = []
        self._uncommitted: list[tuple[_Part, pa.Table]] = []
        self._folder: Path | None = None
        self._tables = Tables()
        self._subtask = 0
        self._attempt = 0

    def open(self, context: OperatorContext) -> None:
        if context.tables is not None:
            self._tables = context.tables
        self._tables.declare(self._spec.name, self._schema, self._spec.upsert)
        self._subtask, self._attempt = context.subtask, context.attempt
        if context.data_dir is not None:
            self._folder = context.data_dir / "tables" / self._spec.name
            make_folder(self._folder)

    def process(self, records: Records, port: int, out: Output) -> None:
        self._batches.append(records.batch)
        self._batch_rows += len(records)
        if self._spec.upsert and self._batch_rows > self._reduce_at:
            reduced = self._take_pending()
            self._batches = reduced.to_batches()
            self._batch_rows = reduced.num_rows
            # Twice the distinct keys, so that reducing costs each row a constant share.
            self._reduce_at = max(_PENDING_ROWS_MAX, 2 * self._batch_rows)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        if self._batch_rows:
            rows = self._take_pending()
            part = _Part(checkpoint_id, self._subtask, rows.num_rows, self._file(checkpoint_id, self._subtask, rows))
            self._parts.append(part)
            self._uncommitted.append((part, rows))
        listed = tuple(self._parts)

        def write() -> Json:
            return [part.to_json() for part in listed]

        if self._folder is not None:
            pieces: dict[str, Json | Deferred] = {"checkpoint": checkpoint_id, "parts": write}
            return cast("Snapshot", pieces)
        pending = {_rows_name(part.epoch, part.subtask): rows for part, rows in self._uncommitted}
        return {"checkpoint": checkpoint_id, "parts": write(), **pending}

    def notify_complete(self, checkpoint_id: int) -> None:
        for part, rows in self._uncommitted:
            if part.epoch <= checkpoint_id:
                self._tables.commit(self._spec.name, part.subtask, part.epoch, rows)
        self._uncommitted = [item for item in self._uncommitted if item[0].epoch > checkpoint_id]

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        name = self._spec.name
        checkpoint_id = max((_number(snapshot["checkpoint"]) for snapshot in snapshots if snapshot), default=0)
        committed = self._tables.last_epoch(name)
        if committed > checkpoint_id:
            raise SinkError(
                f"the table {name!r} has rows of epoch {committed}, later than checkpoint {checkpoint_id} to restore,"
                " which would come twice: restore a checkpoint that is not older, or run the job under another name"
            )
        if self._subtask != 0:
            return  # the first subtask takes over the parts of all, however many there were
        lines = [
            cast("dict[str, Any]", line)
            for snapshot in snapshots
            for line in cast("list[Json]", snapshot.get("parts", []))
        ]
        pending = {
            key: value for snapshot in snapshots for key, value in snapshot.items() if isinstance(value, pa.Table)
        }
        for line in sorted(lines, key=lambda line: (line["epoch"], line["subtask"])):
            self._parts.append(self._recover(line, pending))
        self._delete_strays()

    def _recover(self, line: dict[str, Any], pending: dict[str, pa.Table]) -> _Part:
        """Make sure that the rows of a listed part are in the table, and return the part."""
        name, epoch, subtask = self._spec.name, int(line["epoch"]), int(line["subtask"])
        file: PartFile | None = None
        if self._folder is not None and line["file"] is not None:
            file = PartFile.written(self._folder / str(line["file"]), str(line["sha256"]))
        if self._tables.last_epoch(name, subtask) < epoch:
            if file is not None:
                rows = self._load(file.path, str(line["sha256"]))
            elif (key := _rows_name(epoch, subtask)) in pending:
                rows = pending[key]
            else:
                raise SinkError(
                    f"the rows of table {name!r} committed in epoch {epoch} are gone: they were kept in memory only, or"
                    " the job no longer has their folder; run it with the same checkpoint_dir, or start it afresh"
                )
            if rows.schema != self._schema:
                raise CheckpointError(
                    f"the table {name!r} had the columns {_columns(rows.schema)} and now has {_columns(self._schema)}:"
                    " give the sink another name or start afresh"
                )
            self._tables.commit(name, subtask, epoch, rows)
            if file is None:
                file = self._file(epoch, subtask, rows)
        return _Part(epoch, subtask, int(line["rows"]), file)

    def _load(self, path: Path, sha256: str) -> pa.Table:
        return pa.ipc.open_file(pa.BufferReader(read_verified(path, sha256))).read_all()

    def _delete_strays(self) -> None:
        """Delete the files of epochs that were never committed: their rows will be read and written again."""
        if self._folder is None:
            return
        known = {part.file.path for part in self._parts if part.file is not None}
        for path in self._folder.glob("epoch-*"):
            if path not in known:
                path.unlink(missing_ok=True)

    def _take_pending(self) -> pa.Table:
        rows = pa.Table.from_batches(self._batches, self._schema)
        self._batches, self._batch_rows = [], 0
        return rows.take(last_per_key(rows, self._spec.upsert)) if self._spec.upsert else rows

    def _file(self, epoch: int, subtask: int, rows: pa.Table) -> PartFile | None:
        if self._folder is None:
            return None
        # With the attempt in the name, a writer that outlives a failure never touches the file of its successor.
        return PartFile(self._folder / f"epoch-{epoch}-{subtask}-{self._attempt}.arrow", lambda: _encode(rows))


def _encode(rows: pa.Table) -> Any:
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return buffer.getbuffer()


def _rows_name(epoch: int, subtask: int) -> str:
    return f"rows-{epoch}-{subtask}"


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _number(value: Any) -> int:
    return int(value)
