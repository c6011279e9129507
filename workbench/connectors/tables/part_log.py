"""The files with the rows that one subtask of a TableSink has committed or pre-committed.

Every epoch adds a file, so files are merged: the checkpoint's writer, off the data path, writes the rows of several
committed epochs to one file and lists that one from then on. The merged files stay as long as a complete checkpoint or
a savepoint lists them; the runtime deletes them (see `FILES` in ``delayed_encoding``). So a crash at any moment leaves
every complete checkpoint with all of its files.

A merged file stores each row's epoch in an additional column, so that reading it yields the same parts as before; for
an upsert table it has only the latest row of each key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from workbench.connectors.contract.saved_files import impossible, is_there, own_name, shown
from workbench.connectors.parts.part_files import PartFile, read_verified
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.elements import Int64s
from workbench.operators.contract.base import Json

EPOCH = pa.field("$epoch", pa.int64())
_FILE = re.compile(r"epoch-([0-9]{1,19})(?:-to-([0-9]{1,19}))?-([0-9]{1,9})-[0-9]{1,9}\.arrow")
SUBTASK_MAX = 10**9 - 1
"""Far beyond any parallelism; larger values would not fit into names and columns."""
FAN_IN = 8
"""The number of files that are merged into one."""
MERGED_ROWS_MAX = 5_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one or more epochs of one subtask, pre-committed or committed.

    Attributes:
        epoch: the last of its epochs.
        first: the first of its epochs; differs from `epoch` when files were merged.
        subtask: the subtask that committed them.
        rows: their number.
        file: their file; None when they are kept in memory only.
    """

    epoch: int
    first: int
    subtask: int
    rows: int
    file: PartFile | None

    def to_json(self) -> dict[str, Json]:
        """The snapshot's entry for this part; writes the file first, which may take a while."""
        checksum = self.file.write() if self.file is not None else None
        return {
            "epoch": self.epoch,
            "first": self.first,
            "subtask": self.subtask,
            "rows": self.rows,
            "file": self.file.path.name if self.file is not None else None,
            "checksum": checksum,
        }

    def read(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield each epoch in it with its rows.

        Raises:
            CorruptCheckpointError: the file is missing or differs from what was written.
        """
        rows = self._load()
        if self.first == self.epoch:
            yield self.epoch, rows
            return
        epochs: Int64s = rows.column(rows.num_columns - 1).to_numpy()
        rows = rows.remove_column(rows.num_columns - 1)
        begins = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist()]
        for begin, end in zip(begins, [*begins[1:], len(epochs)], strict=True):
            yield int(epochs[begin]), rows.slice(begin, end - begin)

    def _load(self) -> pa.Table:
        assert self.file is not None
        path = self.file.path
        data = read_verified(path, self.file.write())
        try:
            rows = pa.ipc.open_file(pa.BufferReader(data)).read_all()
            rows.validate(full=True)  # Arrow does not verify what it reads, and could read beyond its end
        except (pa.ArrowException, OSError, ValueError) as error:
            raise impossible(f"{path} holds no rows ({shown(str(error))})") from error
        if rows.num_rows != self.rows:
            raise impossible(f"{path} should hold {self.rows} rows, but holds {rows.num_rows}")
        if self.first < self.epoch and not self._are_epochs(rows):
            raise impossible(f"{path} does not list the epochs {self.first} to {self.epoch} of its rows in order")
        return rows

    def _are_epochs(self, rows: pa.Table) -> bool:
        """Whether the last column of a merged file holds epochs of this part."""
        if not rows.num_columns or rows.schema.field(rows.num_columns - 1) != EPOCH:
            return False
        column = rows.column(rows.num_columns - 1)
        if column.null_count:
            return False
        epochs: Int64s = column.to_numpy()
        return bool(self.first <= epochs[0] and epochs[-1] <= self.epoch and (np.diff(epochs) >= 0).all())


@dataclass(frozen=True, slots=True)
class SavedPart:
    """A part, as a snapshot describes it.

    Attributes:
        epoch, first, subtask, rows: as in `Part`.
        file: its name; None when the rows are kept in memory only.
        checksum: of the file's bytes.
    """

    epoch: int
    first: int
    subtask: int
    rows: int
    file: str | None
    checksum: str | None

    def part(self, folder: Path | None, checkpoint: int) -> Part:
        """The part that it describes.

        Args:
            folder: of the files; None when rows are kept in memory.
            checkpoint: the checkpoint of the snapshot.

        Raises:
            CorruptCheckpointError: no subtask adds such a part, or the file is a link.
        """
        if not (1 <= self.first <= self.epoch <= checkpoint and 0 <= self.subtask <= SUBTASK_MAX and self.rows >= 1):
            raise impossible(
                f"subtask {self.subtask} has {self.rows} rows of the epochs {self.first} to {self.epoch}, and the "
                f"checkpoint is {checkpoint}"
            )
        file: PartFile | None = None
        if self.file is not None:
            name = own_name(_FILE, self.file, "a file of committed rows")
            told = (int(name[1]), int(name[2] or name[1]), int(name[3]))
            if told != (self.first, self.epoch, self.subtask) or self.checksum is None:
                raise impossible(
                    f"{shown(self.file)} is said to hold the epochs {self.first} to {self.epoch} of subtask "
                    f"{self.subtask}"
                )
            if folder is not None:
                is_there(folder / self.file)
                file = PartFile.written(folder / self.file, self.checksum)
        return Part(self.epoch, self.first, self.subtask, self.rows, file)


def file_name(attempt: int, first: int, last: int, subtask: int) -> str:
    """The name of the file with these epochs of a subtask.

    Example:
        >>> file_name(0, 7, 7, 1), file_name(2, 1, 8, 0)
        ('epoch-7-1-0.arrow', 'epoch-1-to-8-0-2.arrow')
    """
    # With the attempt in the name, a writer that survives a failure never touches the file of its successor.
    epochs = f"{first}" if first == last else f"{first}-to-{last}"
    return f"epoch-{epochs}-{subtask}-{attempt}.arrow"


class PartLog:
    """The parts that one subtask owns: its own and, after a restore, those of former subtasks.

    The subtask appends parts, the writer replaces parts before the last committed one. Both are single operations on a
    list, which the interpreter makes atomic, so neither waits for the other.

    Args:
        folder: of the files; None when rows are kept in memory.
        name_of: creates the file name for (first epoch, last epoch, subtask).
        keys: of an upsert table; otherwise empty.
        schema: of the rows.
    """

    def __init__(
        self, folder: Path | None, name_of: Callable[[int, int, int], str], keys: Sequence[str], schema: pa.Schema
    ) -> None:
        self._folder = folder
        self._name_of = name_of
        self._keys = keys
        self._schema = schema
        self._parts: dict[int, list[Part]] = {}
        self.committed = 0
        """The last epoch that is known to be complete."""

    def add(self, part: Part) -> None:
        """Add a part of a subtask, of a later epoch than its other parts."""
        self._parts.setdefault(part.subtask, []).append(part)

    def new_part(self, epoch: int, subtask: int, rows: int, table: Callable[[], pa.Table]) -> Part:
        """The part of an epoch; `table` returns its rows when the file is written."""
        return Part(epoch, epoch, subtask, rows, self._file(epoch, epoch, subtask, table))

    def write(self, checkpoint_id: int) -> list[dict[str, Json]]:
        """Write unwritten parts, merge committed ones, and list the parts up to this checkpoint."""
        lines: list[dict[str, Json]] = []
        for parts in self._parts.copy().values():
            self._merge(parts)
            lines += [part.to_json() for part in parts.copy() if part.epoch <= checkpoint_id]
        return lines

    def _merge(self, parts: list[Part]) -> None:
        """Replace the latest committed parts by one, if there are enough of similar size."""
        end = sum(part.epoch <= self.committed for part in parts.copy())
        begin, rows = end, 0
        while begin:
            more = parts[begin - 1].rows
            if rows + more > MERGED_ROWS_MAX or (rows and more > 2 * rows):
                break
            rows += more
            begin -= 1
        if end - begin >= FAN_IN:
            parts[begin:end] = [self._merged(parts[begin:end], rows)]

    def _merged(self, parts: Sequence[Part], rows: int) -> Part:
        first, last = parts[0], parts[-1]
        merged = replace(last, first=first.first, rows=rows)
        if self._folder is None:
            return merged
        table = self._together([item for part in parts for item in part.read()])
        file = self._file(first.first, last.epoch, last.subtask, lambda: table)
        assert file is not None
        file.write()
        return replace(merged, rows=table.num_rows, file=file)

    def _together(self, parts: Sequence[tuple[int, pa.Table]]) -> pa.Table:
        if self._keys:
            latest = LatestRows(self._keys, self._schema)
            for epoch, rows in parts:
                for batch in rows.to_batches():
                    latest.add(batch, epoch)
            return latest.table().append_column(EPOCH, pa.array(latest.epochs()))
        epochs = np.repeat([epoch for epoch, _ in parts], [rows.num_rows for _, rows in parts])
        return pa.concat_tables([rows for _, rows in parts]).append_column(EPOCH, pa.array(epochs, EPOCH.type))

    def _file(self, first: int, last: int, subtask: int, table: Callable[[], pa.Table]) -> PartFile | None:
        if self._folder is None:
            return None
        return PartFile(self._folder / self._name_of(first, last, subtask), lambda: _encode(table()))


def _encode(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return sink.getvalue()
