"""How a task's state is written: Arrow IPC streams, one behind the other; no code and no pickle in them.

The first stream is the index, with a row for each piece of state: ``operator`` (uid), ``name`` (of the piece) and
``json`` (its value, null for a table). The tables follow, each a stream of its own, in the order of their rows. So the
file can be read back with any Arrow library. A column that repeats an earlier one of its table is left out; the
metadata ``workbench.repeats`` of the table's schema names both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from workbench.connectors.deferred import FILES
from workbench.errors import CorruptCheckpointError
from workbench.operators.base import Json, Snapshot

_LARGE = 65_536
_REPEATS = b"workbench.repeats"
_INDEX = pa.schema([("operator", pa.string()), ("name", pa.string()), ("json", pa.large_string())])


@dataclass(frozen=True, slots=True)
class Encoded:
    """A task's state as bytes.

    Attributes:
        pieces: buffers, one behind the other; the large ones are the state's own columns, which are not copied. They
            may be taken once, because those of state that is larger than memory are made on the way.
        files: what the state refers to outside of these bytes: paths relative to the checkpoint directory. They are
            kept as long as a checkpoint that names them.
    """

    pieces: Iterable[Any]
    files: tuple[str, ...] = ()

    def join(self) -> bytes:
        """All bytes in one."""
        return b"".join(self.pieces)


def encode(states: dict[str, Snapshot]) -> Encoded:
    """The bytes of a task's state, by operator uid and name.

    Deferred values (callables) are called here; a reader that one returns is read when its pieces are taken.
    """
    rows: list[tuple[str, str, str | None]] = []
    tables: list[pa.RecordBatchReader] = []
    files: list[str] = []
    for uid, snapshot in states.items():
        for name, value in snapshot.items():
            piece = value() if callable(value) else value
            if name == FILES:
                files += cast(list[str], piece)
            elif isinstance(piece, pa.Table | pa.RecordBatchReader):
                rows.append((uid, name, None))
                tables.append(_without_repeats(piece).to_reader() if isinstance(piece, pa.Table) else piece)
            else:
                rows.append((uid, name, json.dumps(piece, sort_keys=True)))
        if not snapshot:
            rows.append((uid, "", "null"))
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(_INDEX)]
    index = pa.Table.from_arrays(columns, schema=_INDEX).to_reader()
    return Encoded(_written([index, *tables]), tuple(files))


def _written(tables: Iterable[pa.RecordBatchReader]) -> Iterator[Any]:
    """The bytes of each table as a stream; a batch is let go before the next is read."""
    pieces = _Pieces()
    with pa.PythonFile(pieces, "w") as sink:
        for table in tables:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                for batch in table:
                    writer.write_batch(batch)
                    yield from pieces.taken()
    yield from pieces.taken(last=True)


def _without_repeats(table: pa.Table) -> pa.Table:
    """The table without columns that are the very same memory as an earlier one, and in its metadata how it was."""
    first: dict[object, str] = {}
    repeats: dict[str, str] = {}
    if table.nbytes < _LARGE or len(set(table.column_names)) < table.num_columns:
        return table
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.num_chunks == 1:
            chunk = column.chunk(0)
            places = tuple(buffer and (buffer.address, buffer.size) for buffer in chunk.buffers())
            earlier = first.setdefault((str(chunk.type), chunk.offset, places), name)
            if earlier != name and not pa.types.is_dictionary(chunk.type):
                repeats[name] = earlier
    if not repeats:
        return table
    content = {"columns": table.column_names, "repeats": repeats}
    metadata = {**(table.schema.metadata or {}), _REPEATS: json.dumps(content).encode()}
    return table.drop_columns(list(repeats)).replace_schema_metadata(metadata)


def _with_repeats(table: pa.Table) -> pa.Table:
    metadata = dict(table.schema.metadata or {})
    if _REPEATS not in metadata:
        return table
    content = json.loads(metadata.pop(_REPEATS))
    repeats: dict[str, str] = content["repeats"]
    columns = [table.column(repeats.get(name, name)) for name in content["columns"]]
    return pa.table(columns, names=content["columns"]).replace_schema_metadata(metadata or None)


class _Pieces:
    """A file, as Arrow sees it, that keeps large buffers as they are and puts small ones together."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._small = bytearray()

    def write(self, data: Any) -> int:
        if len(data) < _LARGE:
            self._small += data
        else:
            self._flush_small()
            self._pieces.append(data)
        return len(data)

    def _flush_small(self) -> None:
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small.clear()

    def taken(self, *, last: bool = False) -> Iterator[Any]:
        """What was written since the last time, but for small buffers that more will be put to."""
        if last:
            self._flush_small()
        pieces, self._pieces = self._pieces, []
        yield from pieces

    def flush(self) -> None:
        """Arrow asks for it; there is nothing to do."""

    def close(self) -> None:
        """Arrow asks for it; there is nothing to do."""


def decode(data: Any, name: str) -> dict[str, Snapshot]:
    """The states in such bytes (any buffer).

    Raises:
        CorruptCheckpointError: the bytes are not such a file; `name` says which one.
    """
    try:
        streams = _read(pa.BufferReader(pa.py_buffer(data)))
        states: dict[str, Snapshot] = {}
        for row in next(streams).to_pylist():
            snapshot = states.setdefault(row["operator"], {})
            if row["name"]:
                value = next(streams) if row["json"] is None else cast(Json, json.loads(row["json"]))
                snapshot[row["name"]] = value
        return states
    except (pa.ArrowException, OSError, KeyError, ValueError, StopIteration) as error:
        raise CorruptCheckpointError(f"the checkpoint file {name} cannot be read: {error}") from error


def _read(source: pa.NativeFile) -> Iterator[pa.Table]:
    while source.tell() < source.size():
        yield _with_repeats(pa.ipc.open_stream(source).read_all())
