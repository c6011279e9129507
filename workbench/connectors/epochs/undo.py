"""What takes back the changes that a sink has written since the last checkpoint.

After a failure a changelog comes again in other batches. An operator tells one result for each batch, so a row that
came and went again may not be mentioned any more, although the sink has written it. Therefore the sink first notes in
its store what each key had before, as its changelog says: the row that the key's first change takes back, or none. A
sink that goes back to a checkpoint first gives these rows back, and then takes the changes again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.connectors.contract.saved_files import check_columns
from workbench.connectors.epochs.row_store import RowStore, Undo
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.errors import SinkError
from workbench.operators.changelogs.row_kinds import kinds_of, plain_rows
from workbench.operators.contract.base import OperatorContext
from workbench.state.key_index import KeyIndex

_ATTEMPT = 1 << 40
_GOING_BACK = threading.Lock()
"""Held while one subtask gives rows back: another one must not give the same ones back after new changes."""


@dataclass(frozen=True, slots=True)
class Point:
    """The checkpoint behind which a sink writes.

    Attributes:
        writer: the job that wrote first, and the sink.
        checkpoint: its number; 0: none.
    """

    writer: str
    checkpoint: int


class UndoLog:
    """The notes of one subtask.

    Args:
        store: that of the rows.
        schema: of the changes.

    Attributes:
        point: the latest checkpoint of the subtask.
    """

    def __init__(self, store: RowStore, schema: pa.Schema) -> None:
        self._store = store
        self._schema = schema
        self._firsts: list[pa.RecordBatch] = []
        self._noted = KeyIndex(store.keys, schema)
        self._kept: list[Undo] = []
        self._count = 0
        self.point = Point("", 0)

    def open(self, context: OperatorContext) -> None:
        """Begin an attempt; the first subtask creates what the store needs for notes."""
        self._context = context
        self._count = context.attempt * _ATTEMPT
        self.point = Point(f"{context.job}/{context.uid}", 0)
        if context.subtask == 0:
            self._store.prepare_undo()

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at changes before they are written."""
        known = len(self._noted)
        codes = self._noted.codes(batch)
        if len(self._noted) > known:
            fresh = np.flatnonzero(codes >= known)
            _, first = np.unique(codes[fresh], return_index=True)
            self._firsts.append(batch.take(pa.array(fresh[first])))

    def keep(self) -> None:
        """Note what the keys had whose changes are written next."""
        if not self._firsts:
            return
        rows = pa.concat_batches(self._firsts)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        context, point = self._context, self.point
        note = Undo(point.writer, context.run, context.subtask, point.checkpoint, self._count)
        self._store.keep_undo(note, sink.getvalue().to_pybytes())
        self._kept.append(note)
        self._count += 1
        self._firsts = []

    def passed(self, checkpoint: int) -> None:
        """A barrier: what follows belongs to the next epoch."""
        self.point = Point(self.point.writer, checkpoint)
        self._noted = KeyIndex(self._store.keys, self._schema)

    def completed(self, checkpoint: int) -> None:
        """Forget what was noted before the barrier of a complete checkpoint."""
        if done := [note for note in self._kept if note.checkpoint < checkpoint]:
            self._store.forget_undo(done)
            self._kept = self._kept[len(done) :]

    def go_back(self, point: Point) -> None:
        """Give back what changed behind this checkpoint, of this subtask and of earlier ones whose place it takes.

        Notes of other writers are forgotten: what the table has now belongs to this one.
        """
        self.point = point
        with _GOING_BACK:
            notes = {note: rows for note, rows in self._store.undo().items() if self._is_ours(note)}
            if self._context.goes_back:
                self._give_back({note: rows for note, rows in notes.items() if self._is_behind(note)})
            if notes:
                self._store.forget_undo([*notes])

    def _is_ours(self, note: Undo) -> bool:
        context = self._context
        return note.run != context.run or note.subtask % context.parallelism == context.subtask

    def _is_behind(self, note: Undo) -> bool:
        return note.writer == self.point.writer and note.checkpoint >= self.point.checkpoint

    def _give_back(self, notes: Mapping[Undo, bytes]) -> None:
        """Write what each key had before its first change."""
        firsts = LatestRows(self._store.keys, self._schema)
        for note in sorted(notes, key=lambda note: (note.checkpoint, note.number), reverse=True):
            firsts.add(self._decoded(notes[note]))
        for batch in firsts.table().to_batches():
            had = kinds_of(batch) & 1 == 1
            absent = plain_rows(batch.filter(pa.array(~had))).select(self._store.keys)
            before = plain_rows(batch.filter(pa.array(had)))
            if absent.num_rows:
                self._store.remove(pa.Table.from_batches([absent]), self._context.run)
            if before.num_rows:
                self._store.upsert(pa.Table.from_batches([before]), self._context.run)

    def _decoded(self, rows: bytes) -> pa.RecordBatch:
        try:
            with pa.ipc.open_stream(rows) as stream:
                batch = stream.read_next_batch()
                batch.validate(full=True)
        except (pa.ArrowInvalid, OSError, StopIteration) as error:
            raise SinkError(
                f"the notes of {self.point.writer!r} beside {self._store.title}, which take back what was written "
                f"before a failure, are damaged ({error}): start afresh with another {self._store.title.split()[1]}"
            ) from None
        check_columns(self._store.name, batch.schema, self._schema)
        return batch
