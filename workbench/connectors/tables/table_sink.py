"""A sink that keeps the committed rows in the job, exactly once.

The rows between two barriers are an *epoch*, named after the checkpoint that ends it. ``snapshot`` pre-commits the
epoch's rows and ``notify_complete`` makes them visible in `Tables`. With a folder on disk the rows of an epoch are an
Arrow file, and the snapshot lists the files that are committed once its checkpoint is complete (see ``part_log``): a
restore loads exactly those. Without a folder the pending rows are stored in the snapshot itself, and committed ones
live as long as the process.

At a barrier a subtask hands over its rows, and starts a new epoch: nothing is copied or computed while records wait.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, cast

import pyarrow as pa

from workbench.arguments import text_of
from workbench.connectors.contract.base import Guarantee, Place, Sink, SinkContext
from workbench.connectors.contract.saved_files import check_columns, impossible, saved_as
from workbench.connectors.contract.upsert_key import changes_key, check_no_nulls, check_upsert_key, upsert_key_of
from workbench.connectors.parts.part_files import make_folder
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.connectors.tables.part_log import Part, PartLog, SavedPart, file_name
from workbench.connectors.tables.tables import Tables
from workbench.durable.delayed_encoding import FILES
from workbench.elements import Records
from workbench.errors import CommittedRowsError, PlanError, SettingError, SinkError
from workbench.expressions import ColumnName
from workbench.operators.contract.base import CommittedTables, Json, Operator, OperatorContext, Output, Snapshot

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_FOLDER = "tables"
"""Below ``OperatorContext.data_dir``; each table has its own folder there."""


@dataclass(frozen=True, init=False)
class TableSink(Sink):
    """Keeps committed rows in the job: ``job.table(name)``.

    Source: D1: exactly once; rows are visible when the checkpoint that ends their epoch is complete.

    Args:
        name: of the table: letters, digits, ``_``, ``-`` and ``.``, not starting with a dot.
        upsert_key: columns, as ``"origin"`` or ``col("origin")``; with them the table keeps only the latest row of each
            key. No value may be null. The input must be partitioned by these columns, so that the rows of a key arrive
            in order at one subtask.

    Raises:
        SettingError: the name has other characters, or the key is not a column.
        ExpressionError: the key is a computed expression.
        PlanError: when the pipeline is built: a key column that is unknown or cannot be a key.

    Example:
        >>> TableSink("delays", upsert_key="origin").describe()
        'delays by origin'
    """

    name: str
    upsert_key: tuple[str, ...]
    changes: bool
    guarantee: ClassVar[Guarantee] = "exactly-once"
    writes_outside: ClassVar[bool] = False

    def __init__(self, name: str, upsert_key: ColumnName | Sequence[ColumnName] = ()) -> None:
        if _NAME.fullmatch(text_of(name, "the table name", "delays")) is None:
            raise SettingError(
                f"the table name {name!r} cannot be used: write letters, digits, '_', '-' and '.',"
                " not starting with a dot"
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "upsert_key", upsert_key_of(upsert_key))
        object.__setattr__(self, "changes", False)

    def check(self, schema: pa.Schema) -> None:
        """Reject key columns that do not exist or cannot be compared.

        Raises:
            PlanError: unknown key column, or one of a type that cannot be a key.
        """
        check_upsert_key(self.upsert_key, schema, self.name)

    def for_changes(self, key: tuple[str, ...] | None, schema: pa.Schema) -> TableSink:
        """The table that a changelog describes: each row as often as it was added and not taken back.

        Raises:
            PlanError: an upsert key that is not the one of the changelog.
        """
        taking = TableSink(self.name, changes_key(self.upsert_key, key, self.name))
        object.__setattr__(taking, "changes", True)
        return taking

    def place(self) -> Place:
        """The table, in the job."""
        return Place(None, self.name)

    def hold(self, context: SinkContext) -> None:
        """Reject tables whose committed rows would end with the process although the checkpoints do not."""
        if context.directory and context.data_dir is None:
            raise PlanError(
                f"the table {self.name!r} cannot be kept in {context.directory!r}: tables need a checkpoint_dir on this"
                " machine; write to a ParquetSink, FileSink or SqlSink, or choose a local directory"
            )

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        """Read the files of committed rows that a restore needs."""
        if not context.directory:
            return
        saved = _Saved.of(snapshots, self.name)
        for part in saved.parts_in(None if context.data_dir is None else context.data_dir / _FOLDER / self.name):
            if part.file is not None:
                for _, rows in part.read():
                    check_columns(self.name, rows.schema, context.schema)

    def describe(self) -> str:
        return f"{self.name} by {', '.join(self.upsert_key)}" if self.upsert_key else self.name

    def create(self, schema: pa.Schema) -> Operator:
        return _TableSinkLogic(self, schema)


class _Pending:
    """The rows of an epoch, concatenated on first use, by the checkpoint's writer."""

    __slots__ = ("_rows", "count")

    def __init__(self, count: int, put_together: Callable[[], pa.Table]) -> None:
        self.count = count
        self._rows: pa.Table | Callable[[], pa.Table] = put_together

    def table(self) -> pa.Table:
        """The rows; always the same ones, so two simultaneous calls do no harm."""
        rows = self._rows
        if callable(rows):
            self._rows = rows = rows()
        return rows


class _TableSinkLogic(Operator):
    def __init__(self, spec: TableSink, schema: pa.Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._uncommitted: list[tuple[Part, _Pending]] = []
        self._folder: Path | None = None
        self._tables: CommittedTables = Tables()
        self._subtask = 0
        self._key = spec.upsert_key
        self._log = PartLog(None, partial(file_name, 0), self._key, schema)
        self._begin()

    def open(self, context: OperatorContext) -> None:
        if context.tables is not None:
            self._tables = context.tables
        self._tables.declare(self._spec.name, self._schema, self._key)
        self._subtask = context.subtask
        if context.data_dir is not None:
            self._folder = context.data_dir / _FOLDER / self._spec.name
            make_folder(self._folder, private=True)
            if os.path.realpath(self._folder) != f"{os.path.realpath(context.data_dir)}/{_FOLDER}/{self._spec.name}":
                raise SinkError(
                    f"the folder {self._folder} of the table {self._spec.name!r} is a symbolic link, whose target may "
                    "belong to another user: put the folder itself there, or start afresh in another checkpoint_dir"
                )
        self._log = PartLog(self._folder, partial(file_name, context.attempt), self._key, self._schema)

    def process(self, records: Records, port: int, out: Output) -> None:
        if self._latest is None:
            self._batches.append(records.batch)
        else:
            if not self._spec.changes:
                check_no_nulls(records.batch, self._key, self._spec.name)
            self._latest.add(records.batch)
        self._rows_in += len(records)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        if self._rows_in:
            pending = self._take_pending()
            part = self._log.new_part(checkpoint_id, self._subtask, pending.count, pending.table)
            self._log.add(part)
            self._uncommitted.append((part, pending))
        lines: Callable[[], list[dict[str, Json]]] = partial(self._log.write, checkpoint_id)
        pieces: dict[str, object] = {"checkpoint": checkpoint_id, "parts": lines}
        if self._folder is not None:
            once, folder = cache(lines), f"{_FOLDER}/{self._spec.name}"  # both pieces describe the same files
            pieces |= {"parts": once, FILES: lambda: [f"{folder}/{line['file']}" for line in once()]}
        else:
            pieces |= {_rows_name(part.epoch, part.subtask): rows.table for part, rows in self._uncommitted}
        return cast("Snapshot", pieces)

    def notify_complete(self, checkpoint_id: int) -> None:
        for part, rows in self._uncommitted:
            if part.epoch <= checkpoint_id:
                self._tables.commit(self._spec.name, part.subtask, part.epoch, rows.table())
        self._uncommitted = [item for item in self._uncommitted if item[0].epoch > checkpoint_id]
        self._log.committed = max(self._log.committed, checkpoint_id)

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        name = self._spec.name
        saved = _Saved.of(snapshots, name)
        checkpoint_id = saved.checkpoint
        committed = self._tables.last_epoch(name)
        if committed > checkpoint_id:
            raise CommittedRowsError(
                f"the table {name!r} has rows of epoch {committed}, later than checkpoint {checkpoint_id} to restore, "
                "which would be duplicated: restore a later checkpoint, or run the job under another name"
            )
        self._log.committed = checkpoint_id
        if self._subtask != 0:
            return  # the first subtask takes over the parts of all former ones
        parts = saved.parts_in(self._folder)
        pending = {
            key: value for snapshot in snapshots for key, value in snapshot.items() if isinstance(value, pa.Table)
        }
        for part in sorted(parts, key=lambda part: (part.epoch, part.subtask)):
            self._log.add(self._recover(part, pending))

    def _recover(self, part: Part, pending: dict[str, pa.Table]) -> Part:
        """Make sure that the table has the rows of a listed part, and return the part."""
        name, subtask = self._spec.name, part.subtask
        if self._tables.last_epoch(name, subtask) >= part.epoch:
            return part
        if part.file is not None:
            for epoch, rows in part.read():
                self._commit(subtask, epoch, rows)
            return part
        kept = pending.get(_rows_name(part.epoch, subtask))
        if kept is None:
            raise CommittedRowsError(
                f"the rows of table {name!r} committed in epoch {part.epoch} are lost: they were kept in memory only, "
                "or the job no longer has their folder; run it with the same checkpoint_dir, or start it afresh"
            )
        self._commit(subtask, part.epoch, kept)
        return self._log.new_part(part.epoch, subtask, part.rows, lambda: kept)

    def _commit(self, subtask: int, epoch: int, rows: pa.Table) -> None:
        check_columns(self._spec.name, rows.schema, self._schema)
        self._tables.commit(self._spec.name, subtask, epoch, rows)

    def _begin(self) -> None:
        """Release the rows received so far: they were handed over."""
        self._batches: list[pa.RecordBatch] = []
        self._latest = LatestRows(self._key, self._schema) if self._key else None
        self._rows_in = 0

    def _take_pending(self) -> _Pending:
        latest, batches, schema = self._latest, self._batches, self._schema
        rows_in = self._rows_in
        self._begin()
        if latest is not None:
            return _Pending(len(latest), latest.table)
        return _Pending(rows_in, lambda: pa.Table.from_batches(batches, schema))


@dataclass(frozen=True, slots=True)
class _Saved:
    """What one subtask saves, or all of them together, except rows kept in memory."""

    checkpoint: int = 0
    parts: tuple[SavedPart, ...] = ()

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], table: str) -> _Saved:
        """The combined saved state of the subtasks of one checkpoint."""
        saved = [saved_as(cls, snapshot, f"the state of the table {table!r}") for snapshot in snapshots]
        for each in saved:
            for part in each.parts:
                part.part(None, each.checkpoint)
        parts = sorted((part for each in saved for part in each.parts), key=lambda part: (part.subtask, part.first))
        for before, part in pairwise(parts):
            if part.subtask == before.subtask and part.first <= before.epoch:
                raise impossible(f"epoch {part.first} of subtask {part.subtask} of the table {table!r} is duplicated")
        return cls(max((each.checkpoint for each in saved), default=0), tuple(parts))

    def parts_in(self, folder: Path | None) -> list[Part]:
        """The parts, whose files are in this folder."""
        return [part.part(folder, self.checkpoint) for part in self.parts]


def _rows_name(epoch: int, subtask: int) -> str:
    return f"rows-{epoch}-{subtask}"
