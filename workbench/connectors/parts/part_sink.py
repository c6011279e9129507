"""Sinks that commit files in two phases, exactly once; the common part of ParquetSink and FileSink.

Phase one, before a checkpoint is acknowledged: the rows since the last barrier are on disk in hidden files, which the
snapshot lists. Phase two, once the checkpoint is complete: they are named ``part-*``. A crash between the two leaves
hidden files that a restore commits; a crash before phase one ends leaves unlisted hidden files, which the next start
deletes. So the ``part-*`` files hold the committed rows, at every moment and for every reader.

A commit adds the second name and deletes the hidden one once the second is durable. Unlike a rename this never replaces
a file of another program, and a crash in between leaves two names of one file, which shows that it is committed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from workbench.arguments import option
from workbench.connectors.contract.base import Guarantee, Place, Sink, SinkContext
from workbench.connectors.parts.part_files import PartFile, make_folder, read_verified, take_folder
from workbench.connectors.parts.part_names import SavedPart, SavedParts, order_of, part_name, pending_name, writer_of
from workbench.connectors.parts.sink_folder import SinkFolder
from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durable.disk import DISK
from workbench.elements import Records
from workbench.errors import CommittedRowsError, SinkError, told_by
from workbench.operators.contract.base import Json, Operator, OperatorContext, Output, Snapshot

_FILE_ROWS_MAX = 1_048_576
_FILE_BYTES_MAX = 128 * 1024 * 1024
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""The error numbers of file systems without hard links."""


@dataclass(frozen=True, slots=True)
class PartFormat:
    """The format of part files.

    Attributes:
        name: of the format, for errors.
        suffix: of the files, such as ``".csv"``.
        encode: creates a file's bytes (any buffer); raises pa.ArrowInvalid or pa.ArrowNotImplementedError for types
            that the format cannot represent, even without rows.
        decode: the rows of such bytes, or the lines that hold them.
    """

    name: str
    suffix: str
    encode: Callable[[pa.Table], Any]
    decode: Callable[[bytes], Iterable[object]]


class PartSink(Sink):
    """A sink that writes part files into its own folder; a frozen dataclass with a `path` and a format.

    Attributes:
        path: of the folder.
    """

    path: str | Path
    guarantee: ClassVar[Guarantee] = "exactly-once"

    @cached_property
    def folder(self) -> Path:
        """The folder as an absolute path, independent of the working directory."""
        return Path(self.path).expanduser().absolute()

    @property
    def name(self) -> str:
        """The name of the sink in graphs: the last part of its path."""
        return self.folder.name

    @property
    def part_format(self) -> PartFormat:
        """The format of the files."""
        raise NotImplementedError  # abstract

    def check(self, schema: pa.Schema) -> None:
        """Reject a schema that the format cannot represent, or a folder that cannot be written; nothing is created.

        Raises:
            SinkError: with the type or the folder.
        """
        if (refusal := _refusal(self.part_format, schema)) is not None:
            raise SinkError(
                f"{self.part_format.name} cannot hold these columns: {refusal}; convert or drop them before the sink"
            ) from refusal
        place = self.folder
        with _looked_into(place):
            existing = next(folder for folder in (place, *place.parents) if folder.exists())
        if not existing.is_dir():
            raise SinkError(f"{existing} is a file, not a folder: choose another path for the sink")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise SinkError(
                f"the folder {existing} cannot be written: choose another path for the sink or change its permissions"
            )

    def place(self) -> Place:
        """The folder."""
        return Place(os.path.realpath(self.folder))

    def hold(self, context: SinkContext) -> SinkFolder:
        """Lock the folder; a job that takes over the lease of another job's checkpoints takes over its folders, too."""
        return SinkFolder(self.folder, context.job, context.lease, context.ended)

    def check_fresh(self, context: SinkContext) -> None:
        """Reject a start without a checkpoint in a folder that holds parts."""
        _check_fresh(self.folder)

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        """Reject a checkpoint that is older than parts in the folder."""
        saved = SavedParts.of(snapshots, self.folder, self.part_format.suffix)
        _check_none_later(self.folder, saved.checkpoint, context.checkpoint)

    def committed(self) -> Iterable[object]:
        """The rows in the parts; for text formats the lines."""
        return [row for part in _parts(self.folder) for row in self.part_format.decode(part.read_bytes())]

    def describe(self) -> str:
        return str(self.path)

    def create(self, schema: pa.Schema) -> Operator:
        return PartSinkLogic(self, schema)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A pre-committed file and its name after its epoch is complete."""

    epoch: int
    file: PartFile
    target: Path

    def to_json(self) -> Json:
        """The snapshot's entry for this file; writes the file first, which may take a while."""
        return {"file": self.file.path.name, "target": self.target.name, "checksum": self.file.write()}

    def name(self) -> None:
        """Give the file its final name, next to the hidden one; do nothing if it has it already."""
        source, target = self.file.path, self.target
        try:
            DISK.get().link(str(source), str(target))
        except FileExistsError:
            if not _is_same(source, target):
                raise self._taken() from None
        except FileNotFoundError:
            if not target.exists():
                raise CommittedRowsError(
                    f"the rows of {target} are lost, because neither it nor {source.name} exists: bring one of them "
                    "back, or start afresh in another folder"
                ) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise self._refused(error) from error
            self._rename()

    def unhide(self) -> None:
        """Delete the hidden name, once the final one is durable."""
        try:
            DISK.get().delete(str(self.file.path))
        except OSError as error:
            raise self._refused(error) from error

    def _rename(self) -> None:
        """For file systems without hard links. The folder belongs to this job, so no other job interferes."""
        if os.path.lexists(self.target):
            raise self._taken()
        try:
            DISK.get().rename(str(self.file.path), str(self.target))
        except OSError as error:
            raise self._refused(error) from error

    def _taken(self) -> CommittedRowsError:
        name = self.file.path.name
        return CommittedRowsError(f"{self.target} exists and would be overwritten by {name}: choose another path")

    def _refused(self, error: OSError) -> SinkError:
        why = error.strerror or error
        return SinkError(f"cannot rename {self.file.path} to {self.target.name}: {why}; fix this and resume")


class PartSinkLogic(Operator):
    """Keeps rows in memory until the barrier, or until a file is full."""

    def __init__(self, sink: PartSink, schema: pa.Schema) -> None:
        self._format = sink.part_format
        self._schema = schema
        self._folder = sink.folder
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._rolled: list[PartFile] = []
        self._pending: list[_Pending] = []
        self._epoch = 1
        self._begun = False
        self._subtask = 0
        self._parallelism = 1
        self._attempt = 0
        self._run = ""
        self._since = 0  # up to this checkpoint, the folder's parts are known to be this job's

    def open(self, context: OperatorContext) -> None:
        self._subtask, self._parallelism, self._attempt = context.subtask, context.parallelism, context.attempt
        self._run = context.run
        if self._subtask == 0:  # which is opened whenever another subtask is
            take_folder(self._folder)
        else:
            make_folder(self._folder)

    def process(self, records: Records, port: int, out: Output) -> None:
        self._begin()
        self._batches.append(records.batch)
        self._rows += len(records)
        self._bytes += int(records.batch.nbytes)
        if self._rows >= _FILE_ROWS_MAX or self._bytes >= _FILE_BYTES_MAX:
            # Written synchronously, on the data path: the alternative is unbounded memory.
            self._roll().write()

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._begin()
        if self._rows:
            self._roll()
        for number, file in enumerate(self._rolled):
            target = self._folder / part_name(checkpoint_id, self._subtask, number, self._format.suffix)
            self._pending.append(_Pending(checkpoint_id, file, target))
        self._rolled = []
        self._epoch = checkpoint_id + 1
        listed = tuple(self._pending)

        def write() -> Json:
            return [pending.to_json() for pending in listed]

        pieces: dict[str, Json | DelayedEncoding] = {"checkpoint": checkpoint_id, "pending": write}
        return cast("Snapshot", pieces)

    def notify_complete(self, checkpoint_id: int) -> None:
        self._commit([pending for pending in self._pending if pending.epoch <= checkpoint_id])
        self._pending = [pending for pending in self._pending if pending.epoch > checkpoint_id]

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        if not any(snapshots):
            return  # the restored job did not have this sink: it starts empty
        saved = SavedParts.of(snapshots, self._folder, self._format.suffix)
        _check_none_later(self._folder, saved.checkpoint)
        self._since = saved.checkpoint
        self._delete_strays({part.file for part in saved.pending})
        if self._subtask == 0:  # the first subtask commits the files of all former ones
            self._commit([self._recover(part) for part in saved.pending])
        self._epoch = saved.checkpoint + 1
        self._begun = True

    def _begin(self) -> None:
        """Called before the first row of a job that was not restored, also after a recovery without a checkpoint."""
        if not self._begun:
            _check_fresh(self._folder)
            self._delete_strays(set())
            self._begun = True

    def _roll(self) -> PartFile:
        """Turn the rows in memory into a file, which is written on request."""
        rows = pa.Table.from_batches(self._batches, self._schema)
        self._batches, self._rows, self._bytes = [], 0, 0
        number, suffix = len(self._rolled), self._format.suffix
        name = pending_name(self._epoch, self._subtask, self._attempt, number, self._run, suffix)
        file = PartFile(self._folder / name, lambda: self._format.encode(rows), shared=True)
        self._rolled.append(file)
        return file

    def _commit(self, pendings: list[_Pending]) -> None:
        if not pendings:
            return
        self._check_alone({pending.target.name for pending in pendings})
        for pending in pendings:
            pending.name()
        DISK.get().sync_folder(str(self._folder))  # until then a power failure may undo the new names
        for pending in pendings:
            pending.unhide()
        self._since = max(self._since, *(pending.epoch for pending in pendings))

    def _check_alone(self, own: set[str]) -> None:
        """Refuse to commit if another job has, despite the lock on the folder: their rows would be mixed. Commits of
        other subtasks of this job are not detected as such."""
        first = part_name(self._since + 1, 0, 0, "")
        for path in _all_in(self._folder):
            order = order_of(path.name) if path.name >= first and path.name not in own else None
            if order is not None and (order[1] == self._subtask or order[1] >= self._parallelism):
                raise CommittedRowsError(
                    f"{path} was committed by another job that writes to this folder, and the rows of"
                    " both would be mixed: end one of them, and start it again, from its savepoint if it had one, with"
                    " another folder"
                )

    def _recover(self, saved: SavedPart) -> _Pending:
        file = PartFile.written(self._folder / saved.file, saved.checksum)
        if file.path.exists():
            read_verified(file.path, file.write())
        return _Pending(saved.epoch, file, self._folder / saved.target)

    def _delete_strays(self, listed: set[str]) -> None:
        """Delete hidden files that no complete checkpoint lists: their rows will be read and written again.

        Each subtask deletes those with its own number, so that none deletes what another one is writing.
        """
        for path in _all_in(self._folder):
            writer = writer_of(path.name)
            if writer is None or path.name in listed:
                continue
            if writer == self._subtask or (self._subtask == 0 and writer >= self._parallelism):
                DISK.get().delete(str(path))  # one that reappears after a power failure is deleted again


def _check_fresh(folder: Path) -> None:
    parts = _parts(folder)
    if parts:
        raise CommittedRowsError(
            f"the folder {folder} already holds {len(parts)} committed files such as {parts[0].name}, which a run that"
            " starts over never removes: move them away, choose another path, or resume the job that wrote them "
            f"({option('resume')})"
        )


def _check_none_later(folder: Path, checkpoint_id: int, checkpoint: str = "") -> None:
    """Refuse to go back to this checkpoint if parts of later ones exist."""
    later = [part for part in _parts(folder) if _epoch(part) > checkpoint_id]
    if later:
        raise CommittedRowsError(
            f"{later[-1]} was committed by checkpoint {_epoch(later[-1])}, later than "
            f"{checkpoint or f'checkpoint {checkpoint_id}'} to restore, so its rows would be duplicated: restore that "
            "checkpoint, or choose another path"
        )


def _parts(folder: Path) -> list[Path]:
    """The committed files of a folder, by epoch, subtask and number."""
    return sorted((path for path in _all_in(folder) if order_of(path.name)), key=lambda part: order_of(part.name) or ())


def _all_in(folder: Path) -> list[Path]:
    """All files of a folder; none if it does not exist."""
    with _looked_into(folder):
        try:
            return list(folder.iterdir())
        except FileNotFoundError:
            return []


@contextmanager
def _looked_into(folder: Path) -> Iterator[None]:
    """Name the folder in the error if the system does not let it be read."""
    try:
        yield
    except OSError as error:
        fix = "change its permissions or " if isinstance(error, PermissionError) else ""
        raise SinkError(f"cannot list the folder {folder}: {told_by(error)}; {fix}choose another path") from error


def _epoch(part: Path) -> int:
    return (order_of(part.name) or (0,))[0]


def _is_same(one: Path, other: Path) -> bool:
    """Whether these are two names of one file."""
    return os.path.samestat(os.lstat(one), os.lstat(other))


@lru_cache(maxsize=64)
def _refusal(part_format: PartFormat, schema: pa.Schema) -> pa.ArrowException | None:
    """Why the format cannot represent such rows, determined by encoding one; called whenever a pipeline is built."""
    try:
        part_format.encode(_a_row_of_nulls(schema))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        return error.with_traceback(None)  # release the rows of the attempt
    return None


def _a_row_of_nulls(schema: pa.Schema) -> pa.Table:
    """A table that shows whether a format lacks a type; without a row some formats would not."""
    columns = pa.schema([item.with_nullable(True) for item in schema])
    return pa.Table.from_arrays([pa.nulls(1, item.type) for item in schema], schema=columns)
